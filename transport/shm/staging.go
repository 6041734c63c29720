package shm

import (
	"fmt"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/memmove"
	"github.com/goccl/goccl/transport"
)

// stage is a rank's position in rounds. Rounds are counted over all calls.
//
// Round k uses half k mod 2. A rank writes the half of round k+2 after all ranks have arrived at
// round k+1, and a rank arrives there only after it has finished reading round k; so two halves
// suffice. If Enter counts as a round, a rank arrives at it by its line, and does not store it in
// the word round.
//
// In round k ranks store their results over the inputs that they have reduced. Each rank takes the
// results from its own half in round k+1, before it writes the input of round k+2 there.
//
// (rules halvesAlternate, readBeforeNext, takeBeforeCopy, copyBeforeArrival since PutInput precedes
// Flip, awaitAll)
//
// A cache line that ranks write in turns, each after it has read it, costs half to a third of one
// that the same rank always writes and another always reads.
//
//	0  round   8      the last round at which the rank has arrived by Flip
//	8  lo, hi  2 * 16 by parity of the round: the bytes of its result
type stage struct {
	round  interleave.Uint64
	result [2]result
	_      [88]byte
}

// result is the bytes lo to hi of a piece.
type result struct{ lo, hi uint64 }

const stageBytes = 128

func (ep *endpoint) stage(rank int) *stage {
	return at[stage](ep.arena, ep.layout.stages+rank*stageBytes)
}

// half returns rank's input of a round, and the results stored over it.
func (ep *endpoint) half(rank int, round uint64) []byte {
	i := 2*rank + int(round&1)
	return ep.arena.bytes(ep.layout.pieces+i*ep.layout.piece, ep.geometry.Piece)
}

func (ep *endpoint) PieceBytes() int { return ep.geometry.Piece }

func (ep *endpoint) PutInput(piece []byte, lo, hi int) {
	half := ep.half(ep.Rank(), ep.round+1)
	memmove.Copy(half, piece[:lo])
	memmove.Copy(half[hi:], piece[hi:])
}

func (ep *endpoint) PutResult(lo, hi int) { ep.pending = result{uint64(lo), uint64(hi)} }

func (ep *endpoint) Flip() error {
	if ep.enterWasRound {
		ep.enterWasRound = false
		return nil
	}
	ep.publishResult()
	ep.stage(ep.Rank()).round.Store(ep.round + 1)
	ep.WakeWaiters()

	for peer := range ep.Size() {
		if peer == ep.Rank() {
			continue
		}
		if err := ep.AwaitMessage(&ep.stage(peer).round, ep.round+1, peer); err != nil {
			return err
		}
	}
	ep.round++
	return nil
}

func (ep *endpoint) ResolveFlip() (isComplete bool) {
	return ep.ResolveRound(&ep.round, func(rank int) *interleave.Uint64 { return &ep.stage(rank).round })
}

// publishResult stores which bytes of its result this rank shows in the next round. It does so
// once, just before the round, because other ranks may poll the cache line.
func (ep *endpoint) publishResult() {
	if r := &ep.stage(ep.Rank()).result[(ep.round+1)&1]; *r != ep.pending {
		*r = ep.pending
	}
	ep.pending = result{}
}

func (ep *endpoint) Input(rank, n int) []byte { return ep.half(rank, ep.round)[:n] }

func (ep *endpoint) Result(rank int) (lo, hi int, bytes []byte) {
	r := &ep.stage(rank).result[ep.round&1]
	shows := *r // one copy, since the other rank could change it
	if shows.lo > shows.hi || shows.hi > uint64(ep.geometry.Piece) {
		panic(&transport.ProtocolError{Peer: rank, Text: fmt.Sprintf(
			"it shows results from byte %d to byte %d of a piece of %d", shows.lo, shows.hi, ep.geometry.Piece)})
	}
	lo, hi = int(shows.lo), int(shows.hi)
	return lo, hi, ep.half(ep.Rank(), ep.round-1)[lo:hi]
}
