package ccl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
)

// Communicator is one rank's handle on a group of connected ranks. Its ranks make
// the same calls in the same order; one rank's calls follow each other, and two
// that overlap are refused with ErrConcurrentUse where that is seen. Calls of one that New
// has not made return ErrInvalidCommunicator. Abort, Close,
// Err, Rank, Size, Selector and Transport may be called at any time by anyone. The
// buffers of the last call stay reachable until the next one.
type Communicator struct {
	_          [padBytes]byte
	ep         transport.Endpoint
	memory     transport.Memory  // nil where ranks do not share memory
	regions    transport.Regions // not nil where they do not, but can
	rank, size int
	name       string
	global     []int // the ranks of the first group that these are; nil: this is the first
	selector   Selector
	queue      queue
	messages   messages
	unasked    failedWorks // for Drain
	logger     *slog.Logger
	tell       func(*Communicator, *CollectiveFailedError) // nil: nothing is to be told
	warn       func(seq uint64, missing []int)

	made      transport.Region       // by the last call that made one
	shared    []byte                 // its memory
	none      *AllocationFailedError // or why no rank has it
	allocated []transport.Region
	placed    bool // buffers may lie in memory of regions

	ended atomic.Pointer[error] // the failure of the group, for when the endpoint is free

	guard  transport.FaultGuard // nil where shared memory cannot vanish
	faults bool                 // whether faults were panics before the call

	life      lifetime
	inside    bool                          // the call that runs has begun to synchronise
	claiming  bool                          // this rank runs the bodies of others
	before    error                         // of calls on a group that has failed
	differ    atomic.Pointer[MismatchError] // of the call that failed because ranks made different ones
	seq       uint64                        // of the last call entered or refused
	joined    uint64                        // the calls that New made; users' calls count from there
	call      Call
	lengths   lengths
	spare     scratch // for inputs that are not the user's own
	bundled   scratch // for tensors that travel together
	tensors   []Buffer
	coalesced []Buffer // all tensors of the call
	places    [][]byte // of them
	entry     transport.Arrival
	plans     [planCache]plan
	_         [padBytes]byte
}

// padBytes before and after what a rank writes in every call keep other ranks'
// memory off its cache lines, which processors fetch in pairs. Without it a call of
// 4 bytes took up to twice as long, as the allocator happened to place things.
const padBytes = 128

// Option is an option of New.
type Option struct {
	selector Selector
	logger   *slog.Logger
	failures func(*Communicator, *CollectiveFailedError)
	name     string
	global   []int
}

// WithLogger gives the communicator a voice: it warns of calls that have waited
// for half of their timeout. Without it the library is silent.
func WithLogger(l *slog.Logger) Option { return Option{logger: l} }

// WithFailures has f called with every *CollectiveFailedError of the communicator, and of
// the groups made of it, before the call or Work returns it: a rank can tell a supervisor
// why it fails, also if the program then ends at once. f gets the communicator that failed
// and may ask it for ranks, but must not make calls. Several goroutines may call f at a
// time.
func WithFailures(f func(c *Communicator, err *CollectiveFailedError)) Option {
	return Option{failures: f}
}

// CallOption is an option of one call.
type CallOption struct {
	algorithm string
	timeout   time.Duration
	queued    bool // the call comes from the queue
	global    bool // Work.Source is a rank of the first group
}

// WithAlgorithm chooses the algorithm of one call by the name of its entry in
// ccl.yaml. It never bypasses what the algorithm supports.
func WithAlgorithm(entry string) CallOption { return CallOption{algorithm: entry} }

// WithTimeout bounds one call instead of the configured timeout; a negative d
// lets it wait for ever.
func WithTimeout(d time.Duration) CallOption { return CallOption{timeout: d} }

// WithGlobalSource makes the Source of an Irecv a rank of the first group, as GlobalRank
// returns it, where ranks of the message's group are numbered otherwise.
func WithGlobalSource() CallOption { return CallOption{global: true} }

func mergeCallOptions(opts []CallOption) (o CallOption) {
	for _, next := range opts {
		if next.algorithm != "" {
			o.algorithm = next.algorithm
		}
		if next.timeout != 0 {
			o.timeout = next.timeout
		}
		o.queued = o.queued || next.queued
		o.global = o.global || next.global
	}
	return o
}

// New makes ep a communicator. It is collective: it returns once all ranks have
// joined and agree on their settings. On an error, *InitializationFailedError, ep
// is closed; *MismatchError in it names the first setting in which ranks differ.
func New(ctx context.Context, ep transport.Endpoint, opts ...Option) (*Communicator, error) {
	c := &Communicator{
		ep: ep, memory: ep.Memory(), rank: ep.Rank(), size: ep.Size(),
		logger: slog.New(slog.DiscardHandler),
	}
	c.regions, _ = ep.(transport.Regions)
	c.guard, _ = ep.(transport.FaultGuard)
	c.life.word.Store(open)
	c.queue.serve = c.serve
	c.messages.engine.Init(ep, p2pGroup{c})
	for _, o := range opts {
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
			c.name, c.global = o.name, o.global
		}
	}
	if err := c.init(ctx); err != nil {
		_ = c.Close()
		return nil, initializationFailed(ep.Name(), c.name, err)
	}
	return c, nil
}

// initializationFailed is the error of a group, the first or one that has a name, that
// could not be set up.
func initializationFailed(backend, group string, err error) error {
	if group != "" {
		err = fmt.Errorf("group %s: %w", group, err)
	}
	return &InitializationFailedError{Backend: backend, Err: err}
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
	if n := c.selector.WorldSize(); n != c.size {
		return fmt.Errorf("the settings are for %d ranks, the transport connects %d", n, c.size)
	}
	c.call = Call{comm: c, reducer: newReducer(c.size)}
	c.warn = c.warnOf
	c.ep.SetTimeout(transport.Timeout{After: c.selector.Timeout(), Warn: c.warn})
	if c.size == 1 {
		return transport.ContextError(ctx)
	}
	c.panicOnFaults()
	defer c.restoreFaults()
	err := c.caught(func() error { return c.agree(ctx) })
	c.joined = c.seq
	return err
}

// warnOf tells the logger of a call that has waited for half of its timeout.
func (c *Communicator) warnOf(seq uint64, missing []int) {
	c.logger.Warn("a collective has waited for half of its timeout",
		"rank", c.rank, "call", c.number(seq), "missing", missing)
}

// number returns the number of a call as users count: from 1, without those that
// New made.
func (c *Communicator) number(seq uint64) uint64 { return seq - min(seq, c.joined) }

// Rank returns this rank's number in the group, 0 <= Rank < Size.
func (c *Communicator) Rank() int { return c.rank }

// Size returns the number of ranks in the group.
func (c *Communicator) Size() int { return c.size }

// Transport returns the name of the transport that connects the group.
func (c *Communicator) Transport() string {
	if c.ep == nil {
		return "" // of a zero Communicator
	}
	return c.ep.Name()
}

// Selector returns the group's Selector.
func (c *Communicator) Selector() Selector { return c.selector }

// LastChoice returns which kernel ran this rank's last call, and why it was
// chosen. It is zero before the first call, after a barrier, which needs no
// kernel, and in a group of one rank, where nothing runs. It is not to be asked
// while a call runs, nor after one that was refused.
func (c *Communicator) LastChoice() Choice {
	if c.call.plan == nil {
		return Choice{}
	}
	return c.call.plan.choice
}

// Close leaves the group. It never waits; a rank that still needs this one gets
// PeerLostError. Calls after it return ErrClosed. Closing twice is a no-op. Works that
// have not ended are dropped, and *UnfinishedError counts them, unless the group has
// failed, by which they fail in any case. Drain first, or wait for each.
func (c *Communicator) Close() error {
	err := c.unfinished() // as soon as the communicator is closed its queue ends by itself
	if !c.life.close() {
		return nil
	}
	if err != nil && c.ep.Failure() != nil {
		err = nil // they fail in any case
	}
	err = errors.Join(err, c.ep.Close())
	if releases := c.messages.engine.Stop(); !releases {
		err = errors.Join(err, c.drop()) // the hold of messages
	}
	return errors.Join(err, c.drop())
}

// Abort fails the group on all ranks, also for a call that is running: they get
// AbortedError with this rank and cause. It never waits, does nothing to a group
// that has failed or has one rank alone, and may be called by anyone at any time.
func (c *Communicator) Abort(cause error) {
	if c.size == 1 {
		return // nobody is concerned, and such a group cannot fail
	}
	if cause == nil {
		cause = errors.New("no cause given")
	}
	if !c.life.hold() {
		return // closed
	}
	c.ep.Fail(&transport.Failure{
		Kind: transport.FailureAborted, By: c.rank, Text: cause.Error(), Cause: cause,
	})
	_ = c.drop()
}

// Err returns the failure that ended the group, nil while it lives.
func (c *Communicator) Err() error {
	if !c.life.hold() {
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
