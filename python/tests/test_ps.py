"""``roundelay ps`` beside ranks of Python, of which one does not make a call."""

import json
import subprocess
import sys
import time
from typing import Any, Callable

import pytest

#: The lines of the program from which the calls of its ranks come, the last one first.
LINES = (14, 12, 9)

PROGRAM = """\
import ctypes, time
from roundelay import COLLECTIVES, DTYPES, World
ALL_REDUCE, F32 = COLLECTIVES["AllReduce"], DTYPES["f32"]
world = World.from_env(timeout=50{options})
data = (ctypes.c_float * 1000)()
at = ctypes.addressof(data)

def reduce(count):
    world.call(ALL_REDUCE, at, at, count, F32)

reduce(1000)
world.start(ALL_REDUCE, at, at, 500, F32).wait()
time.sleep(50 * world.rank)
world.barrier()
"""


def seen(pid: int, good: Callable[[Any], bool]) -> Any:
    """What ``roundelay ps`` tells of the one world of a job, once ``good`` holds."""
    until = time.monotonic() + 40
    while True:
        words = [sys.executable, "-m", "roundelay", "ps", "--json", str(pid)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        document = json.loads(done.stdout) if done.returncode == 0 else {"worlds": []}
        if len(document["worlds"]) == 1 and good(document["worlds"][0]):
            return document["worlds"][0]
        assert time.monotonic() < until, document
        time.sleep(0.05)


@pytest.mark.parametrize("options, sites", [("", False), (", sites=True", True)])
def test_a_call_that_is_missing_is_told_with_its_line(tmp_path, options: str, sites: bool) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(options=options))
    words = [sys.executable, "-m", "roundelay", "launch", "-n", "2", "--", sys.executable, str(path)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as launcher:
        try:
            world = seen(launcher.pid, lambda world: any("has not made" in told for told in world["told"]))
        finally:
            launcher.terminate()
    place = f", at program.py:{LINES[0]}" if sites else ""
    told = f"has not made call 3 (AllReduce of 1 u8, max{place}); rank 0 waits for it since"
    assert len(world["told"]) == 1 and told in world["told"][0], world["told"]
    lines = [f"{path}:{line}" if sites else None for line in LINES]
    assert [call["site"] for call in world["ranks"][0]["last_calls"]] == lines
    assert [call["site"] for call in world["ranks"][1]["last_calls"]] == lines[1:]
