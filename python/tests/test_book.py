"""The programs on the book's pages about Python run as they are shown, one after the other."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "book/src/guide"


def test_the_page_about_python_runs() -> None:
    text = (GUIDE / "python.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert len(programs) >= 4
    names: "dict[str, object]" = {}
    for program in programs:
        exec(compile(program, "python.md", "exec"), names)
