package ccl

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/transport"
)

// Region is memory that all ranks of a node share: it is there once, however many
// ranks read it. Its life has phases. CreateSharedRegion makes it, zero at first; it is
// populated, by the leader through LeaderSlice or by all ranks through BlockSlice;
// Fence makes what was written visible to all; from then on it is read, through Slice,
// without a copy. Later writes are allowed where ranks agree on who writes what, and
// need another Fence.
//
// In a group of one rank it is memory of the process and the fence does nothing.
// Its methods may be called by anyone, Close by one goroutine.
type Region[T Element] struct {
	comm   *Communicator
	all    []T
	memory transport.Region // nil: the garbage collector's
}

// CreateSharedRegion makes a region of count elements, at least one; in a group of one rank
// there may be none. It is collective: all ranks ask for as many of the same type. Between
// processes each rank gets the memory of its own block.
//
// Refused with *InvalidBufferSizeError. If there is no such memory, on whichever rank, all
// ranks get *AllocationFailedError, and the group lives on, so that they can do without.
// Fails with *CollectiveFailedError.
func CreateSharedRegion[T Element](ctx context.Context, c *Communicator, count int) (*Region[T], error) {
	var t [1]T
	size := bufferOf(t[:])
	if err := c.region(ctx, collRegion, DTypeOf[T](), count, count<<size.shift, size.shift); err != nil {
		return nil, err
	}
	return &Region[T]{comm: c, all: elements[T](c.shared, count), memory: c.made}, nil
}

// Slice returns the whole region, to be read after a Fence.
func (r *Region[T]) Slice() []T { return r.all }

// LeaderSlice returns the whole region to the leader, which is rank 0, and nothing to the
// others.
func (r *Region[T]) LeaderSlice() []T {
	if !r.comm.IsLeader() {
		return nil
	}
	return r.all
}

// BlockSlice returns this rank's block of the region: the blocks of all ranks, in
// their order, make it up, and no two overlap. Memory that a rank writes first lies,
// where the system can choose, near the core that the rank runs on.
func (r *Region[T]) BlockSlice() []T {
	lo, hi := BlockRange(len(r.all), r.comm.rank, r.comm.size)
	return r.all[lo:hi:hi]
}

// Fence returns when all ranks have called it; what any of them has written before is
// visible to all after. Its errors are those of Barrier.
func (r *Region[T]) Fence(ctx context.Context) error { return r.comm.Barrier(ctx) }

// Close gives the region back on this rank: no slice of it may be used any more, and no
// Work that is not done may have one. Other ranks may go on using theirs: the memory is free
// when all have closed it, or their communicators. Close never waits, and may be called
// while calls on other memory run. Closing twice is a no-op.
func (r *Region[T]) Close() error {
	r.all = nil
	if r.memory == nil {
		return nil
	}
	memory := r.memory
	r.memory = nil
	return memory.Free()
}

// Alloc returns a buffer of count elements, zero at first, that collectives need not
// copy to show it to ranks of other processes: where all ranks' buffers of a call
// come from Alloc or from regions, it costs what it costs between goroutines. It is
// collective, like CreateSharedRegion, and has its errors; all ranks ask for buffers
// of the same length, and each gets its own. The buffer must not be used after Close
// of the communicator, which gives it back.
func Alloc[T Element](ctx context.Context, c *Communicator, count int) ([]T, error) {
	var t [1]T
	shift := bufferOf(t[:]).shift
	part := (count<<shift + allocBytes - 1) &^ (allocBytes - 1)
	if err := c.region(ctx, collAlloc, DTypeOf[T](), count, part, shift); err != nil {
		return nil, err
	}
	return elements[T](c.shared[part*c.rank:], count), nil
}

// allocBytes is what buffers of Alloc begin at multiples of: pages, which a rank that
// writes them first gets near its core.
const allocBytes = 4096

// LocalCommunicator is the group of the ranks on one node.
type LocalCommunicator interface {
	Rank() int
	Size() int
	Barrier(ctx context.Context, opts ...CallOption) error
}

// SplitLocal returns the group of the ranks that share this rank's node: all of them,
// since a group does not reach farther yet. It is not collective.
func (c *Communicator) SplitLocal() LocalCommunicator { return c }

// IsLeader reports whether this rank is the first of its node, which populates regions.
func (c *Communicator) IsLeader() bool { return c.rank == 0 }

// region makes memory that all ranks see and leaves it in shared, and in made what
// gives it back: one part for all or, for Alloc, one for each. The ranks agree on count.
func (c *Communicator) region(ctx context.Context, coll Collective, dtype DType, count, part int, shift uint8) error {
	if err := c.start(ctx, coll, nil); err != nil {
		return err
	}
	c.made, c.shared, c.none = nil, nil, nil
	parts, least := 1, 1
	if coll == collAlloc {
		parts = c.size
	}
	if c.size == 1 {
		least = 0
	}
	switch {
	case count < least:
		return c.end(c.refuse(&InvalidBufferSizeError{Operation: coll.String(), Buffer: "count", Expected: least, Actual: count}))
	case count > (math.MaxInt/parts-allocBytes)>>shift:
		return c.end(c.refuse(&AllocationFailedError{RequestedBytes: math.MaxInt, Message: fmt.Sprintf(
			"%s: %d elements of %v on each of %d ranks have more bytes than there are addresses", coll, count, dtype, parts)}))
	}
	r := c.ask(coll, dtype, Buffer{}, Buffer{shift: shift}, nil)
	r.count, r.bytes, r.total = count, parts*part, count<<shift
	if c.rank == 0 && (c.regions == nil || c.size == 1) { // goroutines share all memory: the leader's is everybody's
		var none error
		if r.in.data, none = sharedBytes(r.bytes); none != nil && c.size == 1 {
			return c.end(c.refuse(noMemory(r.total, none.Error())))
		}
	}
	if c.size == 1 {
		c.shared = r.in.data
	}
	err := c.step(ctx, r)
	switch {
	case err == nil && c.none == nil:
		c.placed = true // as on all other ranks, or the group has failed
	case err == nil:
		err = c.none
	case c.made != nil: // this rank made it, and no rank will use it
		_ = c.made.Free()
		c.made, c.shared = nil, nil
	}
	return c.end(err)
}

// noMemory is the error of all ranks where one has not got what it needs of a region.
func noMemory(asked int, message string) *AllocationFailedError {
	return &AllocationFailedError{RequestedBytes: asked, Message: message +
		"; the group lives on, and collectives need no such memory"}
}

// regionKernel is how regions are made: it is the engine's own. That there is no memory is
// known to all ranks, and no failure of the call.
var regionKernel = &Kernel{Run: func(call *Call) error {
	c := call.comm
	if c.regions == nil {
		if c.shared, _ = c.memory.Buffers(0); len(c.shared) < call.bytes {
			c.none = noMemory(call.total, fmt.Sprintf("rank 0, which has it for all, does not get %d bytes", call.bytes))
		}
		return nil
	}
	made, err := c.regions.Region(call.bytes)
	if none, ok := errors.AsType[*AllocationFailedError](err); ok {
		c.none = noMemory(call.total, none.Message)
		return nil
	}
	if err != nil {
		return err
	}
	c.shared = made.Bytes()
	if call.coll == collAlloc {
		c.allocated = append(c.allocated, made)
	} else {
		c.made = made
	}
	return nil
}}
