package main

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"

	"github.com/goccl/goccl/examples/digits"
)

// network takes images, one a row, and returns a value for each class (logits). Nothing in this
// file knows of ranks. It is a perceptron, because the pure-Go backend of this version lacks
// operations that the gradients of convolutions and pools need (Reverse, SelectAndScatterMax,
// Pad).
func network(vars *mlctx.Context, images *graph.Node) *graph.Node {
	hidden := activations.Relu(layers.DenseWithBias(vars.In("hidden_0"), images, 128))
	hidden = activations.Relu(layers.DenseWithBias(vars.In("hidden_1"), hidden, 64))
	return layers.DenseWithBias(vars.In("output"), hidden, digits.Classes)
}

// lossOf is the mean cross-entropy of a batch, in nats.
func lossOf(vars *mlctx.Context, images, labels *graph.Node) *graph.Node {
	logits := network(vars, images)
	return graph.ReduceAllMean(losses.SparseCategoricalCrossEntropyLogits([]*graph.Node{labels}, []*graph.Node{logits}))
}

// correct counts the images that the model classifies correctly.
func correct(vars *mlctx.Context, images, labels *graph.Node) *graph.Node {
	best := graph.ArgMax(network(vars, images), -1, labels.DType())
	return graph.ReduceAllSum(graph.ConvertDType(graph.Equal(best, graph.Squeeze(labels, -1)), dtypes.Int64))
}
