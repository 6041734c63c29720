package ccl

import (
	"context"
	"fmt"
)

// Broadcast gives every rank the contents of root's buf. buf has the same length, which may be 0,
// on all ranks. root's buf is not changed.
//
// Rejected with *InvalidRootError. Fails with *CollectiveFailedError; buf is then unspecified on
// all ranks except root.
func Broadcast[T Element](ctx context.Context, c *Communicator, buf []T, root int, opts ...CallOption) error {
	return c.broadcast(ctx, DTypeOf[T](), bufferOf(buf), root, opts)
}

func (c *Communicator) broadcast(ctx context.Context, dtype DType, buf Buffer, root int, opts []CallOption) error {
	if err := c.start(ctx, CollBroadcast, opts); err != nil {
		return err
	}
	if err := c.checkRoot(CollBroadcast, root, opts); err != nil {
		return c.reject(CollBroadcast, dtype, buf, buf, opts, err)
	}
	r := c.ask(CollBroadcast, dtype, buf, buf, opts)
	r.root = root
	if c.rank != root {
		r.in = buf.Slice(0, 0)
	}
	return c.run(ctx, r)
}

func (c *Communicator) checkRoot(coll Collective, root int, opts []CallOption) error {
	if root >= 0 && root < c.size {
		return nil
	}
	invalid := &InvalidRootError{Root: root, Size: c.size}
	if c.isOutside(root, mergeCallOptions(opts)) {
		return &outsideError{fmt.Sprintf("ccl: %v: the root %s", coll, c.outside()), invalid}
	}
	return fmt.Errorf("ccl: %v: %w", coll, invalid)
}

// Barrier returns when all ranks have entered it. It is the synchronisation with which every
// collective starts, and nothing else.
//
// Rejected with ErrInvalidCommunicator, ErrClosed, ErrConcurrentUse, or *InvalidArgumentError (ctx is
// nil). Fails with *CollectiveFailedError, which wraps *TimeoutError with the ranks that have not
// entered it, *PeerLostError, *AbortedError, *MismatchError if ranks make another call, or the error
// of ctx.
func (c *Communicator) Barrier(ctx context.Context, opts ...CallOption) error {
	if err := c.start(ctx, CollBarrier, opts); err != nil {
		return err
	}
	return c.run(ctx, c.ask(CollBarrier, 0, Buffer{}, Buffer{}, opts))
}
