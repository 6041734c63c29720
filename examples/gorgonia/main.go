// Command gorgonia trains an autoencoder of Gorgonia (gorgonia.org) on all ranks: package ddp
// averages the gradients in the memory where Gorgonia's solver reads them.
package main

import (
	"context"
	"errors"
	"log"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
)

func main() {
	if err := dist.Spawn(func(ctx context.Context, rank int) error {
		losses, err := train(ctx, 84, gorgonia.GlorotU(1))
		if err == nil && rank == 0 {
			log.Println("first and last loss:", losses[0], losses[len(losses)-1])
		}
		return err
	}); err != nil {
		log.Fatal(err)
	}
}

// newModel returns the input and the loss of a graph for batches of a length, and its weights.
func newModel(batch int, initial gorgonia.InitWFn) (input, loss *gorgonia.Node, weights gorgonia.Nodes) {
	graph := gorgonia.NewGraph()
	matrix := func(name string, rows, columns int) *gorgonia.Node {
		return gorgonia.NewMatrix(graph, tensor.Float32, gorgonia.WithName(name), gorgonia.WithShape(rows, columns), gorgonia.WithInit(initial))
	}
	encoder, decoder, images := matrix("encoder", digits.Pixels, 16), matrix("decoder", 16, digits.Pixels), matrix("images", batch, digits.Pixels)
	code := gorgonia.Must(gorgonia.Rectify(gorgonia.Must(gorgonia.Mul(images, encoder))))
	miss := gorgonia.Must(gorgonia.Sub(gorgonia.Must(gorgonia.Mul(code, decoder)), images))
	return images, gorgonia.Must(gorgonia.Mean(gorgonia.Must(gorgonia.Square(miss)))), gorgonia.Nodes{encoder, decoder}
}

// train is the work of a rank. A step has so many samples of all ranks. The losses are this rank's.
func train(ctx context.Context, samples int, initial gorgonia.InitWFn) (losses []float32, err error) {
	set, err := digits.Load[float32]()
	if err := errors.Join(err, dist.InitProcessGroup("ccl")); err != nil {
		return nil, err
	}
	group, err := dist.Default()
	if err != nil {
		return nil, err
	}

	batch := samples / group.Size()
	images, loss, weights := newModel(batch, initial) // New gives all ranks the weights of rank 0
	if _, err := gorgonia.Grad(loss, weights...); err != nil {
		return nil, err
	}

	machine := gorgonia.NewTapeMachine(images.Graph(), gorgonia.BindDualValues(weights...))
	solver := gorgonia.NewVanillaSolver(gorgonia.WithLearnRate(1))
	var params []ddp.Parameter
	for _, w := range weights {
		params = append(params, ddp.Param(w.Name(), w.Value().Data().([]float32), nil, w.Shape()...))
	}
	model, err := ddp.New(ctx, group, params, ddp.Options{})
	if err != nil {
		return nil, err
	}

	epoch := set.Len() / samples // in steps: each has a whole batch, since the graph has one length
	order := ddp.Sampler{Samples: epoch * samples, Group: group}
	for step := range 3 * epoch {
		indices := order.Indices(step / epoch)[step%epoch*batch:][:batch]
		copy(images.Value().Data().([]float32), set.Pick(indices).Images)
		if err := machine.RunAll(); err != nil {
			return nil, err
		}

		losses = append(losses, loss.Value().Data().(float32))
		for i, w := range slices.Backward(weights) {
			gradient, _ := w.Grad() // RunAll has made it
			ddp.ReadyGrad(model, i, gradient.Data().([]float32))
		}
		if err := model.Wait(ctx); err != nil {
			return nil, err
		}
		if err := solver.Step(gorgonia.NodesToValueGrads(weights)); err != nil {
			return nil, err
		}
		machine.Reset()
	}
	return losses, model.Verify(ctx) // all ranks have the same weights, bit by bit
}
