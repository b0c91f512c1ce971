"""Starts a function as ranks, each a process, and returns their results. The caller gets an answer in time for every
end of a rank: processes that are left after the time are killed.

The processes are forked from one that has imported torch and has no threads.
"""

from __future__ import annotations

import ctypes
import itertools
import multiprocessing
import multiprocessing.connection
import os
import socket
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "torch.distributed", "roundelay.torch"])


class Failed(NamedTuple):
    """A rank that raised."""

    text: str


class Ended(NamedTuple):
    """A rank whose process ended without an answer."""

    code: int | None


def settle(host: str) -> None:
    """Makes this process one of a host: of a network namespace, whose path it is, with a name of its own; or of this
    machine, as if it were another host."""
    if not host.startswith("/"):
        os.environ["ROUNDELAY_HOST_ID"] = host
        return
    net, uts = 0x40000000, 0x04000000
    system = ctypes.CDLL(None, use_errno=True)
    with open(host) as namespace:
        if system.setns(namespace.fileno(), net) or system.unshare(uts):
            raise OSError(ctypes.get_errno(), f"this process does not come into {host}")
    socket.sethostname(Path(host).name)


def _rank(
    body: Callable[..., Any], rank: int, nranks: int, folder: str, backend: str, seconds: float, host: str, answer: Any, args: Any
) -> None:
    import torch
    import torch.distributed as dist

    import roundelay.torch  # noqa: F401  (registers the backend)

    torch.set_num_threads(1)
    try:
        if host:
            settle(host)
        if backend:
            dist.init_process_group(
                backend, init_method=f"file://{folder}/store", rank=rank, world_size=nranks, timeout=timedelta(seconds=seconds)
            )
        said = body(rank, nranks, *args)
        if backend and dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        said = Failed(traceback.format_exc())
    answer.send(said)
    answer.close()
    # A failed body may have left threads in the middle of a call.
    if isinstance(said, Failed):
        os._exit(1)


def run(
    nranks: int,
    body: Callable[..., Any],
    *args: Any,
    backend: str = "roundelay",
    seconds: float = 60,
    deadline: float = 30,
    hosts: Sequence[str] = ("",),
) -> list[Any]:
    """The results of ``body(rank, nranks, *args)`` at each rank, in a group of all ranks, which are on the hosts by turns."""
    with tempfile.TemporaryDirectory() as folder:
        pipes = [CONTEXT.Pipe(duplex=False) for _ in range(nranks)]
        processes = [
            CONTEXT.Process(target=_rank, args=(body, rank, nranks, folder, backend, deadline, host, pipes[rank][1], args), daemon=True)
            for rank, host in zip(range(nranks), itertools.cycle(hosts))
        ]
        for process, (_, answer) in zip(processes, pipes):
            process.start()
            answer.close()
        until = time.monotonic() + seconds
        said: list[Any] = []
        for rank, (process, (pipe, _)) in enumerate(zip(processes, pipes)):
            try:
                if pipe.poll(max(0.0, until - time.monotonic())):
                    said.append(pipe.recv())
                else:
                    said.append(Failed(f"rank {rank} said nothing in {seconds} s"))
            except EOFError:
                process.join(5)
                said.append(Ended(process.exitcode))
        for process in processes:
            process.join(max(0.0, min(10.0, until - time.monotonic())))
            if process.exitcode is None:
                process.kill()
                process.join()
        return said


def fine(said: list[Any]) -> list[Any]:
    """The answers, where no rank failed."""
    bad = [f"rank {rank}: {answer}" for rank, answer in enumerate(said) if isinstance(answer, (Failed, Ended))]
    assert not bad, "\n".join(str(each).replace("\\n", "\n") for each in bad)
    return said


def shm() -> set[str]:
    """The names in the folder of named shared memory."""
    return {path.name for path in Path("/dev/shm").iterdir()}
