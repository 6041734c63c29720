package dist

import "github.com/goccl/goccl/ccl"

// Work is an asynchronous call: a collective started by the Async form of its function,
// or a message started by Isend or Irecv. Collectives run in the order in which they
// were started, before any that the rank calls later on the group. The buffers belong to
// the Work until it is done.
//
// A Work need not be waited for. Spawn completes it after the worker returns nil, and
// returns its error; DestroyProcessGroup drops it, so wait for it before that.
//
// torch's wait is Wait, is_completed tests whether Done is closed, and exception is Err.
//
// An error returned by the function itself means that there is no group to call on.
// Invalid arguments are the error of the Work.
type Work = ccl.Work

// AllReduceAsync starts AllReduce and returns its Work.
func AllReduceAsync[T ccl.Element](tensor []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.AllReduce(c.ctx, c.comm, tensor, tensor, op, c.opts[:]...))
}

// AllReduceCoalescedAsync starts AllReduceCoalesced and returns its Work.
func AllReduceCoalescedAsync[T ccl.Element](tensors [][]T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.AllReduceCoalesced(c.ctx, c.comm, tensors, op, c.opts[:]...))
}

// ReduceAsync starts Reduce and returns its Work.
func ReduceAsync[T ccl.Element](tensor []T, dst int, op ReduceOp, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	root := c.root(dst)
	return c.returnWork(ccl.Reduce(c.ctx, c.comm, tensor, onlyAt(&c.call, root, tensor), op, root, c.opts[:]...))
}

// ReduceScatterAsync starts ReduceScatter and returns its Work.
func ReduceScatterAsync[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.ReduceScatter(c.ctx, c.comm, input, output, op, c.opts[:]...))
}

// ReduceScatterVAsync starts ReduceScatterV and returns its Work.
func ReduceScatterVAsync[T ccl.Element](output, input []T, op ReduceOp, counts []int, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.ReduceScatterV(c.ctx, c.comm, input, output, op, counts, c.opts[:]...))
}

// ScanAsync starts Scan and returns its Work.
func ScanAsync[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.Scan(c.ctx, c.comm, input, output, op, c.opts[:]...))
}

// ExScanAsync starts ExScan and returns its Work.
func ExScanAsync[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.ExScan(c.ctx, c.comm, input, output, op, c.opts[:]...))
}

// BroadcastAsync starts Broadcast and returns its Work.
func BroadcastAsync[T ccl.Element](tensor []T, src int, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.Broadcast(c.ctx, c.comm, tensor, c.root(src), c.opts[:]...))
}

// AllGatherAsync starts AllGather and returns its Work.
func AllGatherAsync[T ccl.Element](output, input []T, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.AllGather(c.ctx, c.comm, input, output, c.opts[:]...))
}

// AllGatherVAsync starts AllGatherV and returns its Work.
func AllGatherVAsync[T ccl.Element](output, input []T, counts []int, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.AllGatherV(c.ctx, c.comm, input, output, counts, nil, c.opts[:]...))
}

// GatherAsync starts Gather and returns its Work.
func GatherAsync[T ccl.Element](output, input []T, dst int, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.Gather(c.ctx, c.comm, input, output, c.root(dst), c.opts[:]...))
}

// GatherVAsync starts GatherV and returns its Work.
func GatherVAsync[T ccl.Element](output, input []T, counts []int, dst int, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.GatherV(c.ctx, c.comm, input, output, counts, nil, c.root(dst), c.opts[:]...))
}

// ScatterAsync starts Scatter and returns its Work.
func ScatterAsync[T ccl.Element](output, input []T, src int, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.Scatter(c.ctx, c.comm, input, output, c.root(src), c.opts[:]...))
}

// ScatterVAsync starts ScatterV and returns its Work.
func ScatterVAsync[T ccl.Element](output, input []T, counts []int, src int, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.ScatterV(c.ctx, c.comm, input, counts, nil, output, c.root(src), c.opts[:]...))
}

// AllToAllAsync starts AllToAll and returns its Work.
func AllToAllAsync[T ccl.Element](output, input []T, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.AllToAll(c.ctx, c.comm, input, output, c.opts[:]...))
}

// AllToAllVAsync starts AllToAllV and returns its Work.
func AllToAllVAsync[T ccl.Element](output, input []T, outputCounts, inputCounts []int, opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(ccl.AllToAllV(c.ctx, c.comm, input, inputCounts, nil, output, outputCounts, nil, c.opts[:]...))
}

// BarrierAsync starts Barrier and returns its Work.
func BarrierAsync(opts ...CallOption) (*Work, error) {
	c := prepareAsync(opts)
	return c.returnWork(c.comm.Barrier(c.ctx, c.opts[:]...))
}
