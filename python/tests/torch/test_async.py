"""Calls that do not block: several in flight, futures, times to wait, tensors that were dropped, and errors."""

from __future__ import annotations

import gc
import time
import weakref
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from ranks import fine, run


def several(rank: int, nranks: int) -> bool:
    """Many calls in flight at once, waited for in any order, with a synchronous call between."""
    tensors = [torch.full((1000 * (at + 1),), rank + 1.0) for at in range(50)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    total = nranks * (nranks + 1) / 2
    between = torch.ones(3)
    dist.all_reduce(between)
    assert (between == nranks).all()
    for at in reversed(range(50)):
        assert works[at].wait()
        assert works[at].is_completed() and works[at].is_success() and works[at].exception() is None
        assert (tensors[at] == total).all()
    return True


def each_kind(rank: int, nranks: int) -> bool:
    """All collectives, started one after another before any wait."""
    given = torch.arange(4.0) + rank
    row = torch.arange(4.0 * nranks) + rank
    sums = sum(range(nranks))
    reduced, sent, root = given.clone(), given.clone(), given.clone()
    gathered, whole = [torch.empty(4) for _ in range(nranks)], torch.empty(4 * nranks)
    at_root = [torch.empty(4) for _ in range(nranks)]
    scattered, part, listed, exchanged = torch.empty(4), torch.empty(4), torch.empty(4), torch.empty(4 * nranks)
    works = [
        dist.all_reduce(reduced, async_op=True),
        dist.broadcast(sent, 1, async_op=True),
        dist.reduce(root, 0, async_op=True),
        dist.all_gather(gathered, given, async_op=True),
        dist.all_gather_into_tensor(whole, given, async_op=True),
        dist.gather(given, at_root if rank == 1 else None, 1, async_op=True),
        dist.scatter(scattered, list(row.clone().view(nranks, 4)) if rank == 0 else None, 0, async_op=True),
        dist.reduce_scatter_tensor(part, row, async_op=True),
        dist.reduce_scatter(listed, list(row.view(nranks, 4)), async_op=True),
        dist.all_to_all_single(exchanged, row, async_op=True),
        dist.barrier(async_op=True),
    ]
    for work in works:
        work.wait()
    base = torch.arange(4.0)
    assert torch.equal(reduced, nranks * base + sums)
    assert torch.equal(sent, base + 1)
    assert torch.equal(root, nranks * base + sums if rank == 0 else given)
    assert all(torch.equal(gathered[other], base + other) for other in range(nranks))
    assert torch.equal(whole, torch.cat(gathered))
    assert rank != 1 or all(torch.equal(at_root[other], base + other) for other in range(nranks))
    assert torch.equal(scattered, base + 4 * rank)
    assert torch.equal(part, nranks * (base + 4 * rank) + sums) and torch.equal(listed, part)
    assert torch.equal(exchanged, torch.cat([base + 4 * rank + other for other in range(nranks)]))
    return True


def futures(rank: int, nranks: int) -> bool:
    tensor = torch.ones(1000)
    work = dist.all_reduce(tensor, async_op=True)
    seen = []
    doubled = work.get_future().then(lambda future: seen.append(1) or future.value()[0] * 2)
    assert (doubled.wait() == 2 * nranks).all() and seen == [1]
    assert work.get_future().done() and work.get_future().value()[0] is not None
    lists = [torch.empty(3) for _ in range(nranks)]
    future = dist.all_gather(lists, torch.full((3,), float(rank)), async_op=True).get_future()
    assert [part[0].item() for part in future.wait()] == list(range(nranks))
    every = [dist.all_reduce(torch.ones(10), async_op=True).get_future() for _ in range(20)]
    assert all((each.value()[0] == nranks).all() for each in torch.futures.collect_all(every).wait())
    return True


def dropped(rank: int, nranks: int) -> bool:
    """A dropped handle drops neither the call nor its tensors."""
    matrix = torch.ones(300, 200)
    for _ in range(20):
        dist.all_reduce(torch.ones(100_000), async_op=True)
        dist.all_reduce(torch.ones(300, 200).t(), async_op=True)
        gc.collect()
    dist.all_reduce(matrix.t(), async_op=True)
    dist.barrier()
    assert (matrix == nranks).all()
    tensor = torch.ones(10)
    gone = weakref.ref(tensor)
    dist.all_reduce(tensor, async_op=True).wait()
    del tensor
    dist.all_reduce(torch.ones(1), async_op=True).wait()
    dist.all_reduce(torch.ones(1))
    gc.collect()
    # Finished calls are dropped.
    assert gone() is None
    return True


def times(rank: int, nranks: int) -> bool:
    """A wait's time is its own: the call is still under way after it, and the group works."""
    tensor = torch.ones(10)
    if rank == 0:
        work = dist.all_reduce(tensor, async_op=True)
        assert not work.is_completed()
        begun = time.monotonic()
        with pytest.raises(RuntimeError, match=r"all_reduce at rank 0: not done after 0.1 s, and still under way"):
            work.wait(timedelta(seconds=0.1))
        assert 0.09 < time.monotonic() - begun < 1
        with pytest.raises(RuntimeError, match=r"barrier at rank 0: not done after 0.05 s"):
            dist.barrier(timeout=timedelta(seconds=0.05))
        time.sleep(0.3)
    else:
        time.sleep(0.4)
        work = dist.all_reduce(tensor, async_op=True)
        dist.barrier(async_op=True)
    assert work.wait(timedelta(seconds=5)) and (tensor == nranks).all()
    until = time.monotonic() + 5
    work = dist.all_reduce(tensor, async_op=True)
    while not work.is_completed():
        assert time.monotonic() < until
    assert (tensor == nranks * nranks).all()
    return True


@pytest.mark.parametrize("nranks", [2, 3])
@pytest.mark.parametrize("body", [several, each_kind, futures, dropped, times], ids=lambda body: body.__name__)
def test_calls(body, nranks) -> None:  # type: ignore[no-untyped-def]
    fine(run(nranks, body))


def late(rank: int, nranks: int) -> tuple[str, ...]:
    """The deadline of the group ends a call with an error of the call, its future, and the next call."""
    if rank == 1:
        time.sleep(4)
        return ()
    work = dist.all_reduce(torch.ones(10), async_op=True)
    texts = []
    for ask in (work.wait, work.get_future().wait, lambda: dist.all_reduce(torch.ones(10))):
        with pytest.raises(RuntimeError) as raised:
            ask()
        texts.append(str(raised.value))
    assert work.is_completed() and not work.is_success() and "all_reduce" in str(work.exception())
    return tuple(texts)


def test_deadline() -> None:
    texts, _ = run(2, late, deadline=1)
    assert len(texts) == 3, texts
    for text in texts:
        assert "roundelay: all_reduce at rank 0: " in text and "rank 1, which did not make call 1" in text, texts


def lost(rank: int, nranks: int) -> str:
    """The next call raises the error of a call whose handle is gone."""
    if rank == 0:
        dist.all_reduce(torch.ones(10), async_op=True)
        time.sleep(0.3)
        with pytest.raises(RuntimeError) as raised:
            dist.all_reduce(torch.ones(3))
        return str(raised.value)
    with pytest.raises(RuntimeError) as raised:
        dist.broadcast(torch.ones(10), 0)
    return str(raised.value)


def test_lost() -> None:
    for text in fine(run(2, lost)):
        assert "AllReduce" in text and "Broadcast" in text, text
