package ddp

import (
	"context"
	"fmt"
	"hash/crc32"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
)

// verifySteps is how many steps lie between two comparisons of parameters, with debug.
const verifySteps = 100

// castagnoli is the table of the checksums of tensors.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Verify compares the parameters of all ranks. All ranks call it, between two steps and not within
// Join. It reads all parameters once, and sends a checksum.
//
// If they differ in a bit, the error of all ranks is *ccl.MismatchError; it names the first
// parameter that does. The Reducer can be used as before. After the end of the Reducer or of its
// group the error is ccl.ErrClosed.
//
// Where debug is set (GOCCL_DEBUG, or defaults.debug in ccl.yaml) on a rank, each hundredth step
// does so in Wait, unless the Reducer has hooks, whose ranks may differ by design.
func (r *Reducer) Verify(ctx context.Context) error {
	if err := r.beginCheckpoint("Verify"); err != nil {
		return err
	}
	defer r.comm.Release()
	return r.verify(ctx)
}

// verify is Verify of a Reducer whose memory is retained.
func (r *Reducer) verify(ctx context.Context) error {
	err := r.compareParameters(ctx)
	if err == nil {
		return nil
	}
	if difference(err) != nil {
		err = fmt.Errorf("%w%s", err, driftedHint)
	}
	return inCall(err)
}

// driftedHint says where parameters that differ often come from.
const driftedHint = "; a rank has changed one alone, or has allocated a gradient anew, which it then passes to ReadyGrad"

// verifiesStep reports whether Wait compares the parameters in this step.
func (r *Reducer) verifiesStep() bool {
	return r.isDebug && r.number%verifySteps == 0 && !r.join.isOn && !r.opts.Hooks.isSet()
}

// compareParameters returns an error that has a difference if parameters of ranks differ.
func (r *Reducer) compareParameters(ctx context.Context) error {
	var facts []agree.Fact
	for i, p := range r.params {
		sum := crc32.New(castagnoli)
		if err := p.elements.encode(sum); err != nil {
			return err
		}
		facts = append(facts, agree.Fact{Name: fmt.Sprint("parameter ", i), Value: fmt.Sprintf("%q, CRC %08x", p.name, sum.Sum32())})
	}
	return agree.Compare(ctx, r.comm, nil, facts, ccl.WithLabel("checksums of parameters"), ccl.WithKey("ddp checksums of parameters"))
}
