package packet

import (
	"encoding/binary"
	"math/bits"

	"github.com/goccl/goccl/transport"
)

// Lines reach all ranks in rounds. Once a rank has entered a call, it sends in round k, to the rank
// that is 2^k places after it, the lines of the block of 2^k ranks that ends with itself; the last
// round sends only what is lacking. It sends each round as soon as it has those lines: on entering,
// or where packets arrive, also after it has given up the call.
//
// A rank that is late thus holds up lines of others. Where that matters they come in other ways: a
// rank replies to queries with its own lines, and sends them to all before it leaves. Once a rank
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

// directRanks is the number of ranks up to which every rank sends its line to all others itself.
//
// So few gain nothing by rounds, and need not wait for each other to pass lines on. Barriers of
// Open MPI on a machine of two cores took as long either way with 3 to 6 ranks; the fastest loops
// were a quarter faster in rounds with 8 ranks, and a third with 16.
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
	*sender
	store  func(rank int, number uint64, encoded []byte) // stores a line that has arrived
	calls  [2]lineCall                                   // by number mod 2
	rounds int
	direct bool // this rank sends its lines to all others itself
}

// lineCall is the lines of a call.
type lineCall struct {
	lines  []rankLine // by rank
	number uint64     // of the call that this rank has entered
	known  int        // how many ranks, from this one backwards, have their lines here
	round  int        // the next one
}

// rankLine is the line of a rank in the call of that number.
type rankLine struct {
	number  uint64
	encoded []byte
}

func newLines(s *sender, store func(rank int, number uint64, encoded []byte)) lines {
	ranks := len(s.processOf)
	l := lines{sender: s, store: store, rounds: bits.Len(uint(ranks - 1)), direct: ranks <= s.process.directRanks}
	for i := range l.calls {
		l.calls[i].lines = make([]rankLine, ranks)
	}
	return l
}

// send sends the line of this rank in a call.
func (l *lines) send(e *transport.Arrival) {
	l.sending.Lock()
	defer l.sending.Unlock()
	c := &l.calls[e.Seq&1]

	line := &c.lines[l.rank]
	line.number = e.Seq
	line.encoded = binary.LittleEndian.AppendUint64(line.encoded[:0], e.Hash)
	for _, w := range e.Fingerprint {
		line.encoded = binary.LittleEndian.AppendUint64(line.encoded, w)
	}
	line.encoded = append(line.encoded, e.Payload...)

	c.number, c.known, c.round = e.Seq, 1, 0
	if l.direct {
		for to := range l.processOf {
			if to != l.rank {
				l.sendTogether(to, 1, func(int) (int, *rankLine) { return l.rank, line })
			}
		}
		return
	}
	l.sendRounds(c)
}

// sendRounds sends the rounds of a call for which all lines are here. The caller holds sending.
func (l *lines) sendRounds(c *lineCall) {
	n := len(l.processOf)
	if l.direct || c.number == 0 {
		return
	}
	before := func(i int) int { return (l.rank - i + n) % n }
	for c.known < n && c.lines[before(c.known)].number == c.number {
		c.known++
	}

	for ; c.round < l.rounds; c.round++ {
		distance := 1 << c.round
		block := min(distance, n-distance)
		if c.known < block {
			return
		}
		l.sendTogether((l.rank+distance)%n, block, func(i int) (int, *rankLine) { return before(i), &c.lines[before(i)] })
	}
}

// sendTogether sends n lines to a rank. at returns a line and its rank.
func (l *lines) sendTogether(to, n int, at func(i int) (rank int, line *rankLine)) {
	for first := 0; first < n; {
		size, end := 0, first
		for ; end < n; end++ {
			_, line := at(end)
			next := size + lineEntry + len(line.encoded)
			if end > first && next > linesBytes {
				break
			}
			size = next
		}

		b := l.newPacket(head{kind: kindLines}, size, 0)
		body := b[headBytes:]
		for ; first < end; first++ {
			rank, line := at(first)
			binary.LittleEndian.PutUint32(body, uint32(rank))
			binary.LittleEndian.PutUint32(body[4:], uint32(len(line.encoded)))
			binary.LittleEndian.PutUint64(body[8:], line.number)
			body = body[lineEntry+copy(body[lineEntry:], line.encoded):]
		}
		l.postPacket(to, b, Body{})
	}
}

// sendKnown sends to a rank the lines of ranks that are here.
func (l *lines) sendKnown(to int, ranks ...int) {
	type ranksLine struct {
		rank int
		*rankLine
	}
	var found []ranksLine
	for _, rank := range ranks {
		for i := range l.calls {
			if line := &l.calls[i].lines[rank]; line.number != 0 && rank != to {
				found = append(found, ranksLine{rank, line})
			}
		}
	}

	l.sendTogether(to, len(found), func(i int) (int, *rankLine) { return found[i].rank, found[i].rankLine })
}

// sendLines sends the lines of ranks that are here to all others. The caller holds sending.
func (l *lines) sendLines(ranks ...int) {
	for to := range l.processOf {
		if to != l.rank {
			l.sendKnown(to, ranks...)
		}
	}
}

// switchToDirect makes this rank send its lines directly from now on, and those that it has sent in
// rounds again.
func (l *lines) switchToDirect() {
	l.sending.Lock()
	defer l.sending.Unlock()
	if !l.direct {
		l.direct = true
		l.sendLines(l.rank)
	}
}

// mayHoldUp reports whether other ranks may still need this one for lines. The caller holds
// sending.
func (l *lines) mayHoldUp() bool {
	for i := range l.calls {
		if c := &l.calls[i]; !l.direct && c.number != 0 && c.round < l.rounds {
			return true
		}
	}
	return false
}

// handle stores lines that have arrived, and sends the rounds that lacked them.
func (l *lines) handle(body []byte) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	for len(body) > 0 {
		if len(body) < lineEntry {
			return errBadPacket
		}
		le := binary.LittleEndian
		rank, length, number := le.Uint32(body), le.Uint32(body[4:]), le.Uint64(body[8:])
		body = body[lineEntry:]

		isOther := int64(rank) < int64(len(l.processOf)) && int(rank) != l.rank
		isLine := length >= uint32(lineHead) && length <= uint32(lineHead+payloadBytes)
		if !isOther || !isLine || uint64(length) > uint64(len(body)) {
			return errBadPacket
		}
		l.storeNew(int(rank), number, body[:length])
		body = body[length:]
	}

	for i := range l.calls {
		l.sendRounds(&l.calls[i])
	}
	return nil
}

// storeNew stores the line of a rank, unless it is here.
func (l *lines) storeNew(rank int, number uint64, encoded []byte) {
	line := &l.calls[number&1].lines[rank]
	if line.number < number {
		line.number, line.encoded = number, append(line.encoded[:0], encoded...)
		l.store(rank, number, encoded)
	}
}

// via returns the rank that holds up the line of peer in a call, unless it has come: the sender of
// the first round that has not arrived whole, or peer itself.
func (l *lines) via(peer int, seq uint64) int {
	l.sending.Lock()
	defer l.sending.Unlock()
	c, n := &l.calls[seq&1], len(l.processOf)
	if l.direct || c.number != seq || c.known >= n {
		return peer
	}
	return (l.rank - 1<<(bits.Len(uint(c.known))-1) + n) % n
}

// missing returns the ranks of a kind whose lines of the current call are not here.
func (l *lines) missing(isOfKind func(rank int) bool) (ranks []int) {
	l.sending.Lock()
	defer l.sending.Unlock()
	c := &l.calls[0]
	if other := &l.calls[1]; other.number > c.number {
		c = other
	}
	for rank := range l.processOf {
		if rank != l.rank && c.lines[rank].number < c.number && isOfKind(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
