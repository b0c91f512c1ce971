"""PyTorch's own tests of backends, `distributed_test.py` out of its wheel, each by Gloo and by Roundelay.

Usage: suite.py [--ranks N] [--part K/N] [NAME]...

Every test that Gloo passes has to pass, unless `suite_exceptions.txt` lists it with a reason; a listed test that passes
is an error too. The tests ask for Gloo by name: in the runs of Roundelay that name stands for Roundelay, so that no
test is left out because of the backend's name. Ranks are forked from a process that has imported torch.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import sys
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

EXCEPTIONS = Path(__file__).with_name("suite_exceptions.txt")
SECONDS = 60
"""A test that takes longer has failed."""

os.environ["BACKEND"] = "gloo"
os.environ.setdefault("WORLD_SIZE", "3")
os.environ.setdefault("INIT_METHOD", "file://")
os.environ["DISTRIBUTED_TESTS_DEFAULT_TIMEOUT"] = str(SECONDS)
os.environ.setdefault("TEMP_DIR", "/tmp")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

import roundelay.torch  # noqa: E402, F401  (registers the backend)

OURS = "SUITE_IS_ROUNDELAY"
_plugins = dist.Backend._plugins
dist.Backend._ensure_backend_registered("gloo")
_gloo = _plugins["GLOO"]


def choose() -> None:
    """Has the name of Gloo stand for the tested backend."""
    ours = bool(os.environ.get(OURS))
    _plugins["GLOO"] = _plugins["ROUNDELAY"] if ours else _gloo
    # C++ takes what has the type of Gloo for an object of its class.
    kinds = dist.ProcessGroup.BackendType
    dist.Backend.backend_type_map["gloo"] = kinds.CUSTOM if ours else kinds.GLOO
    if ours:
        # The profiler shows calls of backends that are written in Python by other names than Gloo's.
        distributed_test.PROFILING_SUPPORTED_BACKENDS = []
        distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS = []


def in_rank(environment: dict[str, str], target: Callable[..., None], args: Any, kwargs: Any) -> None:
    """The work of a forked rank, whose environment so far is that of its parent process."""
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    choose()
    target(*args, **kwargs)


def process(target: Callable[..., None], name: str, args: Any = (), kwargs: Any = None) -> multiprocessing.process.BaseProcess:
    """A rank."""
    everything = (dict(os.environ), target, args, kwargs or {})
    return multiprocessing.get_context("forkserver").Process(target=in_rank, name=name, args=everything)


class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """The tests, each of which starts its ranks."""

    def setUp(self) -> None:
        super().setUp()
        self._start_processes(process)


class Outcome(NamedTuple):
    """How a test ended."""

    kind: str
    seconds: float
    text: str


def outcome(name: str, ours: bool) -> Outcome:
    """Runs a test."""
    os.environ.pop(OURS, None)
    # C++ takes what has the type of Gloo for an object of its class.
    kinds = dist.ProcessGroup.BackendType
    dist.Backend.backend_type_map["gloo"] = kinds.CUSTOM if ours else kinds.GLOO
    if ours:
        os.environ[OURS] = "1"
    result = unittest.TestResult()
    begun = time.monotonic()
    stream, sys.stderr = sys.stderr, io.StringIO()
    try:
        Suite(name).run(result)
    finally:
        sys.stderr = stream
    seconds = time.monotonic() - begun
    if result.errors or result.failures:
        return Outcome("failed", seconds, (result.errors + result.failures)[0][1])
    if result.skipped:
        return Outcome("skipped", seconds, result.skipped[0][1])
    return Outcome("passed", seconds, "")


def exceptions() -> dict[str, str]:
    """The tests that need not pass, and why."""
    lines = (line.strip() for line in EXCEPTIONS.read_text().splitlines())
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def main() -> int:
    """Runs the tests and prints how each ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--part", default="0/1", help="K/N: every N-th test, from the K-th on")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    os.environ["WORLD_SIZE"] = str(arguments.ranks)
    part, parts = map(int, arguments.part.split("/"))
    names = arguments.names or sorted(unittest.TestLoader().getTestCaseNames(Suite))[part::parts]
    listed = exceptions()
    passed, wrong = 0, []
    for name in names:
        theirs = outcome(name, ours=False)
        if theirs.kind != "passed":
            print(f"{name}: Gloo {theirs.kind} ({theirs.seconds:.1f} s)", flush=True)
            continue
        ours = outcome(name, ours=True)
        print(f"{name}: {ours.kind} ({ours.seconds:.1f} s, Gloo {theirs.seconds:.1f} s)", flush=True)
        if (ours.kind == "passed") == (name in listed):
            wrong.append(name)
            print(ours.text or "it is listed among the exceptions, and passes", flush=True)
        passed += ours.kind == "passed"
    print(f"{passed} pass that Gloo passes; not as expected: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    multiprocessing.set_forkserver_preload(["suite"])
    # By its name, so that the ranks find the class of the tests in a module that is there already.
    import suite

    sys.exit(suite.main())
