"""Refusals: each error names the call, the rank, and a remedy."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ranks import CONTEXT, Failed, fine, run


def said(call: Callable[[], Any], *kinds: type[Exception]) -> str:
    """The message of the exception of a call."""
    try:
        call()
    except kinds as error:
        return str(error)
    raise AssertionError("nothing was raised")


def inputs(rank: int, nranks: int) -> list[str]:
    """Errors that a rank finds before it meets other ranks, so all ranks go on."""
    ones = torch.ones(4)
    op = dist.ReduceOp
    texts = [
        said(lambda: dist.all_reduce(ones.to(torch.int16)), TypeError),
        said(lambda: dist.all_reduce(ones.to(torch.float8_e4m3fnuz)), TypeError),
        said(lambda: dist.all_reduce(ones.bool(), op=op.AVG), ValueError),
        said(lambda: dist.all_reduce(ones, op=op.BXOR), ValueError),
        said(lambda: dist.all_reduce(ones.to_sparse()), TypeError),
        said(lambda: dist.all_gather_into_tensor(ones, ones), ValueError),
        said(lambda: dist.all_gather_into_tensor(torch.ones(4 * nranks).int(), ones), TypeError),
        said(lambda: dist.all_gather([ones], ones), ValueError),
        said(lambda: dist.all_gather([torch.ones(3) for _ in range(nranks)], ones), ValueError),
        said(lambda: dist.reduce_scatter_tensor(ones, ones), ValueError),
        said(lambda: dist.reduce_scatter(ones, [ones]), ValueError),
        said(lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3 + nranks)), ValueError),
        said(lambda: dist.all_to_all_single(ones, ones, [4], [4]), ValueError, RuntimeError),
        said(lambda: dist.all_to_all([ones], [ones]), ValueError),
        said(lambda: dist.all_to_all_single(torch.ones(3 * nranks), torch.ones(2 * nranks), [3] * nranks, [2] * nranks), RuntimeError),
        said(lambda: dist.all_to_all_single(torch.ones(3, nranks), torch.ones(3, nranks)), ValueError),
        said(lambda: dist.all_to_all_single(torch.ones(nranks, 3), torch.ones(3, nranks)), ValueError),
        said(lambda: dist.all_gather_into_tensor(torch.ones(3, nranks), torch.ones(3)), ValueError),
        said(lambda: dist.reduce_scatter_tensor(torch.ones(3), torch.ones(3, nranks)), ValueError),
        said(lambda: dist.recv(ones), NotImplementedError),
        said(lambda: dist.set_timeout(timedelta(seconds=1)), NotImplementedError),
        said(lambda: dist.all_reduce(ones.to(torch.float8_e5m2), op=dist._make_nccl_premul_sum(0.5)), ValueError),
    ]
    # No call is left under way.
    dist.all_reduce(ones)
    assert (ones == nranks).all()
    return texts


def overlap(rank: int, nranks: int) -> list[str]:
    """Errors that one rank finds alone: the others hear of them from the same call, with the reason."""
    texts = []
    whole = torch.zeros(2 * nranks)
    own = whole[:2] if rank else torch.zeros(2)
    calls: list[Callable[[], Any]] = [
        lambda: dist.all_gather_into_tensor(whole, own) if rank == 1 else dist.all_gather_into_tensor(whole, torch.ones(2)),
        lambda: dist.all_reduce(torch.ones(4, dtype=torch.int16 if rank == 1 else torch.int32)),
        lambda: dist.all_gather([torch.ones(3 if rank == 1 else 4) for _ in range(nranks)], torch.ones(4)),
        lambda: dist.all_reduce(torch.ones(4, dtype=torch.int16 if rank == 1 else torch.int32), async_op=True).wait(),
    ]
    for call in calls:
        begun = time.monotonic()
        texts.append(said(call, RuntimeError, ValueError, TypeError))
        assert time.monotonic() - begun < 5
        ones = torch.ones(4)
        dist.all_reduce(ones)
        assert (ones == nranks).all()
    return texts


def test_overlap() -> None:
    answers = fine(run(3, overlap))
    for rank, texts in enumerate(answers):
        reasons = ["overlap", "int16", "all_gather", "int16"]
        for text, reason in zip(texts, reasons):
            assert reason in text, text
            assert (rank == 1) != ("rank 1 refused to make call" in text and "void for all" in text), text


def test_inputs() -> None:
    answers = fine(run(2, inputs))
    for rank, texts in enumerate(answers):
        for text in texts:
            assert re.match(rf"roundelay: \w+ at rank {rank}: ", text), text
        assert "convert the tensor to one of torch.int8" in texts[0]
        assert "these do: SUM, MAX" in texts[2]
        assert "tensor.to_dense()" in texts[4]


def devices(rank: int, nranks: int) -> str:
    import roundelay.torch

    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert isinstance(group, roundelay.torch.Group)
    # The arguments of torch, if tensors of that device came here.
    options = dist.AllreduceOptions()
    return said(lambda: group.allreduce([torch.ones(1, device="meta")], options), TypeError)


def test_devices() -> None:
    for text in fine(run(2, devices)):
        assert "the tensor is on meta" in text and "the CPU and of CUDA" in text, text


def shapes(rank: int, nranks: int) -> list[str]:
    begun = time.monotonic()
    texts = [said(lambda: dist.all_reduce(torch.ones(4 + rank)), RuntimeError)]
    assert time.monotonic() - begun < 1
    return texts


def kinds(rank: int, nranks: int) -> list[str]:
    dtype = torch.float64 if rank else torch.int64
    return [said(lambda: dist.all_reduce(torch.ones(4, dtype=dtype)), RuntimeError)]


def collectives(rank: int, nranks: int) -> list[str]:
    tensor = torch.ones(4)
    return [said(lambda: dist.broadcast(tensor, 0) if rank else dist.all_reduce(tensor), RuntimeError)]


def roots(rank: int, nranks: int) -> list[str]:
    return [said(lambda: dist.broadcast(torch.ones(4), 1 - rank), RuntimeError)]


def splits(rank: int, nranks: int) -> list[str]:
    given, sizes = torch.ones(2 * nranks), [2] * nranks
    taken = [2 if other == rank else 3 for other in range(nranks)]
    return [said(lambda: dist.all_to_all_single(torch.ones(sum(taken)), given, taken, sizes), RuntimeError)]


def lists(rank: int, nranks: int) -> list[str]:
    outputs = [torch.zeros(5 if other == rank else 6 + rank) for other in range(nranks)]
    return [said(lambda: dist.all_gather(outputs, torch.ones(5)), RuntimeError)]


def test_mismatches() -> None:
    """At once, all ranks get an error with both ranks and both calls."""
    for body, words in (
        (shapes, ["AllReduce of 4 f32", "AllReduce of 5 f32"]),
        (kinds, ["i64", "f64"]),
        (collectives, ["AllReduce", "Broadcast"]),
        (roots, ["root 0", "root 1"]),
        (splits, ["2 elements in the block from rank", "3 elements in the block from rank"]),
        (lists, ["AllGatherV of f32 with 5 elements in the block of rank 0", "with 7 elements in the block of rank 0"]),
    ):
        begun = time.monotonic()
        for texts in fine(run(2, body)):
            for word in words:
                assert word in texts[0], texts
        assert time.monotonic() - begun < 8


def group(rank: int, nranks: int) -> str:
    part = dist.new_group([0, 2])
    if rank == 1:
        return ""
    return said(lambda: dist.all_reduce(torch.ones(3).short(), group=part), TypeError)


def test_group() -> None:
    texts = fine(run(3, group))
    assert "all_reduce at rank 1 of the group of ranks [0, 2]: " in texts[2], texts


def alone(rank: int, nranks: int, folder: str) -> str:
    store = dist.FileStore(f"{folder}/store", 2)
    begun = time.monotonic()
    text = said(
        lambda: dist.init_process_group(
            "roundelay", store=store, rank=1, world_size=2, timeout=timedelta(seconds=0.5)
        ),
        RuntimeError,
    )
    assert time.monotonic() - begun < 3
    return text


def test_alone(tmp_path: Path) -> None:
    (text,) = fine(run(1, alone, str(tmp_path), backend=""))
    assert "init_process_group at rank 1: of 2 ranks these did not come to the store within 0.5 s: 0" in text, text


def serve(answer: Any) -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    answer.send((store.port, os.getpid()))
    time.sleep(60)


def orphan(rank: int, nranks: int, port: int, server: int) -> str:
    import threading

    store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    threading.Timer(0.5, lambda: os.kill(server, signal.SIGKILL)).start()
    return said(
        lambda: dist.init_process_group(
            "roundelay", store=store, rank=1, world_size=2, timeout=timedelta(seconds=20)
        ),
        RuntimeError,
    )


def test_store_dies() -> None:
    mine, theirs = CONTEXT.Pipe(duplex=False)
    server = CONTEXT.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port, number = mine.recv()
    (text,) = fine(run(1, orphan, port, number, backend=""))
    assert "init_process_group at rank 1: the store that torch handed to the group does not answer" in text, text
    server.join()


def test_library_missing() -> None:
    environment = {**os.environ, "ROUNDELAY_LIBRARY": "/nowhere/libroundelay.so"}
    ended = subprocess.run(
        [sys.executable, "-c", "import roundelay.torch"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1 and "ImportError: the library /nowhere/libroundelay.so" in ended.stderr, ended.stderr


def test_ranks_that_fail_are_seen() -> None:
    """The tests' own harness: a rank that raises is not taken for a rank that succeeds."""
    answers = run(1, wrong)
    assert isinstance(answers[0], Failed) and "on purpose" in answers[0].text


def wrong(rank: int, nranks: int) -> None:
    raise ValueError("on purpose")
