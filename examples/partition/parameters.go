package main

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/goccl/goccl/examples/nn"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// parameters are the parameters of a layer. They live on one worker, the owner; the workers that
// compute with them get copies in each step. Copying is a broadcast, and so the gradient of the
// parameters is its adjoint: the sum of the gradients of all copies.
//
// Row o of the matrix has the weights of output o, and then its bias.
type parameters[F nn.Float] struct {
	broadcast        *primitive.Broadcast[F]
	values, grads    *primitive.Tensor[F] // on the owner; nil or without elements on others
	copies, dcopies  *primitive.Tensor[F] // on every worker
	outputs, weights int                  // rows, and weights in each of them
	velocity         []F
}

// newParameters makes parameters that belong to owner, a partition of one worker, for all workers
// of users. Biases are 0. Weights are normal with the variance 2/weights (He et al., "Delving Deep
// into Rectifiers", 2015); the same seed makes the same ones on any partition.
func newParameters[F nn.Float](ctx context.Context, owner, users *partition.Partition, outputs, weights int, seed uint64,
) (*parameters[F], error) {
	broadcast, err := primitive.NewBroadcast[F](ctx, owner, users)
	if err != nil {
		return nil, err
	}

	p := &parameters[F]{
		broadcast: broadcast, outputs: outputs, weights: weights,
		dcopies: primitive.NewTensor[F](outputs, weights+1),
	}

	if owner.Active() {
		p.values = primitive.NewTensor[F](outputs, weights+1)
		p.velocity = make([]F, p.values.Len())
		random := rand.New(rand.NewPCG(seed, 0))
		scale := math.Sqrt(2 / float64(weights))
		for i := range p.values.Data() {
			if i%(weights+1) < weights {
				p.values.Data()[i] = F(random.NormFloat64() * scale)
			}
		}
	}
	return p, nil
}

// fetch gives all workers copies of the parameters.
func (p *parameters[F]) fetch(ctx context.Context) (err error) {
	p.copies, err = p.broadcast.Forward(ctx, p.copies, p.values)
	return err
}

// collect gives the owner the sum of the gradients of all copies.
func (p *parameters[F]) collect(ctx context.Context) (err error) {
	p.grads, err = p.broadcast.Adjoint(ctx, p.grads, p.dcopies)
	return err
}

// row returns the weights of an output and its bias, in the copies of this worker.
func (p *parameters[F]) row(output int) (weights []F, bias F) {
	row := p.copies.Data()[output*(p.weights+1):][:p.weights+1]
	return row[:p.weights], row[p.weights]
}

// drow returns the places of their gradients.
func (p *parameters[F]) drow(output int) (weights []F, bias *F) {
	row := p.dcopies.Data()[output*(p.weights+1):][:p.weights+1]
	return row[:p.weights], &row[p.weights]
}

// step moves the parameters against their gradients, on the owner.
func (p *parameters[F]) step(rate, momentum F) {
	if p.values != nil {
		nn.SGD(p.values.Data(), p.velocity, p.grads.Data(), rate, momentum)
	}
}

func (p *parameters[F]) close() error { return p.broadcast.Close() }
