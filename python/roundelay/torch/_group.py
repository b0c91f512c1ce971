"""The backend: the methods that torch.distributed calls for a process group, in terms of the library's world.

The calling thread makes the calls that torch marks as synchronous; the library's thread makes all other calls, in the
order of their requests.
"""

from __future__ import annotations

import collections
import ctypes
import functools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Optional, TypeVar, cast

import torch
from torch._C._distributed_c10d import Backend, ProcessGroup, Store

from roundelay._library import Error

from . import _direct
from . import _parts as parts
from ._device import Gpu
from ._elements import MAX, U8
from ._errors import named
from ._layout import check, together
from ._mail import Mail
from ._monitored import monitored_barrier
from ._parts import Part, one
from ._work import Collective, Done, Finisher, Message, Pending, Several

_VOID = "E0414"
"""The code of a call that is void for all ranks."""

_UNSET = timedelta(0)
"""A timeout in torch's options that is below this value means no timeout."""

_OF_ARGUMENTS = (TypeError, ValueError, NotImplementedError)
"""The errors of a call that is not made, because of its arguments."""

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _names(call: str, collective: bool = True) -> Callable[[_Method], _Method]:
    """Has errors name the call and the rank. The other ranks hear of a collective that this rank cannot make."""

    def of(method: _Method) -> _Method:
        @functools.wraps(method)
        def made(self: Group, *args: Any) -> Any:
            try:
                return method(self, *args)
            except Exception as error:
                # A call on GPUs is in the order of their streams, where no rank can be told of a call that is not made.
                hears = collective and isinstance(error, _OF_ARGUMENTS) and not _on_gpu(args)
                late = self._refused(error) if hears else None
                raise self.named(call, late or error) from error.__cause__

        return cast(_Method, made)

    return of


class Group(Backend):
    """A process group whose ranks are processes, of one host or of several."""

    # torch reads these attributes of a backend that is written in Python by their names.
    supports_splitting = False
    supports_coalescing = False
    supports_shrinking = False
    supports_reconfigure = False
    supports_window = False
    _supports_time_estimate = False

    def __init__(
        self, world: Any, store: Store, rank: int, nranks: int, timeout: timedelta, members: Sequence[int]
    ) -> None:
        super().__init__(rank, nranks)
        self.world = world
        self._store = store
        self._rank = rank
        self._nranks = nranks
        self._timeout = timeout
        self._options = Backend.Options("roundelay", timeout)
        self._members = list(members)
        """The ranks of the default group that are in this group; empty where it has all ranks."""
        self._calls = ctypes.c_uint64()
        self._monitored = 0
        self._closed = False
        self._finisher = Finisher("roundelay finisher")
        self._mail = Mail(world, rank, self.named)
        self._gpu = Gpu(world, nranks, self.named)
        self._under_way: collections.deque[Pending] = collections.deque()
        self._come = torch.zeros(1, dtype=torch.uint8)
        self._direct: Optional[list[ProcessGroup]] = None
        """The process groups whose plain calls come without torch's dispatcher."""

    def getBackendName(self) -> str:
        """The name that the backend is registered by."""
        return "roundelay"

    @property
    def options(self) -> Backend.Options:
        """The name of the backend and the deadline of its waits."""
        return self._options

    def named(self, call: str, error: Exception) -> Exception:
        """The error, with the call and the rank in the message."""
        group = f" of the group of ranks {self._members}" if self._members else ""
        return named(error, call, f"rank {self._rank}{group}")

    def _refused(self, error: Exception) -> Optional[Exception]:
        """Tells the other ranks why this rank makes no call: the error of an earlier void call, if there is one."""
        try:
            self.world.refuse(str(error))
        except Error as late:
            return late if late.code == _VOID else None
        return None

    # How a call is made.

    def _make(self, call: str, opts: Any, part: Part, outputs: Any) -> Optional[Pending]:
        """Makes a call in this thread, or has the library's thread make it."""
        if (gpu := part.gpu) is not None:
            return self._make_on_gpu(call, opts, {gpu}, [part], outputs)
        self._calls.value += 1
        if not opts.asyncOp and opts.timeout < _UNSET:
            if self._under_way:
                self._settle()
            if self._direct is None:
                self._direct = _direct.enrol(self, self._calls, self._under_way)
            part.run(self.world)
            return None
        self._forget()
        return self._started(call, opts, part.start(self.world), part, outputs, part.copy)

    def _make_all(self, call: str, opts: Any, several: list[Part], outputs: Any) -> Optional[Pending]:
        """Has several calls made that are one ``Work`` for a waiter."""
        if not several:
            return Done(call, outputs, self.named) if opts.asyncOp else None
        places = {part.gpu for part in several}
        if places != {None}:
            return self._make_on_gpu(call, opts, places, several, outputs)
        self._forget()
        requests = []
        try:
            for part in several:
                self._calls.value += 1
                requests.append(part.start(self.world))
        except Exception:
            if requests:
                # The tensors of the calls that were started live until these are done.
                request = Several(requests)
                started = Collective(call, request, (several, outputs), outputs, self.named, None, self._finisher, None)
                self._under_way.append(started)
            raise
        copy = together(part.copy for part in several)
        return self._started(call, opts, Several(requests), several, outputs, copy)

    def _make_on_gpu(
        self, call: str, opts: Any, places: set[Optional[torch.device]], several: list[Part], outputs: Any
    ) -> Optional[Pending]:
        """Makes calls on memory of the rank's GPU."""
        if not torch.cuda.is_current_stream_capturing():
            # Whether a stream has passed an event cannot be asked while a graph captures.
            self._forget()
        work = self._gpu.make(call, places, several, outputs, opts.asyncOp)
        self._calls.value += len(several)
        if work is not None:
            self._under_way.append(work)
        return work

    def _started(
        self, call: str, opts: Any, request: Any, kept: Any, outputs: Any, copy: Optional[Callable[[], object]]
    ) -> Optional[Pending]:
        timeout = opts.timeout
        seconds = None if timeout < _UNSET else timeout.total_seconds()
        work = Collective(call, request, (kept, outputs), outputs, self.named, seconds, self._finisher, copy)
        self._under_way.append(work)
        if opts.asyncOp:
            return work
        work.wait()
        return None

    def _forget(self) -> None:
        """Drops the calls that are done. Raises an error that was not reported before."""
        while self._under_way and self._under_way[0].is_completed():
            self._tell(self._under_way.popleft())

    def _settle(self) -> None:
        """Waits for the calls under way. Raises an error that was not reported before."""
        while self._under_way:
            work = self._under_way.popleft()
            work.until(None)
            self._tell(work)

    @staticmethod
    def _tell(work: Pending) -> None:
        if work.error is not None and not work.told:
            work.told = True
            raise work.error

    # Collectives that reduce.

    @_names("all_reduce")
    def allreduce(self, tensors: list[torch.Tensor], opts: Any) -> Optional[Pending]:
        """Reduces a tensor of each rank, in place."""
        return self._make("all_reduce", opts, parts.all_reduce(one(tensors), opts.reduceOp), tensors)

    @_names("all_reduce")
    def allreduce_sparse(self, tensors: list[torch.Tensor], opts: Any) -> Optional[Pending]:
        """Refuses tensors that are sparse."""
        return self._make("all_reduce", opts, parts.all_reduce(one(tensors), opts.reduceOp), tensors)

    @_names("all_reduce_coalesced")
    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any) -> Optional[Pending]:
        """Reduces several tensors of each rank, in place."""
        several = [parts.all_reduce(one([tensor]), opts.reduceOp) for tensor in tensors]
        return self._make_all("all_reduce_coalesced", opts, several, tensors)

    @_names("reduce")
    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Optional[Pending]:
        """Reduces a tensor of each rank into the tensor of the root."""
        part = parts.reduce(one(tensors), opts.reduceOp, opts.rootRank, self._rank)
        return self._make("reduce", opts, part, tensors)

    @_names("reduce_scatter")
    def reduce_scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any
    ) -> Optional[Pending]:
        """Reduces a list of tensors, and gives each rank one of the results."""
        given = _list(inputs, "inputs")
        part = parts.reduce_scatter_list(one(outputs), given, opts.reduceOp, self._rank, self._nranks)
        return self._make("reduce_scatter", opts, part, outputs)

    @_names("reduce_scatter_single")
    def reduce_scatter_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any) -> Optional[Pending]:
        """Reduces a tensor, and gives each rank a part."""
        part = parts.reduce_scatter(output, given, opts.reduceOp, self._nranks)
        return self._make("reduce_scatter_single", opts, part, [output])

    @_names("reduce_scatter_single_coalesced")
    def reduce_scatter_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any
    ) -> Optional[Pending]:
        """Reduces several tensors, and gives each rank a part of each."""
        pairs = _pairs(outputs, inputs)
        several = [parts.reduce_scatter(output, given, opts.reduceOp, self._nranks) for output, given in pairs]
        return self._make_all("reduce_scatter_single_coalesced", opts, several, outputs)

    # Collectives that copy.

    @_names("broadcast")
    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Optional[Pending]:
        """Copies the tensor of the root to the tensors of all ranks."""
        return self._make("broadcast", opts, parts.broadcast(one(tensors), opts.rootRank), tensors)

    @_names("all_gather")
    def allgather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any
    ) -> Optional[Pending]:
        """Copies a tensor of each rank to a list at all ranks."""
        taken = _list(outputs, "outputs")
        return self._make("all_gather", opts, parts.all_gather_list(taken, one(inputs), self._rank, self._nranks), taken)

    @_names("all_gather_coalesced")
    def allgather_coalesced(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any
    ) -> Optional[Pending]:
        """Copies several tensors of each rank to lists at all ranks: ``outputs[rank][i]`` is that rank's tensor i."""
        if len(outputs) != self._nranks or any(len(row) != len(inputs) for row in outputs):
            raise ValueError(
                f"the lists of outputs are of {[len(row) for row in outputs]} tensors: "
                f"give {self._nranks} lists, each of {len(inputs)}"
            )
        several = [
            parts.all_gather_list([row[at] for row in outputs], given, self._rank, self._nranks)
            for at, given in enumerate(inputs)
        ]
        return self._make_all("all_gather_coalesced", opts, several, outputs)

    @_names("all_gather_single")
    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any) -> Optional[Pending]:
        """Copies a tensor of each rank to a part of one tensor, at all ranks."""
        return self._make("all_gather_single", opts, parts.all_gather(output, given, self._nranks), [output])

    @_names("all_gather_single_coalesced")
    def all_gather_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any
    ) -> Optional[Pending]:
        """Copies several tensors of each rank to parts of tensors, at all ranks."""
        several = [parts.all_gather(output, given, self._nranks) for output, given in _pairs(outputs, inputs)]
        return self._make_all("all_gather_single_coalesced", opts, several, outputs)

    @_names("gather")
    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any) -> Optional[Pending]:
        """Copies a tensor of each rank to a list at the root."""
        root = opts.rootRank
        taken = _list(outputs, "outputs") if self._rank == root else [each for row in outputs for each in row]
        part = parts.gather(taken, one(inputs), root, self._rank, self._nranks)
        return self._make("gather", opts, part, taken)

    @_names("scatter")
    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any) -> Optional[Pending]:
        """Copies each tensor of a list at the root to a rank."""
        root = opts.rootRank
        given = _list(inputs, "inputs") if self._rank == root else [each for row in inputs for each in row]
        part = parts.scatter(one(outputs), given, root, self._rank, self._nranks)
        return self._make("scatter", opts, part, outputs)

    @_names("all_to_all_single")
    def all_to_all_single(
        self, output: torch.Tensor, given: torch.Tensor, output_sizes: list[int], input_sizes: list[int], opts: Any
    ) -> Optional[Pending]:
        """Sends a part of a tensor to each rank."""
        check(output, "the output")
        check(given, "the input")
        outputs = parts.splits(output, output_sizes, self._nranks, "output")
        inputs = parts.splits(given, input_sizes, self._nranks, "input")
        if not output_sizes and not input_sizes:
            part = parts.all_to_all(output, given, self._nranks)
        else:
            part = parts.all_to_all_list(outputs, inputs)
        return self._make("all_to_all_single", opts, part, [output])

    @_names("all_to_all")
    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any) -> Optional[Pending]:
        """Sends a tensor of a list to each rank."""
        for what, tensors in (("inputs", inputs), ("outputs", outputs)):
            if len(tensors) != self._nranks:
                raise ValueError(f"the {what} are {len(tensors)}: give one for each of the {self._nranks} ranks")
            for tensor in tensors:
                check(tensor, f"one of the {what}")
        return self._make("all_to_all", opts, parts.all_to_all_list(outputs, inputs), outputs)

    # Messages.

    @_names("send", collective=False)
    def send(self, tensors: list[torch.Tensor], to: int, tag: int) -> Message:
        """Sends a tensor to a rank."""
        return self._mail.send(one(tensors), to, tag)

    @_names("recv", collective=False)
    def recv(self, tensors: list[torch.Tensor], source: int, tag: int) -> Message:
        """Receives a tensor from a rank."""
        return self._mail.recv(one(tensors), source, tag)

    @_names("recv", collective=False)
    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> Message:
        """Refuses to receive from any source."""
        raise NotImplementedError("a message of any rank cannot be received: give src=, the rank that sends it")

    # Barriers.

    @_names("barrier")
    def barrier(self, opts: Any) -> Optional[Pending]:
        """Returns when all ranks have come, and their calls on GPUs are over. A timeout ends only this call: the group works
        on after it."""
        self._gpu.settle()
        part = Part(parts.ALL_REDUCE, self._come, self._come, 1, U8, MAX)
        return self._make("barrier", opts, part, [])

    @_names("monitored_barrier", collective=False)
    def monitored_barrier(self, opts: Any, wait_all_ranks: bool = False) -> None:
        """A barrier whose error names the ranks that did not come."""
        timeout = self._timeout if opts.timeout < _UNSET else opts.timeout
        turn, self._monitored = self._monitored, self._monitored + 1
        monitored_barrier(self._store, turn, self._rank, self._nranks, timeout, wait_all_ranks)

    # The group itself.

    def _set_sequence_number_for_group(self) -> None:
        """Numbers begin at 0 at every rank."""

    def _get_sequence_number_for_group(self) -> int:
        """The number of collectives that were called."""
        return self._calls.value

    @_names("set_timeout", collective=False)
    def set_timeout(self, timeout: timedelta) -> None:
        """Refuses a deadline that differs from the deadline of the group."""
        if timeout != self._timeout:
            raise NotImplementedError(
                f"the deadline of a group is fixed when it is made, this one's at {self._timeout.total_seconds():g} s: "
                "give timeout= to init_process_group or new_group"
            )

    def abort(self) -> None:
        """Ends the calls under way, here and at all other ranks, with an error."""
        self._leave()
        self.world.abort()

    def _leave(self) -> None:
        self._closed = True
        _direct.leave(self._direct or [])

    @_names("destroy_process_group", collective=False)
    def shutdown(self) -> None:
        """Waits for the calls under way and leaves the group."""
        if self._closed:
            return
        self._leave()
        for work in list(self._under_way):
            work.until(None)
        self._under_way.clear()
        self._finisher.close()
        try:
            self._gpu.settle()
        finally:
            if self._mail.close():
                self.world.close()
            else:
                # A thread still waits in a receive for a message: it ends with the world.
                why = f"rank {self._rank} left the group while it waited for a message"
                self.world.abort(why)


def _on_gpu(args: Any) -> bool:
    """Whether any tensor of a call is on a GPU."""
    if isinstance(args, torch.Tensor):
        return args.is_cuda
    return isinstance(args, (list, tuple)) and any(_on_gpu(each) for each in args)


def _list(lists: Sequence[list[torch.Tensor]], what: str) -> list[torch.Tensor]:
    """The one list of lists that torch passes."""
    if len(lists) != 1:
        raise ValueError(f"{len(lists)} lists of {what}: give one")
    return lists[0]


def _pairs(
    outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Each output with its input."""
    if len(outputs) != len(inputs):
        raise ValueError(f"{len(outputs)} outputs and {len(inputs)} inputs: give as many of both")
    return list(zip(outputs, inputs))
