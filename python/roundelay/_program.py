"""Algorithms that were compiled when the program ran: their proofs, their predicted times, and their results."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Mapping, Sequence, Union

from . import _library
from ._arrays import NUMPY_TYPES
from ._codes import DTYPES, OPS
from ._diagnostics import CompileError, Diagnostic, checked, told

if TYPE_CHECKING:
    import numpy

#: The types of a parameter of an algorithm: the values that the command's ``--set`` takes.
Value = Union[int, bool, str]


@dataclass(frozen=True)
class Certificate:
    """The proved facts of an algorithm at one rank count. The book's page on proofs explains each word."""

    nranks: int
    ops: int
    #: In words, such as ``"no deadlock"``.
    proved: tuple[str, ...]
    in_place: bool
    #: Streams of a rank, signals that a link needs at once, and units of memory beside input and output.
    streams: int
    notifies: int
    scratch_units: float
    messages: int
    pieces: int
    #: Folds in a row on the longest way of a contribution.
    reduce_depth: int
    #: Units through the busiest port, and the least of any algorithm.
    units: float
    least_units: float
    #: Messages in a row, and the least of any algorithm.
    steps: int
    least_steps: int
    #: All that the command says.
    data: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, said: dict[str, Any]) -> Certificate:
        """A certificate as the command prints it."""
        ideal = said["ideal"]
        both = {**said, **{name: ideal[name] for name in _IDEAL}, "proved": tuple(said["proved"])}
        known = {name: both[name] for name in cls.__dataclass_fields__ if name != "data"}
        return cls(data=said, **known)


_IDEAL = ("units", "least_units", "steps", "least_steps")


@dataclass(frozen=True)
class Op:
    """One step of a rank. ``text`` is the line of the schedule without its statement."""

    rank: int
    stream: int
    #: ``copy``, ``fold``, ``post``, ``wait`` and others.
    kind: str
    text: str
    #: The line of the source whose statement it is.
    line: int | None


@dataclass(frozen=True)
class Schedule:
    """The ops of every rank, in their order."""

    algorithm: str
    collective: str
    nranks: int
    root: int
    ops: tuple[Op, ...]
    #: The form that the command prints, and reads again.
    text: str = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Schedule:
        """A schedule in the command's text form."""
        head, *lines = text.splitlines()
        named = re.fullmatch(r"schedule (\S+) (\S+) nranks (\d+) root (\d+)", head)
        if named is None:
            raise ValueError(f"no schedule begins with {head!r}")
        places: dict[str, int] = {}
        ops = []
        rank = stream = 0
        for line in lines:
            if place := re.fullmatch(r"at (\d+) = (\d+):.*", line):
                places[place[1]] = int(place[2])
            elif at := re.fullmatch(r"rank (\d+) stream (\d+)", line):
                rank, stream = int(at[1]), int(at[2])
            elif line.startswith("  "):
                text_of, _, statement = line.strip().rpartition(" @")
                first = re.match(r"\d+", statement)
                where = places.get(first[0]) if first else None
                ops.append(Op(rank, stream, text_of.split(" ", 1)[0], text_of, where))
        return cls(named[1], named[2], int(named[3]), int(named[4]), tuple(ops), text)


class Picture:
    """A picture that a notebook shows. ``svg`` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


class Simulation(Picture):
    """A run on a topology, predicted: a notebook shows when each rank sends and receives."""

    def __init__(self, said: dict[str, Any], svg: str) -> None:
        super().__init__(svg)
        #: All that the command says.
        self.data = said
        self.seconds: float = said["seconds"]
        #: Bytes a second by nccl-tests' conventions.
        self.algbw: float = said["algbw"]
        self.busbw: float = said["busbw"]
        self.messages: int = said["messages"]
        self.steps: int = said["steps"]
        #: The least seconds of any algorithm by bandwidth alone, and their share of this time; None without a bound.
        bound = said.get("bound") or {}
        self.bound_seconds: float | None = bound.get("seconds")
        self.share_of_bound: float | None = bound.get("share")
        self.binding: str | None = bound.get("binding")

    def __repr__(self) -> str:
        return f"Simulation(seconds={self.seconds:.6g}, busbw={self.busbw:.4g})"


class Bounds(Picture):
    """How fast any algorithm could be on a topology: a notebook shows the topology."""

    def __init__(self, said: dict[str, Any], svg: str) -> None:
        super().__init__(svg)
        #: All that the command says.
        self.data = said
        self.nranks: int = said["nranks"]
        #: Seconds for each byte of the call's size, by the name of the collective.
        self.seconds_per_byte: dict[str, float] = {
            each["collective"]: each["seconds_per_byte"]
            for each in (said.get("bounds") or {}).get("collectives", [])
        }

    def __repr__(self) -> str:
        return f"Bounds(nranks={self.nranks}, seconds_per_byte={self.seconds_per_byte})"


class Program:
    """An algorithm that was checked and proved for small rank counts. :func:`compile` makes it."""

    def __init__(
        self,
        source: str,
        name: str | None = None,
        nranks: int | str | None = None,
        parameters: Mapping[str, Value] | None = None,
    ) -> None:
        self.source = source
        is_text = "{" in source
        self._input = source if is_text else ""
        self._flags = [] if name is None else [f"--algorithm={name}"]
        self._set = [f"{key}={_text(value)}" for key, value in (parameters or {}).items()]
        for each in self._set:
            self._flags.append(f"--set={each}")
        self._flags += ["--", "-" if is_text else source]
        counts = [] if nranks is None else [f"--nranks={nranks}"]
        said = checked([*counts, *self._flags], self._input)
        found = said["algorithms"]
        if len(found) != 1:
            names = ", ".join(each["name"] for each in found)
            raise ValueError(f"the source has several algorithms, name one of them: {names}")
        (self._checked,) = found
        self.name: str = self._checked["name"]
        self.collective: str = self._checked["collective"]
        #: The warnings of the compiler.
        self.warnings = tuple(Diagnostic.of(each) for each in said["diagnostics"])
        #: The values of parameters that the proofs hold for, such as ``"root 0..=8"`` and ``"ring = natural"``.
        self.values: tuple[str, ...] = tuple(self._checked.get("values", ()))
        #: The rank count from which on every rank count is proved; None where there is no such proof.
        every = self._checked.get("every_nranks")
        self.every_from: int | None = every.get("from") if every else None

    def _told(self, *words: str) -> str:
        first, *rest = words
        return told([first, *rest, *self._flags], self._input)

    @property
    def words(self) -> str:
        """The name, and the parameters that were set: ``"MyTree arity=2"``."""
        return " ".join([self.name, *self._set])

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificates of the compilation, for each rank count."""
        return tuple(Certificate.of(each) for each in self._checked["certificates"])

    def certificate(self, nranks: int) -> Certificate:
        """The certificate at one rank count. Raises :class:`CompileError` where the algorithm is wrong."""
        said = checked([f"--nranks={nranks}", *self._flags], self._input)
        (certificate,) = said["algorithms"][0]["certificates"]
        return Certificate.of(certificate)

    def schedule(self, nranks: int) -> Schedule:
        """The ops of every rank at one rank count."""
        return Schedule.of(self._told("emit", "schedule", f"--nranks={nranks}"))

    def simulate(
        self,
        topology: str,
        bytes: int = 64 << 20,
        dtype: str = "f32",
        nranks: int | None = None,
        costs: str | None = None,
    ) -> Simulation:
        """A run on a topology, predicted: ``"full_mesh(8, 25GB/s, 2us)"``, or a file of NCCL's. ``bytes`` is
        nccl-tests' size: of the larger of a rank's two buffers. ``costs`` is a file of constants, or ``"messages"``,
        by which messages alone take time."""
        words = ["simulate", f"--topology={topology}", f"--bytes={bytes}", f"--dtype={dtype}"]
        if costs is not None:
            words += [f"--costs={costs}"]
        if nranks is not None:
            words += [f"--nranks={nranks}"]
        said = json.loads(self._told(*words, "--format", "json"))
        return Simulation(said, self._told(*words, "--svg", "-"))

    def bounds(self, topology: str) -> Bounds:
        """The bounds of any algorithm on a topology, for its collective and other collectives."""
        return bounds(topology)

    def run(self, inputs: Sequence[numpy.ndarray], op: str = "sum") -> list[numpy.ndarray]:
        """Runs it for all ranks in this process: the input of each rank, to the output of each. Ranks without an input or
        an output have an array without elements."""
        import numpy

        arrays = [numpy.ascontiguousarray(each) for each in inputs]
        nranks = len(arrays)
        if nranks == 0:
            raise ValueError("there is no rank without an input")
        kinds = {each.dtype for each in arrays if each.size} or {arrays[0].dtype}
        if len(kinds) != 1:
            raise TypeError(f"the inputs have several types: {', '.join(map(str, kinds))}")
        (kind,) = kinds
        dtype = NUMPY_TYPES.get(kind.name)
        if dtype is None:
            raise TypeError(f"elements of {kind} are none of {', '.join(NUMPY_TYPES)}")
        if op not in OPS:
            raise ValueError(f"{op!r} is none of {', '.join(OPS)}")
        schedule = self.schedule(nranks) if self.collective in _ROOTED else None
        root = schedule.root if schedule else 0
        sizes = [_units(self.collective, rank, nranks, root) for rank in range(nranks)]
        counts = {each.size // size[0] for each, size in zip(arrays, sizes) if size[0]}
        if len(counts) != 1:
            raise ValueError(f"{self.collective} has one count, and the inputs have {sorted(counts)}")
        (count,) = counts
        for rank, (each, size) in enumerate(zip(arrays, sizes)):
            if each.size != size[0] * count:
                raise ValueError(
                    f"the input of rank {rank} has {each.size} elements, and not {size[0] * count}"
                )
        outputs = [numpy.zeros(size[1] * count, dtype=kind) for size in sizes]
        _library.run(
            self.source,
            self.words,
            [each.ctypes.data for each in arrays],
            [each.ctypes.data for each in outputs],
            count,
            DTYPES[dtype],
            OPS[op],
        )
        return outputs

    def picture(self, nranks: int = 4) -> Picture:
        """The data between the ranks, as a picture."""
        topology = f"full_mesh({nranks}, 25GB/s, 2us)"
        return Picture(self._told("simulate", f"--topology={topology}", "--svg", "-"))

    def _repr_svg_(self) -> str | None:
        try:
            return self.picture().svg
        except CompileError:
            # Not every algorithm takes four ranks.
            return None

    def __repr__(self) -> str:
        every = "" if self.every_from is None else f", every_from={self.every_from}"
        return f"Program({self.name} -> {self.collective}{every})"


_ROOTED = ("Broadcast", "Reduce", "Scatter", "Gather")

def _units(collective: str, rank: int, nranks: int, root: int) -> tuple[int, int]:
    """Lengths of input and output at a rank, in units of the count."""
    at_root = int(rank == root)
    return {
        "AllReduce": (1, 1),
        "ReduceScatter": (nranks, 1),
        "AllGather": (1, nranks),
        "Broadcast": (at_root, 1),
        "Reduce": (1, at_root),
        "Scatter": (nranks * at_root, 1),
        "Gather": (1, nranks * at_root),
        "AllToAll": (nranks, nranks),
    }[collective]


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def compile(
    source: str | os.PathLike[str],
    algorithm: str | None = None,
    nranks: int | str | None = None,
    **parameters: Value,
) -> Program:
    """Checks and proves an algorithm: a text in the language, the path of a ``.coll`` file, or the name of an algorithm of
    the library. ``algorithm`` chooses one of several algorithms; ``nranks`` are the rank counts that are proved at
    once, such as ``4`` or ``"2..=9"``, by default the command's. Further arguments set its parameters.

    Raises :class:`CompileError` for a wrong page; its message shows each error at its place.

    >>> import roundelay
    >>> roundelay.compile("RingAllReduce").certificate(4).steps
    6
    """
    return Program(os.fspath(source), algorithm, nranks, parameters)


def bounds(topology: str) -> Bounds:
    """How fast any algorithm could be on a topology: ``"full_mesh(8, 25GB/s, 2us)"``, or a file of NCCL's."""
    said = json.loads(told(["topo", "--format", "json", "--", topology], ""))
    return Bounds(said, told(["topo", "--format", "svg", "--", topology], ""))
