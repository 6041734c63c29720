// Package timeline draws the calls of a job's ranks, for `goccl inspect`: as SVG, and in the format
// of Chrome's trace viewer.
//
// Short calls have no times in a flight recorder. Their place on the time axis then comes from their
// number alone: between the calls of the same group whose times are known, evenly. Both formats mark
// such calls.
package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/internal/flight"
)

// A row is the calls of one rank in one group, or its messages.
type row struct {
	group string // title
	rank  int    // in the job
	spans []span
}

// A span is a call on the time axis, which starts at 0.
type span struct {
	name       string
	text       string // all that is known
	state      flight.State
	from, to   time.Duration
	timed      bool // from its times; otherwise by its order
	unfinished bool
}

// step is the length of a call without times, where no neighbour has any.
const step = 10 * time.Microsecond

// rows returns the calls of a job as rows, the end of the time axis, and whether any call has times.
func rows(j *inspect.Job) (all []row, end time.Duration, timed bool) {
	var start time.Time
	each := func(begun time.Time) {
		if !begun.IsZero() && (start.IsZero() || begun.Before(start)) {
			start = begun
		}
	}
	for _, r := range j.Ranks {
		for _, g := range r.Groups {
			for _, c := range g.Calls {
				each(c.Begun)
			}
		}
		for _, m := range r.Messages {
			each(m.Begun)
		}
	}
	for _, g := range j.Groups() {
		a := newAxis(start)
		for _, m := range g.Members {
			for _, c := range m.Calls {
				a.add(c.Number, c.Begun)
			}
		}
		a.fill()
		for _, m := range g.Members {
			line := row{group: g.Title(), rank: m.Global}
			for _, c := range m.Calls {
				line.spans = append(line.spans, a.span(c.Collective, c.String(), c.State, c.Number, c.Begun, c.Ended))
			}
			all = append(all, line)
		}
	}
	for _, r := range j.Ranks {
		if len(r.Messages) == 0 {
			continue
		}
		a := newAxis(start)
		for _, m := range r.Messages {
			a.add(m.Number, m.Begun)
		}
		a.fill()
		line := row{group: "messages", rank: r.Rank}
		for _, m := range r.Messages {
			line.spans = append(line.spans, a.span(m.Kind, m.String(), m.State, m.Number, m.Begun, m.Ended))
		}
		all = append(all, line)
	}
	end = step
	for _, r := range all {
		for _, s := range r.spans {
			end, timed = max(end, s.to), timed || s.timed
		}
	}
	for _, r := range all { // what has not ended reaches to the end
		for i := range r.spans {
			if s := &r.spans[i]; s.unfinished && s.timed {
				s.to = end
			}
		}
	}
	return all, end, timed
}

// axis maps the numbers of calls to times.
type axis struct {
	start   time.Time
	known   map[uint64]time.Duration // the first begin of the calls that have times
	numbers []uint64                 // of all calls, in order after fill
	at      map[uint64]time.Duration
}

func newAxis(start time.Time) *axis {
	return &axis{start: start, known: map[uint64]time.Duration{}, at: map[uint64]time.Duration{}}
}

func (a *axis) add(number uint64, begun time.Time) {
	a.numbers = append(a.numbers, number)
	if begun.IsZero() {
		return
	}
	if t, ok := a.known[number]; !ok || begun.Sub(a.start) < t {
		a.known[number] = begun.Sub(a.start)
	}
}

// fill gives every number a time: that of a call with times, or one between those of its neighbours.
func (a *axis) fill() {
	slices.Sort(a.numbers)
	a.numbers = slices.Compact(a.numbers)
	last := -1 // the index of the last number with a known time
	for i, n := range a.numbers {
		t, ok := a.known[n]
		switch {
		case !ok && last >= 0:
			a.at[n] = a.at[a.numbers[last]] + time.Duration(i-last)*step
		case !ok:
			a.at[n] = time.Duration(i) * step
		default:
			a.between(last, i, t)
			last = i
		}
	}
}

// between places the calls after the one with the index last, or from the start if that is -1, evenly up to
// the one with the index i, which is at t.
func (a *axis) between(last, i int, t time.Duration) {
	from, first := time.Duration(0), last
	if last >= 0 {
		from = a.at[a.numbers[last]]
	} else {
		first = 0
	}
	t = max(t, from) // clocks of two processes may differ
	for k := first; k < i; k++ {
		a.at[a.numbers[k]] = from + (t-from)*time.Duration(k-first)/time.Duration(i-first)
	}
	a.at[a.numbers[i]] = t
}

func (a *axis) span(name, text string, state flight.State, number uint64, begun, ended time.Time) span {
	s := span{name: cmp.Or(name, string(state)), text: text, state: state, timed: !begun.IsZero()}
	s.unfinished = state == flight.StateBegun || state == flight.StateInside || state == flight.StateStarting
	if s.timed {
		s.from = begun.Sub(a.start)
		s.to = max(s.from, ended.Sub(a.start))
		return s
	}
	i, _ := slices.BinarySearch(a.numbers, number)
	s.from, s.to = a.at[number], a.at[number]+step
	if i+1 < len(a.numbers) {
		s.to = max(s.from, a.at[a.numbers[i+1]])
	}
	s.text += fmt.Sprintf("; %s", byOrder)
	return s
}

// byOrder marks calls without times.
const byOrder = "its time was not taken: placed by its number"
