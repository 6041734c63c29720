package ccl

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/internal/memory"
	"github.com/goccl/goccl/transport"
)

// Region is memory that exists once on each node and that the node's ranks share:
//
//  1. CreateSharedRegion makes it, filled with zeros.
//  2. The leader of each node writes it through LeaderSlice, or all its ranks do through
//     BlockSlice.
//  3. Fence makes the writes visible to all ranks of the node.
//  4. They read it through Slice, without a copy.
//
// Later writes need another Fence; the ranks must agree on which of them writes what.
//
// In a group of one rank it is memory of the process and Fence does nothing. Any goroutine may
// call its methods; one goroutine at a time may call Close.
type Region[T Element] struct {
	comm   *Communicator
	all    []T
	memory transport.Region // nil: the garbage collector's
}

// CreateSharedRegion makes a region of count elements, at least 1; in a group of one rank count may
// be 0. It is collective: all ranks pass the same type and count. Between processes each rank
// allocates the memory of its own block.
//
// Rejected with *InvalidBufferSizeError, or ErrNotImplemented where ranks share no memory. If some
// rank cannot allocate the memory, all ranks get *transport.AllocationFailedError and the group
// lives on. Fails with *CollectiveFailedError.
func CreateSharedRegion[T Element](ctx context.Context, c *Communicator, count int) (*Region[T], error) {
	shift := bufferOf[T](nil).shift
	if err := c.makeRegion(ctx, collRegion, DTypeOf[T](), count, count<<shift, shift); err != nil {
		return nil, err
	}
	return &Region[T]{comm: c, all: elements[T](c.engine.shared.bytes, count), memory: c.engine.shared.made}, nil
}

// Slice returns the whole region, for reading after a Fence.
func (r *Region[T]) Slice() []T { return r.all }

// LeaderSlice returns the whole region on the leader of each node (see Communicator.IsLeader), and
// nil on other ranks.
func (r *Region[T]) LeaderSlice() []T {
	if !r.comm.IsLeader() {
		return nil
	}
	return r.all
}

// BlockSlice returns this rank's block of the region. The blocks of the node's ranks, in rank
// order, make up the region and do not overlap. The system usually places memory near the core of
// the rank that writes it first.
func (r *Region[T]) BlockSlice() []T {
	local := r.comm.SplitLocal()
	lo, hi := BlockRange(len(r.all), local.Rank(), local.Size())
	return r.all[lo:hi:hi]
}

// Fence returns when all ranks of all nodes have called it. What any rank wrote before its Fence is
// visible to the ranks of its node after theirs. Its errors are those of Barrier.
func (r *Region[T]) Fence(ctx context.Context) error { return r.comm.Barrier(ctx) }

// Close ends this rank's use of the region.
//
// Preconditions: no slice of it is used any more; no unfinished Work has one. Other ranks may
// continue to use theirs: the memory is released when all ranks have closed the region or their
// communicators. Close never waits, and may be called while calls on other memory run. Closing
// twice is a no-op.
func (r *Region[T]) Close() error {
	r.all = nil
	if r.memory == nil {
		return nil
	}
	memory := r.memory
	r.memory = nil
	return memory.Free()
}

// Alloc returns a buffer of count elements, filled with zeros, that ranks of other processes read
// directly (zero-copy).
//
// A call between processes costs as much as one between goroutines if the buffers of all ranks come
// from Alloc or from regions. Other buffers are copied, and so are all between nodes.
//
// Alloc is collective and has the errors of CreateSharedRegion. All ranks pass the same count, and
// each gets its own buffer. The buffer must not be used after Close of the communicator, which
// releases it (see Communicator.Retain).
func Alloc[T Element](ctx context.Context, c *Communicator, count int) ([]T, error) {
	shift := bufferOf[T](nil).shift
	part := (count<<shift + allocBytes - 1) &^ (allocBytes - 1)
	if err := c.makeRegion(ctx, collAlloc, DTypeOf[T](), count, part, shift); err != nil {
		return nil, err
	}
	if c.engine.apart() {
		return elements[T](c.engine.shared.bytes, count), nil
	}
	return elements[T](c.engine.shared.bytes[part*c.engine.rank:], count), nil
}

// allocBytes is the alignment of buffers of Alloc: pages, which the system places near the core of
// the rank that writes them first.
const allocBytes = 4096

// LocalCommunicator is the group of the ranks on one node.
type LocalCommunicator interface {
	Rank() int
	Size() int
	Barrier(ctx context.Context, opts ...CallOption) error
}

// SplitLocal returns the group of the ranks on this rank's node, in rank order. If that is all
// ranks, it may be the group itself. It belongs to this group, which closes it. SplitLocal is not
// collective.
func (c *Communicator) SplitLocal() LocalCommunicator {
	if c != nil && c.engine.levels != nil {
		return c.engine.levels.local.comm
	}
	return c
}

// IsLeader reports whether this rank is the first of its node, rank 0 of SplitLocal.
func (c *Communicator) IsLeader() bool { return c.SplitLocal().Rank() == 0 }

// sharedMemory is memory that all ranks of a communicator see.
type sharedMemory struct {
	made      transport.Region                 // by the last call that made a region
	bytes     []byte                           // its memory
	none      *transport.AllocationFailedError // or the reason that no rank has it
	allocated []transport.Region               // by Alloc
	isUsed    bool                             // buffers may lie in memory of regions
}

// makeRegion is region for a call of the program.
func (c *Communicator) makeRegion(ctx context.Context, coll Collective, dtype DType, count, part int, shift uint8) error {
	if err := c.awaitTurn(ctx, coll, nil); err != nil {
		return err
	}
	return c.engine.region(ctx, coll, dtype, count, part, shift, false)
}

// region makes memory that all ranks see: one part for all or, for Alloc, one for each. It leaves
// the memory in shared and its owner in made. The ranks agree on count. isJoined: the ranks have
// synchronised for it in the whole group.
func (e *engine) region(ctx context.Context, coll Collective, dtype DType, count, part int, shift uint8, isJoined bool) error {
	if err := e.start(ctx, coll, nil); err != nil {
		return err
	}
	e.shared.made, e.shared.bytes, e.shared.none = nil, nil, nil
	parts, least := 1, 1
	if coll == collAlloc {
		parts = e.size
	}

	if e.size == 1 {
		least = 0
	}

	switch {
	case count < least:
		return e.end(e.rejectCall(&arguments{coll: coll, dtype: dtype}, nil, &InvalidBufferSizeError{Operation: coll.String(), Buffer: "count", Expected: least, Actual: count, OrMore: true}))
	case count > (math.MaxInt/parts-allocBytes)>>shift:
		return e.end(e.rejectCall(&arguments{coll: coll, dtype: dtype}, nil, &transport.AllocationFailedError{RequestedBytes: math.MaxInt, Message: fmt.Sprintf(
			"%s: %d elements of %v on each of %d ranks have more bytes than there are addresses", coll, count, dtype, parts)}))
	}
	r := e.ask(coll, dtype, Buffer{}, Buffer{shift: shift}, nil)
	r.count, r.bytes, r.total, r.isJoined = count, parts*part, count<<shift, isJoined
	if e.apart() {
		return e.regionApart(ctx, r, coll, part)
	}
	if e.rank == 0 && (e.regions == nil || e.size == 1) { // goroutines share all memory: the leader allocates for all
		var none error
		if r.in.data, none = memory.Aligned(r.bytes); none != nil && e.size == 1 {
			return e.end(e.rejectCall(&arguments{coll: coll, dtype: dtype}, nil, noMemory(r.total, none.Error())))
		}
	}
	if e.size == 1 {
		e.shared.bytes = r.in.data
	}
	err := e.step(ctx, r)
	switch {
	case err == nil && e.shared.none == nil:
		e.shared.isUsed = true // as on all other ranks, or the group has failed
	case err == nil:
		err = e.shared.none
	case e.shared.made != nil: // this rank made it, and no rank will use it
		_ = e.shared.made.Free()
		e.shared.made, e.shared.bytes = nil, nil
	}
	return e.end(err)
}

// apart reports whether the group's ranks are on several nodes, which share no memory.
func (e *engine) apart() bool { return e.size > 1 && e.regions == nil && e.memory == nil }

// regionApart ends a call that region has started, of ranks that share no memory. It makes the
// memory on each node. Then the ranks tell each other whether they have it.
func (e *engine) regionApart(ctx context.Context, r *request, coll Collective, part int) error {
	if coll == collRegion && e.levels == nil {
		return e.end(e.reject(fmt.Errorf("ccl: %v: a region on transport %s is %w: its ranks share no memory", coll, e.ep.Name(), ErrNotImplemented)))
	}
	dtype, count, shift, asked := r.dtype, r.count, r.out.shift, r.total
	if err := e.step(ctx, r); err != nil {
		return e.end(err)
	}

	err := e.regionHere(ctx, coll, dtype, count, part, shift)
	none, lacks := errors.AsType[*transport.AllocationFailedError](err)
	if err != nil && !lacks {
		return e.end(e.failed(coll, err))
	}

	why := ""
	if lacks {
		why = fmt.Sprintf("rank %d: %s", e.rank, none.Message)
	}
	texts, err := e.exchange(ctx, why)
	if err != nil {
		e.dropRegion(coll)
		return e.end(e.failed(coll, err))
	}

	for _, text := range texts {
		if text != "" {
			e.dropRegion(coll)
			return e.end(&transport.AllocationFailedError{RequestedBytes: asked, Message: text})
		}
	}
	return e.end(nil)
}

// regionHere makes this node's memory of a region, or this rank's buffer of Alloc.
func (e *engine) regionHere(ctx context.Context, coll Collective, dtype DType, count, part int, shift uint8) error {
	if e.levels == nil {
		buffer, err := memory.Aligned(part)
		if err != nil {
			return noMemory(part, err.Error())
		}
		e.shared.bytes = buffer
		return nil
	}
	l := e.levels.node // it fails with the group
	n := l.engine
	if err := n.region(ctx, coll, dtype, count, part, shift, true); err != nil {
		if f := n.ep.Failure(); f != nil {
			err = &levelError{coll.String() + " of " + n.name, err, l.outward(f), &e.group}
		}
		return err
	}
	e.shared.made, e.shared.bytes = n.shared.made, n.shared.bytes
	if coll == collAlloc && n.size > 1 {
		e.shared.bytes = n.shared.bytes[part*n.rank:]
	}
	return nil
}

// dropRegion frees what regionHere has made.
func (e *engine) dropRegion(coll Collective) {
	if e.levels != nil {
		n := &e.levels.node.engine.shared
		if last := len(n.allocated) - 1; coll == collAlloc && last >= 0 && e.shared.bytes != nil {
			_ = n.allocated[last].Free()
			n.allocated = n.allocated[:last]
		}
	}
	if e.shared.made != nil {
		_ = e.shared.made.Free()
	}
	e.shared.made, e.shared.bytes = nil, nil
}

// noMemory is the error of all ranks if some rank cannot allocate its part of a region.
func noMemory(asked int, message string) *transport.AllocationFailedError {
	return &transport.AllocationFailedError{RequestedBytes: asked, Message: message +
		"; the group lives on, and collectives need no such memory"}
}

// regionKernel is the engine's own kernel that makes regions. A lack of memory, which all ranks
// notice, is not a failure of the call.
var regionKernel = &Kernel{Run: func(call *Call) error {
	e := call.engine
	if e.apart() { // the ranks agree on the count, and each has its own memory
		return nil
	}
	if e.regions == nil {
		if e.shared.bytes, _ = e.memory.Buffers(0); len(e.shared.bytes) < call.bytes {
			e.shared.none = noMemory(call.total, fmt.Sprintf("rank 0, which has it for all, does not get %d bytes", call.bytes))
		}
		return nil
	}
	made, err := e.regions.Region(call.bytes)
	if none, ok := errors.AsType[*transport.AllocationFailedError](err); ok {
		e.shared.none = noMemory(call.total, none.Message)
		return nil
	}
	if err != nil {
		return err
	}
	e.shared.bytes = made.Bytes()
	if call.coll == collAlloc {
		e.shared.allocated = append(e.shared.allocated, made)
	} else {
		e.shared.made = made
	}
	return nil
}}
