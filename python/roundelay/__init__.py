"""Roundelay: collective algorithms, proved, then run between processes."""

from ._library import Error, Memory, Request, World, unique_id, version

__all__ = ["Error", "Memory", "Request", "World", "unique_id", "version"]
__version__ = version()
