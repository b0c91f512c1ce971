"""The one runner of all suites: every program at every number of ranks, by every MPI, without the library that takes
over calls and in each of its modes."""

from __future__ import annotations

import argparse
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from commands import CORES, Failure, brief, within
from figures import Table
from mpis import Mpi, Variables
from preload import Preload, Report

SKIPPED, PASSED, FAILED = range(3)
"""The results of a case: the worst of all ranks counts."""
WORDS = ("WRONG: ", "HANGS: ", "CRASHES: ")
"""What begins the message of our own programs."""


class Results:
    """The results of cases, and the library's report."""

    def __init__(self) -> None:
        self.cases: dict[str, tuple[int, str]] = {}
        self.report = Report()

    def add(self, case: str, result: int, why: str = "") -> None:
        self.cases[case] = max(self.cases.get(case, (SKIPPED, "")), (result, why))

    def count(self, result: int) -> int:
        return sum(found == result for found, _ in self.cases.values())

    def failed(self) -> dict[str, str]:
        return {case: why for case, (result, why) in self.cases.items() if result == FAILED}


class Field:
    """The options, and what is made for them."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.preload = Preload(args.mode, args.library)
        self.modes = ["without", *(mode for mode in args.mode if mode != "without")]
        self.mpis = []
        for name in args.mpi or Mpi.NAMES:
            try:
                self.mpis.append(Mpi(name))
            except Failure as why:
                # Debian's package is not installed unless it is asked for.
                if name != "openmpi4" or args.mpi:
                    raise
                print(f"left out: {why}")

    def spins(self, mpi: Mpi, nranks: int) -> bool:
        """Whether ranks wait without leaving cores that other ranks need."""
        return not mpi.yields and nranks > CORES

    def ranks(self, mpi: Mpi, otherwise: tuple[int, ...]) -> list[int]:
        """The numbers of ranks that were asked for, or others, as far as they do not spin."""
        asked = self.args.ranks or otherwise
        if left_out := [nranks for nranks in asked if self.spins(mpi, nranks)]:
            why = f"its ranks wait without leaving the core, of which there are {CORES}"
            print(f"{mpi.name} with {left_out} ranks is left out: {why}")
        return [nranks for nranks in asked if not self.spins(mpi, nranks)]

    def variables(self, mpi: Mpi, mode: str) -> Variables:
        """Variables of ranks that may outnumber cores and whose calls are taken over at every size."""
        return {**self.preload.variables(mode, everything=True), **mpi.patience}

    def keep(self, *tables: Table) -> None:
        """Writes tables to the file that was asked for: results are not lost if a later launch does not end."""
        if self.args.markdown:
            self.args.markdown.write_text("\n".join(table.text() for table in tables), encoding="utf-8")


class Suite(ABC):
    """Programs with cases."""

    own = True
    """Of our own programs each failure counts; a case of others that fails without the library, too, does not."""
    seconds = 120
    """What takes longer has failed, unless others are asked for."""
    usual: tuple[int, ...] = (1, 2, 3, 4)
    """Numbers of ranks."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.seconds = field.args.seconds or self.seconds

    def ranks(self, mpi: Mpi) -> list[str]:
        return [str(nranks) for nranks in self.field.ranks(mpi, self.usual)]

    @abstractmethod
    def programs(self, mpi: Mpi) -> list[str]:
        """The names of the programs, which are made first."""

    @abstractmethod
    def run(self, mpi: Mpi, program: str, ranks: str, mode: str, results: Results) -> None:
        """Adds the results of a program's cases; none in a mode that it does not have."""

    def launch(
        self,
        results: Results,
        case: str,
        command: list[str],
        env: Variables,
        wrong: Callable[[str], str],
        cwd: Path | None = None,
        seconds: float | None = None,
    ) -> None:
        """Launches the one program of a case. Where it ends well, `wrong` says what is wrong in its output."""
        try:
            said = within(command, seconds or self.seconds, env, cwd)
            why = wrong(said)
        except Failure as failure:
            said = str(failure)
            why = next((line for line in said.splitlines() if any(word in line for word in WORDS)), brief(said))
        results.add(case, FAILED if why else PASSED, why)
        results.report.read(said)


HEADS = ["MPI", "program", "ranks", "mode", "cases", "passed", "left out", "failed without, too", "failed"]


def run(suite: Suite) -> tuple[Table, int]:
    """Runs a suite by each MPI, and returns its table and how many cases failed."""
    field, failures = suite.field, 0
    table = Table(*HEADS, "calls taken", "passed on", "seconds")
    for mpi in field.mpis:
        programs = suite.programs(mpi)
        for ranks in suite.ranks(mpi) if programs else []:
            for program in programs:
                known: dict[str, str] = {}
                looked_again = suite.own
                for mode in field.modes:
                    place, begun, results = (mpi.name, program, ranks, mode), time.monotonic(), Results()
                    try:
                        suite.run(mpi, program, ranks, mode, results)
                    except Failure as why:
                        failures += 1
                        table.note(f"{', '.join(place)}, FAILED: {why}")
                        continue
                    seconds, failed, report = time.monotonic() - begun, results.failed(), results.report
                    if not results.cases:
                        continue
                    if mode == "without" and not suite.own:
                        known.update(failed)
                    elif not looked_again and failed.keys() - known.keys():
                        # Some cases fail now and then.
                        looked_again, again = True, Results()
                        suite.run(mpi, program, ranks, "without", again)
                        known.update(again.failed())
                    ours = failed.keys() - known.keys()
                    failures += len(ours)
                    counts = results.count(PASSED), results.count(SKIPPED), len(failed) - len(ours), len(ours)
                    table.add(*place, len(results.cases), *counts, report.taken, report.passed, f"{seconds:.1f}")
                    print(table.last(), flush=True)
                    for case, reason in failed.items():
                        whose = "FAILED" if case in ours else "fails without it, too"
                        table.note(f"{', '.join(place)}, {whose}: {case}: {reason}")
                    # One mistake may be reported by every call.
                    for remark in report.remarks[:5]:
                        table.note(f"{', '.join(place)}, said: {remark}")
                    field.keep(table)
    print(f"\n{table.text()}")
    return table, failures
