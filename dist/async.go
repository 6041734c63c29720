package dist

import "github.com/goccl/goccl/ccl"

// Work is a collective that was begun by the Async twin of its function, or a message
// that Isend or Irecv has begun: these return at once. Collectives that were begun are
// done in that order, before any that the rank calls later on the group. The buffers
// belong to the Work until it is done.
//
// One that nobody waits for costs nothing. Spawn completes it when the worker returns nil,
// and returns its error; DestroyProcessGroup drops it. So wait for a Work before that.
//
// torch's wait is Wait, is_completed whether Done is closed, and exception is Err.
//
// An error of the function that begins a Work says that there is no group to call on.
// What is wrong with the arguments is the error of the Work, in the words of package
// ccl.
type Work = ccl.Work

// AllReduceAsync begins an AllReduce; see there and Work.
func AllReduceAsync[T ccl.Element](tensor []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.AllReduceAsync(c.ctx, c.comm, tensor, tensor, op, c.opts[:c.n]...), nil
}

// AllReduceCoalescedAsync begins an AllReduceCoalesced; see there and Work.
func AllReduceCoalescedAsync[T ccl.Element](tensors [][]T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.AllReduceCoalescedAsync(c.ctx, c.comm, tensors, op, c.opts[:c.n]...), nil
}

// ReduceAsync begins a Reduce; see there and Work.
func ReduceAsync[T ccl.Element](tensor []T, dst int, op ReduceOp, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	root := c.root(dst)
	var output []T
	if root == c.comm.Rank() {
		output = tensor
	}
	return ccl.ReduceAsync(c.ctx, c.comm, tensor, output, op, root, c.opts[:c.n]...), nil
}

// ReduceScatterAsync begins a ReduceScatter; see there and Work.
func ReduceScatterAsync[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.ReduceScatterAsync(c.ctx, c.comm, input, output, op, c.opts[:c.n]...), nil
}

// ReduceScatterVAsync begins a ReduceScatterV; see there and Work.
func ReduceScatterVAsync[T ccl.Element](output, input []T, op ReduceOp, counts []int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.ReduceScatterVAsync(c.ctx, c.comm, input, output, op, counts, c.opts[:c.n]...), nil
}

// ScanAsync begins a Scan; see there and Work.
func ScanAsync[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.ScanAsync(c.ctx, c.comm, input, output, op, c.opts[:c.n]...), nil
}

// ExScanAsync begins an ExScan; see there and Work.
func ExScanAsync[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.ExScanAsync(c.ctx, c.comm, input, output, op, c.opts[:c.n]...), nil
}

// BroadcastAsync begins a Broadcast; see there and Work.
func BroadcastAsync[T ccl.Element](tensor []T, src int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.BroadcastAsync(c.ctx, c.comm, tensor, c.root(src), c.opts[:c.n]...), nil
}

// AllGatherAsync begins an AllGather; see there and Work.
func AllGatherAsync[T ccl.Element](output, input []T, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.AllGatherAsync(c.ctx, c.comm, input, output, c.opts[:c.n]...), nil
}

// AllGatherVAsync begins an AllGatherV; see there and Work.
func AllGatherVAsync[T ccl.Element](output, input []T, counts []int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.AllGatherVAsync(c.ctx, c.comm, input, output, counts, nil, c.opts[:c.n]...), nil
}

// GatherAsync begins a Gather; see there and Work.
func GatherAsync[T ccl.Element](output, input []T, dst int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.GatherAsync(c.ctx, c.comm, input, output, c.root(dst), c.opts[:c.n]...), nil
}

// GatherVAsync begins a GatherV; see there and Work.
func GatherVAsync[T ccl.Element](output, input []T, counts []int, dst int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.GatherVAsync(c.ctx, c.comm, input, output, counts, nil, c.root(dst), c.opts[:c.n]...), nil
}

// ScatterAsync begins a Scatter; see there and Work.
func ScatterAsync[T ccl.Element](output, input []T, src int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.ScatterAsync(c.ctx, c.comm, input, output, c.root(src), c.opts[:c.n]...), nil
}

// ScatterVAsync begins a ScatterV; see there and Work.
func ScatterVAsync[T ccl.Element](output, input []T, counts []int, src int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.ScatterVAsync(c.ctx, c.comm, input, counts, nil, output, c.root(src), c.opts[:c.n]...), nil
}

// AllToAllAsync begins an AllToAll; see there and Work.
func AllToAllAsync[T ccl.Element](output, input []T, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.AllToAllAsync(c.ctx, c.comm, input, output, c.opts[:c.n]...), nil
}

// AllToAllVAsync begins an AllToAllV; see there and Work.
func AllToAllVAsync[T ccl.Element](output, input []T, outputCounts, inputCounts []int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.AllToAllVAsync(c.ctx, c.comm, input, inputCounts, nil, output, outputCounts, nil, c.opts[:c.n]...), nil
}

// BarrierAsync begins a Barrier; see there and Work.
func BarrierAsync(opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return c.comm.BarrierAsync(c.ctx, c.opts[:c.n]...), nil
}
