// Package timeline shows the calls of a job's ranks on a time axis, for `goccl inspect`: all calls
// in the format of Chrome's trace viewer, one step of a training as SVG as well.
//
// # Model
//
// Short calls have no times in a flight recorder. Their place on the time axis then comes from
// their number alone: between the calls of the same rank and group that have times. The trace marks
// such calls.
package timeline

import (
	"cmp"
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
	number     uint64
	from, to   time.Duration
	timed      bool // from its times; otherwise by its number
	unfinished bool
}

// byOrder marks calls without times.
const byOrder = "its time was not taken: placed by its number"

// newSpan returns a span that starts at its time since start, if it has one.
func newSpan(name, text string, state flight.State, number uint64, begun, ended, start time.Time) span {
	s := span{name: cmp.Or(name, string(state)), text: text, state: state, number: number, timed: !begun.IsZero()}
	s.unfinished = state == flight.StateBegun || state == flight.StateInside || state == flight.StateStarting
	if s.timed {
		s.from = begun.Sub(start)
		s.to = max(s.from, ended.Sub(start))
	} else {
		s.text += "; " + byOrder
	}
	return s
}

// leastStep is the length of a call without times where it has no neighbours with times on both
// sides. It is longer where the time axis is: see rows.
const leastStep = 10 * time.Microsecond

// rows returns the calls of a job as rows, and the end of the time axis.
func rows(j *inspect.Records) (all []row, end time.Duration) {
	start, last := times(j)
	step := max(last.Sub(start)/100, leastStep)
	for _, g := range j.Groups() {
		var group []row
		for _, m := range g.Members {
			line := row{group: g.Title(), rank: m.Global}
			for _, c := range m.Calls {
				line.spans = append(line.spans, newSpan(c.Collective, c.String(), c.State, c.Number, c.Begun, c.Ended, start))
			}
			group = append(group, line)
		}

		all = append(all, placeUntimed(group, step)...)
	}
	var messages []row
	for _, r := range j.Ranks {
		line := row{group: "messages", rank: r.Rank}
		for _, m := range r.Messages {
			line.spans = append(line.spans, newSpan(m.Kind, m.String(), m.State, m.Number, m.Begun, m.Ended, start))
		}
		if len(line.spans) > 0 {
			messages = append(messages, line)
		}
	}

	all = append(all, placeUntimed(messages, step)...)
	return shiftToZero(all, step)
}

// times returns the first and the last time in the records.
func times(j *inspect.Records) (first, last time.Time) {
	note := func(t time.Time) {
		if t.IsZero() {
			return
		}
		if first.IsZero() || t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}

	for _, r := range j.Ranks {
		for _, g := range r.Groups {
			for _, c := range g.Calls {
				note(c.Begun)
				note(c.Ended)
			}
		}

		for _, m := range r.Messages {
			note(m.Begun)
			note(m.Ended)
		}
	}
	return first, last
}

// placeUntimed places the calls without times in the rows of a group: evenly between two calls of
// their row that have times, else a step each before or after one, else a step each from the first
// number of the group.
func placeUntimed(group []row, step time.Duration) []row {
	least := uint64(0)
	for _, r := range group {
		for _, s := range r.spans {
			if least == 0 || s.number < least {
				least = s.number
			}
		}
	}
	for _, r := range group {
		last := -1 // the index of the last call with times
		for i := 0; i <= len(r.spans); i++ {
			if i < len(r.spans) && !r.spans[i].timed {
				continue
			}
			r.fill(last, i, least, step)
			last = i
		}
	}
	return group
}

// fill places the calls between two indices of calls with times; -1 and the number of calls stand
// for none.
func (r row) fill(before, after int, least uint64, step time.Duration) {
	open := r.spans[before+1 : after]
	n := time.Duration(len(open))
	if n == 0 {
		return
	}

	from := time.Duration(open[0].number-least) * step
	switch {
	case before >= 0 && after < len(r.spans):
		from = r.spans[before].to
		step = max(r.spans[after].from-from, 0) / n
	case before >= 0:
		from = r.spans[before].to
	case after < len(r.spans):
		from = r.spans[after].from - n*step
	}

	for i := range open {
		open[i].from = from + time.Duration(i)*step
		open[i].to = open[i].from + step
	}
}

// shiftToZero moves the calls to a time axis that starts at 0, and lets those with times that have
// not ended reach to its end.
func shiftToZero(all []row, step time.Duration) (_ []row, end time.Duration) {
	var first time.Duration
	for _, r := range all {
		for _, s := range r.spans {
			first = min(first, s.from)
		}
	}

	end = step
	for _, r := range all {
		for i := range r.spans {
			s := &r.spans[i]
			s.from, s.to = s.from-first, s.to-first
			end = max(end, s.to)
		}
	}

	for _, r := range all {
		for i := range r.spans {
			if s := &r.spans[i]; s.unfinished && s.timed {
				s.to = end
			}
		}
	}
	return all, end
}
