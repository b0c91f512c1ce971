"""Roundelay: collective algorithms as pages of step loops, proved, then run between the processes of one host.

:func:`compile` checks and proves a page. :class:`World` brings processes together, whose buffers are addresses;
``roundelay.torch`` is a backend for ``torch.distributed``. ``python -m roundelay`` is the command.
"""

from ._diagnostics import CompileError, Diagnostic
from ._library import COLLECTIVES, DTYPES, OPS, Error, Memory, Request, World, unique_id, version
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

__all__ = [
    "COLLECTIVES",
    "DTYPES",
    "OPS",
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
    "World",
    "bounds",
    "compile",
    "unique_id",
    "version",
]
__version__ = version()
