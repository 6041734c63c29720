package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/examples/nn"
)

// mlp is a multilayer perceptron with ReLU between its layers and softmax cross-entropy as its
// loss.
type mlp[F nn.Float] []*layer[F]

// layer is fully connected: out = in · weights + bias. in, out and dout hold a batch, one row per
// sample.
type layer[F nn.Float] struct {
	inputs, outputs         int
	params, grads, velocity []F // weights, then bias
	weights, dweights       []F // inputs rows of outputs columns
	bias, dbias             []F
	in, out                 []F // in is the out of the layer before
	dout                    []F // the derivative of the loss by out
}

// newMLP makes a model with sizes[i] units in its i-th layer; the first is the input, the last has
// the classes. The weights are random by the seed, normal with variance 2/inputs (He et al.,
// "Delving Deep into Rectifiers", 2015).
func newMLP[F nn.Float](sizes []int, seed uint64) (m mlp[F]) {
	random := rand.New(rand.NewPCG(seed, 1))
	for i, outputs := range sizes[1:] {
		inputs := sizes[i]
		w, n := inputs*outputs, (inputs+1)*outputs
		l := &layer[F]{inputs: inputs, outputs: outputs, params: make([]F, n), grads: make([]F, n), velocity: make([]F, n)}
		l.weights, l.bias = l.params[:w], l.params[w:]
		l.dweights, l.dbias = l.grads[:w], l.grads[w:]
		for k := range l.weights {
			l.weights[k] = F(random.NormFloat64() * math.Sqrt(2/float64(inputs)))
		}
		m = append(m, l)
	}

	return m
}

// parameters describes the layers to ddp.
func (m mlp[F]) parameters() (all []ddp.Parameter) {
	for i, l := range m {
		all = append(all, ddp.Param(fmt.Sprint("layer", i), l.params, l.grads))
	}
	return all
}

// velocities are what a checkpoint has beside the parameters.
func (m mlp[F]) velocities() (all []ddp.Tensor) {
	for i, l := range m {
		all = append(all, ddp.Buffer(fmt.Sprint("layer", i, ".velocity"), l.velocity))
	}
	return all
}

// loss runs the model on a batch. It returns the mean cross-entropy, in nats, between its softmax
// and the labels, and how many samples it classifies correctly. It leaves the gradient of the
// loss, for backward to start from.
func (m mlp[F]) loss(batch digits.Set[F]) (loss float64, correct int) {
	values := batch.Images
	for i, l := range m {
		l.in, l.out = values, make([]F, batch.Len()*l.outputs)
		for row := range slices.Chunk(l.out, l.outputs) {
			copy(row, l.bias)
		}
		nn.MulAdd(l.out, l.in, l.weights, batch.Len(), l.inputs, l.outputs, l.inputs, 1)
		if i < len(m)-1 {
			nn.ReLU(l.out)
		}
		values = l.out
	}

	m[len(m)-1].dout = values
	sum, correct := nn.CrossEntropy(values, batch.Labels, batch.Len())
	return sum / float64(batch.Len()), correct
}

// backward computes the gradient of the last loss, from the last layer to the first. It calls
// ready(i) when the gradients of layer i are final.
func (m mlp[F]) backward(ready func(i int)) {
	for i, l := range slices.Backward(m) {
		n := len(l.dout) / l.outputs
		clear(l.grads)
		for row := range slices.Chunk(l.dout, l.outputs) {
			for j, v := range row {
				l.dbias[j] += v
			}
		}
		nn.MulAdd(l.dweights, l.in, l.dout, l.inputs, n, l.outputs, 1, l.inputs) // inᵀ · dout
		if ready(i); i == 0 {
			return
		}
		below := m[i-1]
		below.dout = make([]F, len(below.out))
		nn.MulAdd(below.dout, l.dout, nn.Transpose(l.weights, l.outputs), n, l.outputs, l.inputs, l.outputs, 1)
		nn.ReLUAdjoint(below.dout, below.out)
	}
}

// step moves the parameters against the gradients.
func (m mlp[F]) step(rate, momentum F) {
	for _, l := range m {
		nn.SGD(l.params, l.velocity, l.grads, rate, momentum)
	}
}

// checksum returns the SHA-256 of the bits of all parameters.
func (m mlp[F]) checksum() string {
	hash := sha256.New()
	for _, l := range m {
		_ = binary.Write(hash, binary.LittleEndian, l.params) // a hash takes everything
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}
