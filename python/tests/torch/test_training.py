"""Training of a small model: losses beside Gloo's, and the errors on the other ranks when a rank is killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

import model
from ranks import Ended, fine, run, shm


def optimizer(of: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(of.parameters(), lr=0.1, momentum=0.9)


def ddp(rank: int, nranks: int, **options: Any) -> list[float]:
    wrapped = nn.parallel.DistributedDataParallel(model.made(), bucket_cap_mb=0.05, **options)
    sgd = optimizer(wrapped)
    return [model.step(wrapped, sgd, rank, nranks, number) for number in range(12)]


def hook(rank: int, nranks: int) -> list[float]:
    """Gradients as bf16, by the hook of PyTorch, which is written with futures."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    wrapped = nn.parallel.DistributedDataParallel(model.made())
    wrapped.register_comm_hook(None, bf16_compress_hook)
    sgd = optimizer(wrapped)
    return [model.step(wrapped, sgd, rank, nranks, number) for number in range(12)]


def fsdp(rank: int, nranks: int) -> list[float]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (nranks,))
    sharded = model.made()
    for block in sharded.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    sgd = optimizer(sharded)
    return [model.step(sharded, sgd, rank, nranks, number) for number in range(12)]


@pytest.mark.parametrize("nranks", [2, 3])
@pytest.mark.parametrize("body", [ddp, hook, fsdp], ids=lambda body: body.__name__)
def test_losses(body: Any, nranks: int) -> None:
    ours = fine(run(nranks, body, seconds=120))
    theirs = fine(run(nranks, body, backend="gloo", seconds=120))
    assert all(losses[-1] < 0.9 * losses[0] for losses in ours), ours
    if nranks == 2:
        # There is only one order in which two are added.
        assert ours == theirs
    else:
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=1e-3, atol=1e-3)


def killed(rank: int, nranks: int, note: str) -> tuple[float, str]:
    wrapped = nn.parallel.DistributedDataParallel(model.made())
    sgd = optimizer(wrapped)
    try:
        for number in range(1000):
            if rank == 1 and number == 5:
                Path(note).write_text(str(time.monotonic()))
                os.kill(os.getpid(), signal.SIGKILL)
            model.step(wrapped, sgd, rank, nranks, number)
    except RuntimeError as error:
        return time.monotonic(), str(error)
    raise AssertionError("nobody was told")


@pytest.mark.parametrize("nranks", [2, 3])
def test_killed(nranks: int, tmp_path: Path) -> None:
    before = shm()
    said = run(nranks, killed, str(tmp_path / "at"))
    at = float((tmp_path / "at").read_text())
    assert said[1] == Ended(-signal.SIGKILL), said
    for rank, answer in enumerate(said):
        if rank != 1:
            when, text = answer
            assert "rank 1" in text and "E0428" in text, text
            assert when - at < 0.1, f"rank {rank} was told after {when - at} s"
    assert shm() == before

