"""Errors, which say which call they are of."""

from __future__ import annotations

from roundelay._library import Error


def again(error: Exception) -> Exception:
    """The same error once more, for a call that ends with what another one met."""
    if isinstance(error, Error):
        return Error(str(error), error.code)
    return RuntimeError(str(error))


def named(error: Exception, call: str, where: str) -> Exception:
    """The error, whose message says which call it was, and where."""
    if not getattr(error, "_roundelay_named", False):
        error.args = (f"roundelay: {call} at {where}: {error}",)
        error._roundelay_named = True  # type: ignore[attr-defined]
    return error
