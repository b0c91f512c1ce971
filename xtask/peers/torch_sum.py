"""AllReduce of virtual ranks as torch does it: a sum of the stacked inputs, then a copy to each output.

Usage: torch_sum.py NRANKS SIZE...   (bytes a rank, f32). One JSON line a size, times in microseconds.
"""

import json
import statistics
import sys
import time

import torch


def row(call, runs):
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(runs):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / runs


def median(call, samples=20, least=1e-3):
    row(call, 2)
    runs = 1
    while row(call, runs) * runs < least:
        runs *= 2
    return statistics.median(row(call, runs) for _ in range(samples)) * 1e6


def main(nranks, sizes):
    for size in sizes:
        count = size // 4
        inputs = torch.rand(nranks, count, device="cuda")
        outputs = [torch.empty(count, device="cuda") for _ in range(nranks)]

        def call():
            total = inputs.sum(0)
            for output in outputs:
                output.copy_(total)

        micros = median(call)
        wrong = sum(int((output != inputs.sum(0)).sum()) for output in outputs)
        print(json.dumps({"size": size, "time": micros, "wrong": wrong, "version": f"torch {torch.__version__}"}), flush=True)


main(int(sys.argv[1]), [int(size) for size in sys.argv[2:]])
