package ccl

import (
	"context"

	"github.com/goccl/goccl/internal/reduce"
)

// AllReduce reduces the ranks' send buffers element by element with op and stores the result in
// recv on every rank. send and recv have the same length, at least 1, on all ranks. They are the
// same slice (in place) or disjoint; ranks may differ in that. The result has the same bits on
// every rank and in every run; the algorithm documents its order of reduction.
//
// The order of the arguments is send, recv, as in MPI; package dist has torch's order.
//
// Rejected with *InvalidBufferSizeError, *InvalidArgumentError (partial overlap) or
// ErrNotImplemented. Fails with *CollectiveFailedError; recv is then unspecified.
func AllReduce[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) error {
	return c.allReduce(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), op, opts)
}

func (c *Communicator) allReduce(ctx context.Context, dtype DType, send, recv Buffer, op Op, opts []CallOption) error {
	if err := c.start(ctx, CollAllReduce, opts); err != nil {
		return err
	}
	if err := checkReduction(CollAllReduce, send, recv, dtype, op, opts); err != nil {
		return c.reject(CollAllReduce, dtype, send, recv, opts, err)
	}
	r := c.ask(CollAllReduce, dtype, c.premultiplied(send, dtype, op), recv, opts)
	r.op = op
	return c.run(ctx, r)
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
	return c.reduce(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), op, root, opts)
}

func (c *Communicator) reduce(ctx context.Context, dtype DType, send, recv Buffer, op Op, root int, opts []CallOption) error {
	if err := c.start(ctx, CollReduce, opts); err != nil {
		return err
	}
	err := c.checkRoot(CollReduce, root, opts)
	switch {
	case err != nil:
	case c.rank == root:
		err = checkReduction(CollReduce, send, recv, dtype, op, opts)
	case recv.Len() > 0:
		err = &InvalidBufferSizeError{Operation: CollReduce.String(), Buffer: namesOf(CollReduce, opts).recv, Expected: 0, Actual: recv.Len()}
	default:
		err = checkReduction(CollReduce, send, send, dtype, op, opts)
	}
	if err != nil {
		return c.reject(CollReduce, dtype, send, recv, opts, err)
	}
	r := c.ask(CollReduce, dtype, c.premultiplied(send, dtype, op), recv, opts)
	r.op, r.root = op, root
	r.count, r.bytes, r.total = send.Len(), len(send.data), len(send.data)
	return c.run(ctx, r)
}

// Scan stores in recv of rank r the reduction of the send buffers of ranks 0 to r. send and recv
// have the same length, at least 1, on all ranks. They are the same slice (in place) or disjoint.
// Avg is not implemented, because the number of inputs differs from rank to rank.
//
// Rejected and fails like AllReduce.
func Scan[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) error {
	return c.scan(ctx, CollScan, DTypeOf[T](), bufferOf(send), bufferOf(recv), op, opts)
}

// ExScan is Scan without the rank's own buffer: rank r gets the reduction of the send buffers of
// ranks 0 to r-1. Rank 0 gets nothing; its recv is not changed.
func ExScan[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) error {
	return c.scan(ctx, CollExScan, DTypeOf[T](), bufferOf(send), bufferOf(recv), op, opts)
}

func (c *Communicator) scan(ctx context.Context, coll Collective, dtype DType, send, recv Buffer, op Op, opts []CallOption) error {
	if err := c.start(ctx, coll, opts); err != nil {
		return err
	}
	err := checkReduction(coll, send, recv, dtype, op, opts)
	if err != nil {
		return c.reject(coll, dtype, send, recv, opts, err)
	}
	r := c.ask(coll, dtype, c.premultiplied(send, dtype, op), recv, opts)
	r.op = op
	return c.run(ctx, r)
}

// ReduceScatter reduces the ranks' send buffers element by element with op and gives each rank
// its block of the result: recv of rank r gets the elements from r*len(recv) on. recv has the
// same length, at least 1, on all ranks; send is as long as the recv of all ranks together. recv
// is disjoint from send or exactly this rank's block of it.
//
// Rejected with *InvalidBufferSizeError, *InvalidArgumentError (overlap) or ErrNotImplemented.
// Fails with *CollectiveFailedError; recv is then unspecified.
func ReduceScatter[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) error {
	return c.reduceScatter(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), op, nil, opts)
}

// ReduceScatterV is ReduceScatter with blocks of different lengths: rank r gets the counts[r]
// elements that follow the blocks of the ranks before it. counts is the same on all ranks. recv
// has counts[r] elements, which may be 0; send is as long as all blocks together, at least 1.
//
// It has the errors of ReduceScatter, and *InvalidArgumentError for negative counts.
func ReduceScatterV[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, counts []int, opts ...CallOption) error {
	return c.reduceScatter(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), op, notNil(counts), opts)
}

func (c *Communicator) reduceScatter(ctx context.Context, dtype DType, send, recv Buffer, op Op, counts []int, opts []CallOption) error {
	const coll = CollReduceScatter
	if err := c.start(ctx, coll, opts); err != nil {
		return err
	}
	b := blocks{operation: coll.String(), each: recv.Len(), counts: counts}
	err := b.sum(c.size)
	switch {
	case err != nil:
	case recv.Len() != b.count(c.rank):
		err = b.wrong(namesOf(coll, opts).recv, b.count(c.rank), recv.Len())
	case send.Len() != b.total:
		err = b.wrong(namesOf(coll, opts).send, b.total, send.Len())
	default:
		err = checkReduction(coll, send, send, dtype, op, opts)
	}
	if err == nil && !within(recv, send, b.at(c.rank)) {
		n := namesOf(coll, opts)
		err = &InvalidArgumentError{b.operation, n.recv + " overlaps " + n.send + ", but is not this rank's block of it"}
	}
	if err != nil {
		return c.reject(coll, dtype, send, recv, opts, err)
	}
	r := c.ask(coll, dtype, c.premultiplied(send, dtype, op), recv, opts)
	r.op = op
	b.put(r)
	r.bytes, r.total = len(send.data), b.longest<<send.shift
	return c.run(ctx, r)
}

// checkReduction checks what all reductions require of a vector that is reduced to recv.
func checkReduction(coll Collective, send, recv Buffer, dtype DType, op Op, opts []CallOption) error {
	switch {
	case len(send.data) != len(recv.data):
		return &InvalidBufferSizeError{Operation: coll.String(), Buffer: namesOf(coll, opts).recv, Expected: send.Len(), Actual: recv.Len()}
	case len(send.data) == 0:
		return (&InvalidBufferSizeError{Operation: coll.String(), Buffer: namesOf(coll, opts).send, Expected: 1, Actual: 0}).orMore()
	case !same(send.data, recv.data) && overlap(send.data, recv.data):
		return overlapError(coll.String(), namesOf(coll, opts), "the same slice or disjoint")
	}
	return op.Check(coll, dtype)
}

// premultiplied returns send times the factor of a PremulSum, in memory of the communicator; for
// other operations send itself.
func (c *Communicator) premultiplied(send Buffer, d DType, op Op) Buffer {
	factor, ok := op.factor()
	if !ok {
		return send
	}
	to := c.spareBuffer(send.Len(), send.shift)
	reduce.Scale(d.reduce(), pointer(to.data), pointer(send.data), send.Len(), factor)
	return to
}
