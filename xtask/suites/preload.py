"""The library that takes over calls of MPI programs, in all its modes, and its report on the calls."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from commands import Failure, cargo_build
from mpis import Variables

MODES = ("without", "off", "on", "verify")
"""Nothing is loaded, or what ROUNDELAY_MPI is."""


class Preload:
    """The library, if any of the modes loads it."""

    def __init__(self, modes: list[str], given: Path | None) -> None:
        self.library: Path | None = None
        if any(mode != "without" for mode in modes):
            built = given or cargo_build("release", "--package", "roundelay-mpi", "--lib") / "libroundelay_mpi.so"
            self.library = built.resolve(strict=True)

    def command(self, mode: str) -> Path | None:
        """The command that brings hosts together and starts a launcher: it lies beside the library."""
        if mode == "without" or not self.library:
            return None
        command = self.library.with_name("roundelay")
        if not command.is_file():
            raise Failure(f"{command} is not there: `cargo build --release --package roundelay-cli` makes it")
        return command

    def variables(self, mode: str, everything: bool) -> Variables:
        """Variables of ranks. With `everything` the library takes calls of every size, and not only faster ones, and
        reports them at the end, which costs a little."""
        if mode == "without" or not self.library:
            return {}
        reported = {"ROUNDELAY_REPORT": "1", "ROUNDELAY_MPI_TAKE": "all"} if everything else {}
        return {"LD_PRELOAD": str(self.library), "ROUNDELAY_MPI": mode, **reported}


@dataclass
class Report:
    """What the library says of calls when the ranks end."""

    taken: int = 0
    passed: int = 0
    remarks: list[str] = field(default_factory=list)
    """Its other messages, such as a difference between its results and MPI's."""

    NO_REMARKS = re.compile(": tiles of |us here, |ranks have |mpiexec")
    """The ways and times of a report, and what `roundelay mpirun` says."""

    def read(self, text: str) -> Report:
        """Adds the lines of the library. Launchers may put a prefix before them."""
        for said in re.findall(r"roundelay: (.*)", text):
            if found := re.search(r"\d+ calls, (\d+) taken, (\d+) passed on", said):
                self.taken += int(found[1])
                self.passed += int(found[2])
            elif not self.NO_REMARKS.search(said):
                self.remarks.append(said.strip())
        return self
