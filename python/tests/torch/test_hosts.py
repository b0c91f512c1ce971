"""Groups whose ranks are on several hosts: network namespaces of this machine, or, without root, names of hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

import model
from ranks import Ended, fine, run
from test_async import each_kind, several
from test_collectives import coalesced, copies, lists, splits
from test_groups import barriers, objects, parts
from test_messages import around, beside_calls, tags
from test_training import ddp, fsdp, optimizer

SCRIPT = Path(__file__).parents[3] / "xtask" / "suites" / "hosts.sh"
NETWORK = "10.79.3"

PATIENT = {"seconds": 240, "deadline": 120}
"""The times of ranks on a machine that is busy with other tests."""


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[str]]:
    """Three hosts."""
    command = ["bash", str(SCRIPT), "3", "", NETWORK, "bash", "-c", "echo ready; sleep 3600"]
    network = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert network.stdout is not None and network.stderr is not None
    if network.stdout.readline() == "ready\n":
        yield [f"/run/netns/roundelay{network.pid}h{host}" for host in (1, 2, 3)]
    else:
        print(f"no network namespaces, so hosts have names alone: {network.stderr.read()}")
        yield ["a", "b", "c"]
    network.terminate()
    network.wait()


BODIES = [copies, splits, lists, coalesced, parts, objects, barriers, several, each_kind, around, tags, beside_calls]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_calls(body: Any, hosts: list[str]) -> None:
    """The calls of one host: here of two hosts with three ranks."""
    fine(run(3, body, hosts=hosts[:2], **PATIENT))


@pytest.mark.parametrize("body", [ddp, fsdp], ids=lambda body: body.__name__)
def test_training(body: Any, hosts: list[str]) -> None:
    """The losses are those of one host: there is only one order in which two are added."""
    spread, near = (fine(run(2, body, hosts=of, **PATIENT)) for of in (hosts, hosts[:1]))
    assert spread == near


def own(rank: int, nranks: int) -> bool:
    """The algorithms and the order of the user."""
    import roundelay.torch

    roundelay.torch.use("RingAllReduce", max_bytes=1 << 10)
    roundelay.torch.deterministic(dist.new_group())
    for count in (10, 100_000):
        ones = torch.ones(count)
        dist.all_reduce(ones)
        assert (ones == nranks).all()
    return roundelay.torch.order("all_reduce", 10, torch.float32) != ""


def test_algorithms(hosts: list[str]) -> None:
    assert all(fine(run(4, own, hosts=hosts, **PATIENT)))


def again(rank: int, nranks: int, port: int) -> bool:
    """One store serves one group after the other: none of them reads what the ranks said in the one before."""
    address = f"{NETWORK}.1" if os.environ.get("ROUNDELAY_HOST_ID") is None else "127.0.0.1"
    store = dist.TCPStore(address, port, nranks, rank == 0, timeout=timedelta(seconds=120))
    for turn in range(3):
        time.sleep(0.3 * (rank == turn))
        dist.init_process_group("roundelay", store=store, rank=rank, world_size=nranks, timeout=timedelta(seconds=120))
        sums = torch.full((1000,), rank + 10.0 * turn)
        dist.all_reduce(sums)
        assert (sums == sum(range(nranks)) + 10 * turn * nranks).all()
        come = torch.tensor([0.0])
        if rank == 1:
            time.sleep(0.5)
            come[0] = 1
        begun = time.monotonic()
        dist.monitored_barrier(timeout=timedelta(seconds=60))
        assert rank == 1 or time.monotonic() - begun > 0.2, "it waited for no rank"
        dist.destroy_process_group()
    # The store is in the process of rank 0, which stays until all have gone.
    store.add("gone", 1)
    while rank == 0 and store.add("gone", 0) < nranks:
        time.sleep(0.01)
    return True


def test_again(hosts: list[str]) -> None:
    assert all(fine(run(3, again, 29500, backend="", hosts=hosts, seconds=240)))
    # And on one host.
    assert all(fine(run(3, again, 29501, backend="", hosts=hosts[:1], seconds=240)))


def killed(rank: int, nranks: int) -> tuple[float, str]:
    wrapped = nn.parallel.DistributedDataParallel(model.made())
    sgd = optimizer(wrapped)
    begun = time.monotonic()
    try:
        for number in range(100_000):
            if rank == 2 and number == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            begun = time.monotonic()
            model.step(wrapped, sgd, rank, nranks, number)
    except RuntimeError as error:
        return time.monotonic() - begun, str(error)
    raise AssertionError("nobody was told")


def test_killed(hosts: list[str]) -> None:
    """Every rank of every host is told which rank ended, long before the deadline."""
    said = run(5, killed, hosts=hosts[:2], **PATIENT)
    assert said[2] == Ended(-signal.SIGKILL), said
    for took, text in said[:2] + said[3:]:
        # A rank may hear it from another one of its host, which gave up for that reason.
        assert "rank 2 " in text and ("E0428" in text or "E0413" in text), text
        assert took < PATIENT["deadline"] / 2, f"{took} s: {text}"


def late(rank: int, nranks: int) -> str:
    if rank == 1:
        time.sleep(6)
        return ""
    with pytest.raises(RuntimeError) as raised:
        dist.all_reduce(torch.ones(10))
    return str(raised.value)


def test_deadline(hosts: list[str]) -> None:
    (text, _) = fine(run(2, late, hosts=hosts, deadline=3, seconds=120))
    assert "roundelay: all_reduce at rank 0: " in text and "E0405" in text, text
    assert "rank 1 of another host" in text and "the timeout that init_process_group" in text, text


def missing(rank: int, nranks: int, path: str) -> str:
    if rank == 1:
        return ""
    store = dist.FileStore(path, nranks)
    with pytest.raises(RuntimeError) as raised:
        dist.init_process_group("roundelay", store=store, rank=rank, world_size=nranks, timeout=timedelta(seconds=3))
    return str(raised.value)


def test_a_host_that_does_not_come(hosts: list[str], tmp_path: Path) -> None:
    texts = fine(run(3, missing, str(tmp_path / "store"), backend="", hosts=hosts, seconds=120))
    for rank in (0, 2):
        assert f"init_process_group at rank {rank}: of 3 ranks these did not come to the store within 3 s: 1" in texts[rank]


def interface(rank: int, nranks: int, path: str, named: str) -> str:
    os.environ["ROUNDELAY_INTERFACE"] = named
    store = dist.FileStore(path, nranks)
    with pytest.raises(RuntimeError) as raised:
        dist.init_process_group("roundelay", store=store, rank=rank, world_size=nranks, timeout=timedelta(seconds=4))
    return str(raised.value)


def test_wrong_interfaces(hosts: list[str], tmp_path: Path) -> None:
    """There is no such interface; or other hosts cannot reach it, as in namespaces alone."""
    said = run(2, interface, str(tmp_path / "none"), "=none", backend="", hosts=hosts, seconds=120)
    first, second = fine(said)
    assert "no address at which other hosts could reach it" in first and "ROUNDELAY_INTERFACE" in first, first
    assert "rank 0 opened no port" in second and "E0427" in second, second
    if not hosts[0].startswith("/"):
        return
    first, second = fine(run(2, interface, str(tmp_path / "lo"), "lo", backend="", hosts=hosts, seconds=120))
    assert "rank 1 of 2 did not come before the deadline" in first and "E0427" in first, first
    assert "rank 1 of 2 reaches no root at 127.0.0.1:" in second and "ROUNDELAY_INTERFACE" in second, second


def versions(rank: int, nranks: int, path: str, theirs: bytes) -> str:
    """Rank 1 is of another version, of which its bytes tell."""
    from roundelay.torch import World

    def bootstrap(nranks: int, rank: int, allgather: Callable[[bytes], bytes], timeout: float) -> None:
        allgather(theirs)
        raise RuntimeError("it is another version")

    if rank == 1:
        World.bootstrap = staticmethod(bootstrap)  # type: ignore[assignment]
    store = dist.FileStore(path, nranks)
    with pytest.raises(RuntimeError) as raised:
        dist.init_process_group("roundelay", store=store, rank=rank, world_size=nranks, timeout=timedelta(seconds=30))
    return str(raised.value)


def test_versions(hosts: list[str], tmp_path: Path) -> None:
    short, _ = fine(run(2, versions, str(tmp_path / "short"), b"short", backend="", hosts=hosts, seconds=120))
    assert "rank 1 gave 5 bytes" in short and "runs another version of roundelay" in short, short
    other = bytes(32) + b"0.0.7".ljust(32, b"\0") + bytes(128)
    text, _ = fine(run(2, versions, str(tmp_path / "other"), other, backend="", hosts=hosts, seconds=120))
    assert "rank 1 runs Roundelay 0.0.7, and rank 0 runs " in text and "E0427" in text, text


def some(rank: int, nranks: int) -> str:
    """A rank of a group of some ends; the whole group, and a group without it, go on until they need it."""
    pair, without = dist.new_group([0, 3]), dist.new_group([0, 1, 2])
    if rank == 3:
        dist.all_reduce(torch.ones(10), group=pair)
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0:
        dist.all_reduce(torch.ones(10), group=pair)
        with pytest.raises(RuntimeError) as raised:
            while True:
                dist.all_reduce(torch.ones(10), group=pair)
    for _ in range(20):
        ones = torch.ones(1000)
        dist.all_reduce(ones, group=without)
        assert (ones == 3).all()
    return str(raised.value) if rank == 0 else ""


def test_a_group_without_the_rank_that_ended_goes_on(hosts: list[str]) -> None:
    said = run(4, some, hosts=hosts[:2], **PATIENT)
    assert said[3] == Ended(-signal.SIGKILL), said
    fine(said[:3])
    assert "rank 1 is gone" in said[0] and "rank 0 of the group of ranks [0, 3]" in said[0], said[0]


def left(rank: int, nranks: int) -> str:
    """A receive under way when its group is left ends the group on this host, and no thread is left."""
    if rank == 1:
        dist.irecv(torch.ones(3), 0)
        time.sleep(0.3)
    dist.barrier()
    dist.destroy_process_group()
    return ", ".join(thread.name for thread in threading.enumerate() if "finisher" in thread.name)


def test_left(hosts: list[str]) -> None:
    assert fine(run(2, left, hosts=hosts, **PATIENT)) == ["", ""]
