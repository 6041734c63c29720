//go:build linux && (amd64 || arm64)

package abi

import "github.com/ebitengine/purego"

// function is one of the library's functions that this package calls, an index of functionNames.
type function int

// functionNames are the names of all functions in the library.
var functionNames []string

// declare adds a function.
func declare(name string) function {
	functionNames = append(functionNames, name)
	return function(len(functionNames) - 1)
}

var (
	mpiInitThread        = declare("MPI_Init_thread")
	mpiFinalize          = declare("MPI_Finalize")
	mpiInitialized       = declare("MPI_Initialized")
	mpiGetLibraryVersion = declare("MPI_Get_library_version")
	mpiErrorClass        = declare("MPI_Error_class")
	mpiErrorString       = declare("MPI_Error_string")

	mpiCommRank          = declare("MPI_Comm_rank")
	mpiCommSize          = declare("MPI_Comm_size")
	mpiCommFree          = declare("MPI_Comm_free")
	mpiCommSetErrhandler = declare("MPI_Comm_set_errhandler")
	mpiCommGroup         = declare("MPI_Comm_group")
	mpiGroupIncl         = declare("MPI_Group_incl")
	mpiGroupFree         = declare("MPI_Group_free")
	mpiCommCreateGroup   = declare("MPI_Comm_create_group")

	mpiIsend         = declare("MPI_Isend")
	mpiIrecv         = declare("MPI_Irecv")
	mpiTest          = declare("MPI_Test")
	mpiCancel        = declare("MPI_Cancel")
	mpiTestCancelled = declare("MPI_Test_cancelled")
	mpiGetCount      = declare("MPI_Get_count")

	mpiBarrier            = declare("MPI_Barrier")
	mpiBcast              = declare("MPI_Bcast")
	mpiAllreduce          = declare("MPI_Allreduce")
	mpiReduce             = declare("MPI_Reduce")
	mpiScan               = declare("MPI_Scan")
	mpiExscan             = declare("MPI_Exscan")
	mpiReduceScatterBlock = declare("MPI_Reduce_scatter_block")
	mpiReduceScatter      = declare("MPI_Reduce_scatter")
	mpiAllgather          = declare("MPI_Allgather")
	mpiGather             = declare("MPI_Gather")
	mpiScatter            = declare("MPI_Scatter")
	mpiAlltoall           = declare("MPI_Alltoall")
	mpiAllgatherv         = declare("MPI_Allgatherv")
	mpiGatherv            = declare("MPI_Gatherv")
	mpiScatterv           = declare("MPI_Scatterv")
	mpiAlltoallv          = declare("MPI_Alltoallv")
)

// invoke calls a function that returns an int, and returns that.
//
// Arguments that are listed are allocated; calls that are made often pass a slice that they keep.
func (l *library) invoke(f function, args ...uintptr) int32 {
	code, _, _ := purego.SyscallN(l.addresses[f], args...)
	return int32(code)
}

// call calls a function, and returns its error.
func (l *library) call(f function, args ...uintptr) error {
	return l.check(f, l.invoke(f, args...))
}

// number converts an int for a call.
func number(n int) uintptr { return uintptr(n) }
