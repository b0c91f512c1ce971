"""PyTorch's collectives by proved schedules: the backend ``roundelay`` of ``torch.distributed``.

    import roundelay.torch
    import torch.distributed as dist

    dist.init_process_group("roundelay")  # or "cpu:gloo,cuda:roundelay"

Ranks are processes. Those of one host share memory, and messages between hosts go by TCP. Tensors are on the CPU, or on the
rank's GPU, for ranks of one host: their calls are in the order of CUDA's streams, and no call waits on the host.
Reductions take f32, f64, f16, bf16, fp8 (float8_e4m3fn and float8_e5m2, saturating), integers of 8, 32 and 64 bits, and
booleans; copies take any type. If a rank ends in the middle of a call, the error on all other ranks names it.

A thread of the library, which does not hold Python's lock, makes the calls with ``async_op=True``. The calling thread
makes synchronous calls; the plain ones do not go through torch's dispatcher. torch's flight recorder records the calls of this backend where TORCH_FR_BUFFER_SIZE is set.
"""

from __future__ import annotations

from datetime import timedelta
from os import PathLike
from typing import Any, Optional, Union

import torch
import torch.distributed as dist

from roundelay._codes import COLLECTIVES as _CODES
from roundelay._world import World

from . import _handles
from ._bootstrap import anew, meet
from ._errors import named

if not _handles.possible():
    raise ImportError(
        f"torch {torch.__version__} cannot have a backend that is written in Python: "
        "roundelay.torch needs torch 2.15 or a later one"
    )

from . import _direct  # noqa: E402  (the check above looked for its base class)
from ._direct import compiled  # noqa: E402
from ._group import Group  # noqa: E402
from ._elements import reduction  # noqa: E402

__all__ = ["COLLECTIVES", "Group", "compiled", "deterministic", "order", "use", "ways"]

COLLECTIVES = {
    "all_reduce": "AllReduce",
    "reduce_scatter": "ReduceScatter",
    "all_gather": "AllGather",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "scatter": "Scatter",
    "gather": "Gather",
    "all_to_all": "AllToAll",
}
"""torch's names of the collectives that an algorithm can be given for, and the language's."""


def _create(options: Any, _: Any) -> Group:
    """The function that torch calls to make a group."""
    rank, nranks = options.group_rank, options.group_size
    timeout: timedelta = options.timeout
    members = list(options.global_ranks_in_group)
    try:
        store = anew(options.store, rank)
        world = meet(World.bootstrap, store, rank, nranks, timeout)
    except Exception as error:
        group = f" of the group of ranks {members}" if members else ""
        raise named(error, "init_process_group", f"rank {rank}{group}") from error.__cause__
    return Group(world, store, rank, nranks, timeout, members)


def use(
    source: Union[str, PathLike[str], None] = None,
    algorithm: Optional[str] = None,
    *,
    order: Optional[str] = None,
    collective: Optional[str] = None,
    min_bytes: int = 0,
    max_bytes: Optional[int] = None,
    group: Optional[dist.ProcessGroup] = None,
) -> None:
    """Has the calls of a group made by an algorithm of your own, which is proved first.

    ``source`` is the text of algorithms, the path of a file of algorithms, or the name of an algorithm of the library;
    ``algorithm`` chooses one of several algorithms, and sets its parameters: ``"MyRing slices=4"``. ``collective`` is
    torch's name of the collective, as ``"all_reduce"``: if given, algorithms of other collectives are refused. The
    algorithm makes the calls of at least ``min_bytes`` and at most ``max_bytes``. All ranks of the group call this with
    equal arguments; the default group is the group of ``init_process_group``.

    ``order`` is a list of promises about the order of reductions, such as ``"all_counts,roundings=1"``, which all calls
    of the group keep from now on; an algorithm that breaks one is refused when it is called.
    """
    if source is None and order is None:
        raise ValueError("roundelay: use: give an algorithm, or the promises of an order")
    of = _group_of(group)
    if collective is not None and collective not in COLLECTIVES:
        known = ", ".join(COLLECTIVES)
        raise ValueError(f"roundelay: use: there are no algorithms for {collective!r}: these have them: {known}")
    name = None if collective is None else COLLECTIVES[collective]
    try:
        if order is not None:
            of.world.promise(order)
        if source is not None:
            of.world.use(str(source), algorithm, name, min_bytes, max_bytes)
    except Exception as error:
        raise of.named("use", error) from None


def deterministic(group: Optional[dist.ProcessGroup] = None) -> None:
    """Has the reductions of a group sum in the order of the ranks, in f32, with one rounding: a result then depends on
    the contributions alone, not on the rank, the place of an element, or the size of the message. All ranks of the group
    call this; the default group is the group of ``init_process_group``."""
    use(order="all", group=group)


def order(
    collective: str,
    count: int,
    dtype: torch.dtype,
    op: Any = dist.ReduceOp.SUM,
    group: Optional[dist.ProcessGroup] = None,
) -> str:
    """The promises that the algorithm of a call keeps, such as ``"all_ranks,all_counts,roundings=1"``. ``collective`` is
    torch's name, and ``count`` the number of elements of each rank's result."""
    of = _group_of(group)
    if collective not in COLLECTIVES:
        raise ValueError(f"roundelay: order: {collective!r} is none of {', '.join(COLLECTIVES)}")
    try:
        return of.world.order(_CODES[COLLECTIVES[collective]], count, *reduction(torch.empty(0, dtype=dtype), op.value))
    except Exception as error:
        raise of.named("order", error) from None


def ways(group: Optional[dist.ProcessGroup] = None) -> list[str]:
    """The ways of data through the memory of this host that a group has chosen by measurement so far, in words. Rank 0 of
    the host measures; other ranks have none."""
    of = _group_of(group)
    try:
        return list(of.world.ways())
    except Exception as error:
        raise of.named("ways", error) from None


def _group_of(group: Optional[dist.ProcessGroup]) -> Group:
    """The backend of a process group, also below the wrapper that TORCH_DISTRIBUTED_DEBUG=DETAIL puts around it."""
    of = group or dist.group.WORLD
    if of is None:
        raise RuntimeError('roundelay: use: there is no group yet: init_process_group("roundelay") makes one')
    others = set()
    for kind in ("cpu", "cuda"):
        try:
            backend: Any = of._get_backend(torch.device(kind))
        except RuntimeError:
            # It has none for these tensors.
            continue
        backend = getattr(backend, "wrapped_pg", backend)
        if isinstance(backend, Group):
            return backend
        others.add(backend.name())
    raise TypeError(f"roundelay: use: the backend of this group is {' and '.join(sorted(others))}, not roundelay")


dist.Backend.register_backend("roundelay", _create, extended_api=True, devices=["cpu", "cuda"])
_handles.install()
_handles.unrecorded("roundelay")
_direct.install()
