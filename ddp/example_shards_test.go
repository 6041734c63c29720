package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// A line is fitted to noisy points with 8 logical shards. The weight has the same bits on any number of ranks.
func ExampleReducer_Shards() {
	for ranks := range 4 {
		err := dist.Spawn(func(ctx context.Context, rank int) error {
			weight, err := fit(ctx, 7)
			if rank == 0 {
				fmt.Println(weight)
			}
			return err
		}, dist.WithRanks(ranks+1))
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 3.0000641
	// 3.0000641
	// 3.0000641
	// 3.0000641
}

// fit is the training of a rank.
func fit(ctx context.Context, seed uint64) (float32, error) {
	if err := dist.InitProcessGroup("ccl"); err != nil {
		return 0, err
	}
	group, err := dist.Default()
	if err != nil {
		return 0, err
	}

	const shards = 8
	weight, gradient := []float32{0}, []float32{0}
	model, err := ddp.New(ctx, group, []ddp.Parameter{ddp.Param("weight", weight, gradient)}, ddp.Options{LogicalShards: shards})
	if err != nil {
		return 0, err
	}
	loader := ddp.Loader[[]int]{
		Sampler: ddp.Sampler{Samples: 640, Group: group, Shards: shards, Seed: seed},
		Batch:   4,
		Load:    func(_ context.Context, indices []int) ([]int, error) { return indices, nil },
	}
	next, stop := iter.Pull2(loader.Epoch(ctx, 0, 0))
	defer stop()
	for step := range loader.Steps() {
		for shard := range model.Shards() {
			indices, err, ok := next()
			if err != nil {
				return 0, err
			}
			if !ok {
				return 0, errors.New("no batch: Sampler.Shards is not that of the Reducer")
			}
			clear(gradient)
			random := ddp.ShardRand(seed, step, shard) // in a later epoch, of the step of the training
			for _, i := range indices {
				x := float32(i) / 640
				y := float32(3*x) + float32(random.NormFloat64())/100
				gradient[0] += (float32(weight[0]*x) - y) * x / 4
			}
			model.Ready(0)
		}
		if err := model.Wait(ctx); err != nil {
			return 0, err
		}
		weight[0] -= 2 * gradient[0]
	}
	return weight[0], dist.DestroyProcessGroup()
}
