package ccl

import (
	"context"
)

// Broadcast gives every rank the contents of root's buf. buf has the same length, which may be 0,
// on all ranks. root's buf is not changed.
//
// Rejected with *InvalidRootError. Fails with *CollectiveFailedError; buf is then unspecified on
// all ranks except root.
func Broadcast[T Element](ctx context.Context, c *Communicator, buf []T, root int, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{coll: CollBroadcast, dtype: DTypeOf[T](), root: root, recv: bufferOf(buf)}, nil, opts)
}

func (e *engine) broadcast(ctx context.Context, a *arguments, opts []CallOption) error {
	if err := e.checkRoot(a, opts); err != nil {
		return e.rejectCall(a, opts, err)
	}
	r := e.ask(a.coll, a.dtype, a.recv, a.recv, opts)
	r.root = a.root
	if e.rank != a.root {
		r.in = a.recv.Slice(0, 0)
	}
	return e.step(ctx, r)
}

// Barrier returns when all ranks have entered it. It is the synchronisation with which every
// collective starts, and nothing else.
//
// Rejected with ErrInvalidCommunicator, ErrClosed, ErrConcurrentUse, or *InvalidArgumentError (ctx
// is nil). Fails with *CollectiveFailedError, which wraps *transport.TimeoutError with the ranks
// that have not entered it, *transport.PeerLostError, *transport.AbortedError, *MismatchError if
// ranks make another call, or the error of ctx.
func (c *Communicator) Barrier(ctx context.Context, opts ...CallOption) error {
	return c.makeCall(ctx, &arguments{coll: CollBarrier}, nil, opts)
}
