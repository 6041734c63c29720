package measure

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/ccl"
)

// board is memory that all ranks share, goroutines and processes alike. On it rank 0 announces
// turns, and each rank leaves its report, which rank 0 reads. It needs no algorithm, which
// a configuration could refuse. Where the transport shares no memory, each rank has a copy, and messages bring
// the copies up to date.
//
// Its words are 8 bytes long: lineWords for the turn, two times lineWords for core to core,
// and a report for each rank: the CPU time, the wrong elements of each contender, and the start
// and end of each call of the turn.
type board struct {
	comm       *ccl.Communicator
	words      []int64
	contenders int
	calls      int // of the longest turn
	copied     bool
}

// lineWords is the distance of words that different ranks write: two cache lines, which
// processors fetch together.
const lineWords = 16

func newBoard(comm *ccl.Communicator, shared bool, contenders, calls int) (*board, error) {
	b := &board{comm: comm, contenders: contenders, calls: calls, copied: !shared}
	n := 3*lineWords + comm.Size()*b.reportWords()
	if b.copied {
		b.words = make([]int64, n)
		return b, nil
	}
	region, err := ccl.CreateSharedRegion[int64](background, comm, n)
	if err != nil {
		return nil, err
	}
	b.words = region.Slice() // until the communicator is closed
	return b, nil
}

// sharesMemory reports whether the ranks of a group can have memory in common.
func sharesMemory(comm *ccl.Communicator) (bool, error) {
	if comm.SplitLocal().Size() < comm.Size() {
		return false, nil // each node has its own
	}
	region, err := ccl.CreateSharedRegion[int64](background, comm, 1)
	if errors.Is(err, ccl.ErrNotImplemented) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, region.Close()
}

// background is the context of all calls, as in a program without its own.
var background = context.Background()

func (b *board) reportWords() int {
	return (1 + b.contenders + 2*b.calls + lineWords - 1) / lineWords * lineWords
}

// fence waits for all ranks. If they share the board, it makes what they have written visible to all.
func (b *board) fence() error { return b.comm.Barrier(background) }

// publish makes what rank 0 has announced visible to all.
func (b *board) publish() error {
	switch turn := b.words[:3]; {
	case !b.copied:
		return b.fence()
	case b.comm.Rank() > 0:
		_, err := ccl.Recv(background, b.comm, turn, 0, 0)
		return err
	default:
		for rank := 1; rank < b.comm.Size(); rank++ {
			if err := ccl.Send(background, b.comm, turn, rank, 0); err != nil {
				return err
			}
		}
		return nil
	}
}

// collect makes the reports of all ranks visible to rank 0.
func (b *board) collect() error {
	switch own := b.report(b.comm.Rank()); {
	case !b.copied:
		return b.fence()
	case b.comm.Rank() > 0:
		return ccl.Send(background, b.comm, own.words, 0, 0)
	default:
		for rank := 1; rank < b.comm.Size(); rank++ {
			if _, err := ccl.Recv(background, b.comm, b.report(rank).words, rank, 0); err != nil {
				return err
			}
		}
		return nil
	}
}

// announce writes the next turn, on rank 0.
func (b *board) announce(t turn) {
	b.words[0], b.words[1], b.words[2] = int64(t.contender), int64(t.steps), int64(t.skip)
}

// announced returns the turn that rank 0 has announced before the last publish.
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
