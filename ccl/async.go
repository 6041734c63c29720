package ccl

import "context"

// Each collective has a twin that begins it and returns at once. What is begun is done
// in the order in which it was begun, one after the other, and before any call that is
// made later, which is refused in its turn if its context or its timeout ends before.
// Ranks that wait in it sleep and leave their cores to computations. Everything that is
// wrong with a call, its arguments too, is the error of its Work.

// AllReduceAsync begins an AllReduce; see there and Work.
func AllReduceAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllReduce, op: op, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// AllReduceCoalescedAsync begins an AllReduceCoalesced; see there and Work.
func AllReduceCoalescedAsync[T Element](ctx context.Context, c *Communicator, tensors [][]T, op Op, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllReduce, op: op, tensors: appendBuffers([]Buffer{}, tensors)}, opts)
}

// ReduceAsync begins a Reduce; see there and Work.
func ReduceAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, root int, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollReduce, op: op, send: bufferOf(send), recv: bufferOf(recv), root: root}, opts)
}

// ReduceScatterAsync begins a ReduceScatter; see there and Work.
func ReduceScatterAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollReduceScatter, op: op, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// ReduceScatterVAsync begins a ReduceScatterV; see there and Work.
func ReduceScatterVAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, counts []int, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollReduceScatter, op: op, send: bufferOf(send), recv: bufferOf(recv), counts: some(counts)}, opts)
}

// ScanAsync begins a Scan; see there and Work.
func ScanAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollScan, op: op, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// ExScanAsync begins an ExScan; see there and Work.
func ExScanAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, op Op, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollExScan, op: op, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// AllGatherAsync begins an AllGather; see there and Work.
func AllGatherAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllGather, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// AllGatherVAsync begins an AllGatherV; see there and Work.
func AllGatherVAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, counts, displs []int, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllGather, send: bufferOf(send), recv: bufferOf(recv), counts: some(counts), displs: displs}, opts)
}

// BroadcastAsync begins a Broadcast; see there and Work.
func BroadcastAsync[T Element](ctx context.Context, c *Communicator, buf []T, root int, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollBroadcast, recv: bufferOf(buf), root: root}, opts)
}

// GatherAsync begins a Gather; see there and Work.
func GatherAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, root int, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollGather, send: bufferOf(send), recv: bufferOf(recv), root: root}, opts)
}

// GatherVAsync begins a GatherV; see there and Work.
func GatherVAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, counts, displs []int, root int, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: collGatherLengths, send: bufferOf(send), recv: bufferOf(recv), counts: counts, displs: displs, root: root}, opts)
}

// ScatterAsync begins a Scatter; see there and Work.
func ScatterAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, root int, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollScatter, send: bufferOf(send), recv: bufferOf(recv), root: root}, opts)
}

// ScatterVAsync begins a ScatterV; see there and Work.
func ScatterVAsync[T Element](ctx context.Context, c *Communicator, send []T, counts, displs []int, recv []T, root int, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: collScatterLengths, send: bufferOf(send), recv: bufferOf(recv), counts: counts, displs: displs, root: root}, opts)
}

// AllToAllAsync begins an AllToAll; see there and Work.
func AllToAllAsync[T Element](ctx context.Context, c *Communicator, send, recv []T, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: CollAllToAll, send: bufferOf(send), recv: bufferOf(recv)}, opts)
}

// AllToAllVAsync begins an AllToAllV; see there and Work.
func AllToAllVAsync[T Element](ctx context.Context, c *Communicator, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{dtype: DTypeOf[T](), coll: collAllToAllLengths, send: bufferOf(send), recv: bufferOf(recv), counts: sendCounts, displs: sendDispls, recvCounts: recvCounts, recvDispls: recvDispls}, opts)
}

// BarrierAsync begins a Barrier; see there and Work.
func (c *Communicator) BarrierAsync(ctx context.Context, opts ...CallOption) *Work {
	return c.begun(ctx, arguments{coll: CollBarrier}, opts)
}

// some returns counts, and no counts at all for nil, which means something else to the
// engine.
func some(counts []int) []int {
	if counts == nil {
		return []int{}
	}
	return counts
}
