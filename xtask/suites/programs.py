"""Our own programs of MPI, whose results are known: on this machine, and on some hosts, which are namespaces of it."""

from __future__ import annotations

import shutil

import driver
from commands import CORES, ROOT, Failure, brief, cargo_build, output
from figures import Figures
from mpis import Mpi, Variables
from suite import Field, Results, Suite
from times import by_turns, table

FOLDER = "capi/mpi/tests/programs"
NAMES = ["collectives", "blocks", "progress", "threads"]
"""Each is a file of C."""
FLAGS = "-std=c99 -pedantic -Wall -Wextra -Werror -Wno-long-long -O1 -pthread"
"""The strictest flags of users. MPI's own headers may use features that C99 does not have."""
FORTRAN = "fortran"
FORTRAN_FLAGS = "-cpp -DF08 -O1 -w -fallow-argument-mismatch"
GRACE = 10
"""Seconds more of a launcher, to clear up after its ranks."""
SPARED = {"openmpi": {"OMPI_MCA_coll": "^han"}, "impi": {"I_MPI_COLL_INTRANODE": "pt2pt"}}
"""What avoids an MPI's own errors in these programs: Open MPI 5.0 crashes between hosts where types have absolute
addresses, and the threads of Intel MPI 2021.18 get each other's data."""


def wrong(said: str) -> str:
    right = any(word in said for word in ("OK: ", "SKIPPED: "))
    return "" if right else f"it did not say that all was right: {brief(said)}"


class Programs(Suite):
    """The programs on this machine."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.compiled: dict[str, str] = {}

    def programs(self, mpi: Mpi) -> list[str]:
        """Compiles them. One that is left out is printed."""
        self.compiled = {name: str(mpi.compile(f"{FOLDER}/{name}.c", *FLAGS.split())) for name in NAMES}
        compiler = mpi.program("mpif90")
        # The MPIs of PyPI have a compiler for Fortran, and no modules for it.
        if mpi.name == "openmpi4" and compiler.is_file() and shutil.which("gfortran"):
            program = ROOT / "target/mpi/programs" / mpi.name / FORTRAN
            flags = [*FORTRAN_FLAGS.split(), "-J", program.parent, "-o", program]
            output(compiler, *flags, ROOT / FOLDER / "fortran.f90")
            self.compiled[FORTRAN] = str(program)
        else:
            print(f"{mpi.name}: the program of Fortran is left out: it has no modules, or there is no gfortran")
        return list(self.compiled)

    def variables(self, mpi: Mpi, mode: str) -> Variables:
        return {**self.field.variables(mpi, mode), **SPARED.get(mpi.name, {})}

    def run(self, mpi: Mpi, program: str, ranks: str, mode: str, results: Results) -> None:
        if program == "progress" and ranks == "1":
            return
        command = mpi.launch(int(ranks), self.variables(mpi, mode))
        command += [self.compiled[program], "--seconds", str(self.seconds)]
        # Intel MPI's own results are wrong without this.
        command += ["--simple"] if mpi.name == "impi" else []
        self.launch(results, program, command, mpi.environment, wrong, seconds=self.seconds + GRACE)


WORLD = "processes"
"""A program without MPI, whose world finds the library by itself."""
NETWORK = "10.77.0"
"""The first three bytes of all addresses."""
SIZES = [1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 16 << 20]
TIMED = 4
"""The ranks of a host where times are taken, on two hosts."""
OPTIONS = {
    "LD_PRELOAD": "--library={}",
    "ROUNDELAY_MPI": "--mode={}",
    "ROUNDELAY_REPORT": "--report",
    "ROUNDELAY_MPI_TAKE": "--all",
}
"""The command's option for each variable of the library."""


class Hosts(Programs):
    """The programs on hosts, with one and two ranks each."""

    def programs(self, mpi: Mpi) -> list[str]:
        if mpi.name == "impi":
            return []
        super().programs(mpi)
        built = cargo_build("dev", "--package", "roundelay", "--example", WORLD)
        self.compiled[WORLD] = str(built / "examples" / WORLD)
        return list(self.compiled)

    def ranks(self, mpi: Mpi) -> list[str]:
        every = [(number, each) for number in self.field.args.hosts for each in (1, 2)]
        for number, each in every:
            if self.field.spins(mpi, number * each):
                print(f"{mpi.name} with {number * each} ranks is left out: they do not leave the core")
        return [f"{number} x {each}" for number, each in every if not self.field.spins(mpi, number * each)]

    def run(self, mpi: Mpi, program: str, ranks: str, mode: str, results: Results) -> None:
        number, each = map(int, ranks.split(" x "))
        variables = {**self.variables(mpi, mode), "ROUNDELAY_MPI_LIB": mpi.library}
        words, seconds, judge = ["--seconds", str(self.seconds)], self.seconds + GRACE, wrong
        if program == WORLD:
            if mode != "without":
                return
            right = f"{number * each} ranks, and the sum of their numbers"
            words, seconds, judge = [], 60, lambda said: "" if right in said else said
        line = self.line(mpi, number, each, mode, variables) + [self.compiled[program], *words]
        self.launch(results, program, line, mpi.environment, judge, seconds=seconds)

    def line(self, mpi: Mpi, number: int, each: int, mode: str, variables: Variables) -> list[str]:
        """A launch over all hosts, up to the program: through the command that brings hosts together, where ranks
        preload the library. Other variables are passed as they are."""
        line = ["bash", str(ROOT / "xtask/suites/hosts.sh"), str(number), self.field.args.rate or "", NETWORK]
        launcher, command = str(mpi.program("mpiexec")), self.field.preload.command(mode)
        ours = {name: value for name, value in variables.items() if name in OPTIONS}
        if command:
            options = [OPTIONS[name].format(value) for name, value in ours.items()]
            line += [str(command), "mpirun", "--launcher", launcher, *options, "--"]
        else:
            line.append(launcher)
        hosts = [f"{NETWORK}.{host}" for host in range(1, number + 1)]
        # The script has the word AGENT for the program that takes the place of ssh.
        if mpi.is_open_mpi:
            agent = ["--prtemca", "plm_ssh_agent"] if mpi.name == "openmpi" else ["--mca", "plm_rsh_agent"]
            slots = ",".join(f"{host}:{each}" for host in hosts)
            network = f"--mca pml ob1 --mca btl tcp,sm,self --mca btl_tcp_if_include {NETWORK}.0/24"
            line += [*agent, "AGENT", "--host", slots, "--bind-to", "none", *network.split()]
        else:
            line += ["-launcher", "ssh", "-launcher-exec", "AGENT", "-hosts", ",".join(hosts), "-ppn", str(each)]
        others = {name: value for name, value in variables.items() if name not in OPTIONS}
        return [*line, *mpi.ranks(number * each, others)]

    def times(self) -> Figures:
        """Times of AllReduce on two hosts, by turns."""
        args, figures = self.field.args, Figures()
        sizes = args.sizes or SIZES
        for mpi in (mpi for mpi in self.field.mpis if mpi.name != "impi"):
            # Ranks that wait without leaving the core have one each, unless the user asks for more.
            own = TIMED if mpi.yields else max(CORES // 2, 1)
            each = max(args.ranks[0] // 2, 1) if args.ranks else own
            words = driver.words(driver.compile(mpi), "AllReduce", sizes)

            def launch(mode: str) -> list[tuple[float, bool]]:
                # There are more ranks than cores, which the launcher is not to know.
                variables = {**self.field.preload.variables(mode, everything=False), **mpi.patience}
                return driver.times(self.line(mpi, 2, each, mode, variables) + words, sizes, mpi.environment)

            place = (mpi.name, "Allreduce", f"{each} + {each}")
            figures.measure(place, args.launches, by_turns(self.field, sizes, launch))
        print(table(figures).text())
        return figures


def missing() -> str:
    """Why this machine cannot have hosts."""
    try:
        output("bash", ROOT / "xtask/suites/hosts.sh", 1, "", NETWORK, "true")
    except Failure as why:
        return f"no network namespaces: {brief(why)}"
    return ""
