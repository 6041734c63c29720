package ccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/transport"
)

// UnfinishedError counts Works that had not ended when a communicator was closed, or
// that Drain does not wait for. Works of a communicator that is closed end with
// ErrClosed, but for a call that ended in the same moment.
type UnfinishedError struct {
	Calls    int // collectives
	Sends    int // of Isend
	Receives int // of Irecv
}

func (e *UnfinishedError) Error() string {
	var parts []string
	all := 0
	for _, p := range [...]struct {
		n    int
		what string
	}{{e.Calls, "call"}, {e.Sends, "send"}, {e.Receives, "receive"}} {
		if all += p.n; p.n == 1 {
			parts = append(parts, "1 "+p.what)
		} else if p.n > 1 {
			parts = append(parts, fmt.Sprintf("%d %ss", p.n, p.what))
		}
	}
	verb, last := "has", len(parts)-1
	if all > 1 {
		verb = "have"
	}
	if last > 0 {
		parts = []string{strings.Join(parts[:last], ", ") + " and " + parts[last]}
	}
	return strings.Join(parts, "") + " " + verb + " not ended: wait for a Work before its communicator is closed"
}

// or returns the error, nil if it counts nothing.
func (e *UnfinishedError) or() error {
	if *e == (UnfinishedError{}) {
		return nil
	}
	return e
}

// Drain waits until the calls and sends that were begun before, by Async functions and
// Isend, have ended, and receives that a message has matched. It waits for no other
// receive: *UnfinishedError counts those. Every Work ends by its own context and timeout;
// if ctx ends first, the error has that of ctx, and *UnfinishedError counts all that is
// left. The error has also those of Works that failed, while Drain waited or, of the first
// sixteen, before, if the program has not asked for them by Wait or Err. Drain may be called by
// anyone at any time; nothing is left if it returns nil, unless more was begun meanwhile.
func (c *Communicator) Drain(ctx context.Context) error {
	if err := c.unmade("drain"); err != nil {
		return err
	}
	if ctx == nil {
		return nilContext("drain")
	}
	var errs []error
	for _, works := range []func() []*Work{c.queue.works, c.post.matched} {
		for _, w := range works() {
			err := w.Wait(ctx)
			if ended, _ := w.state(); !ended {
				return errors.Join(append(errs, c.unfinished(), transport.ContextError(ctx))...)
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	for _, w := range c.unasked.take() {
		errs = append(errs, w.Wait(context.Background())) // it is about to end, if it has not
	}
	return errors.Join(append(errs, c.unfinished())...)
}

// noteFailed keeps a Work that is about to end with err for Drain.
func (c *Communicator) noteFailed(w *Work, err error) {
	if err != nil {
		c.unasked.add(w)
	}
}

// failedWorks are the first Works that have failed, or are about to, of those that the
// program has not asked about. A group that has failed fails all that follow in the same way,
// so a few are enough.
type failedWorks struct {
	mu    sync.Mutex
	works []*Work
}

const failedKept = 16

func (f *failedWorks) add(w *Work) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.works = slices.DeleteFunc(f.works, (*Work).wasAsked)
	if len(f.works) < failedKept {
		f.works = append(f.works, w)
	}
}

func (f *failedWorks) take() []*Work {
	f.mu.Lock()
	defer f.mu.Unlock()
	works := slices.DeleteFunc(f.works, (*Work).wasAsked)
	f.works = nil
	return works
}

func (w *Work) wasAsked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// unfinished is an *UnfinishedError of all Works that have not ended, nil if there are
// none.
func (c *Communicator) unfinished() error {
	p := &c.post
	return (&UnfinishedError{len(c.queue.works()), int(p.works[sends].Load()), int(p.works[receives].Load())}).or()
}

// works returns the calls that have not ended, in their order.
func (q *queue) works() (works []*Work) {
	if q.length.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := q.first; w != nil; w = w.next {
		if ended, _ := w.state(); !ended && !w.returned {
			works = append(works, w)
		}
	}
	return works
}

// counters are the numbers of sends and receives that are under way and have a Work.
type counters [2]atomic.Int64

const (
	sends = iota
	receives
)

func (c *counters) of(t *transfer) *atomic.Int64 {
	if t.sending {
		return &c[sends]
	}
	return &c[receives]
}

// matched returns the sends under way, and the receives that are getting a message.
func (p *post) matched() (works []*Work) {
	if p.works[sends].Load()+p.works[receives].Load() == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.each(func(t *transfer) {
		if t.counted && (t.sending || t.begun) {
			works = append(works, &t.Work)
		}
	})
	return works
}
