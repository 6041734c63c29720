//go:build linux && (amd64 || arm64)

package mpi

import (
	"encoding/binary"
	"sync/atomic"
)

// pieceBytes is the length in bytes of the longest piece of a view. Each rank sends its pieces to all others.
const pieceBytes = 32 << 10

// A stage is what a rank shows in rounds, as in package shm: round k uses half k mod 2, and results are stored over the inputs
// that they are the results of. Here every process has a copy of all halves. A rank that flips sends its input to all
// others, and each of them the result that it has stored to its copy of that one's half.
type stage struct {
	round  atomic.Uint64
	halves [2]atomic.Pointer[[pieceBytes]byte] // made on first use
	length [2]int                              // of this rank's input in each half
	result [2]struct{ lo, hi int }
}

// roundHead is the length of what precedes the input and the result of a round: the length of the input, and lo and hi of the result.
const roundHead = 12

func (ep *endpoint) PieceBytes() int { return pieceBytes }

// half returns what rank shows in a round.
func (g *group) half(rank int, round uint64) []byte {
	h := &g.stages[rank].halves[round&1]
	if h.Load() == nil {
		h.CompareAndSwap(nil, new([pieceBytes]byte))
	}
	return h.Load()[:]
}

func (ep *endpoint) PutInput(piece []byte, lo, hi int) {
	half := ep.group.half(ep.Rank(), ep.round+1)
	copy(half, piece[:lo])
	copy(half[hi:], piece[hi:])
	ep.group.stages[ep.Rank()].length[(ep.round+1)&1] = len(piece)
}

func (ep *endpoint) PutResult(lo, hi int) { ep.resultLo, ep.resultHi = lo, hi }

func (ep *endpoint) Flip() error {
	if ep.enterWasRound {
		ep.enterWasRound = false
		return nil
	}
	ep.sendRound()
	for peer := range ep.Size() {
		if peer == ep.Rank() {
			continue
		}
		if err := ep.AwaitMessage(&ep.group.stages[peer].round, ep.round+1, peer); err != nil {
			return err
		}
	}
	ep.round++
	return nil
}

// sendRound sends this rank's part of the next round to all other ranks.
func (ep *endpoint) sendRound() {
	g, next := ep.group, ep.round+1
	s := &g.stages[g.rank]
	lo, hi := ep.resultLo, ep.resultHi
	ep.resultLo, ep.resultHi = 0, 0
	input := g.half(g.rank, next)[:s.length[next&1]]
	packets := ep.packets[:0]
	for to := range g.states {
		if to == g.rank {
			packets = append(packets, nil)
			continue
		}
		b := g.packet(head{kind: kindRound, number: next}, roundHead+len(input)+hi-lo)
		body := b[headBytes:]
		binary.LittleEndian.PutUint32(body, uint32(len(input)))
		binary.LittleEndian.PutUint32(body[4:], uint32(lo))
		binary.LittleEndian.PutUint32(body[8:], uint32(hi))
		copy(body[roundHead:], input)
		if lo < hi {
			copy(body[roundHead+len(input):], g.half(to, ep.round)[lo:hi])
		}
		packets = append(packets, b)
	}
	g.sending.Lock()
	defer g.sending.Unlock()
	for to, b := range packets { // a rank that has its packet may send a result, which overwrites the input
		if to != g.rank {
			g.post(to, b)
		}
	}
	ep.packets = packets
	s.length[(next+1)&1] = 0 // unless the rank puts another input
	s.result[next&1].lo, s.result[next&1].hi = lo, hi
	s.round.Store(next)
}

// showed stores a rank's part of a round.
func (g *group) showed(h head, body []byte) error {
	if len(body) < roundHead {
		return errPacket
	}
	n, lo, hi := int(binary.LittleEndian.Uint32(body)), int(binary.LittleEndian.Uint32(body[4:])), int(binary.LittleEndian.Uint32(body[8:]))
	body = body[roundHead:]
	s := &g.stages[h.from]
	if n > pieceBytes || lo > hi || hi > pieceBytes || len(body) != n+hi-lo || h.number != s.round.Load()+1 {
		return errPacket
	}
	copy(g.half(h.from, h.number), body[:n])
	if lo < hi {
		copy(g.half(g.rank, h.number-1)[lo:hi], body[n:])
	}
	s.result[h.number&1].lo, s.result[h.number&1].hi = lo, hi
	s.round.Store(h.number)
	return nil
}

func (ep *endpoint) Input(rank, n int) []byte { return ep.group.half(rank, ep.round)[:n] }

func (ep *endpoint) Result(rank int) (lo, hi int, result []byte) {
	r := ep.group.stages[rank].result[ep.round&1]
	return r.lo, r.hi, ep.group.half(ep.Rank(), ep.round-1)[r.lo:r.hi]
}
