"""Suites of others: mpi4py's tests of collectives, MPICH's, and Intel's benchmarks."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from commands import CORES, ROOT, TARGET, Failure, brief, install, output, within
from mpis import Mpi, Variables
from preload import Report
from suite import FAILED, PASSED, SKIPPED, Field, Results, Suite


def made(folder: str, wanted: str, *command: object) -> Path:
    """A folder below target/mpi that a command fills, once."""
    path = TARGET / "mpi" / folder
    stamp = path / "installed"
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"making target/mpi/{folder}", flush=True)
        path.mkdir(parents=True, exist_ok=True)
        output(*command, cwd=path)
        stamp.write_text(wanted)
    return path


class Mpi4py(Suite):
    """mpi4py's tests of collectives. A case that does not end ends its launch, and the next ones are launched again."""

    own, seconds = False, 60
    LONGEST, MOST_LAUNCHES = 1200, 20
    """Seconds of a launch, and launches of a suite."""

    def programs(self, mpi: Mpi) -> list[str]:
        install("mpi4py")
        # Only the source of a version has its tests.
        [installed] = (TARGET / "mpi/python").glob("mpi4py-*.dist-info")
        name, version = installed.stem.split("-")
        fetch = ["download", "--quiet", "--no-deps", "--no-binary", name, f"{name}=={version}"]
        folder = made("mpi4py", f"{name}=={version}", sys.executable, "-m", "pip", *fetch)
        self.tests = folder / installed.stem / "test"
        if not self.tests.is_dir():
            with tarfile.open(folder / f"{installed.stem}.tar.gz") as archive:
                archive.extractall(folder)
        return ["mpi4py"]

    def run(self, mpi: Mpi, program: str, ranks: str, mode: str, results: Results) -> None:
        own = {**mpi.path, "MPI4PY_LIBMPI": mpi.library, "PYTHONPATH": str(TARGET / "mpi/python")}
        launch = mpi.launch(int(ranks), {**self.field.variables(mpi, mode), **own})
        after: list[str] = []
        for _ in range(self.MOST_LAUNCHES):
            with tempfile.TemporaryDirectory() as folder:
                script = ROOT / "xtask/suites/mpi4py_cases.py"
                words = map(str, [sys.executable, script, self.tests, f"{folder}/record", self.seconds, *after])
                try:
                    ended, said = "", within([*launch, *words], self.LONGEST, mpi.environment)
                except Failure as why:
                    ended = said = str(why)
                files = [Path(folder, f"record.{rank}") for rank in range(int(ranks))]
                texts = [file.read_text() if file.exists() else "" for file in files]
            unfinished, complete = read(texts, results)
            results.report.read(said)
            if complete and ended:
                results.add("the end of the program", FAILED, brief(ended))
            if complete:
                return
            if not unfinished:
                raise Failure(f"no case ran: {said}")
            after = [unfinished]
        raise Failure(f"too many cases do not end, {after[0]} the last")


def read(texts: list[str], results: Results) -> tuple[str, bool]:
    """Adds the results that the ranks of a launch wrote of their cases. Returns the last case that a rank began and did
    not end, in the order of the cases, and whether all ranks came to the end."""
    furthest, unfinished = 0, ""
    for rank, text in enumerate(texts):
        begun, number = "", 0
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word in ("begin", "end"):
                begun, number = rest, number + (word == "begin")
            elif begun and word in ("passed", "skipped", "failed"):
                result = {"passed": PASSED, "skipped": SKIPPED, "failed": FAILED}[word]
                results.add(begun, result, f"rank {rank}: {rest}" if result == FAILED else "")
        if begun:
            results.add(begun, FAILED, f"rank {rank}: it did not end")
            if number > furthest:
                furthest, unfinished = number, begun
    return unfinished, bool(texts) and all(text.splitlines()[-1:] == ["done"] for text in texts)


class Mpich(Suite):
    """MPICH's tests of collectives, from Debian's source package."""

    own, seconds = False, 60

    def programs(self, mpi: Mpi) -> list[str]:
        # Intel's library runs programs that are compiled for MPICH.
        built = Mpi("mpich") if mpi.name == "impi" else mpi
        script = ROOT / "xtask/suites/mpich.sh"
        source = made("mpich-source", "mpich", "sh", script, "fetch") / "mpich/test/mpi"
        words = ["build", source, built.prefix, built.program("mpicc")]
        self.folder = made(f"coll-{built.name}", "mpich", "sh", script, *words) / "coll"
        # The suite's list of tests lies among its built files.
        lines = (self.folder / "testlist").read_text().splitlines()
        self.tests = [test for test in map(listed, lines) if test]
        return ["mpich"]

    def run(self, mpi: Mpi, program: str, ranks: str, mode: str, results: Results) -> None:
        for line, name, nranks, args, variables in self.tests:
            if nranks == ranks:
                every = {**self.field.variables(mpi, mode), **mpi.path, **variables}
                command = [*mpi.launch(int(ranks), every), str(self.folder / name), *args]
                self.launch(results, line, command, mpi.environment, self.wrong, cwd=self.folder)

    @staticmethod
    def wrong(said: str) -> str:
        return "" if any(line.strip() == "No Errors" for line in said.splitlines()) else brief(said)


def listed(line: str) -> tuple[str, str, str, list[str], Variables] | None:
    """Reads a line of the list: itself, a program, its ranks, arguments and variables; None for a comment, and for a
    test that needs more memory than this machine may have."""
    words = line.split()
    if not words or words[0].startswith("#") or any(word.startswith("mem=") for word in words):
        return None
    every = [word.partition("=") for word in words[2:]]
    pairs = [value.partition("=") for name, _, value in every if name == "env"]
    args = [value for name, _, value in every if name == "arg"]
    return line.strip(), words[0], words[1], args, {name: value for name, _, value in pairs}


class Imb(Suite):
    """Intel's benchmarks, which come with its library and run on MPICH, too, as both have one binary interface. They do
    not check results; the library does where it is told to verify them."""

    seconds = 180
    usual = (2, 4, 8)
    OPS = (
        "Allgather Allgatherv Allreduce Alltoall Alltoallv Barrier Bcast Gather Gatherv Reduce Reduce_scatter "
        "Reduce_scatter_block Scatter Scatterv"
    ).split()
    """All collectives, including the ones that the library does not know."""
    SIZES = [4, 64, 1 << 10, 16 << 10, 256 << 10, 1 << 20]

    def programs(self, mpi: Mpi) -> list[str]:
        if mpi.is_open_mpi:
            print(f"{mpi.name} is left out: the benchmarks are compiled for MPICH's binary interface")
            return []
        install("impi")
        return self.field.args.ops or self.OPS

    def run(self, mpi: Mpi, program: str, ranks: str, mode: str, results: Results) -> None:
        sizes = self.field.args.sizes or self.SIZES
        rows = 1 if program == "Barrier" else len(sizes)
        with listed_sizes(sizes) as file:
            variables = self.field.variables(mpi, mode)
            command = imb(mpi, int(ranks), variables, program, ["-msglen", file.name], "50,64")
            self.launch(results, program, command, mpi.environment, lambda said: imb_wrong(said, rows, mode))


def imb_wrong(said: str, rows: int, mode: str) -> str:
    """Whether all sizes were timed, and the library found no difference."""
    remarks, found = Report().read(said).remarks, len(imb_times(said))
    if mode == "verify" and remarks:
        return remarks[0]
    return "" if found == rows else f"{found} of {rows} sizes were timed"


def listed_sizes(sizes: list[int]) -> tempfile._TemporaryFileWrapper[str]:
    """A file with a size on each line, of which the benchmarks take those up to 4 MB."""
    file = tempfile.NamedTemporaryFile("w")
    file.write("".join(f"{size}\n" for size in sizes))
    file.flush()
    return file


def imb(mpi: Mpi, nranks: int, variables: Variables, op: str, sizes: list[str], calls: str) -> list[str]:
    """A launch with each rank on a core of its own, as far as there are cores."""
    program = TARGET / "mpi/impi/bin/IMB-MPI1"
    pinned = ["sh", "-c", f'exec taskset -c $((PMI_RANK % {CORES})) "$@"', "sh", str(program)]
    limits = ["-npmin", str(nranks), "-time", "8", "-mem", "2", "-iter", calls]
    return [*mpi.launch(nranks, {**variables, **mpi.path}), *pinned, *limits, *sizes, op]


def imb_times(said: str) -> list[tuple[int | None, float]]:
    """The microseconds of each size on the slowest rank; a barrier has no size."""
    found: list[tuple[int | None, float]] = []
    for line in said.splitlines():
        try:
            numbers = [float(word) for word in line.split()]
        except ValueError:
            continue
        if len(numbers) in (4, 5):
            found.append((int(numbers[0]) if len(numbers) == 5 else None, numbers[-2]))
    return found
