package flight

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Window sums up how long the ranks of a job have made each other wait, in the last minute.
//
// # Model
//
// In a call, the rank that begins it last makes each other rank wait for the time between their
// beginnings. A call that a rank has ended before the last has begun it does not synchronise them,
// and shows no waiting.
//
// The calls of a group that have times on all ranks stand for those that no reading has seen: the
// waiting in each is divided by the time since the call before.
type Window struct {
	sums  []sum                // the oldest first
	last  map[string]beginning // of groups, by id
	ranks []int                // that were read last
}

// windowLength is how old calls may be.
const windowLength = time.Minute

// NewWindow returns an empty window.
func NewWindow() *Window { return new(Window) }

// beginning is when all ranks had begun the last call that has times, and the last call that was
// read.
type beginning struct {
	number uint64
	at     time.Time
}

// sum is what one reading has found in a group's calls.
type sum struct {
	group   string
	at      time.Time
	calls   int
	seconds float64
	caused  map[int]caused // by rank
}

// caused is how long a rank has made others wait.
type caused struct{ seconds, squares float64 }

// Waiting is how long ranks have made others wait in the calls of a Window.
type Waiting struct {
	Calls   int              // that were seen
	Seconds float64          // that they and the time between them lasted, in one group
	Of      map[int]Lateness // by rank, of each whose records were read
}

// Lateness is how long a rank makes others wait.
type Lateness struct {
	Share float64 // of the waiting that all ranks cause
	Ratio float64 // of the time of each other rank, on average
	caused
}

// Add adds the calls of ranks' records that were not added before, and drops what is too old.
func (w *Window) Add(ranks []Rank, now time.Time) {
	since := now.Add(-windowLength)
	w.sums = slices.DeleteFunc(w.sums, func(s sum) bool { return s.at.Before(since) })
	w.ranks = w.ranks[:0]

	groups := map[string][]member{}
	for _, r := range ranks {
		w.ranks = append(w.ranks, r.Rank)
		for _, g := range r.Groups {
			if len(g.Calls) > 0 {
				groups[g.ID] = append(groups[g.ID], member{r.Rank, g.Calls})
			}
		}
	}

	last := map[string]beginning{}
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		s := sum{group: id, at: now, caused: map[int]caused{}}
		last[id] = s.add(groups[id], w.last[id], since)
		if s.calls > 0 {
			w.sums = append(w.sums, s)
		}
	}
	w.last = last
}

// member is the calls of a rank on a group.
type member struct {
	rank  int
	calls []Call
}

// number returns the number of a call by its index from the first, or from the end if negative.
func (m member) number(i int) uint64 { return m.calls[(i+len(m.calls))%len(m.calls)].Number }

// call returns a call, which is StateStarting if it is not there.
func (m member) call(number uint64) Call {
	i, found := slices.BinarySearchFunc(m.calls, number, func(c Call, n uint64) int { return cmp.Compare(c.Number, n) })
	if !found {
		return Call{State: StateStarting}
	}
	return m.calls[i]
}

// add adds the calls of a group that all members have ended after the last one that was added.
func (s *sum) add(members []member, last beginning, since time.Time) beginning {
	first, end := uint64(0), uint64(math.MaxUint64)
	for _, m := range members {
		first, end = max(first, m.number(0)), min(end, m.number(-1))
	}
	if first > last.number+1 {
		last = beginning{number: first - 1} // calls between were not seen
	}

	calls := make([]Call, len(members))
	for n := last.number + 1; n <= end; n++ {
		for i, m := range members {
			if calls[i] = m.call(n); !calls[i].State.HasEnded() {
				return last
			}
		}

		last.number = n
		if slices.ContainsFunc(calls, func(c Call) bool { return c.Begun.IsZero() }) {
			continue
		}

		late, waited := findLate(calls)
		at := calls[late].Begun
		if !last.at.IsZero() && at.After(last.at) && at.After(since) {
			of := s.caused[members[late].rank]
			s.caused[members[late].rank] = caused{of.seconds + waited, of.squares + waited*waited}
			s.calls, s.seconds = s.calls+1, s.seconds+at.Sub(last.at).Seconds()
		}
		last.at = at
	}
	return last
}

// findLate returns the index of the call that was begun last, and how many seconds the others
// have waited for it.
func findLate(calls []Call) (late int, waited float64) {
	for i, c := range calls {
		if c.Begun.After(calls[late].Begun) {
			late = i
		}
	}

	for _, c := range calls {
		if c.Ended.Before(calls[late].Begun) {
			return late, 0
		}
		waited += calls[late].Begun.Sub(c.Begun).Seconds()
	}
	return late, waited
}

// Waiting returns the sums of the window.
func (w *Window) Waiting() Waiting {
	all := Waiting{Of: map[int]Lateness{}}
	for _, rank := range w.ranks {
		all.Of[rank] = Lateness{}
	}
	seconds := map[string]float64{} // by group
	for _, s := range w.sums {
		seconds[s.group] += s.seconds
		all.Calls, all.Seconds = all.Calls+s.calls, max(all.Seconds, seconds[s.group])
	}

	for _, s := range w.sums {
		for rank, c := range s.caused {
			l := all.Of[rank]
			l.Ratio += c.seconds / seconds[s.group]
			l.caused = caused{l.seconds + c.seconds, l.squares + c.squares}
			all.Of[rank] = l
		}
	}

	total := 0.0
	for _, rank := range slices.Sorted(maps.Keys(all.Of)) {
		total += all.Of[rank].Ratio
	}
	for rank, l := range all.Of {
		if l.Ratio > 0 {
			l.Share, l.Ratio = l.Ratio/total, l.Ratio/float64(len(all.Of)-1)
		}
		all.Of[rank] = l
	}
	return all
}

// What a rank that is named slow causes at least: of the waiting, and of the others' time.
const (
	slowShare = 0.5
	slowRatio = 0.05
)

// Slow returns the rank that makes the others wait, -1 if none does. The rank that was named before
// stays so until it causes less than half as much.
func (w Waiting) Slow(before int) int {
	slow, least := -1, max(slowShare, w.chance())
	for rank, l := range w.Of {
		enough := 1.0
		if rank == before {
			enough = 0.5
		}
		if l.Share > enough*least && l.Ratio > enough*slowRatio && (slow < 0 || l.Share > w.Of[slow].Share) {
			slow = rank
		}
	}
	return slow
}

// chance returns the share of the waiting that a rank may have by chance: three standard deviations
// more than an equal part, of as many calls of equal length as would make up the waiting. So a
// pause of one rank in one call names nobody, nor do some on a machine that has too much to do.
func (w Waiting) chance() float64 {
	var all caused
	for _, l := range w.Of {
		all = caused{all.seconds + l.seconds, all.squares + l.squares}
	}
	calls := all.seconds * all.seconds / max(all.squares, math.SmallestNonzeroFloat64)
	equal := 1 / float64(len(w.Of))
	return equal + 3*math.Sqrt(equal*(1-equal)/calls)
}
