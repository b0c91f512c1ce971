"""Helpers of the tests: programs that run as several ranks."""

import re
import subprocess
import sys
import textwrap
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
