//go:build interleave

package seeds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

func (a *auditor) wrong(rule string, o *outcome, why string) {
	a.errs = append(a.errs, fmt.Errorf("%s: %s: %v", rule, why, o))
}

// text describes the job and what goes wrong.
func (j *job) text() string {
	lines := []string{fmt.Sprintf("%d ranks, waiting %d, %v, when %d", j.ranks, j.waiting, &j.fault, j.fault.when)}
	for _, e := range j.events {
		lines = append(lines, "    "+e.String())
	}
	return strings.Join(lines, "\n")
}

// checkCounted checks that a Close that drops what was started returns an error.
func (a *auditor) checkCounted(p *player, o *outcome) {
	l := p.left[o.event.group.number]
	if errors.Is(o.err, ccl.ErrClosed) && o.begun > 0 && l != nil && o.begun < l.at && l.err == nil && l.failure == nil {
		a.wrong("not counted", o, "it was dropped, and Close returned nil")
	}
}

// setPanicked makes the rank whose part of a call has panicked that of the fault: another rank may have
// run it.
func (a *auditor) setPanicked() {
	for _, p := range a.players {
		for _, o := range p.outcomes {
			if panicked, ok := errors.AsType[*ccl.KernelPanicError](o.err); ok && panicked != nil {
				if _, isOfOther := errors.AsType[*transport.AbortedError](o.err); !isOfOther {
					a.job.fault.rank = p.rank
					return
				}
			}
		}
	}
}

// parts returns the errors of an outcome one by one. An UnfinishedError is none: the rank has checked
// it.
func (o *outcome) parts() (errs []error) {
	var add func(error)
	add = func(err error) {
		several, isJoined := err.(interface{ Unwrap() []error })
		_, isCall := err.(*ccl.CallError)
		_, isUnfinished := err.(*ccl.UnfinishedError)
		switch {
		case err == nil, isUnfinished:
		case isJoined && !isCall && o.event.what == drain:
			for _, err := range several.Unwrap() {
				add(err)
			}
		default:
			errs = append(errs, err)
		}
	}
	add(o.err)
	return errs
}

// misexplained returns why an error does not follow from what has gone wrong, "" if it does.
func (a *auditor) misexplained(o *outcome, err error) string {
	f, g := &a.job.fault, o.event.group
	isMine := f.rank == o.rank
	member := func(rank int) int { // of the job
		if o.kind == "form" { // the error may be of the new group
			if m, ok := errors.AsType[*transport.InitializationFailedError](err); ok && m != nil {
				g = o.event.made
			}
		}
		if rank < 0 || rank >= len(g.members) {
			return -1
		}
		return g.members[rank]
	}
	if f.way == wayNothing {
		return "nothing went wrong"
	}

	if e, ok := errors.AsType[*transport.AbortedError](err); ok {
		return a.unaborted(o, member(e.By), e)
	}
	if e, ok := errors.AsType[*ccl.MismatchError](err); ok {
		return a.mismatched(o, e, member)
	}
	if e, ok := errors.AsType[*transport.PeerLostError](err); ok {
		by := member(e.Rank)
		if by < 0 || !a.isOut(by, g, o.at) {
			return fmt.Sprintf("rank %d of the job has not left", by)
		}
		return ""
	}
	if e, ok := errors.AsType[*transport.TimeoutError](err); ok {
		return a.untimely(o, err, e, member)
	}

	_, isSize := errors.AsType[*ccl.InvalidBufferSizeError](err)
	switch {
	case isSize && (f.way == wayAllRefuse || f.way == wayRefuses && isMine) && o.event.number == f.event:
	case errors.Is(err, ccl.ErrClosed) && a.hasLeft(o.rank, o.event.group, o.at):
	case errors.Is(err, context.DeadlineExceeded) && a.isSlow(o):
	case errors.Is(err, context.Canceled) && f.way == wayCancels && isMine:
	case errors.Is(err, ccl.ErrConcurrentUse) && f.way == wayOverlaps && isMine:
	case errors.Is(err, errKernel) && (f.way == wayFails || f.way == wayPanics || f.way == wayOpPanics) && isMine:
	default:
		return "the fault does not explain it"
	}
	return ""
}

// isLostHere reports whether a rank of a group that is made, or of the group that it is made of, is the
// one that leaves.
func (a *auditor) isLostHere(o *outcome, rank int) bool {
	return slices.ContainsFunc([]*group{o.event.made, o.event.group}, func(g *group) bool {
		return rank >= 0 && rank < len(g.members) && g.members[rank] == a.job.fault.rank
	})
}

// isSlow reports whether the time to make a group was over before a rank had done its own part.
func (a *auditor) isSlow(o *outcome) bool {
	return o.kind == "form" && slices.Contains([]way{wayTimes, wayStalls}, a.job.fault.way) && o.to.Sub(o.from) >= callTime
}

// hasLeft reports whether a rank had begun to leave a group.
func (a *auditor) hasLeft(rank int, g *group, at int64) bool {
	l := a.players[rank].left[g.number]
	return l != nil && l.at <= at
}

// isOut reports whether a rank had begun to leave a group, or never was in it.
func (a *auditor) isOut(rank int, g *group, at int64) bool {
	return a.players[rank].comms[g.number] == nil || a.hasLeft(rank, g, at)
}

func (a *auditor) unaborted(o *outcome, by int, e *transport.AbortedError) string {
	f := &a.job.fault
	if by < 0 {
		return "it names no rank"
	}
	isRight := false
	switch f.way {
	case wayAborts, wayGives:
		isRight = by == f.rank && errors.Is(e, errGone) || by == a.job.second.rank && errors.Is(e, errTired)
	case wayCancels:
		isRight = by == f.rank && errors.Is(e, context.Canceled)
	case wayFails:
		isRight = by == f.rank && errors.Is(e, errKernel)
	case wayCloses, wayLeaves: // while a group is made of the one that the rank leaves
		lost, _ := errors.AsType[*transport.PeerLostError](e)
		hasFailed := errors.Is(e, transport.ErrFailed) // the group that it is made of, meanwhile
		isRight = o.kind == "form" && (by == f.rank && errors.Is(e, ccl.ErrClosed) || lost != nil && a.isLostHere(o, lost.Rank) || hasFailed)
	case wayTimes, wayStalls:
		isSlow := func(other *outcome) bool { return other.event == o.event && a.isSlow(other) }
		isRight = errors.Is(e, context.DeadlineExceeded) && a.first(by, isSlow) != nil
	case wayPanics, wayOpPanics:
		_, hasPanicked := errors.AsType[*ccl.KernelPanicError](e)
		isRight = hasPanicked && by == f.rank
	}
	if !isRight {
		return fmt.Sprintf("rank %d of the job has not given up for this", by)
	}
	return ""
}

// mismatched returns "" if the rank of the fault has a value of its own.
func (a *auditor) mismatched(o *outcome, e *ccl.MismatchError, member func(int) int) string {
	f := &a.job.fault
	if !slices.Contains([]way{wayRefuses, wayDiffers, wayOverlaps, wayCancels, wayStalls, waySleeps, wayTimes}, f.way) {
		return "all ranks make the same calls"
	}
	if f.way == wayTimes || f.way == wayStalls || f.way == waySleeps || f.way == wayOverlaps && e.Field == "arguments" {
		// Who has waited too long for its calls before this one rejects it.
		return a.unlate(o, e, member)
	}
	for _, v := range e.Values {
		if isOf := slices.ContainsFunc(v.Ranks, func(r int) bool { return member(r) == f.rank }); isOf && len(v.Ranks) != 1 {
			return "the rank that made another call has the same value as others"
		} else if isOf {
			return ""
		}
	}
	return "it does not have the rank that made another call"
}

// checkAgreement checks that the calls of a group succeed on all ranks or fail on all, as far as
// docs/guides/caveats.md promises.
func (a *auditor) checkAgreement(g *group) {
	failed := make([]*outcome, a.job.ranks) // the first, by rank
	for _, s := range a.slots(g) {
		isOK, isFailed := false, false
		for _, rank := range g.members {
			o := s.of[rank]
			isOK = isOK || o != nil && o.err == nil
			isFailed = isFailed || o == nil || o.err != nil
		}

		for _, rank := range g.members {
			o := s.of[rank]
			for _, peer := range g.members {
				if other := failed[peer]; o != nil && o.err == nil && other != nil {
					a.wrong("ran alone", o, fmt.Sprintf("rank %d had failed or not made a call before (%v)", peer, other))
				}
			}
			if isOK && o == nil {
				a.wrong("ran alone", s.any(), fmt.Sprintf("rank %d has not made it", rank))
			}
		}
		switch {
		case isOK && isFailed && !a.mayTear(s):
			a.wrong("torn", s.first(true), fmt.Sprintf("other ranks succeed, such as %v", s.first(false)))
		case isFailed && s.event.what != form && a.wasWell(g, s): // others may fail the group while a group is made of it
			a.wrong("torn", s.first(true), "nothing had gone wrong when its part had ended on the rank that fails")
		}
		for rank, o := range s.of {
			if o != nil && failed[rank] == nil && hasFailed(o.err) {
				failed[rank] = o
			}
		}
	}
}

// hasFailed reports whether an error says that no later call of the rank can succeed. A group lives
// on after a rejection by all ranks.
func hasFailed(err error) bool {
	_, ok := errors.AsType[*ccl.CollectiveFailedError](err)
	return ok || errors.Is(err, ccl.ErrClosed)
}

// slot is a call of a group.
type slot struct {
	event *event
	stage int
	of    []*outcome // by rank of the job
}

func (s *slot) first(isFailed bool) *outcome {
	i := slices.IndexFunc(s.of, func(o *outcome) bool { return o != nil && (o.err != nil) == isFailed })
	if i < 0 {
		return s.any()
	}
	return s.of[i]
}

func (s *slot) any() *outcome {
	return s.of[slices.IndexFunc(s.of, func(o *outcome) bool { return o != nil })]
}

// slots returns the calls of a group that some rank has made, in their order.
func (a *auditor) slots(g *group) (slots []*slot) {
	for _, p := range a.players {
		for _, o := range p.outcomes {
			if o.event.group != g || !slices.Contains([]what{call, form, region}, o.event.what) {
				continue
			}
			i := slices.IndexFunc(slots, func(s *slot) bool { return s.event == o.event && s.stage == o.stage })
			if i < 0 {
				i, slots = len(slots), append(slots, &slot{o.event, o.stage, make([]*outcome, a.job.ranks)})
			}
			if of := &slots[i].of[p.rank]; *of == nil || (*of).err != nil { // of two beside each other, the one that succeeded
				*of = o
			}
		}
	}
	slices.SortFunc(slots, func(s, t *slot) int {
		return cmp.Or(s.event.number-t.event.number, s.stage-t.stage)
	})
	return slots
}

// mayTear reports whether a call may succeed on some ranks only: it ends when all have entered it.
func (a *auditor) mayTear(s *slot) bool {
	if s.event.what != call || a.isAbandoned(s) {
		return true
	}
	c := s.event.call
	if c.Coll == ccl.CollBarrier {
		return true
	}
	isDirect := s.event.algorithm == "" || s.event.algorithm == "direct" || s.event.algorithm == "trap-direct"
	limit := (4096/len(s.event.group.members) + 127) &^ 127
	return isDirect && (a.job.waiting == local.Poll && c.Shape().Bytes <= limit || c.Shape().Total == 0)
}

// wasWell reports whether a call has succeeded on the rank that fails, before it did.
func (a *auditor) wasWell(g *group, s *slot) bool {
	f := &a.job.fault
	if slices.Contains([]way{wayNothing, wayTimes}, f.way) {
		return false
	}
	if g.rank(f.rank) < 0 || s.of[f.rank] == nil {
		return false
	}
	o := s.of[f.rank]
	for _, rank := range g.members {
		if s.of[rank] == nil {
			return false
		}
	}
	return o.err == nil && (f.when == 0 || o.at < f.when)
}

// checkMessages checks that a message arrives that was sent, while its group lives.
func (a *auditor) checkMessages() {
	f := &a.job.fault
	for _, e := range a.job.events {
		if e.what != message {
			continue
		}
		sent := a.first(e.from, func(o *outcome) bool { return o.event == e && o.kind == "send" })
		received := a.first(e.to, func(o *outcome) bool { return o.event == e && o.kind == "receive" })
		switch {
		case sent == nil || received == nil || sent.err != nil || received.err == nil:
		case received.groupErr != nil || a.hasLeft(e.to, e.group, received.at):
		case errors.Is(received.err, context.Canceled): // the fault explains it, or another check alarms
		case slices.Contains([]way{wayTimes, wayStalls, waySleeps}, f.way) && sent.at > received.first: // it may have come too late
		default:
			a.wrong("lost message", received, fmt.Sprintf("it was sent: %v", sent))
		}
	}
}
