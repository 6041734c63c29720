//go:build interleave

package seeds

import (
	"context"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// If Drain returns nil, no Work is left: also none whose message has just come.
func TestDrainLeavesNothing(t *testing.T) {
	for seed := range uint64(300) {
		isLeft := false
		r := interleave.Run(t, interleave.Options{Seed: seed}, func() {
			each(local.NewWaiting(2, local.Poll), func(rank int, ep transport.Endpoint) {
				bg := context.Background()
				c, err := ccl.New(bg, ep)
				if err != nil {
					panic(err)
				}
				x := []int32{1}
				if rank == 0 {
					err = ccl.Send(bg, c, x, 1, 0)
				} else {
					w := ccl.Irecv(bg, c, x, ccl.AnySource, 0)
					if c.Drain(bg) == nil {
						select {
						case <-w.Done():
						default:
							isLeft = true
						}
					}
					err = w.Wait(bg)
				}
				if err != nil {
					panic(err)
				}
				_ = c.Close()
			})
		})
		if r.Finding != nil {
			t.Fatalf("seed %d: %v", seed, r.Finding)
		}
		if isLeft {
			t.Fatalf("seed %d: Drain returned nil, and a receive had not ended", seed)
		}
	}
}
