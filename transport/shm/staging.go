package shm

import (
	"sync/atomic"

	"github.com/goccl/goccl/internal/bulk"
)

// stage is a rank's position in windows. Pieces are counted over all calls, and
// piece k uses the halves k mod 2. A half is rewritten for piece k+2 by a rank
// that has seen everybody at piece k+1, and a rank gets to k+1 only when it has
// done with k: two halves are enough.
//
//	  0  staged  8      pieces staged so far
//	128  folded  8      pieces whose staged copies this rank has done with
//	136  lo, hi  2 * 8  by parity: which bytes of the piece its result holds
type stage struct {
	staged atomic.Uint64
	_      [120]byte
	folded atomic.Uint64
	result [2]struct{ lo, hi uint64 }
	_      [88]byte
}

const stageBytes = 256

func (ep *endpoint) stage(rank int) *stage {
	return at[stage](ep.arena, ep.layout.stages+rank*stageBytes)
}

// half returns rank's staged copy (0) or result (1) of the current piece.
func (ep *endpoint) half(rank, which int) []byte {
	i := 4*rank + 2*which + int(ep.piece&1)
	return ep.arena.bytes(ep.layout.pieces+i*ep.layout.piece, ep.geometry.Piece)
}

func (ep *endpoint) PieceBytes() int { return ep.geometry.Piece }

func (ep *endpoint) Stage(piece []byte, lo, hi int) error {
	ep.piece++
	half := ep.half(ep.Rank(), 0)
	bulk.Copy(half, piece[:lo])
	bulk.Copy(half[hi:], piece[hi:])
	ep.stage(ep.Rank()).staged.Store(ep.piece)
	return ep.awaitStages(func(s *stage) *atomic.Uint64 { return &s.staged })
}

func (ep *endpoint) Staged(rank, n int) []byte { return ep.half(rank, 0)[:n] }

func (ep *endpoint) Share(lo int, result []byte) error {
	s := ep.stage(ep.Rank())
	r := &s.result[ep.piece&1]
	r.lo, r.hi = uint64(lo), uint64(lo+len(result))
	bulk.Copy(ep.half(ep.Rank(), 1)[lo:], result)
	s.folded.Store(ep.piece)
	return ep.awaitStages(func(s *stage) *atomic.Uint64 { return &s.folded })
}

func (ep *endpoint) Shared(rank int) (lo, hi int, result []byte) {
	r := &ep.stage(rank).result[ep.piece&1]
	lo, hi = int(r.lo), int(r.hi)
	return lo, hi, ep.half(rank, 1)[lo:hi]
}

// awaitStages wakes who waits for this rank, and waits until a word of all other
// ranks has reached the current piece.
func (ep *endpoint) awaitStages(word func(*stage) *atomic.Uint64) error {
	ep.group.WakeWaiters(ep.Rank())
	for peer := range ep.Size() {
		if peer == ep.Rank() {
			continue
		}
		if err := ep.AwaitMessage(word(ep.stage(peer)), ep.piece, peer); err != nil {
			return err
		}
	}
	return nil
}
