package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/examples/digits"
)

// Every single gradient against the slope of the loss, by central differences.
func TestGradient(t *testing.T) {
	batch := noise(6, 5)
	m := newMLP[float64]([]int{5, 7, 6, 4}, 3)
	for _, l := range m {
		for i := range l.params {
			l.params[i] += 0.01 * float64(i%5) // no bias stays 0
		}
	}
	m.loss(batch)
	m.backward(func(int) {})
	const h = 1e-5
	for number, l := range m {
		grads := slices.Clone(l.grads)
		require.Positive(t, slices.Max(grads))
		for i, p := range l.params {
			l.params[i] = p + h
			above, _ := m.loss(batch)
			l.params[i] = p - h
			below, _ := m.loss(batch)
			l.params[i] = p
			require.InDelta(t, (above-below)/(2*h), grads[i], 1e-8, "layer %d, parameter %d", number, i)
		}
	}
}

// The layers are ready from the last to the first, each with its final gradient.
func TestReady(t *testing.T) {
	m := newMLP[float64]([]int{5, 7, 6, 4}, 3)
	m.loss(noise(6, 5))
	var order []int
	var grads [][]float64
	m.backward(func(i int) {
		order = append(order, i)
		grads = append(grads, slices.Clone(m[i].grads))
	})
	require.Equal(t, []int{2, 1, 0}, order)
	for i, l := range m {
		require.Equal(t, grads[2-i], l.grads)
		require.Len(t, l.params, len(l.grads))
	}
	require.Len(t, m.parameters(), 3)
}

// He's rule: the variance of a weight is 2/inputs, biases start at 0.
func TestInit(t *testing.T) {
	m := newMLP[float64]([]int{200, 300, 10}, 1)
	require.Len(t, m, 2)
	require.Len(t, m[0].params, 200*300+300)
	require.Len(t, m[1].params, 300*10+10)
	var sum, squares float64
	for _, w := range m[0].weights {
		sum += w
		squares += w * w
	}
	n := float64(len(m[0].weights))
	require.InDelta(t, 0, sum/n, 0.002)
	require.InEpsilon(t, 2.0/200, squares/n, 0.03)
	require.Equal(t, make([]float64, 300), m[0].bias)
	require.Equal(t, m, newMLP[float64]([]int{200, 300, 10}, 1))
	require.NotEqual(t, m, newMLP[float64]([]int{200, 300, 10}, 2))
}

// The loss is the mean over the batch; what is classified correctly is counted.
func TestLoss(t *testing.T) {
	m := newMLP[float64]([]int{digits.Classes, digits.Classes}, 1)
	clear(m[0].params)
	batch := digits.Set[float64]{Images: make([]float64, 3*digits.Classes), Labels: []uint8{4, 9, 3}}
	loss, _ := m.loss(batch)
	require.InDelta(t, math.Log(digits.Classes), loss, 1e-12)

	for i := range digits.Classes {
		m[0].weights[i*digits.Classes+i] = 1 // the class is where the ink is
	}
	for row, class := range []int{4, 9, 2} {
		batch.Images[row*digits.Classes+class] = 1
	}
	_, correct := m.loss(batch)
	require.Equal(t, 2, correct)
	_, correct = m.loss(digits.Set[float64]{})
	require.Zero(t, correct)
}

// noise returns samples of the given width, and labels 0 to 3.
func noise(samples, width int) digits.Set[float64] {
	random := rand.New(rand.NewPCG(7, uint64(width)))
	s := digits.Set[float64]{Images: make([]float64, samples*width), Labels: make([]uint8, samples)}
	for i := range s.Images {
		s.Images[i] = random.NormFloat64()
	}
	for i := range s.Labels {
		s.Labels[i] = uint8(random.IntN(4))
	}
	return s
}
