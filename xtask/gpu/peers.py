"""AllReduce of virtual ranks on one device as others do it.

Usage: peers.py torch|NCCL NRANKS SIZE...   (bytes a rank, f32). One JSON line a size, times in microseconds; or one
line {"skipped": why}, and it ends with 3. torch sums the stacked inputs, and copies the sum to each output. NCCL has
all ranks on one device, which it can from 2.30 with NCCL_MULTI_RANK_GPU_ENABLE=1; torch brings its library.
"""

import ctypes
import json
import statistics
import sys
import time

import torch

FIRST = 23000
FLOAT, SUM = 7, 0


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


def by_torch(inputs, outputs):
    total = inputs.sum(0)
    for output in outputs:
        output.copy_(total)


def by_nccl(nranks):
    nccl = ctypes.CDLL("libnccl.so.2")
    nccl.ncclGetErrorString.restype = ctypes.c_char_p
    version = ctypes.c_int()

    def checked(result):
        if result != 0:
            raise RuntimeError(f"NCCL says {result}: {nccl.ncclGetErrorString(result).decode()}")

    checked(nccl.ncclGetVersion(ctypes.byref(version)))
    if version.value < FIRST:
        print(json.dumps({"skipped": f"NCCL {version.value} takes one rank a device; 2.30 takes several"}))
        sys.exit(3)
    comms = (ctypes.c_void_p * nranks)()
    checked(nccl.ncclCommInitAll(comms, nranks, (ctypes.c_int * nranks)(*[0] * nranks)))
    streams = [torch.cuda.Stream() for _ in range(nranks)]

    def call(inputs, outputs):
        checked(nccl.ncclGroupStart())
        for given, output, comm, stream in zip(inputs, outputs, comms, streams):
            pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (given, output)]
            of = ctypes.c_void_p(comm), ctypes.c_void_p(stream.cuda_stream)
            checked(nccl.ncclAllReduce(*pointers, ctypes.c_size_t(output.numel()), FLOAT, SUM, *of))
        checked(nccl.ncclGroupEnd())

    return call, f"NCCL {version.value}"


def main(peer, nranks, sizes):
    call, name = (by_torch, f"torch {torch.__version__}") if peer == "torch" else by_nccl(nranks)
    for size in sizes:
        # Small integers, whose sum is exact in any order.
        inputs = torch.randint(16, (nranks, size // 4), device="cuda").float()
        outputs = [torch.empty(size // 4, device="cuda") for _ in range(nranks)]
        torch.cuda.synchronize()
        micros = median(lambda: call(inputs, outputs))
        wrong = sum(int((output != inputs.sum(0)).sum()) for output in outputs)
        print(json.dumps({"size": size, "time": micros, "wrong": wrong, "version": name}), flush=True)


main(sys.argv[1], int(sys.argv[2]), [int(size) for size in sys.argv[3:]])
