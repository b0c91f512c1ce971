"""Times one collective of Gloo as PyTorch's users have it: f32 sum, a process a rank, results verified.

Usage: gloo.py [--seconds N] [--rewritten] OP NRANKS SIZE...

OP, SIZE and the lines printed are those of driver.c. Rank r stays on the r-th allowed core, counted round. AllReduce and
Reduce are in place, as PyTorch has them: without --rewritten their sums go on growing.
"""

import argparse
import os
import signal
import socket
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SAMPLES, FEWEST, LONGEST_ROW = 101, 5, 4096
ENOUGH, SAMPLE = 0.7, 1e-3
OPS = ["AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Reduce"]


def value(rank, start, count, turn):
    at = torch.arange(start, start + count, dtype=torch.int64)
    return ((at * 7 + rank * 13 + turn * 5) % 64).to(torch.float32)


class Collective:
    def __init__(self, op, size, rank, nranks):
        self.op, self.rank, self.nranks, self.turn = op, rank, nranks, 0
        units = size // 4
        self.count = units // nranks if op in ("AllGather", "ReduceScatter") else units
        whole = self.count * nranks
        self.input = torch.zeros(whole if op == "ReduceScatter" else self.count)
        # Values are written by a copy, as fast as memory allows.
        self.sources = []
        if op == "AllGather":
            self.output = torch.zeros(whole)
        elif op == "ReduceScatter":
            self.output = torch.zeros(self.count)
        else:
            self.output = self.input
        self.sources = [value(rank, 0, self.input.numel(), turn) for turn in (0, 1)]

    def rewrite(self):
        self.turn += 1
        if self.op != "Broadcast" or self.rank == 0:
            self.input.copy_(self.sources[self.turn % 2])

    def call(self):
        if self.op == "AllReduce":
            dist.all_reduce(self.input)
        elif self.op == "ReduceScatter":
            dist.reduce_scatter_tensor(self.output, self.input)
        elif self.op == "AllGather":
            dist.all_gather_into_tensor(self.output, self.input)
        elif self.op == "Broadcast":
            dist.broadcast(self.input, 0)
        else:
            dist.reduce(self.input, 0)

    def wrong(self):
        turn, ranks = self.turn % 2, range(self.nranks)
        if self.op == "AllGather":
            right = torch.cat([value(r, 0, self.count, turn) for r in ranks])
        elif self.op == "Broadcast":
            right = value(0, 0, self.count, turn)
        else:
            start = self.rank * self.count if self.op == "ReduceScatter" else 0
            right = sum(value(r, start, self.count, turn) for r in ranks)
        mine = 0 if self.op == "Reduce" and self.rank else int((self.output != right).sum())
        total = torch.tensor([mine])
        dist.all_reduce(total)
        return int(total)

    def row(self, runs, rewritten):
        if rewritten:
            took = 0.0
            for _ in range(runs):
                self.rewrite()
                dist.barrier()
                begun = time.perf_counter()
                self.call()
                took += time.perf_counter() - begun
        else:
            dist.barrier()
            begun = time.perf_counter()
            for _ in range(runs):
                self.call()
            took = time.perf_counter() - begun
        slowest = torch.tensor([took], dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        return float(slowest)


def measure(collective, rewritten):
    collective.rewrite()
    collective.call()
    wrong = collective.wrong()
    runs = 1
    while collective.row(runs, rewritten) < SAMPLE and runs < LONGEST_ROW:
        runs *= 2
    samples, begun, again = [], time.perf_counter(), True
    while again:
        samples.append(collective.row(runs, rewritten) / runs)
        enough = len(samples) >= FEWEST and time.perf_counter() - begun >= ENOUGH
        more = torch.tensor([int(len(samples) < SAMPLES and not enough)])
        dist.broadcast(more, 0)
        again = bool(more)
    collective.rewrite()
    collective.call()
    return statistics.median(samples) * 1e6, wrong + collective.wrong()


def rank(rank, args, port):
    signal.alarm(args.seconds)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=args.nranks)
    for size in args.sizes:
        time_us, wrong = measure(Collective(args.op, size, rank, args.nranks), args.rewritten)
        if rank == 0:
            print(f"{size} {time_us:.4f} {wrong}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--rewritten", action="store_true")
    parser.add_argument("op", choices=OPS)
    parser.add_argument("nranks", type=int)
    parser.add_argument("sizes", type=int, nargs="+")
    args = parser.parse_args()
    signal.alarm(args.seconds)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(rank, (args, port), nprocs=args.nranks)


if __name__ == "__main__":
    main()
