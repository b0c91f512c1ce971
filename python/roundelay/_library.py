"""The C library, by ctypes: every function here is a function of ``roundelay.h`` or ``roundelay_command.h``,
which describe it.

A foreign call releases the interpreter's lock, so other threads run while a rank waits.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import NoReturn, Sequence

__all__ = [
    "Error",
    "command",
    "main",
    "run",
    "unique_id",
    "version",
]

class Error(RuntimeError):
    """A call of the library that failed. ``code`` is the error's code, such as ``"E0428"``: ``python -m roundelay
    explain E0428`` explains it."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Options(Structure):
    _fields_ = [
        ("size", c_uint64),
        ("timeout_ms", c_uint64),
        ("level", c_uint32),
        ("flags", c_uint32),
    ]


ALLGATHER = CFUNCTYPE(c_int, c_void_p, c_void_p, c_uint64, c_void_p)

#: World, collective, the address, counts and places of the input's blocks, those of the output's, and the codes.
_V: list[object] = [
    c_uint64,
    c_int,
    *[c_void_p, POINTER(c_uint64), POINTER(c_int64)] * 2,
    c_int,
    c_int,
    c_uint32,
]

_ARGUMENTS: dict[str, list[object]] = {
    "unique_id": [c_char_p],
    "init_from_env": [POINTER(Options), POINTER(c_uint64)],
    "init_id": [c_char_p, c_uint32, c_uint32, POINTER(Options), POINTER(c_uint64)],
    "init_allgather": [
        c_uint32,
        c_uint32,
        ALLGATHER,
        c_void_p,
        POINTER(Options),
        POINTER(c_uint64),
    ],
    "rank": [c_uint64, POINTER(c_uint32)],
    "nranks": [c_uint64, POINTER(c_uint32)],
    "call": [c_uint64, c_int, c_void_p, c_void_p, c_uint64, c_int, c_int, c_uint32],
    "start": [
        c_uint64,
        c_int,
        c_void_p,
        c_void_p,
        c_uint64,
        c_int,
        c_int,
        c_uint32,
        POINTER(c_uint64),
    ],
    "call_v": _V,
    "start_v": [*_V, POINTER(c_uint64)],
    "on_device": [c_uint64, c_uint32],
    "call_on_stream": [c_uint64, c_int, c_void_p, c_void_p, c_uint64, c_int, c_int, c_uint32, c_void_p],
    "device_wait": [c_uint64],
    "wait": [c_uint64, c_int64],
    "release": [c_uint64],
    "send": [c_uint64, c_void_p, c_uint64, c_int, c_uint32],
    "recv": [c_uint64, c_void_p, c_uint64, c_int, c_uint32],
    "barrier": [c_uint64],
    "share": [c_uint64, POINTER(c_uint64)],
    "use": [c_uint64, c_char_p, c_char_p, c_int, c_uint64, c_uint64],
    "split": [c_uint64, c_int64, c_int64, POINTER(c_uint64)],
    "shrink": [c_uint64, POINTER(c_uint64)],
    "alloc": [c_uint64, c_uint64, POINTER(c_void_p)],
    "free": [c_void_p],
    "abort": [c_uint64, c_char_p],
    "refuse": [c_uint64, c_char_p],
    "finalize": [c_uint64],
    "run": [
        c_char_p,
        c_char_p,
        c_uint32,
        POINTER(c_void_p),
        POINTER(c_void_p),
        c_uint64,
        c_int,
        c_int,
    ],
    "promise": [c_uint64, c_char_p],
    "ways": [c_uint64, POINTER(c_char_p)],
    "order": [
        c_uint64,
        c_int,
        c_uint64,
        c_int,
        c_int,
        c_uint32,
        POINTER(c_uint32),
        POINTER(c_uint32),
    ],
    "command": [
        c_uint64,
        POINTER(c_char_p),
        c_char_p,
        POINTER(c_int),
        POINTER(c_void_p),
        POINTER(c_void_p),
    ],
    "main": [c_uint64, POINTER(c_char_p), c_uint64, POINTER(c_char_p)],
}


def _path() -> Path:
    """The library that comes with the package, or that ``ROUNDELAY_LIBRARY`` names."""
    named = os.environ.get("ROUNDELAY_LIBRARY")
    if named:
        return Path(named)
    found = sorted(Path(__file__).parent.glob("_native*.so"))
    if not found:
        raise ImportError(
            f"the library of roundelay is not in {Path(__file__).parent}: install the package "
            "(`pip install ./python` in the repository), or name the library in ROUNDELAY_LIBRARY"
        )
    return found[0]


def _load() -> ctypes.CDLL:
    if not sys.platform.startswith("linux"):
        raise ImportError(f"roundelay's library runs on Linux, and this is {sys.platform}")
    path = _path()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as why:
        raise ImportError(f"the library {path} cannot be loaded: {why}") from why
    for name, arguments in _ARGUMENTS.items():
        function = getattr(library, f"roundelay_{name}")
        function.argtypes = arguments
        function.restype = c_int
    for name in ("version", "last_error"):
        getattr(library, f"roundelay_{name}").restype = c_char_p
    library.roundelay_free_text.argtypes = [c_void_p]
    library.roundelay_free_text.restype = None
    return library


_library = _load()
def failed(status: int) -> NoReturn:
    """Raises the error of a function that returned its code."""
    text = _library.roundelay_last_error().decode(errors="replace")
    raise Error(text, f"E{status:04}")


def checked(status: int) -> None:
    """Raises the error of a function that returned the code of one."""
    if status:
        failed(status)


def _texts(words: Sequence[str]) -> ctypes.Array[c_char_p]:
    return (c_char_p * len(words))(*(word.encode() for word in words))


def version() -> str:
    """The version of the library."""
    return str(_library.roundelay_version().decode())


def unique_id() -> bytes:
    """An id, by which one world meets: one process makes it, and passes it to the other processes."""
    made = ctypes.create_string_buffer(128)
    checked(_library.roundelay_unique_id(made))
    return made.raw


def run(
    source: str,
    algorithm: str | None,
    inputs: Sequence[int],
    outputs: Sequence[int],
    count: int,
    dtype: int,
    op: int,
) -> None:
    """Runs an algorithm in this process for all ranks, from the buffers at ``inputs`` to the buffers at ``outputs``."""
    ranks = len(inputs)
    checked(
        _library.roundelay_run(
            source.encode(),
            None if algorithm is None else algorithm.encode(),
            ranks,
            (c_void_p * ranks)(*inputs),
            (c_void_p * ranks)(*outputs),
            count,
            dtype,
            op,
        )
    )


def command(*words: str, input: str = "") -> tuple[int, str, str]:
    """Runs the command as a function. Returns its exit code, its output, and its standard error."""
    code, out, err = c_int(), c_void_p(), c_void_p()
    status = _library.roundelay_command(
        len(words), _texts(words), input.encode(), byref(code), byref(out), byref(err)
    )
    checked(status)
    texts = []
    for text in (out, err):
        texts.append(ctypes.string_at(text).decode())
        _library.roundelay_free_text(text)
    return code.value, texts[0], texts[1]


def main(again: Sequence[str], words: Sequence[str]) -> int:
    """Runs the command in the place of this program: its exit code. ``again`` starts it anew, as ranks are."""
    code = _library.roundelay_main(len(again), _texts(again), len(words), _texts(words))
    return int(code)
