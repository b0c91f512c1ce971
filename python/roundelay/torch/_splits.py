"""AllToAll with blocks of different sizes, made of calls whose blocks all have one size.

All ranks first exchange the sizes of all blocks. Blocks of one size are one call; otherwise there are rounds of calls
that carry a limited part of each block. The calling thread makes all calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._elements import CODES, I64, copied
from ._layout import apart, joined, read, shown, write
from ._parts import ALL_GATHER, ALL_TO_ALL

LARGEST = 1 << 20
"""Bytes of a block that one call carries."""


def blocks(tensor: torch.Tensor, sizes: Sequence[int], nranks: int, what: str) -> list[torch.Tensor]:
    """The blocks of a tensor: with the numbers of rows in ``sizes``, or with equal numbers of rows if it is empty."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if not sizes:
        if rows % nranks:
            raise ValueError(f"the {what} is {shown(tensor)}: without sizes its rows are a multiple of the {nranks} ranks")
        sizes = [rows // nranks] * nranks
    if len(sizes) != nranks or sum(sizes) != rows or min(sizes) < 0:
        raise ValueError(
            f"the {what} is {shown(tensor)}, and its sizes {list(sizes)}: give one for each of the {nranks} ranks, "
            "which make all rows together"
        )
    return list(torch.split(tensor, list(sizes)))


def all_to_all(world: Any, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
    """Sends block j of the inputs to rank j, and receives block i of the outputs from rank i."""
    code, _ = copied(inputs[0])
    sent, taken = _sizes(world, [copied(block)[1] for block in inputs], [copied(block)[1] for block in outputs])
    for source, sizes in enumerate(sent):
        for to, size in enumerate(sizes):
            if size != taken[to][source]:
                raise ValueError(
                    f"rank {source} sends {size} elements to rank {to}, which receives {taken[to][source]} from it: "
                    "the sizes of an input's splits have to be those of the other ranks' outputs"
                )
    largest = max(map(max, sent))
    if largest == 0:
        return
    if largest == min(map(min, sent)):
        # Without copies, where blocks lie as they should.
        (target, copy), source_blocks = apart(outputs), joined(inputs)
        world.call(ALL_TO_ALL, source_blocks.data_ptr(), target.data_ptr(), largest, code, 0, 0)
        if copy is not None:
            copy()
    else:
        _rounds(world, outputs, inputs, largest, code)


def _rounds(
    world: Any, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], largest: int, code: int
) -> None:
    """Calls of blocks of one size, each with room for the rest of the largest block, or for a limit of bytes."""
    sources = [_flat(read(block)) for block in inputs]
    written = [write(block) for block in outputs]
    targets = [_flat(buffer) for buffer, _ in written]
    width = min(largest, max(1, LARGEST // sources[0].element_size()))
    given = torch.zeros(len(inputs), width, dtype=sources[0].dtype)
    taken = torch.empty_like(given)
    for at in range(0, largest, width):
        count = min(width, largest - at)
        for block, source in zip(torch.split(given.reshape(-1), count), sources):
            part = source[at : at + count]
            block[: len(part)] = part
        world.call(ALL_TO_ALL, given.data_ptr(), taken.data_ptr(), count, code, 0, 0)
        for target, block in zip(targets, torch.split(taken.reshape(-1), count)):
            part = target[at : at + count]
            part.copy_(block[: len(part)])
    for _, copy in written:
        if copy is not None:
            copy()


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a contiguous tensor, or their bytes where the library has no name for its type."""
    flat = tensor.detach().reshape(-1)
    return flat if tensor.dtype in CODES else flat.view(torch.uint8)


def _sizes(world: Any, sent: list[int], taken: list[int]) -> tuple[list[list[int]], list[list[int]]]:
    """The sizes of the blocks that each rank sends to each, and that each rank receives from each."""
    nranks = len(sent)
    mine = torch.tensor(sent + taken, dtype=torch.int64)
    all_ranks = torch.empty(nranks, 2 * nranks, dtype=torch.int64)
    world.call(ALL_GATHER, mine.data_ptr(), all_ranks.data_ptr(), 2 * nranks, I64, 0, 0)
    rows = all_ranks.tolist()
    return [row[:nranks] for row in rows], [row[nranks:] for row in rows]
