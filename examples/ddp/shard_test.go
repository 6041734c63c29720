package main

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/examples/nn"
)

// adam moves parameters against their gradients, as torch's Adam does.
func adam(params, mean, square, grads []float32, step int) {
	const beta1, beta2 = 0.9, 0.999
	for i, g := range grads {
		mean[i] = beta1*mean[i] + (1-beta1)*g
		square[i] = beta2*square[i] + (1-beta2)*g*g
		m := float64(mean[i]) / (1 - math.Pow(beta1, float64(step)))
		s := float64(square[i]) / (1 - math.Pow(beta2, float64(step)))
		params[i] -= float32(0.003 * m / (math.Sqrt(s) + 1e-8))
	}
}

// Under direct, ranks that update a part of the model each learn digits with the weights, bit by bit, of ranks that update
// all of it, by SGD and by Adam. The optimizer's state and work are divided by the number of ranks.
func TestSharded(t *testing.T) {
	trainSet, _ := someDigits[float32](t, 101)
	for _, ranks := range []int{1, 2, 3, 4, 7} {
		for _, name := range []string{"sgd", "adam"} {
			t.Run(fmt.Sprintf("%s/ranks=%d", name, ranks), func(t *testing.T) {
				want := make([]string, ranks)
				for _, shard := range []bool{false, true} {
					err := dist.Spawn(func(ctx context.Context, rank int) error {
						if err := dist.InitProcessGroup("ccl", dist.WithAlgorithm("direct")); err != nil {
							return err
						}
						group, err := dist.Default()
						if err != nil {
							return err
						}
						got, err := trainSharded(ctx, group, trainSet, name, shard)
						if want[rank] == "" {
							want[rank] = got
						}
						if err == nil && got != want[rank] {
							return fmt.Errorf("the weights are %s, and without shards %s", got, want[rank])
						}
						return err
					}, dist.WithRanks(ranks))
					require.NoError(t, err)
				}
			})
		}
	}
}

// trainSharded trains, and returns the checksum of the weights. Without shards the optimizer is a loop over the layers.
func trainSharded(ctx context.Context, group *dist.ProcessGroup, trainSet digits.Set[float32], optimizer string, shard bool) (string, error) {
	o := smallJob(4)
	model := newMLP[float32](o.layers, o.seed)
	reducer, err := ddp.New(ctx, group, model.parameters(), ddp.Options{Shard: shard})
	if err != nil {
		return "", err
	}
	first, err := ddp.NewOptimizerState[float32](reducer, "first")
	if err != nil {
		return "", err
	}
	second, err := ddp.NewOptimizerState[float32](reducer, "second")
	if err != nil {
		return "", err
	}
	step, elements := 0, 0
	update := func(p ddp.Part[float32]) {
		if elements += len(p.Values); optimizer == "sgd" {
			nn.SGD(p.Values, first[p.Parameter], p.Gradient, 0.05, 0.9)
		} else {
			adam(p.Values, first[p.Parameter], second[p.Parameter], p.Gradient, step)
		}
	}

	samples := ddp.Sampler{Samples: trainSet.Len(), Group: group}
	var last float64
	for epoch := range o.epochs {
		batch := trainSet.Pick(samples.Indices(epoch))
		for at := 0; at < batch.Len(); at += 5 {
			step++
			last, _ = model.loss(batch.Slice(at, min(at+5, batch.Len())))
			model.backward(reducer.Ready)
			if err := reducer.Wait(ctx); err != nil {
				return "", err
			}
			elements = 0
			if !shard {
				for i, l := range model {
					update(ddp.Part[float32]{Parameter: i, Values: l.params, Gradient: l.grads})
				}
			} else if err := ddp.Step(ctx, reducer, update); err != nil {
				return "", err
			}
		}
	}
	total, state := 0, 0
	for i, l := range model {
		total += len(l.params)
		state += len(first[i])
		if len(second[i]) != len(first[i]) {
			return "", fmt.Errorf("layer %d has state of %d and %d", i, len(first[i]), len(second[i]))
		}
	}
	if limit := total/group.Size() + reducer.Stats().Buckets; shard && (elements > limit || elements != state) {
		return "", fmt.Errorf("a rank has updated %d of %d elements with state of %d, want at most %d", elements, total, state, limit)
	}
	if math.IsNaN(last) {
		return "", fmt.Errorf("the loss is %v", last)
	}
	return model.checksum(), reducer.Verify(ctx)
}
