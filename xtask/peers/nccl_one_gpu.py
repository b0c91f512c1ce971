"""AllReduce by NCCL with all ranks on one device, which it can from 2.30 with NCCL_MULTI_RANK_GPU_ENABLE=1.

Usage: nccl_one_gpu.py NRANKS SIZE...   (bytes a rank, f32). One JSON line a size, times in microseconds; or one line
{"skipped": why}, and it ends with 3. torch brings the library, the memory and the streams.
"""

import ctypes
import json
import statistics
import sys
import time

import torch

FIRST = 23000
FLOAT, SUM = 7, 0


def checked(result):
    if result != 0:
        raise RuntimeError(f"NCCL says {result}: {nccl.ncclGetErrorString(result).decode()}")


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
    version = ctypes.c_int()
    checked(nccl.ncclGetVersion(ctypes.byref(version)))
    if version.value < FIRST:
        print(json.dumps({"skipped": f"NCCL {version.value} takes one rank a device; 2.30 takes several"}))
        sys.exit(3)
    comms = (ctypes.c_void_p * nranks)()
    checked(nccl.ncclCommInitAll(comms, nranks, (ctypes.c_int * nranks)(*[0] * nranks)))
    streams = [torch.cuda.Stream() for _ in range(nranks)]
    for size in sizes:
        count = size // 4
        inputs = [torch.ones(count, device="cuda") * (rank + 1) for rank in range(nranks)]
        outputs = [torch.empty(count, device="cuda") for _ in range(nranks)]
        torch.cuda.synchronize()

        def call():
            checked(nccl.ncclGroupStart())
            for rank in range(nranks):
                checked(
                    nccl.ncclAllReduce(
                        ctypes.c_void_p(inputs[rank].data_ptr()),
                        ctypes.c_void_p(outputs[rank].data_ptr()),
                        ctypes.c_size_t(count),
                        FLOAT,
                        SUM,
                        ctypes.c_void_p(comms[rank]),
                        ctypes.c_void_p(streams[rank].cuda_stream),
                    )
                )
            checked(nccl.ncclGroupEnd())

        micros = median(call)
        expected = nranks * (nranks + 1) / 2
        wrong = sum(int((output != expected).sum()) for output in outputs)
        print(json.dumps({"size": size, "time": micros, "wrong": wrong, "version": f"NCCL {version.value}"}), flush=True)


nccl = ctypes.CDLL("libnccl.so.2")
nccl.ncclGetErrorString.restype = ctypes.c_char_p
main(int(sys.argv[1]), [int(size) for size in sys.argv[2:]])
