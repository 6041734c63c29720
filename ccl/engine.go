package ccl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/ccl/internal/layout"
	"github.com/goccl/goccl/ccl/internal/lifetime"
	"github.com/goccl/goccl/ccl/internal/reasons"
	"github.com/goccl/goccl/ccl/internal/reducer"
	"github.com/goccl/goccl/ccl/internal/verbs"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/memory"
	"github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/transport"
)

// engine makes the calls of one rank, one at a time. It knows nothing of the queue and of messages.
// What a small call touches lies together, by value.
type engine struct {
	group
	medium
	faults   faults
	failures failures
	records  records
	journal  journal
	holds    holds
	levels   *levels // nil: all ranks are on one node
	meter    meter
	waiting  interleave.Int64 // goroutines of the program that wait for an asynchronous call

	seq     uint64 // of the last call entered or rejected
	stage   stage
	before  *transport.Failure // the group has failed in an earlier call
	call    Call
	entry   transport.Arrival
	plans   plans
	scratch scratch
	shared  sharedMemory
	warn    func(seq uint64, missing []int)
}

// medium is how the ranks of a group reach each other's memory.
type medium struct {
	memory   transport.Memory      // nil: ranks do not share memory
	regions  transport.Regions     // not nil: they do not, but can
	parts    transport.Parts       // not nil: ranks send each other parts of their inputs
	native   transport.Collectives // not nil: the transport has collectives of its own
	observer verbs.Observer        // nil: no one watches the verbs of kernels
}

// stage is how far the current call has come.
type stage struct {
	inside   bool // it has started to synchronise
	claiming bool // this rank runs the bodies of other ranks
	running  bool // a kernel runs
}

// scratch is memory that is used again in every call.
type scratch struct {
	lengths   lengths
	spare     memory.Scratch // for inputs that the engine makes
	bundled   memory.Scratch // for tensors that travel together
	wide      Buffer         // the result of performWide
	tensors   []Buffer
	coalesced []Buffer // all tensors of the call
	spans     [][]byte // of them
}

// set prepares the engine of a rank that has not joined its group.
func (e *engine) set(ep transport.Endpoint) {
	e.ep, e.rank, e.size = ep, ep.Rank(), ep.Size()
	e.memory = ep.Memory()
	e.regions, _ = ep.(transport.Regions)
	e.parts, _ = ep.Staging().(transport.Parts)
	e.native, _ = ep.(transport.Collectives)
	e.observer, _ = ep.(verbs.Observer)

	e.faults.guard, _ = ep.(transport.FaultGuard)
	e.faults.recorder = &e.records
	e.failures.group = &e.group
	e.journal = journal{group: &e.group, logger: slog.New(slog.DiscardHandler)}
	e.records = records{group: &e.group, journal: &e.journal, guard: e.faults.guard}
	e.holds.group, e.holds.note, e.holds.free = &e.group, e.failures.noteFailure, e.free
	e.holds.life.Open()
}

// join synchronises with the other ranks of the group for the first time.
func (e *engine) join(ctx context.Context) error {
	if ctx == nil {
		return nilContext("new")
	}

	if e.selector == nil {
		s, err := newRegistered(e.size)
		if err != nil {
			return err
		}
		e.selector = s
	}
	e.isDebug = e.selector.Debug()
	if n := e.selector.WorldSize(); n != e.size {
		return fmt.Errorf("the settings are for %d ranks, but the transport connects %d: make them for as many (config.Request.Ranks)", n, e.size)
	}

	call := &e.call
	call.engine, call.view.call, call.reducer = e, call, reducer.New(e.size)
	if e.parts != nil {
		call.partOfPiece = func(to int) (lo, hi int) { return call.partFor(to, call.pieceLo, call.pieceHi) }
	}

	e.warn = e.warnOf
	if s, ok := e.ep.(interface{ BeforeSleep(func(time.Duration)) }); ok {
		s.BeforeSleep(e.recordSleep)
	}
	e.ep.SetTimeout(transport.Timeout{After: e.selector.Timeout(), Warn: e.warn})
	if e.size == 1 {
		return transport.ContextError(ctx)
	}

	e.faults.panicOnFaults()
	defer e.faults.restoreFaults()
	err := e.faults.caught(func() error { return e.agree(ctx) })
	if e.joined = e.seq; e.placedRanks() != nil {
		e.joined++ // see splitByNode
	}
	return err
}

// free frees what the engine has of the transport. Nothing uses it any more.
func (e *engine) free() error {
	e.logTotals()
	err := errors.Join(e.ep.Free(), e.levels.free(), e.records.close())
	for _, r := range e.shared.allocated {
		err = errors.Join(err, r.Free())
	}
	return err
}

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
func (e *engine) ask(coll Collective, dtype DType, in, out Buffer, opts []CallOption) *request {
	r := &e.call.request
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
func (e *engine) start(ctx context.Context, coll Collective, opts []CallOption) error {
	if was, ok := e.holds.life.Enter(); !ok {
		return outsideCall(coll, opts, e.holds.unavailable(coll, was))
	}
	e.faults.panicOnFaults()
	if e.meter.isOn {
		e.meter.begin(coll)
	}
	if ctx == nil {
		return e.end(e.rejectCall(&arguments{coll: coll}, opts, nilContext(coll.String())))
	}

	var err error
	if e.meter.observer != nil {
		err = e.observe(ctx, opts)
	}
	if f := e.failure(); f != nil { // the call ends with it, after its arguments have been checked
		e.before = f
	}
	if err != nil {
		return e.end(e.rejectCall(&arguments{coll: coll}, opts, err))
	}
	return nil
}

// outsideCall returns err as the error of a call that is not running. Another call may be.
func outsideCall(coll Collective, opts []CallOption, err error) error {
	o := mergeCallOptions(opts)
	return newCallError(coll.String(), &o, err)
}

// nilContext is the error of an operation whose context is nil.
func nilContext(operation string) error {
	return &InvalidArgumentError{operation, "the context is nil: use context.Background"}
}

// end ends the call that start has started, and returns err as a *CallError.
func (e *engine) end(err error) error {
	e.faults.restoreFaults()
	if err != nil {
		err = e.callError(err)
	}
	if e.meter.isOn {
		e.meter.end(err)
		e.records.count(e.meter.coll, e.meter.cost)
		err = e.observeEnd(err)
	}
	e.leave()
	return err
}

// leave lets the next call run.
func (e *engine) leave() {
	if !e.holds.life.Leave() {
		_ = e.holds.release(lifetime.Call) // Close has returned already
	}
}

// reject is for a call that is rejected on this rank, with err. It consumes the call's number, so
// that the group lives on if all ranks reject the call, and touches nothing else.
func (e *engine) reject(err error) error {
	if e.before != nil {
		return e.alsoFailedBefore(err)
	}
	e.seq++
	if e.size > 1 {
		e.records.recordRejected(&e.call.request, e.seq)
		e.ep.Reject(e.seq, reasons.Line(err.Error()))
	}
	return err
}

// rejectCall is reject for a call whose arguments this rank rejects, with err.
func (e *engine) rejectCall(a *arguments, opts []CallOption, err error) error {
	if r := e.ask(a.coll, a.dtype, a.send, a.recv, opts); r.count == 0 { // for the error and the record
		r.count = a.send.Len()
	}
	return e.reject(err)
}

// Reject takes the place of a collective call that this rank cannot make because of err, a mistake
// in its own arguments, and returns err in a *CallError.
//
// It is for packages that make calls of more than one step and check arguments first. If all ranks
// reject the call the group lives on; if only some do, the others get *MismatchError, field
// "arguments", with the first line of err's text.
//
// If the group has failed or was closed, the error says so as well. If the group has failed because
// of the same text, the error has the text once.
func (c *Communicator) Reject(ctx context.Context, err error) error {
	if err == nil {
		err = &InvalidArgumentError{collReject.String(), "the reason is nil"}
	}
	if other := c.start(ctx, collReject, nil); other != nil {
		return fmt.Errorf("%w; and %w", err, other)
	}
	return c.engine.end(c.engine.rejectCall(&arguments{coll: collReject}, nil, err))
}

// step makes a call without its start and its end, or one of several calls between these: it
// chooses the kernel, synchronises with all ranks, and runs the kernel.
func (e *engine) step(ctx context.Context, r *request) (err error) {
	if e.size == 1 {
		return e.alone(ctx, r)
	}
	p, err := e.choose(r)
	if err != nil {
		return e.reject(err)
	}
	if e.before != nil {
		return e.failedBefore(r.coll)
	}
	if !r.isJoined && e.level == nil { // otherwise the wait for the other ranks notices
		if err := transport.ContextError(ctx); err != nil {
			if e.before = e.failure(); e.before != nil { // since the call started, which may have ended ctx
				return e.failedBefore(r.coll)
			}
			return e.reject(e.cancelled(r.coll, err))
		}
	}

	e.seq++
	e.prepare(ctx, r, p)
	e.stage.inside = true
	if e.meter.isOn {
		e.meter.add(r, p.choice.Entry)
	}

	defer func() {
		if e.stage.inside {
			err = e.abandon(recover())
		}
	}()
	timed := r.opts.queued || max(r.bytes, r.total) >= e.records.timedFrom
	e.records.lane.Begin(e.seq, p.recorded.PlusRoot(r.root), r.count, r.opts.label, timed)
	if p.isWide {
		err = e.performWide(r)
	} else {
		err = e.perform()
	}

	if e.records.lane.End(err == nil); err != nil {
		err = e.failed(r.coll, err)
	}
	if err == nil && p.isWide {
		e.narrow(r)
	}
	e.stage.inside = false
	return err
}

// alone makes a call of a group of one rank, in which every collective is a copy or nothing. It
// fails only if the algorithm cannot do the call or the context has ended.
func (e *engine) alone(ctx context.Context, r *request) error {
	if r.opts.algorithm != "" {
		if _, err := e.choose(r); err != nil {
			return err
		}
	}
	if err := transport.ContextError(ctx); err != nil && !r.isJoined && e.level == nil {
		return err
	}

	e.seq++
	if e.meter.isOn {
		e.meter.add(r, "")
	}
	out := r.out
	if r.displs != nil {
		out = out.Slice(r.displs[0], r.displs[0]+r.in.Len())
	}
	if r.coll != CollExScan && !same(out.data, r.in.data) {
		copy(out.data, r.in.data)
	}

	if n, ok := r.op.divisor(); ok {
		reduce.Divide(r.dtype.reduce(), pointer(out.data), r.in.Len(), n)
	}
	return nil
}

// perform does this rank's part of the call that it has prepared.
func (e *engine) perform() error {
	if e.entry.Staged {
		e.call.putInput(e.ep.Staging(), 0)
	}
	began := e.meter.waits.now()
	role, err := e.ep.Enter(&e.entry)
	e.meter.waits.end(began)
	if e.regions != nil {
		if e.memory = e.ep.Memory(); e.memory != nil {
			e.call.payload = false // the call is in place
		}
	}
	if err == nil {
		e.records.lane.Inside()
		if e.isDebug {
			e.warnOfLabels()
		}
	}

	switch {
	case err != nil:
		if differ, ok := errors.AsType[*transport.MismatchError](err); ok {
			return e.differing(differ)
		}
		return err
	// All ranks have entered the call: is there anything to run?
	case role == transport.RunNone:
		return nil
	case role == transport.RunClaimed:
		return e.runClaimed()
	case e.call.plan.shape.Total == 0:
		return nil
	}
	if err := e.body(); err != nil || !e.entry.Exposed {
		return err
	}

	began = e.meter.waits.now()
	err = e.ep.Complete()
	e.meter.waits.end(began)
	return err
}

// runClaimed runs the bodies that the transport hands out, of this rank or of ranks that sleep.
func (e *engine) runClaimed() error {
	e.stage.claiming = true
	for {
		rank, ok := e.ep.Claim()
		if !ok {
			e.stage.claiming = false
			began := e.meter.waits.now()
			err := e.ep.Release(false)
			e.meter.waits.end(began)
			return err
		}

		if rank != e.rank || e.call.rank != e.rank {
			e.impersonate(rank)
		}
		if err := e.body(); err != nil {
			return e.failClaimed(err)
		}
	}
}

// failClaimed ends a series of claims with err, the error of the body claimed last.
func (e *engine) failClaimed(err error) error {
	e.ep.Fail(e.failures.failureOf(err, e.call.rank, e.seq))
	e.stage.claiming = false
	_ = e.ep.Release(true) // the failure is recorded
	return transport.ErrFailed
}

// impersonate switches the call to another rank. Per-rank state is the two buffers and, for
// three collectives, the displacements; no other cache line of that rank is touched.
func (e *engine) impersonate(rank int) {
	call := &e.call
	call.reset(rank)
	call.in.data, call.out.data = e.memory.Buffers(rank)
	if collectives[call.coll].placed {
		call.places = e.memory.Displs(rank)
	}
}

// abandon ends the synchronisation of a call that did not return because of a panic with v, or,
// if v is nil, because a kernel left its goroutine by runtime.Goexit. It returns the call's error
// if a kernel panicked or shared memory is the cause. Otherwise the other ranks get the failure,
// and the panic or the end of the goroutine continues.
func (e *engine) abandon(v any) error {
	coll := e.call.coll
	err := e.faults.fault(v)
	if e.stage.running && v != nil {
		if err == nil {
			err = &KernelPanicError{Kernel: e.call.name(), Value: v, Stack: debug.Stack()}
		}
		if e.stage.claiming {
			err = e.failClaimed(err)
		}
	}

	e.stage.running = false
	e.records.recordPanic()
	if err != nil {
		err = e.failed(coll, err)
		e.stage.inside = false
		return err
	}
	e.failures.fail(e.failures.failureOf(&KernelPanicError{Kernel: e.call.name(), Value: errGoexit, Stack: debug.Stack()}, e.rank, e.seq))
	if e.stage.claiming {
		_ = e.ep.Release(true) // the failure is recorded
	}
	e.ep.Withdraw()
	e.stage.inside, e.scratch.coalesced = false, nil
	_ = e.end(errGoexit)
	if v != nil {
		panic(v)
	}
	return nil
}

var errGoexit = errors.New("it ended its goroutine by runtime.Goexit")

// prepare sets up the call and what the rank brings to its synchronisation.
func (e *engine) prepare(ctx context.Context, r *request, p *plan) {
	call := &e.call
	call.plan = p
	call.payload = p.shape.Eager
	call.reset(e.rank)
	call.places = r.displs
	call.reducer.Set(&p.reduction)
	if r.root != p.root || r.lengths != p.lengths || r.opts.key != p.callKey {
		p.setFingerprint(r)
	}

	a := &e.entry
	a.Ctx, a.Seq = ctx, e.seq
	a.Fingerprint, a.Hash = p.fingerprint, p.hash
	if e.isDebug {
		a.Fingerprint = fingerprint.WithLabel(p.fingerprint, r.opts.label)
	}
	a.NoSpin = r.opts.queued && e.waiting.Load() == 0 // otherwise the program has left its core
	if a.Limit = (transport.Timeout{}); r.opts.timeout != 0 {
		a.Limit = e.limitOf(r.opts.timeout)
	}
	a.Work, a.Displs = p.work, r.displs
	e.setArrival(r, p)
}

// limitOf returns the timeout of a call that has one of its own.
func (e *engine) limitOf(after time.Duration) transport.Timeout {
	if after < 0 { // warned of as often as calls of the group time out
		after = -e.selector.Timeout()
	}
	return transport.Timeout{After: after, Warn: e.warn}
}

// reset makes the call ready to be executed for rank.
func (c *Call) reset(rank int) {
	c.rank = rank
	c.opened, c.clock, c.moved, c.doing, c.err = false, 0, 0, "", nil
}

// body runs the kernel for the call's rank. abandon turns its panic into an error.
func (e *engine) body() error {
	call := &e.call
	e.stage.running = true
	err := call.plan.choice.Kernel.Run(call)
	e.stage.running = false
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
