"""A barrier that says which ranks did not come, over the store instead of the library: for finding out who hangs."""

from __future__ import annotations

import time
from datetime import timedelta

from torch.distributed import Store


def monitored_barrier(
    store: Store, turn: int, rank: int, nranks: int, timeout: timedelta, wait_all_ranks: bool
) -> None:
    """Returns when all ranks have come. Raises RuntimeError that names those who did not come in time: the first, or all
    of them where ``wait_all_ranks`` says so.
    """
    prefix = f"roundelay/monitored/{turn}"
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
            raise RuntimeError(text)
        return
    until = time.monotonic() + seconds
    missing = []
    for other in range(1, nranks):
        left = timedelta(seconds=max(0.001, until - time.monotonic()))
        try:
            store.wait([f"{prefix}/{other}"], left)
        except Exception:
            missing.append(other)
            if not wait_all_ranks:
                break
    text = ""
    if missing:
        ranks = ", ".join(str(other) for other in missing)
        word = "Rank" if len(missing) == 1 else "Ranks"
        text = f"{word} {ranks} failed to pass monitoredBarrier in {round(seconds * 1000)} ms"
    store.set(verdict, text)
    if text:
        raise RuntimeError(text)
