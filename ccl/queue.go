package ccl

import (
	"context"
	"errors"
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
}

// begun is the Work of a call that waits for its turn now.
func (c *Communicator) begun(ctx context.Context, a arguments, opts []CallOption) *Work {
	w := &Work{ctx: ctx, args: a}
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
		go c.serve(w)
	} else {
		q.last.next = w
	}
	q.last = w
	q.length.Add(1)
	return w
}

// serve makes the calls of the queue, of which w is the first.
func (c *Communicator) serve(w *Work) {
	for w != nil {
		w = c.serveOne(w)
	}
}

// serveOne makes the first call of the queue and returns the next.
func (c *Communicator) serveOne(w *Work) (next *Work) {
	err := errors.New("its kernel ended the goroutine by runtime.Goexit")
	ended := false
	defer func() {
		q := &c.queue
		w.finish(err)
		q.mu.Lock()
		q.first = w.next
		if q.first == nil {
			q.last = nil
		}
		next = q.first
		q.mu.Unlock()
		q.length.Add(-1)
		if !ended && next != nil {
			go c.serve(next)
		}
	}()
	if err = w.args.check(c); err == nil {
		err = c.do(w.ctx, &w.args)
	} else {
		err = c.refusedInTurn(&w.args, err)
	}
	ended = true
	return nil
}

// turn waits until the calls that were begun before are done.
func (c *Communicator) turn() {
	c.queue.mu.Lock()
	w := c.queue.last
	c.queue.mu.Unlock()
	if w != nil {
		<-w.Done()
	}
}

// refusedInTurn refuses a call of the queue.
func (c *Communicator) refusedInTurn(a *arguments, err error) error {
	if err := c.begin(a.coll, a.opts[:]); err != nil {
		return err
	}
	return c.refuse(err)
}
