"""Times what communication adds to a step of torch's DistributedDataParallel (gloo), with
float32 gradients of given lengths, and prints a CSV row.

    python3 gloo_ddp.py RANKS FORM LIBRARY ENTRY BUDGET_MS MAX_STEPS NAME ELEMENTS...

It starts the ranks itself, as processes. FORM is views, for gradient_as_bucket_view, or
copies. LIBRARY, ENTRY and NAME stand in the row as they are given. ELEMENTS are the lengths of
the gradients, the first layer's first.

A round is a backward pass within no_sync() and one with communication, each between
barriers; its time is that of the second less that of the first, each of the slowest rank.
All elements are verified outside the timed part. The number of rounds is what fits into
the budget, by the fastest of a few that are not counted.
"""
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WARM_UP, MIN_STEPS = 3, 5


class Model(torch.nn.Module):
    """The gradient of each parameter is a vector of this rank, times the round's factor."""

    def __init__(self, elements, rank):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(n)) for n in elements)
        self.gradients = [((torch.arange(n) + i) & 7).float() + rank for i, n in enumerate(elements)]

    def forward(self, factor):
        loss = torch.zeros(())
        for weight, gradient in zip(self.weights, self.gradients):
            loss = loss + torch.dot(weight, gradient)
        return factor * loss

    def wrong(self, factor, rank, ranks):
        """How many elements differ from the mean of all ranks."""
        n = 0
        for weight, gradient in zip(self.weights, self.gradients):
            want = factor * (gradient - rank + (ranks - 1) / 2)
            n += int(((weight.grad - want).abs() > 1e-5 * want.abs()).sum())
        return n


def cores(ranks):
    """The cores that each rank may use, "0|1"; "" if the system does not show them."""
    own = ""
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status") as status:
            own = next(line.split()[1] for line in status if line.startswith("Cpus_allowed_list:"))
    every = [None] * ranks
    dist.all_gather_object(every, own)
    return "|".join(every) if own else ""


def step(model, factor, quiet):
    """Returns how many microseconds backward took on this rank."""
    for weight in model.module.weights:
        if weight.grad is not None:
            weight.grad.zero_()
    with model.no_sync() if quiet else contextlib.nullcontext():
        loss = model(factor)
        dist.barrier()
        dist.barrier()
        start = time.perf_counter_ns()
        loss.backward()
        took = (time.perf_counter_ns() - start) / 1e3
        dist.barrier()
    return took


def one_round(model, i):
    quiet = step(model, 2.0 + i % 8, True)
    return quiet, step(model, 1.0 + i % 8, False)


def rounds_within(budget_us, max_steps, model):
    """How many rounds fit into the budget; all ranks get rank 0's answer."""
    fastest = budget_us
    for i in range(WARM_UP):
        start = time.perf_counter_ns()
        one_round(model, i)
        fastest = min(fastest, (time.perf_counter_ns() - start) / 1e3)
    rounds = torch.tensor([min(max(MIN_STEPS, int(budget_us / fastest)), max_steps)])
    dist.broadcast(rounds, src=0)
    return int(rounds)


def run_rank(rank, ranks, ended, store, form, library, entry, budget_us, max_steps, name, elements):
    # One thread a rank, as torchrun has it: ranks that each use all cores get into
    # each other's way.
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    model = DistributedDataParallel(Model(elements, rank), gradient_as_bucket_view=form == "views")
    step(model, 1.0, False)  # the first step makes the buckets anew
    rounds = rounds_within(budget_us, max_steps, model)
    took = torch.zeros(2, rounds, dtype=torch.float64)
    errors = torch.zeros(1, dtype=torch.int64)
    for i in range(rounds):
        took[0][i], took[1][i] = one_round(model, i)
        errors += model.module.wrong(1.0 + i % 8, rank, ranks)
    places = cores(ranks)
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    dist.all_reduce(errors)
    if rank == 0:
        added = (took[1] - took[0]).clamp(min=0).sort().values.tolist()
        p50, p90, p99 = added[rounds // 2], added[rounds * 9 // 10], added[rounds * 99 // 100]
        size = 4 * sum(elements)
        algbw = size / max(p50, 1e-3) / 1e3
        busbw = algbw * 2 * (ranks - 1) / ranks
        print(f'{library},ddp_{name},{entry},float32,avg,{ranks},{size},true,false,"{places}",0,1,{rounds},'
              f"{p50:.3f},{p50:.3f},{p90:.3f},{p99:.3f},{added[0]:.3f},{algbw:.4f},{busbw:.4f},,,{int(errors)}", flush=True)
    dist.barrier()
    ended.wait()
    os._exit(0)  # torch 1.13 does not end in about one of a hundred processes that destroy their group


def main():
    if len(sys.argv) < 9 or sys.argv[2] not in ("views", "copies"):
        sys.exit(__doc__)
    ranks, form, library, entry = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    budget_us, max_steps = float(sys.argv[5]) * 1e3, int(sys.argv[6])
    name, elements = sys.argv[7], [int(n) for n in sys.argv[8:]]
    print("library,collective,entry,dtype,op,ranks,bytes,in_place,consume,cores,compute_us,passes,calls,"
          "p50_us,best_us,p90_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,errors", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        store = os.path.join(directory, "store")
        fork = multiprocessing.get_context("fork")  # torch is imported once
        ended = fork.Barrier(ranks)
        processes = [fork.Process(target=run_rank, args=(
            rank, ranks, ended, store, form, library, entry, budget_us, max_steps, name, elements)) for rank in range(ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    sys.exit(max(abs(process.exitcode) for process in processes))


if __name__ == "__main__":
    main()
