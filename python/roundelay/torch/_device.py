"""Tensors on GPUs: the calls of a rank on the memory of its GPU, in the order of CUDA's streams.

A synchronous call is issued on the current stream. A call with ``async_op=True`` is issued on a stream of the group's own,
which begins where the current stream is; ``wait`` has the current stream wait for that call. No call waits on the host, so
the error of a call comes from a later one: the next call of its shape, a barrier, or the end of the group.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from ._elements import copied
from ._handles import searched
from ._layout import Copy, shown, together
from ._parts import ALL_GATHER, ALL_TO_ALL, GATHER, REDUCE_SCATTER, SCATTER, Part
from ._work import Done, Named, Pending

_PAUSE = 5e-5
"""The seconds between two questions whether a stream has passed an event."""


class Gpu:
    """The GPU of a rank, which is that of its first tensor there."""

    def __init__(self, world: Any, nranks: int, named: Named) -> None:
        self._world = world
        self._nranks = nranks
        self._named = named
        self._device: Optional[torch.device] = None
        self._own: Any = None
        """The stream of the calls that do not block."""

    def make(
        self, call: str, places: set[Optional[torch.device]], several: Sequence[Part], outputs: Any, is_async: bool
    ) -> Optional[Pending]:
        """Issues calls on tensors in these places. Returns what waits for them, where they do not block."""
        device = self._open(places)
        several = [self._whole(part) for part in several]
        by_host = any(part.elements is None for part in several)
        if by_host or not is_async:
            self._issue(several, device)
            return Done(call, outputs, self._named) if is_async else None
        before = torch.cuda.current_stream(device)
        if self._own is None:
            self._own = torch.cuda.Stream(device)
        self._own.wait_stream(before)
        with torch.cuda.stream(self._own):
            self._issue(several, device)
        captured = torch.cuda.is_current_stream_capturing()
        return Issued(call, (several, outputs), outputs, self._named, self._own, captured)

    def settle(self) -> None:
        """Waits until all calls are over, and raises the error of one that failed."""
        if self._device is not None:
            torch.cuda.current_stream(self._device).synchronize()
            self._world.device_wait()

    def _open(self, places: set[Optional[torch.device]]) -> torch.device:
        wanted, *others = places
        if others or wanted is None:
            raise TypeError("tensors of one call are in several places: give all of them on one GPU")
        if self._device is None:
            index = wanted.index if wanted.index is not None else torch.cuda.current_device()
            self._world.on_device(index)
            self._device = torch.device("cuda", index)
        if wanted != self._device:
            raise ValueError(
                f"a tensor is on {wanted}, and the GPU of this rank is {self._device}, where its first tensor was: "
                "a rank has one GPU, which torch.cuda.set_device chooses"
            )
        return self._device

    def _issue(self, several: Sequence[Part], device: torch.device) -> None:
        """Issues calls, and the copies after them, in the order of the current stream."""
        for part in several:
            if part.elements is None:
                part.run(self._world)
                continue
            self._world.call_on_stream(*part.buffers(), torch.cuda.current_stream(device).cuda_stream)
            if part.copy is not None:
                part.copy()

    def _whole(self, part: Part) -> Part:
        """A call of lists as a call with one count: its blocks come from one tensor, or go to one. Blocks of different
        lengths go through memory of the host, as those of all_to_all do: a rank does not know the lengths of others."""
        if part.elements is not None:
            return part
        given, taken, kind = list(part.given or ()), list(part.taken or ()), part.collective
        lengths = sorted({block.numel() for block in (*given, *taken)})
        if kind == ALL_TO_ALL or len(lengths) > 1 and kind in (ALL_GATHER, REDUCE_SCATTER):
            return _by_host(part, given, taken)
        if len(lengths) > 1:
            sizes = ", ".join(shown(block) for block in (*given, *taken))
            raise ValueError(f"the tensors are {sizes}: on a GPU those of a gather or a scatter have as many elements")
        own = given[0] if kind in (ALL_GATHER, GATHER) else taken[0]
        count = own.numel() if kind == REDUCE_SCATTER else copied(own)[1]
        source: Optional[torch.Tensor] = given[0] if given else None
        target: Optional[torch.Tensor] = taken[0] if taken else None
        landing: Copy = None
        if kind in (REDUCE_SCATTER, SCATTER) and given:
            source = torch.cat([block.detach().reshape(-1) for block in given])
        elif kind in (ALL_GATHER, GATHER) and taken:
            whole = own.detach().new_empty((self._nranks, own.numel()))
            landing, target = _onto(list(whole), taken), whole
        return part._replace(given=source, taken=target, elements=count, copy=together([landing, part.copy]))


def _by_host(part: Part, given: Sequence[torch.Tensor], taken: Sequence[torch.Tensor]) -> Part:
    """The call on copies in memory of the host."""
    outputs = [torch.empty(block.shape, dtype=block.dtype) for block in taken]
    inputs = [block.detach().cpu() for block in given]
    return part._replace(given=inputs, taken=outputs, copy=together([_onto(outputs, taken), part.copy]))


def _onto(sources: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]) -> Callable[[], object]:
    """Copies each tensor onto another one of as many elements."""

    def copy() -> None:
        for source, target in zip(sources, targets):
            target.detach().copy_(source.view(target.shape))

    return copy


class Issued(Pending):
    """Calls on a stream of the group's own. ``kept`` are the tensors that they read and write."""

    def __init__(self, call: str, kept: Any, outputs: Any, named: Named, stream: Any, captured: bool) -> None:
        super().__init__(call, outputs, named)
        self._kept = kept
        self._stream = stream
        self._event = stream.record_event()
        self._captured = captured
        """Whether a graph has the calls, which run when the graph does: the stream that waits for them has them behind it."""

    def wait(self, timeout: Any = None) -> bool:
        """Has the current stream wait for the calls. With a time, the host waits until they are done."""
        seconds = timeout.total_seconds() if timeout is not None else 0.0
        if seconds > 0.0:
            return super().wait(timeout)
        torch.cuda.current_stream(self._stream.device).wait_event(self._event)
        if self._captured:
            self._end(None)
        return True

    def until(self, seconds: Optional[float]) -> bool:
        if self._captured:
            return self.done or seconds is None
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while not self._event.query():
                if end is not None and time.monotonic() >= end:
                    return False
                time.sleep(_PAUSE)
            error = None
        except Exception as raised:
            error = self.named(self.call, raised)
        self._end(error)
        return True

    def _end(self, error: Optional[Exception]) -> None:
        self._kept = None
        self.finish(error)

    def get_future(self) -> torch.futures.Future[Any]:
        """A future that has its value at once: the streams of its readers wait for the calls."""
        nothing = searched(self)
        if nothing is not None:
            return nothing
        with self._state:
            if self._future is None:
                self._future = torch.futures.Future(devices=[self._stream.device])
                with torch.cuda.stream(self._stream):
                    self._future.set_result(self.outputs)
            return self._future
