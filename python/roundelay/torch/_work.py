"""The result of a call that does not block: torch's ``Work``, for collectives and for messages.

The library makes the calls of a group one after another in a thread that never holds Python's lock. So there is no work
here until a user waits. Only a call whose output has to be copied, or whose future was asked for, has a Python thread
that waits for it, the group's *finisher*.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Optional

import torch
from torch.distributed import Work

from ._handles import searched

ONCE = timedelta(0)
"""The timeout that torch passes to ``wait`` where the user has given no time."""


Named = Callable[[str, Exception], Exception]
"""Adds the call to the message of an error."""


class Pending(Work):
    """A call under way. It holds its tensors until it is done, also if the user has dropped it."""

    def __init__(self, call: str, outputs: Any, named: Named, timeout: Optional[float] = None) -> None:
        super().__init__()
        self.call = call
        self.named = named
        self.outputs = outputs
        """The value of the future."""
        self.error: Optional[Exception] = None
        self.told = False
        """Whether the error was reported to the user."""
        self.done = False
        self._timeout = timeout
        self._promise: Optional[torch.futures.Future[Any]] = None
        self._future: Optional[torch.futures.Future[Any]] = None
        self._state = threading.Lock()

    def until(self, seconds: Optional[float]) -> bool:
        """Waits until the call is done, at most ``seconds``. Returns whether it is done."""
        raise NotImplementedError

    def promised(self) -> None:
        """Called when the user asks for the future: from now on the future is set when the call is done."""

    def finish(self, error: Optional[Exception]) -> None:
        """Marks the call as done."""
        with self._state:
            self.error = error
            self.done = True
            promise = self._promise
        if promise is not None:
            self._keep(promise)

    def _keep(self, promise: torch.futures.Future[Any]) -> None:
        if self.error is None:
            promise.set_result(self.outputs)
        else:
            self.told = True
            promise.set_exception(self.error)

    def wait(self, timeout: timedelta = ONCE) -> bool:
        """Waits until the call is done and raises its error; RuntimeError where it is not done in time.

        A timeout is only that of this wait: the call is still under way after it, and can be waited for again.
        """
        seconds = timeout.total_seconds() if timeout > ONCE else self._timeout
        if not self.done and not self.until(seconds):
            late = f"not done after {seconds:g} s, and still under way: wait for it again, or longer"
            raise self.named(self.call, RuntimeError(late))
        if self.error is not None:
            self.told = True
            raise self.error
        return True

    def is_completed(self) -> bool:
        """Whether the call is done, well or not."""
        return self.done or self.until(0.0)

    def is_success(self) -> bool:
        """Whether the call is done, and well."""
        return self.is_completed() and self.error is None

    def exception(self) -> Optional[Exception]:
        """The error of a call that is done."""
        if self.is_completed() and self.error is not None:
            self.told = True
        return self.error

    def result(self) -> Any:
        """The tensors that the call writes."""
        return self.outputs

    def synchronize(self) -> None:
        """Waits until the call is done."""
        self.wait()

    def get_future(self) -> torch.futures.Future[Any]:
        """A future of the tensors that the call writes."""
        nothing = searched(self)
        if nothing is not None:
            return nothing
        with self._state:
            if self._future is not None:
                return self._future
            promise: torch.futures.Future[Any] = torch.futures.Future()
            # An exception of a callback is an error for waiters in C++ too; `set_exception` is an error in Python only.
            self._future = promise.then(torch.futures.Future.value)
            self._promise = promise
            done = self.done
        if done:
            self._keep(promise)
        else:
            self.promised()
        return self._future


class Collective(Pending):
    """A collective that the library's thread makes. ``kept`` are the tensors that it reads and writes."""

    def __init__(
        self,
        call: str,
        request: Any,
        kept: Any,
        outputs: Any,
        named: Named,
        timeout: Optional[float],
        finisher: Finisher,
        copy: Optional[Callable[[], object]],
    ) -> None:
        super().__init__(call, outputs, named, timeout)
        self._request = request
        self._kept = kept
        self._copy = copy
        self._finisher = finisher
        self._waiting = threading.Lock()
        """Held by the one thread that waits for the library."""
        if copy is not None:
            finisher.put(self)

    def promised(self) -> None:
        self._finisher.put(self)

    def until(self, seconds: Optional[float]) -> bool:
        begun = time.monotonic()
        if not self._waiting.acquire(timeout=-1 if seconds is None else seconds):
            return self.done
        try:
            if self.done:
                return True
            left = None if seconds is None else max(0.0, seconds - (time.monotonic() - begun))
            try:
                if left == 0.0 and not self._request.test():
                    return False
                if not self._request.wait(left or None):
                    return False
                if self._copy is not None:
                    self._copy()
                error = None
            except Exception as raised:
                error = self.named(self.call, raised)
            self._request = self._kept = self._copy = None
            self.finish(error)
            return True
        finally:
            self._waiting.release()


class Several:
    """Several requests as one request for a waiter."""

    def __init__(self, requests: list[Any]) -> None:
        self._requests = requests

    def test(self) -> bool:
        """Whether all requests are done."""
        return all(request.test() for request in self._requests)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits for all requests, which are done in their order; raises the first error."""
        until = None if timeout is None else time.monotonic() + timeout
        error: Optional[Exception] = None
        while self._requests:
            try:
                if not self._requests[0].wait(None if until is None else max(0.0, until - time.monotonic())):
                    return False
            except Exception as raised:
                error = error or raised
            del self._requests[0]
        if error is not None:
            raise error
        return True


class Done(Pending):
    """A call that was made at once."""

    def __init__(self, call: str, outputs: Any, named: Named) -> None:
        super().__init__(call, outputs, named)
        self.done = True


class Message(Pending):
    """A send or a receive, which a thread of the group's mail makes."""

    def __init__(self, call: str, tensor: torch.Tensor, named: Named) -> None:
        super().__init__(call, [tensor], named)
        self._ended = threading.Event()
        self.copy: Optional[Callable[[], object]] = None
        """The copy to a GPU, in the order of the stream that is current in ``wait``."""

    def wait(self, timeout: timedelta = ONCE) -> bool:
        super().wait(timeout)
        with self._state:
            copy, self.copy = self.copy, None
        if copy is not None:
            copy()
        return True

    def until(self, seconds: Optional[float]) -> bool:
        return self._ended.wait(seconds)

    def finish(self, error: Optional[Exception]) -> None:
        super().finish(error)
        self._ended.set()


class Finisher:
    """The thread that waits for calls whose output is copied or has a future; it starts when it is needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._works: queue.SimpleQueue[Optional[Pending]] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None
        self._starting = threading.Lock()

    def put(self, work: Pending) -> None:
        """Adds a call to wait for, after the calls before it."""
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()
        self._works.put(work)

    def _run(self) -> None:
        while True:
            work = self._works.get()
            if work is None:
                return
            work.until(None)
            # Otherwise the last call would live until the next call.
            del work

    def close(self) -> None:
        """Ends the thread when all calls before are done."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._works.put(None)
            if thread is not threading.current_thread():
                thread.join()
