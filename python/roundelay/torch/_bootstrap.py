"""How the ranks of a group find each other: through the store that torch hands to a backend."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torch._C._distributed_c10d import PrefixStore, Store


class _Exchange:
    """Bytes of all ranks, by a key of each in a store."""

    def __init__(self, store: Store, rank: int, nranks: int, timeout: timedelta) -> None:
        self._store = store
        self._rank = rank
        self._nranks = nranks
        self._timeout = timeout
        self._turn = 0

    def all(self, mine: bytes) -> list[bytes]:
        """The bytes of all ranks, in their order."""
        turn, self._turn = self._turn, self._turn + 1
        keys = [f"{turn}/{rank}" for rank in range(self._nranks)]
        try:
            # torch's types say text, and its stores take bytes.
            self._store.set(keys[self._rank], mine)  # type: ignore[arg-type]
            self._store.wait(keys, self._timeout)
            told = [bytes(self._store.get(key)) for key in keys]
        except Exception as error:
            raise RuntimeError(self._why(keys, error)) from error
        other = next((rank for rank, theirs in enumerate(told) if len(theirs) != len(mine)), None)
        if other is not None:
            raise RuntimeError(
                f"rank {other} gave {len(told[other])} bytes where this rank gave {len(mine)}: "
                "it runs another version of roundelay; install one version for all ranks"
            )
        return told

    def _why(self, keys: list[str], error: Exception) -> str:
        seconds = self._timeout.total_seconds()
        try:
            missing = [rank for rank, key in enumerate(keys) if not self._store.check([key])]
        except Exception:
            return (
                f"the store that torch handed to the group does not answer ({error}): "
                "is the process that serves it (rank 0, or torchrun) alive?"
            )
        if not missing:
            return f"the store that torch handed to the group failed: {error}"
        names = ", ".join(str(rank) for rank in missing)
        return (
            f"of {self._nranks} ranks these did not come to the store within {seconds:g} s: {names}: "
            "all ranks of a group have to make it; a longer timeout= waits longer"
        )


def anew(store: Store, rank: int) -> Store:
    """The part of a store for one group. A store may outlive a group, and serve the next one of the same name: all ranks
    count the groups that they made there, so that none reads what a rank said before."""
    try:
        turn = store.add(f"roundelay/groups/{rank}", 1)
    except Exception as error:
        raise RuntimeError(f"the store that torch handed to the group failed: {error}") from error
    return PrefixStore(f"roundelay/{turn}", store)


def meet(
    make: Callable[..., Any], store: Store, rank: int, nranks: int, timeout: timedelta
) -> Any:
    """The world of a group. ``make`` is ``World.bootstrap``.

    Raises RuntimeError where a rank does not come, the store fails, or ranks run different versions.
    """
    exchange = _Exchange(store, rank, nranks, timeout)
    return make(nranks, rank, lambda mine: b"".join(exchange.all(mine)), timeout=timeout.total_seconds())
