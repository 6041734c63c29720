//go:build interleave

package seeds

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// callTime is how long a call waits.
const callTime = time.Minute

// timeoutOf returns the timeout in an error, nil if there is none.
func timeoutOf(err error) *transport.TimeoutError {
	e, _ := errors.AsType[*transport.TimeoutError](err)
	return e
}

// firstOf returns the outcome of the rank whose wait has ended by a timeout, in the call or message
// in which it did. If that has failed the group, later calls of all ranks return the same error.
func (a *auditor) firstOf(o *outcome, err error, e *transport.TimeoutError, by int) (first *outcome) {
	_, hasFailed := errors.AsType[*ccl.CollectiveFailedError](err)
	if o.event.what != drain && !hasFailed {
		return o
	}
	isOfMessage := e.After == messageTime
	isCandidate := func(other *outcome) bool {
		return other.event.what != drain && (other.event.what == message || !isOfMessage) && other.event.group == o.event.group
	}
	isEqual := func(other *outcome) bool { return isCandidate(other) && reflect.DeepEqual(timeoutOf(other.err), e) }
	hasWaited := func(other *outcome) bool { // also if it was not for what comes before it
		return other.to.Sub(other.from) >= e.After && (isOfMessage || a.limit(other) == e.After)
	}
	if o.rank == by && isEqual(o) && hasWaited(o) {
		return o
	}
	return cmp.Or(
		a.first(by, func(other *outcome) bool { return isEqual(other) && hasWaited(other) }),
		a.first(by, func(other *outcome) bool { return isCandidate(other) && hasWaited(other) && other.err == nil }), // all have come in the end
		a.first(by, isEqual))
}

// first returns the first outcome of a rank in its program, of those that are meant.
func (a *auditor) first(rank int, isMeant func(*outcome) bool) (first *outcome) {
	for _, o := range a.players[rank].outcomes {
		if isMeant(o) && (first == nil || o.event.number < first.event.number) {
			first = o
		}
	}
	return first
}

// untimely returns "" if the timeout has passed, and the ranks that it names have been late.
func (a *auditor) untimely(o *outcome, err error, e *transport.TimeoutError, member func(int) int) string {
	f, by := &a.job.fault, member(e.By)
	if by < 0 {
		return fmt.Sprintf("there is no rank %d", e.By)
	}
	first := a.firstOf(o, err, e, by)
	switch {
	case first == nil:
		return fmt.Sprintf("no call of rank %d of the job has ended so", by)
	case e.After != a.limit(first) && e.After != messageTime:
		return fmt.Sprintf("rank %d of the job has waited with another timeout: %v", by, first)
	case first.to.Sub(first.from) < e.After:
		return fmt.Sprintf("rank %d of the job has waited for %v only: %v", by, first.to.Sub(first.from), first)
	}

	named := slices.Concat(e.Missing, e.Behind)
	if len(named) == 0 {
		return a.unqueued(first, e)
	}
	for _, r := range named {
		m := member(r)
		switch {
		case m < 0:
			return fmt.Sprintf("there is no rank %d", r)
		case m == by && first.event.what != message:
			return "the rank waits for itself"
		case m == f.rank || f.way == wayTimes || a.wasLate(m, first, e):
		case first.event.isAny && slices.ContainsFunc(named, func(r int) bool { return member(r) == first.event.from }):
		case f.way == wayOverlaps && slices.Contains([]int{by, first.event.from, first.event.to}, f.rank): // it waits in a call too much
		default:
			return fmt.Sprintf("rank %d of the job was not late", m)
		}
	}
	return ""
}

// unqueued returns "" if a call has waited too long for an earlier one of its rank.
func (a *auditor) unqueued(o *outcome, e *transport.TimeoutError) string {
	before := func(other *outcome) bool { // it still ran, or its call had given up and still had its turn before it
		late := timeoutOf(other.err)
		isQueued := late != nil && late.Seq == 0 && other.event.what != message
		return other.event.group == o.event.group && other.event.number < o.event.number && (isQueued || other.to.Sub(o.from) >= e.After)
	}
	if o.event.isAny && len(o.event.group.members) == 1 { // there is nobody else
		return ""
	}
	if e.Seq > 0 || o.event.what == message || a.first(o.rank, before) == nil {
		return "it names nobody, and the rank has waited for no call of its own"
	}
	return ""
}

// wasLate reports whether a rank had a reason not to do its part of what o has waited for in vain: it
// waited for something else meanwhile, it had given up before, or it had no group.
func (a *auditor) wasLate(rank int, o *outcome, e *transport.TimeoutError) bool {
	p := a.players[rank]
	if p.comms[o.event.group.number] == nil || a.isMissed(rank, o) {
		return true
	}
	return slices.ContainsFunc(p.outcomes, func(other *outcome) bool {
		isSame := other.event == o.event && other.stage == o.stage
		if isSame && other.event.what == form { // it waited for the end of the call, others for it in the new group
			isSame = reflect.DeepEqual(timeoutOf(other.err), e)
		}
		if isSame {
			return other.event.what == message && timeoutOf(other.err) != nil && !other.to.After(o.to)
		}
		return other.kind != drainBeside && other.from.Before(o.to) && other.to.After(other.from) && other.to.Sub(o.from) >= e.After
	})
}

// isMissed reports whether a rank had given up a message on whose other end a third one waited, for
// which o may have waited.
func (a *auditor) isMissed(rank int, o *outcome) bool {
	return a.first(rank, func(gone *outcome) bool {
		e := gone.event
		if e.what != message || e.group != o.event.group || timeoutOf(gone.err) == nil || gone.to.After(o.to) {
			return false
		}
		third := e.from + e.to - rank
		waits := func(w *outcome) bool { return w.event == e && w.from.Before(o.to) && w.to.After(o.from) }
		return third != rank && third != o.rank && a.first(third, waits) != nil
	}) != nil
}

// unlate returns "" if the ranks that have rejected a call had waited too long for calls of their own
// before.
func (a *auditor) unlate(o *outcome, e *ccl.MismatchError, member func(int) int) string {
	hasRejected := false
	for _, v := range e.Values {
		if v.Outcome != transport.OutcomeRejected {
			continue
		}
		hasRejected = true
		for _, r := range v.Ranks {
			m := member(r)
			if m == a.job.fault.rank && a.job.fault.way == wayOverlaps {
				continue
			}
			hasWaited := a.first(m, func(other *outcome) bool {
				late := timeoutOf(other.err)
				return other.event.group == o.event.group && other.event.what != message && late != nil && late.Seq == 0
			})
			if hasWaited == nil {
				return fmt.Sprintf("rank %d of the job had no reason to reject the call", m)
			}
		}
	}
	if !hasRejected {
		return "no rank has rejected it"
	}
	return ""
}

// isAbandoned reports whether a rank has waited for a second timeout in a call. The first may have
// been that of a message.
func (a *auditor) isAbandoned(s *slot) bool {
	return slices.ContainsFunc(s.of, func(o *outcome) bool {
		if o == nil {
			return false
		}
		first := a.limit(o)
		if late := timeoutOf(o.err); late != nil {
			first = late.After
		}
		return o.to.Sub(o.from) >= first+a.limit(o)
	})
}
