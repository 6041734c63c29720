"""Fits a line on ranks in Go and Python, which one mpirun starts: main.go and this program."""

from array import array

from mpi4py import MPI  # which starts MPI, and ends it with the program

SAMPLES = 100  # of each rank
STEPS = 200
RATE = 0.5


def fit(comm):
    """Makes the same calls in the same order as main.go: the upper-case ones, which take buffers, and block."""
    rank, size = comm.Get_rank(), comm.Get_size()
    weights = array("d", [-1, 3] if rank == 0 else [0, 0])  # where the fit starts, on all ranks
    comm.Bcast([weights, MPI.DOUBLE], root=0)
    n = SAMPLES * size
    for _ in range(STEPS):
        gradient = array("d", [0, 0])
        for i in range(SAMPLES):
            x = (i * size + rank) / n  # this rank's samples lie between those of the others
            e = weights[0] * x + weights[1] - (2 * x + 1)
            gradient[0] += 2 * e * x / n
            gradient[1] += 2 * e / n
        comm.Allreduce(MPI.IN_PLACE, [gradient, MPI.DOUBLE], op=MPI.SUM)
        weights[0] -= RATE * gradient[0]
        weights[1] -= RATE * gradient[1]
    every = array("d", [0, 0] * size)
    comm.Allgather([weights, MPI.DOUBLE], [every, MPI.DOUBLE])
    if any(abs(w - weights[i % 2]) > 1e-9 for i, w in enumerate(every)):
        raise RuntimeError("the ranks have different weights")
    print(f"rank {rank} of {size}, Python: y = {weights[0]:.3f} x + {weights[1]:.3f} on all ranks", flush=True)


fit(MPI.COMM_WORLD)
