"""Arrays as a call takes them: NumPy's, and those of any library that has the protocol of DLPack.

An array is memory of this host in C order without gaps. What a call cannot take is an :class:`ArgumentError`, which says
what to give in its place. Nothing is copied.
"""

from __future__ import annotations

import math
import sys
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    cast,
    py_object,
    pythonapi,
)
from dataclasses import dataclass
from typing import Any

from ._codes import DTYPES
from ._library import Error

#: Our names of the types of numpy and of ml_dtypes.
NUMPY_TYPES = {
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
}


class ArgumentError(Error, ValueError, TypeError):
    """An argument of a collective that it cannot take. The other ranks are told of it at once: their call raises E0414
    with this text, and later calls work. It is a ``ValueError`` and a ``TypeError``, too."""


@dataclass
class Elements:
    """The elements of an array, in C order without gaps."""

    what: str
    """The argument, for messages."""
    address: int
    shape: tuple[int, ...]
    count: int
    size: int
    """Bytes of an element."""
    kind: str
    """The element type, as NumPy names it."""
    writable: bool
    keeps: object
    """What keeps the memory."""
    stream: int | None = None
    """The stream of CUDA in whose order the memory is, for an array on a GPU."""

    @property
    def rows(self) -> int:
        """The length of the first axis; an array without axes is one row."""
        return self.shape[0] if self.shape else 1

    @property
    def row(self) -> int:
        """Elements of a row."""
        return math.prod(self.shape[1:])

    def __str__(self) -> str:
        return f"{self.kind}[{', '.join(map(str, self.shape))}]"


def read(array: Any, what: str) -> Elements:
    """The elements of an array that a call reads."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ndarray):
        return _of_numpy(numpy, array, what)
    if numpy is not None and isinstance(array, numpy.generic):
        found = _of_numpy(numpy, numpy.asarray(array), what)
        found.writable = False
        return found
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array, what)
    name = f"{type(array).__module__}.{type(array).__qualname__}"
    raise ArgumentError(
        f"{what} is of the type {name.replace('builtins.', '')}: give a NumPy array, as of numpy.asarray, or an array with __dlpack__",
        "E0403",
    )


def written(array: Any, what: str) -> Elements:
    """The elements of an array that a call writes."""
    found = read(array, what)
    if not found.writable:
        fix = "give out=, an array for the result" if what == "the array" else "give one that can be written"
        raise ArgumentError(f"{what} is read-only, and the result goes there: {fix}", "E0406")
    return found


def is_scalar(array: Any) -> bool:
    """Whether it is a value of NumPy without a place, such as a mean of an array."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.generic)


def empty(array: Any, shape: tuple[int, ...], like: Elements) -> Any:
    """A new array of the library of ``array``, with its element type."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, (numpy.ndarray, numpy.generic)):
        return numpy.empty(shape, array.dtype)
    if hasattr(array, "new_empty"):
        return array.new_empty(shape)
    raise ArgumentError(
        f"{like.what} is a {type(array).__qualname__}, of which this library makes no new one: "
        f"give out=, an array of {math.prod(shape)} elements for the result",
        "E0406",
    )


def _gaps(what: str, shape: tuple[int, ...], strides: object) -> ArgumentError:
    return ArgumentError(
        f"{what} has the shape {shape} and the strides {strides}, so its elements do not lie one behind the other in C "
        "order: give a contiguous array, as of numpy.ascontiguousarray or tensor.contiguous()",
        "E0406",
    )


def _of_numpy(numpy: Any, array: Any, what: str) -> Elements:
    kind = array.dtype
    if isinstance(array, numpy.ma.MaskedArray):
        raise ArgumentError(f"{what} has a mask, which would be ignored: give array.filled(…) or array.data", "E0403")
    if kind.hasobject:
        raise ArgumentError(f"{what} holds Python objects ({kind}): give numbers", "E0403")
    if not kind.isnative:
        fix = 'array.astype(array.dtype.newbyteorder("="))'
        raise ArgumentError(f"{what} has elements of another byte order ({kind.str}): give {fix}", "E0403")
    if not array.flags.c_contiguous:
        raise _gaps(what, array.shape, array.strides)
    address = array.__array_interface__["data"][0]
    return _aligned(
        Elements(what, address, array.shape, array.size, kind.itemsize, kind.name, array.flags.writeable, array)
    )


def _aligned(found: Elements) -> Elements:
    known = NUMPY_TYPES.get(found.kind)
    if known is not None and found.count and found.address % found.size:
        raise ArgumentError(
            f"{found.what} begins at {found.address:#x}, which is not aligned for {found.kind}: give a copy of it", "E0404"
        )
    return found


# DLPack.


class _Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", c_int32),
        ("device_number", c_int32),
        ("dimensions", c_int32),
        ("kind", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
    ]


class _Versioned(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


_READ_ONLY, _COPIED = 1, 2
#: The newest version that this module reads.
_VERSION = (1, 1)
#: Memory of the host: plain, and pinned for CUDA and for ROCm.
_HOST = (1, 3, 11)
#: Memory of a GPU.
_CUDA = 2
_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA (managed)", 14: "oneAPI"}
#: NumPy's names of the types, by code, and the codes of types of one size.
_TYPES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_FLOAT8 = {10: "float8_e4m3fn", 12: "float8_e5m2"}
#: Dimensions that no array exceeds.
_MOST = 1 << 10

_valid = pythonapi.PyCapsule_IsValid
_valid.argtypes, _valid.restype = [py_object, c_char_p], c_int
_pointer = pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = [py_object, c_char_p], c_void_p


def _of_dlpack(array: Any, what: str) -> Elements:
    try:
        device = int(array.__dlpack_device__()[0])
        # Another device's producer would wait for it, or copy; that of a GPU is told not to.
        capsule = _exported(array, device) if device in _HOST or device == _CUDA else None
    except Exception as error:
        raise ArgumentError(f"{what}, a {type(array).__qualname__}, gives no memory by DLPack: {error}", "E0406") from error
    if device not in _HOST and device != _CUDA:
        raise _elsewhere(what, device)
    found, flags = _tensor(capsule, what)
    if found.device not in _HOST and found.device != device:
        raise _elsewhere(what, found.device)
    if not 0 <= found.dimensions <= _MOST or found.dimensions and not found.shape:
        raise ArgumentError(f"{what} has {found.dimensions} dimensions by DLPack", "E0406")
    shape = tuple(found.shape[: found.dimensions])
    kind, size = _kind(found, what)
    count = math.prod(shape)
    if any(length < 0 for length in shape) or count * size >= 1 << 63 or count and not found.data:
        raise ArgumentError(f"{what} has the shape {shape} by DLPack, and its memory at {found.data}", "E0406")
    if found.strides and count:
        strides, expected = tuple(found.strides[: found.dimensions]), 1
        for length, stride in zip(reversed(shape), reversed(strides)):
            if length != 1 and stride != expected:
                raise _gaps(what, shape, strides)
            expected *= length
    # A copy would take the result, and the user's array none.
    writable = not flags & (_READ_ONLY | _COPIED)
    address = (found.data or 0) + found.offset
    stream = _stream(array) if device == _CUDA else None
    return _aligned(Elements(what, address, shape, count, size, kind, writable, capsule, stream))


def _stream(array: Any) -> int:
    """The current stream of the library of an array on a GPU."""
    library = sys.modules.get(type(array).__module__.split(".")[0])
    cuda = getattr(library, "cuda", None)
    if hasattr(cuda, "current_stream"):
        # torch
        return int(cuda.current_stream(array.device).cuda_stream)
    if hasattr(cuda, "get_current_stream"):
        # CuPy
        return int(cuda.get_current_stream().ptr)
    return 0


def _exported(array: Any, device: int) -> Any:
    """The capsule of an array, which deletes what it holds unless it is taken over, as it is not here."""
    ways: tuple[dict[str, object], ...] = ({"max_version": _VERSION, "copy": False}, {"max_version": _VERSION}, {})
    # No stream waits for another one: the call is issued in the order of the current one.
    unordered: dict[str, object] = {"stream": -1} if device == _CUDA else {}
    for way in ways:
        try:
            return array.__dlpack__(**way, **unordered)
        except TypeError:
            # A producer of an earlier version of the protocol.
            continue
    return array.__dlpack__()


def _tensor(capsule: Any, what: str) -> tuple[_Tensor, int]:
    if _valid(capsule, b"dltensor_versioned"):
        versioned = cast(_pointer(capsule, b"dltensor_versioned"), POINTER(_Versioned)).contents
        if versioned.major != _VERSION[0]:
            raise ArgumentError(f"{what} speaks DLPack {versioned.major}.{versioned.minor}: version 1 is read", "E0406")
        return versioned.tensor, versioned.flags
    if _valid(capsule, b"dltensor"):
        return cast(_pointer(capsule, b"dltensor"), POINTER(_Tensor)).contents, 0
    raise ArgumentError(f"{what} gives no capsule of DLPack that can be read, but {capsule!r}", "E0406")


def _kind(found: _Tensor, what: str) -> tuple[str, int]:
    """The element type as NumPy names it, and its bytes."""
    code, bits = found.kind, found.bits
    if code == 6 and bits == 8:
        kind = "bool"
    elif code in _TYPES:
        kind = f"{_TYPES[code]}{bits}"
    else:
        kind = _FLOAT8.get(code, f"type {code} of DLPack with {bits} bits") if bits == 8 else ""
    if not kind or bits == 0 or bits % 8 or found.lanes != 1:
        title = f"{what} has elements of type {code} of DLPack with {bits} bits in {found.lanes} lanes"
        raise ArgumentError(f"{title}: give elements of one of {', '.join(NUMPY_TYPES)}", "E0403")
    return kind, bits // 8


def _elsewhere(what: str, device: int) -> ArgumentError:
    name = _DEVICES.get(device, f"number {device} of DLPack")
    return ArgumentError(
        f"{what} is on the device {name}: a world of processes moves memory of the host, so give a copy there", "E0420"
    )


def placed(arrays: list[Elements], has_device: bool) -> int | None:
    """The stream of a call on arrays of a GPU; None for arrays of the host."""
    on_gpu = [array for array in arrays if array.stream is not None]
    if not on_gpu:
        return None
    first = on_gpu[0]
    if not has_device:
        fix = "open a GPU by World.on_device first, or give a copy in memory of the host"
        raise ArgumentError(f"{first.what} is on the device CUDA: {fix}", "E0420")
    if len(on_gpu) < len(arrays):
        other = next(array for array in arrays if array.stream is None)
        raise ArgumentError(f"{first.what} is on a GPU, and {other.what} is not: give both in one place", "E0420")
    return first.stream


def codes(found: Elements) -> tuple[int, int]:
    """The library's code of the element type and the elements that one counts for, where a collective only copies:
    elements of types that the library does not have travel as bytes."""
    known = NUMPY_TYPES.get(found.kind)
    return (DTYPES["u8"], found.size) if known is None else (DTYPES[known], 1)

