//go:build linux && (amd64 || arm64)

package mpi

import (
	"encoding/binary"
	"math/bits"

	"github.com/goccl/goccl/transport"
)

// Lines reach all ranks in rounds. Once a rank has entered a call, it sends in round k, to the rank that is 2^k places after it, the lines
// of the block of 2^k ranks that ends with itself; the last round sends only what is lacking. It sends each round as soon as it has those
// lines: on entering, or where packets arrive, also after it has given up the call. A rank that is late thus holds up lines of others. Where
// that matters they come in other ways: a rank answers questions with its own lines, and sends them to all before it leaves. Once a rank
// is gone that may have held up lines, all ranks send theirs to all others directly.
//
// A packet of lines is a sequence of:
//
//	 0  rank         4
//	 4  length       4   of what follows number
//	 8  number       8   of the call
//	16  hash         8
//	24  fingerprint 40
//	64  payload

// directRanks is the number of ranks up to which every rank sends its line to all others itself. So few gain nothing by rounds, and need not wait
// for each other to pass lines on. Barriers of Open MPI on a machine of two cores took as long either way with 3 to 6 ranks; the
// fastest loops were a quarter faster in rounds with 8 ranks, and a third with 16.
const directRanks = 7

const (
	// lineHead is the length of what precedes the payload of a line: the hash and the fingerprint.
	lineHead = 8 + 8*len(transport.Fingerprint{})
	// lineEntry is the length of what precedes a line in a packet.
	lineEntry = 16
	// linesBytes is the length in bytes of the lines of a packet, at most.
	linesBytes = partBytes
)

// lines are those of the last two calls, as they travel. sending guards them.
type lines struct {
	calls  [2]lineCall // by number mod 2
	rounds int
	direct bool // this rank sends its lines to all others itself
}

// lineCall is the lines of a call.
type lineCall struct {
	lines  []rankLine // by rank
	number uint64     // of the call that this rank has entered
	have   int        // how many ranks, from this one backwards, have their lines here
	round  int        // the next one
}

// rankLine is the line of a rank in the call of that number.
type rankLine struct {
	number uint64
	bytes  []byte
}

func newLines(ranks, directRanks int) lines {
	l := lines{rounds: bits.Len(uint(ranks - 1)), direct: ranks <= directRanks}
	for i := range l.calls {
		l.calls[i].lines = make([]rankLine, ranks)
	}
	return l
}

// sendLine sends what this rank brings to a call.
func (g *group) sendLine(e *transport.Arrival) {
	g.sending.Lock()
	defer g.sending.Unlock()
	c := &g.lines.calls[e.Seq&1]
	own := &c.lines[g.rank]
	own.number = e.Seq
	own.bytes = binary.LittleEndian.AppendUint64(own.bytes[:0], e.Hash)
	for _, w := range e.Fingerprint {
		own.bytes = binary.LittleEndian.AppendUint64(own.bytes, w)
	}
	own.bytes = append(own.bytes, e.Payload...)
	c.number, c.have, c.round = e.Seq, 1, 0
	if g.lines.direct {
		for to := range g.world {
			if to != g.rank {
				g.sendLines(to, 1, func(int) (int, *rankLine) { return g.rank, own })
			}
		}
		return
	}
	g.forward(c)
}

// forward sends the rounds of a call for which all lines are here. The caller holds sending.
func (g *group) forward(c *lineCall) {
	n := len(g.world)
	if g.lines.direct || c.number == 0 {
		return
	}
	before := func(i int) int { return (g.rank - i + n) % n }
	for c.have < n && c.lines[before(c.have)].number == c.number {
		c.have++
	}
	for ; c.round < g.lines.rounds; c.round++ {
		distance := 1 << c.round
		block := min(distance, n-distance)
		if c.have < block {
			return
		}
		g.sendLines((g.rank+distance)%n, block, func(i int) (int, *rankLine) { return before(i), &c.lines[before(i)] })
	}
}

// sendLines sends n lines to a rank. at returns a line and its rank.
func (g *group) sendLines(to, n int, at func(i int) (rank int, l *rankLine)) {
	for first := 0; first < n; {
		size, end := 0, first
		for ; end < n; end++ {
			_, l := at(end)
			if next := size + lineEntry + len(l.bytes); end == first || next <= linesBytes {
				size = next
				continue
			}
			break
		}
		b := g.packet(head{kind: kindLines}, size)
		body := b[headBytes:]
		for ; first < end; first++ {
			rank, l := at(first)
			binary.LittleEndian.PutUint32(body, uint32(rank))
			binary.LittleEndian.PutUint32(body[4:], uint32(len(l.bytes)))
			binary.LittleEndian.PutUint64(body[8:], l.number)
			body = body[lineEntry+copy(body[lineEntry:], l.bytes):]
		}
		g.post(to, b)
	}
}

// tellLines sends to a rank the lines of ranks that are here.
func (g *group) tellLines(to int, ranks ...int) {
	type ranksLine struct {
		rank int
		*rankLine
	}
	var found []ranksLine
	for _, rank := range ranks {
		for i := range g.lines.calls {
			if l := &g.lines.calls[i].lines[rank]; l.number != 0 && rank != to {
				found = append(found, ranksLine{rank, l})
			}
		}
	}
	g.sendLines(to, len(found), func(i int) (int, *rankLine) { return found[i].rank, found[i].rankLine })
}

// tellOwnLines sends the lines of this rank to all others. The caller holds sending.
func (g *group) tellOwnLines() {
	for to := range g.world {
		if to != g.rank {
			g.tellLines(to, g.rank)
		}
	}
}

// goDirect makes this rank send its lines directly from now on, and those that it has sent in rounds again.
func (g *group) goDirect() {
	g.sending.Lock()
	defer g.sending.Unlock()
	if !g.lines.direct {
		g.lines.direct = true
		g.tellOwnLines()
	}
}

// holdsUp reports whether other ranks may still need this one for lines. The caller holds sending.
func (g *group) holdsUp() bool {
	for i := range g.lines.calls {
		if c := &g.lines.calls[i]; !g.lines.direct && c.number != 0 && c.round < g.lines.rounds {
			return true
		}
	}
	return false
}

// arrivedLines stores lines that have arrived, and sends the rounds for which they were lacking.
func (g *group) arrivedLines(body []byte) error {
	g.sending.Lock()
	defer g.sending.Unlock()
	for len(body) > 0 {
		if len(body) < lineEntry {
			return errPacket
		}
		rank, length, number := binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint32(body[4:]), binary.LittleEndian.Uint64(body[8:])
		body = body[lineEntry:]
		if int64(rank) >= int64(len(g.world)) || int(rank) == g.rank || length < uint32(lineHead) || length > uint32(lineHead+payloadBytes) ||
			uint64(length) > uint64(len(body)) {
			return errPacket
		}
		g.keep(int(rank), number, body[:length])
		body = body[length:]
	}
	for i := range g.lines.calls {
		g.forward(&g.lines.calls[i])
	}
	return nil
}

// keep stores the line of a rank, unless it is here.
func (g *group) keep(rank int, number uint64, b []byte) {
	l := &g.lines.calls[number&1].lines[rank]
	if l.number >= number {
		return
	}
	l.number, l.bytes = number, append(l.bytes[:0], b...)
	var f transport.Fingerprint
	for i := range f {
		f[i] = binary.LittleEndian.Uint64(b[8+8*i:])
	}
	payload := b[lineHead:]
	if len(payload) > transport.InlineBytes {
		copy(g.slots[rank][number&1], payload)
	}
	g.sync.Arrive(rank, number, binary.LittleEndian.Uint64(b), f, payload)
}

// Via implements groupsync.Remote: the sender of the first round that has not arrived whole.
func (r *rest) Via(peer int, seq uint64) int {
	g := r.group
	g.sending.Lock()
	defer g.sending.Unlock()
	c, n := &g.lines.calls[seq&1], len(g.world)
	if g.lines.direct || c.number != seq || c.have >= n {
		return peer
	}
	return (g.rank - 1<<(bits.Len(uint(c.have))-1) + n) % n
}

// lacking returns the ranks that cannot answer and whose lines of the current call are not here.
func (g *group) lacking() (ranks []int) {
	g.sending.Lock()
	defer g.sending.Unlock()
	c := &g.lines.calls[0]
	if other := &g.lines.calls[1]; other.number > c.number {
		c = other
	}
	for rank := range g.world {
		if rank != g.rank && c.lines[rank].number < c.number && !g.answersNow(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// encodeRanks returns ranks as they travel.
func encodeRanks(ranks []int) (b []byte) {
	for _, rank := range ranks {
		b = binary.LittleEndian.AppendUint32(b, uint32(rank))
	}
	return b
}

// decodeRanks returns what encodeRanks has made, in a group of size.
func decodeRanks(b []byte, size int) (ranks []int, err error) {
	for ; len(b) >= 4; b = b[4:] {
		rank := binary.LittleEndian.Uint32(b)
		if int64(rank) >= int64(size) {
			return nil, errPacket
		}
		ranks = append(ranks, int(rank))
	}
	if len(b) > 0 {
		return nil, errPacket
	}
	return ranks, nil
}
