package ddp

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// ClipGradNorm scales all gradients so that their norm, as of one vector, is at most limit
// (clip_grad_norm_ of torch), and returns the norm before. The result is equal on all ranks.
//
// It is called after Wait, when gradients are equal on all ranks, and needs no communication. With
// Options.Shard all ranks call it, before Step and with the same limit (another one is a
// *ccl.MismatchError), and sum up what each has; the last bits of the norm depend on the number of
// ranks then.
//
// If a gradient is not finite, finite ones become 0 or NaN, as in torch.
//
// After the end of the Reducer or of its group the error is ccl.ErrClosed. Otherwise it is
// *ccl.InvalidArgumentError, and no gradient changes:
//   - in a step that has begun
//   - within NoSync, and until the step that reduces what it has accumulated
//   - with Options.Shard, after Step
//   - if limit is negative or NaN
func (r *Reducer) ClipGradNorm(limit float64) (norm float64, err error) {
	if err := r.retain("ClipGradNorm"); err != nil {
		return 0, err
	}
	defer r.comm.Release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkReduced("ClipGradNorm"); err != nil {
		return 0, err
	}

	if slices.ContainsFunc(r.buckets, func(b bucket) bool { return b.isSpent }) {
		return 0, errSpent("ClipGradNorm")
	}
	if !(limit >= 0) {
		err := invalid("ddp.ClipGradNorm", "the limit is %v, and must be at least 0", limit)
		if r.opts.Shard { // others may have another limit, and make the call
			err = r.comm.Reject(context.Background(), err)
		}
		return 0, err
	}

	unit, units, err := r.gradientNorm(limit)
	if err != nil {
		return 0, inCall(err)
	}
	norm = unit * units
	if unit == 1 || norm < 1 {
		if factor := limit / (norm + 1e-6); !(factor >= 1) {
			r.scaleGradients(factor, 1)
		}
	} else if limit/unit < units { // where 1e-6 is nothing, and limit / norm may be 0
		r.scaleGradients(1/unit, limit/units)
	}
	return norm, nil
}

// gradientNorm returns the norm of all gradients, unit times units. Units are finite if the
// gradients are. With Options.Shard the limit is that of all ranks.
func (r *Reducer) gradientNorm(limit float64) (unit, units float64, err error) {
	sum, err := r.sumSquares(1, limit)
	if err != nil || sum > 1e-290 && !math.IsInf(sum, 1) || math.IsNaN(sum) {
		return 1, math.Sqrt(sum), err
	}

	// Squares of float64 have overflowed or vanished, or there is nothing else than zeros.
	largest := 0.0
	for _, p := range r.params {
		largest = max(largest, p.gradient.largest())
	}
	largest, err = r.reduceParts(largest, ccl.Max, limit)
	if err != nil || largest == 0 || math.IsInf(largest, 1) {
		return 1, math.Sqrt(sum), err
	}
	_, exponent := math.Frexp(largest)
	unit = math.Ldexp(1, max(exponent-1, -1000)) // a power of two, so that divisions are exact
	sum, err = r.sumSquares(1/unit, limit)
	return unit, math.Sqrt(sum), err
}

func (r *Reducer) sumSquares(factor, limit float64) (sum float64, err error) {
	for _, p := range r.params {
		sum += p.gradient.sumSquares(factor)
	}
	return r.reduceParts(sum, ccl.Sum, limit)
}

// reduceParts reduces what ranks have found out about their parts of the gradients.
func (r *Reducer) reduceParts(found float64, op ccl.Op, limit float64) (float64, error) {
	if !r.opts.Shard {
		return found, nil
	}
	all := []float64{found}
	err := ccl.AllReduce(context.Background(), r.comm, all, all, op, ccl.WithLabel("norm"), ccl.WithKey(fmt.Sprint("ddp norm, limit ", limit)))
	return all[0], err
}

func (r *Reducer) scaleGradients(first, second float64) {
	for _, p := range r.params {
		p.gradient.scale(first, second)
	}
}
