"""Our algorithms beside those of MPIs, the same operation on the same machine in the same run, by turns: each algorithm
beside the MPI's own of that kind, in one process; or ranks that are processes on both sides. Each launch is a fresh set
of processes."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import driver
from commands import CORES, Failure, brief, cargo_build, install, within
from figures import Competitor, Figures, Launched, Time, launched
from mpis import Mpi

OPS = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"]
CASES = [
    ("AllReduce", "ring", "RingAllReduce"),
    ("AllReduce", "recursive_doubling", "RecursiveDoublingAllReduce"),
    (
        "AllReduce",
        "",
        "RingAllReduce,RecursiveDoublingAllReduce,HalvingDoublingAllReduce,MeshAllReduce,NhrOneShotAllReduce",
    ),
    ("ReduceScatter", "ring", "RingReduceScatter"),
    ("ReduceScatter", "", "RingReduceScatter,MeshReduceScatter"),
    ("AllGather", "ring", "RingAllGather"),
    ("AllGather", "", "RingAllGather,MeshAllGather"),
    ("Broadcast", "pipeline", "RingBroadcast"),
    ("Broadcast", "", "RingBroadcast,NhrBroadcast"),
    ("Reduce", "pipeline", "RingReduce"),
    ("Reduce", "", "RingReduce,DoubleBinaryTreeReduce"),
]
"""An operation, the algorithm that an MPI is told to use (or its own choice), and ours, of which the fastest counts."""
OF_PROCESSES = [
    ("AllReduce", "", "OneShotMeshAllReduce"),
    ("AllGather", "", "MeshAllGather"),
    ("ReduceScatter", "", "MeshReduceScatter"),
    ("Broadcast", "", "NhrBroadcast"),
    ("Reduce", "", "RingReduce --set slices=1"),
]
"""The same where ranks are processes: the algorithm that a communicator chooses."""
SETUPS = {
    "private": ("processes", "--callers processes"),
    "alloc": ("with alloc", "--callers processes --alloc"),
    "threads": ("threads", "--callers each"),
    "one": ("one process", ""),
}
"""The kinds of our ranks: the head of their times, and flags of `bench`."""
OURS = ["private", "alloc", "threads"]
"""Those that are processes, or measured beside them."""
REWRITTEN = ", rewritten"
ENDS = ("", REWRITTEN)
COLUMNS = [name + end for name in ("MPI", *(head for head, _ in SETUPS.values())) for end in ENDS] + ["limit"]
RATIOS = [("MPI" + end, name + end) for name in ("processes", "with alloc", "one process") for end in ENDS]
RATIOS.append(("processes", "limit"))
FORCED = {
    "openmpi": {
        "AllReduce": "coll_tuned_allreduce_algorithm",
        "ReduceScatter": "coll_tuned_reduce_scatter_algorithm",
        "AllGather": "coll_tuned_allgather_algorithm",
        "Broadcast": "coll_tuned_bcast_algorithm",
        "Reduce": "coll_tuned_reduce_algorithm",
    },
    "mpich": {
        "AllReduce": "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM",
        "AllGather": "MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM",
    },
}
"""What tells an algorithm to a library: parameters of Open MPI's component `tuned`, and variables of MPICH."""
REFUSALS = ("Incorrect algorithm", "An invalid value was supplied")
"""Messages of libraries that do not know an algorithm. They then use the one that they would have chosen."""
Case = tuple[str, str, str]


class Peer:
    """An MPI with its driver."""

    def __init__(self, name: str) -> None:
        if name == "openmpi4":
            install(name)
        self.mpi = Mpi(name)
        self.title, self.driver = self.mpi.title, driver.compile(self.mpi)

    def times(self, launch: Launch) -> list[Time]:
        env, parameters = dict(self.mpi.environment), []
        if launch.yields is not None:
            parameters.append(("mpi_yield_when_idle", str(int(launch.yields))))
        if launch.forced and self.mpi.is_open_mpi:
            parameters += [("coll_tuned_use_dynamic_rules", "1"), launch.forced]
        elif launch.forced:
            env.update([launch.forced])
        flags = [word for name, value in parameters for word in ("--mca", name, value)]
        rewritten = ["--rewritten"] if launch.rewritten else []
        words = driver.words(self.driver, launch.op, launch.sizes, *rewritten)
        command = self.mpi.launch(launch.nranks, {}, *flags) + words
        return driver.times(command, launch.sizes, env, REFUSALS if launch.forced else ())


@dataclass
class Launch:
    """A launch of the driver."""

    op: str
    nranks: int
    sizes: list[int]
    forced: tuple[str, str] | None = None
    rewritten: bool = False
    """Whether inputs are written before each call."""
    yields: bool | None = None
    """Whether ranks leave the core while they wait, or as the library does by itself."""


def run(args: argparse.Namespace) -> None:
    """Installs missing packages, builds, measures, prints."""
    if not args.program:
        args.program = cargo_build("release", "--package", "roundelay-cli", "--bin", "roundelay") / "roundelay"
    cases, every = (OF_PROCESSES, ["impi", "openmpi"]) if args.processes else (CASES, ["openmpi4"])
    args.ours = args.ours if args.processes else ["one"]
    args.sizes = args.sizes or [1 << 10, 32 << 10, 1 << 20, 16 << 20] + [64 << 20] * args.processes
    # Checks that all of ours run before hours of launches.
    for setup in args.ours:
        ours(args.program, setup, OF_PROCESSES[0], 2, 1 << 10, rewritten=False)
    peers = [Peer(name) for name in args.mpi or every]

    def load() -> str:
        return Path("/proc/loadavg").read_text().strip()

    facts = (
        f"{', '.join(peer.title for peer in peers)}. f32 sum, out of place (Broadcast in place), rank r on core r % "
        f"{CORES}; microseconds: the median of {args.launches} launches [least-most]. Load before: {load()}"
    )
    print(facts, flush=True)
    figures, page = Figures(), ""
    for case in (case for case in cases if case[0] in args.ops):
        for nranks in args.nranks:
            place = (case[0], case[1] or "its choice", str(nranks))
            figures.measure(place, args.launches, competitors(args, peers, case, nranks))
            print(f"{', '.join(place)}: timed", flush=True)
            page = f"{facts}\n\n{figures.table(['op', 'algorithm', 'ranks'], COLUMNS, RATIOS).text()}"
            # Results are not lost if a later launch does not end.
            if args.markdown:
                args.markdown.write_text(page, encoding="utf-8")
    print(page)
    figures.verdict()


def competitors(args: argparse.Namespace, peers: list[Peer], case: Case, nranks: int) -> list[Competitor]:
    """All that take turns in a case."""
    op, theirs, _ = case
    every: list[Competitor] = []

    def add(column: str, peer: Peer, launch: Launch, of: str = "") -> None:
        named = f"{peer.title} {of}".strip()
        every.append(lambda: launched(column, named, launch.sizes, lambda: peer.times(launch)))

    for peer in peers:
        parameter = FORCED.get("openmpi" if peer.mpi.is_open_mpi else peer.mpi.name, {}).get(op)
        plain = Launch(op, nranks, args.sizes, (parameter, theirs) if parameter and theirs else None)
        if theirs and not parameter:
            print(f"{peer.title} cannot be told to use {theirs} in {op}")
        elif args.processes:
            add("MPI", peer, plain)
            add("MPI" + REWRITTEN, peer, replace(plain, rewritten=True))
        elif peer.mpi.is_open_mpi:
            # Ranks that spin for a core that they do not have take forever.
            for yields in [False, True] if nranks <= CORES else [True]:
                add("MPI", peer, replace(plain, yields=yields), "yields" if yields else "spins")
        else:
            add("MPI", peer, plain)
    for setup in args.ours:
        for rewritten in (False, True) if args.processes else (False,):
            every.append(partial(ours_at_all, args, setup, case, nranks, rewritten))
    return every


def ours_at_all(args: argparse.Namespace, setup: str, case: Case, nranks: int, rewritten: bool) -> list[Launched]:
    """Our times and the limits, of a launch for each size."""
    column, several = SETUPS[setup][0] + (REWRITTEN if rewritten else ""), "," in case[2]
    every: list[Launched] = []
    for size in args.sizes:
        try:
            for of, time in ours(args.program, setup, case, nranks, size, rewritten):
                limit = of == "limit"
                every.append(("limit" if limit else column, of if several and not limit else "", size, time))
        except Failure as why:
            every.append((column, "", size, why))
    return every


def ours(program: Path, setup: str, case: Case, nranks: int, size: int, rewritten: bool) -> list[tuple[str, Time]]:
    """The median of each of our algorithms at a size, in one launch, and of the limit of the memory beside them."""
    flags = SETUPS[setup][1].split() + (["--rewrite"] if rewritten else [])
    # A long call needs fewer iterations.
    iterations = ["--iters", "8" if size >= 16 << 20 else "20"] if flags else []
    if "processes" in flags:
        # A world tries its ways in the first calls of a kind.
        iterations += ["--warmup-iters", "240"]
    sizes = ["--nranks", str(nranks), "-b", str(size), "-e", str(size), "--format", "json"]
    said = within([str(program), "bench", *case[2].split(), *flags, *iterations, *sizes], driver.LONGEST)
    # A rank has one buffer in MPI_Bcast.
    return read(said, "in_place" if flags and case[0] == "Broadcast" else "out_of_place")


def read(said: str, place: str) -> list[tuple[str, Time]]:
    """Reads `bench`'s report at one size."""
    try:
        report, _ = json.JSONDecoder().raw_decode(said[said.index("{") :])
        if report["config"]["build"] != "release":
            raise Failure("its times say nothing: it is no release build")
        rows = [(row["algo"], (float(row[place]["median"]), row[place]["nwrong"] > 0)) for row in report["results"]]
        if not rows:
            raise Failure(f"no result: {report['refused']}")
        return [*rows, ("limit", (float(report["limit"]["sizes"][0]["median"]), False))]
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"no report of bench: {error!r}\n{said}") from error
