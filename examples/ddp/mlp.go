package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/ddp"
)

// float is the type that a model computes with: float32 to train, float64 to prove that
// the training is right.
type float interface{ float32 | float64 }

// mlp is a multilayer perceptron with ReLU between its layers and softmax
// cross-entropy as its loss. A model belongs to one goroutine.
type mlp[F float] struct {
	params []F // of all layers
	layers []layer[F]
}

// layer is fully connected: out = in · weights + bias. in, out and dout hold a batch, one row per sample.
type layer[F float] struct {
	inputs, outputs   int
	params, grads     []F // weights, then bias
	weights, dweights []F // inputs rows of outputs columns
	bias, dbias       []F
	in, out           []F // in is the out of the layer before
	dout              []F // the derivative of the loss by out
}

// newMLP makes a model with sizes[i] units in its i-th layer; the first is the input,
// the last has the classes. The weights are random by the seed, normal with variance
// 2/inputs (He et al., "Delving Deep into Rectifiers", 2015). Its gradients are set by setGradients.
func newMLP[F float](sizes []int, seed uint64) *mlp[F] {
	m := &mlp[F]{params: make([]F, parameters(sizes))}
	random := rand.New(rand.NewPCG(seed, 1))
	rest := m.params
	for l := range len(sizes) - 1 {
		in, out := sizes[l], sizes[l+1]
		w := in * out
		m.layers = append(m.layers, layer[F]{inputs: in, outputs: out, params: rest[:w+out], weights: rest[:w], bias: rest[w : w+out]})
		rest = rest[w+out:]

		scale := math.Sqrt(2 / float64(in))
		for i := range m.layers[l].weights {
			m.layers[l].weights[i] = F(random.NormFloat64() * scale)
		}
	}
	return m
}

// parameters describes the layers to ddp, which makes their gradients.
func (m *mlp[F]) parameters() (all []ddp.Parameter[F]) {
	for i, l := range m.layers {
		all = append(all, ddp.Parameter[F]{Name: fmt.Sprint("layer", i), Data: l.params})
	}
	return all
}

// setGradients makes backward store the gradients of layer i to of(i).
func (m *mlp[F]) setGradients(of func(i int) []F) {
	for i := range m.layers {
		l := &m.layers[i]
		l.grads = of(i)
		l.dweights, l.dbias = l.grads[:len(l.weights)], l.grads[len(l.weights):]
	}
}

// parameters counts the weights and biases of a model.
func parameters(sizes []int) int {
	total := 0
	for l := range len(sizes) - 1 {
		total += (sizes[l] + 1) * sizes[l+1]
	}
	return total
}

// forward runs the model on a batch and returns the logits, a row of classes
// per sample, valid until the next call.
func (m *mlp[F]) forward(images []F) []F {
	in := images
	for i := range m.layers {
		l := &m.layers[i]
		n := len(in) / l.inputs
		l.in, l.out = in, resize(l.out, n*l.outputs)
		for row := range n {
			copy(l.out[row*l.outputs:], l.bias)
		}
		mulAdd(l.out, l.in, l.weights, n, l.inputs, l.outputs, l.inputs, 1)
		if i < len(m.layers)-1 {
			for j, v := range l.out {
				l.out[j] = max(v, 0)
			}
		}
		in = l.out
	}
	return in
}

// loss runs the model on a batch and returns the mean cross-entropy, in nats,
// between its softmax and the labels. It leaves the derivative of that mean by
// the logits, (softmax - one-hot)/samples, for backward to start from.
func (m *mlp[F]) loss(images []F, labels []uint8) F {
	logits := m.forward(images)
	last := &m.layers[len(m.layers)-1]
	last.dout = resize(last.dout, len(logits))

	k, samples := last.outputs, F(len(labels))
	var sum F
	for i, label := range labels {
		row, drow := logits[i*k:(i+1)*k], last.dout[i*k:(i+1)*k]
		top, norm := slices.Max(row), F(0)
		for j, v := range row {
			drow[j] = F(math.Exp(float64(v - top)))
			norm += drow[j]
		}
		sum += F(math.Log(float64(norm))) - (row[label] - top)
		for j := range drow {
			drow[j] /= norm * samples
		}
		drow[label] -= 1 / samples
	}
	return sum / samples
}

// backward computes the gradient of the last loss, from the last layer to the first. It calls
// ready(i) when the gradients of layer i are final.
func (m *mlp[F]) backward(ready func(i int)) {
	for i := len(m.layers) - 1; i >= 0; i-- {
		l := &m.layers[i]
		n := len(l.dout) / l.outputs
		clear(l.grads)
		for row := range n {
			for j, v := range l.dout[row*l.outputs:][:l.outputs] {
				l.dbias[j] += v
			}
		}
		mulAdd(l.dweights, l.in, l.dout, l.inputs, n, l.outputs, 1, l.inputs) // inᵀ · dout
		if ready(i); i == 0 {
			return
		}
		below := &m.layers[i-1]
		below.dout = resize(below.dout, len(below.out))
		clear(below.dout)
		mulAdd(below.dout, l.dout, transpose(l.weights, l.outputs), n, l.outputs, l.inputs, l.outputs, 1)
		for j, v := range below.out {
			if v == 0 { // the ReLU's derivative is 0
				below.dout[j] = 0
			}
		}
	}
}

// correct counts the images that the model classifies correctly.
func (m *mlp[F]) correct(images []F, labels []uint8) int {
	logits := m.forward(images)
	right := 0
	for i, label := range labels {
		best, row := 0, logits[i*classes:(i+1)*classes]
		for class, v := range row {
			if v > row[best] {
				best = class
			}
		}
		if best == int(label) {
			right++
		}
	}
	return right
}

// mulAdd adds the product of a (m×k) and b (k×n, row by row) to c (m×n, row by
// row). Element (i, p) of a is a[i*down+p*right], so that a transposed
// matrix needs no copy. Four rows of b are added to a row of c at a time,
// which quarters the loads and stores of c.
func mulAdd[F float](c, a, b []F, m, k, n, down, right int) {
	for i := range m {
		row := c[i*n:][:n]
		p, at := 0, i*down
		for ; p+4 <= k; p, at = p+4, at+4*right {
			a0, a1, a2, a3 := a[at], a[at+right], a[at+2*right], a[at+3*right]
			b0, b1 := b[p*n:][:len(row)], b[(p+1)*n:][:len(row)]
			b2, b3 := b[(p+2)*n:][:len(row)], b[(p+3)*n:][:len(row)]
			for j := range row {
				row[j] += a0*b0[j] + a1*b1[j] + a2*b2[j] + a3*b3[j]
			}
		}
		for ; p < k; p, at = p+1, at+right {
			a0 := a[at]
			for j, v := range b[p*n:][:len(row)] {
				row[j] += a0 * v
			}
		}
	}
}

// transpose returns the transpose of a matrix with the given columns.
func transpose[F float](a []F, columns int) []F {
	rows := len(a) / columns
	t := make([]F, len(a))
	for i := range rows {
		for j, v := range a[i*columns : (i+1)*columns] {
			t[j*rows+i] = v
		}
	}
	return t
}

// resize returns s with n elements of unspecified content, reallocated only to grow.
func resize[F float](s []F, n int) []F {
	if cap(s) < n {
		return make([]F, n)
	}
	return s[:n]
}
