"""Element types and reduce operations: the types and operations of torch that are carried, and how.

A boolean travels as its byte, 0 or 1, and is reduced by logical operations. Where a collective only copies, elements of
any type travel: types that the library has no name for travel as bytes.
"""

from __future__ import annotations

import torch
from torch.distributed import ReduceOp

SUM, PROD, MAX, MIN, AVG, BAND, BOR, BXOR, LAND, LOR, LXOR = range(11)
"""The library's codes of reduce operations; the first five are NCCL's."""

U8 = 1
I64 = 4
CODES: dict[torch.dtype, int] = {
    torch.int8: 0,
    torch.uint8: U8,
    torch.int32: 2,
    torch.uint32: 3,
    torch.int64: I64,
    torch.uint64: 5,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.bfloat16: 9,
    torch.float8_e4m3fn: 10,
    torch.float8_e5m2: 11,
    torch.bool: U8,
}
"""The library's codes of element types, which are NCCL's."""

_OPS = {
    ReduceOp.SUM: SUM,
    ReduceOp.AVG: AVG,
    ReduceOp.PRODUCT: PROD,
    ReduceOp.MIN: MIN,
    ReduceOp.MAX: MAX,
    ReduceOp.BAND: BAND,
    ReduceOp.BOR: BOR,
    ReduceOp.BXOR: BXOR,
}
_LOGICAL = {
    ReduceOp.SUM: LOR,
    ReduceOp.MAX: LOR,
    ReduceOp.BOR: LOR,
    ReduceOp.PRODUCT: LAND,
    ReduceOp.MIN: LAND,
    ReduceOp.BAND: LAND,
    ReduceOp.BXOR: LXOR,
}
_BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


PREMUL_SUM = ReduceOp.PREMUL_SUM.value


def _reductions() -> dict[torch.dtype, dict[int, tuple[int, int]]]:
    known: dict[torch.dtype, dict[int, tuple[int, int]]] = {}
    for dtype, code in CODES.items():
        ops = _LOGICAL if dtype is torch.bool else _OPS
        known[dtype] = {
            op.value: (code, number)
            for op, number in ops.items()
            if op not in _BITWISE or not dtype.is_floating_point
        }
        # The caller applies the factor, so the reduction is a sum. Torch does not multiply fp8.
        if dtype.is_floating_point and dtype.itemsize > 1:
            known[dtype][PREMUL_SUM] = (code, SUM)
    return known


_REDUCTIONS = _reductions()


def _ops_of_types() -> bytes:
    # A row of 16 bytes for each of 12 codes, and a row for booleans.
    table = bytearray(b"\xff" * 16 * 13)
    for dtype, ops in _REDUCTIONS.items():
        row = 12 if dtype is torch.bool else CODES[dtype]
        for op, (_, number) in ops.items():
            if op != PREMUL_SUM:
                table[16 * row + op] = number
    return bytes(table)


OPS_OF_TYPES = _ops_of_types()
"""The library's codes of operations, by element type and by the number of an operation of torch, for the compiled
functions; 255 where there is none, or a factor is applied first."""


def reduction(tensor: torch.Tensor, op: int) -> tuple[int, int]:
    """The library's codes for a reduction of the elements of ``tensor`` by ``op``, the number of an operation of torch.

    Raises TypeError for an element type that is not reduced, ValueError for an operation that the type does not have.
    """
    try:
        return _REDUCTIONS[tensor.dtype][op]
    except KeyError:
        raise _refused(tensor.dtype, op) from None


def _refused(dtype: torch.dtype, op: int) -> Exception:
    if dtype not in CODES:
        names = ", ".join(str(known) for known in CODES)
        return TypeError(f"elements of {dtype} are not reduced: convert the tensor to one of {names}")
    kind = ReduceOp.RedOpType
    works = ", ".join(kind(known).name for known in _REDUCTIONS[dtype])
    return ValueError(f"{kind(op).name} does not reduce elements of {dtype}: these do: {works}")


def copied(tensor: torch.Tensor) -> tuple[int, int]:
    """The library's code and the number of elements, for a collective that only copies ``tensor``."""
    code = CODES.get(tensor.dtype)
    if code is None:
        return U8, tensor.numel() * tensor.element_size()
    return code, tensor.numel()
