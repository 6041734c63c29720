package shm

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// haltingRest halts a rank where it wakes another one: after it has published its line.
type haltingRest struct {
	groupsync.Rest
	asleep, proceed chan struct{} // rank 0 sleeps; rank 1 may go on
	slept, halted   interleave.Bool
	isArmed         bool
}

func (r *haltingRest) Sleep(sleeper int, ctx context.Context) bool {
	if r.isArmed && sleeper == 0 && r.slept.CompareAndSwap(false, true) {
		close(r.asleep)
	}
	return r.Rest.Sleep(sleeper, ctx)
}

func (r *haltingRest) Wake(sleeper int) {
	r.Rest.Wake(sleeper)
	if r.isArmed && sleeper == 0 && r.halted.CompareAndSwap(false, true) {
		<-r.proceed
	}
}

// An Eager call that shows all payloads succeeds on all ranks or on none, also in a group with a region: rank 0 fails
// the group, or leaves it, after its call, while rank 1 has published its line and has not looked at the others' yet.
func TestEagerCallAgrees(t *testing.T) {
	const length = 100
	for name, inRegion := range map[string]bool{"private buffers": false, "buffers in a region, of ranks that sleep": true} {
		for event, after := range map[string]func(ep *endpoint){
			"failure": func(ep *endpoint) {
				ep.Fail(&transport.Failure{Kind: transport.FailureAborted, Text: "after the call"})
			},
			"departure": func(ep *endpoint) { _ = ep.Close() },
		} {
			t.Run(name+"/"+event, func(t *testing.T) {
				g := SmallestGeometry(2)
				rest := &haltingRest{Rest: groupsync.NewGoroutines(2), asleep: make(chan struct{}), proceed: make(chan struct{})}
				n := newNode(heapArena(g.layout(2).total), g, 2, rest)
				alloc := heapRegions(2)
				eps := []*endpoint{n.endpoint(0, alloc), n.endpoint(1, alloc)}
				buffers := [2][]byte{make([]byte, length), make([]byte, length)}
				both(t, func(rank int) error {
					ep := eps[rank]
					if _, err := ep.Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1, Exposed: true}); err != nil {
						return err
					}
					region, err := ep.Region(2 * length)
					if inRegion && err == nil {
						buffers[rank] = region.Bytes()[rank*length:][:length]
					}
					return errors.Join(err, ep.Complete())
				})
				rest.isArmed = true
				both(t, func(rank int) error {
					ep, b := eps[rank], buffers[rank]
					if rank == 1 {
						<-rest.asleep
					}
					_, err := ep.Enter(&transport.Arrival{Ctx: t.Context(), Seq: 2, Exposed: true, Eager: true, Payload: b, Send: b, Recv: b})
					if rank == 0 {
						if err == nil {
							err = ep.Complete()
						}
						rest.halted.Store(true) // a wake of its own halts nobody: it may have gone on without being woken, by an older token
						after(ep)
						close(rest.proceed)
						return err
					}
					return errors.Join(err, ep.Complete())
				})
			})
		}
	}
}

// both runs f for two ranks at once, and fails the test if it fails on one of them.
func both(t *testing.T, f func(rank int) error) {
	t.Helper()
	var (
		errs [2]error
		all  sync.WaitGroup
	)
	for rank := range errs {
		all.Go(func() { errs[rank] = f(rank) })
	}
	all.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
}
