"""``python -m roundelay`` is the command."""

import subprocess
import sys

from roundelay import _library


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "roundelay", *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


def test_it_says_and_ends_as_the_command() -> None:
    done = command("check", "RingAllReduce", "-n", "4")
    assert done.returncode == 0 and "proved RingAllReduce" in done.stdout, done.stderr
    done = command("check", "NoSuch")
    assert done.returncode == 2 and "error[E0502]" in done.stderr
    assert command("--version").stdout.startswith("roundelay 0.")
    assert command("launch", "-n", "2", "--", "sh", "-c", "exit 7").returncode == 7


def test_its_ranks_are_processes() -> None:
    done = command("run", "RingAllReduce", "-n", "2", "--callers", "processes", "--count", "100")
    assert done.returncode == 0 and " 0\n" in done.stdout, done.stderr


def test_as_a_function_it_starts_no_processes() -> None:
    code, out, err = _library.command("launch", "-n", "2", "--", "true")
    assert (code, out) == (2, "") and "start the command `roundelay`" in err
    code, out, err = _library.command("check", "-", input="algorithm X() -> AllReduce { }")
    assert code == 1 and "\x1b" not in err and "error[E0304]" in err
    assert _library.command("--help")[1].startswith("Collective algorithms")
