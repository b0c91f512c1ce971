"""Groups: new groups, several backends in one group, objects, barriers, and algorithms of the user."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ranks import fine, run

RING = Path(__file__).parents[3] / "examples" / "ring.coll"


def parts(rank: int, nranks: int) -> bool:
    """Groups of some ranks, which work beside each other and the whole."""
    pairs = [dist.new_group([at, (at + 1) % nranks]) for at in range(nranks)]
    whole = dist.new_group()
    for at, pair in enumerate(pairs):
        if rank in (at, (at + 1) % nranks):
            tensor = torch.full((100,), rank + 1.0)
            dist.all_reduce(tensor, group=pair)
            assert (tensor == at + 1 + (at + 1) % nranks + 1).all()
    tensor = torch.ones(3)
    works = [dist.all_reduce(torch.ones(1000), group=group, async_op=True) for group in (whole, None) for _ in range(5)]
    dist.broadcast(tensor, 1, group=whole)
    for work in works:
        work.wait()
    dist.destroy_process_group(whole)
    dist.all_reduce(tensor)
    return bool((tensor == nranks).all())


def objects(rank: int, nranks: int) -> bool:
    gathered = [None] * nranks
    dist.all_gather_object(gathered, {"rank": rank, "list": list(range(rank))})
    assert [each["rank"] for each in gathered] == list(range(nranks))
    some = [{"from": rank}, None] if rank == 1 else [None, None]
    dist.broadcast_object_list(some, 1)
    assert some == [{"from": 1}, None]
    at_root = [None] * nranks if rank == 0 else None
    dist.gather_object(str(rank), at_root, 0)
    assert rank or at_root == [str(other) for other in range(nranks)]
    mine = [None]
    dist.scatter_object_list(mine, [other * 10 for other in range(nranks)] if rank == 0 else None, 0)
    return mine == [rank * 10]


def barriers(rank: int, nranks: int) -> bool:
    """No rank leaves the barrier before the last rank comes."""
    time.sleep(0.2 * rank)
    come = time.monotonic()
    dist.barrier()
    left = torch.tensor([time.monotonic()], dtype=torch.float64)
    last = torch.tensor([come], dtype=torch.float64)
    dist.all_reduce(last, op=dist.ReduceOp.MAX)
    assert left >= last
    dist.monitored_barrier(timeout=timedelta(seconds=5))
    if rank == 0:
        with pytest.raises(RuntimeError, match="Ranks 1.* failed to pass monitoredBarrier in 200 ms"):
            dist.monitored_barrier(timeout=timedelta(seconds=0.2), wait_all_ranks=True)
    dist.barrier()
    return True


def named(rank: int, nranks: int) -> bool:
    """The group is what it says, and what wraps it in the mode for finding mistakes works as well."""
    import roundelay.torch

    assert dist.get_backend() == "roundelay"
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert isinstance(backend, roundelay.torch.Group) and backend.rank() == rank and backend.size() == nranks
    assert backend.options.backend == "roundelay" and not backend.supports_coalescing
    assert "roundelay" in dist.Backend.backend_list
    # By default the flight recorder does not record the calls.
    assert dist.group.WORLD not in dist.distributed_c10d._world.pg_flight_recorder_hooks
    return True


def functional(rank: int, nranks: int) -> bool:
    """The collectives that torch.compile and DTensor use, which find a group by its name."""
    from torch.distributed import _functional_collectives as functional
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    group = dist.group.WORLD
    total = functional.all_reduce(torch.full((3,), rank + 1.0), "sum", group)
    assert (total + 0 == nranks * (nranks + 1) / 2).all()
    rows = functional.all_gather_tensor(torch.full((1, 2), float(rank)), 0, group)
    assert torch.equal(rows + 0, torch.arange(float(nranks))[:, None].expand(nranks, 2))
    part = functional.reduce_scatter_tensor(torch.ones(nranks, 2), "sum", 0, group)
    assert (part + 0 == nranks).all()
    sent = functional.all_to_all_single(torch.full((nranks,), float(rank)), None, None, group)
    assert torch.equal(sent + 0, torch.arange(float(nranks)))
    whole = torch.arange(4.0 * nranks).view(-1, 2)
    mesh = init_device_mesh("cpu", (nranks,))
    shards = distribute_tensor(whole, mesh, [Shard(0)])
    return torch.equal(shards.redistribute(mesh, [Replicate()]).to_local(), whole)


def both(rank: int, nranks: int, path: str) -> bool:
    """One backend for each device, as with ``cuda:nccl``; here the other backend stands for a missing device."""
    import torch.testing._internal.distributed.fake_pg  # noqa: F401  (registers the other one)

    store = dist.FileStore(f"{path}/store", nranks)
    dist.init_process_group("cpu:roundelay,cuda:fake", store=store, rank=rank, world_size=nranks)
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert dist.get_backend_config() == "cpu:roundelay,cuda:fake"
    return bool((tensor == nranks).all())


@pytest.mark.parametrize("nranks", [2, 3])
@pytest.mark.parametrize("body", [parts, objects, barriers, named, functional], ids=lambda body: body.__name__)
def test_groups(body, nranks) -> None:  # type: ignore[no-untyped-def]
    assert all(fine(run(nranks, body)))


def test_devices(tmp_path: Path) -> None:
    assert all(fine(run(2, both, str(tmp_path), backend="")))


def own(rank: int, nranks: int, path: str) -> bool:
    import roundelay.torch

    roundelay.torch.use(path, collective="all_reduce", max_bytes=1 << 20)
    roundelay.torch.use("RingAllReduce", max_bytes=1 << 10)
    pair = dist.new_group([0, 1])
    if rank < 2:
        roundelay.torch.use(path, group=pair)
    for count in (1, 1000, 1_000_000):
        tensor = torch.full((count,), rank + 1.0)
        dist.all_reduce(tensor)
        assert (tensor == nranks * (nranks + 1) / 2).all()
    with pytest.raises(ValueError, match="use: there are no algorithms for 'allreduce': these have them: all_reduce"):
        roundelay.torch.use(path, collective="allreduce")
    with pytest.raises(RuntimeError, match=rf"roundelay: use at rank {rank}: .*Broadcast"):
        roundelay.torch.use(path, collective="broadcast")
    with pytest.raises(RuntimeError, match=rf"roundelay: use at rank {rank}: "):
        roundelay.torch.use("algorithm Wrong for AllReduce { nonsense }")
    with pytest.raises(TypeError, match="use: the backend of this group is gloo, not roundelay"):
        roundelay.torch.use(path, group=dist.new_group(backend="gloo"))
    # Gloo's group is made as long as a rank makes it.
    dist.barrier()
    return True


def ordered(rank: int, nranks: int) -> bool:
    import roundelay.torch

    row = torch.randn(515, generator=torch.Generator().manual_seed(rank)).to(torch.bfloat16)

    def reduced(rows: int, at: int) -> torch.Tensor:
        batch = torch.ones(rows, len(row), dtype=row.dtype)
        batch[at] = row
        dist.all_reduce(batch)
        return batch[at].clone()

    roundelay.torch.deterministic()
    kept = "all_ranks,all_elements,all_counts,rank_order,every_run,roundings=1"
    assert roundelay.torch.order("all_reduce", 515, row.dtype) == kept
    alone = reduced(1, 0)
    assert all(torch.equal(reduced(rows, at), alone) for rows, at in [(2, 1), (7, 3), (300, 299)])
    roundelay.torch.use("RingAllReduce")
    with pytest.raises(RuntimeError, match="E0317"):
        reduced(1, 0)
    roundelay.torch.use(order="all_ranks")
    # A ring keeps that promise, and takes each part of the message in another order.
    differ = [not torch.equal(reduced(rows, at), alone) for rows, at in [(1, 0), (2, 1), (7, 3)]]
    assert any(differ)
    return True


def test_ordered() -> None:
    assert all(fine(run(3, ordered)))


def detailed(rank: int, nranks: int, path: str) -> bool:
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    store = dist.FileStore(f"{path}/store", nranks)
    dist.init_process_group("roundelay", store=store, rank=rank, world_size=nranks)
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    return bool((tensor == nranks * nranks).all())


def test_own() -> None:
    assert all(fine(run(3, own, str(RING))))


def test_detailed(tmp_path: Path) -> None:
    assert all(fine(run(2, detailed, str(tmp_path), backend="")))
