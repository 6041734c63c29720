package ccl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/lifetime"
	"github.com/goccl/goccl/ccl/internal/reducer"
	"github.com/goccl/goccl/ccl/internal/verbs"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/memory"
	"github.com/goccl/goccl/transport"
)

// Communicator is one rank's handle on a group of connected ranks. The ranks make the same calls in
// the same order. One rank makes one call at a time; a second call that overlaps returns
// ErrConcurrentUse if the overlap is noticed. A communicator that New has not made returns
// ErrInvalidCommunicator. Any goroutine may call Abort, Close, Drain, Err, GlobalRank, IsLeader, Mark,
// Name, Nodes, Rank, Release, Retain, Selector, Size, SplitLocal, Transport and WriteFlight at any time.
// The buffers of the last call stay reachable until the next one.
type Communicator struct {
	_          [padBytes]byte
	ep         transport.Endpoint
	memory     transport.Memory      // nil: ranks do not share memory
	regions    transport.Regions     // not nil: they do not, but can
	parts      transport.Parts       // not nil: ranks send each other parts of their inputs
	native     transport.Collectives // not nil: the transport has collectives of its own
	rank, size int
	name       string
	global     []int // ranks in the first group, by rank; nil: this is the first group
	selector   Selector
	levels     *levels // nil: all ranks are on one node
	isLevel    bool    // it is a level of another group
	queue      queue
	messages   messages
	unasked    failedWorks // for Drain
	logger     *slog.Logger
	totals     *totals                         // nil: not logged
	chosen     map[string]bool                 // choices that were logged; nil: they are not
	warned     map[string]bool                 // labels that the ranks of a call differ in
	isDebug    bool                            // calls show their labels
	tell       func(*Communicator, *CallError) // of WithFailures, or nil
	warn       func(seq uint64, missing []int)

	made      transport.Region       // by the last call that made one
	shared    []byte                 // its memory
	none      *AllocationFailedError // or the reason that no rank has it
	allocated []transport.Region
	retained  atomic.Int64 // successful calls of Retain without their Release
	placed    bool         // buffers may lie in memory of regions

	ended atomic.Pointer[error] // the failure of the group, for after the endpoint was freed

	guard  transport.FaultGuard // nil: shared memory cannot vanish
	faults bool                 // whether faults were panics before the call

	observer verbs.Observer // nil: no one watches the verbs of kernels

	life      lifetime.Lifetime
	inside    bool                          // the current call has started to synchronise
	claiming  bool                          // this rank runs the bodies of other ranks
	running   bool                          // a kernel runs
	before    *transport.Failure            // the group has failed in an earlier call
	differ    atomic.Pointer[MismatchError] // of the call in which ranks made different calls
	seq       uint64                        // of the last call entered or refused
	joined    uint64                        // the calls that New made; users' calls count from there
	call      Call
	recorder  *recorder // nil: a group of one rank
	lane      flight.Lane
	timedFrom int // length in bytes from which records have times
	lengths   lengths
	spare     memory.Scratch // for inputs that the engine makes
	bundled   memory.Scratch // for tensors that travel together
	wide      Buffer         // the result of performWide
	tensors   []Buffer
	coalesced []Buffer // all tensors of the call
	places    [][]byte // of them
	entry     transport.Arrival
	plans     [planCache]plan
	latest    [len(collectives)]*plan // used last, by collective; another may have taken its place
	_         [padBytes]byte
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
	number   uint64    // of a group that was made of another one
	recorder *recorder // of that one
	flight   string
	times    bool
}

// WithLogger makes the communicator, and the groups made of it, log to l: at level warn a call that
// has waited for half of its timeout, or of the configured one if it waits for ever, with its
// label, size and line; at error the call in which the group fails; at info that this rank has
// joined, and, when it has closed the communicator, what its calls of each collective have cost; at
// debug which algorithms were chosen, and why. Without it the library logs nothing. Totals need a
// few readings of the clock in each call; they are kept if l is enabled for info when New is
// called.
func WithLogger(l *slog.Logger) Option { return Option{logger: l} }

// WithFailures makes the communicator, and the groups made of it, call f with every
// *CallError that wraps a *CollectiveFailedError, before the call or Work returns it; Work.Wait may add where the program
// waited. A rank can thus report why it fails even if the program exits at once. f gets the communicator that failed; it
// must not make calls on it. Several goroutines may call f at a time.
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
// collective then warns after half of the configured timeout, and each time that as long has passed
// (WithLogger).
func WithTimeout(d time.Duration) CallOption { return CallOption{timeout: d} }

// WithLabel gives a call a name of the program's own, such as "grads of block 3", which its errors and
// warnings show. It costs nothing and decides nothing: ranks may use different labels. With
// defaults.debug each rank warns of those (WithLogger).
func WithLabel(label string) CallOption { return CallOption{label: label} }

// WithKey says which calls of the ranks belong together: those with equal keys. If ranks enter a call
// with different keys, or some without one, all get *MismatchError, field "key", and no buffer has been
// touched. So a program finds that its ranks make calls of one shape in different orders, such as a loop
// over a map, which would mix their data.
//
// The ranks compare a hash of 32 bits. Messages, which have tags, ignore the option.
func WithKey(key string) CallOption { return CallOption{key: key} }

// WithTorchNames makes a call one of package dist. The option has the effect of opts as well.
//
// Errors name the buffers input and output, or tensor for both, instead of send and recv. On a group
// made of another one, -1 as a root or a peer is a rank of the job that is not in the group, and
// Source of an Irecv's Work is a rank of the first group (see Communicator.GlobalRank).
func WithTorchNames(opts ...CallOption) CallOption {
	o := mergeCallOptions(opts)
	o.torch = true
	return o
}

func mergeCallOptions(opts []CallOption) (o CallOption) {
	for _, next := range opts {
		if next.algorithm != "" {
			o.algorithm = next.algorithm
		}
		if next.label != "" {
			o.label = next.label
		}
		if next.key != "" {
			o.key = next.key
		}
		if next.timeout != 0 {
			o.timeout = next.timeout
		}
		o.queued = o.queued || next.queued
		o.torch = o.torch || next.torch
	}
	return o
}

// New makes a communicator of ep. It is collective: it returns when all ranks have joined and agree
// on their settings. Its error is an *InitializationFailedError, after which ep is closed. A
// *MismatchError in it names the first setting in which ranks differ.
func New(ctx context.Context, ep transport.Endpoint, opts ...Option) (*Communicator, error) {
	c := unopened(ep)
	if err := c.open(ctx, opts...); err != nil {
		_ = c.Close()
		return nil, initializationFailed(ep.Name(), c.name, err)
	}
	c.logJoined()
	return c, nil
}

// unopened returns a communicator for open.
func unopened(ep transport.Endpoint) *Communicator {
	c := &Communicator{
		ep: ep, memory: ep.Memory(), rank: ep.Rank(), size: ep.Size(),
		logger: slog.New(slog.DiscardHandler),
	}
	c.regions, _ = ep.(transport.Regions)
	c.parts, _ = ep.Staging().(transport.Parts)
	c.native, _ = ep.(transport.Collectives)
	c.guard, _ = ep.(transport.FaultGuard)
	c.observer, _ = ep.(verbs.Observer)
	c.life.Open()
	c.queue.serve = c.serve
	c.messages.engine.Init(ep, p2pGroup{c})
	return c
}

// open joins the ranks. After an error the caller closes c.
func (c *Communicator) open(ctx context.Context, opts ...Option) error {
	var number uint64
	var dir string
	var times bool
	for _, o := range opts {
		dir, times = cmp.Or(o.flight, dir), times || o.times
		if o.selector != nil {
			c.selector = o.selector
		}
		if o.logger != nil {
			c.logger = o.logger
		}
		if o.failures != nil {
			c.tell = o.failures
		}
		if o.name != "" {
			c.name, c.global, number, c.recorder = o.name, o.global, o.number, o.recorder
		}
	}
	err := c.init(ctx)
	if err == nil && c.size > 1 {
		if err = c.startRecords(number, dir, times); err == nil {
			err = c.splitByNode(ctx)
		}
	}
	return err
}

// initializationFailed is the error of a group that could not be set up. group is its name, "" for
// the first group.
func initializationFailed(backend, group string, err error) error {
	if group != "" {
		err = fmt.Errorf("group %s: %w", group, err)
	}
	return &InitializationFailedError{Backend: backend, Err: err}
}

// initializationCause returns why the initialization failed of which err is the error, for an error that says itself
// that something failed. Other errors it returns as they are.
func initializationCause(err error) error {
	if failed, ok := err.(*InitializationFailedError); ok { //nolint:errorlint // a wrapped one has words before it
		return failed.Err
	}
	return err
}

func (c *Communicator) init(ctx context.Context) error {
	if ctx == nil {
		return nilContext("new")
	}
	if c.selector == nil {
		s, err := newRegistered(c.size)
		if err != nil {
			return err
		}
		c.selector = s
	}
	c.isDebug = c.selector.Debug()
	if n := c.selector.WorldSize(); n != c.size {
		return fmt.Errorf("the settings are for %d ranks, and the transport connects %d: make them for as many (config.Request.Ranks)", n, c.size)
	}
	c.call = Call{comm: c, reducer: reducer.New(c.size)}
	if call := &c.call; c.parts != nil {
		call.partOfPiece = func(to int) (lo, hi int) { return call.partFor(to, call.pieceLo, call.pieceHi) }
	}
	c.warn = c.warnOf
	c.ep.SetTimeout(transport.Timeout{After: c.selector.Timeout(), Warn: c.warn})
	if c.size == 1 {
		return transport.ContextError(ctx)
	}
	c.panicOnFaults()
	defer c.restoreFaults()
	err := c.caught(func() error { return c.agree(ctx) })
	if c.joined = c.seq; c.placedRanks() != nil {
		c.joined++ // see splitByNode
	}
	return err
}

// number returns the number of a call as users count: from 1, without the calls that New made.
func (c *Communicator) number(seq uint64) uint64 { return seq - min(seq, c.joined) }

// Rank returns this rank's number in the group, 0 <= Rank < Size, or -1 if c is nil.
func (c *Communicator) Rank() int {
	if c == nil {
		return -1
	}
	return c.rank
}

// Size returns the number of ranks in the group, or -1 if c is nil.
func (c *Communicator) Size() int {
	if c == nil {
		return -1
	}
	return c.size
}

// Transport returns the name of the transport that connects the group, "" if c is nil.
func (c *Communicator) Transport() string {
	if c == nil || c.ep == nil { // nil or zero
		return ""
	}
	return c.ep.Name()
}

// Selector returns the group's Selector, nil if c is nil.
func (c *Communicator) Selector() Selector {
	if c == nil {
		return nil
	}
	return c.selector
}

// LastChoice returns the kernel of this rank's last call, and why it was chosen. It is zero before
// the first call, after a barrier, which has no kernel, and in a group of one rank. It must not be
// called while a call is running; after a rejected call its result is undefined.
func (c *Communicator) LastChoice() Choice {
	if c == nil || c.call.plan == nil {
		return Choice{}
	}
	return c.call.plan.choice
}

// Close leaves the group. It never waits. A rank that still needs this one gets PeerLostError.
// Later calls return ErrClosed. Closing twice is a no-op. Works that have not ended are dropped:
// call Drain first, or wait for each. *UnfinishedError counts and names them, unless the group has
// failed. ErrInvalidCommunicator: c is nil.
func (c *Communicator) Close() error {
	if c == nil {
		return c.unmade("close")
	}
	err := c.unfinished() // as soon as the communicator is closed its queue ends by itself
	if !c.life.Close() {
		return nil
	}
	if err != nil && c.ep.Failure() != nil {
		err = nil // they fail in any case
	}
	err = errors.Join(err, c.ep.Close(), c.levels.close())
	if releases := c.messages.engine.Stop(); !releases {
		err = errors.Join(err, c.drop()) // the hold of messages
	}
	return errors.Join(err, c.drop())
}

// Abort fails the group on all ranks, including calls that are running: they get AbortedError with
// this rank and cause. If cause is itself an *AbortedError (not a wrapped one), it passes on that
// another rank gave up, and they get that error. Abort never waits. It does nothing if the group
// has failed, has one rank, or is nil. Any goroutine may call it at any time.
func (c *Communicator) Abort(cause error) {
	if c == nil || c.size == 1 {
		return // such a group cannot fail
	}
	if cause == nil {
		cause = errors.New("no cause given")
	}
	if !c.life.HoldOpen() {
		return // closed
	}
	by := c.rank
	if passed, ok := cause.(*AbortedError); ok && passed.Cause != nil && passed.By >= 0 && passed.By < c.size { //nolint:errorlint // a wrapped one is this rank's own cause
		by, cause = passed.By, passed.Cause
	}
	c.ep.Fail(&transport.Failure{
		Kind: transport.FailureAborted, By: by, Text: cause.Error(), Reason: rejectionIn(cause), Cause: cause,
	})
	_ = c.drop()
}

// Err returns the failure of the group, nil if it has not failed, and ErrInvalidCommunicator if c
// is nil.
func (c *Communicator) Err() error {
	if c == nil {
		return c.unmade("err")
	}
	if !c.life.Hold() {
		if cause := c.ended.Load(); cause != nil {
			return *cause
		}
		return nil
	}
	defer c.drop() //nolint:errcheck // Close has returned already
	if f := c.ep.Failure(); f != nil {
		return c.cause(f)
	}
	return nil
}
