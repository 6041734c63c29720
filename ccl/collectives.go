package ccl

import (
	"context"
	"fmt"
	"math"
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
	if err := c.begin(CollAllReduce); err != nil {
		return err
	}
	if err := checkAllReduce(send, recv, op); err != nil {
		return c.refuse(err)
	}
	r := c.ask(CollAllReduce, dtype, send, recv, opts)
	r.op = op
	if c.size == 1 {
		return c.alone(ctx, r, recv, send)
	}
	return c.run(ctx, r)
}

func checkAllReduce(send, recv Buffer, op Op) error {
	switch {
	case len(send.data) != len(recv.data):
		return &InvalidBufferSizeError{Operation: "all_reduce", Buffer: "recv", Expected: send.Len(), Actual: recv.Len()}
	case len(send.data) == 0:
		return &InvalidBufferSizeError{Operation: "all_reduce", Buffer: "send", Expected: 1, Actual: 0}
	case !op.implemented():
		return fmt.Errorf("ccl: all_reduce: operation %v is %w", op, ErrNotImplemented)
	case !same(send.data, recv.data) && overlap(send.data, recv.data):
		return &InvalidArgumentError{"all_reduce", "send and recv overlap in part; they must be the same slice or disjoint"}
	}
	return nil
}

// AllGatherV gives every rank the inputs of all: rank r's send, of counts[r]
// elements, goes to recv[displs[r]:]. counts is the same on all ranks; displs,
// which ranks may choose for themselves, may leave gaps, which stay untouched,
// and be in any order; nil means packed. send is disjoint from recv or exactly
// this rank's place in it. Counts may be zero.
//
// Note the order of the arguments: send, recv, as in MPI; package dist has
// torch's.
//
// Refused with *InvalidBufferSizeError or *InvalidArgumentError (negative counts,
// places that overlap); fails with *CollectiveFailedError, after which recv is
// unspecified.
func AllGatherV[T Element](ctx context.Context, c *Communicator, send, recv []T, counts, displs []int, opts ...CallOption) error {
	return c.allGatherV(ctx, DTypeOf[T](), bufferOf(send), bufferOf(recv), counts, displs, opts)
}

func (c *Communicator) allGatherV(ctx context.Context, dtype DType, send, recv Buffer, counts, displs []int, opts []CallOption) error {
	if err := c.begin(CollAllGatherV); err != nil {
		return err
	}
	total, longest, err := c.checkAllGatherV(send, recv, counts, displs)
	if err != nil {
		return c.refuse(err)
	}
	r := c.ask(CollAllGatherV, dtype, send, recv, opts)
	r.count, r.bytes = total, longest<<recv.shift
	r.counts, r.displs = counts, displs
	if c.size == 1 {
		at := 0
		if displs != nil {
			at = displs[0]
		}
		return c.alone(ctx, r, recv.Slice(at, at+counts[0]), send)
	}
	return c.run(ctx, r)
}

// checkAllGatherV checks in the order in which S0.4 names the errors.
func (c *Communicator) checkAllGatherV(send, recv Buffer, counts, displs []int) (total, longest int, err error) {
	const op = "all_gather_v"
	wrong := func(buffer string, expected, actual int) error {
		return &InvalidBufferSizeError{Operation: op, Buffer: buffer, Expected: expected, Actual: actual}
	}
	if len(counts) != c.size {
		return 0, 0, wrong("counts", c.size, len(counts))
	}
	if displs != nil && len(displs) != c.size {
		return 0, 0, wrong("displs", c.size, len(displs))
	}
	for r, n := range counts {
		if n < 0 || n > math.MaxInt-total {
			return 0, 0, &InvalidArgumentError{op, fmt.Sprintf("counts[%d] is %d", r, n)}
		}
		total += n
		longest = max(longest, n)
	}
	if send.Len() != counts[c.rank] {
		return 0, 0, wrong("send", counts[c.rank], send.Len())
	}
	end, mine := total, 0
	if displs == nil {
		for _, n := range counts[:c.rank] {
			mine += n
		}
	} else {
		mine, end = displs[c.rank], 0
		for r, at := range displs {
			if at < 0 || at > math.MaxInt-counts[r] {
				return 0, 0, &InvalidArgumentError{op, fmt.Sprintf("displs[%d] is %d", r, at)}
			}
			end = max(end, at+counts[r])
		}
	}
	if recv.Len() < end {
		return 0, 0, wrong("recv", end, recv.Len())
	}
	if a, b, ok := overlappingPlaces(counts, displs); ok {
		return 0, 0, &InvalidArgumentError{op, fmt.Sprintf("the places of ranks %d and %d in recv overlap", a, b)}
	}
	if counts[c.rank] > 0 && !same(send.data, recv.Slice(mine, mine+counts[c.rank]).data) && overlap(send.data, recv.data) {
		return 0, 0, &InvalidArgumentError{op, "send overlaps recv, but is not this rank's place in it"}
	}
	return total, longest, nil
}

// overlappingPlaces returns two ranks whose places share elements. Places in
// ascending order, the usual case, take one pass.
func overlappingPlaces(counts, displs []int) (a, b int, ok bool) {
	ascending, end := true, 0
	for r := range displs {
		if counts[r] == 0 {
			continue
		}
		ascending = ascending && displs[r] >= end
		end = displs[r] + counts[r]
	}
	if ascending {
		return 0, 0, false
	}
	for a := range displs {
		for b := a + 1; b < len(displs); b++ {
			if counts[a] > 0 && counts[b] > 0 && displs[a] < displs[b]+counts[b] && displs[b] < displs[a]+counts[a] {
				return a, b, true
			}
		}
	}
	return 0, 0, false
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
	if err := c.begin(CollBroadcast); err != nil {
		return err
	}
	if root < 0 || root >= c.size {
		return c.refuse(&InvalidRootError{Root: root, Size: c.size})
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
	if err := c.begin(CollBarrier); err != nil {
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
	defer c.end()
	if r.opts.algorithm != "" {
		if _, err := c.choose(r); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !same(dst.data, src.data) {
		copy(dst.data, src.data)
	}
	return nil
}
