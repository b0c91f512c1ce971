"""A producer of DLPack, whose description of its memory the tests choose."""

import ctypes
from ctypes import POINTER, Structure, c_int64, c_void_p, cast, py_object, pythonapi

from roundelay import _arrays

_new = pythonapi.PyCapsule_New
_new.argtypes, _new.restype = [c_void_p, c_void_p, c_void_p], py_object


class Produced:
    """Memory of ``words`` bytes as a tensor: of ``shape``, of elements ``(code, bits)`` of DLPack."""

    def __init__(self, shape, kind=(2, 32), /, *, strides=None, device=1, says=None, flags=0, versioned=True, major=1, **more):
        self.shape, self.asked = shape, []
        self._bytes = ctypes.create_string_buffer(more.pop("room", 4096))
        self._shape = (c_int64 * max(1, len(shape)))(*shape)
        self._strides = (c_int64 * len(strides))(*strides) if strides else None
        self._all = _arrays._Versioned(major=major, minor=0, flags=flags)
        tensor = self._all.tensor
        tensor.data, tensor.device, tensor.dimensions = ctypes.addressof(self._bytes), device, len(shape)
        (tensor.kind, tensor.bits), tensor.lanes = kind, 1
        tensor.shape = cast(self._shape, POINTER(c_int64))
        if strides:
            tensor.strides = cast(self._strides, POINTER(c_int64))
        for name, value in more.items():
            setattr(tensor, name, value)
        self._device, self._is_versioned = device if says is None else says, versioned
        self._name = ctypes.create_string_buffer(b"dltensor_versioned" if versioned else b"dltensor")

    def view(self, numpy, kind):
        """The memory as an array of NumPy."""
        return numpy.frombuffer(self._bytes, kind)

    def __dlpack_device__(self):
        return (self._device, 0)

    def __dlpack__(self, **asked):
        if asked and not self._is_versioned:
            raise TypeError(f"unexpected arguments {sorted(asked)}")
        self.asked.append(asked)
        at = ctypes.addressof(self._all if self._is_versioned else self._all.tensor)
        return _new(at, ctypes.addressof(self._name), None)
