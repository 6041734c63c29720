package ddp

import (
	"context"
	"fmt"
	"hash/crc32"

	"github.com/goccl/goccl/ccl"
)

// verifySteps is how many steps lie between two comparisons of parameters, with debug.
const verifySteps = 100

// Verify compares the parameters of all ranks. All ranks call it, between two steps and not within
// Join. It reads all parameters once, and sends four bytes of each.
//
// If they differ in a bit, the error of all ranks is *ccl.MismatchError; it names the first
// parameter that does. The Reducer can be used as before. After the end of the Reducer or of its
// group the error is ccl.ErrClosed.
//
// Where debug is set (GOCCL_DEBUG, or defaults.debug in ccl.yaml) on a rank, each hundredth step
// does so in Wait, unless the Reducer has a Hook, whose ranks may differ by design.
func (r *Reducer[T]) Verify(ctx context.Context) error {
	if err := r.beginCheckpoint("Verify"); err != nil {
		return err
	}
	defer r.comm.Release()
	return r.verify(ctx)
}

// verify is Verify of a Reducer whose memory is retained.
func (r *Reducer[T]) verify(ctx context.Context) error {
	differ, err := r.compareParameters(ctx)
	if differ != nil {
		err = differ
	}
	if err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	return nil
}

// verifiesStep reports whether Wait compares the parameters in this step.
func (r *Reducer[T]) verifiesStep() bool {
	return r.isDebug && r.number%verifySteps == 0 && !r.join.isOn && r.opts.Hook == nil
}

// compareParameters returns in what the parameters of ranks differ, the same on all of them.
func (r *Reducer[T]) compareParameters(ctx context.Context) (differ, err error) {
	n := len(r.params)
	sums := make([]uint32, n)
	for i, p := range r.params {
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		if err := encode(sum, p.Data); err != nil {
			return nil, err
		}
		sums[i] = sum.Sum32()
	}
	all := make([]uint32, n*r.comm.Size())
	if err := ccl.AllGather(ctx, r.comm, sums, all, ccl.WithLabel("checksums of parameters"), ccl.WithKey("ddp checksums of parameters")); err != nil {
		return nil, err
	}

	for i, p := range r.params {
		m := &ccl.MismatchError{Field: fmt.Sprintf("parameter %d", i)}
		for rank := range r.comm.Size() {
			m.Add(rank, fmt.Sprintf("%q, CRC %08x", p.Name, all[rank*n+i]))
		}
		if len(m.Values) > 1 {
			return fmt.Errorf("%w; a gradient that is allocated anew is not the one that New got: pass it to ReadyGrad", m), nil
		}
	}
	return nil, nil
}
