package ccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl/internal/p2p"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// UnfinishedError counts the Works that had not ended when Close was called, or that Drain
// does not wait for. After Close they end with ErrClosed, except a call that ends at the same
// moment.
type UnfinishedError struct {
	Calls    int // collectives
	Sends    int // of Isend
	Receives int // of Irecv
	// Works describes them, collectives first, in the order in which they were started: `all_reduce
	// "grads"`, "recv from rank 1, tag 0". Equal descriptions appear once, and at most sixteen in all.
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
	verb, each, last := "has", "it", len(parts)-1
	if e.Calls+e.Sends+e.Receives > 1 {
		verb, each = "have", "each"
	}

	if last > 0 {
		parts = []string{strings.Join(parts[:last], ", ") + " and " + parts[last]}
	}
	return strings.Join(parts, "") + " " + verb + " not ended" + e.worksText() +
		": wait for " + each + " before the group is closed, by Wait of its Work, or of the Reducer that has started it"
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

// Drain waits until the works that were started before have ended: asynchronous calls, sends of
// Isend, and those receives of Irecv that a message has matched.
//
// Drain does not wait for other receives: an *UnfinishedError counts them. Each Work ends by its
// own context and timeout. If ctx ends first, Drain returns the error of ctx and an
// *UnfinishedError that counts what is left. If Drain returns nil, no Work is left except those
// started in the meantime.
//
// The error also contains the errors of Works that fail while Drain waits, and of the first sixteen
// that failed before, unless the program has called Wait, or Err after the end. If a Work is used
// again, each call counts by itself, also if later ones have succeeded. Works that a failure of the
// group has ended share one text, which says how many they are.
//
// Drain may be called concurrently with all other methods.
func (c *Communicator) Drain(ctx context.Context) error {
	if err := c.unmade("drain"); err != nil {
		return err
	}
	if ctx == nil {
		return nilContext("drain")
	}

	var errs []error
	for _, runs := range []func() []run{c.queue.runs, c.messages.matchedMessages} {
		for _, r := range runs() {
			if !r.await(ctx, &c.engine) {
				return errors.Join(append(c.unasked.together(errs), c.unfinished(), transport.ContextError(ctx))...)
			}
			if err := r.ask(); err != nil {
				errs = append(errs, waitedFor(err))
			}
		}
	}

	// In this order: a message that fails meanwhile is in one of the two, or in both.
	unfinished := c.unfinished()
	var before []error
	for _, f := range c.unasked.take() {
		before = append(before, waitedFor(f.err))
	}
	return errors.Join(append(c.unasked.together(append(before, errs...)), unfinished)...)
}

// run is a Work from a start to its end. A program may start it many times, also while Drain waits
// for the end of an earlier start.
type run struct {
	work *Work
	end  <-chan struct{} // closed at its end
}

// runOf returns the current run of w.
func runOf(w *Work) run { return run{w, w.Done()} }

// await waits until the run, of a call of e, has ended or ctx ends, and reports which. Like
// Work.Wait, it goes on for a moment if the group has failed.
func (r run) await(ctx context.Context, e *engine) (isOver bool) {
	r.work.addWaits(e, 1) // not of r.work.engine: the next run may be a call of another one
	defer r.work.addWaits(e, -1)

	if interleave.First(r.end, ctx.Done()) == 0 {
		return true
	}
	grace := time.Duration(0)
	if e.err() != nil {
		grace = failureGrace
	}
	return interleave.First(r.end, interleave.After(grace)) == 0
}

// ask returns the error of the run, and marks it as seen by the program. It is nil if the Work was
// started again: then c.unasked has the error, unless the program has seen it.
func (r run) ask() error {
	r.work.mu.Lock()
	defer r.work.mu.Unlock()
	if r.work.done != r.end {
		return nil
	}
	r.work.markSeen()
	return r.work.err
}

// together returns the errors of Works in their order, with one in place of those that have the
// group's failure as their cause.
func (f *failedWorks) together(errs []error) (all []error) {
	if f.engine.err() == nil {
		return errs
	}
	by := map[string]*failedTogether{} // the text of the cause
	for _, err := range errs {
		cause := groupCause(err)
		if same := by[cause]; same != nil {
			same.errs = append(same.errs, err)
			continue
		}
		if ended := f.endedBy(cause); ended > 1 {
			by[cause] = &failedTogether{[]error{err}, ended}
			err = by[cause]
		}
		all = append(all, err)
	}

	return all
}

// failedTogether is the error of Works of one cause. Its text is that of the first, with their
// number.
type failedTogether struct {
	errs  []error
	ended int // Works since the failure, those included whose error the program has seen
}

func (e *failedTogether) Error() string {
	err, hint := e.errs[0], ""
	if call, ok := err.(*CallError); ok { //nolint:errorlint // a wrapped one has words before it
		err, hint = call.withoutHint(), call.hint()
	}
	return fmt.Sprintf("%v; this failure has ended %d Works of this rank%s", err, e.ended, hint)
}
func (e *failedTogether) Unwrap() []error { return e.errs }

// groupCause returns the text of the cause of a call's error if the call itself has failed,
// otherwise "".
func groupCause(err error) string {
	if call, ok := err.(*CallError); ok { //nolint:errorlint // a wrapped one has words before it
		if failed, ok := call.Err.(*CollectiveFailedError); ok { //nolint:errorlint // as CallError.Error
			return failed.Err.Error()
		}
	}
	return ""
}

// noteFailed keeps err for Drain, with which w is about to end, unless its caller has it already.
func (f *failedWorks) noteFailed(w *Work, err error) {
	if err == nil {
		return
	}
	cause := groupCause(err)
	if f.engine.err() == nil {
		cause = ""
	}

	r := &failedRun{err: err}
	r.seen.Store(w.gaveUp)
	w.mu.Lock()
	w.failed = r
	w.mu.Unlock()
	f.add(r, cause)
}

// failedRun is the error of one start of a Work.
type failedRun struct {
	err  error
	seen interleave.Bool // by the program
}

func (f *failedRun) wasSeen() bool { return f.seen.Load() }

// failedWorks holds the errors of the first Works that failed, or are about to, which the program
// has not asked for. After a failure of the group all Works fail in the same way, so a few are
// enough.
type failedWorks struct {
	engine *engine
	mu     interleave.Mutex
	runs   []*failedRun
	ended  map[string]int // all Works that the group's failure has ended, by the text of the cause
}

const failedKept = 16

// add adds r. cause is the text of the group's failure if that ends its Work, otherwise "".
func (f *failedWorks) add(r *failedRun, cause string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cause != "" {
		if f.ended == nil {
			f.ended = make(map[string]int)
		}
		f.ended[cause]++
	}
	f.runs = slices.DeleteFunc(f.runs, (*failedRun).wasSeen)
	if len(f.runs) < failedKept && !r.wasSeen() {
		f.runs = append(f.runs, r)
	}
}

// endedBy returns how many Works the group's failure with that text has ended.
func (f *failedWorks) endedBy(cause string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended[cause]
}

func (f *failedWorks) take() []*failedRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	runs := slices.DeleteFunc(f.runs, (*failedRun).wasSeen)
	f.runs = nil
	return runs
}

// unfinished returns an *UnfinishedError about the Works that have not ended, nil if all have.
func (c *Communicator) unfinished() error {
	var e UnfinishedError
	c.queue.each(func(w *Work) {
		e.Calls++
		e.addWork(w.args.coll.String(), &w.opts[0], "")
	})
	c.messages.started.addTo(&e)
	if e.Calls+e.Sends+e.Receives == 0 {
		return nil
	}
	return &e
}

// runs returns the runs of the queue that have not ended, in order.
func (q *queue) runs() (runs []run) {
	q.each(func(w *Work) { runs = append(runs, runOf(w)) })
	return runs
}

// each calls f for the Works of the queue that have not ended, in order. Their arguments stay until
// f returns.
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

// matchedMessages returns the runs of sends, and of receives that a message has matched.
func (ms *messages) matchedMessages() (runs []run) {
	if ms.started.empty() {
		return nil
	}
	ms.moving.EachMatched(func(o p2p.Owner) {
		if m := o.(*message); m.started {
			runs = append(runs, runOf(&m.Work))
		}
	})
	return runs
}
