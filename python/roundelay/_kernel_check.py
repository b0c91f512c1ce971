"""Communication kernels that others wrote, checked on several GPUs without a GPU: ``roundelay kernel check``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence, Union

from . import _library
from ._diagnostics import CompileError, Diagnostic

#: A harness: its tables as a dict, or the path of a file with them.
Harness = Union[Mapping[str, Any], str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Verdict:
    """The verdicts on the cases of a harness. ``str`` tells each in a line."""

    #: Whether each case is without an error, or has the verdict that the harness states.
    ok: bool
    #: For each case its verdict in a word: ``clean``, ``relies(NAME, …)``, or the kind of the error, such as ``race``.
    words: tuple[str, ...]
    #: All that the command says, one dict for each case.
    data: tuple[Mapping[str, Any], ...] = field(repr=False)

    def __str__(self) -> str:
        return "\n".join(map(_line, self.data))


def _line(said: Mapping[str, Any]) -> str:
    case = f", {said['case']}" if said["case"] else ""
    line = f"{said['file']}{case}: {said['verdict']}"
    for found in said["findings"]:
        line += f": {found['message']}"
        for at in (found["at"], found["other"]):
            if at and at["file"]:
                line += f"; {at['file']}:{at['line']}, rank {at['rank']}, call {at['call']}"
        line += f" (seed {found['seed']}, {found['ranks']} ranks)"
    if not said["findings"]:
        line += f", no finding in {sum(case['seeds'] for case in said['cases'])} runs"
    return line


def kernel_check(
    harness: Harness,
    *,
    case: str | None = None,
    seeds: int | None = None,
    first: int = 0,
    ranks: Sequence[int] = (),
    elements: Sequence[int] = (),
    budget: float = 60.0,
    allow_partial: bool = False,
) -> Verdict:
    """The verdict on the kernels of a harness, by ``seeds`` runs of each number of ranks with each number of elements.

    A dict has the tables of a file; its paths begin in the current directory. Raises :class:`CompileError` where the
    harness makes no sense, or its kernels cannot be compiled.
    """
    words = [f"--first={first}", f"--budget={budget}s"]
    words += [f"--case={case}"] if case is not None else []
    words += [f"--seeds={seeds}"] if seeds is not None else []
    words += [f"--ranks={','.join(map(str, ranks))}"] if ranks else []
    words += [f"--elements={','.join(map(str, elements))}"] if elements else []
    words += ["--allow-partial"] if allow_partial else []
    said = _said(harness, words)
    verdicts = tuple(said["verdicts"])
    return Verdict(said["ok"], tuple(each["verdict"] for each in verdicts), verdicts)


def cases(path: str) -> list[dict[str, Any]]:
    """The cases of a harness, each with its name, ranks and elements, and with the verdicts that it states."""
    listed: list[dict[str, Any]] = _said(path, ["--list"])["cases"]
    return listed


def _said(harness: Harness, words: Sequence[str]) -> dict[str, Any]:
    """The JSON document of the command."""
    name, text = (json.dumps(harness), "") if isinstance(harness, Mapping) else ("", os.fspath(harness))
    call = ["kernel", "check", text or "-", "--format", "json", *words]
    _, out, err = _library.command(*call, input=name)
    if not out:
        raise CompileError(err, "E0435")
    said: dict[str, Any] = json.loads(out)
    if said["diagnostics"]:
        found = [Diagnostic.of(each) for each in said["diagnostics"]]
        raise CompileError("\n".join(map(str, found)), found[0].code, found)
    return said
