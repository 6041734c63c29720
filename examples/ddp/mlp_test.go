package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// mulAdd equals the definition of a matrix product, for sizes around the
// unrolling and for both layouts of a.
func TestMulAdd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fill := func(n int) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = float64(random.IntN(17) - 8) // small integers: sums are exact in any order
		}
		return s
	}
	for _, m := range []int{0, 1, 2, 5} {
		for _, k := range []int{0, 1, 3, 4, 5, 8, 11} {
			for _, n := range []int{1, 2, 7} {
				a, b, c := fill(m*k), fill(k*n), fill(m*n)
				want := slices.Clone(c)
				for i := range m {
					for j := range n {
						for p := range k {
							want[i*n+j] += a[i*k+p] * b[p*n+j]
						}
					}
				}
				got := slices.Clone(c)
				mulAdd(got, a, b, m, k, n, k, 1)
				require.Equal(t, want, got, "%d×%d · %d×%d", m, k, k, n)

				if m*k > 0 {
					got = slices.Clone(c)
					mulAdd(got, transpose(a, k), b, m, k, n, 1, m)
					require.Equal(t, want, got, "transposed %d×%d · %d×%d", m, k, k, n)
				}
			}
		}
	}
}

// newModel makes a model with gradients of its own.
func newModel[F float](sizes []int, seed uint64) *mlp[F] {
	m := newMLP[F](sizes, seed)
	m.setGradients(func(i int) []F { return make([]F, len(m.layers[i].params)) })
	return m
}

// Every single gradient against the slope of the loss, by central differences.
func TestGradient(t *testing.T) {
	images, labels := noise(6, 5)
	m := newModel[float64]([]int{5, 7, 6, 4}, 3)
	for i := range m.params {
		m.params[i] += 0.01 * float64(i%5) // no bias stays 0
	}
	m.loss(images, labels)
	m.backward(func(int) {})
	var grads []float64
	for _, l := range m.layers {
		grads = append(grads, l.grads...)
	}
	require.Positive(t, slices.Max(grads))

	const h = 1e-5
	for i, p := range m.params {
		m.params[i] = p + h
		above := m.loss(images, labels)
		m.params[i] = p - h
		below := m.loss(images, labels)
		m.params[i] = p
		require.InDelta(t, (above-below)/(2*h), grads[i], 1e-8, "parameter %d", i)
	}
}

// A model with zero parameters is equally uncertain about all ten classes: its loss is
// log 10. The loss does not overflow where exp would.
func TestLoss(t *testing.T) {
	images, labels := noise(3, 8)
	m := newModel[float32]([]int{8, 10}, 1)
	clear(m.params)
	require.InDelta(t, math.Log(10), m.loss(images32(images), labels), 1e-6)

	copy(m.layers[0].bias, []float32{1000, -1000})
	require.InDelta(t, 0, m.loss(images32(images[:8]), []uint8{0}), 1e-6)
	require.InDelta(t, 2000, m.loss(images32(images[:8]), []uint8{1}), 1e-3)
}

// He's rule: the variance of a weight is 2/inputs, biases start at 0.
func TestInit(t *testing.T) {
	m := newModel[float64]([]int{200, 300, 10}, 1)
	require.Len(t, m.params, 200*300+300+300*10+10)
	var sum, squares float64
	for _, w := range m.layers[0].weights {
		sum += w
		squares += w * w
	}
	n := float64(len(m.layers[0].weights))
	require.InDelta(t, 0, sum/n, 0.002)
	require.InEpsilon(t, 2.0/200, squares/n, 0.03)
	require.Equal(t, make([]float64, 300), m.layers[0].bias)
	require.Equal(t, m.params, newModel[float64]([]int{200, 300, 10}, 1).params)
	require.NotEqual(t, m.params, newModel[float64]([]int{200, 300, 10}, 2).params)
}

// torch.optim.SGD(lr=0.5, momentum=0.9), two steps by hand.
func TestSGD(t *testing.T) {
	m := newModel[float64]([]int{1, 1}, 1)
	copy(m.params, []float64{1, 2})
	s := sgd[float64]{rate: 0.5, momentum: 0.9}
	copy(m.layers[0].grads, []float64{1, -2})
	s.step(m)
	require.InDeltaSlice(t, []float64{0.5, 3}, m.params, 1e-12)
	copy(m.layers[0].grads, []float64{1, 0})
	s.step(m)
	require.InDeltaSlice(t, []float64{0.5 - 0.5*1.9, 3 + 0.5*1.8}, m.params, 1e-12)
}

func TestCorrect(t *testing.T) {
	m := newModel[float64]([]int{classes, classes}, 1)
	clear(m.params)
	for i := range classes {
		m.layers[0].weights[i*classes+i] = 1 // the class is where the ink is
	}
	images := make([]float64, 3*classes)
	images[0*classes+4], images[1*classes+9], images[2*classes+2] = 1, 1, 1
	require.Equal(t, 2, m.correct(images, []uint8{4, 9, 3}))
	require.Zero(t, m.correct(nil, nil))
}

// noise returns samples of the given width, and labels 0 to 3.
func noise(samples, width int) ([]float64, []uint8) {
	random := rand.New(rand.NewPCG(7, uint64(width)))
	images, labels := make([]float64, samples*width), make([]uint8, samples)
	for i := range images {
		images[i] = random.NormFloat64()
	}
	for i := range labels {
		labels[i] = uint8(random.IntN(4))
	}
	return images, labels
}

func images32(images []float64) []float32 {
	narrow := make([]float32, len(images))
	for i, v := range images {
		narrow[i] = float32(v)
	}
	return narrow
}
