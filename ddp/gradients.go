package ddp

import (
	"math"
	"slices"

	"github.com/goccl/goccl/half"
)

// ClipGradNorm scales all gradients so that their norm, as of one vector, is at most limit
// (clip_grad_norm_ of torch), and returns the norm before. The result is equal on all ranks.
//
// It is called after Wait, when gradients are equal on all ranks, and needs no communication.
// If a gradient is not finite, finite ones become 0 or NaN, as in torch.
//
// After the end of the Reducer or of its group the error is ccl.ErrClosed. Otherwise it is
// *ccl.InvalidArgumentError, and no gradient changes:
//   - in a step that has begun
//   - within NoSync, and until the step that reduces what it has accumulated
//   - if limit is negative or NaN
func (r *Reducer[T]) ClipGradNorm(limit float64) (norm float64, err error) {
	if err := r.retain("ClipGradNorm"); err != nil {
		return 0, err
	}
	defer r.comm.Release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkBetweenSteps("ClipGradNorm"); err != nil {
		return 0, err
	}
	if r.isQuiet || slices.Contains(r.accumulated, true) {
		return 0, invalid("ddp.ClipGradNorm", "gradients that NoSync has accumulated are those of this rank alone: call Wait outside NoSync first")
	}
	if !(limit >= 0) {
		return 0, invalid("ddp.ClipGradNorm", "the limit is %v, and must be at least 0", limit)
	}

	unit, units := r.gradientNorm()
	norm = unit * units
	if unit == 1 || norm < 1 {
		if factor := limit / (norm + 1e-6); !(factor >= 1) {
			r.scaleGradients(factor)
		}
	} else if limit/unit < units { // where 1e-6 is nothing, and limit / norm may be 0
		r.scaleGradients(1 / unit)
		r.scaleGradients(limit / units)
	}
	return norm, nil
}

// gradientNorm returns the norm of all gradients, unit times units. Units are finite if the
// gradients are.
func (r *Reducer[T]) gradientNorm() (unit, units float64) {
	sum := r.sumSquares(1)
	if sum > 1e-290 && !math.IsInf(sum, 1) {
		return 1, math.Sqrt(sum)
	}

	// Squares of float64 have overflowed or vanished, or there is nothing else than zeros.
	largest := 0.0
	for i := range r.params {
		doubles, _ := any(r.gradient(i)).([]float64)
		for _, x := range doubles {
			largest = max(largest, math.Abs(x))
		}
	}
	if largest == 0 || math.IsInf(largest, 1) || math.IsNaN(largest) {
		return 1, math.Sqrt(sum)
	}
	_, exponent := math.Frexp(largest)
	unit = math.Ldexp(1, max(exponent-1, -1000)) // a power of two, so that divisions are exact
	return unit, math.Sqrt(r.sumSquares(1 / unit))
}

func (r *Reducer[T]) sumSquares(factor float64) (sum float64) {
	for i := range r.params {
		sum += squares(r.gradient(i), factor)
	}
	return sum
}

func (r *Reducer[T]) scaleGradients(factor float64) {
	for i := range r.params {
		scale(r.gradient(i), factor)
	}
}

// squares returns the sum of the squares of gradients; those of float64 are multiplied by a factor
// first.
func squares[T Float](gradients []T, factor float64) (sum float64) {
	switch g := any(gradients).(type) {
	case []float32:
		for _, x := range g {
			sum += float64(x) * float64(x)
		}
	case []float64:
		for _, x := range g {
			sum += (x * factor) * (x * factor)
		}
	case []half.Float16:
		for _, x := range g {
			sum += float64(x.Float32()) * float64(x.Float32())
		}
	case []half.BFloat16:
		for _, x := range g {
			sum += float64(x.Float32()) * float64(x.Float32())
		}
	}
	return sum
}

// scale multiplies gradients by a factor.
func scale[T Float](gradients []T, factor float64) {
	switch g := any(gradients).(type) {
	case []float32:
		for i := range g {
			g[i] = float32(float64(g[i]) * factor)
		}
	case []float64:
		for i := range g {
			g[i] *= factor
		}
	case []half.Float16:
		for i := range g {
			g[i] = half.NewFloat16(float32(float64(g[i].Float32()) * factor))
		}
	case []half.BFloat16:
		for i := range g {
			g[i] = half.NewBFloat16(float32(float64(g[i].Float32()) * factor))
		}
	}
}
