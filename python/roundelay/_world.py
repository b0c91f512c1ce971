"""Worlds of processes, their calls by codes and addresses, and memory that their ranks share."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_int64, c_uint32, c_uint64, c_void_p
from typing import Callable, Sequence, Tuple

from ._codes import CHECKS, COLLECTIVES, PROMISES, SITES, USUAL_WAYS
from ._collectives import Collectives
from ._library import ALLGATHER, Error, Options, _library, checked, failed

__all__ = ["Memory", "Request", "World"]

#: The result of ``roundelay_wait`` for a call that is not done.
_UNDER_WAY = -1
#: For ever, in milliseconds.
_EVER = -1
#: A size without a bound.
_NO_BOUND = 2**64 - 1


#: How often this process was forked off another process. Objects from before a fork belong to the parent and are not
#: given back here, because locks are in the state of the moment of the fork.
_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


def _options(
    timeout: float | None, check: str | None, measured: bool, sites: bool
) -> Options:
    if timeout is not None and not timeout > 0:
        raise ValueError(f"a timeout of {timeout} seconds leaves no time; None is the default")
    if check not in CHECKS:
        raise ValueError(f"check is {check!r}, and one of {', '.join(map(repr, CHECKS))}")
    milliseconds = 0 if timeout is None else max(1, min(round(timeout * 1000), 2**62))
    flags = CHECKS[check] | (0 if measured else USUAL_WAYS) | (SITES if sites else 0)
    return Options(ctypes.sizeof(Options), milliseconds, 2, flags)


#: A block of a buffer: its address, and its number of elements.
Block = Tuple[int, int]


def _blocks(blocks: Sequence[Block], size: int) -> tuple[int, object, object]:
    """The blocks of a buffer as C takes them: an address, the counts, and the places from that address."""
    first = next((address for address, count in blocks if count), 0)
    for address, count in blocks:
        if count and (address - first) % size:
            raise Error(
                f"a block at {address:#x} is not aligned for elements of {size} bytes", "E0404"
            )
    counts = (c_uint64 * len(blocks))(*(count for _, count in blocks))
    starts = (c_int64 * len(blocks))(
        *((address - first) // size if count else 0 for address, count in blocks)
    )
    return first, counts, starts


class Request:
    """A call that was started. Its buffers must live, and are the library's, until it is done."""

    __slots__ = ("_forks", "_handle", "_outcome")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._forks = _forks
        self._outcome: Error | None = None

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the call is done, or at most for the seconds of the timeout. Returns whether the call is done.
        Each wait raises the error of a failed call."""
        if self._handle:
            milliseconds = _EVER if timeout is None else max(0, round(timeout * 1000))
            status = _library.roundelay_wait(self._handle, milliseconds)
            if status == _UNDER_WAY:
                return False
            self._handle = 0
            try:
                checked(status)
            except Error as error:
                self._outcome = error
        if self._outcome is not None:
            raise self._outcome
        return True

    def test(self) -> bool:
        """Whether the call is done, also where it failed."""
        try:
            return self.wait(0)
        except Error:
            return True

    def __del__(self) -> None:
        # A call without a waiter is still made; the next call raises its error.
        if self._handle and self._forks == _forks and _library is not None:
            _library.roundelay_release(self._handle)


class Memory:
    """Memory of a world that all its ranks can touch: calls on these buffers make no extra copies. ``address``
    and ``bytes`` give its place; it is given back when this object goes, or when the world is closed."""

    __slots__ = ("__weakref__", "_world", "address", "bytes")

    def __init__(self, world: World, size: int) -> None:
        memory = c_void_p()
        self._world = world
        self.bytes = size
        checked(self._allocate(memory))
        self.address: int = memory.value or 0

    def _allocate(self, memory: c_void_p) -> int:
        return int(_library.roundelay_alloc(self._world._handle, self.bytes, byref(memory)))

    def __del__(self) -> None:
        if getattr(self, "address", 0) and self._world._is_open():
            _library.roundelay_free(self.address)


class DeviceMemory(Memory):
    """Memory of a rank's GPU that all ranks can map: calls on these buffers make no extra copies. Libraries make arrays of
    it by ``__cuda_array_interface__``, as bytes: ``torch.as_tensor(memory, device="cuda").view(torch.float32)``."""

    __slots__ = ()

    def _allocate(self, memory: c_void_p) -> int:
        return int(_library.roundelay_device_alloc(self._world._handle, self.bytes, byref(memory)))

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {"shape": (self.bytes,), "typestr": "|u1", "data": (self.address, False), "version": 3, "strides": None}


class World(Collectives):
    """Processes that run collectives together, on one host or on several, and the rank of this process.

    The collectives on arrays are methods: :class:`Collectives` describes them. :meth:`call` and its kin take codes and
    addresses.
    """

    __slots__ = ("__weakref__", "_device", "_forks", "_handle", "_shares", "nranks", "rank")

    rank: int
    nranks: int

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._forks = _forks
        self._shares: dict[tuple[str, str | None, str], World] = {}
        self._device: int | None = None
        number = c_uint32()
        checked(_library.roundelay_rank(handle, byref(number)))
        self.rank = number.value
        checked(_library.roundelay_nranks(handle, byref(number)))
        self.nranks = number.value

    @classmethod
    def from_env(
        cls,
        timeout: float | None = None,
        *,
        check: str | None = None,
        measured: bool = True,
        sites: bool = False,
    ) -> World:
        """The world that a launcher started this process in: ``roundelay launch``, torchrun, mpirun or srun.

        ``timeout`` is the deadline of every wait, in seconds; a minute unless told. With ``check="first"`` on all
        ranks, the first call of each shape checks itself on known data; with ``"never"`` no call does; None leaves it to the
        environment variable ``ROUNDELAY_CHECK``. Without ``measured`` on rank 0, data takes the usual ways, and nothing
        is measured. With ``sites``, or ``ROUNDELAY_SITES=1`` in the environment, ``roundelay ps`` tells the lines of
        Python from which the calls of this rank come; each call then takes some microseconds more."""
        world = c_uint64()
        options = _options(timeout, check, measured, sites)
        checked(_library.roundelay_init_from_env(byref(options), byref(world)))
        return cls(world.value)

    @classmethod
    def join(
        cls,
        id: bytes,
        nranks: int,
        rank: int,
        timeout: float | None = None,
        *,
        check: str | None = None,
        measured: bool = True,
        sites: bool = False,
    ) -> World:
        """Joins the world of an id of :func:`unique_id`, as rank ``rank`` of ``nranks``; all join at once. The options
        are those of :meth:`from_env`."""
        if len(id) != 128:
            raise ValueError(f"an id has 128 bytes, and this has {len(id)}")
        world = c_uint64()
        options = _options(timeout, check, measured, sites)
        checked(_library.roundelay_init_id(id, nranks, rank, byref(options), byref(world)))
        return cls(world.value)

    @classmethod
    def bootstrap(
        cls,
        nranks: int,
        rank: int,
        allgather: Callable[[bytes], bytes],
        timeout: float | None = None,
        *,
        check: str | None = None,
        measured: bool = True,
        sites: bool = False,
    ) -> World:
        """Joins through an existing connection of the processes: ``allgather`` takes bytes, and returns the bytes of
        all ranks in their order, the same number from each rank. It is called once, and once more where ranks are on
        several hosts: then its bytes have the key of the job, and messages between hosts go by TCP, in clear. Its
        exceptions are raised here. The options are those of :meth:`from_env`."""
        raised: list[BaseException] = []

        def gather(mine: int, all: int, size: int, _: int) -> int:
            try:
                got = allgather(ctypes.string_at(mine, size))
                if len(got) != size * nranks:
                    raise ValueError(
                        f"allgather returned {len(got)} bytes for {nranks} ranks of {size} each"
                    )
                ctypes.memmove(all, got, len(got))
            except BaseException as error:
                raised.append(error)
                return 1
            return 0

        world = c_uint64()
        options = _options(timeout, check, measured, sites)
        status = _library.roundelay_init_allgather(
            nranks, rank, ALLGATHER(gather), None, byref(options), byref(world)
        )
        if raised:
            raise raised[0]
        checked(status)
        return cls(world.value)

    def call(
        self,
        collective: int,
        input: int,
        output: int,
        count: int,
        dtype: int,
        op: int = 0,
        root: int = 0,
    ) -> None:
        """Makes a call, by codes and addresses, and returns when this rank is done."""
        status = _library.roundelay_call(self._handle, collective, input, output, count, dtype, op, root)
        if status:
            failed(status)

    def on_device(self, device: int) -> None:
        """Opens the GPU of that number for this rank; all ranks open theirs at once. From then on, the collectives on
        arrays take arrays of that GPU, in the order of the current stream of their library, and return at once. They run
        the algorithms that the world uses, as calls on memory of the host do. Calls of ranks on several hosts go through
        memory of the hosts."""
        checked(_library.roundelay_on_device(self._handle, device))
        self._device = device

    def call_on_stream(
        self,
        collective: int,
        input: int,
        output: int,
        count: int,
        dtype: int,
        op: int = 0,
        root: int = 0,
        stream: int = 0,
    ) -> None:
        """Issues a call on memory of the rank's GPU, by codes and addresses, in the order of a stream of CUDA, and returns
        at once."""
        status = _library.roundelay_call_on_stream(
            self._handle, collective, input, output, count, dtype, op, root, stream
        )
        if status:
            failed(status)

    def device_wait(self) -> None:
        """Waits until all calls on the rank's GPU are over, and raises their error."""
        checked(_library.roundelay_device_wait(self._handle))

    def device_alloc(self, size: int) -> DeviceMemory:
        """Memory of ``size`` bytes of the rank's GPU, all zero, that all ranks can map: from the second call of a shape on,
        calls use such buffers where they are. It goes with its last reference, which waits for the work of the GPU, or when
        the world is closed."""
        return DeviceMemory(self, size)

    def start(
        self,
        collective: int,
        input: int,
        output: int,
        count: int,
        dtype: int,
        op: int = 0,
        root: int = 0,
    ) -> Request:
        """Starts a call, by codes and addresses, and returns at once."""
        request = c_uint64()
        checked(
            _library.roundelay_start(
                self._handle, collective, input, output, count, dtype, op, root, byref(request)
            )
        )
        return Request(request.value)

    def call_v(
        self,
        collective: int,
        inputs: Sequence[Block],
        outputs: Sequence[Block],
        size: int,
        dtype: int,
        op: int = 0,
        root: int = 0,
    ) -> None:
        """Makes a call with a count for each block, and returns when this rank is done. ``inputs`` and ``outputs`` are
        the blocks in the order of ranks, as ``roundelay_call_v`` lists them, each an address and a number of elements
        of ``size`` bytes. Blocks may lie anywhere."""
        given, taken = _blocks(inputs, size), _blocks(outputs, size)
        checked(
            _library.roundelay_call_v(self._handle, collective, *given, *taken, dtype, op, root)
        )

    def start_v(
        self,
        collective: int,
        inputs: Sequence[Block],
        outputs: Sequence[Block],
        size: int,
        dtype: int,
        op: int = 0,
        root: int = 0,
    ) -> Request:
        """Starts a call with a count for each block, and returns at once."""
        request = c_uint64()
        given, taken = _blocks(inputs, size), _blocks(outputs, size)
        checked(
            _library.roundelay_start_v(
                self._handle, collective, *given, *taken, dtype, op, root, byref(request)
            )
        )
        return Request(request.value)

    def send(self, address: int, count: int, dtype: int, to: int) -> None:
        """Sends to rank ``to``, which receives the same number of elements of the same type."""
        checked(_library.roundelay_send(self._handle, address, count, dtype, to))

    def recv(self, address: int, count: int, dtype: int, sender: int) -> None:
        """Receives a message of rank ``sender``."""
        checked(_library.roundelay_recv(self._handle, address, count, dtype, sender))

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        checked(_library.roundelay_barrier(self._handle))

    def use(
        self,
        source: str,
        algorithm: str | None = None,
        collective: str | None = None,
        min_bytes: int = 0,
        max_bytes: int | None = None,
    ) -> None:
        """Runs an algorithm from now on for calls of its collective in a range of bytes. ``source`` is a text in the
        language, a path, or the name of an algorithm of the library; ``algorithm`` chooses one of several algorithms,
        and sets parameters: ``"MyRing slices=4"``. All ranks must use the same algorithm."""
        code = -1
        if collective is not None:
            if collective not in COLLECTIVES:
                raise ValueError(f"{collective!r} is none of {', '.join(COLLECTIVES)}")
            code = COLLECTIVES[collective]
        most = _NO_BOUND if max_bytes is None else max_bytes
        name = None if algorithm is None else algorithm.encode()
        checked(
            _library.roundelay_use(self._handle, source.encode(), name, code, min_bytes, most)
        )

    def promise(self, promises: str) -> None:
        """Keeps promises about the order of reductions from now on: a list such as ``"all_counts,roundings=1"``, or
        ``"all"``. Only algorithms whose certificate has them run. All ranks give the same promises."""
        checked(_library.roundelay_promise(self._handle, promises.encode()))

    def order(self, collective: int, count: int, dtype: int, op: int, root: int = 0) -> str:
        """The promises that the algorithm of a call keeps, as a list such as ``"all_ranks,every_run,roundings=7"``; an empty
        text where the collective does not reduce."""
        bits, roundings = c_uint32(), c_uint32()
        checked(
            _library.roundelay_order(
                self._handle, collective, count, dtype, op, root, byref(bits), byref(roundings)
            )
        )
        kept = [name for place, name in enumerate(PROMISES) if bits.value >> place & 1]
        return ",".join([*kept, f"roundings={roundings.value}"]) if roundings.value else ",".join(kept)

    def ways(self) -> list[str]:
        """The ways of data through the memory of this host that the world has chosen by measurement so far, in words.
        Rank 0 of the host measures; other ranks have none. The environment variable ``ROUNDELAY_WAYS`` has the values
        ``measured``, ``usual`` (no measurements) and ``kept`` (later worlds of this host begin with the chosen ways)."""
        text = c_char_p()
        checked(_library.roundelay_ways(self._handle, byref(text)))
        return (text.value or b"").decode().splitlines()

    def share(self) -> World:
        """A second ``World`` of this rank, for calls by another algorithm: both make the calls of one rank, in one order,
        and :meth:`use` and :meth:`promise` on one of them do not change the calls of the other. It begins with the
        algorithms of this one. The rank leaves when both are closed."""
        second = c_uint64()
        checked(_library.roundelay_share(self._handle, byref(second)))
        return World(second.value)

    def split(self, color: int | None, key: int = 0) -> World | None:
        """Makes of the ranks of each color a world of its own, in the order of their keys; None for no color."""
        part = c_uint64()
        number = -1 if color is None else color
        if number < 0 and color is not None:
            raise ValueError(f"color {color} is negative; None is no color")
        checked(_library.roundelay_split(self._handle, number, key, byref(part)))
        return World(part.value) if part.value else None

    def shrink(self) -> World:
        """After a failure, makes a new world of the ranks that are left; all these ranks call it."""
        rest = c_uint64()
        checked(_library.roundelay_shrink(self._handle, byref(rest)))
        return World(rest.value)

    def alloc(self, size: int) -> Memory:
        """Memory of ``size`` bytes, all zero, that all ranks can touch."""
        return Memory(self, size)

    def abort(self, why: str | None = None) -> None:
        """Ends all calls of all ranks: they and all later ones fail."""
        checked(_library.roundelay_abort(self._handle, None if why is None else why.encode()))

    def refuse(self, why: str) -> None:
        """Tells the other ranks that this rank does not make its next call: it is void for all, and they raise the
        reason at once (E0414). A call whose arguments are refused does it by itself."""
        checked(_library.roundelay_refuse(self._handle, why.encode()))

    def close(self) -> None:
        """Leaves the world, when the calls are done that are under way, and the other ranks are done with the last one:
        it raises the error of a call that was void, of which this rank was not told. Its memory goes with it."""
        while self._shares:
            self._shares.popitem()[1].close()
        handle, self._handle = self._handle, 0
        if handle:
            checked(_library.roundelay_finalize(handle))

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_open(self) -> bool:
        """Whether it is this process's, and was not closed."""
        return bool(getattr(self, "_handle", 0)) and self._forks == _forks and _library is not None

    def __del__(self) -> None:
        if self._is_open():
            # Python writes an error of a finalizer to the standard error.
            checked(_library.roundelay_finalize(self._handle))
