package mpi

import (
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

func init() { ccl.Register(Algorithm) }

// Algorithm is the algorithm that `module: mpi` names. It has no parameters.
var Algorithm = &ccl.Algorithm{
	Name: "mpi",
	Doc:  "the collectives of the MPI library that connects the ranks; for the transport mpi alone, and with the library's bits",
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "MPI_Allreduce in place",
			Cost: costOf(func(s ccl.Shape) int { return 2 * (s.Ranks - 1) * s.Bytes }),
			Run:  allReduce, Supports: checkReduction, Native: true,
		},
		ccl.CollReduce: {
			Doc:  "MPI_Reduce",
			Cost: costOf(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Bytes }),
			Run:  reduce, Supports: checkReduction, Native: true,
		},
		ccl.CollReduceScatter: {
			Doc:  "MPI_Reduce_scatter_block, or MPI_Reduce_scatter if blocks differ in length",
			Cost: costOf(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Bytes }),
			Run:  reduceScatter, Supports: checkReduction, Native: true,
		},
		ccl.CollScan: {
			Doc:  "MPI_Scan in place",
			Cost: costOf(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Bytes }),
			Run:  scan, Supports: checkReduction, Native: true,
		},
		ccl.CollExScan: {
			Doc:  "MPI_Exscan in place",
			Cost: costOf(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Bytes }),
			Run:  exScan, Supports: checkReduction, Native: true,
		},
		ccl.CollAllGather: {
			Doc:  "MPI_Allgather in place, or MPI_Allgatherv if blocks differ in length",
			Cost: costOf(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Total }),
			Run:  allGather, Supports: checkCount, Native: true,
		},
		ccl.CollBroadcast: {
			Doc:  "MPI_Bcast",
			Cost: costOf(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Total }),
			Run:  broadcast, Supports: checkCount, Native: true,
		},
		ccl.CollGather: {
			Doc:  "MPI_Gather, or MPI_Gatherv if blocks differ in length",
			Cost: costOf(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Bytes }),
			Run:  gather, Supports: checkCount, Native: true,
		},
		ccl.CollScatter: {
			Doc:  "MPI_Scatter, or MPI_Scatterv if blocks differ in length",
			Cost: costOf(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Total }),
			Run:  scatter, Supports: checkCount, Native: true,
		},
		ccl.CollAllToAll: {
			Doc:  "MPI_Alltoall, or MPI_Alltoallv if blocks differ in length",
			Cost: costOf(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Total }),
			Run:  allToAll, Supports: checkCount, Native: true,
		},
	},
}

// costOf returns the least that any algorithm of the library sends.
func costOf(bytes func(ccl.Shape) int) func(ccl.Shape) ccl.Cost {
	return func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: 1, Bytes: bytes(s)} }
}

// checkCount is Supports of collectives that move data.
func checkCount(s ccl.Shape) error {
	if n := max(s.Bytes, s.Total) / s.DType.Size(); n > math.MaxInt32 {
		return fmt.Errorf("MPI counts at most %d elements, but the call has %d", math.MaxInt32, n)
	}
	return nil
}

// checkReduction is Supports of collectives that reduce.
func checkReduction(s ccl.Shape) error {
	if _, ok := types[s.DType]; !ok {
		return fmt.Errorf("MPI has no arithmetic for %v", s.DType)
	}
	if _, ok := ops[s.Op]; !ok {
		return fmt.Errorf("MPI does not know the operation %v", s.Op)
	}
	switch s.Op {
	case ccl.Min, ccl.Max:
		switch s.DType {
		case ccl.Uint8, ccl.Uint16, ccl.Uint32, ccl.Uint64: // MPICH 4.0.2, from C as well
			return errors.New("some MPI libraries compare unsigned integers as signed ones")
		}
	case ccl.Sum, ccl.Avg:
		switch s.DType {
		case ccl.Uint8, ccl.Int8, ccl.Uint16, ccl.Int16: // Open MPI 4.1.4 where it uses vector instructions, from C as well
			return errors.New("some MPI libraries saturate sums of 8 and 16 bits instead of wrapping them around")
		}
	}
	return checkCount(s)
}

// types are those with arithmetic in MPI. Bools are bytes there, which all its operations on bools
// leave 0 or 1.
var types = map[ccl.DType]transport.ElementType{
	ccl.Uint8: transport.Uint8, ccl.Int8: transport.Int8, ccl.Uint16: transport.Uint16, ccl.Int16: transport.Int16,
	ccl.Uint32: transport.Uint32, ccl.Int32: transport.Int32, ccl.Uint64: transport.Uint64, ccl.Int64: transport.Int64,
	ccl.Float32: transport.Float32, ccl.Float64: transport.Float64, ccl.Complex64: transport.Complex64, ccl.Complex128: transport.Complex128,
	ccl.Bool: transport.Uint8,
}

// ops are the operations of MPI. An average is a sum with an epilogue, and the inputs of a logical
// operation are 0 and 1.
var ops = map[ccl.Op]transport.ReduceOp{
	ccl.Sum: transport.Sum, ccl.Avg: transport.Sum, ccl.Product: transport.Product, ccl.Min: transport.Min, ccl.Max: transport.Max,
	ccl.BAnd: transport.BAnd, ccl.BOr: transport.BOr, ccl.BXor: transport.BXor,
	ccl.LAnd: transport.BAnd, ccl.LOr: transport.BOr, ccl.LXor: transport.BXor,
}

// reductionOf returns the type and the operation of a call that reduces.
func reductionOf(c *ccl.Call) (transport.ElementType, transport.ReduceOp) {
	s := c.Shape()
	return types[s.DType], ops[s.Op]
}

// movedType returns a type of the length of the call's elements: to move them, their kind does not
// matter.
func movedType(c *ccl.Call) transport.ElementType {
	switch c.Shape().DType.Size() {
	case 1:
		return transport.Uint8
	case 2:
		return transport.Uint16
	case 4:
		return transport.Uint32
	case 8:
		return transport.Uint64
	}
	return transport.Complex128
}

// copyInput copies this rank's input to its output, and returns that. MPI's calls work in place on
// all ranks or on none, but those of goccl on any.
func copyInput(c *ccl.Call) (ccl.Buffer, error) { return c.Out(), c.Copy(c.Out(), c.In()) }

// isSame reports whether buffers, which are not empty, begin at the same element.
func isSame(a, b ccl.Buffer) bool { return &a.Bytes()[0] == &b.Bytes()[0] }

func allReduce(c *ccl.Call) error {
	out, err := copyInput(c)
	if err != nil {
		return err
	}
	t, op := reductionOf(c)
	if err := c.Native().AllReduce(out.Bytes(), t, op); err != nil {
		return err
	}
	c.Epilogue(out)
	return nil
}

func reduce(c *ccl.Call) error {
	t, op := reductionOf(c)
	if c.Rank() != c.Root() {
		return c.Native().Reduce(c.In().Bytes(), nil, t, op, c.Root())
	}

	in := c.In()
	if isSame(in, c.Out()) {
		in = c.Scratch(in.Len())
		if err := c.Copy(in, c.In()); err != nil {
			return err
		}
	}
	if err := c.Native().Reduce(in.Bytes(), c.Out().Bytes(), t, op, c.Root()); err != nil {
		return err
	}
	c.Epilogue(c.Out())
	return nil
}

func reduceScatter(c *ccl.Call) error {
	out := c.Out()
	if out.Len() > 0 && isSame(out, c.InBlock(c.Rank())) { // MPI's call is in place on all ranks or on none
		out = c.Scratch(out.Len())
	}
	t, op := reductionOf(c)
	if err := c.Native().ReduceScatter(c.In().Bytes(), out.Bytes(), blockLengths(c), t, op); err != nil {
		return err
	}
	c.Epilogue(out)
	return c.Copy(c.Out(), out)
}

func scan(c *ccl.Call) error {
	out, err := copyInput(c)
	if err != nil {
		return err
	}
	t, op := reductionOf(c)
	return c.Native().Scan(out.Bytes(), t, op)
}

func exScan(c *ccl.Call) error {
	out := c.Out()
	if c.Rank() == 0 { // its output does not change
		out = c.Scratch(out.Len())
	}
	if err := c.Copy(out, c.In()); err != nil {
		return err
	}
	t, op := reductionOf(c)
	return c.Native().ExScan(out.Bytes(), t, op)
}

func broadcast(c *ccl.Call) error {
	return c.Native().Broadcast(c.Out().Bytes(), movedType(c), c.Root())
}

func allGather(c *ccl.Call) error {
	if err := c.Copy(c.OutBlock(c.Rank()), c.In()); err != nil {
		return err
	}
	return withPackedOutput(c, func(all ccl.Buffer, lengths []int) error {
		return c.Native().AllGather(all.Bytes(), lengths, movedType(c))
	})
}

func gather(c *ccl.Call) error {
	if c.Rank() != c.Root() {
		return c.Native().Gather(c.In().Bytes(), nil, blockLengths(c), movedType(c), c.Root())
	}
	if err := c.Copy(c.OutBlock(c.Rank()), c.In()); err != nil {
		return err
	}
	return withPackedOutput(c, func(all ccl.Buffer, lengths []int) error {
		return c.Native().Gather(nil, all.Bytes(), lengths, movedType(c), c.Root())
	})
}

func scatter(c *ccl.Call) error {
	if c.Rank() != c.Root() {
		return c.Native().Scatter(nil, c.Out().Bytes(), blockLengths(c), movedType(c), c.Root())
	}
	if err := c.Copy(c.Out(), c.InBlock(c.Rank())); err != nil {
		return err
	}
	return c.Native().Scatter(c.In().Bytes(), nil, blockLengths(c), movedType(c), c.Root())
}

func allToAll(c *ccl.Call) error {
	return withPackedOutput(c, func(out ccl.Buffer, lengths []int) error {
		sent := lengthsOf(c, func(rank int) int { return c.InBlock(rank).Len() })
		return c.Native().AllToAll(c.In().Bytes(), sent, out.Bytes(), lengths, movedType(c))
	})
}

// blockLengths returns the lengths of the blocks of all ranks; nil if they are equal.
func blockLengths(c *ccl.Call) []int { return lengthsOf(c, c.BlockLen) }

// lengthsOf returns a length for each rank; nil if blocks are equal.
func lengthsOf(c *ccl.Call, length func(rank int) int) []int {
	if c.EqualBlocks() {
		return nil
	}
	lengths := make([]int, c.Size())
	for r := range lengths {
		lengths[r] = length(r)
	}
	return lengths
}

// withPackedOutput calls f with memory for the blocks of the output, one after the other: the
// output itself, unless these have gaps or another order. f gets the lengths of the blocks if they
// differ.
func withPackedOutput(c *ccl.Call, f func(all ccl.Buffer, lengths []int) error) error {
	lengths := lengthsOf(c, func(rank int) int { return c.OutBlock(rank).Len() })
	end, isPacked := 0, true
	for r := range c.Size() {
		at := c.OutRange(r)
		isPacked = isPacked && (at.Lo == end || at.Lo == at.Hi)
		end += at.Hi - at.Lo
	}
	if isPacked {
		return f(c.Out().Slice(0, end), lengths)
	}

	all := c.Scratch(end)
	packed := func(rank int) ccl.Buffer {
		at := 0
		for r := range rank {
			at += c.OutBlock(r).Len()
		}
		return all.Slice(at, at+c.OutBlock(rank).Len())
	}
	// An all-gather and a gather have filled this rank's block.
	if err := c.Copy(packed(c.Rank()), c.OutBlock(c.Rank())); err != nil {
		return err
	}
	if err := f(all, lengths); err != nil {
		return err
	}
	for r := range c.Size() {
		if err := c.Copy(c.OutBlock(r), packed(r)); err != nil {
			return err
		}
	}
	return nil
}
