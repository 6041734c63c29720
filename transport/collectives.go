package transport

// Collectives is implemented by endpoints of transports whose library has collectives of its own,
// such as MPI. Kernels reach it by ccl.Call.Native.
//
// Preconditions: this rank has entered a call (Sync.Enter), not Exposed, whose ranks all make the
// same call of one of these methods, with the same lengths, type, operation and root. Buffers are
// disjoint, and hold whole elements.
//
// A method blocks the calling goroutine until the library has done this rank's part. It heeds no
// context, no timeout and no failure of the group: a rank that dies meanwhile is left to the
// library and the launcher. The order of a reduction, and so its bits, are the library's. An
// error is the library's own.
//
// Blocks lie one after the other, in rank order. counts has their lengths in elements; nil: all
// have the same length. It is nil on all ranks or on none.
type Collectives interface {
	// AllReduce reduces the data of all ranks into that of each.
	AllReduce(data []byte, t ElementType, op ReduceOp) error
	// Reduce reduces the in of all ranks into the root's out. out is nil on other ranks.
	Reduce(in, out []byte, t ElementType, op ReduceOp, root int) error
	// ReduceScatter reduces the in of all ranks, and stores its block of the result to the out of
	// each.
	ReduceScatter(in, out []byte, counts []int, t ElementType, op ReduceOp) error
	// Scan reduces the data of the ranks up to each into its own.
	Scan(data []byte, t ElementType, op ReduceOp) error
	// ExScan reduces the data of the ranks before each into its own. That of rank 0 is undefined
	// afterwards.
	ExScan(data []byte, t ElementType, op ReduceOp) error
	// Broadcast copies the root's data to that of all ranks.
	Broadcast(data []byte, t ElementType, root int) error
	// AllGather completes all, in which each rank has its own block, with the blocks of the others.
	AllGather(all []byte, counts []int, t ElementType) error
	// Gather completes the root's all, in which the root has its own block, with the block of each
	// other rank. all is nil on other ranks, and block on the root.
	Gather(block, all []byte, counts []int, t ElementType, root int) error
	// Scatter copies the blocks of the root's all to the block of each other rank. all is nil on
	// other ranks, and block on the root.
	Scatter(all, block []byte, counts []int, t ElementType, root int) error
	// AllToAll copies a block from the in of each rank to the out of each. Either both counts are
	// nil or neither is.
	AllToAll(in []byte, inCounts []int, out []byte, outCounts []int, t ElementType) error
}

// ElementType is a type of elements that libraries know.
type ElementType uint8

// The types of elements, named as Go's.
const (
	Uint8 ElementType = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Uint64
	Int64
	Float32
	Float64
	Complex64
	Complex128
)

// Size returns the length of an element in bytes.
func (t ElementType) Size() int { return elementSizes[t] }

var elementSizes = [...]int{
	Uint8: 1, Int8: 1, Uint16: 2, Int16: 2, Uint32: 4, Int32: 4, Uint64: 8, Int64: 8,
	Float32: 4, Float64: 8, Complex64: 8, Complex128: 16,
}

// ReduceOp is an operation that libraries know. All of them commute.
type ReduceOp uint8

// The operations. Bitwise ones are for integers; complex numbers have sum and product.
const (
	Sum ReduceOp = iota
	Product
	Min
	Max
	BAnd
	BOr
	BXor
)
