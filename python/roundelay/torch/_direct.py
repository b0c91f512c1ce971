"""Synchronous calls without torch's dispatcher, which takes longer than a small call.

``dist.all_reduce`` calls a method of a process group, which finds the backend through the dispatcher. Here four of these
methods first look whether the process group has this backend and the call is a plain one: a synchronous call of dense
tensors of the CPU, of torch's own class and without gradients, while no dispatch mode and no profiler watches this
thread. If so, the backend makes the call at once. torch makes all other calls as before, and all calls of process groups
with hooks.

The methods are compiled functions of the library. Where these are missing, or ``ROUNDELAY_TORCH_EXTENSION=0`` is set, the
methods are written in Python, and call the library by ctypes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed.distributed_c10d as c10d
from torch._C import _len_torch_dispatch_stack
from torch._C._autograd import _profiler_enabled
from torch._C._distributed_c10d import FlightRecorderHook, NanCheckHook, ProcessGroup

from roundelay import _library

from . import _extension
from ._parts import ALL_GATHER, ALL_REDUCE, BROADCAST, REDUCE_SCATTER

_METHODS = {
    ALL_REDUCE: ("allreduce", "all_reduce"),
    REDUCE_SCATTER: ("reduce_scatter_single", "reduce_scatter_single"),
    ALL_GATHER: ("all_gather_single", "all_gather_single"),
    BROADCAST: ("broadcast", "broadcast"),
}
"""The methods of process groups, and the names of their calls in messages, by the library's codes of collectives."""

_groups: dict[ProcessGroup, Any] = {}
"""What makes the calls of each process group that has this backend: a backend, or a group of the compiled functions."""

_hooked: set[int] = set()
"""The identities of process groups with hooks."""

_missing = "they were not asked for" if _extension.switched_off() else _extension.missing()
"""Why the compiled functions are not used; None where they are used."""


def compiled() -> bool:
    """Whether plain synchronous calls are made by the compiled functions of the library, not by ctypes."""
    return _missing is None


def enrol(backend: Any, calls: Any, under_way: Any) -> list[ProcessGroup]:
    """Has the methods make the calls of the process groups with this backend, and returns these process groups."""

    def failed(collective: int, status: int) -> None:
        try:
            _library.failed(status)
        except _library.Error as error:
            raise backend.named(_METHODS[collective][1], error) from None

    made = backend if _missing is not None else None
    found = [of for of in c10d._world.pg_map if id(of) not in _hooked and _has(of, backend)]
    if found and made is None:
        made = _extension.group(backend.world, under_way, timedelta(0), failed, calls)
    _groups.update(dict.fromkeys(found, made))
    return found


def leave(process_groups: list[ProcessGroup]) -> None:
    """Has torch make the calls of these process groups."""
    for each in process_groups:
        _groups.pop(each, None)


def _has(process_group: ProcessGroup, backend: Any) -> bool:
    if type(process_group) is not ProcessGroup:
        return False
    try:
        return process_group._get_backend(torch.device("cpu")) is backend
    except RuntimeError:
        # It has none for the CPU.
        return False


def _interpreted(collective: int, own: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a collective, written in Python."""
    name = _METHODS[collective][0]

    def made(process_group: ProcessGroup, *given: Any, **named: Any) -> Any:
        group = _groups.get(process_group)
        if group is None or named or not _plain(given):
            return own(process_group, *given, **named)
        return getattr(group, name)(*given)

    return made


def _plain(given: tuple[Any, ...]) -> bool:
    """Whether a method was given a plain call."""
    if len(given) < 2 or _len_torch_dispatch_stack() or _profiler_enabled():
        return False
    tensors = given[0] if type(given[0]) is list else given[:-1]
    return not getattr(given[-1], "asyncOp", True) and all(
        type(tensor) is torch.Tensor and tensor.is_cpu and not tensor.requires_grad for tensor in tensors
    )


def _hooking(register: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives a process group a hook, from then on torch makes the calls of the process group."""

    def made(process_group: ProcessGroup, *given: Any, **named: Any) -> Any:
        _hooked.add(id(process_group))
        _groups.pop(process_group, None)
        return register(process_group, *given, **named)

    return made


def install() -> None:
    """Puts the methods in the place of torch's. Says once where compiled functions are missing."""
    if _missing is not None and not _extension.switched_off():
        warnings.warn(
            f"roundelay.torch: calls are made by ctypes, not by the compiled functions of the library: {_missing}; "
            "ROUNDELAY_TORCH_EXTENSION=0 asks for it",
            RuntimeWarning,
            stacklevel=2,
        )
    # A function of this type, which is that of torch's methods, takes the process group first.
    method = type(ProcessGroup.__dict__["allreduce"])
    for collective, (name, _) in _METHODS.items():
        own = getattr(ProcessGroup, name)
        if _missing is None:
            made = _extension.method(collective, _groups, own, [_len_torch_dispatch_stack, _profiler_enabled])
        else:
            made = _interpreted(collective, own)
        setattr(ProcessGroup, name, method(made))
    for name in ("register_pre_hook", "register_post_hook"):
        setattr(ProcessGroup, name, method(_hooking(getattr(ProcessGroup, name))))
    for hook in (FlightRecorderHook, NanCheckHook):
        setattr(hook, "attach", staticmethod(_hooking(hook.attach)))
