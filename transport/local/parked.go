package local

import (
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// lastArriver is the state of parked groups. Each word has several writers and its own pair of
// cache lines. The last rank to arrive in a call resets the counters of that call; all ranks
// have left the previous call by then.
type lastArriver struct {
	arrived   paddedWord // calls entered or rejected, over all ranks
	completed paddedWord // the last call that was completed
	differing paddedWord // the last call in which ranks entered different calls
	runners   paddedWord // ranks that run bodies now
	open      paddedWord // the last call that accepts helpers
	claims    paddedWord // bodies handed out, of the current call
	finished  paddedWord // bodies that ended, of the current call
}

type paddedWord struct {
	interleave.Int64
	_ [120]byte
}

// helpBytes is the work in bytes for which the last arriver wakes each helper after the first.
// It always wakes one, because all ranks must be woken in the end and two cores do it faster
// than one. On 2 cores this cut a call with 4 ranks from 1.85 to 1.43 us at 4 B and from 4.0 to
// 3.4 us at 64 KiB, and a call with 8 ranks from 4.4 to 2.8 us at 4 B.
const helpBytes = 256 << 10

// enterParked enters a call of a parked group. (syncmodel: countsRejected)
func (ep *endpoint) enterParked(e *transport.Arrival) (transport.Role, error) {
	l := &ep.group.last
	rejected := int64(ep.Rejected())
	ep.Publish(e)
	if l.arrived.Add(1+rejected) == ep.seq*int64(ep.Size()) {
		return ep.leadCall(e)
	}
	return ep.followCall(e)
}

// leadCall runs in the last rank to arrive, while all other ranks sleep or are about to.
// (syncmodel: runnerLooksAtFail, resetThenOpen, completeThenWake)
func (ep *endpoint) leadCall(e *transport.Arrival) (transport.Role, error) {
	l := &ep.group.last
	// A rank that gives up sets the failure, then waits until runners is 0. A runner
	// therefore counts itself before it looks for a failure.
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

// followCall sleeps until the call is completed or accepts helpers.
func (ep *endpoint) followCall(e *transport.Arrival) (transport.Role, error) {
	help, err := ep.awaitCompletion(e.AnyRunner)
	switch {
	case err != nil:
		return transport.RunOwn, err
	case help:
		return transport.RunClaimed, nil
	case e.AnyRunner:
		return transport.RunNone, nil
	}
	return transport.RunOwn, nil // the last arriver has checked for all ranks
}

// awaitCompletion sleeps until the call is completed. If this rank may help, it also returns when
// there are bodies to run; the rank then counts as a runner. (syncmodel: helpersAreRunners)
func (ep *endpoint) awaitCompletion(mayHelp bool) (help bool, err error) {
	l := &ep.group.last
	for isWoken := false; l.completed.Load() < ep.seq; isWoken = true {
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
		if err := ep.CheckEntry(); err != nil {
			switch { // the last arriver's finding takes precedence over its consequences
			case l.completed.Load() >= ep.seq:
				return false, nil
			case l.differing.Load() == ep.seq:
				return false, ep.Compare()
			}
			return false, err
		}

		if isWoken {
			ep.SleepAgain()
		} else {
			ep.Sleep()
		}
	}
	return false, nil
}

// claimParked is Claim of parked groups. (syncmodel: claimersLookAtFail)
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

// releaseParked is Release of parked groups. (syncmodel: lastFinisherCompletes)
func (ep *endpoint) releaseParked(failed bool) error {
	l := &ep.group.last
	if failed {
		ep.ran-- // the body that failed does not count
	}
	if l.finished.Add(ep.ran) == int64(ep.Size()) {
		l.completed.Store(ep.seq)
		ep.endRun()
		ep.group.WakeOthers(ep.Rank())
		return nil
	}
	ep.endRun()
	_, err := ep.awaitCompletion(false)
	return err
}

// endRun ends this rank's time as a runner, and wakes the ranks that wait for that. (syncmodel:
// loweringWakes)
func (ep *endpoint) endRun() {
	if ep.group.last.runners.Add(-1) == 0 && ep.Failed() {
		ep.group.WakeAll()
	}
}

// withdrawParked is Withdraw of parked groups. Only runners touch this rank's memory, and no runner
// starts once the failure is set. (syncmodel: leaverWaitsForRunners, leaverTestsCompleted)
func (ep *endpoint) withdrawParked() (ended bool) {
	l := &ep.group.last
	ep.StepOut()
	ep.WaitOut(func() bool { return l.runners.Load() == 0 })
	return l.completed.Load() >= ep.seq
}
