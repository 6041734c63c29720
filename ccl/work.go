package ccl

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl/transport"
)

// Work is a call that was begun and need not be waited for. Its buffers, counts and
// displacements belong to it until it is done: they are not to be written, nor its
// outputs read, before (with debug in ccl.yaml that is checked). One that nobody waits
// for costs nothing; but Close drops those that have not ended: see Drain. Its methods may
// be called by anyone at any time.
type Work struct {
	ctx  context.Context
	args arguments
	next *Work // in the queue

	returned bool // its caller has returned: it only refuses its call

	mu    sync.Mutex
	end   sync.Cond // of those who wait and nothing else can stop
	ended bool
	asked bool // for the error, after it has ended
	err   error
	done  chan struct{} // made by the first who asks for it

	source int   // of a message
	ranks  []int // of the group that sources are numbers in, where they are not the message's
}

// Wait returns when the call is done, with its error, or when ctx ends, with that of
// ctx and its cause: then the call goes on. It may be called any number of times. A context
// that is nil is an *InvalidArgumentError.
func (w *Work) Wait(ctx context.Context) error {
	if ctx == nil {
		return nilContext("wait")
	}
	if ended, err := w.ask(); ended {
		return err
	}
	err := w.await(ctx)
	_, _ = w.ask()
	return err
}

// await is Wait for the engine, which does not ask for the error.
func (w *Work) await(ctx context.Context) error {
	if ctx.Done() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		for !w.ended {
			w.end.Wait()
		}
		return w.err
	}
	select {
	case <-w.Done():
		_, err := w.state()
		return err
	case <-ctx.Done():
		if ended, err := w.state(); ended {
			return err
		}
		return fmt.Errorf("ccl: waiting for a call, which goes on: %w", transport.ContextError(ctx))
	}
}

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

// Err returns the error of a call that is done, nil if it succeeded or goes on.
func (w *Work) Err() error {
	_, err := w.ask()
	return err
}

// Source returns the rank that sent the message of an Irecv that is done; before, and
// for other calls, it means nothing. See WithGlobalSource.
func (w *Work) Source() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ranks != nil && w.source >= 0 {
		return w.ranks[w.source]
	}
	return w.source
}

// ask is state for the program.
func (w *Work) ask() (ended bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = w.asked || w.ended
	return w.ended, w.err
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
	if w.done != nil {
		close(w.done)
	}
	w.ctx, w.args = nil, arguments{} // the buffers are the caller's again
}

// arguments are those of any call.
type arguments struct {
	coll                   Collective
	dtype                  DType
	op                     Op
	send, recv             Buffer
	tensors                []Buffer // of a coalesced all-reduce
	root                   int
	counts, displs         []int // those of the buffer that has blocks, or of send
	recvCounts, recvDispls []int
	opts                   [1]CallOption
	sums                   sums  // of debug
	refused                error // why the call is refused when its turn comes
}

// do makes a call.
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
	case CollGather, CollScatter:
		return c.rooted(ctx, a.coll, a.dtype, a.send, a.recv, a.root, opts)
	case collGatherLengths, collScatterLengths:
		return c.rootedV(ctx, a.coll, a.dtype, a.send, a.recv, a.counts, a.displs, a.root, opts)
	case CollAllToAll:
		return c.allToAll(ctx, a.dtype, a.send, a.recv, opts)
	default: // collAllToAllLengths
		return c.allToAllV(ctx, a.dtype, a.send, a.counts, a.displs, a.recv, a.recvCounts, a.recvDispls, opts)
	}
}
