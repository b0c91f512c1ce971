"""The layout of tensors in memory: the buffers for a call, and the copies after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Optional

import torch

Copy = Optional[Callable[[], object]]
"""The copy after a call whose output is not the user's tensor."""


def check(tensor: torch.Tensor, what: str = "the tensor") -> None:
    """Raises TypeError for a tensor that is not dense memory of this host."""
    if tensor.layout is not torch.strided:
        raise TypeError(f"{what} is sparse ({tensor.layout}): only dense ones are carried, as of tensor.to_dense()")
    if not tensor.is_cpu:
        raise TypeError(
            f"{what} is on {tensor.device}: tensors of the CPU are carried; "
            'init_process_group("cpu:roundelay,cuda:nccl") has one backend for each'
        )


def read(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that a call can read: the tensor itself, or a copy."""
    return tensor if tensor.is_contiguous() else tensor.detach().contiguous()


def write(tensor: torch.Tensor) -> tuple[torch.Tensor, Copy]:
    """A tensor that a call can write, and the copy from it to the user's tensor."""
    if tensor.is_contiguous():
        return tensor, None
    buffer = torch.empty(tensor.shape, dtype=tensor.dtype)
    return buffer, lambda: tensor.detach().copy_(buffer)


def update(tensor: torch.Tensor) -> tuple[torch.Tensor, Copy]:
    """A tensor that a call can read and write, and the copy from it to the user's tensor."""
    if tensor.is_contiguous():
        return tensor, None
    buffer = read(tensor)
    return buffer, lambda: tensor.detach().copy_(buffer)


def adjacent(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether tensors lie one after another, as the parts of one tensor."""
    at = tensors[0].data_ptr()
    for tensor in tensors:
        if not tensor.is_contiguous() or tensor.data_ptr() != at:
            return False
        at += tensor.numel() * tensor.element_size()
    return True


def joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """A tensor at whose address the elements of all tensors begin, one after another; for reading."""
    if adjacent(tensors):
        return tensors[0]
    return torch.cat([read(tensor).detach().reshape(-1) for tensor in tensors])


def apart(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Copy]:
    """A tensor at whose address memory for all tensors begins, one after another, and the copy from it to them."""
    if adjacent(tensors):
        return tensors[0], None
    first = tensors[0]
    buffer = torch.empty(sum(tensor.numel() for tensor in tensors), dtype=first.dtype)

    def copy() -> None:
        parts = torch.split(buffer, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts):
            tensor.detach().copy_(part.view(tensor.shape))

    return buffer, copy


def alike(tensors: Sequence[torch.Tensor], like: torch.Tensor, nranks: int, what: str) -> None:
    """Raises ValueError unless there is a tensor for each rank, of the type and number of elements of ``like``."""
    if len(tensors) != nranks:
        raise ValueError(f"{what} are {len(tensors)}: give one for each of the {nranks} ranks")
    for rank, tensor in enumerate(tensors):
        check(tensor, f"number {rank} of {what}")
        if tensor.dtype != like.dtype or tensor.numel() != like.numel():
            raise ValueError(
                f"number {rank} of {what} is {shown(tensor)}, and this rank's tensor {shown(like)}: "
                "all have to have one element type and as many elements"
            )


def shown(tensor: torch.Tensor) -> str:
    """A tensor in a message: its element type and its shape."""
    return f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"
