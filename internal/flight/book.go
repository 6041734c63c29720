package flight

import (
	"math"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Book is what one rank writes: its own part. Its methods may be called concurrently.
type Book struct {
	table *table
	lanes []laneMemory

	mu       sync.Mutex
	names    []string
	free     []int  // closed lanes, the oldest first
	used     int    // lanes that were ever used
	messages uint64 // that have begun
	marks    uint64
}

// NewBook starts the records of a rank in its part, which must be zero, aligned to 8 bytes and at
// least PartBytes of one rank long.
func NewBook(part []byte, rank, pid int) *Book {
	t, lanes, ok := layout(part)
	if !ok {
		panic("flight: the part is too short, or not aligned")
	}
	b := &Book{table: t, lanes: lanes, used: 1, names: []string{""}}
	t.rank.Store(uint64(rank))
	t.pid.Store(uint64(pid))
	t.named.Store(1)
	t.magic.Store(magic)
	return b
}

// name returns the index of a name. If the table is full it is 0, the index of the empty name.
func (b *Book) name(name string) uint8 {
	if name == "" {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.names, name); i >= 0 {
		return uint8(i)
	}

	n := len(b.names)
	if n == maxNames {
		return 0
	}
	setText(b.table.names[n][:], name)
	b.names = append(b.names, name)
	b.table.named.Store(uint64(n + 1))
	return uint8(n)
}

const _ = uint(math.MaxUint8 + 1 - maxNames) // an index must fit a byte

// What is what a call or a message does: indices of names, and a root or peer.
type What uint64

// NewWhat returns the What of a call without a root, or of a message, which has neither an
// operation nor an algorithm.
func (b *Book) NewWhat(collective, dtype, op, algorithm string) What {
	return What(b.name(collective)) | What(b.name(dtype))<<8 | What(b.name(op))<<16 | What(b.name(algorithm))<<24
}

// WithRoot returns the What of the same call with a root, or -1 for none.
func (w What) WithRoot(root int) What { return w&math.MaxUint32 | What(uint32(root+1))<<32 }

// PlusRoot adds to the root of w, if that has one. Preconditions: root >= 0; it is 0 if w has none.
func (w What) PlusRoot(root int) What { return w + What(root)<<32 }

// Group describes a group to the readers of its lanes.
type Group struct {
	ID         uint64 // the same on all its ranks, and unlike that of other groups of the job
	Name       string // "" for the first group
	Rank, Size int
	Joined     uint64 // calls before the first of the program's
}

// madeBy is the part of a group's name that tells it from others of the same ranks.
var madeBy = regexp.MustCompile(`, made by \w+, call \d+`)

// Series returns the name of a group that it shares with those that a program makes of the same
// ranks in the same way, again and again.
func Series(name string) string { return madeBy.ReplaceAllString(name, "") }

// Open takes a lane for a group that the rank is in, and sets l to write to it. A group takes that
// of a closed one of the same Series if it can, and counts on where that has ended.
func (b *Book) Open(l *Lane, g Group) {
	b.mu.Lock()
	defer b.mu.Unlock()

	m, index, isAgain := new(laneMemory), -1, false
	switch {
	case b.used < len(b.lanes):
		index = b.used
		b.used++
	case len(b.free) > 0:
		series := Series(g.Name)
		next := slices.IndexFunc(b.free, func(i int) bool { return Series(loadText(b.lanes[i].name[:])) == series })
		isAgain = next >= 0
		next = max(next, 0)

		index = b.free[next]
		b.free = slices.Delete(b.free, next, next+1)
	}

	if index >= 0 {
		m = &b.lanes[index]
	} else {
		b.table.hidden.Add(1)
	}

	edition := m.edition.Load() + 1
	m.edition.Store(edition)
	for i := range m.records {
		atomic.StoreUint64(&m.records[i][headWord], empty)
	}
	if !isAgain {
		m.counters.moveTo(&b.lanes[0].counters)
	}
	for i := range b.table.marks { // of the group that had the lane
		if mark := &b.table.marks[i]; index >= 0 && int(atomic.LoadUint64(&mark[whatWord])>>24&0xff) == index {
			atomic.StoreUint64(&mark[headWord], empty)
		}
	}

	m.group.Store(g.ID)
	m.rank.Store(uint64(g.Rank))
	m.size.Store(uint64(g.Size))
	m.joined.Store(g.Joined)
	m.closed.Store(0)
	setText(m.name[:], g.Name)
	m.edition.Store(edition + 1)
	*l = Lane{memory: m, index: index, slot: LaneRecords - 1, at: &m.records[LaneRecords-1]}
}

// Leave records that the rank has left the group. The lane may be in use.
func (l *Lane) Leave() {
	if l.memory != nil {
		l.memory.closed.CompareAndSwap(0, 1)
	}
}

// Close gives a group's lane back, if it has one; b may be nil otherwise. Its records stay until
// another group takes the lane.
func (b *Book) Close(l *Lane) {
	if l.memory == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.memory.closed.Load() == 2 {
		return
	}

	l.memory.closed.Store(2)
	if l.index >= 0 {
		b.free = append(b.free, l.index)
	} else {
		b.table.hidden.Add(^uint64(0))
		l.memory.counters.moveTo(&b.lanes[0].counters)
	}
}

// Lane is where a rank records its calls on one group. One goroutine at a time uses it.
type Lane struct {
	memory *laneMemory
	slot   int     // of the latest call
	at     *record // in that slot
	next   record
	label  string // that next has
	index  int    // in the part; -1: on the heap
}

// Begin records that call number seq has begun. timed takes the time of its begin and of its end.
func (l *Lane) Begin(seq uint64, what What, count int, label string, timed bool) {
	n := &l.next
	n[headWord] = seq<<8 | begun
	n[whatWord] = uint64(what)
	n[countWord] = uint64(count)
	if timed {
		n[begunWord] = uint64(nanotime())
	} else if n[begunWord] != 0 {
		n[begunWord] = 0
	}

	if len(label) != len(l.label) || len(label) > 0 && label != l.label {
		l.setLabel(label)
	}
	if l.slot++; l.slot == LaneRecords {
		l.slot = 0
	}
	l.at = &l.memory.records[l.slot]
	put(l.at, n)
}

//go:noinline
func (l *Lane) setLabel(label string) {
	l.label = label
	packText(l.next[labelWord:], label)
}

// packText is setText for words that no other rank reads.
func packText(words []uint64, text string) {
	for i := range words {
		words[i] = packWord(text, 8*i)
	}
}

// Inside records that all ranks have entered the call of the last Begin.
func (l *Lane) Inside() { publish(l.at, l.next[headWord]+(inside-begun)) }

// End records the end of the call of the last Begin.
func (l *Lane) End(ok bool) {
	if l.next[begunWord] != 0 || !ok && l.at[begunWord] != 0 {
		l.recordTime()
	}
	publish(l.at, ended(l.next[headWord], ok))
}

// Sleep records that the call of the last Begin is about to wait asleep, after it has waited for
// that long. A call without times has the time of its begin from then on, until it is done.
func (l *Lane) Sleep(waited time.Duration) {
	if l.next[begunWord] == 0 {
		atomic.StoreUint64(&l.at[begunWord], uint64(nanotime()-int64(waited)))
	}
}

//go:noinline
func (l *Lane) recordTime() {
	atomic.StoreUint64(&l.at[endedWord], uint64(nanotime()))
}

// ended returns the head of a record whose call or message has ended.
func ended(head uint64, ok bool) uint64 {
	if ok {
		return head + (done - begun)
	}
	return head + (failed - begun)
}

// Group returns the id of the group.
func (l *Lane) Group() string { return groupID(l.memory.group.Load()) }

// Reject records call number seq, which this rank has rejected.
func (l *Lane) Reject(seq uint64, what What, count int, label string) {
	l.Begin(seq, what, count, label, false)
	publish(l.at, l.next[headWord]+(rejected-begun))
}

// Pending is a message that was recorded and has not ended. The zero Pending is none.
type Pending struct {
	record *record
	head   uint64
}

// BeginMessage records that a message of the group whose lane is l has begun. what is the NewWhat
// of "send" or "recv", peer a rank of the group, or -1 for any. timed takes the time of its begin
// and of its end.
func (b *Book) BeginMessage(l *Lane, what What, peer, tag, count int, label string, timed bool) Pending {
	what = what.WithRoot(peer) | What(uint8(l.index))<<24
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages++
	var next record
	next[headWord], next[whatWord], next[countWord] = b.messages<<8|begun, uint64(what), uint64(count)
	if timed {
		next[begunWord] = uint64(nanotime())
	}

	next[tagWord] = uint64(tag)
	packText(next[textWord:], label)
	r := &b.lanes[0].records[b.messages%LaneRecords]
	put(r, &next)
	return Pending{r, next[headWord]}
}

// EndMessage records the end of a message, unless a later one has taken its record.
func (b *Book) EndMessage(m Pending, ok bool) {
	if m.record == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if atomic.LoadUint64(&m.record[headWord]) != m.head {
		return
	}
	if atomic.LoadUint64(&m.record[begunWord]) != 0 {
		atomic.StoreUint64(&m.record[endedWord], uint64(nanotime()))
	}
	publish(m.record, ended(m.head, ok))
}

// Mark records what the program does from now on, in a step of the group whose lane is l.
func (b *Book) Mark(l *Lane, label string, step int) {
	var next record
	next[whatWord], next[countWord] = uint64(uint8(l.index))<<24, uint64(step)
	packText(next[labelWord:], label)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marks++
	next[headWord], next[begunWord] = b.marks<<8|done, uint64(nanotime())
	put(&b.table.marks[b.marks%MarkRecords], &next)
}
