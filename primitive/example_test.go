package primitive_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// onWorkers runs a function on so many workers. A program does this once, in main: see dist.Spawn.
func onWorkers(workers int, f func(ctx context.Context, world *partition.Partition) error) {
	err := dist.Spawn(func(ctx context.Context, _ int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		group, err := dist.Default()
		if err != nil {
			return err
		}
		world, err := partition.New(ctx, group.Communicator())
		if err != nil {
			return err
		}
		defer world.Close()
		return f(ctx, world)
	}, dist.WithRanks(workers))
	if err != nil {
		log.Fatal(err)
	}
}

// A matrix moves from workers that have rows to workers that have columns.
func ExampleRepartition() {
	onWorkers(2, func(ctx context.Context, world *partition.Partition) error {
		rows, err := world.Cartesian(ctx, 2, 1)
		if err != nil {
			return err
		}
		columns, err := world.Cartesian(ctx, 1, 2)
		if err != nil {
			return err
		}
		move, err := primitive.NewRepartition[float32](ctx, rows, columns)
		if err != nil {
			return err
		}
		mine := [][]float32{{1, 2, 3, 4}, {5, 6, 7, 8}}[world.Rank()]
		x, err := primitive.TensorOf(mine, 1, 4)
		if err != nil {
			return err
		}
		y, err := move.Forward(ctx, nil, x)
		if err != nil {
			return err
		}
		back, err := move.Adjoint(ctx, nil, y)
		if err != nil {
			return err
		}
		all, err := partition.AllGatherData(ctx, world, fmt.Sprint(y.Shape(), y.Data(), " and back ", back.Data()))
		if world.Rank() == 0 {
			for rank, text := range all {
				fmt.Printf("worker %d: %s\n", rank, text)
			}
		}
		return err
	})
	// Output:
	// worker 0: [2 2] [1 2 5 6] and back [1 2 3 4]
	// worker 1: [2 2] [3 4 7 8] and back [5 6 7 8]
}

// Each worker has three cells, and one ghost cell of each neighbour.
func ExampleHaloExchange() {
	onWorkers(3, func(ctx context.Context, world *partition.Partition) error {
		halos, err := primitive.NewHaloExchange[int](ctx, world, primitive.Halo{Left: 1, Right: 1})
		if err != nil {
			return err
		}
		first := 10 * world.Rank()
		x, err := primitive.TensorOf([]int{0, first + 1, first + 2, first + 3, 0}, 5)
		if err != nil {
			return err
		}
		if x, err = halos.Forward(ctx, x, x); err != nil { // in place
			return err
		}
		all, err := partition.AllGatherData(ctx, world, x.Data())
		if world.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [[0 1 2 3 11] [3 11 12 13 21] [13 21 22 23 0]]
}

// Workers 1 and 2 have the parts of a tensor; four workers get copies, and the gradients of the copies are
// summed.
func ExampleBroadcast() {
	onWorkers(4, func(ctx context.Context, world *partition.Partition) error {
		x, err := world.Inclusive(ctx, []int{1, 2}) // inactive on 0 and 3
		if err != nil {
			return err
		}
		y, err := world.Cartesian(ctx, 2, 2)
		if err != nil {
			return err
		}
		copies, err := primitive.NewBroadcast[int](ctx, x, y)
		if err != nil {
			return err
		}
		var part *primitive.Tensor[int]
		if x.Active() {
			if part, err = primitive.TensorOf([]int{100 * world.Rank()}, 1); err != nil {
				return err
			}
		}
		got, err := copies.Forward(ctx, nil, part)
		if err != nil {
			return err
		}
		gradient, err := primitive.TensorOf([]int{1 + world.Rank()}, 1)
		if err != nil {
			return err
		}
		sums, err := copies.Adjoint(ctx, nil, gradient)
		if err != nil {
			return err
		}
		all, err := partition.AllGatherData(ctx, world, fmt.Sprint(got.Data(), sums.Data()))
		if world.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [[100] [] [200] [4] [100] [6] [200] []]
}
