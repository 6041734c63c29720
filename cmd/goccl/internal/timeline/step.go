package timeline

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/text"
)

// A step is what all ranks do in one step, on a time axis that starts at 0 where the first of them
// begins it.
type step struct {
	number int
	group  *inspect.Group // it counts the steps
	length time.Duration
	ranks  []rankStep
}

type rankStep struct {
	rank     int
	found    bool // the rank's records have it
	from, to time.Duration
	parts    []part
	lanes    []lane
	talks    bool    // it has made calls of the group
	hidden   float64 // share of them that ran beside the program's own work
}

// A part is what the program does for a while: see ccl.Communicator.Mark.
type part struct {
	label    string
	from, to time.Duration
}

// A lane is the calls of one group.
type lane struct {
	title string
	calls []transfer
}

// A transfer is a call: until all ranks have come to it, this rank waits for the last of them.
type transfer struct {
	name, text     string
	from, all, to  time.Duration
	failed, opened bool // opened: it has not ended
}

// waitPart is the part in which a rank does nothing but wait for communication.
const waitPart = "wait"

// idlePart is the part in which a rank, whose data have ended, takes part in the steps of others.
const idlePart = "out of data"

// A period is when a rank was in a step.
type period struct {
	step     int
	from, to time.Time
	open     bool // the rank is in it
}

// periods returns the steps that a rank has marked on a group. A step whose first marks are not
// recorded any more is left out.
func periods(r flight.Rank, group string, now time.Time) (all []period) {
	for _, m := range r.Marks {
		switch last := len(all) - 1; {
		case m.Group != group:
		case last >= 0 && all[last].step == m.Step:
		default:
			if last >= 0 {
				all[last].to, all[last].open = m.At, false
			}
			all = append(all, period{step: m.Step, from: m.At, to: now, open: true})
			if len(all) == 1 && r.Marks[0].Number > 1 {
				all[0].from = time.Time{} // marks before this one may have been overwritten
			}
		}
	}
	return slices.DeleteFunc(all, func(p period) bool { return p.from.IsZero() })
}

// findStep returns the step to draw: the one in which a call has failed, or else the last that has
// ended on all ranks, or else the first. Of the groups that count steps it is the one that came to
// its step last.
func findStep(j *inspect.Records) (*step, error) {
	now := j.Written
	if _, last := times(j); last.After(now) {
		now = last
	}
	var found *step
	var latest time.Time
	for _, g := range j.Groups() {
		of := map[int][]period{} // by rank
		for _, r := range j.Ranks {
			if p := periods(r, g.ID, now); p != nil {
				of[r.Rank] = p
			}
		}
		if len(of) == 0 {
			continue
		}

		number := chooseStep(g, of)
		s, begun := newStep(j, g, number, of)
		if found == nil || begun.After(latest) {
			found, latest = s, begun
		}
	}

	if found == nil && slices.ContainsFunc(j.Ranks, func(r flight.Rank) bool { return len(r.Marks) > 0 }) {
		return nil, errors.New("the records of the group whose steps are marked had no room in the job's memory: make that group before others")
	}
	if found == nil {
		return nil, errors.New("no rank has marked a step: package ddp does, and any program can by Mark of its ccl.Communicator")
	}
	return found, nil
}

// chooseStep returns the number of the step to draw.
func chooseStep(g *inspect.Group, of map[int][]period) (number int) {
	current, ended := math.MaxInt, math.MaxInt
	for _, m := range g.Members {
		p := of[m.Global]
		if len(p) == 0 {
			continue
		}
		last := p[len(p)-1]
		if n := len(m.Calls); n > 0 && (m.Calls[n-1].State == flight.StateFailed || m.Calls[n-1].State == flight.StateRejected) {
			return last.step
		}
		before := -1 // no step has ended
		if len(p) > 1 {
			before = p[len(p)-2].step
		}
		current, ended = min(current, last.step), min(ended, before)
	}
	if ended >= 0 {
		return ended
	}
	return current
}

// newStep returns a step of a group, and when it began.
func newStep(j *inspect.Records, g *inspect.Group, number int, of map[int][]period) (s *step, begun time.Time) {
	s = &step{number: number, group: g}
	periodOf := func(rank int) (period, bool) {
		p := slices.Clone(of[rank])
		slices.Reverse(p) // a later training may count from 1 again
		i := slices.IndexFunc(p, func(p period) bool { return p.step == number })
		if i < 0 {
			return period{}, false
		}
		return p[i], true
	}
	for _, m := range g.Members {
		if p, ok := periodOf(m.Global); ok && (begun.IsZero() || p.from.Before(begun)) {
			begun = p.from
		}
	}
	groups := j.Groups()
	slices.SortStableFunc(groups, func(a, b *inspect.Group) int { // the group itself first
		if (a.ID == g.ID) == (b.ID == g.ID) {
			return 0
		} else if a.ID == g.ID {
			return -1
		}
		return 1
	})

	for _, m := range g.Members {
		r := rankStep{rank: m.Global}
		p, ok := periodOf(m.Global)
		if !ok {
			s.ranks = append(s.ranks, r)
			continue
		}

		r.found, r.from, r.to = true, p.from.Sub(begun), p.to.Sub(begun)
		s.length = max(s.length, r.to)
		i := slices.IndexFunc(j.Ranks, func(of flight.Rank) bool { return of.Rank == m.Global })
		r.parts = partsOf(j.Ranks[i].Marks, p, begun)

		for _, other := range groups {
			l := lane{title: other.Title()}
			if other.ID == g.ID {
				l.title = "communication"
			}
			l.calls = transfersOf(other, m.Global, p, begun)
			if len(l.calls) > 0 || other.ID == g.ID {
				r.lanes = append(r.lanes, l)
			}
		}

		r.talks = len(r.lanes[0].calls) > 0
		r.hidden = hidden(r.parts, r.lanes[0].calls)
		s.ranks = append(s.ranks, r)
	}
	return s, begun
}

func partsOf(marks []flight.Mark, p period, begun time.Time) (all []part) {
	for i, m := range marks {
		to := p.to
		if i+1 < len(marks) && marks[i+1].At.Before(to) {
			to = marks[i+1].At
		}
		if m.At.Before(p.from) || m.At.After(p.to) || m.At.Equal(p.to) && !p.open {
			continue
		}

		if n := len(all); n > 0 && all[n-1].label == m.Label {
			all[n-1].to = to.Sub(begun)
			continue
		}
		all = append(all, part{m.Label, m.At.Sub(begun), to.Sub(begun)})
	}
	return all
}

// transfersOf returns the calls of a rank on a group within its step that have times.
func transfersOf(g *inspect.Group, rank int, p period, begun time.Time) (all []transfer) {
	i := slices.IndexFunc(g.Members, func(m inspect.Member) bool { return m.Global == rank })
	if i < 0 {
		return nil
	}

	for _, c := range g.Members[i].Calls {
		opened := c.State == flight.StateBegun || c.State == flight.StateInside
		ended := c.Ended
		if opened || ended.IsZero() || ended.After(p.to) {
			ended = p.to
		}
		if c.Begun.IsZero() || !c.Begun.Before(p.to) || ended.Before(p.from) {
			continue
		}

		t := transfer{
			name: cmp.Or(strings.TrimSpace(c.Label), c.Collective, string(c.State)), text: c.String(), opened: opened, failed: c.State == flight.StateFailed,
			from: max(c.Begun.Sub(begun), p.from.Sub(begun)), to: ended.Sub(begun),
		}
		last, who := lastToCome(g, c)
		if t.all = t.to; !last.IsZero() {
			t.all = min(max(last.Sub(begun), t.from), t.to)
		}
		t.text += fmt.Sprintf("; %v", (t.to - t.from).Round(rounding(t.to-t.from)))
		if wait := t.all - t.from; wait > 0 {
			t.text += fmt.Sprintf(", of which it waited %v for %s", wait.Round(rounding(wait)), text.Ranks(who))
		}
		all = append(all, t)
	}
	return all
}

// lastToCome returns when the last rank came to a call, and which rank that was. If some have not
// come, the time is zero, and they are the ranks. Ranks that have forgotten the call do not count.
func lastToCome(g *inspect.Group, c flight.Call) (last time.Time, who []int) {
	var absent []int
	for _, m := range g.Members {
		i, found := slices.BinarySearchFunc(m.Calls, c.Number, func(c flight.Call, n uint64) int { return cmp.Compare(c.Number, n) })
		switch {
		case !found && i == len(m.Calls):
			absent = append(absent, m.Global)
		case found && m.Calls[i].Begun.After(last):
			last, who = m.Calls[i].Begun, []int{m.Global}
		}
	}

	if absent != nil {
		return time.Time{}, absent
	}
	return last, who
}

// hidden returns the share of the time in calls that is not in a part in which the rank waits.
func hidden(parts []part, calls []transfer) float64 {
	var total, seen time.Duration
	for _, c := range calls {
		total += c.to - c.from
		for _, p := range parts {
			if p.label == waitPart || p.label == idlePart {
				seen += max(min(c.to, p.to)-max(c.from, p.from), 0)
			}
		}
	}

	if total == 0 {
		return 0
	}
	return 1 - float64(seen)/float64(total)
}

// rounding returns a hundredth to a thousandth of a time, a power of ten.
func rounding(t time.Duration) time.Duration {
	unit := time.Duration(1)
	for unit*1000 <= t {
		unit *= 10
	}
	return unit
}
