package dist_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/dist"
)

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
		counts := []int{2, 0, 1} // of rank r's elements
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

func ExampleAllReduceCoalesced() {
	run(func(rank int) error {
		weights, bias := []float32{1, 2}, []float32{float32(rank)}
		if err := dist.AllReduceCoalesced([][]float32{weights, bias}, dist.Sum); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(weights, bias)
		}
		return nil
	})
	// Output: [3 6] [3]
}

func ExamplePremulSum() {
	run(func(rank int) error {
		tensor := []float64{float64(rank)}
		if err := dist.AllReduce(tensor, dist.PremulSum(0.5)); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(tensor)
		}
		return nil
	})
	// Output: [1.5]
}

// The gradients of one layer travel while the next ones are computed.
func ExampleWork() {
	run(func(rank int) error {
		var works []*dist.Work
		grads := make([][]float64, 3)
		for layer := range grads {
			grads[layer] = []float64{float64(layer * rank)} // a long computation
			work, err := dist.AllReduceAsync(grads[layer], dist.Avg)
			if err != nil {
				return err
			}
			works = append(works, work)
		}
		for _, work := range works {
			if err := work.Wait(context.Background()); err != nil {
				return err
			}
		}
		if rank == 0 {
			fmt.Println(grads)
		}
		return nil
	})
	// Output: [[0] [1] [2]]
}

func ExampleReduce() {
	run(func(rank int) error {
		tensor := []int64{int64(rank), 10}
		if err := dist.Reduce(tensor, 1, dist.Max); err != nil {
			return err
		}
		if rank == 1 { // the other ranks' tensors are unchanged
			fmt.Println(tensor)
		}
		return nil
	})
	// Output: [2 10]
}

func ExampleReduceScatter() {
	run(func(rank int) error {
		input := []int64{1, 2, 3} // a block of one element for each rank
		output := make([]int64, 1)
		if err := dist.ReduceScatter(output, input, dist.Sum); err != nil {
			return err
		}
		if rank == 2 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [9]
}

func ExampleReduceScatterV() {
	run(func(rank int) error {
		counts := []int{2, 0, 1} // of rank r's elements
		output := make([]int64, counts[rank])
		if err := dist.ReduceScatterV(output, []int64{1, 2, 3}, dist.Sum, counts); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [3 6]
}

func ExampleScan() {
	run(func(rank int) error {
		output := make([]int64, 1)
		if err := dist.Scan(output, []int64{10}, dist.Sum); err != nil {
			return err
		}
		if rank == 1 { // of ranks 0 and 1
			fmt.Println(output)
		}
		return nil
	})
	// Output: [20]
}

// The number of elements on lower ranks.
func ExampleExScan() {
	run(func(rank int) error {
		offset := make([]int64, 1) // unchanged on rank 0
		if err := dist.ExScan(offset, []int64{int64(rank + 1)}, dist.Sum); err != nil {
			return err
		}
		if rank == 2 {
			fmt.Println(offset)
		}
		return nil
	})
	// Output: [3]
}

func ExampleAllGather() {
	run(func(rank int) error {
		output := make([]int64, 6)
		if err := dist.AllGather(output, []int64{int64(rank), 10}); err != nil {
			return err
		}
		if rank == 1 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [0 10 1 10 2 10]
}

func ExampleGather() {
	run(func(rank int) error {
		var output []int64
		if rank == 1 {
			output = make([]int64, 3)
		}
		if err := dist.Gather(output, []int64{int64(rank)}, 1); err != nil {
			return err
		}
		if rank == 1 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [0 1 2]
}

func ExampleGatherV() {
	run(func(rank int) error {
		var output []int64
		var counts []int // needed on rank 0 alone
		if rank == 0 {
			counts = []int{2, 0, 1}
			output = make([]int64, 3)
		}
		input := [][]int64{{1, 2}, {}, {3}}[rank]
		if err := dist.GatherV(output, input, counts, 0); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [1 2 3]
}

func ExampleScatter() {
	run(func(rank int) error {
		var input []int64
		if rank == 1 {
			input = []int64{5, 6, 7} // an element for each rank
		}
		output := make([]int64, 1)
		if err := dist.Scatter(output, input, 1); err != nil {
			return err
		}
		if rank == 2 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [7]
}

func ExampleScatterV() {
	run(func(rank int) error {
		var input []int64
		var counts []int // needed on rank 0 alone
		if rank == 0 {
			input, counts = []int64{1, 2, 3}, []int{2, 0, 1}
		}
		output := make([]int64, []int{2, 0, 1}[rank])
		if err := dist.ScatterV(output, input, counts, 0); err != nil {
			return err
		}
		if rank == 2 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [3]
}

func ExampleAllToAll() {
	run(func(rank int) error {
		me := int64(10 * rank)
		input := []int64{me, me + 1, me + 2} // an element for each rank
		output := make([]int64, 3)
		if err := dist.AllToAll(output, input); err != nil {
			return err
		}
		if rank == 1 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [1 11 21]
}

// Every rank r sends r elements to each other rank and none to itself.
func ExampleAllToAllV() {
	run(func(rank int) error {
		inputCounts, outputCounts := make([]int, 3), make([]int, 3)
		var input []int64
		received := 0
		for r := range 3 {
			if r != rank {
				inputCounts[r], outputCounts[r] = rank, r
				input = append(input, slices.Repeat([]int64{int64(rank)}, rank)...)
				received += r
			}
		}
		output := make([]int64, received)
		if err := dist.AllToAllV(output, input, outputCounts, inputCounts); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [1 2 2]
}

func ExampleMonitoredBarrier() {
	run(func(rank int) error {
		if err := dist.MonitoredBarrier(10 * time.Second); err != nil {
			return err // it names all ranks that have not called
		}
		if rank == 0 {
			fmt.Println("all are here")
		}
		return nil
	})
	// Output: all are here
}

func ExampleBarrier() {
	written := make([]string, 3) // each rank writes its own element
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
