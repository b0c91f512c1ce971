"""The program that times one collective by any MPI, and what it prints."""

from __future__ import annotations

from commands import Failure, within
from figures import Time
from mpis import Mpi

LONGEST = 120
"""Seconds of a launch: ranks that live longer end by themselves."""
GRACE = 10
"""Seconds more of a launcher, to clear up after its ranks."""


def compile(mpi: Mpi) -> str:
    return str(mpi.compile("xtask/suites/driver.c", "-O3", "-march=native"))


def words(driver: str, op: str, sizes: list[int], *flags: str) -> list[str]:
    """The command line of each rank."""
    return [driver, "--pinned", *flags, "--seconds", str(LONGEST), op, *map(str, sizes)]


def times(launch: list[str], sizes: list[int], env: dict[str, str], refusals: tuple[str, ...] = ()) -> list[Time]:
    """The times of a launch. A library may say that it ignores a setting, and does then as it would without."""
    said = within(launch, LONGEST + GRACE, env)
    for line in said.splitlines():
        if any(refusal in line for refusal in refusals):
            raise Failure(f"refused: {line}")
    found = read(said, sizes)
    if found is None:
        raise Failure(f"it did not print a time for each size\n{said}")
    return found


def read(text: str, sizes: list[int]) -> list[Time] | None:
    """The median in microseconds of each size and whether elements were wrong, as a driver printed them among what a
    launcher says; None if it did not print exactly these sizes in this order."""
    found = []
    for line in text.splitlines():
        try:
            size, time, wrong = line.split()
            found.append((int(size), float(time), float(wrong) > 0))
        except ValueError:
            continue
    return [row[1:] for row in found] if [row[0] for row in found] == sizes else None
