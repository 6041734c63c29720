package flight

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Read returns what a rank has recorded in its part, which the rank may be writing to. ok is false
// if no rank has.
func Read(part []byte) (r Rank, ok bool) { return readPart(part, now()) }

// Clock is how far the time of day is ahead of the monotonic clock, in nanoseconds.
type Clock int64

// latest is the clock that now has returned last.
var latest atomic.Int64

// now returns the clock as it is now: the time of day may be set while a job runs. It is the one
// before if they differ by less than readings do, so that a call has one time in all of them.
func now() Clock {
	measure := func() int64 { return time.Now().UnixNano() - nanotime() } // too low if the goroutine pauses between
	c := max(measure(), measure(), measure())
	if old := latest.Load(); max(c-old, old-c) < int64(time.Millisecond) {
		return Clock(old)
	}
	latest.Store(c)
	return Clock(c)
}

// ReadAll returns what ranks of a job have recorded in that many parts, and the clock of all times.
// The parts are those of all ranks, or of the ranks of one node. Ranks that have not recorded
// anything are left out.
func ReadAll(parts int, part func(i int) []byte) (all []Rank, c Clock) {
	c = now()
	last := -1
	for i := range parts {
		if r, ok := readPart(part(i), c); ok && r.Rank > last { // otherwise another program has overwritten it
			all, last = append(all, r), r.Rank
		}
	}
	return all, c
}

// Number returns the rank that records in a part. ok is false if none has.
func Number(part []byte) (rank int, ok bool) {
	t, _, ok := layout(part)
	if !ok || t.magic.Load() != magic {
		return 0, false
	}
	return int(uint32(t.rank.Load())), true
}

// readPart is Read with a clock.
func readPart(part []byte, c Clock) (r Rank, ok bool) {
	if r.Rank, ok = Number(part); !ok {
		return r, false
	}
	t, lanes, _ := layout(part)
	p := reading{clock: c, names: make([]string, min(t.named.Load(), maxNames))}
	for i := range p.names {
		p.names[i] = loadText(t.names[i][:])
	}
	r.Counters = p.counters(&lanes[0].counters)

	r.Groups, r.Messages = []GroupCalls{}, []Message{}
	r.PID, r.Hidden = int(uint32(t.pid.Load())), int(uint32(t.hidden.Load()))
	groups := make([]string, len(lanes))
	for i := 1; i < len(lanes); i++ {
		if g, ok := p.group(&lanes[i]); ok {
			groups[i] = g.ID
			r.Groups = append(r.Groups, g)
		}
	}
	r.Messages = p.messages(&lanes[0], groups)
	r.Marks = p.marks(t, groups)
	return r, true
}

// OnHeap returns the calls of a lane that is on the heap, where ReadAll does not see it. ok is
// false for others.
func (b *Book) OnHeap(l *Lane, c Clock) (g GroupCalls, ok bool) {
	if l.memory == nil || l.index >= 0 {
		return g, false
	}
	b.mu.Lock()
	p := reading{clock: c, names: slices.Clone(b.names)}
	b.mu.Unlock()
	return p.group(l.memory)
}

// reading is what the readers of a part's records need.
type reading struct {
	clock Clock
	names []string
}

func (p reading) name(i uint64) string {
	if i &= 0xff; i < uint64(len(p.names)) {
		return p.names[i]
	}
	return ""
}

// when returns a clock reading as a time of day; zero if it was not taken.
func (p reading) when(clock uint64) time.Time {
	if clock == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(p.clock)+int64(clock)).UTC()
}

// attempts is how often a reader looks at memory that changes meanwhile.
const attempts = 4

// group reads a lane of calls. ok is false if it was never used, or is being reused.
func (p reading) group(m *laneMemory) (g GroupCalls, ok bool) {
	for range attempts {
		edition := m.edition.Load()
		if edition == 0 || edition%2 == 1 {
			continue
		}

		joined := m.joined.Load()
		g = GroupCalls{
			Calls: []Call{},
			ID:    groupID(m.group.Load()), Name: loadText(m.name[:]),
			Rank: int(uint32(m.rank.Load())), Size: int(uint32(m.size.Load())), Left: m.closed.Load() > 0,
		}
		for i := range m.records {
			if c, ok := p.call(&m.records[i], joined); ok {
				g.Calls = append(g.Calls, c)
			}
		}
		g.Counters = p.counters(&m.counters)
		if m.edition.Load() == edition {
			if g.Rank >= g.Size {
				return g, false // another program has overwritten it
			}
			slices.SortFunc(g.Calls, func(a, b Call) int { return cmp.Compare(a.Number, b.Number) })
			return g, true
		}
	}
	return g, false
}

func groupID(id uint64) string { return fmt.Sprintf("%016x", id) }

// snapshot returns the words of a record that are true, at least its head. ok is false if the
// record is empty or changes all the time.
func (r *record) snapshot() (words record, ok bool) {
	for range attempts {
		head := atomic.LoadUint64(&r[headWord])
		words = record{head}
		if head&0xff == writing {
			return words, true
		}
		if s := head & 0xff; s < begun || s > rejected {
			return words, false
		}

		for i := 1; i < len(r); i++ {
			words[i] = atomic.LoadUint64(&r[i])
		}
		if atomic.LoadUint64(&r[headWord]) == head {
			return words, true
		}
	}
	return words, false
}

func (p reading) call(r *record, joined uint64) (c Call, ok bool) {
	w, ok := r.snapshot()
	if seq := w[headWord] >> 8; seq > joined {
		c.Number = seq - joined
	} else {
		ok = false // of another group
	}
	c.State = stateOf(w[headWord])
	if !ok || c.State == StateStarting {
		return c, ok
	}
	what := w[whatWord]
	c.Collective, c.Type, c.Op, c.Algorithm = p.name(what), p.name(what>>8), p.name(what>>16), p.name(what>>24)
	if root := int(what >> 32); root > 0 {
		root--
		c.Root = &root
	}

	c.Count = int(max(int64(w[countWord]), 0))
	c.Begun = p.when(w[begunWord])
	if c.State.HasEnded() {
		c.Ended = p.when(w[endedWord])
	}
	if c.State.HasEnded() && c.Ended.IsZero() {
		c.Begun = time.Time{} // of its sleep, see Lane.Sleep
	}
	c.Label = textOf(w[labelWord:]...)
	return c, true
}

func (p reading) messages(m *laneMemory, groups []string) []Message {
	all := []Message{}
	for i := range m.records {
		w, ok := m.records[i].snapshot()
		if !ok {
			continue
		}
		s := Message{Number: w[headWord] >> 8, State: stateOf(w[headWord])}
		if s.State != StateStarting {
			what := w[whatWord]
			s.Kind, s.Type, s.Peer = p.name(what), p.name(what>>8), int(uint32(what>>32))-1
			s.Group = groupOf(what, groups)

			s.Count, s.Tag = int(max(int64(w[countWord]), 0)), int(max(int64(w[tagWord]), 0))
			s.Begun = p.when(w[begunWord])
			if s.State.HasEnded() {
				s.Ended = p.when(w[endedWord])
			}
			s.Label = textOf(w[textWord:]...)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Message) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// groupOf returns the group of a message or mark, or "".
func groupOf(what uint64, groups []string) string {
	if lane := int(what >> 24 & 0xff); lane < len(groups) {
		return groups[lane]
	}
	return ""
}

func (p reading) marks(t *table, groups []string) (all []Mark) {
	for i := range t.marks {
		if w, ok := t.marks[i].snapshot(); ok && stateOf(w[headWord]) == StateDone {
			all = append(all, Mark{
				Number: w[headWord] >> 8, Group: groupOf(w[whatWord], groups), Step: int(max(int64(w[countWord]), 0)),
				Label: textOf(w[labelWord:]...), At: p.when(w[begunWord]),
			})
		}
	}
	slices.SortFunc(all, func(a, b Mark) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func stateOf(head uint64) State {
	switch head & 0xff {
	case begun:
		return StateBegun
	case inside:
		return StateInside
	case done:
		return StateDone
	case failed:
		return StateFailed
	case rejected:
		return StateRejected
	}

	return StateStarting
}
