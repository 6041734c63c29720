"""The Python ranks of TestMixedLanguages. mixed in unchecked_test.go makes the same calls."""

from array import array
import sys

from mpi4py import MPI


def check(name, got, want):
    if list(got) != list(want):
        raise RuntimeError(f"{name}: {list(got)}, want {list(want)}")


def mixed(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    for code, kind in (("b", MPI.INT8_T), ("B", MPI.UINT8_T), ("h", MPI.INT16_T), ("H", MPI.UINT16_T), ("i", MPI.INT32_T),
                       ("I", MPI.UINT32_T), ("q", MPI.INT64_T), ("Q", MPI.UINT64_T), ("f", MPI.FLOAT), ("d", MPI.DOUBLE)):
        mine, out = array(code, [rank + 1, 2, rank]), array(code, [0] * 3)
        comm.Allreduce([mine, kind], [out, kind], op=MPI.SUM)
        check("Allreduce", out, [size * (size + 1) // 2, 2 * size, size * (size - 1) // 2])
        comm.Allreduce(MPI.IN_PLACE, [mine, kind], op=MPI.MAX)
        check("Allreduce in place", mine, [size, 2, size - 1])
        data = array(code, [rank] * 4)
        comm.Bcast([data, kind], root=1)
        check("Bcast", data, [1] * 4)
        every = array(code, [0] * (2 * size))
        comm.Allgather([array(code, [rank, 7]), kind], [every, kind])
        check("Allgather", every, [x for r in range(size) for x in (r, 7)])
    comm.Barrier()
    sys.stdout.write("passed\n")


mixed(MPI.COMM_WORLD)
