"""The programs on the book's pages about Python run as they are shown, one after the other."""

import re
import subprocess
import sys
from pathlib import Path

from conftest import Launch

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "book/src/guide"
RESULTS = ROOT / "book/src/results"


def test_the_page_about_python_runs() -> None:
    text = (GUIDE / "python.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert len(programs) >= 4
    names: "dict[str, object]" = {}
    for program in programs:
        exec(compile(program, "python.md", "exec"), names)


def test_the_picture_is_of_what_was_measured() -> None:
    plot = [sys.executable, str(ROOT / "python/bench/plot.py"), "all_reduce"]
    measured = (RESULTS / "torch.measured").read_text(encoding="utf-8")
    drawn = subprocess.run(plot, input=measured, capture_output=True, text=True, timeout=60, check=True)
    assert drawn.stdout == (RESULTS / "torch.svg").read_text(encoding="utf-8")
    # So are the numbers of the page.
    page = (RESULTS / "torch.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\| (\w+) \| \d+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", measured, re.MULTILINE):
        theirs, ours = (f"{float(time):.0f}" if float(time) >= 9.95 else time for time in row[1:3])
        assert re.search(rf"^\| {row[0]} \|.* {theirs} \| {ours} \| {row[3]} \|", page, re.MULTILINE), row


def test_the_program_of_ranks_runs(launch: Launch) -> None:
    text = (GUIDE / "python.md").read_text(encoding="utf-8")
    first = re.search(r"^```python,ignore\n(import.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert first is not None
    done = launch(4, first[1])
    expected = [f"{rank} 6.0 (8,) 0.0" for rank in range(4)]
    assert sorted(done.stdout.splitlines()) == expected, done.stderr
