// Package abi calls the MPI library that is installed on the machine, without cgo: it loads the
// library at run time and knows the handles and constants of three ABIs: that of Open MPI 4 and 5,
// that of MPICH with its relatives (Intel MPI, MVAPICH, Cray MPICH), and the standard one of MPI
// 5.0. A program that links it needs glibc.
//
// # Model
//
// [Launched] tells from environment variables which family's launcher started the process. [Init]
// loads that family's library, or the one that the caller names, tells its ABI, resolves all
// symbols, and initialises MPI. It returns the [World]: this process's rank, and the communicator
// of all.
//
// A process initialises MPI once and finalises it once. The thread that does both is locked for
// as long as MPI lives; all other calls are made on any thread, by the level MPI_THREAD_MULTIPLE,
// without which Init fails.
//
// Transfers are started by [Comm.Isend] and [Comm.Irecv] and polled by [Request.Test], which do not
// block. Init, [Finalize], [Comm.Dup], [Comm.Group] and the collectives do.
//
// # Concurrency
//
// All functions may be called concurrently, but a [Request] belongs to one goroutine at a time.
//
// # Memory
//
// The library writes to requests and buffers after a call has returned. A converted pointer does
// not keep memory from moving with a goroutine's stack, so a Request pins itself and its buffer
// while a transfer runs, which also keeps both alive.
//
// # Failure
//
// Errors of the library are returned as [*Error]; it does not end the process. MPI reports no dead
// peer: a transfer with one stays pending.
//
// UCX, on which some libraries stand, handles SIGSEGV, so that a nil dereference which Go could
// recover would end the process. Init turns that off, unless the environment says otherwise
// (UCX_ERROR_SIGNALS, UCX_HANDLE_ERRORS).
package abi
