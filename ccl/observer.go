package ccl

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// ObservedCall is a collective call of the program, as an observer sees it.
type ObservedCall struct {
	Collective Collective
	Label      string // of WithLabel
	Group      string // the group's name, "" for the first group
	Rank       int    // in the group
	GlobalRank int    // in the first group
	Async      bool

	// These are known when the call has ended.
	Seq       uint64 // number of the call in the group, from 1; 0 in a group of one rank
	Algorithm string // "" if none was chosen
	Bytes     int    // of this rank's input or output, the longer one; 0 if the call has failed
	Duration  time.Duration
	Waiting   time.Duration // the part of it in which the rank waited for others
	Err       error
}

// WithObserver makes the communicator, and the groups made of it, call before at the begin of each
// collective call, and what it returns, unless nil, at the call's end.
//
// ctx is that of the call. An asynchronous call begins when it is its turn, in a goroutine of the
// library. Messages are not observed. Ranks of one process call before concurrently.
//
// An observer makes no calls of the group, which return ErrConcurrentUse. If it panics, the call
// returns an error: at its begin this rank rejects the call, like wrong arguments; at its end the
// group fails.
func WithObserver(before func(ctx context.Context, call ObservedCall) (after func(ObservedCall))) Option {
	return Option{observer: before}
}

// observe tells the observer that a call begins.
func (e *engine) observe(ctx context.Context, opts []CallOption) error {
	m, o := &e.meter, mergeCallOptions(opts)
	m.observed = ObservedCall{
		Collective: m.coll, Label: o.label, Async: o.queued,
		Group: e.name, Rank: e.rank, GlobalRank: e.globalRank(e.rank),
	}
	err := e.guardObserver(func() { m.after = m.observer(ctx, m.observed) })
	m.begun = time.Since(origin)
	return err
}

// observeEnd tells the observer that the call has ended with err, and returns the call's error. If
// the observer panics the group fails, because the other ranks have made the call.
func (e *engine) observeEnd(err error) error {
	m := &e.meter
	if m.after == nil {
		return err
	}
	o := &m.observed
	o.Algorithm, o.Bytes, o.Duration, o.Waiting, o.Err = m.algorithm, int(m.cost.Bytes), m.cost.Duration, m.cost.Waiting, err
	if e.size > 1 {
		o.Seq = e.number(e.seq)
	}

	panicked := e.guardObserver(func() { m.after(*o) })
	if panicked == nil {
		return err
	}
	if e.size > 1 {
		panicked = e.failed(m.coll, panicked)
	}
	if err != nil {
		return fmt.Errorf("%w; and %w", err, panicked)
	}
	return e.callError(panicked)
}

// guardObserver runs a part of the observer, and returns its panic as an error. If the observer
// ends the goroutine, so does the call, and the group fails.
func (e *engine) guardObserver(f func()) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		panicked := &observerPanicError{KernelPanicError{Value: recover(), Stack: debug.Stack()}}
		err = panicked

		if panicked.Value == nil {
			panicked.Value = errGoexit
			if e.size > 1 {
				e.failures.fail(e.failures.failureOf(err, e.rank, e.seq))
			}
			e.leave()
		}
	}()
	f()
	returned = true
	return nil
}

// observerPanicError reports that the function of WithObserver, or the one that it has returned,
// panicked.
type observerPanicError struct{ KernelPanicError }

func (e *observerPanicError) Error() string {
	if line := panicLine(e.Stack); line != "" {
		return fmt.Sprintf("the observer panicked at %s: %v", line, e.Value)
	}
	return fmt.Sprintf("the observer panicked: %v", e.Value)
}
