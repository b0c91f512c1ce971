"""`cargo xtask mpi` and `cargo xtask peers`: programs on the MPIs of PyPI and on Debian's Open MPI."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import peers
import times
from commands import Failure
from foreign import Imb, Mpi4py, Mpich
from mpis import Mpi
from preload import MODES
from programs import Hosts, Programs, missing
from suite import Field, run

SUITES = {"programs": Programs, "mpi4py": Mpi4py, "imb": Imb, "mpich": Mpich, "hosts": Hosts}
JOBS = """\
jobs of `cargo xtask mpi`:
  exports   the whole library as C files, by every MPI (if no job is given)
  programs  our own programs of MPI, whose results are known, with the library that takes over MPI's calls
  mpi4py    mpi4py's tests of collectives, with it
  imb       the collectives of Intel's benchmarks, with it
  mpich     MPICH's own tests of collectives, with it
  hosts     our own programs on some hosts, which are network namespaces of this machine, with it; and times
  bench     times of the same program with it and without, by turns"""


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is no such number")
    return int(text)


def several(text: str) -> int:
    return positive(text if text != "1" else "")


def size(text: str) -> int:
    """Bytes, such as 32K."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return positive(text[:-1] if unit > 1 else text) * unit


def whole(text: str) -> int:
    """Bytes of which the MPIs' counts are numbers of four."""
    return size(text) if size(text) % 4 == 0 else positive("")


def forced(text: str) -> int | None:
    return None if text == "none" else size(text)


def one_of(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"`{text}` is none of {', '.join(known)}")
        return text

    return read


Option = tuple[str, Callable[[str], object], object, str]
LISTS: list[Option] = [
    ("--mpi", one_of(*Mpi.NAMES), None, "of openmpi,mpich,impi,openmpi4; the last is Debian's 4.1, if it is installed"),
]
VALUES: list[Option] = [
    ("--launches", positive, 3, "how many by turns, 3 if not given"),
    ("--markdown", Path, None, "a file for the table"),
]
"""Options of both: a name, the reader of one value, what it is where it is not given, and the help."""
MPI_LISTS: list[Option] = [
    (
        "--ranks",
        positive,
        None,
        "such as 1,2,3,4; those that wait without leaving the core are left out where there are fewer cores; hosts takes "
        "the first for its times on two",
    ),
    ("--mode", one_of(*MODES), ["on", "verify", "off"], f"of {','.join(MODES)}: no library, or what ROUNDELAY_MPI is"),
    ("--sizes", whole, None, "bytes for imb, hosts and bench, such as 4,32K,1M"),
    (
        "--ops",
        one_of(*times.OPS),
        None,
        f"of {','.join(times.USUAL)}, for imb and bench; and for bench Allgatherv,Reduce_scatter, whose blocks of odd "
        "ranks are 16 times those of even ones",
    ),
    ("--hosts", several, [2, 4], "how many, such as 2,4"),
]
MPI_VALUES: list[Option] = [
    ("--library", Path, None, "the library to load instead of building one"),
    ("--seconds", positive, None, "what takes longer has failed: a case of mpi4py, or a launch of another program"),
    ("--rate", str, None, "of a link between hosts, such as 1gbit"),
]
PEER_LISTS: list[Option] = [
    ("--sizes", size, None, "bytes, such as 1K,32K,1M; the default goes on with 16M, and with 64M for processes"),
    ("--ops", one_of(*peers.OPS), peers.OPS, f"of {','.join(peers.OPS)}"),
    ("--nranks", several, [2, 4, 8], "2,4,8 if not given"),
    (
        "--ours",
        one_of("private", "alloc", "threads"),
        ["private", "alloc", "threads"],
        "of private,alloc,threads: processes with private buffers, with allocated ones, and threads",
    ),
]
PEER_VALUES: list[Option] = [
    (
        "--forced",
        forced,
        16 << 20,
        "the size at which the MPIs' own algorithms are tried one by one beside processes: 16M, or none",
    ),
    ("--program", Path, None, "a release build of roundelay to use instead of building one"),
    ("--json", Path, None, "a file for all figures"),
]


def parser(job: str) -> argparse.ArgumentParser:
    """The one reader of options."""
    kind = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser(f"cargo xtask {job}", epilog=JOBS, formatter_class=kind, allow_abbrev=False)
    lists, values = (MPI_LISTS, MPI_VALUES) if job == "mpi" else (PEER_LISTS, PEER_VALUES)
    for name, read, default, meaning in LISTS + lists:
        made.add_argument(name, type=listed(read), default=default, help=meaning, metavar="LIST")
    for name, read, default, meaning in VALUES + values:
        made.add_argument(name, type=read, default=default, help=meaning, metavar="VALUE")
    if job == "mpi":
        made.add_argument("job", choices=[*SUITES, "bench"])
    else:
        processes = "ranks as processes, beside Intel MPI and Open MPI of PyPI, and not beside Debian's Open MPI"
        made.add_argument("--processes", action="store_true", help=processes)
        made.add_argument("--quick", action="store_const", const=1, dest="launches", help="one launch of each")
    return made


def listed(read: Callable[[str], object]) -> Callable[[str], list[object]]:
    return lambda text: [read(word) for word in text.split(",")]


def main(job: str, words: list[str]) -> None:
    args = parser(job).parse_args(words)
    if job == "peers":
        return peers.run(args)
    if args.job == "hosts" and (why := missing()):
        return print(f"skipped: {why}")
    field = Field(args)
    if args.job == "bench":
        return times.run(field)
    suite = SUITES[args.job](field)
    table, failures = run(suite)
    if isinstance(suite, Hosts):
        figures = suite.times()
        field.keep(table, times.table(figures))
        failures += len(figures.troubles())
    if failures:
        raise Failure(f"{failures} cases or measurements failed")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except Failure as why:
        sys.exit(f"error: {why}")
