package ccl

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
)

// queue holds the calls of a communicator that were begun and wait for their turn. A
// goroutine makes them, one after the other; it is there while there are any.
type queue struct {
	length      atomic.Int64 // of the queue, with the call that runs
	mu          sync.Mutex
	first, last *Work
	serve       func() // Communicator.serve
}

// begun is the Work of a call that waits for its turn now.
func (c *Communicator) begun(ctx context.Context, a arguments, opts []CallOption) *Work {
	w := &Work{ctx: ctx, args: a}
	w.end.L = &w.mu
	if err := c.unmade(a.coll.String()); err != nil {
		w.finish(err)
		return w
	}
	w.args.opts[0] = mergeCallOptions(opts)
	w.args.opts[0].queued = true
	w.args.seal(c)
	c.queue.append(w)
	return w
}

func (q *queue) append(w *Work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == nil {
		q.first = w
		go q.serve()
	} else {
		q.last.next = w
	}
	q.last = w
	q.length.Add(1)
}

// serve makes the calls of the queue until there are none.
func (c *Communicator) serve() {
	for c.serveFirst() {
	}
}

// serveFirst makes the first call of the queue and reports whether there is another.
func (c *Communicator) serveFirst() (more bool) {
	q := &c.queue
	q.mu.Lock()
	w := q.first
	q.mu.Unlock()
	err, returned := errGoexit, false
	defer func() {
		c.noteFailed(w, err)
		w.finish(err)
		q.mu.Lock()
		if q.first = w.next; q.first == nil {
			q.last = nil
		}
		more = q.first != nil
		q.mu.Unlock()
		q.length.Add(-1)
		if more && !returned { // this goroutine ends
			go q.serve()
		}
	}()
	if err = w.args.atTurn(); err != nil {
		err = c.refusedInTurn(&w.args, err)
	} else if err = c.do(w.ctx, &w.args); err == nil {
		err = w.args.atEnd()
	}
	returned = true
	return
}

// turn waits until the calls that were begun before are done. A call that was given a timeout
// waits no longer than that; another no longer than the configured one for each call that it
// waits for. One that gives up is refused: at once for its caller, and in its turn for the
// other ranks.
func (c *Communicator) turn(ctx context.Context, coll Collective, opts []CallOption) error {
	if ctx == nil {
		return c.giveUpTurn(coll, nilContext(coll.String()))
	}
	q := &c.queue
	q.mu.Lock()
	w, last := q.first, q.last
	q.mu.Unlock()
	own := mergeCallOptions(opts).timeout
	limit := own
	if own == 0 {
		limit = c.selector.Timeout()
	}
	var timer *time.Timer
	var late <-chan time.Time
	if limit > 0 {
		timer = time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	for w != nil {
		select {
		case <-w.Done():
		case <-ctx.Done():
			return c.giveUpTurn(coll, c.cancelled(coll, transport.ContextError(ctx)))
		case <-late:
			return c.giveUpTurn(coll, fmt.Errorf("ccl: %v on rank %d: waited for a call that was begun before it, and goes on: %w",
				coll, c.rank, &TimeoutError{By: c.rank, After: limit}))
		}
		if w == last {
			return nil // its error is for those who began it
		}
		if own == 0 && timer != nil {
			timer.Reset(limit)
		}
		q.mu.Lock()
		w = w.next
		q.mu.Unlock()
	}
	return nil
}

// giveUpTurn puts a call on the queue that is refused when its turn comes. It returns err.
func (c *Communicator) giveUpTurn(coll Collective, err error) error {
	w := &Work{ctx: context.Background(), args: arguments{coll: coll, refused: err}, asked: true, returned: true}
	w.args.opts[0].queued = true
	w.end.L = &w.mu
	c.queue.append(w)
	return err
}

// refusedInTurn refuses a call of the queue.
func (c *Communicator) refusedInTurn(a *arguments, err error) error {
	if err := c.start(context.Background(), a.coll, a.opts[:]); err != nil {
		return err
	}
	return c.end(c.refuse(err))
}
