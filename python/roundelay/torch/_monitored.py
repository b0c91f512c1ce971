"""A barrier over the store instead of the library, whose error names the ranks that did not come."""

from __future__ import annotations

import time
from datetime import timedelta

from torch._C._distributed_c10d import Store


def monitored_barrier(
    store: Store, turn: int, rank: int, nranks: int, timeout: timedelta, wait_all_ranks: bool
) -> None:
    """Returns when all ranks have come. Raises RuntimeError that names the ranks that did not come in time: the first
    rank, or all ranks with ``wait_all_ranks``.
    """
    prefix = f"monitored/{turn}"
    verdict = f"{prefix}/verdict"
    seconds = timeout.total_seconds()
    store.set(f"{prefix}/{rank}", "here")
    if rank != 0:
        try:
            store.wait([verdict], timeout)
        except Exception as error:
            raise RuntimeError(f"rank 0 did not come to the barrier within {seconds:g} s: {error}") from error
        text = store.get(verdict).decode()
        if text:
            raise RuntimeError(
                f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
                f"from rank 0, which says: {text}"
            )
        return
    text = _missing(store, prefix, nranks, seconds, wait_all_ranks)
    store.set(verdict, text)
    if text:
        raise RuntimeError(text)


def _missing(store: Store, prefix: str, nranks: int, seconds: float, wait_all_ranks: bool) -> str:
    """The ranks that did not come, in the words of Gloo; an empty text where all ranks came."""
    until = time.monotonic() + seconds
    shown = f"{round(seconds * 1000)} ms"
    missing = []
    for other in range(1, nranks):
        left = until - time.monotonic()
        if left <= 0 and not wait_all_ranks:
            return f"Rank 0 timed out in monitoredBarrier after {shown}, before rank {other} was seen"
        try:
            store.wait([f"{prefix}/{other}"], timedelta(seconds=max(0.001, left)))
        except RuntimeError:
            if not wait_all_ranks:
                return f"Rank {other} failed to pass monitoredBarrier in {shown}"
            missing.append(str(other))
    return f"Ranks {', '.join(missing)} failed to pass monitoredBarrier in {shown}" if missing else ""
