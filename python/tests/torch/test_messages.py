"""Messages: tags, sizes, orders, and refusals."""

from __future__ import annotations

import time

import pytest
import torch
import torch.distributed as dist

from ranks import fine, run


def around(rank: int, nranks: int) -> bool:
    """Each rank sends to the next before it receives, also messages that are larger than the buffered bytes."""
    for count in (0, 1, 1000, 3_000_000):
        given, taken = torch.full((count,), float(rank)), torch.full((count,), -1.0)
        sent = dist.isend(given, (rank + 1) % nranks)
        dist.recv(taken, (rank - 1) % nranks)
        sent.wait()
        assert sent.is_completed() and (taken == (rank - 1) % nranks).all()
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.irecv, taken, (rank + 1) % nranks),
                dist.P2POp(dist.isend, given, (rank - 1) % nranks),
            ]
        )
        for work in works:
            work.wait()
        assert (taken == (rank + 1) % nranks).all()
    return True


def tags(rank: int, nranks: int) -> bool:
    """Messages of other tags are kept until their receive, and messages of one tag come in order."""
    if rank == 0:
        for tag in (3, 1, 2, 1):
            dist.send(torch.full((5,), 10.0 * tag), 1, tag=tag)
        dist.send(torch.full((5,), 7.0), 1, tag=2)
        answer = torch.empty(1)
        dist.recv(answer, 1)
        return bool(answer == 5)
    if rank > 1:
        return True
    tensors = {tag: torch.empty(5) for tag in (1, 2, 3)}
    works = [dist.irecv(tensors[tag], 0, tag=tag) for tag in (1, 2, 3)]
    for work in works:
        work.wait()
    assert all((tensors[tag] == 10 * tag).all() for tag in tensors)
    again = [torch.empty(5), torch.empty(5)]
    # Into memory that is not contiguous.
    strided = torch.zeros(5, 2).t()[0]
    dist.recv(strided, 0, tag=2)
    dist.recv(again[0], 0, tag=1)
    assert (strided == 7).all() and (again[0] == 10).all()
    dist.send(torch.tensor([5.0]), 0)
    return True


def itself(rank: int, nranks: int) -> bool:
    """A rank may send to itself, if it does not wait."""
    taken = torch.empty(3)
    work = dist.irecv(taken, rank, tag=9)
    assert not work.is_completed()
    dist.isend(torch.full((3,), 4.0), rank, tag=9).wait()
    work.wait()
    dist.isend(torch.full((3,), 5.0), rank).wait()
    other = torch.empty(3)
    dist.irecv(other, rank).wait()
    return bool((taken == 4).all() and (other == 5).all())


def beside_calls(rank: int, nranks: int) -> bool:
    """Messages are independent of collectives."""
    taken = torch.empty(1000)
    receive = dist.irecv(taken, (rank - 1) % nranks)
    for _ in range(20):
        total = torch.ones(1000)
        dist.all_reduce(total)
        assert (total == nranks).all()
    dist.isend(torch.full((1000,), float(rank)), (rank + 1) % nranks)
    receive.wait()
    values = [{"rank": rank}, "text"]
    if rank == 0:
        dist.send_object_list(values, 1)
    elif rank == 1:
        got = [None, None]
        dist.recv_object_list(got, 0)
        assert got == [{"rank": 0}, "text"]
    return bool((taken == (rank - 1) % nranks).all())


@pytest.mark.parametrize("nranks", [2, 3])
@pytest.mark.parametrize("body", [around, tags, itself, beside_calls], ids=lambda body: body.__name__)
def test_messages(body, nranks) -> None:  # type: ignore[no-untyped-def]
    assert all(fine(run(nranks, body)))


def mistakes(rank: int, nranks: int) -> bool:
    if rank == 0:
        for _ in range(2):
            dist.send(torch.ones(4), 1)
        dist.send(torch.ones(5), 1)
        return True
    with pytest.raises(ValueError, match=r"recv of float32\[3\] from rank 0 with tag 0 at rank 1: the message is float32\[4\]"):
        dist.recv(torch.empty(3), 0)
    with pytest.raises(ValueError, match=r"the message is float32\[4\], the tensor int32\[4\]"):
        dist.recv(torch.empty(4, dtype=torch.int32), 0)
    tensor = torch.empty(5)
    dist.recv(tensor, 0)
    with pytest.raises(NotImplementedError, match="recv at rank 1: .*give src="):
        dist.recv(tensor)
    return bool((tensor == 1).all())


def test_mistakes() -> None:
    assert all(fine(run(2, mistakes)))


def unmatched(rank: int, nranks: int) -> str:
    """A receive that no message comes for ends with the group, at once."""
    work = dist.irecv(torch.ones(3), (rank + 1) % nranks)
    alone = dist.irecv(torch.ones(3), rank)
    dist.barrier()
    dist.destroy_process_group()
    with pytest.raises(RuntimeError, match="the group was left before the message came"):
        alone.wait()
    with pytest.raises(RuntimeError) as raised:
        work.wait()
    return str(raised.value)


def test_unmatched() -> None:
    begun = time.monotonic()
    for _ in range(5):
        for text in fine(run(2, unmatched)):
            assert "recv of float32[3] from rank" in text, text
    assert time.monotonic() - begun < 20
