package ccl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/goccl/goccl/transport"
)

// Communicator is one rank's handle on a group of connected ranks.
//
// The ranks make the same calls in the same order. One rank makes one call at a time: a second one
// that overlaps returns ErrConcurrentUse if the overlap is noticed. A communicator that New has not
// made returns ErrInvalidCommunicator.
//
// Any goroutine may call Abort, Close, Drain, Err, GlobalRank, IsLeader, Mark, Metrics, Name,
// Nodes, Rank, Release, Retain, Selector, Size, SplitLocal, Transport, WriteFlight and WriteMetrics
// at any time.
//
// The buffers of the last call stay reachable until the next one.
type Communicator struct {
	_        [padBytes]byte
	engine   engine
	queue    queue
	messages messages
	unasked  failedWorks // for Drain
	options  Option      // of the groups that are made of this one
	_        [padBytes]byte
}

// padBytes before and after the memory that a rank writes in every call keep other ranks' memory
// off its cache lines, which processors fetch in pairs. Without them a call of 4 bytes took up to
// twice as long, depending on where the allocator placed things.
const padBytes = 128

// Option is an option of New.
type Option struct {
	selector Selector
	logger   *slog.Logger
	failures func(*Communicator, *CallError)
	name     string
	global   []int
	id       uint64        // in the records, of a group that was made of another one
	recorder *recorder     // of that one
	limit    time.Duration // of its first call, if that is not the selector's
	flight   string
	times    bool
	metrics  bool
	observer func(context.Context, ObservedCall) func(ObservedCall)
}

// WithLogger makes the communicator, and the groups made of it, log to l. Without it the library
// logs nothing.
//
//   - warn: a call that has waited for half of its timeout, or of the configured one if it waits
//     forever, with its label, size and line; and a receive from AnySource if ranks cannot send
//   - error: the call in which the group fails
//   - info: this rank has joined; and, once it has closed the communicator, what its calls of each
//     collective have cost
//   - debug: which algorithms were chosen, and why
//
// The costs are those of WithMetrics, if l is enabled for info when New is called.
func WithLogger(l *slog.Logger) Option { return Option{logger: l} }

// WithFailures makes the communicator, and the groups made of it, call f with every *CallError that
// wraps a *CollectiveFailedError, before the call or Work returns it; Work.Wait may add where the
// program waited.
//
// A rank can thus report why it fails even if the program exits at once. f gets the communicator
// that failed; it must return and not make calls on it. Several goroutines may call f at a time.
func WithFailures(f func(c *Communicator, err *CallError)) Option {
	return Option{failures: f}
}

// CallOption is an option of one call.
type CallOption struct {
	algorithm string
	label     string
	key       string
	timeout   time.Duration
	queued    bool      // the call comes from the queue, or is a message of Isend or Irecv
	started   *position // of such a call, with debug
	work      *Work     // start the call with it
	torch     bool      // for package dist: see WithTorchNames
}

// WithAlgorithm chooses the algorithm of one call by the name of its entry in ccl.yaml. A call that
// the algorithm does not support is rejected all the same.
func WithAlgorithm(entry string) CallOption { return CallOption{algorithm: entry} }

// WithTimeout replaces the configured timeout for one call. A negative d lets it wait for ever: a
// collective, or a receive from AnySource, then warns after half of the configured timeout, and
// each time that as long has passed (WithLogger).
func WithTimeout(d time.Duration) CallOption { return CallOption{timeout: d} }

// WithLabel gives a call a name of the program's own, such as "grads of block 3", which its errors
// and warnings show. It costs nothing and decides nothing: ranks may use different labels. With
// defaults.debug each rank warns of those (WithLogger).
func WithLabel(label string) CallOption { return CallOption{label: label} }

// WithKey says which calls of the ranks belong together: those with equal keys.
//
// If ranks enter a call with different keys, or some without one, all get *MismatchError, field
// "key", and no buffer has been touched. So a program finds that its ranks make calls of one shape
// in different orders, such as a loop over a map, which would mix their data.
//
// The ranks compare a hash of 32 bits. Messages, which have tags, ignore the option.
func WithKey(key string) CallOption { return CallOption{key: key} }

// WithTorchNames makes a call one of package dist. The option has the effect of opts as well.
//
// Errors name the buffers input and output, or tensor for both, instead of send and recv. On a
// group made of another one, -1 as a root or a peer is a rank of the job that is not in the group,
// and Source of an Irecv's Work is a rank of the first group (see Communicator.GlobalRank).
func WithTorchNames(opts ...CallOption) CallOption {
	o := mergeCallOptions(opts)
	o.torch = true
	return o
}

func mergeCallOptions(opts []CallOption) (o CallOption) {
	for i := range opts {
		next := &opts[i]
		o.algorithm, o.label, o.key = cmp.Or(next.algorithm, o.algorithm), cmp.Or(next.label, o.label), cmp.Or(next.key, o.key)
		o.timeout, o.work = cmp.Or(next.timeout, o.timeout), cmp.Or(next.work, o.work)
		o.queued, o.torch = o.queued || next.queued, o.torch || next.torch
	}
	return o
}

// New makes a communicator of ep. It is collective: it returns when all ranks have joined and agree
// on their settings. Its error is an *transport.InitializationFailedError, after which ep is
// closed. A *MismatchError in it names the first setting in which ranks differ.
func New(ctx context.Context, ep transport.Endpoint, opts ...Option) (*Communicator, error) {
	c := unopened(ep)
	if err := c.open(ctx, opts...); err != nil {
		_ = c.Close()
		return nil, initializationFailed(ep.Name(), c.engine.name, c.engine.global, err)
	}
	c.engine.journal.logJoined(ep.Name())
	return c, nil
}

// unopened returns a communicator for open.
func unopened(ep transport.Endpoint) *Communicator {
	c := &Communicator{}
	c.engine.set(ep)
	c.unasked.engine = &c.engine
	c.queue.engine, c.queue.unasked, c.queue.start = &c.engine, &c.unasked, c.queue.serve
	c.messages.engine, c.messages.unasked = &c.engine, &c.unasked
	c.messages.moving.Init(ep, p2pGroup{&c.engine})
	return c
}

// open joins the ranks. After an error the caller closes c.
func (c *Communicator) open(ctx context.Context, opts ...Option) error {
	o := &c.options
	for _, next := range opts {
		o.add(next)
	}

	e := &c.engine
	e.name, e.global, e.selector, e.records.recorder = o.name, o.global, o.selector, o.recorder
	e.journal.logger = cmp.Or(o.logger, e.journal.logger)
	if o.failures != nil {
		e.failures.report = func(err *CallError) { o.failures(c, err) }
	}
	e.entry.Limit = transport.Timeout{After: o.limit, Warn: e.warnOf}
	if err := e.join(ctx); err != nil {
		return err
	}

	o.metrics = o.metrics || e.journal.logs(slog.LevelInfo)
	if e.size > 1 || o.metrics || o.recorder != nil {
		if err := e.records.open(o); err != nil {
			return err
		}
	}
	if r := e.records.recorder; (r != nil && r.metrics || o.observer != nil) && e.level == nil {
		e.meter.isOn, e.meter.observer = true, o.observer
		e.addWaitsTo(&e.meter.waited)
	}
	return c.splitByNode(ctx)
}

// add replaces what next sets.
func (o *Option) add(next Option) {
	o.flight, o.times, o.metrics = cmp.Or(next.flight, o.flight), o.times || next.times, o.metrics || next.metrics
	if next.selector != nil {
		o.selector = next.selector
	}
	if next.logger != nil {
		o.logger = next.logger
	}

	if next.failures != nil {
		o.failures = next.failures
	}
	if next.observer != nil {
		o.observer = next.observer
	}
	if next.name != "" {
		o.name, o.global, o.id, o.recorder, o.limit = next.name, next.global, next.id, next.recorder, next.limit
	}
}

// initializationFailed is the error of a group that could not be set up. group is its name, "" for
// the first group, and global its ranks in the first group.
func initializationFailed(backend, group string, global []int, err error) error {
	if group != "" {
		err = &groupError{group, global, err}
	}
	return &transport.InitializationFailedError{Backend: backend, Err: err}
}

// groupError is why a group could not be set up. Its ranks are the group's.
type groupError struct {
	name   string
	global []int // the group's ranks in the first group
	err    error
}

func (e *groupError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "group %s: %v", e.name, e.err)
	(&CollectiveFailedError{Peer: -1, HideRank: true, GlobalRanks: e.global, Err: e.err}).translate(&b)
	return b.String()
}

// Unwrap returns the reason.
func (e *groupError) Unwrap() error { return e.err }

// JobRanks returns the ranks of the group in the first group.
func (e *groupError) JobRanks() []int { return e.global }

// initializationCause returns why the initialization failed of which err is the error, for an error
// that says itself that something failed. Other errors it returns as they are.
func initializationCause(err error) error {
	if failed, ok := err.(*transport.InitializationFailedError); ok { //nolint:errorlint // a wrapped one has words before it
		return failed.Err
	}
	return err
}

// Rank returns this rank's number in the group, 0 <= Rank < Size, or -1 if c is nil.
func (c *Communicator) Rank() int {
	if c == nil {
		return -1
	}
	return c.engine.rank
}

// Size returns the number of ranks in the group, or -1 if c is nil.
func (c *Communicator) Size() int {
	if c == nil {
		return -1
	}
	return c.engine.size
}

// Transport returns the name of the transport that connects the group, "" if c is nil.
func (c *Communicator) Transport() string {
	if c == nil || c.engine.ep == nil { // nil or zero
		return ""
	}
	return c.engine.ep.Name()
}

// Selector returns the group's Selector, nil if c is nil.
func (c *Communicator) Selector() Selector {
	if c == nil {
		return nil
	}
	return c.engine.selector
}

// LastChoice returns the kernel of this rank's last call, and why it was chosen. It is zero before
// the first call, after a barrier, which has no kernel, and in a group of one rank. It must not be
// called while a call is running; after a rejected call its result is undefined.
func (c *Communicator) LastChoice() Choice {
	if c == nil || c.engine.call.plan == nil {
		return Choice{}
	}
	return c.engine.call.plan.choice
}

// Close leaves the group. It never waits.
//
// A rank that still needs this one gets transport.PeerLostError. Later calls return ErrClosed.
// Closing twice is a no-op.
//
// Works that have not ended are dropped: call Drain first, or wait for each. *UnfinishedError
// counts and names them, unless the group has failed. If c is nil the error is
// ErrInvalidCommunicator.
func (c *Communicator) Close() error {
	if c == nil {
		return c.unmade("close")
	}
	err := c.unfinished() // as soon as the communicator is closed its queue ends by itself
	if !c.engine.holds.life.Close() {
		return nil
	}
	if err != nil && c.engine.ep.Failure() != nil {
		err = nil // they fail in any case
	}
	_ = c.engine.records.vanishing(c.engine.records.lane.Leave) // before others can see it
	err = errors.Join(err, c.engine.ep.Close(), c.engine.levels.close())
	if releases := c.messages.moving.Stop(); !releases {
		err = errors.Join(err, c.engine.holds.drop()) // the hold of messages
	}
	return errors.Join(err, c.engine.holds.drop())
}

// Abort fails the group on all ranks, including calls that are running: they get
// transport.AbortedError with this rank and cause.
//
// If cause is itself an *transport.AbortedError (not a wrapped one), it passes on that another rank
// gave up, and they get that error. Abort never waits. It does nothing if the group has failed, has
// one rank, or is nil. Any goroutine may call it at any time.
func (c *Communicator) Abort(cause error) {
	if c == nil || c.engine.size == 1 {
		return // such a group cannot fail
	}
	if cause == nil {
		cause = errors.New("no cause given")
	}
	if !c.engine.holds.life.HoldOpen() {
		return // closed
	}
	by := c.engine.rank
	if passed, ok := cause.(*transport.AbortedError); ok && passed.Cause != nil && passed.By >= 0 && passed.By < c.engine.size { //nolint:errorlint // a wrapped one is this rank's own cause
		by, cause = passed.By, passed.Cause
	}
	c.engine.failures.fail(&transport.Failure{
		Kind: transport.FailureAborted, By: by, Text: cause.Error(), Reason: rejectionIn(cause), Cause: cause,
	})
	_ = c.engine.holds.drop()
}

// Err returns the failure of the group, nil if it has not failed, and ErrInvalidCommunicator if c
// is nil.
func (c *Communicator) Err() error {
	if c == nil {
		return c.unmade("err")
	}
	return c.engine.err()
}
