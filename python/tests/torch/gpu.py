"""torch's tensors and streams of CUDA over the driver for tests, whose memory a program reads and writes at its addresses:
torch's own need a GPU. What torch would compute on a stream is computed by the host, when the stream has come to it.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

DRIVER = ctypes.CDLL("libcuda.so.1")
NOT_READY = 600


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the driver."""
    code = getattr(DRIVER, name)(*arguments)
    assert code == 0, (name, code)


class Event:
    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(self.handle), 2)

    def query(self) -> bool:
        code = DRIVER.cuEventQuery(self.handle)
        assert code in (0, NOT_READY), code
        return code == 0


class Stream:
    def __init__(self, device: torch.device | None = None) -> None:
        self.device = device or torch.device("cuda", 0)
        self.handle = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(self.handle), 1)

    @property
    def cuda_stream(self) -> int:
        return self.handle.value or 0

    def record_event(self) -> Event:
        event = Event()
        call("cuEventRecord", event.handle, self.handle)
        return event

    def wait_event(self, event: Event) -> None:
        call("cuStreamWaitEvent", self.handle, event.handle, 0)

    def wait_stream(self, other: Stream) -> None:
        self.wait_event(other.record_event())

    def synchronize(self) -> None:
        call("cuStreamSynchronize", self.handle)

    def captures(self) -> bool:
        status = ctypes.c_int()
        call("cuStreamIsCapturing", self.handle, ctypes.byref(status))
        return status.value == 1


_state = threading.local()


def current_stream(_: Any = None) -> Stream:
    if not hasattr(_state, "stream"):
        _state.stream = Stream()
    return _state.stream


@contextlib.contextmanager
def stream(wanted: Stream) -> Iterator[None]:
    before, _state.stream = current_stream(), wanted
    try:
        yield
    finally:
        _state.stream = before


class Tensor(torch.Tensor):
    """A tensor of the rank's GPU over memory of the driver, which ``host`` views."""

    host: torch.Tensor

    @staticmethod
    def __new__(cls, host: torch.Tensor, device: int) -> Tensor:
        made = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, host.size(), strides=host.stride(), dtype=host.dtype, device=torch.device("cuda", device)
        )
        made.host = host
        return made

    def data_ptr(self) -> int:
        return self.host.data_ptr()

    @classmethod
    def __torch_function__(cls, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name in ("__get__", "__set__", "data_ptr", "requires_grad_"):
            # What a tensor tells of itself.
            with torch._C.DisableTorchFunctionSubclass():
                return function(*args, **kwargs)
        ours = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        if not current_stream().captures():
            current_stream().synchronize()
        got = function(*tree_map_only(Tensor, lambda of: of.host, args), **tree_map_only(Tensor, lambda of: of.host, kwargs))
        if name == "cpu":
            return got.clone()
        places = {of.host.untyped_storage().data_ptr(): of for of in ours}

        def place(host: torch.Tensor) -> torch.Tensor:
            same = next((of for of in ours if of.host is host), None)
            if same is not None:
                return same
            view = host.untyped_storage().data_ptr() in places
            return Tensor(host if view else on_gpu(host), ours[0].device.index)

        return tree_map_only(torch.Tensor, place, got)

    @classmethod
    def __torch_dispatch__(cls, function: Any, *_: Any) -> Any:
        raise NotImplementedError(f"{function} of a GPU's tensor")


def on_gpu(host: torch.Tensor) -> torch.Tensor:
    """A copy in memory of the driver, seen from the host."""
    host = host.contiguous()
    size = host.numel() * host.element_size()
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(1, size)))
    bytes_ = torch.frombuffer((ctypes.c_byte * max(1, size)).from_address(address.value), dtype=torch.uint8)
    made = bytes_[:size].view(host.dtype).view(host.shape)
    return made.copy_(host)


def tensor(host: torch.Tensor, device: int) -> Tensor:
    """A tensor on the GPU with the elements of ``host``."""
    return Tensor(on_gpu(host), device)


def read(of: Tensor) -> torch.Tensor:
    """The elements, once the current stream has come here."""
    current_stream().synchronize()
    return of.host.clone()


def install(device: int) -> None:
    """Opens the GPU, and puts streams and tensors in the place of torch's."""
    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    torch.cuda.current_stream = current_stream
    torch.cuda.stream = stream
    torch.cuda.Stream = Stream
    torch.cuda.is_current_stream_capturing = lambda: current_stream().captures()
    future = torch.futures.Future
    torch.futures.Future = lambda *, devices=None: future()
