// Command goccl_mpi times all-reduces by the MPI library that is installed, and prints rows of
// three entries, in the columns of mpi_allreduce.c:
//
//	mpirun.openmpi -n 2 goccl_mpi openmpi 50 20000 4 1048576
//
// "call" is MPI_Allreduce itself, called from Go. "mpi" is an all-reduce of goccl by the algorithm
// mpi. "check" is a barrier of goccl, which is what all ranks do in every call before data moves;
// its rows have 0 bytes.
//
// # Model
//
// The rule of timing is that of mpi_allreduce.c: before each operation every rank rewrites its
// vector, and all meet twice; they meet again after it. They meet by MPI_Allreduce of one element,
// as far as possible like a C program's MPI_Barrier.
package main
