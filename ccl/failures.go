package ccl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl/internal/reasons"
	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// failures is why a group has failed, as errors of its calls.
type failures struct {
	*group
	report   func(*CallError)                  // of WithFailures, or nil
	shown    bool                              // a call has returned the failure
	differ   interleave.Pointer[MismatchError] // of the call in which ranks made different calls
	ended    interleave.Pointer[error]         // the failure of the group, for after the endpoint was freed
	reported interleave.Pointer[transport.Failure]
}

// fail records f, which this rank reports, as the group's failure, and returns the one that is. It
// keeps f: another rank may have passed it on, from a level, without its error value.
func (s *failures) fail(f *transport.Failure) *transport.Failure {
	if f.By == s.rank {
		s.reported.CompareAndSwap(nil, f)
	}
	return s.ep.Fail(f)
}

// fail records err, an error of the current call, as the group's failure, unless that has failed
// before. It returns the failure, which the group of which this one is a level then has as well:
// who ends the call of a level waits for a rank that is stopped in it.
func (e *engine) fail(err error) *transport.Failure {
	f := e.failures.fail(e.failures.failureOf(err, e.rank, e.seq))
	if l := e.level; l != nil {
		l.kernel.engine.failures.fail(l.outward(f))
	}
	return f
}

// failed ends a call that could not be completed. It records err as the group's failure, unless
// the group has failed before, and returns when no other rank touches this rank's buffers any
// more. It returns nil if other ranks have completed the call meanwhile, and not only a step before
// the one that has failed.
func (e *engine) failed(coll Collective, err error) error {
	f := e.ep.Failure()
	if f == nil || !errors.Is(err, transport.ErrFailed) {
		f = e.fail(err)
	}
	if e.ep.Withdraw() && e.stage.inside {
		return nil
	}
	if errors.Is(failure.WithoutCause(err), ErrClosed) { // by another goroutine, while the call ran
		return e.closed(coll.String())
	}

	doing := e.call.doing
	if f.Kind == transport.FailureAborted && f.By == e.rank {
		doing = "" // this rank's own error has it
	}
	e.records.noteFlight()
	failed := e.failures.failureError(coll, f, doing)
	if failed.Seq = e.number(e.seq); doing != "" {
		failed.Awaited = e.call.awaited
	}
	if e.call.plan != nil {
		failed.Algorithm = e.call.plan.choice.Entry
	}

	made := e.failedCall(failed, f)
	if failure.IsContextEnd(err) && (f.By != e.rank || !failure.IsContextEnd(failed.Err)) {
		failed.Err = &cancelledBeside{failed.Err, err}
	}
	e.journal.logFailure(made)
	return made
}

// cancelledBeside is the failure of the group for a rank whose own context has ended the call as
// well.
type cancelledBeside struct{ cause, ended error }

func (e *cancelledBeside) Error() string   { return e.cause.Error() }
func (e *cancelledBeside) Unwrap() []error { return []error{e.cause, e.ended} }

// failedBefore returns the error of a call on a group that failed in an earlier call.
func (e *engine) failedBefore(coll Collective) *CallError {
	failed := e.failures.failureError(coll, e.before, e.failures.remedy(e.before))
	failed.Seq = e.number(e.seq + 1) // it consumes no number: every rank numbers it as the next call
	made := e.failedCall(failed, e.before)
	made.Seq = failed.Seq
	failed.Err = &poisoned{failed.Err}
	return made
}

// remedy says what to do after a failure that a call has returned before, unless a process is gone.
// The group may be that of a Reducer, which a program does not see.
func (s *failures) remedy(f *transport.Failure) string {
	switch {
	case !s.shown:
		return ""
	case f.Kind == transport.FailurePeerLost && f.PID != 0:
		return "the group has failed before"
	case s.name == "":
		return "the group has failed before; destroy it and initialize it again"
	}
	return "the group has failed before; close it, or what has made it, and make it again"
}

// failedCall returns the error of the current call because of f, and gives it to WithFailures.
func (e *engine) failedCall(failed *CollectiveFailedError, f *transport.Failure) *CallError {
	e.failures.shown = true
	switch f.Kind {
	case transport.FailurePeerLost:
		failed.Last = e.records.lastCalls(f.Ranks, failed.Seq, true)
	case transport.FailureTimeout, transport.FailureStuck:
		if f.Seq == e.seq { // in later calls the ranks have gone on
			failed.Last = e.records.lastCalls(f.Ranks, e.number(e.seq), false)
		}
		if f.Kind == transport.FailureStuck { // the ranks are known to be in this call
			failed.Last = slices.DeleteFunc(failed.Last, func(l LastCall) bool { return l.standing.isThis })
		}
	}
	return e.failures.notify(e.newCallError(failed))
}

// notify gives e, the error of a call that has failed, to WithFailures, and returns it.
func (s *failures) notify(e *CallError) *CallError {
	if s.report != nil {
		s.report(e)
	}
	return e
}

// alsoFailedBefore returns the error of a call that this rank rejects, with err, on a group that
// failed in an earlier call. If the group failed for the same reason, which is usual where all
// ranks make the same mistake, the text has the reason alone.
func (e *engine) alsoFailedBefore(err error) error {
	before := e.failedBefore(e.call.coll)
	if !e.hasFailedFor(reasons.Line(err.Error()), before) {
		return &rejectedAfter{err, before}
	}
	made := e.newCallError(&rejectedAgain{err, before})
	made.Seq = e.number(e.seq + 1) // as in failedBefore
	return made
}

// rejectedAfter is the error of a call that this rank rejects on a group that has failed before.
type rejectedAfter struct{ err, before error }

func (e *rejectedAfter) Error() string   { return e.err.Error() + "; and " + e.before.Error() }
func (e *rejectedAfter) reason() string  { return Reason(e.err) + "; and " + e.before.Error() }
func (e *rejectedAfter) Unwrap() []error { return []error{e.err, e.before} }

// rejectedAgain is the error of a call that this rank rejects for the reason for which the group
// has failed before. Its text says so once.
type rejectedAgain struct{ err, before error }

func (e *rejectedAgain) Error() string   { return e.err.Error() }
func (e *rejectedAgain) reason() string  { return Reason(e.err) }
func (e *rejectedAgain) Unwrap() []error { return []error{e.err, e.before} }

// hasFailedFor reports whether the group has failed, with the error before, because ranks rejected
// a call for the reason alone, or because one gave up that had.
func (e *engine) hasFailedFor(reason string, before error) bool {
	if m, ok := errors.AsType[*MismatchError](before); ok {
		rejected := slices.DeleteFunc(slices.Clone(m.Values), func(v MismatchValue) bool {
			return v.Outcome != transport.OutcomeRejected
		})
		return len(rejected) == 1 && rejected[0].Why == reason
	}
	aborted, ok := errors.AsType[*transport.AbortedError](before)
	return ok && (e.before.Reason == reason || rejectionIn(aborted.Cause) == reason)
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
func (s *failures) failureError(coll Collective, f *transport.Failure, message string) *CollectiveFailedError {
	e := &CollectiveFailedError{
		Operation: coll.String(), Message: message,
		Rank: s.rank, Peer: -1, Awaited: -1, MPIErrorCode: f.Code, Group: s.name, GlobalRanks: s.global, Err: s.cause(f),
	}

	switch f.Kind {
	case transport.FailureAborted:
		if f.By != s.rank {
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

// failureOf returns err, an error of rank in a call, as a failure of the group. It is the inverse
// of cause.
func (s *failures) failureOf(err error, rank int, seq uint64) *transport.Failure {
	about := failure.WithoutCause(err)
	if level, ok := errors.AsType[*levelError](err); ok && level.whole == s.group && !errors.Is(about, ErrClosed) {
		return level.failure
	}

	f := &transport.Failure{By: rank, Seq: seq, Text: err.Error(), Code: transport.LibraryCode(err)}
	var (
		mismatch *MismatchError
		overlap  *transport.OverlapError
		rejected *transport.RejectedError
		lost     *transport.PeerLostError
		timeout  *transport.TimeoutError
	)

	switch {
	case errors.As(about, &mismatch):
		f.Kind, f.Text, f.Cause = transport.FailureMismatch, mismatch.Error(), mismatch
	case errors.As(about, &overlap):
		f.Kind, f.Ranks = transport.FailureOverlap, overlap.Ranks
	case errors.As(about, &rejected):
		f.Kind, f.Ranks, f.Missing = transport.FailureRejected, rejected.Ranks, rejected.Missing
		f.Text = reasons.Write(rejected.Why)
	// Ranks that are gone or late.
	case errors.As(about, &lost):
		f.Kind, f.Ranks, f.PID = transport.FailurePeerLost, []int{lost.Rank}, lost.PID
	case errors.Is(about, ErrClosed):
		f.Kind, f.Ranks = transport.FailurePeerLost, []int{rank}
	case errors.As(about, &timeout) && len(timeout.Missing) > 0:
		f.Kind, f.Ranks, f.After = transport.FailureTimeout, timeout.Missing, timeout.After
	case errors.As(about, &timeout):
		f.Kind, f.Ranks, f.After = transport.FailureStuck, timeout.Behind, timeout.After
	default:
		f.Kind, f.Cause = transport.FailureAborted, err
	}
	return f
}

// cause returns the group's failure as the error that calls return.
func (s *failures) cause(f *transport.Failure) error {
	if about := slices.Concat(f.Ranks, f.Missing); slices.ContainsFunc(about, func(r int) bool { return r < 0 || r >= s.size }) ||
		len(f.Ranks) == 0 && (f.Kind == transport.FailurePeerLost || f.Kind == transport.FailureRejected) {
		// Where ranks are processes the failure comes from shared memory.
		return &transport.AbortedError{By: f.By, Cause: &transport.ProtocolError{Peer: f.By, Text: fmt.Sprintf("its failure is about ranks %v of %d", about, s.size)}}
	}
	switch f.Kind {
	case transport.FailureMismatch:
		if f.Cause != nil {
			return f.Cause
		}
		if m := s.differ.Load(); m != nil {
			return m // all ranks have found the same
		}
		return &transport.AbortedError{By: f.By, Cause: errors.New(f.Text)}
	case transport.FailureOverlap:
		return sameMemory(f.Ranks, s.size)
	case transport.FailureRejected:
		return rejectedBySome(f, s.size)
	// Ranks that are gone or late.
	case transport.FailurePeerLost:
		lost := &transport.PeerLostError{Rank: f.Ranks[0], PID: f.PID}
		if hosts := s.hosts(f.Ranks[:1]); hosts != nil {
			lost.Host = hosts[0]
		}
		return lost
	case transport.FailureTimeout:
		return &transport.TimeoutError{Missing: f.Ranks, By: f.By, Seq: s.number(f.Seq), After: f.After, Hosts: s.hosts(f.Ranks)}
	case transport.FailureStuck:
		return &transport.TimeoutError{Behind: f.Ranks, By: f.By, Seq: s.number(f.Seq), After: f.After, Hosts: s.hosts(f.Ranks)}
	}

	cause, reported := f.Cause, s.reported.Load()
	if cause == nil && f.By == s.rank && reported != nil && reported.Seq == f.Seq {
		cause = reported.Cause
	}
	if cause == nil {
		return &transport.AbortedError{By: f.By, Cause: errors.New(f.Text)}
	}
	if _, found := cause.(*transport.ProtocolError); f.By == s.rank && (f.Seq != 0 || found) { //nolint:errorlint // as it was found
		return cause // this rank's own
	}
	return &transport.AbortedError{By: f.By, Cause: cause}
}

// failure returns the group's failure at the start of a call.
func (e *engine) failure() *transport.Failure {
	if e.faults.guard == nil {
		return e.ep.Failure()
	}
	err := e.faults.caught(e.lives)
	if err == nil {
		return nil
	}
	e.ep.Fail(e.failures.failureOf(err, e.rank, e.seq)) // unless it has failed before
	return e.ep.Failure()
}

// lives touches the memory that ranks share.
func (e *engine) lives() error {
	if e.ep.Failed() {
		return transport.ErrFailed
	}
	return nil
}

// noteFailure keeps the group's failure for Err.
func (s *failures) noteFailure() {
	if f := s.ep.Failure(); f != nil && s.ended.Load() == nil {
		cause := s.cause(f)
		s.ended.CompareAndSwap(nil, &cause)
	}
}

// err returns the failure of the group, nil if it has not failed. Any goroutine may call it.
func (e *engine) err() error {
	if !e.holds.life.Hold() {
		if cause := e.failures.ended.Load(); cause != nil {
			return *cause
		}
		return nil
	}
	defer e.holds.drop() //nolint:errcheck // Close has returned already
	if f := e.ep.Failure(); f != nil {
		return e.failures.cause(f)
	}
	return nil
}
