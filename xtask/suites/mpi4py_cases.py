"""mpi4py's own tests of collectives on this rank, with a line for the beginning and the end of each case.

Usage: mpi4py_cases.py TESTS RECORD SECONDS [AFTER]

TESTS is the folder of mpi4py's tests. The lines go to RECORD.RANK: `begin CASE`, then `passed`, `skipped WHY` or
`failed WHY`, and `end`; after the last case `done`. A case that lasts longer than SECONDS ends the process and shows
where it is. Cases up to AFTER are left out.
"""

from __future__ import annotations

import faulthandler
import sys
import unittest
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

tests, record, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
after = sys.argv[4] if len(sys.argv) > 4 else None
sys.dont_write_bytecode = True
sys.path.insert(0, str(tests))
# Arrays on a GPU are not for this.
for name in ("cupy", "numba"):
    sys.modules[name] = None  # type: ignore[assignment]

from mpi4py import MPI  # noqa: E402

Error = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class Record(unittest.TestResult):
    """Writes down what happens, at once: a rank may end at any time."""

    def __init__(self, file: TextIO) -> None:
        super().__init__()
        self.file = file

    def line(self, *words: str) -> None:
        text = " ".join(" ".join(words).split())
        self.file.write(text[:500] + "\n")
        self.file.flush()

    def startTest(self, test: unittest.TestCase) -> None:
        faulthandler.dump_traceback_later(seconds, exit=True)
        super().startTest(test)
        self.line("begin", test.id())

    def stopTest(self, test: unittest.TestCase) -> None:
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)
        self.line("end")

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.line("passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        # A class may be left out as a whole.
        if isinstance(test, unittest.TestCase):
            self.line("skipped", reason)

    def failed(self, test: Any, error: Error) -> None:
        # What is for a whole class or module has no beginning and no end.
        alone = not isinstance(test, unittest.TestCase)
        if alone:
            self.line("begin", test.id())
        self.line("failed", f"{error[0].__name__ if error[0] else ''}: {error[1]}")
        if alone:
            self.line("end")

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self.failed(test, err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self.failed(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.failed(test, err)


def flat(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    """Every case in its order, which is that of names."""
    cases: list[unittest.TestCase] = []
    for part in suite:
        cases.extend(flat(part) if isinstance(part, unittest.TestSuite) else [part])
    return cases


def main() -> None:
    modules = sorted(path.stem for path in tests.glob("test_cco_*.py"))
    cases = flat(unittest.defaultTestLoader.loadTestsFromNames(modules))
    if after is not None:
        cases = cases[[case.id() for case in cases].index(after) + 1 :]
    with open(f"{record}.{MPI.COMM_WORLD.Get_rank()}", "w", encoding="utf-8") as file:
        result = Record(file)
        unittest.TestSuite(cases).run(result)
        result.line("done")
    # The end of MPI may hang, too.
    faulthandler.dump_traceback_later(seconds, exit=True)


main()
