package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// MulAdd equals the definition of a matrix product, for sizes around the
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
				MulAdd(got, a, b, m, k, n, k, 1)
				require.Equal(t, want, got, "%d×%d · %d×%d", m, k, k, n)

				if m*k > 0 {
					got = slices.Clone(c)
					MulAdd(got, Transpose(a, k), b, m, k, n, 1, m)
					require.Equal(t, want, got, "transposed %d×%d · %d×%d", m, k, k, n)
				}
			}
		}
	}
}

// The gradients of the loss, by central differences, through ReLU as well.
func TestGradients(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	labels := []uint8{2, 0, 1, 2}
	x := make([]float64, 3*len(labels))
	for i := range x {
		x[i] = random.NormFloat64()
	}
	loss := func(x []float64) (float64, []float64, []float64) {
		y := slices.Clone(x)
		ReLU(y)
		dy := slices.Clone(y)
		sum, _ := CrossEntropy(dy, labels, 1)
		return sum, y, dy
	}
	_, y, dx := loss(x)
	require.Contains(t, y, 0.0)
	require.GreaterOrEqual(t, slices.Min(y), 0.0)
	ReLUAdjoint(dx, y)
	const h = 1e-5
	for i, v := range x {
		x[i] = v + h
		above, _, _ := loss(x)
		x[i] = v - h
		below, _, _ := loss(x)
		x[i] = v
		require.InDelta(t, (above-below)/(2*h), dx[i], 1e-8, "element %d", i)
	}
}

// The loss of equal logits is log classes. It does not overflow where exp would. The gradient is divided by batch.
func TestCrossEntropy(t *testing.T) {
	logits := make([]float32, 20)
	loss, correct := CrossEntropy(logits, []uint8{3, 9}, 2)
	require.InDelta(t, 2*math.Log(10), loss, 1e-6)
	require.Equal(t, 2, correct, "a tie with the label")
	require.InDelta(t, (0.1-1)/2, logits[3], 1e-6)
	require.InDelta(t, 0.1/2, logits[4], 1e-6)

	loss, correct = CrossEntropy([]float32{1000, -1000, 0, -1000, 1000, 0}, []uint8{0, 0}, 1)
	require.InDelta(t, 2000, loss, 1e-3)
	require.Equal(t, 1, correct)

	loss, correct = CrossEntropy[float32](nil, nil, 1)
	require.Zero(t, loss)
	require.Zero(t, correct)
}

// torch.optim.SGD(lr=0.5, momentum=0.9), two steps by hand.
func TestSGD(t *testing.T) {
	params, velocity := []float64{1, 2}, []float64{0, 0}
	SGD(params, velocity, []float64{1, -2}, 0.5, 0.9)
	require.InDeltaSlice(t, []float64{0.5, 3}, params, 1e-12)
	SGD(params, velocity, []float64{1, 0}, 0.5, 0.9)
	require.InDeltaSlice(t, []float64{0.5 - 0.5*1.9, 3 + 0.5*1.8}, params, 1e-12)
}
