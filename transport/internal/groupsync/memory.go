package groupsync

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/goccl/goccl/transport"
)

// memory is the memory of one rank that a call reads and writes. It travels in the line's
// payload, so that comparing it touches only cache lines that ranks read anyway:
//
//	 0  reads    16   only if the call reads memory and the line has no payload;
//	                  then hasReads is set in the second word of writes
//	32  writes   16
//
// A payload that does not fit beside writes goes to a slot.
type memory struct{ reads, writes transport.Span }

const (
	inlineBesideMemory = transport.InlineBytes - 16
	hasReads           = 1 << 63
)

func (l *line) setMemory(e *transport.Arrival) {
	le, hi := binary.LittleEndian, e.Writes.Hi
	if e.Reads.Hi != 0 && (len(e.Payload) == 0 || len(e.Payload) > transport.InlineBytes) {
		le.PutUint64(l.payload[0:], e.Reads.Lo)
		le.PutUint64(l.payload[8:], e.Reads.Hi)
		hi |= hasReads
	}
	le.PutUint64(l.payload[inlineBesideMemory:], e.Writes.Lo)
	le.PutUint64(l.payload[inlineBesideMemory+8:], hi)
}

// hasReads reports whether reads takes the place of the payload's first bytes.
func (l *line) hasReads() bool {
	return binary.LittleEndian.Uint64(l.payload[inlineBesideMemory+8:])&hasReads != 0
}

func (l *line) memory() (m memory) {
	le := binary.LittleEndian
	m.writes.Lo = le.Uint64(l.payload[inlineBesideMemory:])
	m.writes.Hi = le.Uint64(l.payload[inlineBesideMemory+8:])
	if m.writes.Hi&hasReads != 0 {
		m.writes.Hi &^= hasReads
		m.reads = transport.Span{Lo: le.Uint64(l.payload[0:]), Hi: le.Uint64(l.payload[8:])}
	}
	return m
}

// memories are the memory of all ranks in one call. The zero memories are those of ranks that do
// not share an address space, which never compare them.
type memories struct {
	known  []memory  // by rank
	sorted []written // scratch for comparing the memory of many ranks
}

// newMemories returns the memories of that many ranks, on separate cache lines.
func newMemories(ranks int) memories {
	const pad = 128 / 32
	return memories{known: make([]memory, pad+ranks+pad)[pad : pad+ranks]}
}

// compare returns an error if memory that one rank writes in a call overlaps memory that another
// rank reads or writes. Every rank checks all pairs, so that all ranks return the same error
// before any rank has written.
func (m *memories) compare(states []*State, seq uint64) error {
	for rank, s := range states {
		m.known[rank] = s.line[seq&1].memory()
	}
	if !m.overlap() {
		return nil
	}
	err := &transport.OverlapError{Ranks: overlappedRanks(m.known), Seq: seq}
	clear(m.known)
	return err
}

// pairRanks is the largest number of ranks for which overlap checks all pairs. At 64 ranks this
// takes as long as sorting (5 us); at 1024 ranks it takes 3 ms, and sorting 0.1 ms.
const pairRanks = 64

// overlap reports whether memory that one rank writes overlaps memory that another rank reads or
// writes.
func (m *memories) overlap() bool {
	if len(m.known) <= pairRanks {
		return overlapInPairs(m.known)
	}
	if m.sorted == nil {
		m.sorted = make([]written, 0, len(m.known))
	}
	return overlapSorted(m.known, m.sorted)
}

// written is the memory that a rank writes.
type written struct {
	transport.Span
	rank int
}

// overlapSorted is overlapInPairs for many ranks. sorted must have capacity for one entry per
// rank.
func overlapSorted(all []memory, sorted []written) bool {
	for rank, m := range all {
		if m.writes.Hi != 0 {
			sorted = append(sorted, written{m.writes, rank})
		}
	}
	slices.SortFunc(sorted, func(a, b written) int { return cmp.Compare(a.Lo, b.Lo) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i-1].Overlaps(sorted[i].Span) {
			return true
		}
	}

	for rank, m := range all { // the written spans are disjoint, so their ends are sorted as well
		i, _ := slices.BinarySearchFunc(sorted, m.reads.Lo, func(w written, lo uint64) int {
			if w.Hi <= lo {
				return -1
			}
			return 1
		})
		for ; i < len(sorted) && sorted[i].Lo < m.reads.Hi; i++ {
			if sorted[i].rank != rank {
				return true
			}
		}
	}

	return false
}

// overlapInPairs reports whether memory that one rank writes overlaps memory that another rank
// reads or writes. It has no branches that depend on addresses, which no processor can predict.
func overlapInPairs(all []memory) bool {
	var found uint64
	for i := range all {
		a := &all[i]
		for j := range all[:i] {
			b := &all[j]
			found |= overlapBit(a.writes, b.writes) | overlapBit(a.writes, b.reads) | overlapBit(a.reads, b.writes)
		}
	}
	return found != 0
}

// overlapBit returns 1 if the spans overlap and 0 otherwise.
func overlapBit(s, t transport.Span) uint64 {
	_, a := bits.Sub64(s.Lo, t.Hi, 0)
	_, b := bits.Sub64(t.Lo, s.Hi, 0)
	return a & b
}

// overlappedRanks returns the first rank that writes memory which other ranks read or write, and
// those ranks.
func overlappedRanks(all []memory) (ranks []int) {
	for i, a := range all {
		for j, b := range all {
			if i == j || a.writes.Overlaps(b.writes) || a.writes.Overlaps(b.reads) {
				ranks = append(ranks, j)
			}
		}
		if len(ranks) > 1 {
			return ranks
		}
		ranks = ranks[:0]
	}
	return nil
}
