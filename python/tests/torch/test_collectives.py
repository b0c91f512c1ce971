"""Every collective, element type and operation, beside Gloo in the same processes.

Values are small integers, so that sums and products are exact in every type and in every order.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist

from ranks import fine, run

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.bool,
]
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]
COPIED = [*DTYPES, *FP8, torch.int16, torch.complex64]
OPS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
SHAPES = [(1,), (7,), (64, 33), (5000,)]


def values(shape: tuple[int, ...], dtype: torch.dtype, rank: int) -> torch.Tensor:
    """The input of a rank."""
    generator = torch.Generator().manual_seed(1000 * rank + sum(shape))
    low, high = (0, 2) if dtype is torch.bool else (1, 4)
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def reduced(tensors: list[torch.Tensor], op: str) -> torch.Tensor:
    """The result of a reduction, by definition."""
    dtype = tensors[0].dtype
    if dtype is torch.bool:
        logical = {"SUM": torch.logical_or, "MAX": torch.logical_or, "BOR": torch.logical_or, "BXOR": torch.logical_xor}
        fold = logical.get(op, torch.logical_and)
    else:
        fold = {
            "SUM": torch.add,
            "AVG": torch.add,
            "PRODUCT": torch.mul,
            "MIN": torch.minimum,
            "MAX": torch.maximum,
            "BAND": torch.bitwise_and,
            "BOR": torch.bitwise_or,
            "BXOR": torch.bitwise_xor,
        }[op]
    wide = torch.float64 if dtype.is_floating_point else dtype
    result = tensors[0].to(wide)
    for tensor in tensors[1:]:
        result = fold(result, tensor.to(wide))
    if op == "AVG":
        result = result / len(tensors) if dtype.is_floating_point else torch.div(result, len(tensors), rounding_mode="trunc")
    return result.to(dtype)


def carried(dtype: torch.dtype, op: str) -> bool:
    """Whether an operation reduces elements of a type."""
    if dtype is torch.bool:
        return op != "AVG"
    return op not in ("BAND", "BOR", "BXOR") or not dtype.is_floating_point


def same(ours: torch.Tensor, right: torch.Tensor, what: str) -> None:
    assert ours.dtype == right.dtype and ours.shape == right.shape, what
    if ours.dtype is torch.bfloat16 or ours.dtype is torch.float16:
        # An average is rounded once here and twice by definition.
        torch.testing.assert_close(ours, right, msg=lambda text: f"{what}: {text}")
        return
    width = ours.contiguous().reshape(-1).view(torch.uint8), right.contiguous().reshape(-1).view(torch.uint8)
    assert torch.equal(*width), f"{what}: {ours} is not {right}"


def reductions(rank: int, nranks: int) -> int:
    seen = 0
    for dtype in DTYPES:
        for op in (op for op in OPS if carried(dtype, op)):
            kind = getattr(dist.ReduceOp, op)
            for shape in SHAPES:
                what = f"{op} of {dtype}{shape}"
                given = [values(shape, dtype, other) for other in range(nranks)]
                right = reduced(given, op)
                tensor = given[rank].clone()
                dist.all_reduce(tensor, op=kind)
                same(tensor, right, f"all_reduce {what}")
                for root in range(nranks):
                    tensor = given[rank].clone()
                    dist.reduce(tensor, root, op=kind)
                    same(tensor, right if rank == root else given[rank], f"reduce {what}")
                rows = [values((nranks, *shape), dtype, other) for other in range(nranks)]
                right = reduced(rows, op)[rank]
                output = torch.empty_like(right)
                dist.reduce_scatter_tensor(output, rows[rank], op=kind)
                same(output, right, f"reduce_scatter_single {what}")
                output = torch.empty_like(right)
                dist.reduce_scatter(output, [row.clone() for row in rows[rank]], op=kind)
                same(output, right, f"reduce_scatter {what}")
                seen += 1
    return seen


def pairs_of_fp8(rank: int, nranks: int) -> int:
    """Every pair of each fp8 type. Torch widens and rounds, and the test saturates."""
    seen = 0
    for dtype in FP8:
        largest = torch.finfo(dtype).max
        every = torch.arange(256, dtype=torch.uint8)
        given = [each.view(dtype) for each in (every.repeat_interleave(256), every.repeat(256))]
        wide = [each.to(torch.float32) for each in given]
        infinite = wide[0].isinf() | wide[1].isinf()
        for op, fold in (("SUM", torch.add), ("PRODUCT", torch.mul), ("MIN", torch.minimum), ("MAX", torch.maximum)):
            exact = fold(*wide)
            right = torch.where(infinite, exact, exact.clamp(-largest, largest)).to(dtype).to(torch.float32)
            tensor = given[rank].clone()
            dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
            # Values and NaNs; torch's minimum does not order zeros by their signs.
            equal = torch.allclose(tensor.to(torch.float32), right, rtol=0, atol=0, equal_nan=True)
            assert equal, f"{op} of {dtype}"
            seen += 1
    return seen


def copies(rank: int, nranks: int) -> int:
    seen = 0
    for dtype in COPIED:
        for shape in SHAPES:
            what = f"{dtype}{shape}"
            given = [values(shape, dtype, other) for other in range(nranks)]
            for root in range(nranks):
                tensor = given[rank].clone()
                dist.broadcast(tensor, root)
                same(tensor, given[root], f"broadcast {what}")
                outputs = [torch.empty_like(each) for each in given] if rank == root else None
                dist.gather(given[rank], outputs, root)
                for output, right in zip(outputs or [], given):
                    same(output, right, f"gather {what}")
                output = torch.empty_like(given[rank])
                dist.scatter(output, [each.clone() for each in given] if rank == root else None, root)
                same(output, given[rank], f"scatter {what}")
            outputs = [torch.empty_like(each) for each in given]
            dist.all_gather(outputs, given[rank])
            for output, right in zip(outputs, given):
                same(output, right, f"all_gather {what}")
            whole = torch.empty((nranks, *shape), dtype=dtype)
            dist.all_gather_into_tensor(whole, given[rank])
            for output, right in zip(whole, given):
                same(output, right, f"all_gather_single {what}")
            rows = [values((nranks, *shape), dtype, other) for other in range(nranks)]
            output = torch.empty_like(rows[rank])
            dist.all_to_all_single(output, rows[rank])
            for source in range(nranks):
                same(output[source], rows[source][rank], f"all_to_all_single {what}")
            outputs = [torch.empty_like(row) for row in rows[rank]]
            dist.all_to_all(outputs, list(rows[rank]))
            for source in range(nranks):
                same(outputs[source], rows[source][rank], f"all_to_all {what}")
            seen += 1
    return seen


def beside_gloo(rank: int, nranks: int) -> int:
    """A call that Gloo does not refuse has Gloo's result, bit for bit."""
    gloo = dist.new_group(backend="gloo")
    seen = 0
    for dtype in DTYPES:
        if dtype is torch.bool:
            continue  # Gloo adds the bytes: its sum of two `True` is a byte of 2.
        for op in OPS:
            kind = getattr(dist.ReduceOp, op)
            for shape in SHAPES:
                given = values(shape, dtype, rank)
                ours, theirs = given.clone(), given.clone()
                try:
                    dist.all_reduce(theirs, op=kind, group=gloo)
                except (RuntimeError, ValueError):
                    continue
                if op == "AVG" and not dtype.is_floating_point:
                    continue
                dist.all_reduce(ours, op=kind)
                same(ours, theirs, f"{op} of {dtype}{shape}")
                seen += 1
    return seen


def coalesced(rank: int, nranks: int) -> bool:
    shapes = [(3,), (4, 5), (1000,)]
    tensors = [torch.full(shape, rank + 1.0) for shape in shapes]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    total = nranks * (nranks + 1) / 2
    assert all((tensor == total).all() for tensor in tensors)
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    assert all((tensor == total * nranks).all() for tensor in tensors)
    outputs = [torch.empty(nranks, *shape) for shape in shapes]
    inputs = [torch.full(shape, float(rank)) for shape in shapes]
    with dist._coalescing_manager():
        for output, given in zip(outputs, inputs):
            dist.all_gather_into_tensor(output, given)
    assert all((output[other] == other).all() for output in outputs for other in range(nranks))
    inputs = [torch.arange(float(nranks)).repeat_interleave(10) + rank for _ in shapes]
    outputs = [torch.empty(10) for _ in shapes]
    with dist._coalescing_manager():
        for output, given in zip(outputs, inputs):
            dist.reduce_scatter_tensor(output, given)
    right = rank * nranks + nranks * (nranks - 1) / 2
    assert all((output == right).all() for output in outputs)
    return True


def layouts(rank: int, nranks: int) -> bool:
    """Tensors whose elements do not lie one after another, and empty tensors."""
    matrix = torch.arange(12.0).view(3, 4)
    tensor = matrix.clone().t()
    dist.all_reduce(tensor)
    assert torch.equal(tensor, nranks * matrix.t())
    tensor = matrix.clone()[:, 1:3]
    dist.broadcast(tensor, 0)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert torch.equal(tensor, nranks * matrix[:, 1:3])
    whole = torch.zeros(2 * nranks, 4).t()[:, ::2]
    dist.all_gather_into_tensor(whole.t(), matrix[0][None].expand(1, 4))
    assert torch.equal(whole.t(), matrix[0].expand(nranks, 4))
    picture = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    dist.broadcast(picture, 0)
    again = [torch.empty_like(picture) for _ in range(nranks)]
    dist.all_gather(again, picture)
    assert all(torch.equal(other, picture) for other in again)
    for empty in (torch.empty(0), torch.empty(3, 0)):
        dist.all_reduce(empty)
        dist.broadcast(empty, 0)
        dist.all_gather([torch.empty_like(empty) for _ in range(nranks)], empty)
    leaf = torch.nn.Parameter(torch.ones(4, 2))
    dist.all_reduce(leaf.t())
    assert (leaf == nranks).all()
    return True


def scaled(rank: int, nranks: int) -> bool:
    """A sum of elements that were multiplied before."""
    op = dist._make_nccl_premul_sum(0.5)
    tensor = torch.full((10,), rank + 1.0)
    dist.all_reduce(tensor, op=op)
    total = nranks * (nranks + 1) / 4
    assert (tensor == total).all()
    given, output = torch.full((nranks, 3), rank + 1.0), torch.empty(3)
    dist.reduce_scatter_tensor(output, given, op=op)
    assert (output == total).all() and (given == rank + 1).all()
    return True


def splits(rank: int, nranks: int) -> bool:
    """Blocks of different sizes: from i to j there are i + 2 j rows, and some of none."""
    for rows, dtype in ((1, torch.float32), (3000, torch.float64), (2, torch.int16)):
        sizes = [[rows * ((i + 2 * j) % 4) for j in range(nranks)] for i in range(nranks)]
        sent = [
            [torch.full((sizes[i][j], 3), i * nranks + j + 1).to(dtype) for j in range(nranks)] for i in range(nranks)
        ]
        given = torch.cat(sent[rank])
        taken = [sizes[i][rank] for i in range(nranks)]
        output = torch.zeros(sum(taken), 3, dtype=dtype)
        work = dist.all_to_all_single(output, given, taken, sizes[rank], async_op=True)
        work.wait()
        assert torch.equal(output, torch.cat([sent[i][rank] for i in range(nranks)]))
        outputs = [torch.zeros(sizes[i][rank], 3, dtype=dtype) for i in range(nranks)]
        dist.all_to_all(outputs, sent[rank])
        assert all(torch.equal(outputs[i], sent[i][rank]) for i in range(nranks))
    even, output = torch.arange(4.0 * nranks) + rank, torch.empty(4 * nranks)
    dist.all_to_all_single(output, even, [4] * nranks, [4] * nranks)
    assert torch.equal(output, torch.cat([torch.arange(4.0) + 4 * rank + i for i in range(nranks)]))
    return True


def lists(rank: int, nranks: int) -> bool:
    """Lists of tensors of different sizes: rank r's have 2 r rows, 1000 r, and 100,000 r; rank 0 has none."""
    for rows, dtype in ((2, torch.float32), (1000, torch.int64), (100_000, torch.bfloat16), (3, torch.int16)):
        for flag in (False, True):
            shape = [(rows * r, 2) for r in range(nranks)]
            given = [torch.full(shape[r], r + 1).to(dtype) for r in range(nranks)]
            outputs = [torch.zeros(shape[r], dtype=dtype) for r in range(nranks)]
            # One of them does not lie in one piece.
            outputs[1] = torch.zeros(2, rows, dtype=dtype).t()
            work = dist.all_gather(outputs, given[rank], async_op=flag)
            if flag:
                work.wait()
            assert all(torch.equal(outputs[r], given[r]) for r in range(nranks))
            for root in range(nranks):
                outputs = [torch.zeros(shape[r], dtype=dtype) for r in range(nranks)]
                dist.gather(given[rank], outputs if rank == root else None, root)
                assert rank != root or all(torch.equal(outputs[r], given[r]) for r in range(nranks))
                output = torch.zeros(shape[rank], dtype=dtype)
                dist.scatter(output, given if rank == root else None, root)
                assert torch.equal(output, given[rank])
            if dtype is torch.int16:
                continue
            parts = [torch.full(shape[r], rank + r).to(dtype) for r in range(nranks)]
            output = torch.zeros(shape[rank], dtype=dtype)
            work = dist.reduce_scatter(output, parts, async_op=flag)
            if flag:
                work.wait()
            assert (output == nranks * (nranks - 1) // 2 + nranks * rank).all()
    return True


def shared(rank: int, nranks: int) -> bool:
    """Lists whose tensors share memory with each other or with the input, and tensors that are not aligned."""
    whole = torch.zeros(nranks, 3)
    outputs = list(whole)
    for own in (rank, 0):
        whole.fill_(rank + 1)
        dist.all_gather(outputs, outputs[own])
        assert torch.equal(whole, torch.arange(1.0, nranks + 1)[:, None].expand(nranks, 3))
    one = torch.zeros(3)
    dist.all_gather([one] * nranks, torch.full((3,), float(rank)))
    assert (one == nranks - 1).all(), "the last of them stays"
    parts = [torch.full((3,), float(rank + other)) for other in range(nranks)]
    dist.reduce_scatter(parts[0], parts)
    assert (parts[0] == nranks * (nranks - 1) // 2 + nranks * rank).all()
    memory = bytearray(4 * 5 + 2)
    aside = torch.frombuffer(memory, dtype=torch.float32, offset=2, count=5)
    outputs = [torch.zeros(5) for _ in range(nranks - 1)] + [aside]
    dist.all_gather(outputs, torch.arange(5.0) + rank)
    assert all(torch.equal(output, torch.arange(5.0) + other) for other, output in enumerate(outputs))
    assert memory[:2] == bytearray(2), "nothing before the tensor is written"
    dist.all_reduce(aside, op=dist.ReduceOp.MAX)
    assert torch.equal(aside, torch.arange(5.0) + nranks - 1)
    return True


BODIES: list[Any] = [reductions, copies, beside_gloo, coalesced, layouts, scaled, splits, lists, shared]


@pytest.mark.parametrize("nranks", [2, 3])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_outcomes(body: Any, nranks: int) -> None:
    answers = fine(run(nranks, body))
    assert all(answer == answers[0] and answer for answer in answers)


def complex_numbers(rank: int, nranks: int) -> list[str]:
    """Which reductions take complex numbers; the result of each is compared with the definition."""
    made = []
    given = [torch.complex(values((6,), torch.float32, r), values((6,), torch.float32, r + nranks)) for r in range(nranks)]
    whole = torch.stack(given).sum(0)
    for op in OPS:
        kind = getattr(dist.ReduceOp, op)
        calls = {
            "all_reduce": lambda tensor: dist.all_reduce(tensor, op=kind),
            "reduce": lambda tensor: dist.reduce(tensor, rank, op=kind),
            "reduce_scatter_tensor": lambda tensor: dist.reduce_scatter_tensor(tensor[: 6 // nranks], tensor.clone(), op=kind),
        }
        for name, call in calls.items():
            tensor = given[rank].clone()
            try:
                call(tensor)
            except (TypeError, ValueError):
                continue
            torch.testing.assert_close(tensor, whole / nranks if op == "AVG" else whole)
            made.append(f"{name} {op}")
    return made


def test_pairs_of_fp8() -> None:
    assert fine(run(2, pairs_of_fp8)) == [8, 8]


def test_complex_numbers() -> None:
    for made in fine(run(2, complex_numbers)):
        assert made == ["all_reduce SUM", "all_reduce AVG"]
