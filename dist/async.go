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
// Invalid arguments are the error of the Work, in package ccl's words: send and recv
// instead of input and output.
type Work = ccl.Work

// start makes the Work of f unless the caller has no group.
func start(opts []CallOption, f func(c call) *Work) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return f(c), nil
}

// AllReduceAsync starts AllReduce and returns its Work.
func AllReduceAsync[T ccl.Element](tensor []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.AllReduceAsync(c.ctx, c.comm, tensor, tensor, op, c.opts[:c.n]...)
	})
}

// AllReduceCoalescedAsync starts AllReduceCoalesced and returns its Work.
func AllReduceCoalescedAsync[T ccl.Element](tensors [][]T, op ReduceOp, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.AllReduceCoalescedAsync(c.ctx, c.comm, tensors, op, c.opts[:c.n]...)
	})
}

// ReduceAsync starts Reduce and returns its Work.
func ReduceAsync[T ccl.Element](tensor []T, dst int, op ReduceOp, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		root := c.root(dst)
		return ccl.ReduceAsync(c.ctx, c.comm, tensor, onlyAt(root, &c, tensor), op, root, c.opts[:c.n]...)
	})
}

// ReduceScatterAsync starts ReduceScatter and returns its Work.
func ReduceScatterAsync[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.ReduceScatterAsync(c.ctx, c.comm, input, output, op, c.opts[:c.n]...)
	})
}

// ReduceScatterVAsync starts ReduceScatterV and returns its Work.
func ReduceScatterVAsync[T ccl.Element](output, input []T, op ReduceOp, counts []int, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.ReduceScatterVAsync(c.ctx, c.comm, input, output, op, counts, c.opts[:c.n]...)
	})
}

// ScanAsync starts Scan and returns its Work.
func ScanAsync[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.ScanAsync(c.ctx, c.comm, input, output, op, c.opts[:c.n]...)
	})
}

// ExScanAsync starts ExScan and returns its Work.
func ExScanAsync[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.ExScanAsync(c.ctx, c.comm, input, output, op, c.opts[:c.n]...)
	})
}

// BroadcastAsync starts Broadcast and returns its Work.
func BroadcastAsync[T ccl.Element](tensor []T, src int, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.BroadcastAsync(c.ctx, c.comm, tensor, c.root(src), c.opts[:c.n]...)
	})
}

// AllGatherAsync starts AllGather and returns its Work.
func AllGatherAsync[T ccl.Element](output, input []T, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.AllGatherAsync(c.ctx, c.comm, input, output, c.opts[:c.n]...)
	})
}

// AllGatherVAsync starts AllGatherV and returns its Work.
func AllGatherVAsync[T ccl.Element](output, input []T, counts []int, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.AllGatherVAsync(c.ctx, c.comm, input, output, counts, nil, c.opts[:c.n]...)
	})
}

// GatherAsync starts Gather and returns its Work.
func GatherAsync[T ccl.Element](output, input []T, dst int, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.GatherAsync(c.ctx, c.comm, input, output, c.root(dst), c.opts[:c.n]...)
	})
}

// GatherVAsync starts GatherV and returns its Work.
func GatherVAsync[T ccl.Element](output, input []T, counts []int, dst int, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.GatherVAsync(c.ctx, c.comm, input, output, counts, nil, c.root(dst), c.opts[:c.n]...)
	})
}

// ScatterAsync starts Scatter and returns its Work.
func ScatterAsync[T ccl.Element](output, input []T, src int, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.ScatterAsync(c.ctx, c.comm, input, output, c.root(src), c.opts[:c.n]...)
	})
}

// ScatterVAsync starts ScatterV and returns its Work.
func ScatterVAsync[T ccl.Element](output, input []T, counts []int, src int, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.ScatterVAsync(c.ctx, c.comm, input, counts, nil, output, c.root(src), c.opts[:c.n]...)
	})
}

// AllToAllAsync starts AllToAll and returns its Work.
func AllToAllAsync[T ccl.Element](output, input []T, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.AllToAllAsync(c.ctx, c.comm, input, output, c.opts[:c.n]...)
	})
}

// AllToAllVAsync starts AllToAllV and returns its Work.
func AllToAllVAsync[T ccl.Element](output, input []T, outputCounts, inputCounts []int, opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return ccl.AllToAllVAsync(c.ctx, c.comm, input, inputCounts, nil, output, outputCounts, nil, c.opts[:c.n]...)
	})
}

// BarrierAsync starts Barrier and returns its Work.
func BarrierAsync(opts ...CallOption) (*Work, error) {
	return start(opts, func(c call) *Work {
		return c.comm.BarrierAsync(c.ctx, c.opts[:c.n]...)
	})
}
