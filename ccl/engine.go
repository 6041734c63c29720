package ccl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/ccl/internal/layout"
	"github.com/goccl/goccl/ccl/internal/lifetime"
	"github.com/goccl/goccl/ccl/internal/reasons"
	"github.com/goccl/goccl/ccl/internal/reducer"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport"
)

// request is what a rank asks of one call.
type request struct {
	coll     Collective
	dtype    DType
	op       Op
	in, out  Buffer
	writes   []byte // memory of the user that the call writes
	count    int    // elements that all ranks agree on
	bytes    int    // of the longest input of a rank
	total    int    // of the longest result of a rank
	root     int
	each     int           // elements of a block, if all blocks have the same length
	counts   []int         // of the blocks, if not
	matrix   layout.Matrix // of the blocks of an all-to-all, if not
	displs   []int         // positions of blocks in out; nil: packed
	lengths  uint64        // hash of counts
	isJoined bool          // the ranks have synchronised for this call before, to exchange lengths
	opts     CallOption
}

// ask starts the rank's next request. It sets every field by itself, in place: a small call
// would notice the copy of a struct, and even zeroing it first.
func (c *Communicator) ask(coll Collective, dtype DType, in, out Buffer, opts []CallOption) *request {
	r := &c.call.request
	r.coll, r.dtype, r.op = coll, dtype, 0
	r.in.data, r.in.shift = in.data, in.shift
	r.out.data, r.out.shift = out.data, out.shift
	r.writes = out.data
	r.count, r.bytes, r.total, r.root = out.Len(), len(out.data), len(out.data), 0
	r.each, r.counts, r.matrix, r.displs, r.lengths, r.isJoined = 0, nil, nil, nil, 0, false
	switch len(opts) {
	case 0:
		r.opts = CallOption{}
	case 1: // as in every call of package dist
		r.opts = opts[0]
	default:
		r.opts = mergeCallOptions(opts)
	}
	return r
}

// start starts a call. Unless it returns an error, the call must end with end. A group that has
// failed or was closed does not consume a number.
func (c *Communicator) start(ctx context.Context, coll Collective, opts []CallOption) error {
	if c == nil {
		return outsideCall(coll, opts, c.unmade(coll.String()))
	}
	if c.queue.length.Load() > 0 && !(len(opts) > 0 && opts[0].queued) {
		if err := c.awaitQueue(ctx, coll, opts); err != nil {
			return outsideCall(coll, opts, err)
		}
	}
	if was, ok := c.life.Enter(); !ok {
		return outsideCall(coll, opts, c.unavailable(coll, was))
	}
	c.panicOnFaults()
	if ctx == nil {
		return c.end(c.rejectCall(&arguments{coll: coll}, opts, nilContext(coll.String())))
	}
	if f := c.failure(); f != nil { // the call ends with it, after its arguments have been checked
		c.before = f
	}
	return nil
}

// outsideCall returns err as the error of a call that is not running. Another call may be.
func outsideCall(coll Collective, opts []CallOption, err error) error {
	o := mergeCallOptions(opts)
	return newCallError(coll.String(), &o, err)
}

// unavailable returns why a call may not start. was is the word of the communicator's
// lifetime at the time of the call; the error depends on it.
func (c *Communicator) unavailable(coll Collective, was lifetime.State) error {
	switch {
	case !was.Made():
		return c.unmade(coll.String())
	case was.Closed():
		return c.closed(coll.String())
	}
	return fmt.Errorf("ccl: %v: %w: another call of this rank is running; give each goroutine a group of its own",
		coll, ErrConcurrentUse)
}

// nilContext is the error of an operation whose context is nil.
func nilContext(operation string) error {
	return &InvalidArgumentError{operation, "the context is nil: use context.Background"}
}

// end ends the call that start has started, and returns err as a *CallError.
func (c *Communicator) end(err error) error {
	c.restoreFaults()
	if err != nil {
		err = c.callError(err)
	}
	if !c.life.Leave() {
		_ = c.release(lifetime.Call) // Close has returned already
	}
	return err
}

// refuse is for a call that is rejected on this rank, with err. It consumes the call's number, so
// that the group lives on if all ranks reject the call, and touches nothing else.
func (c *Communicator) refuse(err error) error {
	if c.before != nil {
		return c.alsoFailedBefore(err)
	}
	c.seq++
	if c.size > 1 {
		c.recordRejected()
		c.ep.Reject(c.seq, reasons.Line(err.Error()))
	}
	return err
}

// rejectCall is refuse for a call whose arguments this rank rejects, with err.
func (c *Communicator) rejectCall(a *arguments, opts []CallOption, err error) error {
	if r := c.ask(a.coll, a.dtype, a.send, a.recv, opts); r.count == 0 { // for the error and the record
		r.count = a.send.Len()
	}
	return c.refuse(err)
}

// Reject takes the place of a collective call that this rank cannot make because of err, a mistake
// in its own arguments, and returns err in a *CallError. It is for packages that make calls of more than one step and
// check arguments first. If all ranks reject the call the group lives on; if only some do, the others
// get *MismatchError, field "arguments", with the first line of err's text.
//
// If the group has failed or was closed, the error says so as well. If the group has failed because of the
// same text, the error has the text once.
func (c *Communicator) Reject(ctx context.Context, err error) error {
	if err == nil {
		err = &InvalidArgumentError{collReject.String(), "the reason is nil"}
	}
	if other := c.start(ctx, collReject, nil); other != nil {
		return fmt.Errorf("%w; and %w", err, other)
	}
	return c.end(c.rejectCall(&arguments{coll: collReject}, nil, err))
}

// step makes a call without its start and its end, or one of several calls between these: it
// chooses the kernel, synchronises with all ranks, and runs the kernel.
func (c *Communicator) step(ctx context.Context, r *request) (err error) {
	if c.totals != nil {
		c.totals.begin()
	}
	if c.size == 1 {
		return c.alone(ctx, r)
	}
	p, err := c.choose(r)
	if err != nil {
		return c.refuse(err)
	}
	if c.before != nil {
		return c.failedBefore(r.coll)
	}
	if !r.isJoined && !c.isLevel { // otherwise the wait for the other ranks notices
		if err := transport.ContextError(ctx); err != nil {
			if c.before = c.failure(); c.before != nil { // since the call started, which may have ended ctx
				return c.failedBefore(r.coll)
			}
			return c.refuse(c.cancelled(r.coll, err))
		}
	}
	c.seq++
	c.prepare(ctx, r, p)
	c.inside = true
	defer func() {
		if c.inside {
			err = c.abandon(recover())
		}
	}()
	timed := r.opts.queued || max(r.bytes, r.total) >= c.timedFrom
	c.lane.Begin(c.seq, p.recorded.PlusRoot(r.root), r.count, r.opts.label, timed)
	if p.isWide {
		err = c.performWide(r)
	} else {
		err = c.perform()
	}
	if c.lane.End(err == nil); err != nil {
		err = c.failed(r.coll, err)
	} else if c.totals != nil {
		c.totals.end(r)
	}
	if err == nil && p.isWide {
		c.narrow(r)
	}
	c.inside = false
	return err
}

// alone makes a call of a group of one rank, in which every collective is a copy or nothing. It
// fails only if the algorithm cannot do the call or the context has ended.
func (c *Communicator) alone(ctx context.Context, r *request) error {
	if r.opts.algorithm != "" {
		if _, err := c.choose(r); err != nil {
			return err
		}
	}
	if err := transport.ContextError(ctx); err != nil && !r.isJoined && !c.isLevel {
		return err
	}
	c.seq++
	out := r.out
	if r.displs != nil {
		out = out.Slice(r.displs[0], r.displs[0]+r.in.Len())
	}
	if r.coll != CollExScan && !same(out.data, r.in.data) {
		copy(out.data, r.in.data)
	}
	if c.totals != nil {
		c.totals.end(r)
	}
	return nil
}

// cancelled is the error of a call whose context had ended before the call started.
func (c *Communicator) cancelled(coll Collective, err error) error {
	return fmt.Errorf("ccl: %v: cancelled before the call began: %w", coll, err)
}

// perform does this rank's part of the call that it has prepared.
func (c *Communicator) perform() error {
	if c.entry.Staged {
		c.call.putInput(c.ep.Staging(), 0)
	}
	role, err := c.ep.Enter(&c.entry)
	if c.totals != nil {
		c.totals.entered()
	}
	if c.regions != nil {
		if c.memory = c.ep.Memory(); c.memory != nil {
			c.call.payload = false // the call is in place
		}
	}
	if err == nil {
		c.lane.Inside()
		if c.isDebug {
			c.warnOfLabels()
		}
	}
	switch {
	case err != nil:
		if differ, ok := errors.AsType[*transport.MismatchError](err); ok {
			return c.differing(differ)
		}
		return err
	case role == transport.RunNone:
		return nil
	case role == transport.RunClaimed:
		return c.runClaimed()
	case c.call.plan.shape.Total == 0:
		return nil
	}
	if err := c.body(); err != nil || !c.entry.Exposed {
		return err
	}
	if c.totals != nil {
		return c.totals.wait(c.ep.Complete)
	}
	return c.ep.Complete()
}

// runClaimed runs the bodies that the transport hands out, of this rank or of ranks that sleep.
func (c *Communicator) runClaimed() error {
	c.claiming = true
	for {
		rank, ok := c.ep.Claim()
		if !ok {
			c.claiming = false
			if c.totals != nil {
				return c.totals.wait(func() error { return c.ep.Release(false) })
			}
			return c.ep.Release(false)
		}
		if rank != c.rank || c.call.rank != c.rank {
			c.impersonate(rank)
		}
		if err := c.body(); err != nil {
			return c.failClaimed(err)
		}
	}
}

// failClaimed ends a series of claims with err, the error of the body claimed last.
func (c *Communicator) failClaimed(err error) error {
	c.ep.Fail(c.failureOf(err, c.call.rank))
	c.claiming = false
	_ = c.ep.Release(true) // the failure is recorded
	return transport.ErrFailed
}

// impersonate switches the call to another rank. Per-rank state is the two buffers and, for
// three collectives, the displacements; no other cache line of that rank is touched.
func (c *Communicator) impersonate(rank int) {
	call := &c.call
	call.reset(rank)
	call.in.data, call.out.data = c.memory.Buffers(rank)
	if collectives[call.coll].placed {
		call.places = c.memory.Displs(rank)
	}
}

// abandon ends the synchronisation of a call that did not return because of a panic with v, or,
// if v is nil, because a kernel left its goroutine by runtime.Goexit. It returns the call's error
// if a kernel panicked or shared memory is the cause. Otherwise the other ranks get the failure,
// and the panic or the end of the goroutine continues.
func (c *Communicator) abandon(v any) error {
	coll := c.call.coll
	err := c.fault(v)
	if c.running && v != nil {
		if err == nil {
			err = &KernelPanicError{Kernel: c.call.name(), Value: v, Stack: debug.Stack()}
		}
		if c.claiming {
			err = c.failClaimed(err)
		}
	}
	c.running = false
	c.recordPanic()
	if err != nil {
		err = c.failed(coll, err)
		c.inside = false
		return err
	}
	c.ep.Fail(c.failureOf(&KernelPanicError{Kernel: c.call.name(), Value: errGoexit, Stack: debug.Stack()}, c.rank))
	if c.claiming {
		_ = c.ep.Release(true) // the failure is recorded
	}
	c.ep.Withdraw()
	c.inside, c.coalesced = false, nil
	_ = c.end(nil)
	if v != nil {
		panic(v)
	}
	return nil
}

var errGoexit = errors.New("it ended its goroutine by runtime.Goexit")

// prepare sets up the call and what the rank brings to its synchronisation.
func (c *Communicator) prepare(ctx context.Context, r *request, p *plan) {
	call := &c.call
	call.plan = p
	call.payload = p.shape.Eager
	call.reset(c.rank)
	call.places = r.displs
	call.reducer.Set(&p.reduction)
	if r.root != p.root || r.lengths != p.lengths || r.opts.key != p.callKey {
		p.setFingerprint(r)
	}

	e := &c.entry
	e.Ctx, e.Seq = ctx, c.seq
	e.Fingerprint, e.Hash = p.fingerprint, p.hash
	if c.isDebug {
		e.Fingerprint = fingerprint.WithLabel(p.fingerprint, r.opts.label)
	}
	e.NoSpin = r.opts.queued && c.queue.waiting.Load() == 0 // otherwise the program has left its core
	if e.Limit = (transport.Timeout{}); r.opts.timeout != 0 {
		e.Limit = c.limitOf(r.opts.timeout)
	}
	e.Work, e.Displs = p.work, r.displs
	c.setArrival(r, p)
}

// limitOf returns the timeout of a call that has one of its own.
func (c *Communicator) limitOf(after time.Duration) transport.Timeout {
	if after < 0 { // warned of as often as calls of the group time out
		after = -c.selector.Timeout()
	}
	return transport.Timeout{After: after, Warn: c.warn}
}

// reset makes the call ready to be executed for rank.
func (c *Call) reset(rank int) {
	c.rank = rank
	c.opened, c.clock, c.moved, c.doing, c.err = false, 0, 0, "", nil
}

// body runs the kernel for the call's rank. abandon turns its panic into an error.
func (c *Communicator) body() error {
	call := &c.call
	c.running = true
	err := call.plan.choice.Kernel.Run(call)
	c.running = false
	if err == nil {
		err = call.err
	}
	call.err = errEnded
	return err
}

// name returns the entry and the collective, for messages.
func (c *Call) name() string {
	return c.plan.choice.Entry + " " + c.plan.shape.Collective.String()
}

// plan is how calls of one shape are done.
type plan struct {
	key       planKey
	algorithm string // that the call was forced to
	recorded  flight.What
	choice    Choice
	entry     uint64 // id of choice.Entry in fingerprints; 0 where the engine does the call itself
	shape     Shape
	isWide    bool // the kernel gets float16 as float32
	isShared  bool // ranks read memory or payloads of each other
	work      int  // bytes that the bodies of all ranks touch
	reduction reducer.Reduction
	// The fingerprint for a root, lengths and the key of a call.
	root        int
	lengths     uint64
	callKey     string
	fingerprint transport.Fingerprint
	hash        uint64
}

// setFingerprint makes the fingerprint of a request.
func (p *plan) setFingerprint(r *request) {
	p.root, p.lengths, p.callKey = r.root, r.lengths, r.opts.key
	p.fingerprint = fingerprint.Fingerprint{
		Collective: uint8(r.coll), DType: uint8(r.dtype), Op: r.op.fingerprintID(), Count: r.count, Root: r.root,
		Entry: p.entry, Counts: r.lengths, Key: fingerprint.KeyID(r.opts.key),
	}.Encode()
	p.hash = fingerprint.Hash(p.fingerprint)
}

// planKey holds the parameters that a plan is made for, except the name of the algorithm.
type planKey struct {
	coll  Collective
	dtype DType
	op    Op
	bytes int
	total int
}

// planCache is the number of plans that a communicator remembers, a power of two.
const planCache = 32

// place returns where the plan for a request goes, unless it goes to the place beside it.
func (r *request) place() uint {
	h := uint64(r.bytes)*0x9e3779b97f4a7c15 ^ uint64(r.total)*0xbf58476d1ce4e5b9 ^
		(uint64(r.coll)<<40^uint64(r.dtype)<<32^uint64(r.op))*0x94d049bb133111eb ^ uint64(len(r.opts.algorithm))
	return uint(h>>40) % planCache
}

// fits reports whether the plan is for r. It compares field by field: a key that is put together
// first would be read again before it is stored, which takes longer than everything else here.
func (p *plan) fits(r *request) bool {
	return p.key.bytes == r.bytes && p.key.total == r.total && p.key.op == r.op &&
		p.key.coll == r.coll && p.key.dtype == r.dtype && p.algorithm == r.opts.algorithm
}

// choose returns the plan for a request.
func (c *Communicator) choose(r *request) (*plan, error) {
	latest := &c.latest[r.coll]
	if p := *latest; p != nil && p.fits(r) {
		return p, nil
	}
	at := r.place()
	p, beside := &c.plans[at], &c.plans[at^1]
	switch {
	case p.fits(r):
	case beside.fits(r):
		p = beside
	default:
		if p.key != (planKey{}) {
			p = beside
		}
		if err := c.plan(r, p); err != nil {
			return nil, err
		}
		if p == c.call.plan { // it was that of the last call
			c.call.plan = nil
		}
	}
	*latest = p
	return p, nil
}

// plan writes the plan for a request.
func (c *Communicator) plan(r *request, p *plan) error {
	key := planKey{r.coll, r.dtype, r.op, r.bytes, r.total}
	known := false
	defer func() {
		if !known { // a user's code ends this goroutine, so the call ends here
			_ = c.end(c.refuse(fmt.Errorf("ccl: %v: its goroutine ended while a kernel was chosen", r.coll)))
		}
	}()
	next := plan{key: key, algorithm: r.opts.algorithm, shape: Shape{
		Collective: r.coll, Ranks: c.size, Nodes: c.Nodes(), Bytes: key.bytes, Total: key.total,
		DType: r.dtype, Op: r.op.kernelOp(), Topology: c.selector.Topology(), Native: c.native != nil,
	}}
	switch r.coll {
	case CollBarrier, collNewGroup, collForm: // whose whole work is the synchronisation
	case collRegion, collAlloc:
		next.choice = Choice{Entry: engineEntry, Kernel: regionKernel}
		next.shape.Total = r.bytes
	case collGatherLengths, collScatterLengths, collAllToAllLengths, collSplit:
		next.choice = Choice{Entry: engineEntry, Kernel: lengthsKernel}
		next.shape = next.choice.Shape(next.shape, c.ep.PayloadLimit())
	default:
		choice, err := c.selector.Choose(next.shape, r.opts.algorithm)
		if err != nil {
			known = true
			return err
		}
		c.logChoice(next.shape, &choice)
		next.choice, next.entry = choice, fingerprint.EntryID(choice.Entry)
		next.isWide = choice.Kernel.isWide(&next.shape)
		next.shape = choice.Shape(next.shape, c.ep.PayloadLimit())
		next.work = c.size * (next.shape.Bytes + next.shape.Total)
	}
	if r.dtype != 0 {
		op, user := next.shape.Op.reduction()
		next.reduction = reducer.NewReduction(next.shape.DType.reduce(), op, user)
	}
	k := next.choice.Kernel
	next.isShared = next.shape.Total > 0 && !k.Native && !k.TwoLevels
	next.setFingerprint(r)
	next.recorded = c.recordOf(&next)
	*p = next
	known = true
	return nil
}

// entryName returns the name of the algorithm's entry that has the id.
func (c *Communicator) entryName(id uint64) string {
	for _, name := range c.selector.Entries() {
		if fingerprint.EntryID(name) == id {
			return name
		}
	}
	return "none"
}

// engineEntry stands for an entry's name where the engine's own kernels run.
const engineEntry = "the engine"
