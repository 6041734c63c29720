package ddp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
)

// An error of Hook.Finish on one rank fails the same step on all ranks, also in the last bucket of a step after which no
// call follows, with one rank, and within Join. The errors of the others have its text and its rank.
func TestFailedFinish(t *testing.T) {
	everywhere(t, "failed finish", 1, func(t *testing.T, all []outcome) {
		for rank, o := range all {
			require.Empty(t, o.Err, "rank %d", rank)
			require.Len(t, o.Texts, 6)
			for _, text := range o.Texts {
				require.Contains(t, text, errHook.Error(), "rank %d", rank)
				if last := len(all) - 1; rank < last {
					require.Contains(t, text, fmt.Sprintf("aborted by rank %d", last), "rank %d", rank)
				} else {
					require.True(t, strings.HasPrefix(text, "ddp: bucket 2 (a): "+errHook.Error()), text)
				}
			}
		}
	})
}

func failedFinish(rank, ranks int, o *outcome) error {
	for _, views := range []bool{false, true} {
		for _, opts := range []ddp.Options{{}, {FindUnused: true}} {
			for _, joined := range []bool{false, true} {
				if opts.FindUnused && joined {
					continue
				}
				opts.Hooks.Float64 = &failsIn{rank: rank == ranks-1, bucket: 2, step: 3}
				if err := failStep(opts, views, joined, o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// failStep makes steps of which the third fails.
func failStep(opts ddp.Options, views, joined bool, o *outcome) error {
	r, g, err := three(opts, views)
	if err != nil {
		return err
	}
	train := func() error {
		for step := range 4 {
			for i := range slices.Backward(g) {
				g[i][0] = 1
				r.Ready(i)
			}
			if err := r.Wait(bg); err != nil {
				o.Texts = append(o.Texts, err.Error())
				return equal("failed step", step, 2)
			}
		}
		return errors.New("no step has failed")
	}
	if !joined {
		return errors.Join(train(), r.Close())
	}
	_ = r.Join(bg, train) // it fails, since the step of all has
	return r.Close()
}

// failsIn is a hook whose Finish fails in a bucket of a step.
type failsIn struct {
	failing
	rank         bool // this one fails
	bucket, step int  // from 1
	steps        int
}

func (h *failsIn) Finish(b *ddp.Bucket[float64]) error {
	if b.Index == h.bucket {
		h.steps++
	}
	if h.rank && b.Index == h.bucket && h.steps == h.step {
		return errHook
	}
	return nil
}
