package ccl

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
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
	if c == nil {
		w.finish(fmt.Errorf("ccl: %v: %w: it is nil", a.coll, ErrInvalidCommunicator))
		return w
	}
	w.args.opts[0] = mergeCallOptions(opts)
	w.args.opts[0].queued = true
	w.args.seal(c)
	q := &c.queue
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
	return w
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

// turn waits until the calls that were begun before are done.
func (c *Communicator) turn() {
	c.queue.mu.Lock()
	w := c.queue.last
	c.queue.mu.Unlock()
	if w != nil {
		_ = w.await(context.Background()) // its error is for those who began it
	}
}

// refusedInTurn refuses a call of the queue.
func (c *Communicator) refusedInTurn(a *arguments, err error) error {
	if err := c.begin(a.coll, a.opts[:]); err != nil {
		return err
	}
	return c.refuse(err)
}
