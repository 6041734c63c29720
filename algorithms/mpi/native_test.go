package mpi_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// native is an endpoint with collectives: those of another group of the same ranks, by the algorithm direct. It holds its
// callers to the rules of transport.Collectives.
type native struct {
	transport.Endpoint
	inner *ccl.Communicator
	calls int
}

var errRule = errors.New("a rule of transport.Collectives is broken")

var ctx = context.Background()

func (n *native) isRoot(root int) bool { return n.inner.Rank() == root }

// op returns an operation of goccl.
func op(of transport.ReduceOp) ccl.Op {
	return map[transport.ReduceOp]ccl.Op{
		transport.Sum: ccl.Sum, transport.Product: ccl.Product, transport.Min: ccl.Min, transport.Max: ccl.Max,
		transport.BAnd: ccl.BAnd, transport.BOr: ccl.BOr, transport.BXor: ccl.BXor,
	}[of]
}

// scaled returns counts in bytes.
func scaled(counts []int, t transport.ElementType) []int {
	if counts == nil {
		return nil
	}
	all := make([]int, len(counts))
	for i, n := range counts {
		all[i] = n * t.Size()
	}
	return all
}

// of returns the element type's functions.
func of(t transport.ElementType) (reducer, error) {
	switch t {
	case transport.Int64:
		return reductions[int64]{}, nil
	case transport.Uint8:
		return reductions[uint8]{}, nil
	case transport.Uint16:
		return reductions[uint16]{}, nil
	case transport.Float32:
		return reductions[float32]{}, nil
	case transport.Complex128:
		return reductions[complex128]{}, nil
	}
	return nil, fmt.Errorf("type %d: %w", t, errRule)
}

type reducer interface {
	allReduce(c *ccl.Communicator, data []byte, o ccl.Op) error
	reduce(c *ccl.Communicator, in, out []byte, o ccl.Op, root int) error
	reduceScatter(c *ccl.Communicator, in, out []byte, counts []int, o ccl.Op) error
	scan(c *ccl.Communicator, data []byte, o ccl.Op) error
	exScan(c *ccl.Communicator, data []byte, o ccl.Op) error
}

type reductions[T ccl.Element] struct{}

func (reductions[T]) allReduce(c *ccl.Communicator, data []byte, o ccl.Op) error {
	x := elements[T](data)
	return ccl.AllReduce(ctx, c, x, x, o)
}

func (reductions[T]) reduce(c *ccl.Communicator, in, out []byte, o ccl.Op, root int) error {
	return ccl.Reduce(ctx, c, elements[T](in), elements[T](out), o, root)
}

func (reductions[T]) reduceScatter(c *ccl.Communicator, in, out []byte, counts []int, o ccl.Op) error {
	if counts == nil {
		return ccl.ReduceScatter(ctx, c, elements[T](in), elements[T](out), o)
	}
	return ccl.ReduceScatterV(ctx, c, elements[T](in), elements[T](out), o, counts)
}

func (reductions[T]) scan(c *ccl.Communicator, data []byte, o ccl.Op) error {
	x := elements[T](data)
	return ccl.Scan(ctx, c, x, x, o)
}

func (reductions[T]) exScan(c *ccl.Communicator, data []byte, o ccl.Op) error {
	x := elements[T](data)
	err := ccl.ExScan(ctx, c, x, x, o)
	if c.Rank() == 0 {
		clear(x) // it is undefined
	}
	return err
}

func (n *native) AllReduce(data []byte, t transport.ElementType, o transport.ReduceOp) error {
	n.calls++
	r, err := of(t)
	if err != nil {
		return err
	}
	return r.allReduce(n.inner, data, op(o))
}

func (n *native) Reduce(in, out []byte, t transport.ElementType, o transport.ReduceOp, root int) error {
	n.calls++
	r, err := of(t)
	if err != nil {
		return err
	}
	if n.isRoot(root) && &in[0] == &out[0] || !n.isRoot(root) && out != nil {
		return errRule
	}
	return r.reduce(n.inner, in, out, op(o), root)
}

func (n *native) ReduceScatter(in, out []byte, counts []int, t transport.ElementType, o transport.ReduceOp) error {
	n.calls++
	r, err := of(t)
	if err != nil {
		return err
	}
	for i := range in {
		if len(out) > 0 && &in[i] == &out[0] {
			return errRule
		}
	}
	return r.reduceScatter(n.inner, in, out, counts, op(o))
}

func (n *native) Scan(data []byte, t transport.ElementType, o transport.ReduceOp) error {
	n.calls++
	r, err := of(t)
	if err != nil {
		return err
	}
	return r.scan(n.inner, data, op(o))
}

func (n *native) ExScan(data []byte, t transport.ElementType, o transport.ReduceOp) error {
	n.calls++
	r, err := of(t)
	if err != nil {
		return err
	}
	return r.exScan(n.inner, data, op(o))
}

func (n *native) Broadcast(data []byte, _ transport.ElementType, root int) error {
	n.calls++
	return ccl.Broadcast(ctx, n.inner, data, root)
}

func (n *native) AllGather(all []byte, counts []int, t transport.ElementType) error {
	n.calls++
	size, me := n.inner.Size(), n.inner.Rank()
	if counts == nil {
		each := len(all) / size
		return ccl.AllGather(ctx, n.inner, all[me*each:(me+1)*each], all)
	}
	bytes := scaled(counts, t)
	lo := sum(bytes[:me])
	return ccl.AllGatherV(ctx, n.inner, all[lo:lo+bytes[me]], all, bytes, nil)
}

func (n *native) Gather(block, all []byte, counts []int, t transport.ElementType, root int) error {
	n.calls++
	size := n.inner.Size()
	if n.isRoot(root) != (block == nil) || n.isRoot(root) == (all == nil) {
		return errRule
	}
	bytes := scaled(counts, t)
	if n.isRoot(root) {
		if bytes == nil {
			bytes = equal(size, len(all)/size)
		}
		lo := sum(bytes[:root])
		return ccl.GatherV(ctx, n.inner, all[lo:lo+bytes[root]], all, bytes, nil, root)
	}
	return ccl.GatherV(ctx, n.inner, block, nil, nil, nil, root)
}

func (n *native) Scatter(all, block []byte, counts []int, t transport.ElementType, root int) error {
	n.calls++
	size := n.inner.Size()
	if n.isRoot(root) != (block == nil) || n.isRoot(root) == (all == nil) {
		return errRule
	}
	bytes := scaled(counts, t)
	if n.isRoot(root) {
		if bytes == nil {
			bytes = equal(size, len(all)/size)
		}
		lo := sum(bytes[:root])
		return ccl.ScatterV(ctx, n.inner, all, bytes, nil, all[lo:lo+bytes[root]], root)
	}
	return ccl.ScatterV(ctx, n.inner, nil, nil, nil, block, root)
}

func (n *native) AllToAll(in []byte, inCounts []int, out []byte, outCounts []int, t transport.ElementType) error {
	n.calls++
	if (inCounts == nil) != (outCounts == nil) {
		return errRule
	}
	if inCounts == nil {
		return ccl.AllToAll(ctx, n.inner, in, out)
	}
	return ccl.AllToAllV(ctx, n.inner, in, scaled(inCounts, t), nil, out, scaled(outCounts, t), nil)
}

func sum(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

func equal(n, each int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = each
	}
	return all
}
