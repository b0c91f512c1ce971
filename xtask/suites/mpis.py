"""The MPIs of PyPI, each in a folder of its own below `target/mpi`, and Debian's Open MPI 4.1 where it is installed:
how programs are compiled for them and launched."""

from __future__ import annotations

import re
from pathlib import Path

from commands import ROOT, TARGET, Failure, install, output

Variables = dict[str, str]


class Mpi:
    """An installed MPI."""

    NAMES = ("openmpi", "mpich", "impi", "openmpi4")
    TITLES = {
        "openmpi": ("Open MPI", r"\) (\S+)"),
        "mpich": ("MPICH", r"Version: *(\S+)"),
        "impi": ("Intel MPI", r"Version (\S+)"),
        "openmpi4": ("Open MPI", r"\) (\S+)"),
    }
    """The name for people, and the place of the version in the text of the launcher, which may call itself by the name
    of its runtime."""
    LIBRARIES = {"openmpi": "lib/libmpi.so.40", "mpich": "lib/libmpi.so.12", "impi": "lib/libmpi.so.12"}

    def __init__(self, name: str) -> None:
        """Installs it unless it is there; Debian's is never installed."""
        self.name = name
        self.prefix = TARGET / "mpi" / name if name in self.LIBRARIES else Path("/usr")
        self.is_open_mpi = name.startswith("openmpi")
        # Its ranks wait without the core, so that there may be more of them than cores.
        self.yields = name != "mpich"
        if name in self.LIBRARIES:
            install(name)
            return
        how = "`cargo xtask install openmpi4` installs it by apt-get"
        for program in ("mpicc", "mpiexec"):
            if not self.program(program).is_file():
                raise Failure(f"openmpi4: {self.program(program)} is not there: {how}")
        said = output(self.program("mpiexec"), "--version")
        if ") 4.1." not in said:
            raise Failure(f"openmpi4: it is {said}")

    @property
    def library(self) -> str:
        """The library that its programs load: its path, or a name that the loader knows."""
        own = self.LIBRARIES.get(self.name)
        return str(self.prefix / own) if own else "libmpi.so.40"

    @property
    def path(self) -> Variables:
        """Has programs that were not compiled by its compiler find its libraries."""
        return {"LD_LIBRARY_PATH": str(self.prefix / "lib")}

    @property
    def patience(self) -> Variables:
        """Makes ranks leave the core to other ranks while they wait."""
        if self.is_open_mpi:
            return {"OMPI_MCA_mpi_yield_when_idle": "1"}
        return {"I_MPI_THREAD_YIELD": "2"} if self.name == "impi" else {}

    @property
    def environment(self) -> Variables:
        """What the launcher needs in its own environment."""
        if self.is_open_mpi:
            # As root in a container, on any number of cores.
            return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        own = {"I_MPI_ROOT": str(self.prefix), "I_MPI_FABRICS": "shm", "I_MPI_PIN": "0"}
        return own if self.name == "impi" else {}

    @property
    def title(self) -> str:
        return self.title_of(self.name, output(self.program("mpiexec"), "--version"))

    @classmethod
    def title_of(cls, name: str, said: str) -> str:
        title, pattern = cls.TITLES[name]
        found = re.search(pattern, said)
        if not found:
            raise Failure(f"no version of {title}: {said}")
        return f"{title} {found[1]}"

    def program(self, name: str) -> Path:
        return self.prefix / "bin" / (name + ("" if self.name in self.LIBRARIES else ".openmpi"))

    def compile(self, source: str, *flags: str) -> Path:
        """Compiles a program of C below `target/mpi/programs`."""
        program = TARGET / "mpi/programs" / self.name / Path(source).stem
        program.parent.mkdir(parents=True, exist_ok=True)
        rest = [*flags, "-o", program, ROOT / source]
        if self.name == "impi":
            # Its wheels have no compiler.
            lib = self.prefix / "lib"
            own = ["-isystem", self.prefix / "include", "-L", lib, "-lmpi", f"-Wl,-rpath,{lib}"]
            output("cc", *rest, *own)
        else:
            output(self.program("mpicc"), *rest)
        return program

    def ranks(self, nranks: int, variables: Variables) -> list[str]:
        """Makes the launcher start ranks with these variables; the launcher itself does not get them."""
        words = []
        for name, value in variables.items():
            words += ["-x", f"{name}={value}"] if self.is_open_mpi else ["-genv", name, value]
        return [*words, "-n", str(nranks)]

    def launch(self, nranks: int, variables: Variables, *flags: str) -> list[str]:
        """The launch of ranks on this host, which binds none of them, up to the program."""
        unbound = ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"] if self.is_open_mpi else []
        return [str(self.program("mpiexec")), *unbound, *flags, *self.ranks(nranks, variables)]
