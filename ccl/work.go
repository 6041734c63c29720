package ccl

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/goccl/goccl/transport"
)

// Work is a collective, a send or a receive that runs asynchronously. Until it is
// done, the program must not write its buffers, counts and displacements, nor read its outputs
// (defaults.debug in ccl.yaml checks this). A program need not call Wait, but Close drops Works
// that have not ended: see Drain. The methods of Work may be called concurrently.
type Work struct {
	ctx  context.Context
	comm *Communicator // nil: the Work has ended from the start
	args arguments
	next *Work // in the queue

	gaveUp bool // the caller has its error already: the call is refused when it is the first

	mu    sync.Mutex
	end   sync.Cond // signals ended
	ended bool
	waits int // goroutines of the program in Wait
	err   error
	done  chan struct{} // nil until Done is called
	wake  chan struct{} // nil until await needs it; has room for one token, which says that the call may have ended

	failed *failedRun // nil: it has not failed, or no Drain returns its error

	begun, stopped time.Duration // of a collective, since origin

	source int   // the sender of a message
	ranks  []int // the global rank of each source; nil: Source is the group's rank
}

// Wait returns the error of the call when it is done. If ctx ends first, Wait returns the error
// of ctx and its cause, and the call goes on. If the group has failed by then, the call ends as
// well, and Wait returns its error, with the group's failure. Wait may be called several times. A
// nil ctx is an *InvalidArgumentError. Unless it is known where the call was started, its *CallError says where the
// program waited; it is then a copy of the one that Err returns.
func (w *Work) Wait(ctx context.Context) error {
	if ctx == nil {
		return nilContext("wait")
	}
	if ended, err := w.ask(); ended {
		return waitedFor(err)
	}
	w.addWaits(1)
	err := w.await(ctx)
	w.addWaits(-1)
	_, _ = w.ask()
	return waitedFor(err)
}

// addWaits counts goroutines of the program in Wait.
func (w *Work) addWaits(n int) {
	w.comm.queue.waiting.Add(int64(n))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits += n
}

// isAwaited reports whether a goroutine of the program is in Wait.
func (w *Work) isAwaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waits > 0
}

// await is Wait without marking the error as seen by the program.
func (w *Work) await(ctx context.Context) error {
	if ctx.Done() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		for !w.ended {
			w.end.Wait()
		}
		return w.err
	}
	w.mu.Lock()
	if w.wake == nil {
		w.wake = make(chan struct{}, 1)
	}
	w.mu.Unlock()
	for {
		if ended, err := w.state(); ended {
			w.signal() // the next goroutine that waits
			return err
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			if ended, err := w.state(); ended {
				w.signal()
				return err
			}
			return w.giveUp(ctx)
		}
	}
}

// signal makes a goroutine in await look whether the call has ended. The token that it may leave makes a later one look
// in vain.
func (w *Work) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // there is a token, or no goroutine has waited
	}
}

// giveUp returns the error of a wait whose context has ended.
func (w *Work) giveUp(ctx context.Context) error {
	failure := w.comm.Err()
	if failure != nil { // which may have ended ctx, and ends the call
		select {
		case <-w.Done():
			_, err := w.state()
			w.signal()
			return err
		case <-time.After(failureGrace):
		}
	}
	err := fmt.Errorf("ccl: waiting for a call, which still runs: %w", transport.ContextError(ctx))
	if failure != nil {
		err = fmt.Errorf("%w: %w", err, failure)
	}
	return err
}

// failureGrace is how long a wait whose context has ended goes on for a call of a failed group. Such a call
// ends at once, except if a kernel does not return.
const failureGrace = time.Second

// Done returns a channel that is closed when the call is done.
func (w *Work) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.ended {
			close(w.done)
		}
	}
	return w.done
}

// Err returns the error of a call that is done. It is nil if the call succeeded or is not done.
func (w *Work) Err() error {
	_, err := w.ask()
	return err
}

// Times returns when a collective that is done began to run, after the calls that were started before it,
// and when it ended; waiting for slower ranks is part of that. They are zero if the call is not done or did
// not run, and for messages.
func (w *Work) Times() (begun, ended time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended || w.stopped == 0 {
		return time.Time{}, time.Time{}
	}
	return origin.Add(w.begun), origin.Add(w.stopped)
}

// Source returns the rank that sent the message, once an Irecv has succeeded. Before that, and
// for other calls, the result is undefined. See WithGlobalSource.
func (w *Work) Source() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ranks != nil && w.source >= 0 {
		return w.ranks[w.source]
	}
	return w.source
}

// ask is state, and marks the error as seen by the program.
func (w *Work) ask() (ended bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		w.markSeen()
	}
	return w.ended, w.err
}

// markSeen notes that the program has seen err. The caller holds mu.
func (w *Work) markSeen() {
	if w.failed != nil {
		w.failed.seen.Store(true)
	}
}

func (w *Work) state() (ended bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended, w.err
}

func (w *Work) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended, w.err = true, err
	w.end.Broadcast()
	w.signal()
	if w.done != nil {
		close(w.done)
	}
	w.ctx, w.args = nil, arguments{} // releases the buffers
}

// arguments holds the arguments of any collective.
type arguments struct {
	coll                   Collective
	dtype                  DType
	op                     Op
	send, recv             Buffer
	tensors                []Buffer // not nil: AllReduceCoalesced
	root                   int
	counts, displs         []int // of the buffer with blocks; of send, if both have blocks
	recvCounts, recvDispls []int
	opts                   [1]CallOption
	sums                   sums  // for defaults.debug
	refused                error // refuse the call with this error
}

// do makes the call that a describes.
func (c *Communicator) do(ctx context.Context, a *arguments) error {
	opts := a.opts[:]
	switch a.coll {
	case CollBarrier:
		return c.Barrier(ctx, opts...)
	case CollAllReduce:
		if a.tensors != nil {
			if err := c.start(ctx, a.coll, opts); err != nil {
				return err
			}
			return c.allReduceCoalesced(ctx, a.dtype, a.tensors, a.op, opts)
		}
		return c.allReduce(ctx, a.dtype, a.send, a.recv, a.op, opts)
	case CollReduce:
		return c.reduce(ctx, a.dtype, a.send, a.recv, a.op, a.root, opts)
	case CollReduceScatter:
		return c.reduceScatter(ctx, a.dtype, a.send, a.recv, a.op, a.counts, opts)
	case CollScan, CollExScan:
		return c.scan(ctx, a.coll, a.dtype, a.send, a.recv, a.op, opts)
	case CollAllGather:
		return c.allGather(ctx, a.dtype, a.send, a.recv, a.counts, a.displs, opts)
	case CollBroadcast:
		return c.broadcast(ctx, a.dtype, a.recv, a.root, opts)
	case CollGather, CollScatter, collGatherLengths, collScatterLengths:
		return c.rooted(ctx, a.coll, a.dtype, a.send, a.recv, a.counts, a.displs, a.root, opts)
	case CollAllToAll:
		return c.allToAll(ctx, a.dtype, a.send, a.recv, opts)
	default: // collAllToAllLengths
		return c.allToAllV(ctx, a.dtype, a.send, a.counts, a.displs, a.recv, a.recvCounts, a.recvDispls, opts)
	}
}
