"""Errors whose messages name their call."""

from __future__ import annotations

from roundelay._library import Error


_LATE = "E0405"
"""The code of a deadline that has passed."""


def again(error: Exception) -> Exception:
    """A copy of an error, for a call that ends with the error of another call."""
    if isinstance(error, Error):
        return Error(str(error), error.code)
    return RuntimeError(str(error))


def named(error: Exception, call: str, where: str) -> Exception:
    """The error, with the call and its place in the message."""
    if not getattr(error, "_roundelay_named", False):
        late = isinstance(error, Error) and error.code == _LATE
        hint = "; the deadline is the timeout that init_process_group or new_group was given" if late else ""
        error.args = (f"roundelay: {call} at {where}: {error}{hint}",)
        error._roundelay_named = True  # type: ignore[attr-defined]
    return error
