package measure

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/ccl"
)

// sharedWords is memory that all ranks share, goroutines and processes alike.
//
// Rank 0 announces turns in it, and each rank writes what it has measured, for rank 0 to read. It
// needs no algorithm, which a configuration could refuse. Where the transport shares no memory,
// each rank has a copy, and messages bring the copies up to date.
//
// Its words are 8 bytes long: lineWords for the turn, two times lineWords for core to core, and
// rankWords for each rank: the CPU time, the wrong elements of each subject, and the start and end
// of each call of the turn.
type sharedWords struct {
	comm     *ccl.Communicator
	words    []int64
	subjects int
	calls    int  // of the longest turn
	isCopy   bool // each rank has its own
}

// lineWords is the distance of words that different ranks write: two cache lines, which
// processors fetch together.
const lineWords = 16

func newSharedWords(comm *ccl.Communicator, shared bool, subjects, calls int) (*sharedWords, error) {
	w := &sharedWords{comm: comm, subjects: subjects, calls: calls, isCopy: !shared}
	n := 3*lineWords + comm.Size()*w.rankLength()
	if w.isCopy {
		w.words = make([]int64, n)
		return w, nil
	}
	region, err := ccl.CreateSharedRegion[int64](background, comm, n)
	if err != nil {
		return nil, err
	}
	w.words = region.Slice() // until the communicator is closed
	return w, nil
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

// rankLength returns the number of words of each rank.
func (w *sharedWords) rankLength() int {
	return (1 + w.subjects + 2*w.calls + lineWords - 1) / lineWords * lineWords
}

// awaitAll waits for all ranks. If they share the words, it makes what they have written visible
// to all.
func (w *sharedWords) awaitAll() error { return w.comm.Barrier(background) }

// publish makes what rank 0 has announced visible to all.
func (w *sharedWords) publish() error {
	turn := w.words[:3]
	switch {
	case !w.isCopy:
		return w.awaitAll()
	case w.comm.Rank() > 0:
		_, err := ccl.Recv(background, w.comm, turn, 0, 0)
		return err
	}

	for rank := 1; rank < w.comm.Size(); rank++ {
		if err := ccl.Send(background, w.comm, turn, rank, 0); err != nil {
			return err
		}
	}
	return nil
}

// collect makes the words of all ranks visible to rank 0.
func (w *sharedWords) collect() error {
	switch {
	case !w.isCopy:
		return w.awaitAll()
	case w.comm.Rank() > 0:
		return ccl.Send(background, w.comm, w.ofRank(w.comm.Rank()).words, 0, 0)
	}
	for rank := 1; rank < w.comm.Size(); rank++ {
		if _, err := ccl.Recv(background, w.comm, w.ofRank(rank).words, rank, 0); err != nil {
			return err
		}
	}
	return nil
}

// announce writes the next turn, on rank 0.
func (w *sharedWords) announce(t turn) {
	w.words[0], w.words[1], w.words[2] = int64(t.subject), int64(t.steps), int64(t.skip)
}

// announced returns the turn that rank 0 has announced before the last publish.
func (w *sharedWords) announced() turn {
	return turn{subject: int(w.words[0]), steps: int(w.words[1]), skip: int(w.words[2])}
}

// counter returns the word that rank 0 or 1 writes in core to core.
func (w *sharedWords) counter(rank int) *int64 { return &w.words[(1+rank)*lineWords] }

// rankWords is one rank's part of the words.
type rankWords struct {
	words    []int64
	subjects int
}

func (w *sharedWords) ofRank(rank int) rankWords {
	n := w.rankLength()
	return rankWords{w.words[3*lineWords+rank*n:][:n], w.subjects}
}

func (r rankWords) cpu() time.Duration     { return time.Duration(r.words[0]) }
func (r rankWords) setCPU(d time.Duration) { r.words[0] = int64(d) }

// wrongElements returns the number of wrong elements of each subject.
func (r rankWords) wrongElements() []int64 { return r.words[1:][:r.subjects] }

// stamps returns the starts and ends of the calls, alternating.
func (r rankWords) stamps() []int64 { return r.words[1+r.subjects:] }
