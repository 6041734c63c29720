// Package loop has what two programs share that train one model by one loop: alone on one rank,
// without goccl, and ranks on many. Their difference is what goccl asks of a program.
package loop

import (
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/examples/nn"
)

// Model reads digits. It is a layer of weights, in rows of ten, and a bias.
type Model struct{ Params, Grads [2][]float32 }

// NewModel returns a model of zeros.
func NewModel() *Model {
	m := new(Model)
	for i, n := range []int{digits.Pixels * digits.Classes, digits.Classes} {
		m.Params[i], m.Grads[i] = make([]float32, n), make([]float32, n)
	}
	return m
}

// forward returns the logits of images, a row for each.
func (m *Model) forward(set digits.Set[float32]) (logits []float32) {
	for range set.Len() {
		logits = append(logits, m.Params[1]...)
	}
	nn.MulAdd(logits, set.Images, m.Params[0], set.Len(), digits.Pixels, digits.Classes, digits.Pixels, 1)
	return logits
}

// Evaluate returns three sums: of the cross-entropies, of the images that are read correctly, and
// of all images.
func (m *Model) Evaluate(set digits.Set[float32]) []float64 {
	loss, correct := nn.CrossEntropy(m.forward(set), set.Labels, set.Len())
	return []float64{loss, float64(correct), float64(set.Len())}
}

// Backward adds to the gradients those of a part of a batch of some samples.
func (m *Model) Backward(part digits.Set[float32], samples int) {
	logits := m.forward(part)
	nn.CrossEntropy(logits, part.Labels, samples) // leaves the gradients by the logits in them
	nn.MulAdd(m.Grads[0], part.Images, logits, digits.Pixels, part.Len(), digits.Classes, 1, digits.Pixels)
	for i, d := range logits {
		m.Grads[1][i%digits.Classes] += d
	}
}
