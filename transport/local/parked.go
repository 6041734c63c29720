package local

import (
	"sync/atomic"

	"github.com/goccl/goccl/transport"
)

// lastArriver is the state of parked groups: each word is written by several
// ranks and has a pair of cache lines of its own. Counters that belong to one
// call are reset by its last arriver: by then all ranks have left the call
// before.
type lastArriver struct {
	arrived   paddedWord // calls entered or refused, over all ranks
	completed paddedWord // the last call that the last arriver is through with
	differing paddedWord // the last call in which ranks entered different calls
	runners   paddedWord // ranks that run bodies right now
	open      paddedWord // the last call that wants helpers
	claims    paddedWord // bodies handed out, of the current call
	finished  paddedWord // bodies that ended, of the current call
}

type paddedWord struct {
	atomic.Int64
	_ [120]byte
}

// helpBytes is the work that each further helper is woken for. The first is always
// woken: all others have to be in the end, and with one that is early two cores wake
// them. Of a call without helpers that took 4 B from 1.85 to 1.43 us and 64 KiB from
// 4.0 to 3.4 (4 ranks), 4 B from 4.4 to 2.8 us (8 ranks, on 2 cores).
const helpBytes = 256 << 10

// arrive enters a call of a parked group. Rule countsRefused.
func (ep *endpoint) arrive(e *transport.Arrival) (transport.Role, error) {
	l := &ep.group.last
	refused := int64(ep.Refused())
	ep.Publish(e)
	if l.arrived.Add(1+refused) == ep.seq*int64(ep.Size()) {
		return ep.lead(e)
	}
	return ep.follow(e)
}

// lead is what the last arriver does: all others sleep, or are about to. Rules
// runnerLooksAtFail, resetThenOpen and completeThenWake.
func (ep *endpoint) lead(e *transport.Arrival) (transport.Role, error) {
	l := &ep.group.last
	// A rank that gives up sets the failure and then waits until runners is
	// 0; so a runner counts itself first and then looks.
	l.runners.Add(1)
	if err := ep.Compare(); err != nil {
		l.differing.Store(ep.seq)
		ep.endRun()
		ep.group.WakeOthers(ep.Rank())
		return transport.RunOwn, err
	}
	if err := ep.Admit(); err != nil {
		ep.endRun()
		return transport.RunOwn, err
	}
	if !e.AnyRunner {
		l.completed.Store(ep.seq)
		ep.endRun()
		ep.group.WakeOthers(ep.Rank())
		return transport.RunOwn, nil
	}
	l.claims.Store(0)
	l.finished.Store(0)
	if helpers := min(1+e.Work/helpBytes, ep.group.cores-1, ep.Size()-1); helpers > 0 {
		l.open.Store(ep.seq)
		for i := range helpers {
			ep.group.Wake((ep.Rank() + 1 + i) % ep.Size())
		}
	}
	ep.ran = 0
	return transport.RunClaimed, nil
}

// follow sleeps until the last arriver is through, or wants help.
func (ep *endpoint) follow(e *transport.Arrival) (transport.Role, error) {
	help, err := ep.rest(e.AnyRunner)
	switch {
	case err != nil:
		return transport.RunOwn, err
	case help:
		return transport.RunClaimed, nil
	case e.AnyRunner:
		return transport.RunNone, nil
	}
	return transport.RunOwn, nil // the last arriver has checked for everyone
}

// rest sleeps until the call is completed or, if this rank may help, until there
// are bodies to run, which makes it a runner. Rule helpersAreRunners.
func (ep *endpoint) rest(mayHelp bool) (help bool, err error) {
	l := &ep.group.last
	for l.completed.Load() < ep.seq {
		if l.differing.Load() == ep.seq {
			return false, ep.Compare()
		}
		if mayHelp && l.open.Load() == ep.seq && l.claims.Load() < int64(ep.Size()) {
			l.runners.Add(1)
			if !ep.Failed() {
				ep.ran = 0
				return true, nil
			}
			ep.endRun()
		}
		if err := ep.Look(); err != nil {
			if l.completed.Load() >= ep.seq {
				break // completed beats interrupted
			}
			return false, err
		}
		ep.Sleep()
	}
	return false, nil
}

// claimNext is Claim of parked groups. Rule claimersLookAtFail.
func (ep *endpoint) claimParked() (rank int, ok bool) {
	if ep.Failed() {
		return 0, false
	}
	i := ep.group.last.claims.Add(1) - 1
	if i >= int64(ep.Size()) {
		return 0, false
	}
	ep.ran++
	return int(i), true
}

// putBack is Release of parked groups. Rule lastFinisherCompletes.
func (ep *endpoint) releaseParked(failed bool) error {
	l := &ep.group.last
	if failed {
		ep.ran-- // the one that failed did not end
	}
	if l.finished.Add(ep.ran) == int64(ep.Size()) {
		l.completed.Store(ep.seq)
		ep.endRun()
		ep.group.WakeOthers(ep.Rank())
		return nil
	}
	ep.endRun()
	_, err := ep.rest(false)
	return err
}

// putDown ends this rank's time as a runner, and wakes those who wait for that. Rule
// loweringWakes.
func (ep *endpoint) endRun() {
	if ep.group.last.runners.Add(-1) == 0 && ep.Failed() {
		ep.group.WakeAll()
	}
}

// withdrawParked is Withdraw of parked groups: only runners touch this rank's memory, and
// none starts once the failure is set. Rules leaverWaitsForRunners and
// leaverTestsCompleted.
func (ep *endpoint) withdrawParked() (ended bool) {
	l := &ep.group.last
	ep.StepOut()
	ep.WaitOut(func() bool { return l.runners.Load() == 0 })
	return l.completed.Load() >= ep.seq
}
