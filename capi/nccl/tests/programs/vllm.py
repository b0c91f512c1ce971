#!/usr/bin/env python3
"""A communicator by the functions that vLLM's list has: of two ranks in two threads, `vllm.py LIBRARY`; or of processes with
a GPU each, `vllm.py LIBRARY RANK NRANKS FILE`."""

import ctypes
import os
import sys
import threading
import time


class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


class Refused(Exception):
    pass


code, comm, stream, buffer, window = (ctypes.c_int, *[ctypes.c_void_p] * 4)
size, pointer = ctypes.c_size_t, ctypes.POINTER
# Each with the types of its arguments; a missing one switches the communicator off.
FUNCTIONS = {
    "ncclGetErrorString": [code],
    "ncclGetVersion": [pointer(ctypes.c_int)],
    "ncclGetUniqueId": [pointer(Id)],
    "ncclCommInitRank": [pointer(comm), ctypes.c_int, Id, ctypes.c_int],
    "ncclAllReduce": [buffer, buffer, size, ctypes.c_int, ctypes.c_int, comm, stream],
    "ncclReduce": [buffer, buffer, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, comm, stream],
    "ncclAllGather": [buffer, buffer, size, ctypes.c_int, comm, stream],
    "ncclReduceScatter": [buffer, buffer, size, ctypes.c_int, ctypes.c_int, comm, stream],
    "ncclSend": [buffer, size, ctypes.c_int, ctypes.c_int, comm, stream],
    "ncclRecv": [buffer, size, ctypes.c_int, ctypes.c_int, comm, stream],
    "ncclBroadcast": [buffer, buffer, size, ctypes.c_int, ctypes.c_int, comm, stream],
    "ncclCommDestroy": [comm],
    "ncclCommAbort": [comm],
    "ncclCommSuspend": [comm, ctypes.c_int],
    "ncclCommResume": [comm],
    "ncclGroupStart": [],
    "ncclGroupEnd": [],
    "ncclCommWindowRegister": [comm, buffer, size, pointer(window), ctypes.c_int],
    "ncclCommWindowDeregister": [comm, window],
    "ncclGetLastError": [comm],
    "ncclCommQueryProperties": [comm, buffer],
}
TEXTS = ["ncclGetErrorString", "ncclGetLastError"]


def load(path):
    library = ctypes.CDLL(path)
    for name, types in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes = types
        function.restype = ctypes.c_char_p if name in TEXTS else code
    return library


def check(library, result):
    if result != 0:
        raise Refused(library.ncclGetErrorString(result).decode())


def rank(library, name, number, results):
    made = comm()
    try:
        check(library, library.ncclCommInitRank(ctypes.byref(made), 2, name, number))
        given, got = (ctypes.c_ubyte * 4)(*[number * (i + 1) for i in range(4)]), (ctypes.c_ubyte * 4)()
        check(library, library.ncclAllReduce(given, got, 4, 1, 0, made, None))
        results[number] = list(got)
        check(library, library.ncclCommDestroy(made))
    except Refused as why:
        results[number] = str(why)


def meet(library, file, number):
    """The id that rank 0 makes."""
    name = Id()
    if number == 0:
        check(library, library.ncclGetUniqueId(ctypes.byref(name)))
        with open(file + ".part", "wb") as out:
            out.write(bytes(name))
        os.rename(file + ".part", file)
    while not os.path.exists(file):
        time.sleep(0.001)
    with open(file, "rb") as told:
        return Id.from_buffer_copy(told.read())


def process(library, number, count, file):
    """A rank that is a process: each operation of the list, on a stream of its own."""
    driver = ctypes.CDLL("libcuda.so.1")
    f32, total, elements = 7, 0, 6

    def cuda(function, *arguments):
        result = getattr(driver, function)(*arguments)
        assert result == 0, (function, result)

    def nccl(function, *arguments):
        check(library, getattr(library, function)(*arguments))

    class Tensor:
        def __init__(self, values):
            self.at, self.values = ctypes.c_uint64(), (ctypes.c_float * len(values))(*values)
            self.bytes = size(ctypes.sizeof(self.values))
            cuda("cuMemAlloc_v2", ctypes.byref(self.at), self.bytes)
            cuda("cuMemcpyHtoD_v2", self.at, self.values, self.bytes)

        def read(self):
            cuda("cuStreamSynchronize", on)
            cuda("cuMemcpyDtoH_v2", self.values, self.at, self.bytes)
            return list(self.values)

    def is_now(tensor, values):
        got = tensor.read()
        assert got == values, (number, got, values)

    context, on, made = ctypes.c_void_p(), stream(), comm()
    cuda("cuInit", 0)
    cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
    cuda("cuCtxSetCurrent", context)
    cuda("cuStreamCreate", ctypes.byref(on), 1)
    nccl("ncclCommInitRank", ctypes.byref(made), count, meet(library, file, number), number)
    sums = sum(range(count))
    base = [float(i) for i in range(elements)]
    mine = [number + i for i in base]
    given, got = Tensor(mine), Tensor([-1.0] * elements)
    # As vLLM does right after the communicator was made.
    nccl("ncclAllReduce", given.at.value, got.at.value, elements, f32, total, made, on)
    is_now(got, [sums + count * i for i in base])
    nccl("ncclReduce", given.at.value, got.at.value, elements, f32, total, count - 1, made, on)
    if number == count - 1:
        is_now(got, [sums + count * i for i in base])
    nccl("ncclBroadcast", given.at.value, got.at.value, elements, f32, 1, made, on)
    is_now(got, [1 + i for i in base])
    all_, part = Tensor([-1.0] * elements * count), Tensor([0.0] * elements)
    nccl("ncclAllGather", given.at.value, all_.at.value, elements, f32, made, on)
    is_now(all_, [r + i for r in range(count) for i in base])
    nccl("ncclReduceScatter", all_.at.value, part.at.value, elements, f32, total, made, on)
    is_now(part, [count * (number + i) for i in base])
    after, before = (number + 1) % count, (number - 1) % count
    nccl("ncclGroupStart")
    nccl("ncclSend", given.at.value, elements, f32, after, made, on)
    nccl("ncclRecv", got.at.value, elements, f32, before, made, on)
    nccl("ncclGroupEnd")
    is_now(got, [before + i for i in base])
    held = window()
    assert library.ncclCommWindowRegister(made, given.at.value, 64, ctypes.byref(held), 1) == 5
    nccl("ncclCommDestroy", made)
    print("done")


def main():
    library = load(sys.argv[1])
    version = ctypes.c_int()
    check(library, library.ncclGetVersion(ctypes.byref(version)))
    if len(sys.argv) > 2:
        return process(library, int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    print("version", version.value)
    name = Id()
    check(library, library.ncclGetUniqueId(ctypes.byref(name)))
    results = [None, None]
    if version.value == 23203:
        # The real one, without a GPU: one rank, which it refuses.
        rank(library, name, 0, results)
        print(results[0])
        return
    threads = [threading.Thread(target=rank, args=(library, name, number, results)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("2 ranks:", *results)
    assert library.ncclAllReduce(None, None, 1, 1, 0, None, None) == 4
    print(library.ncclGetLastError(None).decode().split(",")[0])


main()
