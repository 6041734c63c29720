//go:build linux && (amd64 || arm64)

package mpi

import (
	"encoding/binary"

	"github.com/goccl/goccl/internal/interleave"
)

// pieceBytes is the length in bytes of the longest piece of a view in a group of few ranks.
const pieceBytes = 128 << 10

// pieceLength returns the length in bytes of the longest piece in a group: every rank keeps two
// pieces of each rank, and sends its own to all others.
func pieceLength(ranks int) int { return min(max(2<<20/ranks, 16<<10), pieceBytes) &^ 127 }

// A stage is what a rank shows in rounds, as in package shm: round k uses half k mod 2, and results
// are stored over the inputs that they are the results of. Here every process has a copy of all
// halves. A rank that flips sends its input to all others, and each of them the result that it has
// stored to its copy of that one's half.
type stage struct {
	round  interleave.Uint64
	halves [2]interleave.Pointer[[]byte] // made on first use
	length [2]int                        // of this rank's input in each half
	result [2]span
}

// stages are those of all ranks of a group.
type stages struct {
	pieceBytes int     // of the longest piece
	ofRank     []stage // by rank
}

func newStages(ranks int) stages {
	return stages{pieceBytes: pieceLength(ranks), ofRank: make([]stage, ranks)}
}

// half returns what a rank shows in a round.
func (s *stages) half(rank int, round uint64) []byte {
	h := &s.ofRank[rank].halves[round&1]
	if h.Load() == nil {
		b := make([]byte, s.pieceBytes)
		h.CompareAndSwap(nil, &b)
	}
	return *h.Load()
}

// span is the bytes lo to hi of a piece.
type span struct{ lo, hi int }

// roundHead is the length of what precedes the part of an input and the result of a round: where
// they begin and end.
const roundHead = 16

func (ep *endpoint) PieceBytes() int { return ep.group.stages.pieceBytes }

// PutInput implements transport.Staging. What lo and hi leave out is sent as well: its contents are
// undefined.
func (ep *endpoint) PutInput(piece []byte, lo, hi int) {
	half := ep.startPiece(piece)
	copy(half, piece[:lo])
	copy(half[hi:], piece[hi:])
	ep.isInParts = false
}

// PutParts implements transport.Parts.
func (ep *endpoint) PutParts(piece []byte, part func(rank int) (lo, hi int)) {
	half := ep.startPiece(piece)
	if ep.inputs == nil {
		ep.inputs = make([]span, ep.Size())
	}

	for rank := range ep.inputs {
		if rank != ep.Rank() {
			lo, hi := part(rank)
			lo, hi = min(lo, len(piece)), min(hi, len(piece))
			ep.inputs[rank] = span{lo, hi}
			copy(half[lo:hi], piece[lo:hi])
		}
	}
	ep.isInParts = true
}

// startPiece returns where a piece goes.
func (ep *endpoint) startPiece(piece []byte) []byte {
	ep.group.stages.ofRank[ep.Rank()].length[(ep.round+1)&1] = len(piece)
	return ep.group.stages.half(ep.Rank(), ep.round+1)
}

func (ep *endpoint) PutResult(lo, hi int) { ep.resultLo, ep.resultHi = lo, hi }

func (ep *endpoint) Flip() error {
	if ep.enterWasRound {
		ep.enterWasRound = false
		return nil
	}
	ep.sendRound()
	return ep.awaitRound()
}

func (ep *endpoint) ResolveFlip() (isComplete bool) {
	return ep.ResolveRound(&ep.round, func(rank int) *interleave.Uint64 { return &ep.group.stages.ofRank[rank].round })
}

// awaitRound waits for what all ranks show in the next round.
func (ep *endpoint) awaitRound() error {
	for peer := range ep.Size() {
		if err := ep.AwaitMessage(&ep.group.stages.ofRank[peer].round, ep.round+1, peer); err != nil {
			return err
		}
	}
	ep.round++
	return nil
}

// sendRound sends this rank's part of the next round to all other ranks.
func (ep *endpoint) sendRound() {
	g, next := ep.group, ep.round+1
	s := &g.stages.ofRank[g.rank]
	lo, hi := ep.resultLo, ep.resultHi
	ep.resultLo, ep.resultHi = 0, 0
	half := g.stages.half(g.rank, next)

	// Make all packets before the first one goes: a rank that has its packet may send a result,
	// which overwrites the input.
	packets := ep.packets[:0]
	for to := range g.processOf {
		if to == g.rank {
			packets = append(packets, nil)
			continue
		}

		in := span{0, s.length[next&1]}
		if ep.isInParts && in.hi > 0 {
			in = ep.inputs[to]
		}

		b := g.newPacket(head{kind: kindRound, number: next}, roundHead+in.hi-in.lo+hi-lo)
		body := b[headBytes:]
		for i, n := range [...]int{in.lo, in.hi, lo, hi} {
			binary.LittleEndian.PutUint32(body[4*i:], uint32(n))
		}
		n := copy(body[roundHead:], half[in.lo:in.hi])
		if lo < hi {
			copy(body[roundHead+n:], g.stages.half(to, ep.round)[lo:hi])
		}
		packets = append(packets, b)
	}

	g.sending.Lock()
	defer g.sending.Unlock()
	for to, b := range packets {
		if to != g.rank {
			g.postPacket(to, b)
		}
	}
	ep.packets = packets
	s.length[(next+1)&1] = 0 // unless the rank puts another input
	s.result[next&1] = span{lo, hi}
	if !g.saidGoodbye.Load() { // otherwise no packet has gone, and this rank does not arrive
		s.round.Store(next)
	}
}

// handleRound stores a rank's part of a round.
func (g *group) handleRound(h head, body []byte) error {
	if len(body) < roundHead {
		return errBadPacket
	}
	var at [4]int
	for i := range at {
		at[i] = int(binary.LittleEndian.Uint32(body[4*i:]))
	}

	in, result := span{at[0], at[1]}, span{at[2], at[3]}
	body = body[roundHead:]
	s := &g.stages.ofRank[h.from]
	isPart := func(s span) bool { return s.lo <= s.hi && s.hi <= g.stages.pieceBytes }
	if !isPart(in) || !isPart(result) || len(body) != in.hi-in.lo+result.hi-result.lo || h.number != s.round.Load()+1 {
		return errBadPacket
	}

	n := copy(g.stages.half(h.from, h.number)[in.lo:in.hi], body)
	if result.lo < result.hi {
		copy(g.stages.half(g.rank, h.number-1)[result.lo:result.hi], body[n:])
	}
	s.result[h.number&1] = result
	s.round.Store(h.number)
	return nil
}

func (ep *endpoint) Input(rank, n int) []byte { return ep.group.stages.half(rank, ep.round)[:n] }

func (ep *endpoint) Result(rank int) (lo, hi int, result []byte) {
	r := ep.group.stages.ofRank[rank].result[ep.round&1]
	return r.lo, r.hi, ep.group.stages.half(ep.Rank(), ep.round-1)[r.lo:r.hi]
}
