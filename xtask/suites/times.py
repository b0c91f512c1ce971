"""Times of one program without the library that takes over calls and with it, by turns: Intel's benchmarks where they
run, and this project's driver for Open MPI, for which they do not exist."""

from __future__ import annotations

from collections.abc import Callable

import driver
from commands import Failure, install, within
from figures import Competitor, Figures, Table, Time, launched, told
from foreign import imb, imb_times, listed_sizes
from mpis import Mpi
from suite import Field

OPS = {
    "Allreduce": "AllReduce",
    "Allgather": "AllGather",
    "Reduce_scatter_block": "ReduceScatterBlock",
    "Bcast": "Broadcast",
    "Allgatherv": "AllGatherV",
    "Reduce_scatter": "ReduceScatterV",
}
"""The operations as MPI and Intel's benchmarks call them and as the driver does. The last two have counts for blocks,
which are 16 times as large for odd ranks as for even ones; the benchmarks have equal counts there."""
USUAL = list(OPS)[:4]
SIZES = [4, 64, 1 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
SPINNING, SPINNING_SIZES = ["Allreduce", "Reduce_scatter_block"], [32 << 10, 1 << 20]
"""The default where ranks wait without leaving the core and there are fewer cores."""
MOST, LISTED = 256 << 20, 4 << 20
"""The most bytes of a rank's larger buffer, and of a size that the benchmarks read from a file."""
RATIO, MORE = 1.05, 0.05
"""The ratio of times, and the microseconds, up to which a difference may be chance."""


def by_turns(field: Field, sizes: list[int], time: Callable[[str], list[Time]]) -> list[Competitor]:
    """A launch without the library, and one in the first mode with it."""

    def turn(mode: str) -> Competitor:
        return lambda: launched("without" if mode == "without" else "with", "", sizes, lambda: time(mode))

    return [turn(mode) for mode in field.modes[:2]]


def table(figures: Figures) -> Table:
    """The times in microseconds, with the places that are slower with the library."""
    made = figures.table(["MPI", "op", "ranks"], ["without", "with"], [("with", "without")])
    pairs = figures.pairs("with", "without")
    slower = [place for place, a, b in pairs if a > b * RATIO and a - b > MORE]
    told = f"slower with it, more than {RATIO} times and {MORE * 1e3:.0f} ns"
    made.notes.append(f"{len(slower)} of {len(pairs)} are {told}: {'; '.join(slower)}")
    return made


def run(field: Field) -> None:
    figures = Figures()
    for mpi in field.mpis:
        program = driver.compile(mpi)
        if not mpi.is_open_mpi:
            # The benchmarks come with Intel's library.
            install("impi")
        for nranks in field.args.ranks or [2, 4, 8]:
            for op in field.args.ops or USUAL:
                sizes = fitting(field, mpi, op, nranks)
                if not sizes:
                    continue

                def launch(mode: str) -> list[Time]:
                    return one(field, mpi, program, op, nranks, sizes, mode)

                place = (mpi.name, op, str(nranks))
                figures.measure(place, field.args.launches, by_turns(field, sizes, launch))
                print(f"{', '.join(place)}: timed", flush=True)
                field.keep(table(figures))
    print(table(figures).text())
    figures.verdict()


def one(field: Field, mpi: Mpi, program: str, op: str, nranks: int, sizes: list[int], mode: str) -> list[Time]:
    """The times of sizes, of which a rank has that part; of operations with other counts for blocks, that whole."""
    variables = field.preload.variables(mode, everything=False)
    if mpi.is_open_mpi or op not in USUAL:
        words = driver.words(program, OPS[op], sizes, *(["--part"] if op in USUAL else []))
        return driver.times(mpi.launch(nranks, variables) + words, sizes, mpi.environment)
    found: dict[int | None, float] = {}
    with listed_sizes([size for size in sizes if size <= LISTED]) as file:
        longer = [size.bit_length() - 1 for size in sizes if size > LISTED]
        some = [["-msglen", file.name]] if len(longer) < len(sizes) else []
        for lengths in some + ([["-msglog", f"{min(longer)}:{max(longer)}"]] if longer else []):
            calls = "10,64" if field.spins(mpi, nranks) else "10000,200" if "-msglen" in lengths else "20,320"
            found.update(imb_times(within(imb(mpi, nranks, variables, op, lengths, calls), 300, mpi.environment)))
    if missing := [size for size in sizes if size not in found]:
        raise Failure(f"{missing} were not timed")
    return [(found[size], False) for size in sizes]


def fitting(field: Field, mpi: Mpi, op: str, nranks: int) -> list[int]:
    """The sizes of an operation. Those that are left out are printed."""
    spins = field.spins(mpi, nranks)
    sizes = field.args.sizes or (SPINNING_SIZES if spins else SIZES)

    def left_out(why: str, out: Callable[[int], bool]) -> None:
        nonlocal sizes
        if names := [told(size) for size in sizes if out(size)]:
            print(f"{mpi.name}, {op}, {nranks} ranks, {', '.join(names)} is left out: {why}")
        sizes = [size for size in sizes if not out(size)]

    # Operations that are asked for by name are run all the same.
    if spins and not field.args.ops and op not in SPINNING:
        left_out(f"they do not leave the core; --ops {op} asks for it", lambda _: True)
    blocks = nranks if op in ("Allgather", "Reduce_scatter_block") else 1
    left_out("too large", lambda size: size * blocks > MOST)
    benchmarks = not mpi.is_open_mpi and op in USUAL
    left_out("no power of two", lambda size: benchmarks and size > LISTED and size & (size - 1) != 0)
    return sizes
