"""Tensors on GPUs, those of the driver for tests: each rank has a process and a GPU of its own. The backend's methods are
called as torch's dispatcher calls them for tensors of CUDA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

START = """
import ctypes
import os
from datetime import timedelta

import gpu
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

import roundelay.torch

rank, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if "HOSTS" in os.environ:
    os.environ["ROUNDELAY_HOST_ID"] = str(rank % int(os.environ["HOSTS"]))
dist.init_process_group(
    "roundelay", init_method=f"file://{os.environ['STORE']}", rank=rank, world_size=n, timeout=timedelta(seconds=20)
)
group = dist.group.WORLD._get_backend(torch.device("cuda"))
assert group is dist.group.WORLD._get_backend(torch.device("cpu")) and dist.get_backend_config() == "cpu:roundelay,cuda:roundelay"
gpu.install(rank)

def on_gpu(host):
    return gpu.tensor(host, rank)

def options(kind, is_async, **more):
    made = getattr(c10d, kind + "Options")()
    made.asyncOp = is_async
    for name, value in more.items():
        setattr(made, name, value)
    return made

def same(tensor, expected):
    got = gpu.read(tensor)
    assert torch.equal(got, expected), (rank, got[:4], expected[:4])
"""

COLLECTIVES = """
base = torch.arange(1000.0)
sums = n * base + n * (n - 1) / 2
row = torch.arange(4.0 * n).view(n, 4)

def each(is_async):
    works = []
    def call(method, *args, kind, **more):
        work = getattr(group, method)(*args, options(kind, is_async, **more))
        assert (work is not None) == is_async
        works.append(work)

    reduced, mean = on_gpu(base + rank), on_gpu(base + rank)
    call("allreduce", [reduced], kind="Allreduce")
    call("allreduce", [mean], kind="Allreduce", reduceOp=dist.ReduceOp.AVG)
    flags = on_gpu(torch.tensor([rank == 0, False, True]))
    call("allreduce", [flags], kind="Allreduce")
    gaps = gpu.Tensor(on_gpu(base + rank).host[::2], rank)
    call("allreduce", [gaps], kind="Allreduce")
    sent = on_gpu(base + rank)
    call("broadcast", [sent], kind="Broadcast", rootRank=1)
    root = on_gpu(base + rank)
    call("reduce", [root], kind="Reduce", rootRank=1)
    whole = on_gpu(torch.zeros(n, 4))
    call("all_gather_single", whole, on_gpu(torch.full((4,), float(rank))), kind="Allgather")
    part = on_gpu(torch.zeros(4))
    call("reduce_scatter_single", part, on_gpu(row + rank), kind="ReduceScatter")
    listed = [on_gpu(torch.zeros(3)) for _ in range(n)]
    call("allgather", [listed], [on_gpu(torch.full((3,), float(rank)))], kind="Allgather")
    uneven = [on_gpu(torch.zeros(1 + at)) for at in range(n)]
    call("allgather", [uneven], [on_gpu(torch.full((1 + rank,), float(rank)))], kind="Allgather")
    scattered = on_gpu(torch.zeros(4))
    call("scatter", [scattered], [[on_gpu(each) for each in row]] if rank == 0 else [], kind="Scatter")
    gathered = [on_gpu(torch.zeros(4)) for _ in range(n)]
    call("gather", [gathered] if rank == 1 else [], [on_gpu(row[0] + rank)], kind="Gather", rootRank=1)
    one = on_gpu(torch.zeros(4))
    call("reduce_scatter", [one], [[on_gpu(each + rank) for each in row]], kind="ReduceScatter")
    exchanged = on_gpu(torch.zeros(2 * n))
    call("all_to_all_single", exchanged, on_gpu(torch.arange(2.0 * n) + 100 * rank), [], [], kind="AllToAll")
    lengths = [1 + (rank + at) % 2 for at in range(n)]
    uneven_out = on_gpu(torch.zeros(sum(lengths)))
    given = on_gpu(torch.full((sum(lengths),), float(rank)))
    call("all_to_all_single", uneven_out, given, lengths, lengths, kind="AllToAll")
    pair = [on_gpu(base + rank), on_gpu(base + 2 * rank)]
    call("allreduce_coalesced", pair, kind="AllreduceCoalesced")
    for work in works:
        assert work is None or work.wait()
    same(reduced, sums)
    same(mean, sums / n)
    same(flags, torch.tensor([True, False, True]))
    same(gaps, sums[::2])
    same(sent, base + 1)
    same(root, sums if rank == 1 else base + rank)
    same(whole, torch.arange(float(n)).view(n, 1).expand(n, 4))
    same(part, n * row[rank] + n * (n - 1) / 2)
    same(one, n * row[rank] + n * (n - 1) / 2)
    for at in range(n):
        same(listed[at], torch.full((3,), float(at)))
        same(uneven[at], torch.full((1 + at,), float(at)))
        if rank == 1:
            same(gathered[at], row[0] + at)
    same(scattered, row[rank])
    same(exchanged, torch.cat([torch.arange(2.0) + 2 * rank + 100 * at for at in range(n)]))
    same(uneven_out, torch.cat([torch.full((lengths[at],), float(at)) for at in range(n)]))
    same(pair[0], sums)
    same(pair[1], n * base + n * (n - 1))
    for work in works:
        assert work is None or work.is_completed() and work.is_success() and work.result() is not None

each(False)
each(True)
each(True)

# A future has its value before the stream has come there; a barrier waits for that.
tensor = on_gpu(base + rank)
future = group.allreduce([tensor], options("Allreduce", True)).get_future()
assert future.done()
group.barrier(options("Barrier", False))
same(future.value()[0], sums)

# An algorithm of the user's, from the next call on, and promises.
roundelay.torch.use("RingAllReduce", collective="all_reduce")
tensor = on_gpu(base + rank)
group.allreduce([tensor], options("Allreduce", False))
same(tensor, sums)

# A graph has later calls of a shape, which run when it does.
tensor, graph, runs = on_gpu(base + rank), ctypes.c_void_p(), ctypes.c_void_p()
stream = gpu.current_stream()
gpu.call("cuStreamBeginCapture_v2", stream.handle, 0)
work = group.allreduce([tensor], options("Allreduce", True))
assert not work.is_completed() and work.wait() and work.is_completed()
group.allreduce([tensor], options("Allreduce", False))
gpu.call("cuStreamEndCapture", stream.handle, ctypes.byref(graph))
same(tensor, base + rank)
gpu.call("cuGraphInstantiateWithFlags", ctypes.byref(runs), graph, ctypes.c_ulonglong(0))
gpu.call("cuGraphLaunch", runs, stream.handle)
same(tensor, n * sums)

# Messages.
if n > 1 and rank < 2:
    box = on_gpu(torch.full((5,), float(rank)))
    if rank == 0:
        group.send([box], 1, 7).wait()
    else:
        group.recv([box], 0, 7).wait()
    same(box, torch.zeros(5))
group.barrier(options("Barrier", False))

# Memory of the host goes on as before.
host = torch.ones(10)
dist.broadcast(host, 0)

# The ring sums in another order at each block.
roundelay.torch.deterministic()
try:
    group.allreduce([tensor], options("Allreduce", False))
except Exception as error:
    assert error.code == "E0317" and "RingAllReduce" in str(error), error
else:
    raise AssertionError("the promise is broken")

dist.destroy_process_group()
print("done")
"""

REFUSALS = """
ones = on_gpu(torch.ones(4))

def refused(make, *words):
    try:
        make()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        assert all(word in text for word in words), text
    else:
        raise AssertionError(words)

gather = options("Allgather", False)
refused(lambda: group.all_gather_single(torch.ones(4 * n), ones, gather), "TypeError", "cpu and on cuda:", "one place")
group.allreduce([ones], options("Allreduce", False))
other = gpu.tensor(torch.ones(4), rank + 1)
refused(lambda: group.allreduce([other], options("Allreduce", False)), "ValueError", f"cuda:{rank + 1}", f"is cuda:{rank}")
refused(
    lambda: group.scatter([ones], [[on_gpu(torch.ones(3 + at)) for at in range(n)]], options("Scatter", False, rootRank=rank)),
    "ValueError", "float32[4]",
)
# No rank was told of a call that is void: the next one of the host is made.
dist.all_reduce(torch.ones(3))
same(ones, torch.full((4,), float(n)))
print("done")
"""

LATE = """
import time

tensor = on_gpu(torch.ones(100))
group.allreduce([tensor], options("Allreduce", False))
group.barrier(options("Barrier", False))
if rank == 1:
    os.kill(os.getpid(), 9)
work = group.allreduce([tensor], options("Allreduce", True))
assert work is not None and work.wait()
begun = time.monotonic()
try:
    group.barrier(options("Barrier", False))
except Exception as error:
    # A rank may hear of it from another rank of its host.
    known = ["E0428"] if os.environ["HOSTS"] == "1" else ["E0413", "E0428"]
    assert error.code in known and "rank 1" in str(error), error
    assert time.monotonic() - begun < 15, "the deadline is 20 s"
    print("done", flush=True)
    os._exit(0)
raise AssertionError("rank 1 is gone")
"""


ABORT = """
import time

tensor = on_gpu(torch.ones(100))
group.allreduce([tensor], options("Allreduce", False))
group.barrier(options("Barrier", False))
begun = time.monotonic()
if rank == 0:
    time.sleep(0.3)
    group.abort()
else:
    group.allreduce([tensor], options("Allreduce", False))
    try:
        group.barrier(options("Barrier", False))
    except Exception as error:
        assert error.code == "E0413" and "rank 0" in str(error), error
        assert time.monotonic() - begun < 15, "the deadline is 20 s"
    else:
        raise AssertionError("rank 0 has aborted")
print("done", flush=True)
os._exit(0)
"""


@pytest.fixture
def gpus(driver: None, tmp_path, monkeypatch) -> None:
    """Has torch's stand-ins for NVIDIA's libraries give way to the driver for tests, and to its compiler."""
    driver_folder, nvrtc = (Path(folder) for folder in os.environ["LD_LIBRARY_PATH"].split(":")[:2])
    monkeypatch.setenv("LD_PRELOAD", f"{driver_folder / 'libcuda.so.1'} {nvrtc / 'libnvrtc.so.13'}")
    monkeypatch.setenv("STORE", str(tmp_path / "store"))


@pytest.fixture(params=["1", "2"], ids=["one host", "two hosts"])
def hosts(request, monkeypatch) -> None:
    """Parts the ranks into hosts: those of two send each other messages through memory of the hosts."""
    monkeypatch.setenv("HOSTS", request.param)


@pytest.mark.parametrize("nranks", [2, 3])
def test_every_collective_on_the_gpu_of_a_rank(gpus: None, hosts: None, launch, nranks: int) -> None:
    done = launch(nranks, START + COLLECTIVES)
    assert (done.returncode, done.stdout) == (0, "done\n" * nranks), done.stderr


def test_tensors_in_two_places_are_refused(gpus: None, launch) -> None:
    done = launch(2, START + REFUSALS)
    assert (done.returncode, done.stdout) == (0, "done\n" * 2), done.stderr


def test_an_abort_ends_the_calls_on_gpus(gpus: None, hosts: None, launch) -> None:
    done = launch(2, START + ABORT)
    assert done.stdout == "done\n" * 2, (done.stdout, done.stderr)


def test_a_rank_that_ends_is_named(gpus: None, hosts: None, launch) -> None:
    done = launch(3, START + LATE)
    assert done.stdout.count("done") == 2, (done.stdout, done.stderr)
