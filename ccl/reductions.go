package ccl

import (
	"context"

	"github.com/goccl/goccl/internal/reduce"
)

// AllReduce reduces the ranks' send buffers element by element with op and stores the result in
// recv on every rank.
//
// send and recv have the same length, at least 1, on all ranks. They are the same slice (in place)
// or disjoint; ranks may differ in that. The result has the same bits on every rank and in every
// run; the algorithm documents its order of reduction.
//
// The order of the arguments is send, recv, as in MPI; package dist has torch's order.
//
// Rejected with *InvalidBufferSizeError, *InvalidArgumentError (partial overlap) or
// ErrNotImplemented. Fails with *CollectiveFailedError; recv is then unspecified.
func AllReduce[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollAllReduce, dtype: DTypeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv),
	}, nil, opts)
}

// Reduce reduces the ranks' send buffers element by element with op and stores the result in
// root's recv. send has the same length, at least 1, on all ranks. On root recv has that length
// too, and is the same slice as send (in place) or disjoint. On other ranks recv is empty, and
// send is not changed.
//
// Rejected with *InvalidBufferSizeError, *InvalidRootError, *InvalidArgumentError (partial
// overlap) or ErrNotImplemented. Fails with *CollectiveFailedError; root's recv is then
// unspecified.
func Reduce[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, root int, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollReduce, dtype: DTypeOf[T](), op: op, root: root, send: bufferOf(send), recv: bufferOf(recv),
	}, nil, opts)
}

// Scan stores in recv of rank r the reduction of the send buffers of ranks 0 to r. send and recv
// have the same length, at least 1, on all ranks. They are the same slice (in place) or disjoint.
// Avg is not implemented, because the number of inputs differs from rank to rank.
//
// Rejected and fails like AllReduce.
func Scan[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollScan, dtype: DTypeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv),
	}, nil, opts)
}

// ExScan is Scan without the rank's own buffer: rank r gets the reduction of the send buffers of
// ranks 0 to r-1. Rank 0 gets nothing; its recv is not changed.
func ExScan[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollExScan, dtype: DTypeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv),
	}, nil, opts)
}

// ReduceScatter reduces the ranks' send buffers element by element with op and gives each rank
// its block of the result: recv of rank r gets the elements from r*len(recv) on. recv has the
// same length, at least 1, on all ranks; send is as long as the recv of all ranks together. recv
// is disjoint from send or exactly this rank's block of it.
//
// Rejected with *InvalidBufferSizeError, *InvalidArgumentError (overlap) or ErrNotImplemented.
// Fails with *CollectiveFailedError; recv is then unspecified.
func ReduceScatter[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollReduceScatter, dtype: DTypeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv),
	}, nil, opts)
}

// ReduceScatterV is ReduceScatter with blocks of different lengths: rank r gets the counts[r]
// elements that follow the blocks of the ranks before it. counts is the same on all ranks. recv
// has counts[r] elements, which may be 0; send is as long as all blocks together, at least 1.
//
// It has the errors of ReduceScatter, and *InvalidArgumentError for negative counts.
func ReduceScatterV[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, counts []int, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{
		coll: CollReduceScatter, dtype: DTypeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv),
	}, &lists{counts: notNil(counts)}, opts)
}

// reduceForAll makes a reduction of which every rank gets a whole vector.
func (e *engine) reduceForAll(ctx context.Context, a *arguments, opts []CallOption) error {
	if err := a.checkReduction(a.recv, opts); err != nil {
		return e.rejectCall(a, opts, err)
	}
	r := e.ask(a.coll, a.dtype, e.prepareInput(a), a.recv, opts)
	r.op = a.op
	return e.step(ctx, r)
}

func (e *engine) reduce(ctx context.Context, a *arguments, opts []CallOption) error {
	err := e.checkRoot(a, opts)
	switch {
	case err != nil:
	case e.rank == a.root:
		err = a.checkReduction(a.recv, opts)
	case a.recv.Len() > 0:
		err = &InvalidBufferSizeError{Operation: a.coll.String(), Buffer: namesOf(a.coll, opts).recv, Expected: 0, Actual: a.recv.Len()}
	default:
		err = a.checkReduction(a.send, opts)
	}

	if err != nil {
		return e.rejectCall(a, opts, err)
	}
	r := e.ask(a.coll, a.dtype, e.prepareInput(a), a.recv, opts)
	r.op, r.root = a.op, a.root
	r.count, r.bytes, r.total = a.send.Len(), len(a.send.data), len(a.send.data)
	return e.step(ctx, r)
}

func (e *engine) reduceScatter(ctx context.Context, a *arguments, l *lists, opts []CallOption) error {
	b := blocks{operation: a.coll.String(), each: a.recv.Len()}
	if l != nil {
		b.counts = l.counts
	}
	if err := e.checkReduceScatter(a, &b, opts); err != nil {
		return e.rejectCall(a, opts, err)
	}
	r := e.ask(a.coll, a.dtype, e.prepareInput(a), a.recv, opts)
	r.op = a.op
	b.put(r)
	r.bytes, r.total = len(a.send.data), b.longest<<a.send.shift
	return e.step(ctx, r)
}

// checkReduceScatter checks the arguments of a reduce-scatter whose blocks are b.
func (e *engine) checkReduceScatter(a *arguments, b *blocks, opts []CallOption) error {
	if err := b.sum(e.size); err != nil {
		return err
	}

	names, n := namesOf(a.coll, opts), b.count(e.rank)
	switch {
	case a.recv.Len() != n:
		return b.lengthError(names.recv, n, a.recv.Len())
	case a.send.Len() != b.total:
		return b.lengthError(names.send, b.total, a.send.Len())
	}
	if err := a.checkReduction(a.send, opts); err != nil {
		return err
	}

	if !within(a.recv, a.send, b.at(e.rank)) {
		return &InvalidArgumentError{b.operation, names.recv + " overlaps " + names.send + ", but is not this rank's block of it"}
	}
	return nil
}

// checkReduction checks what all reductions require of send, which is reduced to recv.
func (a *arguments) checkReduction(recv Buffer, opts []CallOption) error {
	send := a.send
	switch {
	case len(send.data) != len(recv.data):
		return &InvalidBufferSizeError{Operation: a.coll.String(), Buffer: namesOf(a.coll, opts).recv, Expected: send.Len(), Actual: recv.Len()}
	case len(send.data) == 0:
		return &InvalidBufferSizeError{Operation: a.coll.String(), Buffer: namesOf(a.coll, opts).send, Expected: 1, Actual: 0, OrMore: true}
	case !same(send.data, recv.data) && overlap(send.data, recv.data):
		return overlapError(a.coll.String(), namesOf(a.coll, opts), "the same slice or disjoint")
	}
	return a.op.Check(a.coll, a.dtype)
}

// prepareInput returns what kernels reduce: send itself, or memory of the communicator with send
// times the factor of a PremulSum or, for a logical operation on integers, with 0 and 1.
func (e *engine) prepareInput(a *arguments) Buffer {
	if a.op < LAnd {
		return a.send
	}
	return e.convertInput(a)
}

func (e *engine) convertInput(a *arguments) Buffer {
	factor, premul := a.op.factor()
	if !premul && (!a.op.isLogical() || a.dtype == Bool) {
		return a.send
	}

	n, to := a.send.Len(), e.spareBuffer(a.send.Len(), a.send.shift)
	if premul {
		reduce.Scale(a.dtype.reduce(), pointer(to.data), pointer(a.send.data), n, factor)
	} else {
		reduce.Truth(a.dtype.reduce(), pointer(to.data), pointer(a.send.data), n)
	}
	return to
}
