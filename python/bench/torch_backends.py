"""Times collectives and a training step of torch.distributed, by Gloo and by Roundelay in one run.

Usage: torch_backends.py [--ranks 2 4 8] [--sizes 1024 ...] [--seconds N] [--calls CALL ...] [--no-training] [--dispatched]

For each number of ranks one set of processes has both backends and takes turns between them, so other load of the
machine affects both. A time is the median of samples of the slowest rank; a size is the bytes of the largest buffer.
Prints tables in Markdown, and before them the check of the results. A further column of --dispatched has the calls of
a group of Roundelay whose calls all go through torch's dispatcher.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests" / "torch"))

KIB, MIB = 1 << 10, 1 << 20
SIZES = [KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB]
CALLS = [
    "all_reduce",
    "all_gather_single",
    "reduce_scatter_single",
    "broadcast",
    "all_gather of 1:16",
    "reduce_scatter of 1:16",
]
"""The last two have tensors of other sizes at odd ranks than at even ones, 16 times as large. Gloo refuses them, so it is
given one broadcast or one reduction for each rank, as torch does for NCCL."""
BACKENDS = ["gloo", "roundelay"]
DISPATCHED = "roundelay through torch's dispatcher"
SAMPLES, FEWEST, SAMPLE = 31, 5, 2e-2
"""Samples of a cell at most and at least, and the seconds that one of them lasts, or a call if it lasts longer."""


def prepared(call: str, size: int, rank: int, nranks: int, group: Any) -> tuple[Callable[[], None], Callable[[], bool]]:
    """A call, and the check of its result."""
    import torch
    import torch.distributed as dist

    count = size // 4
    whole = torch.full((count,), float(rank))
    part = torch.full((count // nranks,), float(rank))
    total = nranks * (nranks - 1) / 2

    def verified(tensor: torch.Tensor, right: Any) -> bool:
        return bool((tensor == right).all())

    if call == "all_reduce":

        def check() -> bool:
            whole.fill_(rank)
            dist.all_reduce(whole, group=group)
            right = verified(whole, total)
            whole.zero_()
            return right

        return lambda: dist.all_reduce(whole, group=group), check
    if call == "broadcast":
        return lambda: dist.broadcast(whole, 0, group=group), lambda: verified(whole, 0.0)
    if call == "all_gather_single":
        right = torch.arange(float(nranks)).repeat_interleave(len(part))
        output = torch.empty(len(part) * nranks)
        return lambda: dist.all_gather_into_tensor(output, part, group=group), lambda: verified(output, right)
    if call.endswith("1:16"):
        weights = [16 if other % 2 else 1 for other in range(nranks)]
        counts = [count * weight // sum(weights) for weight in weights]
        native = dist.get_backend(group) != "gloo"
        if call.startswith("all_gather"):
            mine = torch.full((counts[rank],), float(rank))
            outputs = [torch.empty(each) for each in counts]

            def gather() -> None:
                if native:
                    dist.all_gather(outputs, mine, group=group)
                    return
                outputs[rank].copy_(mine)
                for other, output in enumerate(outputs):
                    dist.broadcast(output, other, group=group)

            return gather, lambda: all(verified(output, float(other)) for other, output in enumerate(outputs))
        inputs = [torch.full((each,), float(rank)) for each in counts]
        sums = torch.empty(counts[rank])

        def scatter() -> None:
            if native:
                dist.reduce_scatter(sums, inputs, group=group)
                return
            for other, given in enumerate(inputs):
                # A reduction overwrites its input at the root, and may do so elsewhere.
                copy = given.clone()
                dist.reduce(copy, other, group=group)
                if other == rank:
                    sums.copy_(copy)

        return scatter, lambda: verified(sums, total)
    taken, given = torch.empty_like(part), torch.full((len(part) * nranks,), float(rank))
    return lambda: dist.reduce_scatter_tensor(taken, given, group=group), lambda: verified(taken, total)


def row(call: Callable[[], None], runs: int, group: Any) -> float:
    """The seconds of ``runs`` calls at the slowest rank."""
    import torch
    import torch.distributed as dist

    dist.barrier(group=group)
    begun = time.perf_counter()
    for _ in range(runs):
        call()
    took = torch.tensor([time.perf_counter() - begun], dtype=torch.float64)
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    return took.item()


def cell(calls: dict[str, Callable[[], None]], groups: dict[str, Any], seconds: float) -> dict[str, float]:
    """The median time of a call by each backend, in microseconds. All ranks see the same times, and stop together."""
    runs = {}
    for backend, call in calls.items():
        row(call, 2, groups[backend])
        runs[backend] = 1
        while (took := row(call, runs[backend], groups[backend])) < SAMPLE:
            runs[backend] *= max(2, min(16, int(SAMPLE / max(took, 1e-6))))
    samples: dict[str, list[float]] = {backend: [] for backend in calls}
    spent = 0.0
    while len(samples[BACKENDS[0]]) < SAMPLES:
        for backend, call in calls.items():
            took = row(call, runs[backend], groups[backend])
            samples[backend].append(took / runs[backend] * 1e6)
            spent += took
        if spent > seconds and len(samples[BACKENDS[0]]) >= FEWEST:
            break
    return {backend: statistics.median(times) for backend, times in samples.items()}


def steps(rank: int, nranks: int, groups: dict[str, Any]) -> dict[str, float]:
    """The median time of a training step of the tests' small model by each backend, in milliseconds."""
    import torch
    from torch import nn

    import model

    wrapped = {}
    for backend, group in groups.items():
        parallel = nn.parallel.DistributedDataParallel(model.made(), process_group=group)
        wrapped[backend] = parallel, torch.optim.SGD(parallel.parameters(), lr=0.1)
    samples: dict[str, list[float]] = {backend: [] for backend in groups}
    for number in range(25):
        for backend, (parallel, optimizer) in wrapped.items():
            took = row(lambda: model.step(parallel, optimizer, rank, nranks, number), 1, groups[backend])
            if number >= 3:
                samples[backend].append(took * 1e3)
    return {backend: statistics.median(times) for backend, times in samples.items()}


def rank_of(rank: int, nranks: int, port: int, arguments: argparse.Namespace) -> None:
    """The work of each process; rank 0 prints."""
    import torch
    import torch.distributed as dist

    import roundelay.torch  # noqa: F401  (registers the backend)

    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=nranks, timeout=timedelta(seconds=120)
    )
    groups = {backend: dist.new_group(backend=backend) for backend in BACKENDS}
    if arguments.dispatched:
        groups[DISPATCHED] = dist.new_group(backend="roundelay")
        # A process group that has had a hook is left to torch.
        groups[DISPATCHED].register_pre_hook(0, lambda _: None)
        groups[DISPATCHED].unregister_pre_hook(0)

    def say(text: str) -> None:
        if rank == 0:
            print(text, flush=True)

    further = " dispatched, us |" if arguments.dispatched else ""
    say(f"\n### {nranks} ranks\n\n| call | bytes | gloo, us | roundelay, us | gloo / roundelay |{further}\n|---|---|---|---|---|")
    for name in arguments.calls:
        for size in arguments.sizes:
            made = {backend: prepared(name, size, rank, nranks, group) for backend, group in groups.items()}
            for backend, (call, right) in made.items():
                call()
                assert right(), f"{backend}: {name} of {size} bytes is wrong at rank {rank}"
            times = cell({backend: call for backend, (call, _) in made.items()}, groups, arguments.seconds)
            gloo, ours = (times[backend] for backend in BACKENDS)
            last = f" {times[DISPATCHED]:.1f} |" if arguments.dispatched else ""
            say(f"| {name} | {size} | {gloo:.1f} | {ours:.1f} | {gloo / ours:.1f} |{last}")
    if arguments.training:
        times = steps(rank, nranks, groups)
        gloo, ours = (times[backend] for backend in BACKENDS)
        say(f"| DDP step of the small model | | {gloo * 1e3:.0f} | {ours * 1e3:.0f} | {gloo / ours:.2f} |")
    dist.barrier(group=groups["roundelay"])
    dist.destroy_process_group()


def main() -> None:
    """Starts the processes for each number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seconds", type=float, default=2.0, help="time of a cell, for both backends together")
    parser.add_argument("--calls", nargs="+", default=CALLS, choices=CALLS)
    parser.add_argument("--dispatched", action="store_true")
    parser.add_argument("--no-training", dest="training", action="store_false")
    arguments = parser.parse_args()

    import torch
    import torch.multiprocessing as processes

    import roundelay.torch

    cores = len(os.sched_getaffinity(0))
    made = "by the compiled functions" if roundelay.torch.compiled() else "by ctypes"
    print(f"torch {torch.__version__}, {cores} cores; plain calls {made}; f32 sums, each outcome verified before it is timed; medians")
    for nranks in arguments.ranks:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        processes.spawn(rank_of, (nranks, port, arguments), nprocs=nranks)


if __name__ == "__main__":
    main()
