package packet

import (
	"encoding/binary"

	"github.com/goccl/goccl/internal/interleave"
)

// pieceBytes is the length in bytes of the longest piece of a view in a group of few ranks, unless
// a transport has another one.
const pieceBytes = 128 << 10

// pieceLength returns the length in bytes of the longest piece in a group, if that is longest in a
// group of few ranks: every rank keeps two pieces of each rank, and sends its own to all others.
func pieceLength(longest, ranks int) int {
	return min(max(16*longest/ranks, 16<<10), longest) &^ 127
}

// A stage is what a rank shows in rounds, as in package shm: round k uses half k mod 2. Here every
// process has a copy of all halves. A rank that flips sends its input to all others, and each of
// them the result that it has stored to its copy of that one's half.
//
// Packets refer to halves and to inputs that stay, whose memory does not change before they have
// arrived: it is used again two rounds later, and a rank ends a round once it has the packets of
// all others, which they send once they have those of the round before. Results arrive in memory of
// their own, because the input may still be on its way to another rank.
type stage struct {
	round  interleave.Uint64
	halves [2]pieces
	result [2]span
}

// stages are those of all ranks of a group.
type stages struct {
	pieceBytes int       // of the longest piece
	ofRank     []stage   // by rank
	results    [2]pieces // of this rank's inputs, by round
}

func newStages(longest, ranks int) stages {
	return stages{pieceBytes: pieceLength(longest, ranks), ofRank: make([]stage, ranks)}
}

// half returns what a rank shows in a round.
func (s *stages) half(rank int, round uint64) []byte {
	return s.ofRank[rank].halves[round&1].memory(s.pieceBytes)
}

// result returns where the results of this rank's input of a round arrive.
func (s *stages) result(round uint64) []byte { return s.results[round&1].memory(s.pieceBytes) }

// pieces is memory for a piece, made on first use.
type pieces struct{ made interleave.Pointer[[]byte] }

func (p *pieces) memory(n int) []byte {
	if p.made.Load() == nil {
		b := make([]byte, n)
		p.made.CompareAndSwap(nil, &b)
	}
	return *p.made.Load()
}

// span is the bytes lo to hi of a piece.
type span struct{ lo, hi int }

func (s span) length() int { return s.hi - s.lo }

// roundHead is the length of what precedes the part of an input and the result of a round: where
// they begin and end.
const roundHead = 16

func (ep *Endpoint) PieceBytes() int { return ep.group.stages.pieceBytes }

// PutInput implements transport.Staging. What lo and hi leave out is sent as well: its contents are
// undefined.
func (ep *Endpoint) PutInput(piece []byte, lo, hi int) {
	half := ep.startPiece(len(piece))
	copy(half, piece[:lo])
	copy(half[hi:], piece[hi:])
	ep.input, ep.isInParts = half, false
}

// PutParts implements transport.Parts.
func (ep *Endpoint) PutParts(piece []byte, stays bool, part func(rank int) (lo, hi int)) {
	if ep.input = piece; !stays {
		ep.input = ep.startPiece(len(piece))
	}
	if ep.inputs == nil {
		ep.inputs = make([]span, ep.Size())
	}

	for rank := range ep.inputs {
		if rank != ep.Rank() {
			lo, hi := part(rank)
			lo, hi = min(lo, len(piece)), min(hi, len(piece))
			ep.inputs[rank] = span{lo, hi}
			if !stays {
				copy(ep.input[lo:hi], piece[lo:hi])
			}
		}
	}
	ep.isInParts = true
}

// startPiece returns where the copy of a piece of n bytes goes.
func (ep *Endpoint) startPiece(n int) []byte {
	return ep.group.stages.half(ep.Rank(), ep.round+1)[:n]
}

func (ep *Endpoint) PutResult(lo, hi int) { ep.resultLo, ep.resultHi = lo, hi }

func (ep *Endpoint) Flip() error {
	if ep.enterWasRound {
		ep.enterWasRound = false
		return nil
	}
	ep.sendRound()
	return ep.awaitRound()
}

func (ep *Endpoint) ResolveFlip() (isComplete bool) {
	return ep.ResolveRound(&ep.round, func(rank int) *interleave.Uint64 { return &ep.group.stages.ofRank[rank].round })
}

// awaitRound waits for what all ranks show in the next round.
func (ep *Endpoint) awaitRound() error {
	for peer := range ep.Size() {
		if err := ep.AwaitMessage(&ep.group.stages.ofRank[peer].round, ep.round+1, peer); err != nil {
			return err
		}
	}
	ep.round++
	return nil
}

// sendRound sends this rank's part of the next round to all other ranks.
func (ep *Endpoint) sendRound() {
	g, next := ep.group, ep.round+1
	s := &g.stages.ofRank[g.rank]
	lo, hi := ep.resultLo, ep.resultHi
	ep.resultLo, ep.resultHi = 0, 0
	input := ep.input
	ep.input = nil

	g.sending.Lock()
	defer g.sending.Unlock()
	for to := range g.processOf {
		if to == g.rank {
			continue
		}

		in := span{0, len(input)}
		if ep.isInParts && in.hi > 0 {
			in = ep.inputs[to]
		}

		body := Body{input[in.lo:in.hi]}
		if lo < hi {
			body[1] = g.stages.half(to, ep.round)[lo:hi]
		}
		b := g.newPacket(head{kind: kindRound, number: next}, roundHead, body.length())
		for i, n := range [...]int{in.lo, in.hi, lo, hi} {
			binary.LittleEndian.PutUint32(b[headBytes+4*i:], uint32(n))
		}
		g.postPacket(to, b, body)
	}
	s.result[next&1] = span{lo, hi}
	if !g.saidGoodbye.Load() { // otherwise no packet has gone, and this rank does not arrive
		s.round.Store(next)
	}
}

// parseRound returns the spans of a rank's part of a round.
func (g *group) parseRound(h head, body []byte) (in, result span, err error) {
	if len(body) < roundHead {
		return in, result, errBadPacket
	}
	var at [4]int
	for i := range at {
		at[i] = int(binary.LittleEndian.Uint32(body[4*i:]))
	}

	in, result = span{at[0], at[1]}, span{at[2], at[3]}
	isPart := func(s span) bool { return 0 <= s.lo && s.lo <= s.hi && s.hi <= g.stages.pieceBytes }
	isNext := h.number == g.stages.ofRank[h.from].round.Load()+1
	if !isPart(in) || !isPart(result) || !isNext {
		return in, result, errBadPacket
	}
	return in, result, nil
}

// placeRound returns where the rest of a rank's part of a round goes.
func (g *group) placeRound(h head, in, result span) Body {
	return Body{g.stages.half(h.from, h.number)[in.lo:in.hi], g.stages.result(h.number - 1)[result.lo:result.hi]}
}

// handleRound stores a rank's part of a round, the rest of which may be in its place.
func (g *group) handleRound(h head, body []byte, isPlaced bool) error {
	in, result, err := g.parseRound(h, body)
	switch {
	case err != nil:
		return err
	case !isPlaced && len(body)-roundHead != in.length()+result.length():
		return errBadPacket
	case !isPlaced:
		at := g.placeRound(h, in, result)
		copy(at[1], body[roundHead+copy(at[0], body[roundHead:]):])
	}

	s := &g.stages.ofRank[h.from]
	s.result[h.number&1] = result
	s.round.Store(h.number)
	return nil
}

func (ep *Endpoint) Input(rank, n int) []byte { return ep.group.stages.half(rank, ep.round)[:n] }

func (ep *Endpoint) Result(rank int) (lo, hi int, result []byte) {
	r := ep.group.stages.ofRank[rank].result[ep.round&1]
	return r.lo, r.hi, ep.group.stages.result(ep.round - 1)[r.lo:r.hi]
}
