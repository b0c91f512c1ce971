"""What torch does for a backend that is written in Python, and where that is not what a user expects.

torch wraps the ``Work`` of such a backend in a handle of its own, which passes on ``wait`` and ``get_future`` alone:
``is_completed`` would say no for ever. Here the handle's other questions find the wrapped one by way of ``get_future``.
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
    """A search of this thread for what a handle wraps."""

    on = False
    found: Any = None


_search = _Search()
_nothing: torch.futures.Future[None] = torch.futures.Future()
_nothing.set_result(None)


def searched(work: Any) -> Optional[torch.futures.Future[Any]]:
    """Asked by the ``get_future`` of a wrapped one: what it returns where it is only searched for."""
    if not _search.on:
        return None
    _search.found = work
    return _nothing


def _wrapped(handle: Work) -> Any:
    """What a handle wraps, if it is ours."""
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
    """Has handles pass on what they are asked. Those of other backends answer as before."""
    for question in ("is_completed", "is_success", "exception", "result", "synchronize"):
        _pass_on(question)


def unrecorded(backend: str) -> None:
    """Keeps torch's flight recorder away from a backend, unless its size is set: it costs more than a small call.

    What a rank was doing when another one failed is in the error itself.
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
