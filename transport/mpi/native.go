//go:build linux && (amd64 || arm64)

package mpi

import (
	"math"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/packet"
	"github.com/goccl/goccl/transport/mpi/internal/abi"
)

// native is an endpoint over MPI itself. It implements transport.Collectives by a communicator of
// the group's ranks.
type native struct {
	*packet.Endpoint
	library library
	comm    *abi.Comm  // made by the first collective
	in, out abi.Blocks // of the current one
}

// library is what makes communicators of a library that has collectives.
type library interface {
	// newCommunicator makes a communicator of some processes. It blocks until all of them make it; tag
	// tells apart those that are made at the same time.
	newCommunicator(world []int, tag int) (*abi.Comm, error)
	// freeCommunicator ends it, unless MPI has ended.
	freeCommunicator(c *abi.Comm) error
}

// communicator returns the group's communicator, for a collective. The first call makes it: all
// ranks are inside that call.
func (n *native) communicator() (*abi.Comm, error) {
	n.NoteLibraryCall()
	if n.comm != nil {
		return n.comm, nil
	}
	c, err := n.library.newCommunicator(n.Processes(), int(n.ID()&math.MaxInt16))
	if err == nil {
		n.comm = c
	}
	return c, err
}

// Free implements transport.Endpoint. MPI may wait for all ranks of a communicator at its end, so
// that of a group with a dead rank, or of one that has failed, stays until the process ends.
func (n *native) Free() error {
	if n.comm != nil && n.IsIntact() {
		if err := n.library.freeCommunicator(n.comm); err != nil {
			return err
		}
	}
	return n.Endpoint.Free()
}

// call makes a call of the library on the group's communicator.
func (n *native) call(f func(c *abi.Comm) error) error {
	c, err := n.communicator()
	if err != nil {
		return err
	}
	return f(c)
}

func (n *native) AllReduce(data []byte, t transport.ElementType, op transport.ReduceOp) error {
	return n.call(func(c *abi.Comm) error { return c.AllReduce(abi.InPlace, data, len(data)/t.Size(), t, op) })
}

// Reduce implements transport.Collectives.
//
// It is not in place, because MPI_Reduce of MPICH 4.0.2 then reads address -1 for vectors from 4
// KiB on.
func (n *native) Reduce(in, out []byte, t transport.ElementType, op transport.ReduceOp, root int) error {
	return n.call(func(c *abi.Comm) error { return c.Reduce(in, out, len(in)/t.Size(), t, op, root) })
}

func (n *native) ReduceScatter(in, out []byte, counts []int, t transport.ElementType, op transport.ReduceOp) error {
	return n.call(func(c *abi.Comm) error {
		if counts == nil {
			return c.ReduceScatter(in, out, len(out)/t.Size(), t, op)
		}
		return c.ReduceScatterV(in, out, setBlocks(&n.in, counts), t, op)
	})
}

func (n *native) Scan(data []byte, t transport.ElementType, op transport.ReduceOp) error {
	return n.call(func(c *abi.Comm) error { return c.Scan(abi.InPlace, data, len(data)/t.Size(), t, op) })
}

func (n *native) ExScan(data []byte, t transport.ElementType, op transport.ReduceOp) error {
	return n.call(func(c *abi.Comm) error { return c.ExScan(abi.InPlace, data, len(data)/t.Size(), t, op) })
}

func (n *native) Broadcast(data []byte, t transport.ElementType, root int) error {
	return n.call(func(c *abi.Comm) error { return c.Broadcast(data, len(data)/t.Size(), t, root) })
}

func (n *native) AllGather(all []byte, counts []int, t transport.ElementType) error {
	return n.call(func(c *abi.Comm) error {
		if counts == nil {
			return c.AllGather(abi.InPlace, all, len(all)/t.Size()/c.Size, t)
		}
		return c.AllGatherV(abi.InPlace, 0, all, setBlocks(&n.out, counts), t)
	})
}

func (n *native) Gather(block, all []byte, counts []int, t transport.ElementType, root int) error {
	return n.call(func(c *abi.Comm) error {
		block, count := blockOfRoot(c, root, block, all, t)
		if counts == nil {
			return c.Gather(block, all, count, t, root)
		}
		return c.GatherV(block, count, all, setBlocks(&n.out, counts), t, root)
	})
}

func (n *native) Scatter(all, block []byte, counts []int, t transport.ElementType, root int) error {
	return n.call(func(c *abi.Comm) error {
		block, count := blockOfRoot(c, root, block, all, t)
		if counts == nil {
			return c.Scatter(all, block, count, t, root)
		}
		return c.ScatterV(all, setBlocks(&n.in, counts), block, count, t, root)
	})
}

// blockOfRoot returns a rank's block and the number of its elements. The root's lies in the buffer
// of all blocks already.
func blockOfRoot(c *abi.Comm, root int, block, all []byte, t transport.ElementType) ([]byte, int) {
	if c.Rank == root {
		return abi.InPlace, len(all) / t.Size() / c.Size
	}
	return block, len(block) / t.Size()
}

func (n *native) AllToAll(in []byte, inCounts []int, out []byte, outCounts []int, t transport.ElementType) error {
	return n.call(func(c *abi.Comm) error {
		if inCounts == nil {
			return c.AllToAll(in, out, len(in)/t.Size()/c.Size, t)
		}
		return c.AllToAllV(in, setBlocks(&n.in, inCounts), out, setBlocks(&n.out, outCounts), t)
	})
}

// setBlocks makes b blocks of these lengths, one after the other.
func setBlocks(b *abi.Blocks, counts []int) abi.Blocks {
	b.Counts, b.Displs, b.Total = b.Counts[:0], b.Displs[:0], 0
	for _, n := range counts {
		b.Counts, b.Displs = append(b.Counts, int32(n)), append(b.Displs, int32(b.Total))
		b.Total += n
	}
	return *b
}
