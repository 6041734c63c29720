package ccl

import (
	"context"

	"github.com/goccl/goccl/transport"
)

// AllReduce reduces the ranks' send buffers element by element with op and gives
// every rank the result in recv. send and recv have the same length, at least 1,
// on all ranks; they are the same slice (in place) or disjoint, and ranks may
// differ in that. The result is the same bits on every rank and in every run; the
// algorithm's documentation says which.
//
// Note the order of the arguments: send, recv, as in MPI; package dist has
// torch's.
//
// Refused with *InvalidBufferSizeError, *InvalidArgumentError (partial overlap)
// or ErrNotImplemented; fails with *CollectiveFailedError, after which recv is
// unspecified.
func AllReduce[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) error {
	return c.allReduce(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), op, opts)
}

func (c *Communicator) allReduce(ctx context.Context, dtype DType, send, recv Buffer, op Op, opts []CallOption) error {
	if err := c.begin(ctx, CollAllReduce, opts); err != nil {
		return err
	}
	if err := checkReduction(CollAllReduce, send, recv, dtype, op); err != nil {
		return c.refuse(err)
	}
	r := c.ask(CollAllReduce, dtype, c.premultiplied(send, dtype, op), recv, opts)
	r.op = op
	if c.size == 1 {
		return c.alone(ctx, r, recv, r.in)
	}
	return c.run(ctx, r)
}

// Broadcast gives every rank the contents of root's buf. buf has the same length
// on all ranks, which may be zero; root's is not changed.
//
// Refused with *InvalidRootError; fails with *CollectiveFailedError, after which
// buf is unspecified on all ranks but root.
func Broadcast[T Element](ctx context.Context, c *Communicator, buf []T, root int, opts ...CallOption) error {
	return c.broadcast(ctx, DTypeOf[T](), bufferOf(buf), root, opts)
}

func (c *Communicator) broadcast(ctx context.Context, dtype DType, buf Buffer, root int, opts []CallOption) error {
	if err := c.begin(ctx, CollBroadcast, opts); err != nil {
		return err
	}
	if err := c.checkRoot(root); err != nil {
		return c.refuse(err)
	}
	r := c.ask(CollBroadcast, dtype, buf, buf, opts)
	r.root = root
	if c.size == 1 {
		return c.alone(ctx, r, Buffer{}, Buffer{})
	}
	if c.rank != root {
		r.in = buf.Slice(0, 0)
	}
	return c.run(ctx, r)
}

// Barrier returns when all ranks have entered it: every collective begins with a
// synchronisation of all ranks, and a barrier is nothing else.
func (c *Communicator) Barrier(ctx context.Context, opts ...CallOption) error {
	if err := c.begin(ctx, CollBarrier, opts); err != nil {
		return err
	}
	r := c.ask(CollBarrier, 0, Buffer{}, Buffer{}, opts)
	if c.size == 1 {
		return c.alone(ctx, r, Buffer{}, Buffer{})
	}
	return c.run(ctx, r)
}

// alone is a call of a group of one rank, where every collective is a copy or
// nothing. It cannot fail but for a wrong algorithm or a context that has ended.
func (c *Communicator) alone(ctx context.Context, r *request, dst, src Buffer) error {
	err := c.copyAlone(ctx, r, dst, src)
	c.end()
	return err
}

func (c *Communicator) copyAlone(ctx context.Context, r *request, dst, src Buffer) error {
	if r.opts.algorithm != "" {
		if _, err := c.choose(r); err != nil {
			return err
		}
	}
	if err := transport.ContextError(ctx); err != nil {
		return err
	}
	if !same(dst.data, src.data) {
		copy(dst.data, src.data)
	}
	return nil
}
