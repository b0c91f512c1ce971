"""The collectives of a world on arrays: one call each, without plans or codes."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any, Optional, Sequence, TypeVar, Union

from . import _arrays
from ._arrays import ArgumentError, Elements, read, written
from ._codes import COLLECTIVES, DTYPES, OPS, SIZES
from ._library import Error
from ._program import Program

if TYPE_CHECKING:
    from ._world import World

Array = TypeVar("Array")
#: An algorithm: the name of one of the library, a page, the path of a file, or what was compiled of one.
Algorithm = Union[str, "os.PathLike[str]", Program]

#: Ops that take booleans, 0 or 1, to booleans.
_LOGICAL = ("max", "min", "band", "bor", "bxor", "land", "lor", "lxor")
#: Codes of plans that cannot be made, beside E02xx and E03xx.
_NO_PLAN = ("E0407", "E0424", "E0425", "E0426")
#: Shares with algorithms of their own that a world keeps.
_KEPT = 32


class Collectives:
    """Collectives on arrays. All ranks make the same calls in the same order, with equally many elements of one type.

    An array is NumPy's, or any array of this host with ``__dlpack__``, such as a tensor of torch, in C order. Its element
    type is that of the call: the integers of 8, 32 and 64 bits, float16, float32, float64, bfloat16, float8_e4m3fn and
    float8_e5m2 are reduced; booleans are by logical ops; and where a collective only copies, elements may be of any type
    without references. A scalar of NumPy, such as a mean, is an array without axes, and its result a new one.

    Where input and output are blocks, one for each rank, blocks are along the first axis, in the order of ranks: n blocks
    of shape ``(k, *rest)`` are an array of shape ``(n * k, *rest)``. ``out`` is an array for the result, of any shape with
    as many elements; without it the result is a new array, or is in place where that is said.

    ``op`` is ``"sum"``, ``"prod"``, ``"max"``, ``"min"`` or ``"avg"``; for integers also ``"band"``, ``"bor"``, ``"bxor"``,
    ``"land"``, ``"lor"`` or ``"lxor"``, the bitwise and the logical and, or and exclusive or.

    ``algorithm`` names the algorithm of the call: ``"RingAllReduce"``, a page of the language, the path of a ``.coll``
    file, or a :class:`Program`. It is proved at the first call, as the library's algorithm is that a call without it has.

    :class:`ArgumentError`, with a code, is raised for an argument that does not fit; the other ranks are told (E0414), and
    later calls work.
    """

    __slots__ = ()

    rank: int
    nranks: int
    _shares: dict[tuple[str, Optional[str], str], World]

    def all_reduce(
        self, array: Array, op: str = "sum", *, out: Optional[Array] = None, algorithm: Optional[Algorithm] = None
    ) -> Array:
        """Reduces the arrays of all ranks element by element; every rank gets the result, in place or in ``out``. Returns
        the array with the result.

        ``op`` is sum, prod, max, min or avg; for integers also band, bor, bxor, land, lor or lxor.

        Shapes: array ``(...)``, result ``(...)``. 0-d arrays and empty ones are arrays, too.
        """
        with _Told(self) as told:
            given, taken, result = self._in_place(array, out)
            told.call("AllReduce", given, taken, given.count, op=op, algorithm=algorithm)
        return result

    def broadcast(
        self, array: Array, root: int = 0, *, out: Optional[Array] = None, algorithm: Optional[Algorithm] = None
    ) -> Array:
        """Copies the array of rank ``root`` to all ranks, in place or to ``out``; with ``out``, ranks that are not the root
        may pass None for the array. Returns the array with the result.

        Shapes: array ``(...)``, result ``(...)``.
        """
        with _Told(self) as told:
            at_root = told.is_root(root)
            if out is None or at_root:
                given, taken, result = self._in_place(array, out)
            else:
                given, taken, result = None, written(out, "out"), out
            told.call("Broadcast", given if at_root else None, taken, taken.count, root=root, algorithm=algorithm)
        return result

    def reduce(
        self,
        array: Array,
        op: str = "sum",
        root: int = 0,
        *,
        out: Optional[Array] = None,
        algorithm: Optional[Algorithm] = None,
    ) -> Optional[Array]:
        """Reduces the arrays of all ranks element by element; rank ``root`` gets the result, in place or in ``out``. Returns
        the array with the result at the root, and None elsewhere, where nothing changes.

        ``op`` is sum, prod, max, min or avg; for integers also band, bor, bxor, land, lor or lxor.

        Shapes: array ``(...)``, result ``(...)``.
        """
        with _Told(self) as told:
            result: Optional[Array] = None
            taken: Optional[Elements] = None
            if told.is_root(root):
                given, taken, result = self._in_place(array, out)
            else:
                given = read(array, "the array")
            told.call("Reduce", given, taken, given.count, op=op, root=root, algorithm=algorithm)
        return result

    def all_gather(
        self,
        array: Array,
        *,
        counts: Optional[Sequence[int]] = None,
        out: Optional[Array] = None,
        algorithm: Optional[Algorithm] = None,
    ) -> Array:
        """Copies the arrays of all ranks one behind the other, in the order of ranks; every rank gets the result, in ``out``
        or in a new array. With ``counts``, equal on all ranks, rank r has ``counts[r]`` rows. Returns the result.

        Shapes: array ``(k, *rest)``, result ``(n * k, *rest)``; a 0-d array is one row, so its result is ``(n,)``. With
        counts: array ``(counts[rank], *rest)``, result ``(sum(counts), *rest)``.
        """
        with _Told(self) as told:
            given = read(array, "the array")
            rows = told.counts(counts, given.rows)
            told.length(given, rows[self.rank], "counts")
            taken, result = self._output(array, given, sum(rows), out)
            if counts is None:
                told.call("AllGather", given, taken, given.count, algorithm=algorithm)
            else:
                told.call_v("AllGather", _blocks(given, [given.rows]), _blocks(taken, rows, given), given, algorithm=algorithm)
        return result

    def gather(
        self,
        array: Array,
        root: int = 0,
        *,
        counts: Optional[Sequence[int]] = None,
        out: Optional[Array] = None,
        algorithm: Optional[Algorithm] = None,
    ) -> Optional[Array]:
        """Copies the arrays of all ranks one behind the other, in the order of ranks; rank ``root`` gets the result, in
        ``out`` or in a new array. With ``counts``, rank r has ``counts[r]`` rows: the root needs them, and all ranks pass
        counts or none does. Returns the result at the root, and None elsewhere.

        Shapes: array ``(k, *rest)``, result ``(n * k, *rest)``; with counts: array ``(counts[rank], *rest)``, result
        ``(sum(counts), *rest)``.
        """
        with _Told(self) as told:
            given = read(array, "the array")
            result: Optional[Array] = None
            taken: Optional[Elements] = None
            rows = told.counts(counts, given.rows)
            told.length(given, rows[self.rank], "counts")
            if told.is_root(root):
                taken, result = self._output(array, given, sum(rows), out)
            if counts is None:
                told.call("Gather", given, taken, given.count, root=root, algorithm=algorithm)
            else:
                outputs = _blocks(taken, rows, given) if taken else []
                told.call_v("Gather", _blocks(given, [given.rows]), outputs, given, root=root, algorithm=algorithm)
        return result

    def reduce_scatter(
        self,
        array: Array,
        op: str = "sum",
        *,
        counts: Optional[Sequence[int]] = None,
        out: Optional[Array] = None,
        algorithm: Optional[Algorithm] = None,
    ) -> Array:
        """Reduces the arrays of all ranks element by element; rank r gets block r of the result, in ``out`` or in a new
        array. With ``counts``, equal on all ranks, block r has ``counts[r]`` rows. Returns the result.

        ``op`` is sum, prod, max, min or avg; for integers also band, bor, bxor, land, lor or lxor.

        Shapes: array ``(n * k, *rest)``, result ``(k, *rest)``; with counts: array ``(sum(counts), *rest)``, result
        ``(counts[rank], *rest)``.
        """
        with _Told(self) as told:
            given = read(array, "the array")
            rows = told.split(given, counts)
            taken, result = self._output(array, given, rows[self.rank], out)
            if counts is None:
                told.call("ReduceScatter", given, taken, taken.count, op=op, algorithm=algorithm)
            else:
                inputs, outputs = _blocks(given, rows), _blocks(taken, [rows[self.rank]], given)
                told.call_v("ReduceScatter", inputs, outputs, given, op=op, algorithm=algorithm)
        return result

    def scatter(
        self,
        array: Optional[Array] = None,
        root: int = 0,
        *,
        counts: Optional[Sequence[int]] = None,
        out: Optional[Array] = None,
        algorithm: Optional[Algorithm] = None,
    ) -> Array:
        """Copies block r of the array of rank ``root`` to rank r, to ``out``, or at the root to a new array. Ranks that are
        not the root have no array, and give ``out``. With ``counts``, block r has ``counts[r]`` rows: the root needs them,
        and all ranks pass counts or none does. Returns the result.

        Shapes: array ``(n * k, *rest)`` at the root, result ``(k, *rest)``; with counts: array ``(sum(counts), *rest)``,
        result ``(counts[rank], *rest)``.
        """
        with _Told(self) as told:
            given: Optional[Elements] = None
            inputs: list[tuple[int, int]] = []
            result: Array
            if told.is_root(root):
                whole: Any = array
                given = read(whole, "the array")
                rows = told.split(given, counts)
                inputs = _blocks(given, rows)
                taken, result = self._output(whole, given, rows[self.rank], out)
            elif out is None:
                raise ArgumentError(
                    f"rank {self.rank} is not the root, rank {root}: give out=, an array for its block", "E0406"
                )
            else:
                taken, result = written(out, "out"), out
            if counts is None:
                told.call("Scatter", given, taken, taken.count, root=root, algorithm=algorithm)
            else:
                outputs = [(taken.address, taken.count)]
                told.call_v("Scatter", inputs, outputs, taken, root=root, algorithm=algorithm)
        return result

    def all_to_all(
        self,
        array: Array,
        *,
        sends: Optional[Sequence[int]] = None,
        receives: Optional[Sequence[int]] = None,
        out: Optional[Array] = None,
        algorithm: Optional[Algorithm] = None,
    ) -> Array:
        """Copies block s of the array of rank r to block r of the result of rank s, in ``out`` or in a new array. With
        ``sends`` and ``receives``, block s of the array has ``sends[s]`` rows, and block r of the result
        ``receives[r]``. Returns the result.

        Shapes: array ``(n * k, *rest)``, result ``(n * k, *rest)``; with counts: array ``(sum(sends), *rest)``, result
        ``(sum(receives), *rest)``.
        """
        with _Told(self) as told:
            given = read(array, "the array")
            if (sends is None) != (receives is None):
                raise ArgumentError("sends and receives go together: give both, or neither", "E0432")
            from_here = told.split(given, sends, "sends")
            to_here = from_here if receives is None else told.counts(receives, 0, "receives")
            taken, result = self._output(array, given, sum(to_here), out)
            if sends is None:
                told.call("AllToAll", given, taken, given.count // self.nranks, algorithm=algorithm)
            else:
                inputs, outputs = _blocks(given, from_here), _blocks(taken, to_here, given)
                told.call_v("AllToAll", inputs, outputs, given, algorithm=algorithm)
        return result

    # Arguments.

    @staticmethod
    def _in_place(array: Array, out: Optional[Array]) -> tuple[Elements, Elements, Array]:
        """The input, the output, and the array of the result, where both have one length."""
        if out is None and _arrays.is_scalar(array):
            out = _arrays.empty(array, (), read(array, "the array"))
        if out is None:
            both = written(array, "the array")
            return both, both, array
        given, taken = read(array, "the array"), written(out, "out")
        _fits(given, taken, given.count)
        return given, taken, out

    @staticmethod
    def _output(array: Array, given: Elements, rows: int, out: Optional[Array]) -> tuple[Elements, Array]:
        """An output of so many rows like those of the input, and its array."""
        result: Array = _arrays.empty(array, (rows, *given.shape[1:]), given) if out is None else out
        taken = written(result, "out")
        _fits(given, taken, rows * given.row)
        return taken, result


class _Told:
    """A call that is being prepared: the other ranks are told of an error, as they would wait for the call."""

    def __init__(self, world: Any) -> None:
        self.world: World = world
        self._made = False

    def __enter__(self) -> _Told:
        return self

    def __exit__(self, _: object, error: Optional[BaseException], __: object) -> None:
        # The library tells of the arguments that it refuses itself, and not of a plan that cannot be made.
        unplanned = isinstance(error, Error) and (error.code[:3] in ("E02", "E03") or error.code in _NO_PLAN)
        if isinstance(error, Exception) and (unplanned or not self._made):
            try:
                self.world.refuse(str(error))
            except Error as late:
                # A void call before it, or a world that is closed or has failed: that is the cause.
                raise late from error

    def is_root(self, root: int) -> bool:
        """Whether this rank is the root, which must be a rank."""
        try:
            number = operator.index(root)
        except TypeError:
            number = -1
        if not 0 <= number < self.world.nranks:
            raise ArgumentError(f"root is {root!r}, and the ranks are 0 to {self.world.nranks - 1}", "E0411")
        return number == self.world.rank

    def counts(self, counts: Optional[Sequence[int]], equal: int, name: str = "counts") -> list[int]:
        """The rows of each rank's block: as given, or equally many."""
        n = self.world.nranks
        if counts is None:
            return [equal] * n
        try:
            rows = [operator.index(count) for count in counts]
        except TypeError:
            rows = []
        if len(rows) != n or min(rows) < 0:
            raise ArgumentError(f"{name} is {counts!r}: give a number of rows for each of the {n} ranks", "E0432")
        return rows

    def split(self, given: Elements, counts: Optional[Sequence[int]], name: str = "counts") -> list[int]:
        """The rows of the blocks into which an array is cut."""
        n = self.world.nranks
        if not given.shape or counts is None and given.rows % n:
            raise ArgumentError(
                f"{given.what} is {given}: it has a block for each rank, so its first axis is a multiple of {n}", "E0402"
            )
        rows = self.counts(counts, given.rows // n, name)
        self.length(given, sum(rows), f"the sum of {name}")
        return rows

    def length(self, given: Elements, rows: int, what: str) -> None:
        """Raises unless an array has so many rows."""
        if given.rows != rows:
            raise ArgumentError(f"{given.what} is {given}, and by {what} it has {rows} rows", "E0402")

    # The call.

    def call(
        self,
        name: str,
        given: Optional[Elements],
        taken: Optional[Elements],
        count: int,
        *,
        op: Optional[str] = None,
        root: int = 0,
        algorithm: Optional[Algorithm] = None,
    ) -> None:
        """Makes a call with one count."""
        one = given or taken
        assert one is not None
        dtype, times, number = _coded(one, op)
        stream = _arrays.placed([each for each in (given, taken) if each is not None], self.world._device is not None)
        by = self._by(algorithm, name)
        self._made = True
        source, target = (0 if each is None else each.address for each in (given, taken))
        codes = (COLLECTIVES[name], source, target, count * times, dtype, number, operator.index(root))
        if stream is None:
            by.call(*codes)
            return
        if by._device is None and self.world._device is not None:
            by.on_device(self.world._device)
        by.call_on_stream(*codes, stream)

    def call_v(
        self,
        name: str,
        inputs: list[tuple[int, int]],
        outputs: list[tuple[int, int]],
        one: Elements,
        *,
        op: Optional[str] = None,
        root: int = 0,
        algorithm: Optional[Algorithm] = None,
    ) -> None:
        """Makes a call with a count for each block."""
        dtype, times, number = _coded(one, op)
        if one.stream is not None:
            fix = "a call with a count for each block moves memory of the host"
            raise ArgumentError(f"{one.what} is on the device CUDA, and {fix}: give a copy there", "E0420")
        by = self._by(algorithm, name)
        given, taken = ([(at, count * times) for at, count in blocks] for blocks in (inputs, outputs))
        self._made = True
        by.call_v(COLLECTIVES[name], given, taken, SIZES[dtype], dtype, number, operator.index(root))

    def _by(self, algorithm: Optional[Algorithm], collective: str) -> World:
        """The world, or a share of it that runs an algorithm."""
        world = self.world
        if algorithm is None:
            return world
        if isinstance(algorithm, Program):
            source, name = algorithm.source, algorithm.words
        elif isinstance(algorithm, (str, os.PathLike)):
            source, name = os.fspath(algorithm), None
        else:
            raise ArgumentError(
                f"algorithm is {algorithm!r}: give the name of one of the library, a page, a path or a Program", "E0406"
            )
        shares, key = world._shares, (source, name, collective)
        share = shares.pop(key, None)
        if share is None:
            share = world.share()
            share.use(source, name, collective)
        # The last one that was used stands last.
        shares[key] = share
        if len(shares) > _KEPT:
            shares.pop(next(iter(shares))).close()
        return share


def _coded(given: Elements, op: Optional[str]) -> tuple[int, int, int]:
    """The library's codes of an element type and of an op, and the elements that one of the array counts for."""
    if op is None:
        return (*_arrays.codes(given), 0)
    if not isinstance(op, str) or op not in OPS:
        raise ArgumentError(f"op is {op!r}, and one of {', '.join(OPS)}", "E0431")
    known = _arrays.NUMPY_TYPES.get(given.kind)
    if given.kind == "bool" and op in _LOGICAL:
        known = "u8"
    if known is None:
        fix = f"use one of {', '.join(_LOGICAL)}" if given.kind == "bool" else "convert them to one"
        names = ", ".join(_arrays.NUMPY_TYPES)
        raise ArgumentError(f"elements of {given.kind} have no {op}, as those of {names} have: {fix}", "E0403")
    return DTYPES[known], 1, OPS[op]


def _fits(given: Elements, taken: Elements, count: int) -> None:
    """Raises unless an output has the element type of the input and so many elements."""
    if taken.kind != given.kind:
        raise ArgumentError(f"{taken.what} is {taken}, and {given.what} {given}: give one element type", "E0403")
    if taken.count != count:
        raise ArgumentError(f"{taken.what} is {taken}, and the result has {count} elements", "E0402")


def _blocks(of: Elements, rows: Sequence[int], like: Optional[Elements] = None) -> list[tuple[int, int]]:
    """The addresses and lengths of the blocks of an array, which lie one behind the other, in rows like those of an
    array."""
    row, at = (like or of).row, of.address
    blocks = []
    for each in rows:
        blocks.append((at, each * row))
        at += each * row * of.size
    return blocks
