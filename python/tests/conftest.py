"""Helpers of the tests: programs that run as several ranks."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Callable

import pytest

Launch = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def launch(tmp_path) -> Launch:
    """Runs a program as several ranks by ``python -m roundelay launch``, for a minute at most. Their output does not
    mix within a line."""

    def run(nranks: int, program: str, *flags: str) -> "subprocess.CompletedProcess[str]":
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(program))
        words = [sys.executable, "-m", "roundelay", "launch", "--prefix", "-n", str(nranks), *flags]
        words += ["--", sys.executable, str(path)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        # Without the rank that it begins with.
        done.stdout = re.sub(r"^\[\d+\] ", "", done.stdout, flags=re.MULTILINE)
        return done

    return run


TESTS = Path(__file__).parent


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has programs find the driver for tests."""
    if shutil.which("g++") is None:
        pytest.skip("the driver for tests needs g++")
    root = TESTS.parent.parent
    made = subprocess.run(
        ["sh", str(root / "tests/driver/make.sh"), "all", str(root / "target/driver")],
        capture_output=True, text=True, check=True,
    )
    for line in made.stdout.splitlines():
        name, value = line.split("=", 1)
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS / "torch"), os.environ.get("PYTHONPATH", "")]))
    # The driver's last device reaches no other.
    monkeypatch.setenv("ROUNDELAY_FAKE_DEVICES", "4")
