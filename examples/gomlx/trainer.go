package main

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	mltrain "github.com/gomlx/gomlx/pkg/ml/train"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// trainer trains the variables of a GoMLX context on all ranks. It is all that lies between GoMLX
// and goccl: graph A computes the loss and the gradients of this rank's batch, package ddp
// averages the gradients over the ranks, and graph B passes the averages to an optimizer of GoMLX.
type trainer struct {
	graphA, graphB *mlctx.Exec
	reducer        *ddp.Reducer
	averages       []*tensors.Tensor // the inputs of graph B, one for each trained variable
}

// newTrainer makes a trainer of a loss, which is a mean over the samples of a batch and uses all
// trainable variables. It is collective: all ranks continue with the variables of rank 0. The
// example is any batch; it is not trained on.
func newTrainer(ctx context.Context, backend backends.Backend, vars *mlctx.Context,
	loss func(vars *mlctx.Context, images, labels *graph.Node) *graph.Node,
	optimizer mltrain.OptimizeWithGradients, example batch) (*trainer, error) {
	t := new(trainer)
	var err error
	t.graphA, err = mlctx.NewExec(backend, vars, func(vars *mlctx.Context, images, labels *graph.Node) []*graph.Node {
		l := loss(vars, images, labels)
		return append([]*graph.Node{l}, vars.BuildTrainableVariablesGradientsGraph(l)...)
	})
	if err != nil {
		return nil, err
	}
	if _, err := t.graphA.Exec(example.images, example.labels); err != nil { // makes the variables
		return nil, err
	}

	var trained []*mlctx.Variable // in the order of the gradients
	var parameters []ddp.Parameter
	var data [][]float32 // of the parameters
	for v := range vars.IterVariables() {
		if !v.Trainable {
			continue
		}

		values, err := tensors.CopyFlatData[float32](v.MustValue())
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.ScopeAndName(), err)
		}
		trained = append(trained, v)
		parameters = append(parameters, ddp.Param(v.ScopeAndName(), values, nil, v.Shape().Dimensions...))
		data = append(data, values)
		t.averages = append(t.averages, tensors.FromShape(v.Shape()))
	}
	// ddp makes the gradients, since each execution of a graph has its outputs in other memory. For
	// the same reason data has the variables only now: a checkpoint (ddp.Save) needs new copies.
	group, err := dist.Default()
	if err != nil {
		return nil, err
	}
	if t.reducer, err = ddp.New(ctx, group, parameters, ddp.Options{}); err != nil {
		return nil, err
	}
	for i, v := range trained {
		if err := tensors.AssignFlatData(v.MustValue(), data[i]); err != nil { // rank 0's
			return nil, err
		}
	}

	t.graphB, err = mlctx.NewExec(backend, vars.Reuse(), func(vars *mlctx.Context, averages []*graph.Node) {
		for _, v := range trained {
			v.ValueGraph(averages[0].Graph()) // optimizers update the variables that are in their graph
		}
		optimizer.UpdateGraphWithGradients(vars, averages, averages[0].DType())
	})
	return t, err
}

// step trains on this rank's part of a batch and returns its loss.
func (t *trainer) step(ctx context.Context, b batch) (float32, error) {
	outputs, err := t.graphA.Exec(b.images, b.labels)
	if err != nil {
		return 0, err
	}
	loss, gradients := tensors.ToScalar[float32](outputs[0]), outputs[1:]
	for i := len(gradients) - 1; i >= 0; i-- { // the order in which ddp fills its buckets
		if err := tensors.ConstFlatData(gradients[i], func(flat []float32) { copy(ddp.Grad[float32](t.reducer, i), flat) }); err != nil {
			return 0, err
		}
		t.reducer.Ready(i)
		if err := gradients[i].FinalizeAll(); err != nil { // the backend reuses its memory
			return 0, err
		}
	}
	if err := t.reducer.Wait(ctx); err != nil {
		return 0, err
	}
	for i, average := range t.averages {
		if err := tensors.AssignFlatData(average, ddp.Grad[float32](t.reducer, i)); err != nil { // in place
			return 0, err
		}
	}
	_, err = t.graphB.Exec(t.averages)
	return loss, err
}
