//go:build interleave

package seeds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// misexplained returns why an error does not follow from what has gone wrong, "" if it does.
func (a *auditor) misexplained(o *outcome) string {
	if o.err == nil {
		return ""
	}
	f, g := &a.job.fault, o.event.group
	isMine := f.rank == o.rank
	member := func(rank int) int { // of the job
		if o.kind == "form" { // the error may be of the new group
			if m, ok := errors.AsType[*transport.InitializationFailedError](o.err); ok && m != nil {
				g = o.event.made
			}
		}
		if rank < 0 || rank >= len(g.members) {
			return -1
		}
		return g.members[rank]
	}
	switch {
	case o.kind == "drain" && isUnfinished(o.err):
		return ""
	case f.way == wayNothing:
		return "nothing went wrong"
	}

	if e, ok := errors.AsType[*transport.AbortedError](o.err); ok {
		return a.unaborted(o, member(e.By), e)
	}
	if e, ok := errors.AsType[*ccl.MismatchError](o.err); ok {
		return a.mismatched(o, e, member)
	}
	if e, ok := errors.AsType[*transport.PeerLostError](o.err); ok {
		by := member(e.Rank)
		if by < 0 || !a.isOut(by, g, o.at) {
			return fmt.Sprintf("rank %d of the job has not left", by)
		}
		return ""
	}
	if e, ok := errors.AsType[*transport.TimeoutError](o.err); ok {
		return a.untimely(o, e, member)
	}

	_, isSize := errors.AsType[*ccl.InvalidBufferSizeError](o.err)
	switch {
	case isSize && (f.way == wayAllRefuse || f.way == wayRefuses && isMine) && o.event.number == f.event:
	case errors.Is(o.err, ccl.ErrClosed) && a.hasLeft(o.rank, o.event.group, o.at):
	case errors.Is(o.err, context.DeadlineExceeded) && f.way == wayTimes && o.kind == "form":
	case errors.Is(o.err, context.Canceled) && f.way == wayCancels && isMine:
	case errors.Is(o.err, ccl.ErrConcurrentUse) && f.way == wayOverlaps && isMine:
	case errors.Is(o.err, errKernel) && (f.way == wayFails || f.way == wayPanics) && isMine:
	case errors.Is(o.err, errKernel) && f.way == wayOpPanics:
	default:
		return "the fault does not explain it"
	}
	return ""
}

func isUnfinished(err error) bool {
	_, ok := errors.AsType[*ccl.UnfinishedError](err)
	return ok
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
		isRight = by == f.rank && errors.Is(e, errGone)
	case wayCancels:
		isRight = by == f.rank && errors.Is(e, context.Canceled)
	case wayFails:
		isRight = by == f.rank && errors.Is(e, errKernel)
	case wayCloses, wayLeaves: // while a group is made of the one that the rank leaves
		lost, _ := errors.AsType[*transport.PeerLostError](e)
		hasFailed := errors.Is(e, transport.ErrFailed) // the group that it is made of, meanwhile
		isRight = o.kind == "form" && (by == f.rank && errors.Is(e, ccl.ErrClosed) || lost != nil || hasFailed)
	case wayTimes:
		isRight = o.kind == "form" && errors.Is(e, context.DeadlineExceeded)
	case wayPanics, wayOpPanics:
		_, hasPanicked := errors.AsType[*ccl.KernelPanicError](e)
		isRight = hasPanicked && (by == f.rank || f.way == wayOpPanics)
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
	if f.way == wayTimes {
		return ""
	}
	if f.way == wayStalls || f.way == waySleeps || f.way == wayOverlaps && e.Field == "arguments" {
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

// unlate returns "" if the ranks that have rejected a call had waited too long before.
func (a *auditor) unlate(o *outcome, e *ccl.MismatchError, member func(int) int) string {
	hasRejected := false
	for _, v := range e.Values {
		if v.Outcome != transport.OutcomeRejected {
			continue
		}
		hasRejected = true
		for _, r := range v.Ranks {
			if m := member(r); m != a.job.fault.rank && !a.wasLate(m, o) {
				return fmt.Sprintf("rank %d of the job had no reason to reject the call", m)
			}
		}
	}
	if !hasRejected {
		return "no rank has rejected it"
	}
	return ""
}

// untimely returns "" if the ranks that a timeout names have been late.
func (a *auditor) untimely(o *outcome, e *transport.TimeoutError, member func(int) int) string {
	f := &a.job.fault
	named := slices.Concat(e.Missing, e.Behind)
	for _, r := range named {
		if r == e.By && o.event.what != message && o.event.what != drain {
			return "the rank waits for itself"
		}
		switch m := member(r); {
		case m < 0:
			return fmt.Sprintf("there is no rank %d", r)
		case f.way == wayTimes || m == f.rank:
		case o.event.what == message && (f.way == wayStalls || f.way == waySleeps || f.way == wayOverlaps): // whom the rank awaited when it stopped
		case o.event.isAny && slices.ContainsFunc(named, func(r int) bool { return member(r) == o.event.from }):
		case f.way == wayOverlaps && o.rank == f.rank: // it has made a call too much
		case a.wasLate(m, o):
		default:
			return fmt.Sprintf("rank %d of the job was not late", m)
		}
	}
	if isOfQueue := e.Seq == 0 && member(e.By) == o.rank; len(named) == 0 && !isOfQueue {
		return "it names nobody"
	}
	return ""
}

// wasLate reports whether a rank has waited in vain, which made it late for other calls, or had no
// group.
func (a *auditor) wasLate(rank int, o *outcome) bool {
	p := a.players[rank]
	if p.comms[o.event.group.number] == nil {
		return true
	}
	return slices.ContainsFunc(p.outcomes, func(other *outcome) bool {
		late, ok := errors.AsType[*transport.TimeoutError](other.err)
		return ok && late != nil
	})
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
	f := &a.job.fault
	if s.event.what != call || f.way == wayTimes || f.way == wayStalls && f.delay >= 2*time.Minute { // the second timeout passes
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
	if slices.Contains([]way{wayNothing, wayTimes, wayOpPanics, wayOverlaps}, f.way) {
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
	for _, e := range a.job.events {
		if e.what != message {
			continue
		}
		find := func(rank int, kind string) *outcome {
			for _, o := range a.players[rank].outcomes {
				if o.event == e && o.kind == kind {
					return o
				}
			}
			return nil
		}
		sent, received := find(e.from, "send"), find(e.to, "receive")
		if sent == nil || received == nil || sent.err != nil || received.err == nil {
			continue
		}
		if a.hasFailed(e.group) || a.hasLeft(e.to, e.group, received.at) || errors.Is(received.err, context.Canceled) || a.job.fault.way == wayTimes {
			continue
		}
		a.wrong("lost message", received, "it was sent")
	}
}

// hasFailed reports whether a group had failed at its end.
func (a *auditor) hasFailed(g *group) bool {
	return slices.ContainsFunc(a.players, func(p *player) bool {
		return p.left[g.number] != nil && p.left[g.number].failure != nil
	})
}
