//go:build linux && (amd64 || arm64)

package abi

import (
	"errors"
	"math"
	"runtime"
	"sync"

	"github.com/goccl/goccl/transport"
)

// The library's own collectives. Each blocks until the ranks that the library's algorithm needs
// have called it, and heeds no context. Lengths are in elements of t. A buffer may be nil where the
// rank has none, and InPlace where MPI takes MPI_IN_PLACE; otherwise in and out are disjoint.

// InPlace stands for a buffer of a collective in which the rank's data already lies in the other
// one.
var InPlace = make([]byte, 1)

// Blocks are the lengths of the blocks of all ranks in a buffer, and where they begin. Total is the
// sum of the lengths, which does not fit the others if it is too large.
type Blocks struct {
	Counts, Displs []int32
	Total          int
}

// errCount is the error of a collective that MPI cannot count.
var errCount = errors.New("a collective of MPI has at most 2147483647 elements")

// Barrier returns when all ranks have called it.
func (c *Comm) Barrier() error {
	return c.callCollective(mpiBarrier, nil, nil, 0, 1, arguments{c.handle})
}

// Broadcast copies the root's b to that of all ranks.
func (c *Comm) Broadcast(b []byte, count int, t transport.ElementType, root int) error {
	if err := c.checkRank(root); err != nil {
		return err
	}
	return c.callCollective(mpiBcast, b, nil, count, 5,
		arguments{c.buffer(b), number(count), c.lib.types[t], number(root), c.handle})
}

// AllReduce reduces the vectors of all ranks into the out of each.
func (c *Comm) AllReduce(in, out []byte, count int, t transport.ElementType, op transport.ReduceOp) error {
	return c.callReduction(mpiAllreduce, in, out, count, t, op)
}

// Scan reduces the vectors of the ranks up to each into its out.
func (c *Comm) Scan(in, out []byte, count int, t transport.ElementType, op transport.ReduceOp) error {
	return c.callReduction(mpiScan, in, out, count, t, op)
}

// ExScan reduces the vectors of the ranks before each into its out, which on rank 0 is undefined.
func (c *Comm) ExScan(in, out []byte, count int, t transport.ElementType, op transport.ReduceOp) error {
	return c.callReduction(mpiExscan, in, out, count, t, op)
}

// ReduceScatter reduces the vectors of all ranks, which have a block of count elements for each,
// and each rank gets its own.
func (c *Comm) ReduceScatter(in, out []byte, count int, t transport.ElementType, op transport.ReduceOp) error {
	return c.callReduction(mpiReduceScatterBlock, in, out, count, t, op)
}

func (c *Comm) callReduction(f function, in, out []byte, count int, t transport.ElementType, op transport.ReduceOp) error {
	return c.callCollective(f, in, out, count, 6,
		arguments{c.buffer(in), c.buffer(out), number(count), c.lib.types[t], c.lib.ops[op], c.handle})
}

// Reduce reduces the vectors of all ranks into the root's out.
func (c *Comm) Reduce(in, out []byte, count int, t transport.ElementType, op transport.ReduceOp, root int) error {
	if err := c.checkRank(root); err != nil {
		return err
	}
	return c.callCollective(mpiReduce, in, out, count, 7,
		arguments{c.buffer(in), c.buffer(out), number(count), c.lib.types[t], c.lib.ops[op], number(root), c.handle})
}

// AllGather copies the count elements of each rank to the out of all, in rank order.
func (c *Comm) AllGather(in, out []byte, count int, t transport.ElementType) error {
	return c.callExchange(mpiAllgather, in, out, count, t)
}

// AllToAll copies a block of count elements from each rank to each.
func (c *Comm) AllToAll(in, out []byte, count int, t transport.ElementType) error {
	return c.callExchange(mpiAlltoall, in, out, count, t)
}

func (c *Comm) callExchange(f function, in, out []byte, count int, t transport.ElementType) error {
	return c.callCollective(f, in, out, count, 7,
		arguments{c.buffer(in), number(count), c.lib.types[t], c.buffer(out), number(count), c.lib.types[t], c.handle})
}

// Gather copies the count elements of each rank to the root's out, in rank order.
func (c *Comm) Gather(in, out []byte, count int, t transport.ElementType, root int) error {
	return c.callRooted(mpiGather, in, out, count, t, root)
}

// Scatter copies a block of count elements from the root's in to the out of each rank.
func (c *Comm) Scatter(in, out []byte, count int, t transport.ElementType, root int) error {
	return c.callRooted(mpiScatter, in, out, count, t, root)
}

func (c *Comm) callRooted(f function, in, out []byte, count int, t transport.ElementType, root int) error {
	if err := c.checkRank(root); err != nil {
		return err
	}
	return c.callCollective(f, in, out, count, 8,
		arguments{c.buffer(in), number(count), c.lib.types[t], c.buffer(out), number(count), c.lib.types[t], number(root), c.handle})
}

// ReduceScatterV is ReduceScatter with blocks of any lengths.
func (c *Comm) ReduceScatterV(in, out []byte, of Blocks, t transport.ElementType, op transport.ReduceOp) error {
	defer runtime.KeepAlive(of)
	return c.callCollective(mpiReduceScatter, in, out, of.Total, 6,
		arguments{c.buffer(in), c.buffer(out), numbers(of.Counts), c.lib.types[t], c.lib.ops[op], c.handle})
}

// AllGatherV is AllGather with blocks of any lengths.
func (c *Comm) AllGatherV(in []byte, count int, out []byte, into Blocks, t transport.ElementType) error {
	defer runtime.KeepAlive(into)
	return c.callCollective(mpiAllgatherv, in, out, max(count, into.Total), 8, arguments{
		c.buffer(in), number(count), c.lib.types[t],
		c.buffer(out), numbers(into.Counts), numbers(into.Displs), c.lib.types[t], c.handle,
	})
}

// GatherV is Gather with blocks of any lengths, which the root knows.
func (c *Comm) GatherV(in []byte, count int, out []byte, into Blocks, t transport.ElementType, root int) error {
	defer runtime.KeepAlive(into)
	if err := c.checkRank(root); err != nil {
		return err
	}
	return c.callCollective(mpiGatherv, in, out, max(count, into.Total), 9, arguments{
		c.buffer(in), number(count), c.lib.types[t],
		c.buffer(out), numbers(into.Counts), numbers(into.Displs), c.lib.types[t], number(root), c.handle,
	})
}

// ScatterV is Scatter with blocks of any lengths, which the root knows.
func (c *Comm) ScatterV(in []byte, of Blocks, out []byte, count int, t transport.ElementType, root int) error {
	defer runtime.KeepAlive(of)
	if err := c.checkRank(root); err != nil {
		return err
	}
	return c.callCollective(mpiScatterv, in, out, max(count, of.Total), 9, arguments{
		c.buffer(in), numbers(of.Counts), numbers(of.Displs), c.lib.types[t],
		c.buffer(out), number(count), c.lib.types[t], number(root), c.handle,
	})
}

// AllToAllV is AllToAll with blocks of any lengths.
func (c *Comm) AllToAllV(in []byte, of Blocks, out []byte, into Blocks, t transport.ElementType) error {
	defer runtime.KeepAlive(of)
	defer runtime.KeepAlive(into)
	return c.callCollective(mpiAlltoallv, in, out, max(of.Total, into.Total), 9, arguments{
		c.buffer(in), numbers(of.Counts), numbers(of.Displs), c.lib.types[t],
		c.buffer(out), numbers(into.Counts), numbers(into.Displs), c.lib.types[t], c.handle,
	})
}

// arguments are those of a collective.
type arguments [9]uintptr

// spareArguments are arguments outside of stacks, which calls that are made often use again.
var spareArguments = sync.Pool{New: func() any { return new(arguments) }}

// callCollective calls a function with the first n arguments, among them the addresses of in and
// out.
func (c *Comm) callCollective(f function, in, out []byte, count, n int, args arguments) error {
	if count > math.MaxInt32 {
		return errCount
	}
	kept := spareArguments.Get().(*arguments)
	*kept = args
	code := c.lib.invoke(f, kept[:n]...)
	spareArguments.Put(kept)
	runtime.KeepAlive(in)
	runtime.KeepAlive(out)
	return c.lib.check(f, code)
}

// nothing is the address of an empty buffer: some libraries refuse none.
var nothing = new(byte)

// buffer returns the address of a buffer, which escapes.
func (c *Comm) buffer(b []byte) uintptr {
	if len(b) == 0 {
		return address(nothing)
	}
	first := &b[0]
	if first == &InPlace[0] {
		return c.lib.inPlace
	}
	escape(first)
	return address(first)
}

// numbers returns the address of an array, which escapes.
func numbers(n []int32) uintptr {
	if len(n) == 0 {
		return 0
	}
	escape(&n[0])
	return address(&n[0])
}
