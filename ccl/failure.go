package ccl

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/goccl/goccl/ccl/internal/reasons"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/transport"
)

// failed ends a call that could not be completed. It records err as the group's failure, unless
// the group has failed before, and returns when no other rank touches this rank's buffers any
// more. It returns nil if other ranks have completed the call meanwhile.
func (c *Communicator) failed(coll Collective, err error) error {
	f := c.ep.Failure()
	if f == nil {
		f = c.ep.Fail(c.failureOf(err, c.rank))
	}
	if c.ep.Withdraw() {
		return nil
	}
	if errors.Is(err, ErrClosed) { // by another goroutine, while the call ran
		return c.closed(coll.String())
	}

	doing := c.call.doing
	if f.Kind == transport.FailureAborted && f.By == c.rank {
		doing = "" // this rank's own error has it
	}
	c.noteFlight()
	failed := c.failureError(coll, f, doing)
	if failed.Seq = c.number(c.seq); doing != "" {
		failed.Awaited = c.call.awaited
	}
	if c.call.plan != nil {
		failed.Algorithm = c.call.plan.choice.Entry
	}
	e := c.failedCall(failed, f)
	c.logFailure(e)
	return e
}

// failedBefore returns the error of a call on a group that failed in an earlier call.
func (c *Communicator) failedBefore(coll Collective) *CallError {
	failed := c.failureError(coll, c.before, "the group has failed before; destroy it and initialize it again")
	failed.Seq = c.number(c.seq + 1) // it consumes no number: every rank numbers it as the next call
	e := c.failedCall(failed, c.before)
	e.Seq = failed.Seq
	failed.Err = &poisoned{failed.Err}
	return e
}

// failedCall returns the error of the current call because of f, and gives it to WithFailures.
func (c *Communicator) failedCall(failed *CollectiveFailedError, f *transport.Failure) *CallError {
	switch f.Kind {
	case transport.FailurePeerLost:
		failed.Last = c.lastCalls(f.Ranks)
	case transport.FailureTimeout, transport.FailureStuck:
		if f.Seq == c.seq { // in later calls the ranks have gone on
			failed.Last = c.lastCalls(f.Ranks)
		}
	}
	return c.notify(c.newCallError(failed))
}

// notify gives e, the error of a call that has failed, to WithFailures, and returns it.
func (c *Communicator) notify(e *CallError) *CallError {
	if c.tell != nil {
		c.tell(c, e)
	}
	return e
}

// alsoFailedBefore returns the error of a call that this rank rejects, with err, on a group that
// failed in an earlier call. If the group failed for the same reason, which is usual where all ranks
// make the same mistake, the text has the reason alone.
func (c *Communicator) alsoFailedBefore(err error) error {
	before := c.failedBefore(c.call.coll)
	if !c.hasFailedFor(reasons.Line(err.Error()), before) {
		return &rejectedAfter{err, before}
	}
	e := c.newCallError(&rejectedAgain{err, before})
	e.Seq = c.number(c.seq + 1) // as in failedBefore
	return e
}

// rejectedAfter is the error of a call that this rank rejects on a group that has failed before.
type rejectedAfter struct{ err, before error }

func (e *rejectedAfter) Error() string   { return e.err.Error() + "; and " + e.before.Error() }
func (e *rejectedAfter) Reason() string  { return text.Reason(e.err) + "; and " + e.before.Error() }
func (e *rejectedAfter) Unwrap() []error { return []error{e.err, e.before} }

// rejectedAgain is the error of a call that this rank rejects for the reason for which the group
// has failed before. Its text says so once.
type rejectedAgain struct{ err, before error }

func (e *rejectedAgain) Error() string   { return e.err.Error() }
func (e *rejectedAgain) Reason() string  { return text.Reason(e.err) }
func (e *rejectedAgain) Unwrap() []error { return []error{e.err, e.before} }

// hasFailedFor reports whether the group has failed, with the error before, because ranks rejected
// a call for the reason alone, or because one gave up that had.
func (c *Communicator) hasFailedFor(reason string, before error) bool {
	if m, ok := errors.AsType[*MismatchError](before); ok {
		rejected := slices.DeleteFunc(slices.Clone(m.Values), func(v MismatchValue) bool {
			return v.Outcome != transport.OutcomeRejected
		})
		return len(rejected) == 1 && rejected[0].Why == reason
	}
	aborted, ok := errors.AsType[*AbortedError](before)
	return ok && (c.before.Reason == reason || rejectionIn(aborted.Cause) == reason)
}

// rejectionIn returns why a call was rejected whose error err is or wraps, as other ranks get the
// reason, or "".
func rejectionIn(err error) string {
	call, ok := errors.AsType[*CallError](err)
	if !ok {
		return ""
	}
	if _, failed := errors.AsType[*CollectiveFailedError](call.Err); failed {
		return ""
	}
	return reasons.Line(call.Err.Error())
}

// poisoned is the failure of an earlier call, which makes the communicator invalid.
type poisoned struct{ cause error }

func (e *poisoned) Error() string   { return e.cause.Error() }
func (e *poisoned) Unwrap() []error { return []error{e.cause, ErrInvalidCommunicator} }

// failureError returns the error of a call because of f, without what depends on the call itself.
func (c *Communicator) failureError(coll Collective, f *transport.Failure, message string) *CollectiveFailedError {
	e := &CollectiveFailedError{
		Operation: coll.String(), Message: message,
		Rank: c.rank, Peer: -1, Awaited: -1, MPIErrorCode: f.Code, Group: c.name, GlobalRanks: c.global, Err: c.cause(f),
	}
	switch f.Kind {
	case transport.FailureAborted:
		if f.By != c.rank {
			e.Peer = f.By
		}
	case transport.FailureMismatch, transport.FailureOverlap:
	default:
		if len(f.Ranks) > 0 {
			e.Peer = f.Ranks[0]
		}
	}
	return e
}

// lastCalls returns the last calls of other ranks, as the flight recorder has them.
func (c *Communicator) lastCalls(ranks []int) (all []LastCall) {
	if slices.Contains(ranks, c.rank) {
		return nil
	}
	for _, r := range ranks {
		if r < 0 || r >= c.size {
			continue // the failure comes from shared memory
		}
		l, ok := c.lastCall(r)
		if !ok {
			continue
		}
		i := slices.IndexFunc(all, func(have LastCall) bool {
			have.Ranks = nil
			return have.String() == l.String()
		})
		if i < 0 {
			i = len(all)
			all = append(all, l)
		}
		all[i].Ranks = append(all[i].Ranks, r)
	}
	return all
}

// failureOf returns err, an error of rank, as a failure of the group. It is the inverse of cause.
func (c *Communicator) failureOf(err error, rank int) *transport.Failure {
	if level, ok := errors.AsType[*levelError](err); ok && !errors.Is(err, ErrClosed) {
		return level.failure
	}
	f := &transport.Failure{By: rank, Seq: c.seq, Text: err.Error(), Code: transport.LibraryCode(err)}
	var (
		mismatch *MismatchError
		overlap  *transport.OverlapError
		rejected *transport.RejectedError
		lost     *PeerLostError
		timeout  *TimeoutError
	)
	switch {
	case errors.As(err, &mismatch):
		f.Kind, f.Text, f.Cause = transport.FailureMismatch, mismatch.Error(), mismatch
	case errors.As(err, &overlap):
		f.Kind, f.Ranks = transport.FailureOverlap, overlap.Ranks
	case errors.As(err, &rejected):
		f.Kind, f.Ranks, f.Missing = transport.FailureRejected, rejected.Ranks, rejected.Missing
		f.Text = reasons.Write(rejected.Why)
	case errors.As(err, &lost):
		f.Kind, f.Ranks, f.PID = transport.FailurePeerLost, []int{lost.Rank}, lost.PID
	case errors.Is(err, ErrClosed):
		f.Kind, f.Ranks = transport.FailurePeerLost, []int{rank}
	case errors.As(err, &timeout) && len(timeout.Missing) > 0:
		f.Kind, f.Ranks, f.After = transport.FailureTimeout, timeout.Missing, timeout.After
	case errors.As(err, &timeout):
		f.Kind, f.Ranks, f.After = transport.FailureStuck, timeout.Behind, timeout.After
	default:
		f.Kind, f.Cause = transport.FailureAborted, err
	}
	return f
}

// cause returns the group's failure as the error that calls return.
func (c *Communicator) cause(f *transport.Failure) error {
	if about := slices.Concat(f.Ranks, f.Missing); slices.ContainsFunc(about, func(r int) bool { return r < 0 || r >= c.size }) ||
		len(f.Ranks) == 0 && (f.Kind == transport.FailurePeerLost || f.Kind == transport.FailureRejected) {
		// Where ranks are processes the failure comes from shared memory.
		return &AbortedError{By: f.By, Cause: &ProtocolError{Peer: f.By, Text: fmt.Sprintf("its failure is about ranks %v of %d", about, c.size)}}
	}
	switch f.Kind {
	case transport.FailureMismatch:
		if f.Cause != nil {
			return f.Cause
		}
		if m := c.differ.Load(); m != nil {
			return m // all ranks have found the same
		}
		return &AbortedError{By: f.By, Cause: errors.New(f.Text)}
	case transport.FailureOverlap:
		return sameMemory(f.Ranks, c.size)
	case transport.FailureRejected:
		return rejectedBySome(f, c.size)
	case transport.FailurePeerLost:
		return &PeerLostError{Rank: f.Ranks[0], PID: f.PID}
	case transport.FailureTimeout:
		return &TimeoutError{Missing: f.Ranks, By: f.By, Seq: c.number(f.Seq), After: f.After}
	case transport.FailureStuck:
		return &TimeoutError{Behind: f.Ranks, By: f.By, Seq: c.number(f.Seq), After: f.After}
	}
	cause := f.Cause
	if cause == nil {
		cause = errors.New(f.Text)
	}
	if _, found := cause.(*ProtocolError); f.By == c.rank && (f.Seq != 0 || found) { //nolint:errorlint // as it was found
		return cause // this rank's own
	}
	return &AbortedError{By: f.By, Cause: cause}
}

// panicOnFaults turns faults in memory that ranks share into panics, which do not kill the
// process, until restoreFaults.
func (c *Communicator) panicOnFaults() {
	if c.guard != nil {
		c.faults = debug.SetPanicOnFault(true)
	}
}

func (c *Communicator) restoreFaults() {
	if c.guard != nil {
		debug.SetPanicOnFault(c.faults)
	}
}

// fault returns the error for v, a recovered value, if its cause is memory that ranks share: the
// memory has vanished, or holds what no rank writes there. It is nil for other panics, such as a
// kernel's.
func (c *Communicator) fault(v any) error {
	if e, ok := v.(*ProtocolError); ok {
		return e
	}
	if c.guard == nil || v == nil {
		return nil
	}
	if err := c.guard.Vanished(v); err != nil || c.recorder == nil {
		return err
	}
	return c.recorder.memory.Vanished(v)
}

// caught runs f and returns an error if f panics because of shared memory.
func (c *Communicator) caught(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if err = c.fault(v); err == nil {
				panic(v)
			}
		}
	}()
	return f()
}

// failure returns the group's failure at the start of a call.
func (c *Communicator) failure() *transport.Failure {
	if c.guard != nil {
		err := c.caught(c.lives)
		if err == nil {
			return nil
		}
		c.ep.Fail(c.failureOf(err, c.rank)) // unless it has failed before
	}
	return c.ep.Failure()
}

// lives touches the memory that ranks share.
func (c *Communicator) lives() error {
	if c.ep.Failed() {
		return transport.ErrFailed
	}
	return nil
}
