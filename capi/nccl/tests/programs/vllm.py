"""A communicator of two ranks in two threads, by the functions that vLLM's list has: `vllm.py LIBRARY`."""

import ctypes
import sys
import threading


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


def main():
    library = load(sys.argv[1])
    version = ctypes.c_int()
    check(library, library.ncclGetVersion(ctypes.byref(version)))
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
