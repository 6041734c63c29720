package ccl

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// queue holds the asynchronous calls of a communicator. One goroutine, started on demand, makes
// them in order; it ends when the queue is empty.
type queue struct {
	engine      *engine
	unasked     *failedWorks
	length      interleave.Int64 // including the call that is running
	mu          interleave.Mutex
	first, last *Work
	added       uint64        // calls so far
	moved       chan struct{} // if a call waits for the queue: closed when the first call has ended
	start       func()        // serve; kept because a new one is an allocation
}

func (q *queue) append(w *Work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.next = nil
	if q.first == nil {
		q.first = w
		interleave.Go(q.start)
	} else {
		q.last.next = w
	}
	q.last = w
	q.added++
	q.length.Add(1)
}

// serve makes the calls of the queue until it is empty.
func (q *queue) serve() {
	growStack(0)
	for q.serveFirst() {
	}
}

// growStack makes the stack of a new goroutine large enough for a call while there is almost
// nothing on it. Within the call all its frames would be moved, which takes 0.4 us.
//
//go:noinline
func growStack(i int) byte {
	var room [2 << 10]byte
	return room[i]
}

// serveFirst makes the first call of the queue and reports whether the queue has more.
func (q *queue) serveFirst() (more bool) {
	q.mu.Lock()
	w := q.first
	q.mu.Unlock()
	var err error
	returned := false
	w.begun = time.Since(origin)
	defer func() {
		if !returned {
			err = q.engine.errorSince(w.args.coll, q.engine.seq, "", w.opts[:],
				fmt.Errorf("ccl: %v: a kernel ended the goroutine of the call by runtime.Goexit", w.args.coll))
		}

		w.stopped = time.Since(origin)
		q.unasked.noteFailed(w, err)
		more = q.remove(w, err)
		if more && !returned { // the call has ended this goroutine
			interleave.Go(q.start)
		}
	}()

	if w.sums.on {
		if w.sums.on = q.engine.holds.life.HoldOpen(); w.sums.on { // until the last look at the buffers
			defer q.engine.holds.drop() //nolint:errcheck // Close has returned already
		}
	}
	err = q.runQueued(w)
	returned = true
	return
}

// runQueued makes the call of a Work whose turn it is.
func (q *queue) runQueued(w *Work) error {
	if rejection := w.checkAtTurn(); rejection != nil {
		if err := q.engine.start(context.Background(), w.args.coll, w.opts[:]); err != nil {
			return err
		}
		return q.engine.end(q.engine.rejectCall(&w.args, w.opts[:], rejection))
	}
	if err := q.engine.run(w.ctx, &w.args, w.lists, w.opts[:]); err != nil {
		return err
	}
	if err := w.checkAtEnd(); err != nil {
		return newCallError(w.args.coll.String(), &w.opts[0], err)
	}

	return nil
}

// remove ends the first call of the queue, and reports whether the queue has more. Whoever sees the
// end may add the Work again, to this queue or another one.
func (q *queue) remove(w *Work, err error) (more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first = w.next; q.first == nil {
		q.last = nil
	}
	w.finish(err)

	if q.moved != nil {
		interleave.Step()
		close(q.moved)
		q.moved = nil
	}
	q.length.Add(-1)
	return q.first != nil
}

// until returns nil if only calls are left that were added after the first n, and otherwise a
// channel that is closed when the first call of the queue has ended.
func (q *queue) until(n uint64) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.added-uint64(q.length.Load()) >= n {
		return nil
	}
	if q.moved == nil {
		q.moved = make(chan struct{})
	}
	return q.moved
}

// await waits, before a synchronous call, until the calls in the queue are done. The call's
// own timeout bounds the whole wait; without one, the configured timeout bounds the wait for
// each call in the queue. A call that gives up returns its error at once; for the other ranks it
// is rejected when the calls before it are done.
func (q *queue) await(ctx context.Context, coll Collective, opts []CallOption) error {
	if ctx == nil {
		return q.giveUp(coll, opts, nilContext(coll.String()))
	}

	q.engine.waiting.Add(1)
	defer q.engine.waiting.Add(-1)
	q.mu.Lock()
	before := q.added
	q.mu.Unlock()
	ofCall := mergeCallOptions(opts).timeout
	limit := ofCall
	if ofCall == 0 {
		limit = q.engine.selector.Timeout()
	}

	var timer *interleave.Timer
	var late <-chan time.Time
	if limit > 0 {
		timer = interleave.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	done := ctx.Done()
	for moved := q.until(before); moved != nil; moved = q.until(before) {
		switch interleave.FirstOfThree(moved, done, late) {
		case 0: // its error belongs to its own Work
		case 1:
			if q.engine.err() != nil { // that may have ended ctx, and ends the calls in the queue and then this one
				done, timer, limit = nil, nil, failureGrace
				late = interleave.After(limit)
				continue
			}
			return q.giveUp(coll, opts, q.engine.cancelled(coll, transport.ContextError(ctx)))
		default:
			return q.giveUp(coll, opts, fmt.Errorf("ccl: %v: waited for a call that was started before it and still runs: %w",
				coll, &transport.TimeoutError{By: q.engine.rank, After: limit}))
		}

		if ofCall == 0 && timer != nil {
			timer.Reset(limit)
		}
	}
	return nil
}

// giveUp adds a call to the queue that rejects its call number. It returns err.
func (q *queue) giveUp(coll Collective, opts []CallOption, err error) error {
	w := &Work{engine: q.engine}
	w.ctx, w.args.coll, w.rejection, w.gaveUp = context.Background(), coll, err, true
	w.opts[0] = q.engine.asynchronous(mergeCallOptions(opts))
	w.end.L = &w.mu
	q.append(w)
	return err
}
