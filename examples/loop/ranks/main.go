// Command ranks trains on many ranks, with goccl. It accumulates the gradients of small batches
// and clips them, evaluates and saves each epoch, and goes on from there the next time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"slices"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/examples/loop"
	"github.com/goccl/goccl/examples/nn"
)

const batch, small, limit, rate, momentum = 128, 16, 0.5, 0.2, 0.9

func main() {
	path, epochs := flag.String("checkpoint", "digits.safetensors", "`file`"), flag.Int("epochs", 5, "`passes` over the digits")
	flag.Parse()
	if err := dist.Spawn(func(ctx context.Context, _ int) error { return run(ctx, *path, *epochs) }); err != nil {
		log.Fatal(err)
	}
}

// run trains up to a number of epochs.
func run(ctx context.Context, path string, epochs int) error {
	trainSet, testSet, err := digits.Sets[float32](1)
	if err != nil {
		return err
	}
	m, velocity := loop.NewModel(), loop.NewModel().Grads

	if err := dist.InitProcessGroup("ccl"); err != nil {
		return err
	}
	group, err := dist.Default()
	if err != nil {
		return err
	}

	model, err := ddp.New(ctx, group, []ddp.Parameter{
		ddp.Param("weights", m.Params[0], m.Grads[0]),
		ddp.Param("bias", m.Params[1], m.Grads[1]),
	}, ddp.Options{Buffers: []ddp.Tensor{ddp.Buffer("velocity of weights", velocity[0]), ddp.Buffer("velocity of bias", velocity[1])}})
	if err != nil {
		return err
	}

	var at struct{ Epochs int }
	if err := model.Load(ctx, path, &at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	for at.Epochs < epochs {
		order := ddp.Sampler{Samples: trainSet.Len(), Group: group, Uneven: true}.Indices(at.Epochs)
		if err := model.Join(ctx, func() error { return train(ctx, model, m, velocity, trainSet, order, batch/group.Size()) }); err != nil {
			return err
		}
		sums := m.Evaluate(testSet.Pick(ddp.Sampler{Samples: testSet.Len(), Group: group, Uneven: true}.Indices(0)))
		if err := dist.AllReduce(sums, dist.Sum); err != nil {
			return err
		}

		at.Epochs++
		if group.Rank() == 0 {
			fmt.Printf("epoch %d: loss %.4f, accuracy %.3f\n", at.Epochs, sums[0]/sums[2], sums[1]/sums[2])
		}
		if err := model.Save(ctx, path, at); err != nil {
			return err
		}
	}
	return dist.DestroyProcessGroup()
}

// train makes the steps of an epoch.
func train(ctx context.Context, model *ddp.Reducer, m *loop.Model, velocity [2][]float32, set digits.Set[float32], order []int, batch int) error {
	for indices := range slices.Chunk(order, batch) {
		for i := range m.Grads {
			clear(m.Grads[i])
		}
		for part := range slices.Chunk(indices, small) {
			m.Backward(set.Pick(part), len(indices))
		}

		for i := range m.Params {
			model.Ready(i)
		}
		if err := model.Wait(ctx); err != nil {
			return err
		}
		if _, err := model.ClipGradNorm(limit); err != nil {
			return err
		}

		for i := range m.Params {
			nn.SGD(m.Params[i], velocity[i], m.Grads[i], rate, momentum)
		}
	}
	return nil
}
