package dist_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/goccl/goccl/dist"
)

// A whole program: four ranks average their gradients.
func Example() {
	err := dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		grads := []float32{float32(rank), 1}
		if err := dist.AllReduce(grads, dist.Avg); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(grads)
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(4))
	if err != nil {
		log.Fatal(err)
	}
	// Output: [1.5 1]
}

// run runs an example on three connected ranks.
func run(worker func(rank int) error) {
	err := dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		if err := worker(rank); err != nil {
			return err
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(3))
	if err != nil {
		log.Fatal(err)
	}
}

// A pool of goroutines has no rank of its own, so it gets the group.
func ExampleWithGroup() {
	run(func(rank int) error {
		group, err := dist.Default()
		if err != nil {
			return err
		}
		done := make(chan error)
		go func() {
			tensor := []int64{1}
			err := dist.AllReduce(tensor, dist.Sum, dist.WithGroup(group))
			if group.Rank() == 0 {
				fmt.Println(tensor)
			}
			done <- err
		}()
		return <-done
	})
	// Output: [3]
}

// A program with its own number of ranks, which a launcher may start with another.
func ExampleIsLaunched() {
	var options []dist.SpawnOption
	if !dist.IsLaunched() { // otherwise the launcher determines the number
		options = append(options, dist.WithRanks(4))
	}
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		ranks, err := dist.GetWorldSize()
		if err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(ranks, "ranks")
		}
		return dist.DestroyProcessGroup()
	}, options...)
	if err != nil {
		fmt.Println(err)
	}
	// Output: 4 ranks
}

// Spawn returns the errors of all workers, the cause first.
func ExampleSpawn() {
	err := dist.Spawn(func(ctx context.Context, rank int) error {
		if rank == 1 {
			return errors.New("no more data")
		}
		<-ctx.Done() // cancelled by rank 1's error
		return context.Cause(ctx)
	}, dist.WithRanks(3))
	fmt.Println(err)
	// Output:
	// rank 1: no more data
	// ranks 0, 2: rank 1: no more data
}

// Errors are returned on all ranks, and InitProcessGroup can be retried.
func ExampleInitProcessGroup() {
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("nccl"); rank == 0 {
			fmt.Println(err)
		}
		if err := dist.InitProcessGroup("ccl", dist.WithTimeout(10*time.Second)); err != nil {
			return err
		}
		backend, err := dist.GetBackend()
		if rank == 0 {
			fmt.Println(backend, dist.IsInitialized())
		}
		return errors.Join(err, dist.DestroyProcessGroup())
	}, dist.WithRanks(2))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// unknown backend "nccl" (available: ccl): goccl has no GPU backend; tensors are slices in main memory; use dist.InitProcessGroup("ccl"), goccl's own backend and not oneCCL
	// ccl true
}

// Groups can be destroyed and initialised again any number of times.
func ExampleDestroyProcessGroup() {
	run(func(rank int) error {
		for round := range 2 {
			if err := dist.DestroyProcessGroup(); err != nil {
				return err
			}
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			if rank == 0 {
				fmt.Println("group", round)
			}
		}
		return nil
	})
	// Output:
	// group 0
	// group 1
}

func ExampleGetRank() {
	run(func(int) error {
		rank, err := dist.GetRank()
		if err != nil {
			return err
		}
		ranks, err := dist.GetWorldSize()
		if err != nil {
			return err
		}
		if rank == 2 {
			fmt.Println("rank", rank, "of", ranks)
		}
		return nil
	})
	// Output: rank 2 of 3
}

func ExampleProcessGroup_GroupRank() {
	run(func(rank int) error {
		group, err := dist.NewGroup([]int{1, 2})
		if err != nil || group == nil {
			return err
		}
		inGroup, err := group.GroupRank(2)
		if err != nil {
			return err
		}
		inJob, err := group.GlobalRank(inGroup)
		if rank == 1 {
			fmt.Println(inGroup, inJob)
		}
		return err
	})
	// Output: 1 2
}

// A goroutine that acts for its rank.
func ExampleGo() {
	run(func(rank int) error {
		done := make(chan error)
		dist.Go(func() { done <- dist.Barrier() })
		err := <-done
		if rank == 0 {
			fmt.Println("all were here")
		}
		return err
	})
	// Output: all were here
}

// A timeout names the ranks that the caller waited for.
func ExampleTimeoutError() {
	over := make(chan struct{})
	run(func(rank int) error {
		if rank > 0 {
			<-over // instead of rank 0's call
			return nil
		}
		defer close(over)
		err := dist.AllReduce([]float32{1}, dist.Sum, dist.WithCallTimeout(20*time.Millisecond))
		if late, ok := errors.AsType[*dist.TimeoutError](err); ok {
			fmt.Println("missing:", late.Missing)
		}
		return nil
	})
	// Output: missing: [1 2]
}

// Every second rank; the others get no group.
func ExampleNewGroup() {
	run(func(rank int) error {
		group, err := dist.NewGroup([]int{0, 2}) // on all ranks
		if err != nil || group == nil {
			return err
		}
		tensor := []int64{int64(10 * rank)}
		if err := dist.Broadcast(tensor, 2, dist.WithGroup(group)); err != nil { // from global rank 2
			return err
		}
		if group.Rank() == 0 {
			fmt.Println(group.Ranks(), tensor)
		}
		return dist.DestroyProcessGroup(dist.WithGroup(group))
	})
	// Output: [0 2] [20]
}

// Rows of a grid, two ranks wide.
func ExampleSplit() {
	run(func(rank int) error {
		row, err := dist.Split(rank/2, rank)
		if err != nil {
			return err
		}
		if rank == 1 {
			fmt.Println(row.Ranks())
		}
		return nil
	})
	// Output: [0 1]
}
