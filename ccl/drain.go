package ccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccl/goccl/ccl/internal/p2p"
	"github.com/goccl/goccl/transport"
)

// UnfinishedError counts the Works that had not ended when Close was called, or that Drain
// does not wait for. After Close they end with ErrClosed, except a call that ends at the same
// moment.
type UnfinishedError struct {
	Calls    int // collectives
	Sends    int // of Isend
	Receives int // of Irecv
	// Works describes them, collectives first, in the order in which they were started: `all_reduce "grads"`, "recv from
	// rank 1, tag 0". Equal descriptions appear once, and at most sixteen in all.
	Works []string
}

// How many Works an UnfinishedError has, and its text.
const (
	worksKept  = 16
	worksShown = 4
)

func (e *UnfinishedError) Error() string {
	var parts []string
	for i, n := range [...]int{e.Calls, e.Sends, e.Receives} {
		if what := [...]string{"call", "send", "receive"}[i]; n == 1 {
			parts = append(parts, "1 "+what)
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%d %ss", n, what))
		}
	}
	verb, works, last := "has", "its Work", len(parts)-1
	if e.Calls+e.Sends+e.Receives > 1 {
		verb, works = "have", "each Work"
	}
	if last > 0 {
		parts = []string{strings.Join(parts[:last], ", ") + " and " + parts[last]}
	}
	return strings.Join(parts, "") + " " + verb + " not ended" + e.worksText() + ": call Wait of " + works + " before the communicator is closed"
}

// worksText returns the Works in parentheses, "" if they are not known.
func (e *UnfinishedError) worksText() string {
	if len(e.Works) == 0 {
		return ""
	}
	shown := e.Works
	if len(shown) > worksShown {
		shown = append(slices.Clone(shown[:worksShown]), "and others")
	}
	return " (" + strings.Join(shown, "; ") + ")"
}

// addWork adds a Work to the list.
func (e *UnfinishedError) addWork(operation string, o *CallOption, more string) {
	if len(e.Works) == worksKept {
		return
	}
	name := callText(operation, o.label, 0, 0, "") + more
	if o.started != nil {
		name += ", started at " + o.started.String()
	}
	if !slices.Contains(e.Works, name) {
		e.Works = append(e.Works, name)
	}
}

// Drain waits until the calls of Async functions and the sends of Isend that were started
// before have ended, and the receives of Irecv that a message has matched. Drain does not wait
// for other receives: an *UnfinishedError counts them. Each Work ends by its own context and
// timeout. If ctx ends first, Drain returns the error of ctx and an *UnfinishedError that
// counts what is left.
//
// The error also contains the errors of Works that fail while Drain waits, and of the first
// sixteen that failed before, unless the program has called Wait, or Err after the end. Works that
// a failure of the group has ended share one text, which says how many they are. If
// Drain returns nil, no Work is left except those started in the meantime. Drain may be called
// concurrently with all other methods.
func (c *Communicator) Drain(ctx context.Context) error {
	if err := c.unmade("drain"); err != nil {
		return err
	}
	if ctx == nil {
		return nilContext("drain")
	}
	var errs []error
	for _, works := range []func() []*Work{c.queue.works, c.matchedMessages} {
		for _, w := range works() {
			err := w.Wait(ctx)
			if ended, _ := w.state(); !ended {
				return errors.Join(append(c.together(errs), c.unfinished(), transport.ContextError(ctx))...)
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	var before []error
	for _, w := range c.unasked.take() {
		before = append(before, w.Wait(context.Background())) // ends now, if it has not ended
	}
	return errors.Join(append(c.together(append(before, errs...)), c.unfinished())...)
}

// together returns the errors of Works in their order, with one in place of those that have the group's failure as their
// cause.
func (c *Communicator) together(errs []error) (all []error) {
	if c.Err() == nil {
		return errs
	}
	by := map[string]*failedTogether{} // the text of the cause
	for _, err := range errs {
		cause := groupCause(err)
		if same := by[cause]; same != nil {
			same.errs = append(same.errs, err)
			continue
		}
		if ended := c.unasked.endedBy(cause); ended > 1 {
			by[cause] = &failedTogether{[]error{err}, ended}
			err = by[cause]
		}
		all = append(all, err)
	}
	return all
}

// failedTogether is the error of Works of one cause. Its text is that of the first, with their number.
type failedTogether struct {
	errs  []error
	ended int // Works since the failure, those included whose error the program has seen
}

func (e *failedTogether) Error() string {
	text, hint := e.errs[0].Error(), ""
	if call, ok := e.errs[0].(*CallError); ok { //nolint:errorlint // a wrapped one has words before it
		hint = call.hint()
	}
	return fmt.Sprintf("%s; this failure has ended %d Works of this rank%s", strings.TrimSuffix(text, hint), e.ended, hint)
}
func (e *failedTogether) Unwrap() []error { return e.errs }

// groupCause returns the text of the cause of a call's error if the call itself has failed, otherwise "".
func groupCause(err error) string {
	if call, ok := err.(*CallError); ok { //nolint:errorlint // a wrapped one has words before it
		if failed, ok := call.Err.(*CollectiveFailedError); ok { //nolint:errorlint // as CallError.Error
			return failed.Err.Error()
		}
	}
	return ""
}

// noteFailed keeps w for Drain if it is about to end with an error.
func (c *Communicator) noteFailed(w *Work, err error) {
	if err == nil {
		return
	}
	cause := groupCause(err)
	if c.Err() == nil {
		cause = ""
	}
	c.unasked.add(w, cause)
}

// failedWorks holds the first Works that failed, or are about to, and whose error the program
// has not asked for. After a failure of the group all Works fail in the same way, so a few are
// enough.
type failedWorks struct {
	mu    sync.Mutex
	works []*Work
	ended map[string]int // all Works that the group's failure has ended, by the text of the cause
}

const failedKept = 16

// add adds w. cause is the text of the group's failure if that ends w, otherwise "".
func (f *failedWorks) add(w *Work, cause string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cause != "" {
		if f.ended == nil {
			f.ended = make(map[string]int)
		}
		f.ended[cause]++
	}
	f.works = slices.DeleteFunc(f.works, (*Work).wasAsked)
	if len(f.works) < failedKept {
		f.works = append(f.works, w)
	}
}

// endedBy returns how many Works the group's failure with that text has ended.
func (f *failedWorks) endedBy(cause string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended[cause]
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

// unfinished returns an *UnfinishedError about the Works that have not ended, nil if all have.
func (c *Communicator) unfinished() error {
	var e UnfinishedError
	c.queue.each(func(w *Work) {
		e.Calls++
		e.addWork(w.args.coll.String(), &w.args.opts[0], "")
	})
	c.messages.started.addTo(&e)
	if e.Calls+e.Sends+e.Receives == 0 {
		return nil
	}
	return &e
}

// works returns the Works of the queue that have not ended, in order.
func (q *queue) works() (works []*Work) {
	q.each(func(w *Work) { works = append(works, w) })
	return works
}

// each calls f for the Works of the queue that have not ended, in order. Their arguments stay until f returns.
func (q *queue) each(f func(*Work)) {
	if q.length.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := q.first; w != nil; w = w.next {
		if ended, _ := w.state(); !ended && !w.gaveUp {
			f(w)
		}
	}
}

// matchedMessages returns the Works of sends, and of receives that a message has matched.
func (c *Communicator) matchedMessages() (works []*Work) {
	if c.messages.started.empty() {
		return nil
	}
	c.messages.engine.EachMatched(func(o p2p.Owner) {
		if m := o.(*message); m.started {
			works = append(works, &m.Work)
		}
	})
	return works
}
