package ccl

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// Work is a collective, a send or a receive that runs asynchronously: WithWork starts a collective,
// Isend and Irecv a message.
//
// A communicator makes these collectives one at a time, in the order in which they were started,
// and before any later synchronous one. Their ranks sleep while they wait and leave their cores to
// the program, unless the program waits for a call already.
//
// Until it is done, the program must not write its buffers, counts and displacements, nor read its
// outputs (defaults.debug in ccl.yaml checks this).
//
// A program need not call Wait, but Close drops Works that have not ended: see Drain.
//
// The methods of Work may be called concurrently once a call was started with it.
type Work struct {
	queuedCall
	engine *engine // nil: the Work has ended from the start, or is zero
	next   *Work   // in the queue

	mu    interleave.Mutex
	end   interleave.Cond // signals ended
	ended bool
	waits int // goroutines of the program in Wait
	err   error
	done  chan struct{} // nil until Done is called
	// wake is nil until await needs it. It has room for one token, which says that the call may have
	// ended.
	wake chan struct{}

	failed *failedRun // nil: it has not failed, or no Drain returns its error

	begun, stopped time.Duration // of a collective, since origin

	source int   // the sender of a message
	ranks  []int // the global rank of each source; nil: Source is the group's rank
}

// queuedCall is a collective that waits for its turn.
type queuedCall struct {
	ctx    context.Context
	args   arguments
	lists  *lists // nil, or &listed
	listed lists
	opts   [1]CallOption

	sums      sums  // of its buffers, for defaults.debug
	rejection error // not nil: reject the call with it
	gaveUp    bool  // the caller has its error already: the call is rejected when it is the first
}

// Wait returns the error of the call when it is done.
//
// If ctx ends first, Wait returns the error of ctx and its cause, and the call goes on. If the
// group has failed by then, the call ends as well, and Wait returns its error, with the group's
// failure. Wait may be called several times. A nil ctx is an *InvalidArgumentError. Unless it is
// known where the call was started, its *CallError says where the program waited; it is then a copy
// of the one that Err returns.
func (w *Work) Wait(ctx context.Context) error {
	if ctx == nil {
		return nilContext("wait")
	}
	if ended, err := w.ask(); ended {
		return waitedFor(err)
	}

	if w.isCopy() {
		err := &InvalidArgumentError{"wait", "no call was started with this Work, or it is a copy of the call's"}
		return newCallError("wait", &CallOption{}, err)
	}
	w.addWaits(w.engine, 1)
	err := w.await(ctx)
	w.addWaits(w.engine, -1)
	_, _ = w.ask()
	return waitedFor(err)
}

// addWaits counts goroutines of the program in Wait, for a call of e.
func (w *Work) addWaits(e *engine, n int) {
	e.waiting.Add(int64(n))
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
		if interleave.First(w.wake, ctx.Done()) == 0 {
			continue
		}
		if ended, err := w.state(); ended {
			w.signal()
			return err
		}
		return w.giveUp(ctx)
	}
}

// signal makes a goroutine in await look whether the call has ended. The token that it may leave
// makes a later one look in vain.
func (w *Work) signal() {
	interleave.Step()
	select {
	case w.wake <- struct{}{}:
	default: // there is a token, or no goroutine has waited
	}
}

// giveUp returns the error of a wait whose context has ended.
func (w *Work) giveUp(ctx context.Context) error {
	failure := w.engine.err()
	if failure != nil && interleave.First(w.Done(), interleave.After(failureGrace)) == 0 {
		_, err := w.state() // the failure, which may have ended ctx, has ended the call
		w.signal()
		return err
	}
	err := fmt.Errorf("ccl: waiting for a call, which still runs: %w", transport.ContextError(ctx))
	if failure != nil {
		err = fmt.Errorf("%w: %w", err, failure)
	}

	return err
}

// failureGrace is how long a wait whose context has ended goes on for a call of a failed group.
// Such a call ends at once, except if a kernel does not return.
const failureGrace = time.Second

// Done returns a channel that is closed when the call is done.
func (w *Work) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.ended {
			interleave.Step()
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

// Times returns when a collective that is done began to run, after the calls that were started
// before it, and when it ended; waiting for slower ranks is part of that. They are zero if the call
// is not done or did not run, and for messages.
func (w *Work) Times() (begun, ended time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended || w.stopped == 0 {
		return time.Time{}, time.Time{}
	}
	return origin.Add(w.begun), origin.Add(w.stopped)
}

// Source returns the rank that sent the message, once an Irecv has succeeded. Before that, and
// for other calls, the result is undefined. It is a rank of the group; see WithTorchNames.
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
		interleave.Step()
		close(w.done)
	}
	w.listed = lists{}
	w.ctx, w.args, w.lists = nil, arguments{}, nil // releases the buffers
}

// WithWork starts a collective and returns at once, as async_op does in torch; w reports the end of
// the call. The function returns an error only if the call was not started; w has it as well,
// unless another call runs with w. All other errors, also those for wrong arguments, are those of w
// alone.
//
// w is zero, or its call has ended and no goroutine waits for it any more: then it is used again,
// also with another communicator, and nothing is allocated. A nil w has no effect; of several
// Works the last one counts.
//
// Functions that return more than an error, such as Split, and messages reject the
// option with *InvalidArgumentError.
//
// A synchronous call whose context or timeout ends while it waits for the calls that were started
// before it is rejected.
func WithWork(w *Work) CallOption { return CallOption{work: w} }

// workOf returns the Work of the options, nil if the call is synchronous.
func workOf(opts []CallOption) (w *Work) {
	for i := range opts {
		if opts[i].work != nil {
			w = opts[i].work
		}
	}
	return w
}

// notAsynchronous is the error of an operation that WithWork cannot start.
func notAsynchronous(operation string) error {
	return &InvalidArgumentError{operation, "WithWork starts collectives that return nothing but an error; Isend and Irecv start messages"}
}

// startWork starts a collective with the options o.
func (c *Communicator) startWork(ctx context.Context, w *Work, a *arguments, l *lists, o CallOption) error {
	if !w.begin(c.core(), ctx, a, l) {
		operation := a.coll.String()
		return newCallError(operation, &o, &InvalidArgumentError{operation,
			fmt.Sprintf("rank %d starts a call with a Work that still runs: wait for it first", c.Rank())})
	}
	return c.append(w, o)
}

// append starts the call of a Work that has begun.
func (c *Communicator) append(w *Work, o CallOption) error {
	operation := w.args.coll.String()
	if err := c.unmade(operation); err != nil {
		err = newCallError(operation, &o, err)
		w.finish(err)
		return err
	}
	w.opts[0] = c.engine.asynchronous(o)
	w.seal()
	c.queue.append(w)
	return nil
}

// begin makes w the Work of a call. It reports false if the call before has not ended.
func (w *Work) begin(e *engine, ctx context.Context, a *arguments, l *lists) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCopy() {
		w.end, w.wake = interleave.Cond{L: &w.mu}, nil
	} else if !w.ended {
		return false
	}
	w.ctx, w.engine, w.args, w.lists = ctx, e, *a, nil
	if l != nil {
		w.listed = *l // in memory of the caller
		w.lists = &w.listed
	}
	w.ended, w.failed, w.err, w.done, w.begun, w.stopped = false, nil, nil, nil, 0, 0
	return true
}

// isCopy reports whether no call was started with w: it is zero, or a copy of another Work.
func (w *Work) isCopy() bool { return w.end.L != interleave.Locker(&w.mu) }
