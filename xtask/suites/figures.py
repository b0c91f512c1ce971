"""Tables in Markdown, which people read as well, and measured times: for each place of a table the times of all
launches of all competitors, which take turns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import median

from commands import Failure, brief

Time = tuple[float, bool]
"""Microseconds, and whether results were wrong."""
Launched = tuple[str, str, int, "Time | Failure"]
"""Of a launch: a column, the library or algorithm that was launched for it, a size in bytes, and the result."""
Competitor = Callable[[], "list[Launched]"]
"""Makes one launch."""


def line(row: Iterable[str], widths: Iterable[int]) -> str:
    return "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |"


class Table:
    """Rows of text, and notes below them."""

    def __init__(self, *heads: str) -> None:
        self.rows, self.notes = [list(heads)], list[str]()

    def add(self, *row: object) -> None:
        self.rows.append([str(text) for text in row])

    def last(self) -> str:
        return line(self.rows[-1], map(len, self.rows[-1]))

    def note(self, note: str) -> None:
        """Adds a note, and prints it at once."""
        print(note, flush=True)
        self.notes.append(note)

    def text(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.rows)]
        lines = [line(row, widths) for row in self.rows]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        notes = ["", *(f"* {note}" for note in self.notes)] if self.notes else []
        return "\n".join([*lines, *notes, ""])


def told(size: int) -> str:
    """A size for people."""
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def micros(time: float) -> str:
    """Three significant digits, or all before the point."""
    return f"{time:.{2 if time < 9.995 else 1 if time < 99.95 else 0}f}"


class Series:
    """All launches of one competitor at a size."""

    def __init__(self) -> None:
        self.times, self.wrong, self.failures = list[float](), False, list[str]()


class Figures:
    """The times of all competitors: `cells[place, size][column, of]`."""

    def __init__(self) -> None:
        self.cells: dict[tuple[tuple[str, ...], int], dict[tuple[str, str], Series]]
        self.cells = defaultdict(lambda: defaultdict(Series))

    def measure(self, place: tuple[str, ...], launches: int, competitors: list[Competitor]) -> None:
        """Launches all competitors by turns."""
        for competitor in competitors * launches:
            for column, of, size, result in competitor():
                series = self.cells[place, size][column, of]
                if isinstance(result, Failure):
                    print(f"{', '.join(place)}, {column} {of}: {brief(result)}", flush=True)
                    series.failures.append(brief(result))
                else:
                    series.times.append(result[0])
                    series.wrong |= result[1]

    def best(self, cell: dict[tuple[str, str], Series], column: str) -> tuple[float, list[float], str] | None:
        """The least median of a column, all its times, and what it is of. Wrong results do not count."""
        right = [(s, of) for (c, of), s in cell.items() if c == column and s.times and not s.wrong]
        return min(((median(s.times), s.times, of) for s, of in right), default=None)

    def pairs(self, above: str, below: str) -> list[tuple[str, float, float]]:
        """The places with times in two columns, and both medians."""
        found = []
        for (place, size), cell in self.cells.items():
            a, b = self.best(cell, above), self.best(cell, below)
            if a and b:
                found.append((", ".join((*place, told(size))), a[0], b[0]))
        return found

    def troubles(self) -> list[str]:
        """The launches that did not end well or were wrong."""
        found = []
        for (place, size), cell in self.cells.items():
            for (column, of), series in cell.items():
                wrong = ["results are wrong"] if series.wrong else []
                where = ", ".join((*place, f"{column} {of}".strip(), told(size)))
                found += [f"{where}: {why}" for why in wrong + series.failures]
        return found

    def verdict(self) -> None:
        if troubles := self.troubles():
            raise Failure(f"{len(troubles)} of the measurements failed or were wrong")

    def table(self, heads: list[str], columns: list[str], ratios: list[tuple[str, str]]) -> Table:
        """The table without columns in which nothing was measured, and with all troubles below it."""
        seen = {c for cell in self.cells.values() for c in columns if self.best(cell, c)}
        columns = [column for column in columns if column in seen]
        ratios = [pair for pair in ratios if seen.issuperset(pair)]
        table = Table(*heads, "size", *columns, *(f"{a} / {b}" for a, b in ratios))
        for (place, size), cell in self.cells.items():
            best = {column: found for column in columns if (found := self.best(cell, column))}
            times = [shown(*best[column]) if column in best else "-" for column in columns]
            both = [f"{best[a][0] / best[b][0]:.2f}" if a in best and b in best else "-" for a, b in ratios]
            table.add(*place, told(size), *times, *both)
        table.notes += self.troubles()
        return table


def shown(middle: float, times: list[float], of: str) -> str:
    """A median with its spread, and the library without its version, or the algorithm."""
    spread = f" [{micros(min(times))}-{micros(max(times))}]" if min(times) < max(times) else ""
    return f"{micros(middle)}{spread} {re.sub(r' [0-9][^ ]*', '', of)}".strip()


def launched(column: str, of: str, sizes: list[int], launch: Callable[[], list[Time]]) -> list[Launched]:
    """The results of a launch that times all these sizes, or none of them."""
    try:
        return [(column, of, size, time) for size, time in zip(sizes, launch())]
    except Failure as why:
        return [(column, of, size, why) for size in sizes]
