"""The layout of tensors in memory: the buffers for a call, and the copies after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Optional

import torch

Copy = Optional[Callable[[], object]]
"""The copy after a call whose output is not the user's tensor."""


def check(tensor: torch.Tensor, what: str = "the tensor") -> None:
    """Raises TypeError for a tensor that is not dense memory of this host or of a GPU of CUDA."""
    if tensor.layout is not torch.strided:
        raise TypeError(f"{what} is sparse ({tensor.layout}): only dense ones are carried, as of tensor.to_dense()")
    if not (tensor.is_cpu or tensor.is_cuda):
        raise TypeError(f"{what} is on {tensor.device}: tensors of the CPU and of CUDA are carried")


def read(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that a call can read: the tensor itself, or a copy."""
    if not tensor.is_contiguous():
        return tensor.detach().contiguous()
    return tensor if _aligned(tensor) else tensor.detach().clone()


def _aligned(tensor: torch.Tensor) -> bool:
    """Whether the elements of a tensor begin at addresses that are multiples of their size; views of bytes may not."""
    return tensor.data_ptr() % tensor.element_size() == 0


def write(tensor: torch.Tensor) -> tuple[torch.Tensor, Copy]:
    """A tensor that a call can write, and the copy from it to the user's tensor."""
    if tensor.is_contiguous() and _aligned(tensor):
        return tensor, None
    return _elsewhere(tensor)


def update(tensor: torch.Tensor) -> tuple[torch.Tensor, Copy]:
    """A tensor that a call can read and write, and the copy from it to the user's tensor."""
    if tensor.is_contiguous() and _aligned(tensor):
        return tensor, None
    buffer = read(tensor)
    return buffer, lambda: tensor.detach().copy_(buffer)


def apart(
    inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[torch.Tensor], Copy]:
    """Tensors that a call can read, tensors that it can write, and the copy from these to the user's tensors. Where the
    user's share memory, they are copies."""
    given = [read(tensor) for tensor in inputs]
    spans = sorted(
        (tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size())
        for tensor in (*given, *outputs)
        if tensor.numel()
    )
    if any(after[0] < before[1] for before, after in zip(spans, spans[1:])):
        given = [tensor.detach().clone() for tensor in given]
        written: list[tuple[torch.Tensor, Copy]] = [_elsewhere(tensor) for tensor in outputs]
    else:
        written = [write(tensor) for tensor in outputs]
    return given, [buffer for buffer, _ in written], together(copy for _, copy in written)


def together(several: Iterable[Copy]) -> Copy:
    """Several copies as one, None where there are none."""
    copies = [copy for copy in several if copy is not None]

    def copy() -> None:
        for each in copies:
            each()

    return copy if copies else None


def _elsewhere(tensor: torch.Tensor) -> tuple[torch.Tensor, Copy]:
    """A tensor like the user's, and the copy from it to the user's."""
    buffer = torch.empty_like(tensor, memory_format=torch.contiguous_format, requires_grad=False)
    return buffer, lambda: tensor.detach().copy_(buffer)


def of_ranks(tensors: Sequence[torch.Tensor], own: torch.Tensor, rank: int, nranks: int, what: str) -> None:
    """Raises ValueError unless there is a tensor for each rank, of the element type of this rank's own, and this rank's
    with as many elements."""
    if len(tensors) != nranks:
        raise ValueError(f"{what} are {len(tensors)}: give one for each of the {nranks} ranks")
    for at, tensor in enumerate(tensors):
        check(tensor, f"number {at} of {what}")
        if tensor.dtype != own.dtype or at == rank and tensor.numel() != own.numel():
            raise ValueError(
                f"number {at} of {what} is {shown(tensor)}, and the tensor of this rank, rank {rank}, {shown(own)}: all "
                "have to have one element type, and those of one rank as many elements"
            )


def shown(tensor: torch.Tensor) -> str:
    """A tensor in a message: its element type and its shape."""
    return f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"
