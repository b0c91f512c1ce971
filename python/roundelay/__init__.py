"""Roundelay: collective algorithms as pages of step loops, proved, then run between the processes of one host.

:func:`compile` checks and proves a page. :class:`World` brings processes together, whose collectives take arrays;
``roundelay.torch`` is a backend for ``torch.distributed``. ``python -m roundelay`` is the command.
"""

from ._codes import COLLECTIVES, DTYPES, OPS
from ._diagnostics import CompileError, Diagnostic
from ._arrays import ArgumentError
from ._kernel_check import Verdict, kernel_check
from ._library import Error, unique_id, version
from ._program import (
    Bounds,
    Certificate,
    Op,
    Picture,
    Program,
    Schedule,
    Simulation,
    bounds,
    compile,
)
from ._world import Memory, Request, World

__all__ = [
    "COLLECTIVES",
    "DTYPES",
    "OPS",
    "ArgumentError",
    "Bounds",
    "Certificate",
    "CompileError",
    "Diagnostic",
    "Error",
    "Memory",
    "Op",
    "Picture",
    "Program",
    "Request",
    "Schedule",
    "Simulation",
    "Verdict",
    "World",
    "bounds",
    "compile",
    "kernel_check",
    "unique_id",
    "version",
]
__version__ = version()
