"""The build backend of the package: maturin's, which says how long cargo builds the library.

pip shows the output of a build with ``-v`` alone. Without it, lines go to the terminal from which pip was started, if
there is one: a build of some minutes does not look like a standstill.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Any, Iterator

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

#: Seconds between two lines.
_PAUSE = 15


def build_wheel(*given: Any, **named: Any) -> str:
    """Builds the library and packs it."""
    with _told():
        return maturin.build_wheel(*given, **named)


def build_editable(*given: Any, **named: Any) -> str:
    """Builds the library for a package that stays where its source is."""
    with _told():
        return maturin.build_editable(*given, **named)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Says when a build begins, that it goes on, and how long it took."""
    begun = time.monotonic()
    ended = threading.Event()

    def seconds() -> str:
        return f"{time.monotonic() - begun:.0f} s"

    def going_on() -> None:
        while not ended.wait(_PAUSE):
            _say(f"roundelay: cargo builds the library, for {seconds()} so far")

    _say("roundelay: cargo builds the library, in some minutes on two cores; `pip install -v` shows its crates")
    lines = threading.Thread(target=going_on, daemon=True)
    lines.start()
    try:
        yield
    except BaseException:
        _say(f"roundelay: the build failed after {seconds()}")
        raise
    else:
        _say(f"roundelay: the library was built in {seconds()}")
    finally:
        ended.set()
        lines.join()


def _say(line: str) -> None:
    print(line, flush=True)
    if sys.stdout.isatty():
        return
    with contextlib.suppress(OSError), open("/dev/tty", "w", encoding="utf-8") as terminal:
        # Below the line that pip is drawing.
        terminal.write(f"\n  {line}")
