package ddp

import (
	"math"

	"github.com/goccl/goccl/half"
)

// ClipGradNorm scales all gradients so that their norm, as of one vector, is at most limit
// (clip_grad_norm_ of torch), and returns the norm before. It is called after Wait, when gradients are equal
// on all ranks, and needs no communication; the result is equal on all ranks. If the norm is not finite,
// finite gradients become 0 or NaN, as in torch.
//
// After the end of the Reducer or of its group the error is ccl.ErrClosed, and in a step that has begun
// *ccl.InvalidArgumentError. Then no gradient changes.
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

	for i := range r.params {
		norm += squares(r.gradient(i))
	}
	norm = math.Sqrt(norm)
	if factor := limit / (norm + 1e-6); !(factor >= 1) {
		for i := range r.params {
			scale(r.gradient(i), factor)
		}
	}
	return norm, nil
}

// squares returns the sum of the squares of gradients.
func squares[T Float](gradients []T) (sum float64) {
	switch g := any(gradients).(type) {
	case []float32:
		for _, x := range g {
			sum += float64(x) * float64(x)
		}
	case []float64:
		for _, x := range g {
			sum += x * x
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
