"""The compiled functions of the library for this backend, which are functions of Python: a call does not go through
ctypes. ``capi/src/python`` has them. They use Python's stable ABI and DLPack's table of functions, so one library serves
each version of Python and of torch that has both.
"""

from __future__ import annotations

import ctypes
import os
import sysconfig
from collections.abc import Callable
from typing import Any, Optional

import torch

from roundelay import _library
from roundelay._world import World

from ._elements import OPS_OF_TYPES

_SWITCH = "ROUNDELAY_TORCH_EXTENSION"


def _loaded() -> Any:
    """The library, whose functions are called with Python's lock held."""
    library = ctypes.PyDLL(str(_library._path()))
    for name, arguments in (
        ("method", [ctypes.c_int, ctypes.c_char_p, *[ctypes.py_object] * 7]),
        ("group", [ctypes.c_uint64, ctypes.c_uint32, *[ctypes.py_object] * 4, ctypes.c_void_p]),
    ):
        function = getattr(library, f"roundelay_python_{name}")
        function.argtypes = arguments
        function.restype = ctypes.py_object
    return library


def method(collective: int, groups: dict[Any, Any], own: Callable[..., Any], watched: list[Callable[[], object]]) -> Any:
    """The method of process groups that makes the calls of a collective: one that takes the groups of :func:`group`, and
    leaves other calls to torch's own method, as it does all calls while one of ``watched`` returns what is true."""
    table = torch.Tensor.__dlpack_c_exchange_api__  # type: ignore[attr-defined]
    return _loaded().roundelay_python_method(collective, OPS_OF_TYPES, groups, own, torch.Tensor, table, *watched, None)


def group(
    world: World, under_way: Any, no_time: Any, failed: Callable[[int, int], None], calls: ctypes.c_uint64
) -> Any:
    """The group of a world. Calls are left to torch while there are any under way; timeouts below ``no_time`` are none;
    ``failed`` raises the error of a collective and a status."""
    address = ctypes.addressof(calls)
    make = _loaded().roundelay_python_group
    return make(world._handle, world.nranks, under_way, no_time, failed, calls, address)


def missing() -> Optional[str]:
    """What the compiled functions need and do not have; None where nothing is missing."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this Python has no global lock, which they rely on"
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        return f"torch {torch.__version__} has no table of DLPack's functions"
    try:
        method(0, {}, print, [print, print])
    except AttributeError:
        return f"the library {_library._path()} does not have them"
    except Exception:
        return (
            f"the table of DLPack's functions of torch {torch.__version__} is not of version 1, or this Python lacks a "
            "function of the stable ABI of version 3.10"
        )
    return None


def switched_off() -> bool:
    """Whether the user does not want the compiled functions."""
    return os.environ.get(_SWITCH, "1") == "0"
