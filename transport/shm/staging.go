package shm

import (
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl/internal/memmove"
	"github.com/goccl/goccl/transport"
)

// stage is a rank's position in rounds. Rounds are counted over all calls. Round k uses half k
// mod 2. A rank writes the half of round k+2 after all ranks have arrived at round k+1, and a
// rank arrives there only after it has finished reading round k; so two halves suffice. If Enter
// counts as a round, a rank arrives at it by its line, and does not store it in the word round.
// Rules halvesAlternate, readBeforeNext, copyBeforeArrival (PutInput and PutResult
// precede Flip) and awaitAll.
//
//	0  round   8      the last round at which the rank has arrived by Flip
//	8  lo, hi  2 * 16 by parity of the round: the bytes that its result holds
type stage struct {
	round  atomic.Uint64
	result [2]result
	_      [88]byte
}

// result is the bytes lo to hi of a piece.
type result struct{ lo, hi uint64 }

const stageBytes = 128

func (ep *endpoint) stage(rank int) *stage {
	return at[stage](ep.arena, ep.layout.stages+rank*stageBytes)
}

// half returns rank's input (which 0) or result (which 1) of a round.
func (ep *endpoint) half(rank, which int, round uint64) []byte {
	i := 4*rank + 2*which + int(round&1)
	return ep.arena.bytes(ep.layout.pieces+i*ep.layout.piece, ep.geometry.Piece)
}

func (ep *endpoint) PieceBytes() int { return ep.geometry.Piece }

func (ep *endpoint) PutInput(piece []byte, lo, hi int) {
	half := ep.half(ep.Rank(), 0, ep.round+1)
	memmove.Copy(half, piece[:lo])
	memmove.Copy(half[hi:], piece[hi:])
}

func (ep *endpoint) PutResult(lo int, bytes []byte) {
	ep.pending = result{uint64(lo), uint64(lo + len(bytes))}
	memmove.Copy(ep.half(ep.Rank(), 1, ep.round+1)[lo:], bytes)
}

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

// publishResult stores which bytes of its result this rank shows in the next round. It does so
// once, just before the round, because other ranks may poll the cache line.
func (ep *endpoint) publishResult() {
	if r := &ep.stage(ep.Rank()).result[(ep.round+1)&1]; *r != ep.pending {
		*r = ep.pending
	}
	ep.pending = result{}
}

func (ep *endpoint) Input(rank, n int) []byte { return ep.half(rank, 0, ep.round)[:n] }

func (ep *endpoint) Result(rank int) (lo, hi int, bytes []byte) {
	r := &ep.stage(rank).result[ep.round&1]
	shows := *r // one copy, since the other rank could change it
	if shows.lo > shows.hi || shows.hi > uint64(ep.geometry.Piece) {
		panic(&transport.ProtocolError{Peer: rank, Text: fmt.Sprintf(
			"it shows results from byte %d to byte %d of a piece of %d", shows.lo, shows.hi, ep.geometry.Piece)})
	}
	lo, hi = int(shows.lo), int(shows.hi)
	return lo, hi, ep.half(rank, 1, ep.round)[lo:hi]
}
