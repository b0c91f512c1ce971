"""Commands, and the workspace that they run in."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "target"
CORES = os.cpu_count() or 1


class Failure(Exception):
    """Why something was not done; an error of a job, and no bug of it."""


def output(*command: object, cwd: Path | None = None) -> str:
    """The output of a command, if it ends well."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, cwd=cwd)
    except OSError as error:
        raise Failure(f"{words[0]} did not start: {error}") from error
    if done.returncode:
        raise Failure(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


def within(command: list[str], seconds: float, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """All output of a command, if it ends well and in time. It goes into files, which never fill up as pipes do. A
    command that takes longer is asked to end and then made to: a launcher that is only killed leaves its ranks."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        variables = {**os.environ, **(env or {})}
        no_input = subprocess.DEVNULL
        with subprocess.Popen(command, env=variables, cwd=cwd, stdin=no_input, stdout=out, stderr=err) as child:
            try:
                why = "" if child.wait(seconds) == 0 else f"ended with {child.returncode}"
            except subprocess.TimeoutExpired:
                why = f"gave up after {seconds:.0f} s"
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(5)
                except subprocess.TimeoutExpired:
                    child.kill()
        out.seek(0)
        err.seek(0)
        said = (err.read() + b"\n" + out.read()).decode(errors="replace")
    if why:
        raise Failure(f"{why}\n{said.strip()}")
    return said


def brief(why: object) -> str:
    """The first two lines with letters: the failure, and the program's own message about it."""
    lines = [line.strip() for line in str(why).splitlines() if any(map(str.isalpha, line))]
    return ": ".join(lines[:2])


def cargo_build(profile: str, *args: str) -> Path:
    """Builds, and returns the folder of what was built."""
    words = [os.environ.get("CARGO", "cargo"), "build", "--profile", profile, *args]
    if subprocess.run(words, cwd=ROOT).returncode:
        raise Failure(f"{' '.join(words)} failed")
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    return target / ("debug" if profile == "dev" else profile)


def install(name: str) -> None:
    """Installs packages that `cargo xtask install` knows, unless they are there."""
    xtask = os.environ.get("XTASK")
    if not xtask or subprocess.run([xtask, "install", name]).returncode:
        raise Failure(f"{name} was not installed: `cargo xtask` does it")
