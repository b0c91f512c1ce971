"""Plain synchronous calls, which do not go through torch's dispatcher: by the compiled functions of the library, or with
ROUNDELAY_TORCH_EXTENSION=0 by functions of Python. ``cargo xtask torch`` runs these tests in both ways.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

import roundelay.torch
from ranks import fine, run
from test_collectives import DTYPES, FP8, OPS, carried, values

COMPILED = os.environ.get("ROUNDELAY_TORCH_EXTENSION") != "0"


def test_the_compiled_functions_are_used_unless_they_are_switched_off() -> None:
    assert roundelay.torch.compiled() == COMPILED


def watched() -> tuple[list[str], list[str]]:
    """The calls that come through functions of Python from now on: without torch's dispatcher, and in all."""
    from roundelay.torch import _direct
    from roundelay.torch._parts import Part

    direct: list[str] = []
    python: list[str] = []
    plain, ran = _direct._plain, Part.run

    def asked(given: tuple[Any, ...]) -> bool:
        answer = plain(given)
        if answer:
            direct.append("a call")
        return answer

    def running(self: Part, world: Any) -> None:
        python.append("a call")
        ran(self, world)

    _direct._plain, Part.run = asked, running  # type: ignore[method-assign]
    return direct, python


def calls(x: torch.Tensor, nranks: int) -> dict[str, Callable[[Any], torch.Tensor]]:
    """Each of the four collectives, as a function of a group that returns its result."""

    def all_reduce(group: Any, op: Any = dist.ReduceOp.SUM) -> torch.Tensor:
        y = x.clone()
        dist.all_reduce(y, op=op, group=group)
        return y

    def broadcast(group: Any) -> torch.Tensor:
        y = x.clone()
        dist.broadcast(y, nranks - 1, group=group)
        return y

    def all_gather(group: Any) -> torch.Tensor:
        y = torch.empty(nranks * x.numel(), dtype=x.dtype)
        dist.all_gather_into_tensor(y, x, group=group)
        return y

    def reduce_scatter(group: Any, op: Any = dist.ReduceOp.SUM) -> torch.Tensor:
        y = torch.empty_like(x)
        dist.reduce_scatter_tensor(y, x.repeat(nranks), op=op, group=group)
        return y

    return {"all_reduce": all_reduce, "broadcast": broadcast, "all_gather": all_gather, "reduce_scatter": reduce_scatter}


def both_ways(rank: int, nranks: int) -> tuple[int, int, int, int]:
    """Has each call made in this way and through torch's dispatcher, and compares the bytes."""
    dispatched = dist.new_group()
    dispatched.register_pre_hook(0, lambda _: None)
    sums = {"all_reduce", "reduce_scatter"}
    for group in (None, dispatched):
        # The first call of a group goes through torch.
        dist.all_reduce(torch.ones(1), group=group)
    direct, python = watched()
    before = dist.group.WORLD._get_sequence_number_for_group()
    made = 0
    for dtype in [*DTYPES, *FP8]:
        x = values((24,), dtype if dtype not in FP8 else torch.float32, rank).to(dtype)
        for name, call in calls(x, nranks).items():
            ops = [op for op in OPS if carried(dtype, op)] if name in sums else [None]
            for op in ops:
                given = {} if op is None else {"op": getattr(dist.ReduceOp, op)}
                ours, right = (call(group, **given).view(torch.uint8) for group in (None, dispatched))
                assert torch.equal(ours, right), f"{name} of {dtype} by {op}: {ours} is not {right}"
                made += 1
    return made, dist.group.WORLD._get_sequence_number_for_group() - before, len(direct), len(python)


def test_each_plain_call_has_the_bytes_of_torch_s_own_way_and_does_not_take_it() -> None:
    for made, counted, direct, python in fine(run(3, both_ways)):
        assert made > 100 and counted == made
        # The calls of the other group come through Python.
        assert (direct, python) == ((0, made) if COMPILED else (made, 2 * made))


class Seen(TorchDispatchMode):
    """The operations that a mode sees."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def observers(rank: int, nranks: int) -> tuple[list[str], list[str], int]:
    """What a dispatch mode, a profiler and a hook see of a group whose calls were made without the dispatcher."""
    x = torch.ones(8)
    for _ in range(3):
        dist.all_reduce(x)
    with Seen() as seen:
        dist.all_reduce(x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.broadcast(x, 0)
    hooks: list[Any] = []
    dist.group.WORLD.register_pre_hook(7, hooks.append)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    return seen.names, [event.key for event in profile.key_averages()], len(hooks)


def test_modes_profilers_and_hooks_see_every_call() -> None:
    for modes, profiled, hooks in fine(run(2, observers)):
        assert any("c10d.allreduce_" in name for name in modes), modes
        assert any("c10d::broadcast_" in name for name in profiled), profiled
        assert hooks == 2


def not_plain(rank: int, nranks: int) -> None:
    """Calls that are not plain have the results of plain ones, and come through functions of Python."""
    dist.all_reduce(torch.ones(1))
    _, python = watched()
    total = nranks * (nranks + 1) / 2
    mine = float(rank + 1)
    columns = torch.full((4, 4), mine)
    dist.all_reduce(columns[:, 1])
    assert columns[:, 1].eq(total).all() and columns[:, 0].eq(mine).all()
    shifted = torch.zeros(9, dtype=torch.uint8)[1:].view(torch.uint8)
    floats = torch.frombuffer(bytearray(9), dtype=torch.float32, count=2, offset=1).fill_(mine)
    dist.all_reduce(floats)
    assert floats.eq(total).all() and shifted.eq(0).all()
    scaled = torch.full((3,), mine)
    dist.all_reduce(scaled, op=dist._make_nccl_premul_sum(2.0))
    assert scaled.eq(2 * total).all()
    with torch.no_grad():
        weight = torch.nn.Parameter(torch.full((3,), mine))
        dist.broadcast(weight, 1)
    assert weight.eq(2).all()
    dist.all_reduce(torch.zeros(0))
    wanted = torch.full((3,), mine, requires_grad=True)
    dist.all_reduce(wanted)
    assert wanted.detach().eq(total).all() and len(python) == 6
    scalar = torch.tensor(mine)
    dist.all_reduce(tensor=scalar, op=dist.ReduceOp.MAX)
    assert scalar == nranks
    named = torch.full((3,), mine)
    opts = dist.AllreduceOptions()
    opts.asyncOp = False
    dist.group.WORLD.allreduce(tensors=[named], opts=opts)
    assert named.eq(total).all()
    # Arguments with names are not plain, either.
    assert len(python) == (7 if COMPILED else 8)
    group = dist.group.WORLD
    for given in ((), (1,), (1, 2), ([],), ([1], 2, 3), ([torch.ones(1), torch.ones(1)], opts)):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            group.allreduce(*given)
    # Calls under way come first.
    work = [dist.all_reduce(named, async_op=True) for _ in range(3)]
    made = len(python)
    dist.all_reduce(named)
    assert named.eq(total * nranks**4).all() and len(python) == made + 1
    for each in work:
        each.wait()


def test_calls_that_are_not_plain_go_through_torch() -> None:
    fine(run(2, not_plain))


def refused(rank: int, nranks: int) -> str:
    """The message of a call that the ranks make with different counts, in a group that works on."""
    x = torch.ones(4)
    dist.all_reduce(x)
    direct, python = watched()
    with pytest.raises(roundelay.Error) as error:
        dist.all_reduce(torch.ones(4 + rank))
    x.fill_(1)
    dist.all_reduce(x)
    assert x.eq(nranks).all() and len(python) == (0 if COMPILED else 2)
    return f"{error.value.code} {error.value}"


def test_an_error_names_the_call_the_rank_and_both_counts() -> None:
    for rank, text in enumerate(fine(run(2, refused))):
        assert text.startswith(f"E0414 roundelay: all_reduce at rank {rank}: ") and "4" in text and "5" in text, text


def test_a_python_without_what_they_need_is_told_once() -> None:
    lacking = "import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n"
    program = lacking + "import roundelay.torch, importlib; print(roundelay.torch.compiled())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"
    assert done.stderr.count("this Python has no global lock") == (1 if COMPILED else 0), done.stderr
