"""Repairs of torch's handles for backends that are written in Python.

torch wraps the ``Work`` of a backend in Python in a handle of its own, which passes on ``wait`` and ``get_future``
alone: ``is_completed`` would always be false. Here the handle's other methods find the wrapped ``Work`` through
``get_future``.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Optional

import torch
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import Backend
from torch.distributed import Work


class _Search(threading.local):
    """A search of this thread for the ``Work`` that a handle wraps."""

    on = False
    found: Any = None


_search = _Search()
_nothing: torch.futures.Future[None] = torch.futures.Future()
_nothing.set_result(None)


def searched(work: Any) -> Optional[torch.futures.Future[Any]]:
    """Called by the ``get_future`` of a wrapped ``Work``: the future that it returns during a search, else None."""
    if not _search.on:
        return None
    _search.found = work
    return _nothing


def _wrapped(handle: Work) -> Any:
    """The ``Work`` that a handle wraps, if it is of this backend."""
    _search.on, _search.found = True, None
    try:
        handle.get_future()
    except RuntimeError:
        # Not every backend has futures.
        return None
    finally:
        _search.on = False
    return _search.found


def possible() -> bool:
    """Whether this torch can have a backend that is written in Python."""
    try:
        Backend(0, 1)
    except TypeError:
        return False
    return True


def install() -> None:
    """Has handles pass on their calls. Handles of other backends answer as before."""
    for question in ("is_completed", "is_success", "exception", "result", "synchronize"):
        _pass_on(question)


def unrecorded(backend: str) -> None:
    """Keeps torch's flight recorder away from a backend, unless its size is set: it costs more than a small call.

    The error itself has the call that a rank was in when another rank failed.
    """
    asked = any(os.environ.get(name) for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"))
    left_out = getattr(c10d, "_FR_SELF_RECORDING_BACKENDS", None)
    if not asked and isinstance(left_out, set):
        left_out.add(backend)


def _pass_on(question: str) -> None:
    own = getattr(Work, question)
    if getattr(own, "_roundelay", False):
        return

    def asked(handle: Work) -> Any:
        work = _wrapped(handle)
        return own(handle) if work is None else getattr(work, question)()

    asked.__name__, asked.__doc__ = question, own.__doc__
    asked._roundelay = True  # type: ignore[attr-defined]
    setattr(Work, question, asked)
