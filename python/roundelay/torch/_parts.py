"""The calls of the library: each of torch's collectives as a call of a world, with its buffers.

A function raises TypeError or ValueError for tensors that the collective cannot take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch

from ._elements import PREMUL_SUM, copied, reduction
from ._layout import Copy, alike, apart, check, joined, read, shown, update, write

ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SCATTER, GATHER, ALL_TO_ALL = range(8)
"""The library's codes of collectives."""


class Part(NamedTuple):
    """One call of the library."""

    collective: int
    given: Optional[torch.Tensor]
    """Begins at the address of the input."""
    taken: Optional[torch.Tensor]
    """Begins at the address of the output."""
    elements: int
    """How many, as the library counts them for the collective."""
    dtype: int
    op: int = 0
    root: int = 0
    copy: Copy = None
    """What is done after it."""


def one(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The tensor of a call that takes a list of exactly one tensor."""
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors in one call: give one, or call it once for each")
    check(tensors[0])
    return tensors[0]


def _scaled(tensor: torch.Tensor, op: Any) -> tuple[torch.Tensor, int, int]:
    """The tensor to reduce, and the codes of its elements and of the operation."""
    kind = op.op.value
    dtype, code = reduction(tensor, kind)
    if kind == PREMUL_SUM:
        tensor = (tensor.detach() * op.factor).to(tensor.dtype)
    return tensor, dtype, code


def _reduced_in_place(tensor: torch.Tensor, op: Any) -> tuple[torch.Tensor, Copy, int, int]:
    given, dtype, code = _scaled(tensor, op)
    if given is tensor:
        buffer, copy = update(tensor)
        return buffer, copy, dtype, code
    buffer = given.contiguous()
    return buffer, lambda: tensor.detach().copy_(buffer), dtype, code


def all_reduce(tensor: torch.Tensor, op: Any) -> Part:
    """In place."""
    buffer, copy, dtype, code = _reduced_in_place(tensor, op)
    return Part(ALL_REDUCE, buffer, buffer, buffer.numel(), dtype, code, 0, copy)


def reduce(tensor: torch.Tensor, op: Any, root: int, rank: int) -> Part:
    """In place at the root; elsewhere the tensor is only read."""
    if rank == root:
        buffer, copy, dtype, code = _reduced_in_place(tensor, op)
        return Part(REDUCE, buffer, buffer, buffer.numel(), dtype, code, root, copy)
    given, dtype, code = _scaled(tensor, op)
    given = read(given)
    return Part(REDUCE, given, None, given.numel(), dtype, code, root)


def reduce_scatter(output: torch.Tensor, given: torch.Tensor, op: Any, nranks: int) -> Part:
    """A tensor of as many elements as all outputs have."""
    _whole("input", given, "output", output, nranks)
    scaled, dtype, code = _scaled(given, op)
    buffer, copy = write(output)
    return Part(REDUCE_SCATTER, read(scaled), buffer, buffer.numel(), dtype, code, 0, copy)


def reduce_scatter_list(output: torch.Tensor, inputs: Sequence[torch.Tensor], op: Any, nranks: int) -> Part:
    """A tensor for each rank."""
    alike(inputs, output, nranks, "the inputs")
    scaled, dtype, code = _scaled(joined(inputs), op)
    buffer, copy = write(output)
    return Part(REDUCE_SCATTER, scaled, buffer, buffer.numel(), dtype, code, 0, copy)


def broadcast(tensor: torch.Tensor, root: int) -> Part:
    """In place."""
    buffer, copy = update(tensor)
    dtype, count = copied(tensor)
    return Part(BROADCAST, buffer, buffer, count, dtype, 0, root, copy)


def all_gather(output: torch.Tensor, given: torch.Tensor, nranks: int) -> Part:
    """Into a tensor of as many elements as all inputs have."""
    _whole("output", output, "input", given, nranks)
    buffer, copy = write(output)
    dtype, count = copied(given)
    return Part(ALL_GATHER, read(given), buffer, count, dtype, 0, 0, copy)


def all_gather_list(outputs: Sequence[torch.Tensor], given: torch.Tensor, nranks: int) -> Part:
    """Into a tensor for each rank."""
    alike(outputs, given, nranks, "the outputs")
    buffer, copy = apart(outputs)
    dtype, count = copied(given)
    return Part(ALL_GATHER, read(given), buffer, count, dtype, 0, 0, copy)


def gather(outputs: Sequence[torch.Tensor], given: torch.Tensor, root: int, rank: int, nranks: int) -> Part:
    """Into a tensor for each rank at the root; elsewhere there are none."""
    dtype, count = copied(given)
    if rank != root:
        _none(outputs, "outputs", root)
        return Part(GATHER, read(given), None, count, dtype, 0, root)
    alike(outputs, given, nranks, "the outputs")
    buffer, copy = apart(outputs)
    return Part(GATHER, read(given), buffer, count, dtype, 0, root, copy)


def scatter(output: torch.Tensor, inputs: Sequence[torch.Tensor], root: int, rank: int, nranks: int) -> Part:
    """Of a tensor for each rank at the root; elsewhere there are none."""
    dtype, count = copied(output)
    buffer, copy = write(output)
    if rank != root:
        _none(inputs, "inputs", root)
        return Part(SCATTER, None, buffer, count, dtype, 0, root, copy)
    alike(inputs, output, nranks, "the inputs")
    return Part(SCATTER, joined(inputs), buffer, count, dtype, 0, root, copy)


def all_to_all(output: torch.Tensor, given: torch.Tensor, nranks: int) -> Part:
    """As many elements for each rank."""
    check(output, "the output")
    check(given, "the input")
    if output.dtype != given.dtype or output.numel() != given.numel() or given.numel() % nranks:
        raise ValueError(
            f"the input is {shown(given)}, the output {shown(output)}: without sizes of the splits both have one element "
            f"type and as many elements, a multiple of the {nranks} ranks"
        )
    buffer, copy = write(output)
    dtype, count = copied(given)
    return Part(ALL_TO_ALL, read(given), buffer, count // nranks, dtype, 0, 0, copy)


def _none(tensors: Sequence[torch.Tensor], what: str, root: int) -> None:
    if tensors:
        raise ValueError(f"{what} are given at a rank that is not the root, rank {root}: leave them out")


def _whole(whole: str, large: torch.Tensor, part: str, small: torch.Tensor, nranks: int) -> None:
    """Raises unless one tensor has as many elements as the other tensor at all ranks together."""
    check(large, f"the {whole}")
    check(small, f"the {part}")
    if large.dtype != small.dtype:
        raise TypeError(f"the {whole} is {shown(large)}, the {part} {shown(small)}: give both one element type")
    if large.numel() != nranks * small.numel():
        raise ValueError(
            f"the {whole} is {shown(large)}, the {part} {shown(small)}: with {nranks} ranks the {whole} has "
            f"{nranks} times as many elements"
        )
    if large.dim() and large.shape[0] % nranks:
        raise ValueError(
            f"the {whole} is {shown(large)}: it is made of a part for each rank along dimension 0, whose size is a "
            f"multiple of the {nranks} ranks"
        )
