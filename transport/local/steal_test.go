package local

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
)

// The body of a rank that sleeps is run before the rank wakes up. Each body is run once, by the
// rank that claims it, and no rank returns before all bodies were run.
func TestBodiesOfSleepers(t *testing.T) {
	const ranks, calls = 3, 300
	eps := NewWaiting(ranks, Poll)
	var (
		mu     sync.Mutex
		ranBy  [calls + 1][ranks]int // how often each body was run
		stolen int
	)
	errs := make([]error, ranks)
	var workers sync.WaitGroup
	for r := range ranks {
		ep := eps[r].(*endpoint)
		workers.Go(func() {
			defer ep.Close()
			for seq := uint64(1); seq <= calls; seq++ {
				if r == int(seq)%ranks { // arrives last, when all other ranks sleep
					for peer := range ranks {
						for peer != r && !ep.IsAsleep(peer) {
							runtime.Gosched()
						}
					}
				}
				role, err := ep.Enter(&transport.Arrival{Ctx: context.Background(), Seq: seq, Exposed: true, AnyRunner: true})
				if err != nil || role != transport.RunClaimed {
					errs[r] = errors.Join(err, errors.New("the rank may run no bodies"))
					return
				}
				for {
					body, ok := ep.Claim()
					if !ok {
						break
					}
					mu.Lock()
					ranBy[seq][body]++
					if body != r {
						stolen++
					}
					mu.Unlock()
				}
				if errs[r] = ep.Release(false); errs[r] != nil {
					return
				}
				mu.Lock()
				for body, n := range ranBy[seq] {
					if n != 1 {
						t.Errorf("call %d returned on rank %d when the body of rank %d had been run %d times", seq, r, body, n)
					}
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	require.Equal(t, make([]error, ranks), errs)
	require.Positive(t, stolen, "no body was run by another rank")
}

// A sleeper whose body another rank has run has completed the call, even if the group has failed
// by the time it wakes up.
func TestSleeperOfACompleteCall(t *testing.T) {
	eps := NewWaiting(2, Poll)
	sleeper, other := eps[0].(*endpoint), eps[1].(*endpoint)
	e := func() *transport.Arrival {
		return &transport.Arrival{Ctx: context.Background(), Seq: 1, Exposed: true, AnyRunner: true}
	}
	// The state of a rank that sleeps after its arrival.
	require.NoError(t, sleeper.Begin(e()))
	sleeper.seq, sleeper.anyRunner = 1, true
	sleeper.Publish(e())

	role, err := other.Enter(e())
	require.NoError(t, err)
	require.Equal(t, transport.RunClaimed, role)
	require.True(t, other.claim(0), "the body of a rank that sleeps")
	require.False(t, sleeper.claim(0), "its own body, which another rank has claimed")
	rank, ok := other.Claim()
	require.True(t, ok)
	require.Equal(t, 1, rank)
	other.Done(0)
	_, ok = other.Claim()
	require.False(t, ok)
	require.NoError(t, other.Release(false))

	other.Fail(&transport.Failure{Kind: transport.FailureAborted, By: 1, Text: "in the next call"})
	require.ErrorIs(t, sleeper.Admit(), transport.ErrFailed)
	require.True(t, sleeper.Withdraw(), "the call was completed")
}
