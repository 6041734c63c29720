package dist_test

import (
	"context"
	"fmt"
	"log"

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
	}, dist.Ranks(4))
	if err != nil {
		log.Fatal(err)
	}
	// Output: [1.5 1]
}

// run is what the other examples share: three ranks, connected.
func run(worker func(rank int) error) {
	err := dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		if err := worker(rank); err != nil {
			return err
		}
		return dist.DestroyProcessGroup()
	}, dist.Ranks(3))
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleAllReduce() {
	run(func(rank int) error {
		tensor := []int64{int64(rank), 10}
		if err := dist.AllReduce(tensor, dist.Sum); err != nil {
			return err
		}
		fmt.Println(tensor)
		return nil
	})
	// Output:
	// [3 30]
	// [3 30]
	// [3 30]
}

func ExampleBroadcast() {
	run(func(rank int) error {
		tensor := make([]float64, 2)
		if rank == 1 {
			tensor = []float64{0.5, 0.25}
		}
		if err := dist.Broadcast(tensor, 1); err != nil {
			return err
		}
		fmt.Println(tensor)
		return nil
	})
	// Output:
	// [0.5 0.25]
	// [0.5 0.25]
	// [0.5 0.25]
}

func ExampleAllGatherV() {
	run(func(rank int) error {
		counts := []int{2, 0, 1} // how many elements each rank brings
		input := [][]int32{{1, 2}, {}, {3}}[rank]
		output := make([]int32, 3)
		if err := dist.AllGatherV(output, input, counts); err != nil {
			return err
		}
		fmt.Println(output)
		return nil
	})
	// Output:
	// [1 2 3]
	// [1 2 3]
	// [1 2 3]
}

func ExampleBarrier() {
	written := make([]string, 3) // by every rank, in its place
	run(func(rank int) error {
		written[rank] = fmt.Sprintf("part %d", rank)
		if err := dist.Barrier(); err != nil { // all have written
			return err
		}
		if rank == 0 {
			fmt.Println(written)
		}
		return nil
	})
	// Output: [part 0 part 1 part 2]
}

// A pool of goroutines has no rank of its own: it is handed the group.
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

// A program with a number of ranks of its own, which a launcher may start with
// another.
func ExampleIsLaunched() {
	var options []dist.SpawnOption
	if !dist.IsLaunched() { // else the launcher has started as many as there are
		options = append(options, dist.Ranks(4))
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
