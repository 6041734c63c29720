//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// outcomeOf returns how a rank's part of an event has ended, nil if it has not made it.
func (a *auditor) outcomeOf(e *event, rank int, kind string) *outcome {
	all := a.players[rank].outcomes
	i := slices.IndexFunc(all, func(o *outcome) bool { return o.event == e && o.kind == kind })
	if i < 0 {
		return nil
	}
	return all[i]
}

// checkTaken checks that a send succeeds whose message was received.
func (a *auditor) checkTaken() {
	for _, e := range a.job.events {
		if e.what != message || e.from == e.to {
			continue
		}
		sent, received := a.outcomeOf(e, e.from, "send"), a.outcomeOf(e, e.to, "receive")
		if sent != nil && received != nil && sent.err != nil && received.err == nil {
			a.wrong("taken", sent, "the message was received")
		}
	}
}

// checkFormed checks that all members of a new group have it, or none.
func (a *auditor) checkFormed() {
	for _, e := range a.job.events {
		if e.what != form {
			continue
		}
		var has, lacks *outcome
		for _, rank := range e.made.members {
			switch o := a.outcomeOf(e, rank, "form"); {
			case o == nil:
			case o.err == nil:
				has = o
			default:
				lacks = o
			}
		}
		if has != nil && lacks != nil {
			a.wrong("formed", lacks, fmt.Sprintf("rank %d of the job has the group", has.rank))
		}
	}
}

// checkCause checks that the failure of a group is the same on all ranks.
func (a *auditor) checkCause() {
	for _, g := range a.job.groups {
		first, by := "", 0
		for _, p := range a.players {
			l := p.left[g.number]
			if l == nil || l.failure == nil {
				continue
			}
			cause := causeOf(l.failure, g.rank(p.rank))
			if first == "" {
				first, by = cause, p.rank
			}
			if cause != first {
				a.errs = append(a.errs, fmt.Errorf("cause: group %d has failed on rank %d because of %s, and on rank %d because of %s", g.number, by, first, p.rank, cause))
				break
			}
		}
	}
}

// causeOf returns what makes the failure of a group another one. rank is the one that has it.
func causeOf(err error, rank int) string {
	if e, ok := errors.AsType[*ccl.MismatchError](err); ok {
		return "other " + e.Field
	}
	if e, ok := errors.AsType[*transport.AbortedError](err); ok {
		return fmt.Sprint("the end of rank ", e.By)
	}
	if e, ok := errors.AsType[*transport.PeerLostError](err); ok {
		return fmt.Sprint("the loss of rank ", e.Rank)
	}
	if e, ok := errors.AsType[*transport.TimeoutError](err); ok {
		return fmt.Sprint("a wait for ranks ", e.Missing, e.Behind)
	}
	return fmt.Sprint("the end of rank ", rank) // its own error
}

// checkDrained checks that a Drain that returns nil leaves no Work that has failed and whose error
// the rank has not seen.
func (p *player) checkDrained(e *event, err error) {
	if err != nil {
		p.hasSeen = true
	}
	for _, s := range p.works {
		if p.hasSeen || s.event.group != e.group {
			continue
		}
		select {
		case <-s.work.Done():
			if err := s.work.Wait(context.Background()); err != nil && !errors.Is(err, ccl.ErrClosed) {
				p.wrongf("drain: %v has returned nil, and %v has failed: %v", e, s.event, err)
			}
		default:
		}
	}
}
