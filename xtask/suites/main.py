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
  exports            the whole library as C files, by every MPI (if no job is given)
  programs           our own programs of MPI, whose results are known, with the library that takes over MPI's calls
  mpi4py             mpi4py's tests of collectives, with it
  imb                the collectives of Intel's benchmarks, with it
  mpich              MPICH's own tests of collectives, with it
  hosts              our own programs on some hosts, which are network namespaces of this machine, and times
  bench              times of the same program with it and without, by turns"""


def size(text: str) -> int:
    """Bytes, such as 32K."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return positive(text[:-1] if unit > 1 else text) * unit


def whole(text: str) -> int:
    """Bytes of which the MPIs' counts are numbers of four."""
    return size(text) if size(text) % 4 == 0 else positive("")


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is no such number")
    return int(text)


def listed(one: Callable[[str], int] | list[str], least: int = 1, most: int = 1 << 40) -> Callable[[str], list[object]]:
    """Reads a list with commas."""

    def read(text: str) -> list[object]:
        found: list[object] = []
        for word in text.split(","):
            value = word if isinstance(one, list) else one(word)
            if value not in one if isinstance(one, list) else not least <= value <= most:
                raise argparse.ArgumentTypeError(f"`{word}` is none of {one}" if isinstance(one, list) else f"{value} is no such number")
            found.append(value)
        return found

    return read


def forced(text: str) -> int | None:
    return None if text == "none" else size(text)


def parser(job: str) -> argparse.ArgumentParser:
    """The one reader of options."""
    made = argparse.ArgumentParser(f"cargo xtask {job}", epilog=JOBS if job == "mpi" else None, formatter_class=argparse.RawDescriptionHelpFormatter)

    def option(name: str, kind: Callable[[str], object], meaning: str, default: object = None) -> None:
        made.add_argument(name, type=kind, default=default, help=meaning, metavar=getattr(kind, "metavar", "LIST" if kind.__name__ == "read" else "VALUE"))

    option("--mpi", listed([*Mpi.NAMES]), "of openmpi,mpich,impi,openmpi4; the last is Debian's 4.1, if it is installed")
    option("--launches", positive, "how many by turns, 3 if not given", 3)
    option("--markdown", Path, "write the table, too")
    if job == "peers":
        made.add_argument("--processes", action="store_true", help="ranks as processes, beside Intel MPI and Open MPI of PyPI, and not beside Debian's Open MPI")
        made.add_argument("--quick", action="store_true", help="one launch of each")
        option("--sizes", listed(size), "bytes, such as 1K,32K,1M; the default goes on with 16M, and with 64M for processes")
        option("--ops", listed(peers.OPS), f"of {','.join(peers.OPS)}")
        option("--nranks", listed(positive, 2), "2,4,8 if not given", [2, 4, 8])
        option("--forced", forced, "the size at which the MPIs' own algorithms are tried one by one beside processes: 16M, or none", 16 << 20)
        option("--ours", listed(["private", "alloc", "threads"]), "processes with private buffers, with allocated ones, and threads")
        option("--program", Path, "a release build of roundelay to use instead of building one")
        option("--json", Path, "write all figures as JSON, too")
        return made
    made.add_argument("job", choices=[*SUITES, "bench"])
    option("--ranks", listed(positive), "such as 1,2,3,4; those that wait without leaving the core are left out where there are fewer cores; hosts takes the first for its times on two")
    option("--mode", listed([*MODES]), "of without,off,on,verify: nothing loaded, or what ROUNDELAY_MPI is", ["on", "verify", "off"])
    option("--library", Path, "the library to load instead of building one")
    option("--seconds", positive, "what takes longer has failed: one case of mpi4py, or one launch of another program")
    option("--sizes", listed(whole), "bytes for imb, hosts and bench, such as 4,32K,1M")
    option("--ops", listed([*times.OPS]), f"of {','.join(times.USUAL)}, for imb and bench; and for bench Allgatherv,Reduce_scatter, whose blocks of odd ranks are 16 times those of even ones")
    option("--hosts", listed(positive, 2, 8), "how many, such as 2,4", [2, 4])
    option("--rate", str, "of a link between hosts, such as 1gbit")
    return made


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
    table = run(suite)
    if isinstance(suite, Hosts):
        figures = suite.times()
        field.keep(table, times.table(figures))
        figures.verdict()


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except Failure as why:
        sys.exit(f"error: {why}")
