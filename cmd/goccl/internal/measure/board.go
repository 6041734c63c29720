package measure

import (
	"context"
	"time"

	"github.com/goccl/goccl/ccl"
)

// board is memory that all ranks share, goroutines and processes alike. On it rank 0 announces
// turns, and each rank leaves its report, which rank 0 reads. It needs no algorithm, which
// a configuration could refuse.
//
// Its words are 8 bytes long: lineWords for the turn, two times lineWords for core to core,
// and a report for each rank: the CPU time, the wrong elements of each contender, and the start
// and end of each call of the turn.
type board struct {
	comm       *ccl.Communicator
	words      []int64
	contenders int
	calls      int // of the longest turn
}

// lineWords is the distance of words that different ranks write: two cache lines, which
// processors fetch together.
const lineWords = 16

func newBoard(comm *ccl.Communicator, contenders, calls int) (*board, error) {
	b := &board{comm: comm, contenders: contenders, calls: calls}
	region, err := ccl.CreateSharedRegion[int64](background, comm, 3*lineWords+comm.Size()*b.reportWords())
	if err != nil {
		return nil, err
	}
	b.words = region.Slice() // until the communicator is closed
	return b, nil
}

// background is the context of all calls, as in a program without its own.
var background = context.Background()

func (b *board) reportWords() int {
	return (1 + b.contenders + 2*b.calls + lineWords - 1) / lineWords * lineWords
}

// fence makes everything that ranks have written visible to all.
func (b *board) fence() error { return b.comm.Barrier(background) }

// announce writes the next turn, on rank 0.
func (b *board) announce(t turn) {
	b.words[0], b.words[1], b.words[2] = int64(t.contender), int64(t.steps), int64(t.skip)
}

// announced returns the turn that rank 0 has announced before the last fence.
func (b *board) announced() turn {
	return turn{contender: int(b.words[0]), steps: int(b.words[1]), skip: int(b.words[2])}
}

// word returns the word that rank 0 or 1 writes in core to core.
func (b *board) word(rank int) *int64 { return &b.words[(1+rank)*lineWords] }

// report is one rank's part of the board.
type report struct {
	words      []int64
	contenders int
}

func (b *board) report(rank int) report {
	n := b.reportWords()
	return report{b.words[3*lineWords+rank*n:][:n], b.contenders}
}

func (r report) cpu() time.Duration     { return time.Duration(r.words[0]) }
func (r report) setCPU(d time.Duration) { r.words[0] = int64(d) }

// wrong returns the number of wrong elements of each contender.
func (r report) wrong() []int64 { return r.words[1:][:r.contenders] }

// stamps returns the starts and ends of the calls, alternating.
func (r report) stamps() []int64 { return r.words[1+r.contenders:] }
