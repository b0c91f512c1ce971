"""The calls of the library: each of torch's collectives as a call of a world, with its buffers.

A function raises TypeError or ValueError for tensors that the collective cannot take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

import torch

from ._elements import CODES, PREMUL_SUM, copied, reduction
from ._layout import Copy, apart, check, of_ranks, read, shown, update, write

ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SCATTER, GATHER, ALL_TO_ALL = range(8)
"""The library's codes of collectives."""


class Part(NamedTuple):
    """One call of the library: with one count, or with a count for each block where tensors are in lists."""

    collective: int
    given: Union[Optional[torch.Tensor], Sequence[torch.Tensor]]
    """Begins at the address of the input; or the blocks of the input."""
    taken: Union[Optional[torch.Tensor], Sequence[torch.Tensor]]
    """Begins at the address of the output; or the blocks of the output."""
    elements: Optional[int]
    """The count as the library has it for the collective; None where each block has its own."""
    dtype: int
    op: int = 0
    root: int = 0
    copy: Copy = None
    """The copy after the call."""

    def run(self, world: Any) -> None:
        """Makes the call, and returns when this rank is done."""
        if self.elements is None:
            world.call_v(*self._blocks())
        else:
            world.call(*self.buffers())
        if self.copy is not None:
            self.copy()

    def start(self, world: Any) -> Any:
        """Starts the call, whose copy is not made."""
        return world.start(*self.buffers()) if self.elements is not None else world.start_v(*self._blocks())

    @property
    def gpu(self) -> Optional[torch.device]:
        """The GPU of the tensors; None for memory of the host. Raises TypeError for tensors in several places."""
        tensors = [each for of in (self.given, self.taken) for each in ([of] if isinstance(of, torch.Tensor) else of or ())]
        if not any(tensor.is_cuda for tensor in tensors):
            return None
        places = sorted({str(tensor.device) for tensor in tensors})
        if len(places) > 1:
            raise TypeError(f"the tensors are on {' and on '.join(places)}: give all tensors of a call in one place")
        return tensors[0].device

    def buffers(self) -> tuple[Any, ...]:
        """The arguments of a call with one count: codes, addresses and the count."""
        source, target = (0 if tensor is None else tensor.data_ptr() for tensor in (self.given, self.taken))
        return (self.collective, source, target, self.elements, self.dtype, self.op, self.root)

    def _blocks(self) -> tuple[Any, ...]:
        lists = (self.given, self.taken)
        given, taken = ([(block.data_ptr(), copied(block)[1]) for block in blocks] for blocks in lists)
        # Elements of a type that the library has no name for travel as bytes.
        size = next((block.element_size() for blocks in lists for block in blocks if block.dtype in CODES), 1)
        return (self.collective, given, taken, size, self.dtype, self.op, self.root)


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


def reduce_scatter_list(output: torch.Tensor, inputs: Sequence[torch.Tensor], op: Any, rank: int, nranks: int) -> Part:
    """A tensor for each rank."""
    of_ranks(inputs, output, rank, nranks, "the inputs")
    scaled = [_scaled(given, op) for given in inputs]
    _, dtype, code = scaled[0]
    given, buffers, copy = apart([tensor for tensor, _, _ in scaled], [output])
    return Part(REDUCE_SCATTER, given, buffers, None, dtype, code, 0, copy)


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


def all_gather_list(outputs: Sequence[torch.Tensor], given: torch.Tensor, rank: int, nranks: int) -> Part:
    """Into a tensor for each rank."""
    of_ranks(outputs, given, rank, nranks, "the outputs")
    inputs, buffers, copy = apart([given], outputs)
    return Part(ALL_GATHER, inputs, buffers, None, copied(given)[0], 0, 0, copy)


def gather(outputs: Sequence[torch.Tensor], given: torch.Tensor, root: int, rank: int, nranks: int) -> Part:
    """Into a tensor for each rank at the root; elsewhere there are none."""
    dtype, _ = copied(given)
    if rank != root:
        _none(outputs, "outputs", root)
        return Part(GATHER, [read(given)], [], None, dtype, 0, root)
    of_ranks(outputs, given, rank, nranks, "the outputs")
    inputs, buffers, copy = apart([given], outputs)
    return Part(GATHER, inputs, buffers, None, dtype, 0, root, copy)


def scatter(output: torch.Tensor, inputs: Sequence[torch.Tensor], root: int, rank: int, nranks: int) -> Part:
    """Of a tensor for each rank at the root; elsewhere there are none."""
    dtype, _ = copied(output)
    if rank != root:
        _none(inputs, "inputs", root)
        buffer, copy = write(output)
        return Part(SCATTER, [], [buffer], None, dtype, 0, root, copy)
    of_ranks(inputs, output, rank, nranks, "the inputs")
    given, buffers, copy = apart(inputs, [output])
    return Part(SCATTER, given, buffers, None, dtype, 0, root, copy)


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


def all_to_all_list(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> Part:
    """A tensor for each rank, of any numbers of elements."""
    kinds = sorted({str(tensor.dtype)[6:] for tensor in (*inputs, *outputs)})
    if len(kinds) > 1:
        raise TypeError(f"elements are {' and '.join(kinds)}: give all tensors one element type")
    given, buffers, copy = apart(inputs, outputs)
    return Part(ALL_TO_ALL, given, buffers, None, copied(inputs[0])[0], 0, 0, copy)


def splits(tensor: torch.Tensor, sizes: Sequence[int], nranks: int, what: str) -> list[torch.Tensor]:
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
