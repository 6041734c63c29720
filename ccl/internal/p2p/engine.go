package p2p

import (
	"context"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// Engine matches and moves the messages of one rank. The zero Engine needs Init; after that
// its methods may be called concurrently.
type Engine struct {
	group   Group
	ep      transport.Endpoint
	link    transport.P2P
	rank    int
	guarded bool        // shared memory can vanish: see transport.FaultGuard
	tryMove func() bool // locks and calls move; for transport.P2P.Rest

	mu         interleave.Mutex
	running    bool              // a goroutine makes progress: always while a transfer is pending
	stopped    bool              // Stop was called
	failed     error             // why new transfers fail; nil: they do not
	sends      [][]*Transfer     // by receiver, in the order of posting
	posted     []*Transfer       // receives without a message, in the order of posting
	incoming   []incoming        // by sender
	unexpected []message         // complete messages without a receive, in the order of arrival
	part       transport.Message // the argument of TryPut; here it needs no allocation
	lastPolled int               // the rank that a receive from AnySource polled last
	moves      uint              // calls of move that moved something
	suspect    bool              // a rank that a transfer needs may be lost
	timedOut   bool              // WaitFor still names the peer of a transfer that timed out

	alarms
}

// alarms end waits of an Engine.
type alarms struct {
	timer     *interleave.Timer // wakes the link at the next deadline
	timerAt   time.Time         // zero: the timer is not set
	sharedCtx context.Context   // the context that is watched until Stop; nil: none yet
	unwatch   func() bool       // ends the watch of sharedCtx
}

// Group is the communicator that an Engine belongs to.
type Group interface {
	// Closed reports whether the communicator is being closed.
	Closed() bool
	// FailureCause returns the error by which the group has failed.
	FailureCause() error
	// Hosts returns the hosts of ranks, as transport.TimeoutError has them.
	Hosts(ranks []int) []string
	// Fault returns the error that stands for v, a recovered panic, if shared memory caused
	// it, and else nil.
	Fault(v any) error
	// Release is called once if Stop returned true: the engine no longer uses the endpoint.
	Release()
}

// Init prepares e for the rank of ep.
func (e *Engine) Init(ep transport.Endpoint, group Group) {
	e.group, e.ep, e.link, e.rank = group, ep, ep.P2P(), ep.Rank()
	_, e.guarded = ep.(transport.FaultGuard)
	e.tryMove = func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.move()
	}
}

// Start posts a transfer. A background goroutine completes it unless a caller of Exchange
// does.
func (e *Engine) Start(t *Transfer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.post(t)
	if !e.running && e.pending() {
		e.running = true
		interleave.Go(func() { e.progress(nil, nil) })
	}
}

// Exchange posts a send and a receive, one of which may be nil, and makes progress until
// both have ended. If another goroutine makes progress already, it returns at once; in either
// case Owner.Ended tells when a transfer has ended.
func (e *Engine) Exchange(send, recv *Transfer) {
	if e.postBoth(send, recv) {
		e.progress(send, recv)
	}
}

// postBoth posts both transfers and reports whether the caller has to make progress.
func (e *Engine) postBoth(send, recv *Transfer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range [...]*Transfer{send, recv} {
		if t != nil {
			e.post(t)
		}
	}
	if e.running || send.isOver() && recv.isOver() {
		return false
	}
	e.running = true
	return true
}

// post completes a transfer at once or queues it.
func (e *Engine) post(t *Transfer) {
	*t = Transfer{Request: t.Request}
	if err := e.rejection(t); err != nil {
		t.end(err)
		return
	}

	if e.sends == nil {
		e.sends, e.incoming = make([][]*Transfer, e.ep.Size()), make([]incoming, e.ep.Size())
	}
	if e.timedOut {
		e.endTimedOutWait()
	}
	e.setDeadline(t)
	e.enqueue(t)
	e.suspect = !t.ended && e.mayBeLost(t) || e.suspect
	if e.running {
		e.link.Wake() // to look at the queues again
	}
}

// rejection returns why a transfer cannot be posted, nil if it can.
func (e *Engine) rejection(t *Transfer) error {
	switch {
	case e.stopped:
		return transport.ErrClosed
	case e.failed != nil:
		return e.failed
	}
	return e.contextError(t)
}

// contextError returns why a transfer ends whose context has ended, nil if it has not: the failure
// of the group, which may have ended the context, or the context's error.
func (e *Engine) contextError(t *Transfer) error {
	err := transport.ContextError(t.Ctx)
	if err != nil && e.ep.Failed() {
		return e.group.FailureCause()
	}
	return err
}

// enqueue puts a transfer into its queue, unless it can be completed at once.
func (e *Engine) enqueue(t *Transfer) {
	switch {
	case t.Sending && t.Peer == e.rank && e.sendToSelf(t):
		return
	case t.Sending:
		e.sends[t.Peer] = append(e.sends[t.Peer], t)
	case e.receiveUnexpected(t) || e.receiveFromSelf(t):
		return
	default:
		e.posted = append(e.posted, t)
	}
	e.watch(t)
}

// finish ends a transfer, with nil if it succeeded, and removes it from its queue.
func (e *Engine) finish(t *Transfer, cause error) {
	queue := &e.posted
	if t.Sending {
		queue = &e.sends[t.Peer]
	}
	if i := slices.Index(*queue, t); i >= 0 {
		*queue = slices.Delete(*queue, i, i+1)
	}
	t.end(cause)
}

// pending reports whether a transfer is left.
func (e *Engine) pending() bool {
	if len(e.posted) > 0 {
		return true
	}
	for _, queue := range e.sends {
		if len(queue) > 0 {
			return true
		}
	}

	for i := range e.incoming {
		if e.incoming[i].recv != nil {
			return true
		}
	}
	return false
}

// each calls f for all transfers. f may end any of them; f is not called for a transfer that
// has ended, whose owner may use it again.
func (e *Engine) each(f func(t *Transfer)) {
	var all []*Transfer
	for _, queue := range e.sends {
		all = append(all, queue...)
	}
	all = append(all, e.posted...)
	for i := range e.incoming {
		if t := e.incoming[i].recv; t != nil {
			all = append(all, t)
		}
	}

	for _, t := range all {
		if !t.ended {
			f(t)
		}
	}
}

// EachMatched calls f with the owners of all sends, and of the receives that a message has
// matched. f must not call the engine.
func (e *Engine) EachMatched(f func(Owner)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.each(func(t *Transfer) {
		if t.Sending || t.visible {
			f(t.Owner)
		}
	})
}

// Stop ends all transfers with transport.ErrClosed. The communicator has been closed. Stop
// never waits: if a goroutine still uses the endpoint, Stop returns true and Group.Release is
// called when it no longer does (test/syncmodel, lifetime: driverKeeps).
func (e *Engine) Stop() (releases bool) {
	if e.mu.TryLock() {
		return e.stop()
	}
	interleave.Go(func() { // another goroutine may be copying a long message under the lock
		e.mu.Lock()
		if !e.stop() {
			e.group.Release()
		}
	})
	return true
}

// stop is Stop for a caller that holds the lock; it unlocks.
func (e *Engine) stop() (running bool) {
	defer e.mu.Unlock()
	e.stopped = true
	if e.timer != nil {
		e.timer.Stop()
	}
	if e.unwatch != nil {
		e.unwatch()
	}
	if e.running {
		e.link.Wake()
	}
	return e.running
}
