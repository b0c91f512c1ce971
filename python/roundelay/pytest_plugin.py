"""A plugin of pytest: files that end in ``.kernel.toml`` are tests of communication kernels.

A harness that states its verdicts is a test for each case; any other one for each number of ranks with each number of
elements.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import pytest

from ._kernel_check import cases, kernel_check


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("roundelay")
    group.addoption("--kernel-seeds", type=int, help="seeds of each case of a *.kernel.toml file")


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    if not file_path.name.endswith(".kernel.toml"):
        return None
    collector: pytest.Collector = KernelFile.from_parent(parent, path=file_path)
    return collector


class KernelFile(pytest.File):
    """A harness."""

    def collect(self) -> Iterator[pytest.Item]:
        for case in cases(str(self.path)):
            name = case["case"] or "kernel"
            if case["expected"]:
                yield KernelItem.from_parent(self, name=name, call={"case": case["case"]})
                continue
            for ranks in case["ranks"]:
                for elements in case["elements"]:
                    label = f"{name}[{ranks}-{','.join(map(str, elements))}]"
                    call = {"case": case["case"], "ranks": [ranks], "elements": elements}
                    yield KernelItem.from_parent(self, name=label, call=call)


class KernelItem(pytest.Item):
    """The check of a case."""

    def __init__(self, *, call: dict[str, Any], **more: Any) -> None:
        super().__init__(**more)
        self.call = call

    def runtest(self) -> None:
        seeds = self.config.getoption("--kernel-seeds")
        verdict = kernel_check(str(self.path), seeds=seeds, **self.call)
        if not verdict.ok:
            raise AssertionError(str(verdict))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name
