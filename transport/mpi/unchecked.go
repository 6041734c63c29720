package mpi

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/goccl/goccl/transport"
)

// UncheckedComm is the world of MPI as it is, MPI_COMM_WORLD, for jobs in which not all ranks are
// goccl's, for example Go and mpi4py started by one mpirun. Its calls are MPI's and nothing more.
// All of goccl's own groups check; this one does not:
//
//   - Nothing compares what the ranks ask for. Ranks that differ in the call, its length, type,
//     operation or root hang, get wrong numbers, or are ended by the library.
//   - The call of another language must be the same call of MPI: blocking with blocking
//     (MPI_Allreduce, mpi4py's Allreduce, never MPI_Iallreduce or Iallreduce), of buffers
//     (Allreduce, not allreduce, which sends objects).
//   - Collectives have no timeout and heed no context. No dead rank is noticed: a call with one
//     hangs until the launcher ends the job.
//   - Ranks make their collectives in one order. Calls that several goroutines make at once have no
//     order.
//   - The bits of a reduction are the library's.
//
// Mistakes that the library finds are errors, and so are ranks and lengths that it does not have.
type UncheckedComm struct {
	calls      uncheckedCalls
	rank, size int

	mu     sync.RWMutex // held for reading by calls
	closed bool
}

// uncheckedCalls are what a platform has of MPI. Lengths are in elements.
type uncheckedCalls interface {
	barrier() error
	broadcast(b []byte, count int, t transport.ElementType, root int) error
	allReduce(send, recv []byte, count int, t transport.ElementType, op transport.ReduceOp) error
	allGather(send, recv []byte, count int, t transport.ElementType) error
	// finalized reports whether MPI has ended.
	finalized() bool
	// finalize ends MPI, unless the transport connects this process.
	finalize(ctx context.Context) error
}

// Element is a type of elements that Go and MPI both have. An int has 64 bits. Named types made of
// uint16 are excluded, as in ccl.Element, because they often are floats of 16 bits.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | uint16 | ~uint32 | ~uint64 | ~uint | ~float32 | ~float64 | ~complex64 | ~complex128
}

// UncheckedOp is an operation of MPI.
type UncheckedOp int

// Operations. The library rejects those that a type does not have, such as bits of floats and the
// least of complex numbers.
const (
	UncheckedSum UncheckedOp = iota
	UncheckedProduct
	UncheckedMin
	UncheckedMax
	UncheckedBAnd
	UncheckedBOr
	UncheckedBXor
)

var reduceOps = [...]transport.ReduceOp{transport.Sum, transport.Product, transport.Min, transport.Max, transport.BAnd, transport.BOr, transport.BXor}

var elementTypes = map[reflect.Kind]transport.ElementType{
	reflect.Int8: transport.Int8, reflect.Int16: transport.Int16, reflect.Int32: transport.Int32, reflect.Int64: transport.Int64, reflect.Int: transport.Int64,
	reflect.Uint8: transport.Uint8, reflect.Uint16: transport.Uint16, reflect.Uint32: transport.Uint32, reflect.Uint64: transport.Uint64, reflect.Uint: transport.Uint64,
	reflect.Float32: transport.Float32, reflect.Float64: transport.Float64, reflect.Complex64: transport.Complex64, reflect.Complex128: transport.Complex128,
}

// Unchecked starts MPI in this process, unless it runs, and returns its world without goccl's
// checks: read what [UncheckedComm] does not check. MPI starts when all ranks of the job have
// started it, in whichever language: MPI_Init_thread here, importing mpi4py.MPI in Python. If ctx
// ends before, Unchecked returns its error.
//
// The process must have been started by an MPI launcher. GOCCL_MPI_LIBRARY names the library's
// file; all ranks of a job need the same library.
func Unchecked(ctx context.Context) (*UncheckedComm, error) {
	calls, rank, size, err := startUnchecked(ctx)
	if err != nil {
		return nil, err
	}
	return &UncheckedComm{calls: calls, rank: rank, size: size}, nil
}

// Rank returns this process's rank in MPI_COMM_WORLD.
func (c *UncheckedComm) Rank() int { return c.rank }

// Size returns the number of ranks of MPI_COMM_WORLD, in all languages.
func (c *UncheckedComm) Size() int { return c.size }

// Barrier is MPI_Barrier: it returns when all ranks have called it.
func (c *UncheckedComm) Barrier() error {
	return c.callOpen(func() error { return c.calls.barrier() })
}

// Close ends MPI in this process by MPI_Finalize, which waits for the other ranks. If ctx ends
// first, Close returns its error. If the transport connects this process too, Close leaves that to
// package dist. Calls after Close return transport.ErrClosed. While a call of another goroutine is
// running, Close returns an error at once and ends nothing.
func (c *UncheckedComm) Close(ctx context.Context) error {
	if !c.mu.TryLock() {
		return errors.New("a call of the unchecked communicator is running: end it before Close")
	}
	defer c.mu.Unlock()
	c.closed = true
	return c.calls.finalize(ctx)
}

// callOpen makes a call, unless MPI has ended.
func (c *UncheckedComm) callOpen(f func() error) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed || c.calls.finalized() {
		return transport.ErrClosed
	}
	return f()
}

// UncheckedAllReduce is MPI_Allreduce: it reduces the vectors send of all ranks into the recv of
// each. recv has the same length, and is send itself or does not overlap it. Nothing is checked
// between ranks: see [UncheckedComm].
func UncheckedAllReduce[T Element](c *UncheckedComm, send, recv []T, op UncheckedOp) error {
	if len(send) != len(recv) {
		return fmt.Errorf("mpi: UncheckedAllReduce: send has %d elements and recv %d", len(send), len(recv))
	}
	if op < 0 || int(op) >= len(reduceOps) {
		return fmt.Errorf("mpi: UncheckedAllReduce: operation %d does not exist", op)
	}
	return c.callOpen(func() error {
		return c.calls.allReduce(bytesOf(send), bytesOf(recv), len(send), elementTypeOf[T](), reduceOps[op])
	})
}

// UncheckedBroadcast is MPI_Bcast: it copies the root's data to that of all ranks. Nothing is
// checked between ranks: see [UncheckedComm].
func UncheckedBroadcast[T Element](c *UncheckedComm, data []T, root int) error {
	err := c.callOpen(func() error {
		return c.calls.broadcast(bytesOf(data), len(data), elementTypeOf[T](), root)
	})
	if err != nil {
		return fmt.Errorf("mpi: UncheckedBroadcast: %w", err)
	}
	return nil
}

// UncheckedAllGather is MPI_Allgather: it copies the send of each rank to the recv of all, in rank
// order. recv has Size times the length of send, which is this rank's block of recv or does not
// overlap it. Nothing is checked between ranks: see [UncheckedComm].
func UncheckedAllGather[T Element](c *UncheckedComm, send, recv []T) error {
	if len(recv) != c.size*len(send) {
		return fmt.Errorf("mpi: UncheckedAllGather: recv has %d elements, and %d ranks of %d elements need %d", len(recv), c.size, len(send), c.size*len(send))
	}
	return c.callOpen(func() error {
		return c.calls.allGather(bytesOf(send), bytesOf(recv), len(send), elementTypeOf[T]())
	})
}

// elementTypeOf returns the type of elements.
func elementTypeOf[T Element]() transport.ElementType {
	return elementTypes[reflect.TypeFor[T]().Kind()]
}
