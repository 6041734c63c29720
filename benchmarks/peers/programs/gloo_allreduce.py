"""Times torch.distributed's all_reduce (gloo, float32, sum, in place) and barrier,
and prints a CSV row for each size.

    python3 gloo_allreduce.py RANKS LIBRARY ENTRY BUDGET_MS MAX_CALLS COMPUTE_US BYTES...

It starts the ranks itself, as processes, or is one of them if RANK is set, as by torchrun. LIBRARY and ENTRY stand in the rows as
they are given. 0 bytes is a barrier.

The timing rule: in each round every rank computes for COMPUTE_US, more or less, and
rewrites its input; all meet, twice, so that none is still on its way, and the
operation is timed on every rank; all meet again, so that none rewrites while another
is timed. A round counts as long as its slowest rank took. The results of all rounds
are verified, outside the timed part. The number of rounds is what fits into the
budget, by the fastest of a few that are not counted.
"""
import multiprocessing
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist

WARM_UP, MIN_CALLS = 3, 5
CALIBRATION_STEPS, CALIBRATIONS = 500, 20
TILE = 4096  # elements, a multiple of 8: tensors are written and verified in tiles of these


def compute(steps):
    """Makes the steps of a random number generator."""
    x = 1
    for _ in range(steps):
        x ^= x << 13 & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 7
        x ^= x << 17 & 0xFFFFFFFFFFFFFFFF


def calibrate():
    """How many steps of compute a microsecond has; all ranks get rank 0's answer."""
    fastest = 1e9
    for _ in range(CALIBRATIONS):
        start = time.perf_counter_ns()
        compute(CALIBRATION_STEPS)
        fastest = min(fastest, (time.perf_counter_ns() - start) / 1e3)
    steps = torch.tensor([CALIBRATION_STEPS / fastest], dtype=torch.float64)
    dist.broadcast(steps, src=0)
    return float(steps)


def jitter(rank, i):
    """A factor from 0.9 to 1.1, by rank and round the same for all libraries."""
    h = (i * 1021 + rank + 1) & 0xFFFFFFFF
    for _ in range(2):
        h = (h ^ h >> 16) * 0x45D9F3B & 0xFFFFFFFF
    h ^= h >> 16
    return 0.9 + 0.2 * h / 4294967296


def cores(rank, ranks):
    """The cores that each rank may use, "0|1"; "" if the system does not show them."""
    own = ""
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status") as status:
            own = next(line.split()[1] for line in status if line.startswith("Cpus_allowed_list:"))
    every = [None] * ranks
    dist.all_gather_object(every, own)
    return "|".join(every) if own else ""


class Vector:
    """The input and output of one rank."""

    def __init__(self, count, rank, ranks):
        self.x = torch.zeros(count, dtype=torch.float32)
        whole = count // TILE * TILE
        self.tiles, self.rest = self.x[:whole].view(-1, TILE), self.x[whole:]
        self.j = torch.arange(TILE)
        self.rank, self.ranks = rank, ranks

    def rewrite(self, i):
        """Values that say whose they are, where, and in which round."""
        tile = (self.rank + ((i + self.j) & 7)).float()
        self.tiles.copy_(tile.expand_as(self.tiles))
        self.rest.copy_(tile[: len(self.rest)])

    def wrong(self, i):
        """How many elements are not the sum of all ranks' inputs."""
        tile = (self.ranks * (self.ranks - 1) // 2 + self.ranks * ((i + self.j) & 7)).float()
        n = (self.tiles != tile).sum() + (self.rest != tile[: len(self.rest)]).sum()
        return int(n)


def one_round(vector, steps, i):
    """Returns how many microseconds the operation took on this rank, and the wrong elements.
    Before it the rank computes; steps is how much, on average."""
    compute(int(steps * jitter(vector.rank, i)))
    vector.rewrite(i)
    dist.barrier()
    dist.barrier()
    start = time.perf_counter_ns()
    if len(vector.x) == 0:
        dist.barrier()
    else:
        dist.all_reduce(vector.x)
    took = (time.perf_counter_ns() - start) / 1e3
    dist.barrier()
    return took, vector.wrong(i)


def calls_within(budget_us, max_calls, vector, steps):
    """How many rounds fit into the budget; all ranks get rank 0's answer."""
    fastest = budget_us
    for i in range(WARM_UP):
        start = time.perf_counter_ns()
        one_round(vector, steps, i)
        fastest = min(fastest, (time.perf_counter_ns() - start) / 1e3)
    calls = torch.tensor([min(max(MIN_CALLS, int(budget_us / fastest)), max_calls)])
    dist.broadcast(calls, src=0)
    return int(calls)


def measure(library, entry, budget_us, max_calls, compute_us, steps, places, rank, ranks, size):
    vector = Vector(size // 4, rank, ranks)
    calls = calls_within(budget_us, max_calls, vector, steps)
    took = torch.zeros(calls, dtype=torch.float64)
    errors = torch.zeros(1, dtype=torch.int64)
    for i in range(calls):
        took[i], wrong = one_round(vector, steps, i)
        errors += wrong
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    dist.all_reduce(errors)
    if rank != 0:
        return
    slowest = took.sort().values.tolist()
    p50, p90, p99 = slowest[calls // 2], slowest[calls * 9 // 10], slowest[calls * 99 // 100]
    times = f'"{places}",{compute_us:.0f},1,{calls},{p50:.3f},{p50:.3f},{p90:.3f},{p99:.3f},{slowest[0]:.3f}'
    if size == 0:
        print(f"{library},barrier,{entry},,,{ranks},0,,false,{times},,,,,0", flush=True)
        return
    algbw = size / p50 / 1e3
    busbw = algbw * 2 * (ranks - 1) / ranks
    print(f"{library},all_reduce,{entry},float32,sum,{ranks},{size},true,false,"
          f"{times},{algbw:.4f},{busbw:.4f},,,{int(errors)}", flush=True)


def run_rank(rank, ranks, ended, store, library, entry, budget_us, max_calls, compute_us, sizes):
    # One thread a rank, as torchrun has it: ranks that each use all cores get into
    # each other's way.
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks)
    steps, places = compute_us * calibrate(), cores(rank, ranks)
    for size in sizes:
        measure(library, entry, budget_us, max_calls, compute_us, steps, places, rank, ranks, size)
    dist.barrier()
    if ended:
        ended.wait()
    os._exit(0)  # torch 1.13 does not end in about one of a hundred processes that destroy their group


def main():
    if len(sys.argv) < 8:
        sys.exit(__doc__)
    ranks, library, entry = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    budget_us, max_calls = float(sys.argv[4]) * 1e3, int(sys.argv[5])
    compute_us, sizes = float(sys.argv[6]), [int(size) for size in sys.argv[7:]]
    rank = int(os.environ.get("RANK", "0"))
    if rank > 0:
        run_rank(rank, ranks, None, "env://", library, entry, budget_us, max_calls, compute_us, sizes)
    print("library,collective,entry,dtype,op,ranks,bytes,in_place,consume,cores,compute_us,passes,calls,"
          "p50_us,best_us,p90_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,errors", flush=True)
    if "RANK" in os.environ:
        run_rank(rank, ranks, None, "env://", library, entry, budget_us, max_calls, compute_us, sizes)
    with tempfile.TemporaryDirectory() as directory:
        store = "file://" + os.path.join(directory, "store")
        fork = multiprocessing.get_context("fork")  # torch is imported once
        ended = fork.Barrier(ranks)
        processes = [fork.Process(target=run_rank, args=(
            rank, ranks, ended, store, library, entry, budget_us, max_calls, compute_us, sizes)) for rank in range(ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    sys.exit(max(abs(process.exitcode) for process in processes))


if __name__ == "__main__":
    main()
