package ccl

import "context"

// Each collective has an asynchronous variant, which starts the call and returns at once. A
// communicator makes these calls one at a time, in the order in which they were started, and
// before any later synchronous call. A synchronous call whose context or timeout ends while it
// waits for them is refused. Ranks that wait in an asynchronous call sleep and leave their cores
// to the program, unless the program waits for a call already when this one begins. The Work returns all errors, also those for wrong arguments.

// AllReduceAsync starts an AllReduce; see AllReduce and Work.
func AllReduceAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllReduce, op: op, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// AllReduceCoalescedAsync starts an AllReduceCoalesced; see AllReduceCoalesced and Work.
func AllReduceCoalescedAsync[T Element](ctx context.Context, c *Communicator, tensors [][]T, op Op, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllReduce, op: op, tensors: appendBuffers([]Buffer{}, tensors)}, opts)
}

// ReduceAsync starts a Reduce; see Reduce and Work.
func ReduceAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, root int, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollReduce, op: op, send: bufferOf(send), recv: bufferOf(recv), root: root}, opts)
}

// ReduceScatterAsync starts a ReduceScatter; see ReduceScatter and Work.
func ReduceScatterAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollReduceScatter, op: op, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// ReduceScatterVAsync starts a ReduceScatterV; see ReduceScatterV and Work.
func ReduceScatterVAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, counts []int, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollReduceScatter, op: op, send: bufferOf(send), recv: bufferOf(recv), counts: notNil(counts)}, opts)
}

// ScanAsync starts a Scan; see Scan and Work.
func ScanAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollScan, op: op, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// ExScanAsync starts an ExScan; see ExScan and Work.
func ExScanAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollExScan, op: op, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// AllGatherAsync starts an AllGather; see AllGather and Work.
func AllGatherAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllGather, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// AllGatherVAsync starts an AllGatherV; see AllGatherV and Work.
func AllGatherVAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, counts, displs []int, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllGather, send: bufferOf(send), recv: bufferOf(recv), counts: notNil(counts), displs: displs}, opts)
}

// BroadcastAsync starts a Broadcast; see Broadcast and Work.
func BroadcastAsync[T Element](ctx context.Context, c *Communicator, buf []T, root int, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollBroadcast, recv: bufferOf(buf), root: root}, opts)
}

// GatherAsync starts a Gather; see Gather and Work.
func GatherAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, root int, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollGather, send: bufferOf(send), recv: bufferOf(recv), root: root}, opts)
}

// GatherVAsync starts a GatherV; see GatherV and Work.
func GatherVAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, counts, displs []int, root int, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: collGatherLengths, send: bufferOf(send), recv: bufferOf(recv), counts: counts, displs: displs, root: root}, opts)
}

// ScatterAsync starts a Scatter; see Scatter and Work.
func ScatterAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, root int, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollScatter, send: bufferOf(send), recv: bufferOf(recv), root: root}, opts)
}

// ScatterVAsync starts a ScatterV; see ScatterV and Work.
func ScatterVAsync[T Element](ctx context.Context, c *Communicator, send []T, counts, displs []int, recv []T, root int, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: collScatterLengths, send: bufferOf(send), recv: bufferOf(recv), counts: counts, displs: displs, root: root}, opts)
}

// AllToAllAsync starts an AllToAll; see AllToAll and Work.
func AllToAllAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllToAll, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// AllToAllVAsync starts an AllToAllV; see AllToAllV and Work.
func AllToAllVAsync[T Element](ctx context.Context, c *Communicator, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{dtype: DTypeOf[T](), coll: collAllToAllLengths, send: bufferOf(send), recv: bufferOf(recv), counts: sendCounts, displs: sendDispls, recvCounts: recvCounts, recvDispls: recvDispls}, opts)
}

// BarrierAsync starts a Barrier; see Barrier and Work.
func (c *Communicator) BarrierAsync(ctx context.Context, opts ...CallOption) *Work {
	return c.enqueue(ctx, arguments{coll: CollBarrier}, opts)
}
