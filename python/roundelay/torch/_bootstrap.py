"""How the ranks of a group find each other: through the store that torch hands to a backend."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from torch._C._distributed_c10d import Store


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
        keys = [f"roundelay/{turn}/{rank}" for rank in range(self._nranks)]
        try:
            # torch's types say text, and its stores take bytes.
            self._store.set(keys[self._rank], mine)  # type: ignore[arg-type]
            self._store.wait(keys, self._timeout)
            return [bytes(self._store.get(key)) for key in keys]
        except Exception as error:
            raise RuntimeError(self._why(keys, error)) from error

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


def _host() -> str:
    """The identity of a host: its name, and the number that the kernel drew when it started."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        started = ""
    return f"{socket.gethostname()} {started}"


def meet(
    make: Callable[..., Any], store: Store, rank: int, nranks: int, timeout: timedelta
) -> Any:
    """The world of a group. ``make`` is ``World.bootstrap``.

    Raises RuntimeError where a rank does not come, the store fails, or ranks are on several hosts.
    """
    exchange = _Exchange(store, rank, nranks, timeout)
    hosts = [host.decode(errors="replace") for host in exchange.all(_host().encode())]
    # Containers of one host have names of their own.
    started = [host.split(" ", 1)[1] for host in hosts]
    other = next((at for at in range(nranks) if started[at] != started[rank]), None)
    if other is not None:
        raise RuntimeError(
            f"rank {rank} is on host {hosts[rank].split()[0]}, rank {other} on {hosts[other].split()[0]}: "
            "ranks of this backend share the memory of one host; make groups of the ranks of one host "
            "(new_group), and use gloo or mpi between hosts"
        )
    return make(nranks, rank, lambda mine: b"".join(exchange.all(mine)), timeout=timeout.total_seconds())
