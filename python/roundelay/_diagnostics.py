"""The diagnostics of the compiler, and the errors that carry them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Sequence

from . import _library
from ._library import Error


@dataclass(frozen=True)
class Diagnostic:
    """An error or a warning at a place of a source. Lines and columns are counted from 1."""

    code: str
    severity: str
    title: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    #: The rank count at which it was found, if it depends on the rank count.
    nranks: int | None
    label: str
    notes: tuple[str, ...]
    help: str | None

    @classmethod
    def of(cls, said: dict[str, Any]) -> Diagnostic:
        """A diagnostic as the command prints it."""
        known = {name: said[name] for name in cls.__dataclass_fields__ if name != "notes"}
        return cls(notes=tuple(said["notes"]), **known)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.severity}[{self.code}]: {self.title}"


class CompileError(Error):
    """A wrong page, or a page that does not fit the request. The message shows each error at its place, as the command
    does; ``diagnostics`` has the diagnostics one by one, and ``code`` is the code of the first error."""

    def __init__(self, message: str, code: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message, code)
        self.diagnostics = tuple(diagnostics)


def told(words: Sequence[str], input: str) -> str:
    """The output of the command. Raises the text of its standard error."""
    code, out, err = _library.command(*words, input=input)
    if code and not err:
        # The JSON document has the error for programs; this run gives the text for people.
        at = words.index("--format")
        _, _, err = _library.command(*words[:at], *words[at + 2 :], input=input)
    if code:
        raise _refused(code, err)
    return out


def checked(words: Sequence[str], input: str) -> dict[str, Any]:
    """The report of ``check`` about the algorithms of a source. Raises their errors."""
    code, out, err = _library.command("check", "--format", "json", *words, input=input)
    if code > 1:
        raise _refused(code, err)
    said: dict[str, Any] = json.loads(out)
    if code:
        # The text for people, with the lines of the source.
        _, _, err = _library.command("check", *words, input=input)
        found = [Diagnostic.of(each) for each in said["diagnostics"]]
        first = next((each.code for each in found if each.severity == "error"), "E0505")
        raise CompileError(err.strip(), first, found)
    return said


def _refused(code: int, err: str) -> Error:
    """The error of a failed command: exit code 1 is a wrong program, and 2 a wrong call."""
    found = re.search(r"error\[(E\d{4})\]", err)
    named = found.group(1) if found else "E0507"
    return CompileError(err.strip(), named) if code == 1 else Error(err.strip(), named)
