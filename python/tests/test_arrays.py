"""Collectives on arrays: NumPy's, and those of DLPack."""

import os
from pathlib import Path

import numpy
import pytest
from dlpack import Produced

import roundelay
from roundelay import ArgumentError, World


@pytest.fixture
def world():
    with World.join(roundelay.unique_id(), 1, 0, timeout=20) as alone:
        yield alone


def test_every_collective_takes_arrays(launch) -> None:
    done = launch(
        3,
        """
        import numpy
        from numpy.testing import assert_array_equal as equal
        from roundelay import World, compile

        with World.from_env(timeout=20) as world:
            rank, n = world.rank, world.nranks
            every = [numpy.arange(6, dtype="i4").reshape(3, 2) * (r + 1) for r in range(n)]
            mine, total = every[rank], sum(every)
            rows = numpy.concatenate(every)

            array = mine.copy()
            assert world.all_reduce(array) is array
            equal(array, total)
            out = numpy.empty((6,), "i4")
            assert world.all_reduce(mine, "max", out=out) is out
            equal(out, every[2].ravel())
            equal(mine, every[rank])
            for op, expected in {"prod": every[0] * every[1] * every[2], "avg": total // 3, "min": every[0]}.items():
                equal(world.all_reduce(mine.copy(), op), expected)
            assert world.all_reduce(numpy.array(rank + 1.5))[()] == world.all_reduce(numpy.float64(rank + 1.5)) == 7.5
            assert world.all_reduce(numpy.empty((0, 4), "f4")).shape == (0, 4)
            equal(world.all_reduce(numpy.array([rank == 1, True]), "land"), [False, True])

            said = mine.copy()
            assert world.broadcast(said, root=2) is said
            equal(said, every[2])
            fixed = numpy.array([1 + 2j, rank]) if rank == 1 else None
            if rank == 1:
                fixed.flags.writeable = False
            equal(world.broadcast(fixed, 1, out=numpy.zeros(2, "c16")), [1 + 2j, 1])

            got = world.reduce(mine, "sum", 1, out=numpy.empty_like(mine))
            equal(got, total) if rank == 1 else got is None or 1 / 0
            equal(mine, every[rank])
            array = mine.copy()
            got = world.reduce(array, root=0)
            assert got is (array if rank == 0 else None)
            equal(array, total if rank == 0 else mine)

            equal(world.all_gather(mine), rows)
            equal(world.all_gather(numpy.float32(rank) + numpy.zeros(())), numpy.arange(3.0))
            stacked = numpy.empty((n, 3, 2), "i4")
            stacked[rank] = mine
            world.all_gather(stacked[rank], out=stacked)  # in place
            equal(stacked, every)
            got = world.gather(mine, root=2)
            equal(got, rows) if rank == 2 else got is None or 1 / 0
            equal(world.reduce_scatter(mine), total[rank : rank + 1])
            equal(world.all_to_all(mine), numpy.concatenate([each[rank : rank + 1] for each in every]))
            if rank == 0:
                equal(world.scatter(rows), every[0])
            else:
                equal(world.scatter(root=0, out=numpy.empty((3, 2), "i4")), every[rank])

            # With a count for each rank: rank r has r rows.
            counts = [0, 1, 2]
            ragged = mine[:rank]
            expected = numpy.concatenate([every[r][:r] for r in range(n)])
            equal(world.all_gather(ragged, counts=counts), expected)
            got = world.gather(ragged, 1, counts=counts)
            equal(got, expected) if rank == 1 else got is None or 1 / 0
            equal(world.reduce_scatter(mine, counts=counts), total[sum(counts[:rank]) :][:rank])
            got = world.scatter(mine if rank == 1 else None, 1, counts=counts, out=numpy.empty((rank, 2), "i4"))
            equal(got, every[1][sum(counts[:rank]) :][:rank])
            # Rank r sends s rows to rank s.
            got = world.all_to_all(mine, sends=counts, receives=[rank] * n)
            equal(got, numpy.concatenate([each[sum(counts[:rank]) :][:rank] for each in every]))

            # By a named algorithm, by a page, and by the library's again.
            direct = '''
            algorithm Own(root: Rank = 0) -> Broadcast {
                let hub = peer(root);
                if rank == root {
                    copy(local.input, local.output);
                    for d in 1..nranks {
                        let other = peer((root + d) % nranks);
                        other.TxAck();
                        other.RxDataSignal();
                    }
                } else {
                    hub.RxAck();
                    copy(hub.output, local.output);
                    hub.TxDataSignal();
                }
            }
            '''
            for root in (0, 2):
                for algorithm in (direct, compile(direct), "RingBroadcast", None):
                    equal(world.broadcast(mine.copy(), root, algorithm=algorithm), every[root])
            for _ in range(3):
                for algorithm in ("RingAllReduce", None, "NhrAllReduce"):
                    equal(world.all_reduce(mine.copy(), algorithm=algorithm), total)
            assert len(world._shares) == 5, world._shares
            equal(world.all_gather(ragged, counts=counts, algorithm="RingAllGather"), expected)

            # More shares than are kept.
            for slices in range(1, 40):
                page = compile("RingReduce", slices=slices, nranks=2)
                got = world.reduce(mine.copy(), algorithm=page)
                equal(got, total) if rank == 0 else got is None or 1 / 0
            assert len(world._shares) == 32
        print("done")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "done\n" * 3), done.stderr


def test_what_a_rank_cannot_give_is_told_to_all(launch) -> None:
    """One rank gives a wrong argument: it gets the error, the other its reason, and the next call works."""
    done = launch(
        2,
        """
        import numpy
        import roundelay
        from roundelay import ArgumentError, World

        good = numpy.ones((4, 2), "f4")
        fixed = good.copy()
        fixed.flags.writeable = False
        odd = numpy.frombuffer(bytearray(33), "u1")[1:].view("f4")
        cases = [
            (lambda w, a: w.all_reduce(a, "Sum"), good, "E0431", "sum, prod, max, min, avg, band"),
            (lambda w, a: w.all_reduce(a, ["sum"]), good, "E0431", "op is ['sum']"),
            (lambda w, a: w.all_reduce(a), fixed, "E0406", "read-only"),
            (lambda w, a: w.all_reduce(a), good[:, :1], "E0406", "ascontiguousarray"),
            (lambda w, a: w.all_reduce(a), good.T, "E0406", "C order"),
            (lambda w, a: w.all_reduce(a), good.astype(">f4"), "E0403", "byte order"),
            (lambda w, a: w.all_reduce(a), good.astype("i2"), "E0403", "int16 have no sum"),
            (lambda w, a: w.all_reduce(a), good.astype(bool), "E0403", "use one of max"),
            (lambda w, a: w.all_reduce(a), numpy.array([1, None]), "E0403", "Python objects"),
            (lambda w, a: w.all_reduce(a), numpy.ma.masked_array(good, good > 2), "E0403", "mask"),
            (lambda w, a: w.all_reduce(a), [1, 2], "E0403", "of the type list"),
            (lambda w, a: w.all_reduce(a), 1.5, "E0403", "of the type float"),
            (lambda w, a: w.all_reduce(a), None, "E0403", "NoneType"),
            (lambda w, a: w.all_reduce(a), odd, "E0404", "not aligned"),
            (lambda w, a: w.all_reduce(a, "band"), good, "E0431", ""),
            (lambda w, a: w.all_reduce(a, out=numpy.ones(8)), good, "E0403", "one element type"),
            (lambda w, a: w.all_reduce(a, out=numpy.ones(7, "f4")), good, "E0402", "8 elements"),
            (lambda w, a: w.all_reduce(a.ravel()[:4], out=a.ravel()[2:6]), good, "E0406", "overlap"),
            (lambda w, a: w.all_reduce(a, algorithm="NoSuch"), good, "E0502", "neither a file nor"),
            (lambda w, a: w.all_reduce(a, algorithm=3), good, "E0406", "algorithm is 3"),
            (lambda w, a: w.all_reduce(a, algorithm="RingAllGather"), good, "E0503", "for AllReduce"),
            (lambda w, a: w.all_reduce(a, algorithm="algorithm X() -> AllReduce { }"), good, "E0304", "X is not proved"),
            (lambda w, a: w.all_reduce(a, algorithm="RingAllReduce slices=0"), good, "E0502", ""),
            (lambda w, a: w.broadcast(a, 2), good, "E0411", "0 to 1"),
            (lambda w, a: w.broadcast(a, "0"), good, "E0411", "root is '0'"),
            (lambda w, a: w.scatter(None, 1 - w.rank), good, "E0406", "give out="),
            (lambda w, a: w.scatter(None, w.rank), good, "E0403", "NoneType"),
            (lambda w, a: w.reduce_scatter(a), good[:3], "E0402", "multiple of 2"),
            (lambda w, a: w.all_to_all(a), numpy.array(1.0), "E0402", "first axis"),
            (lambda w, a: w.all_gather(a, counts=[4]), good, "E0432", "each of the 2 ranks"),
            (lambda w, a: w.all_gather(a, counts=[5, -1]), good, "E0432", "each of the 2 ranks"),
            (lambda w, a: w.all_gather(a, counts="ab"), good, "E0432", "each of the 2 ranks"),
            (lambda w, a: w.all_gather(a, counts=[3, 3]), good, "E0402", "3 rows"),
            (lambda w, a: w.all_to_all(a, sends=[1, 3]), good, "E0432", "both"),
            (lambda w, a: w.all_to_all(a, sends=[1, 3], receives=[1 << 62, 1 << 62]), good, "", ""),
        ]
        with World.from_env(timeout=20) as world:
            for at, (call, wrong, code, text) in enumerate(cases):
                given = wrong if at % 2 == world.rank else None
                try:
                    if at % 2 == world.rank:
                        call(world, wrong)
                    else:
                        world.all_reduce(good.copy())
                    raise SystemExit(f"case {at} was not refused")
                except roundelay.Error as error:
                    if at % 2 != world.rank:
                        assert error.code == "E0414" and text in str(error), (at, error)
                    else:
                        assert error.code == code and text in str(error), (at, error.code, error)
                        of_arguments = isinstance(error, ValueError) and isinstance(error, TypeError)
                        assert of_arguments or code in ("E0304", "E0431", "E0406", "E0502", "E0503"), (at, error)
                except (MemoryError, ValueError, OverflowError):
                    assert code == "", at
                assert (world.all_reduce(numpy.ones(3)) == 2).all(), at

            # All ranks are wrong in one way.
            for _ in range(2):
                try:
                    world.all_reduce(good.copy(), "add")
                except ArgumentError as error:
                    assert error.code == "E0431", error
                assert (world.all_reduce(numpy.ones(3)) == 2).all()

            # Arguments that are good alone, and differ.
            for array, code in ((numpy.ones(3 + world.rank), "E0414"), (numpy.ones(3, ["f4", "f8"][world.rank]), "E0414")):
                try:
                    world.all_reduce(array)
                except roundelay.Error as error:
                    assert error.code == code, error
                assert (world.all_reduce(numpy.ones(3)) == 2).all()
            try:
                world.all_reduce(numpy.ones(3), algorithm=["RingAllReduce", None][world.rank])
            except roundelay.Error as error:
                assert error.code == "E0414", error
            assert (world.all_reduce(numpy.ones(3)) == 2).all()
            try:
                world.all_reduce(good.copy(), algorithm="algorithm Empty() -> AllReduce { }")
            except roundelay.Error as error:
                assert error.code == "E0304", error
            assert (world.all_reduce(numpy.ones(3)) == 2).all()
        print("done")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "done\n" * 2), done.stderr


def test_ranks_give_bfloat16_by_dlpack(launch) -> None:
    done = launch(
        2,
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import numpy
        from dlpack import Produced
        from roundelay import World

        with World.from_env(timeout=20) as world:
            for versioned in (True, False):
                given = Produced((2, 3), (4, 16), strides=(3, 1), versioned=versioned)
                # 1.0 and 2.0 are the high halves of their bits as f32.
                given.view(numpy, "u2")[:6] = 0x3F80 if world.rank == 0 else 0x4000
                assert world.all_reduce(given) is given
                assert (given.view(numpy, "u2")[:7] == [0x4040] * 6 + [0]).all()
                all = Produced((12,), (4, 16), versioned=versioned)
                assert world.all_gather(given, out=all) is all
                assert (all.view(numpy, "u2")[:12] == 0x4040).all()
            assert given.asked == [{{}}] * 2, given.asked
            # An array of NumPy and another one.
            sums = Produced((4,))
            world.all_reduce(numpy.arange(4, dtype="f4"), out=sums)
            assert (sums.view(numpy, "f4")[:4] == [0, 2, 4, 6]).all()
        print("done")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "done\n" * 2), done.stderr


@pytest.mark.parametrize(
    "given, code, text",
    [
        (Produced((4,), device=2), "E0420", "the device CUDA"),
        (Produced((4,), device=77), "E0420", "number 77"),
        (Produced((4,), device=2, says=1), "E0420", "the device CUDA"),
        (Produced((4,), flags=1), "E0406", "read-only"),
        (Produced((4,), flags=2), "E0406", "read-only"),
        (Produced((4,), major=2), "E0406", "speaks DLPack 2.0"),
        (Produced((4, 2), strides=(1, 4)), "E0406", "C order"),
        (Produced((4,), strides=(-1,)), "E0406", "C order"),
        (Produced((4,), offset=1), "E0404", "not aligned"),
        (Produced((4,), (2, 8)), "E0403", "float8"),
        (Produced((4,), (17, 4)), "E0403", "type 17 of DLPack with 4 bits"),
        (Produced((4,), (5, 64)), "E0403", "complex64 have no sum"),
        (Produced((4,), lanes=4), "E0403", "4 lanes"),
        (Produced((-4,)), "E0406", "shape (-4,)"),
        (Produced((1 << 40, 1 << 40)), "E0406", "shape"),
        (Produced((4,), data=0), "E0406", "memory at None"),
        (Produced((4,), dimensions=-1), "E0406", "-1 dimensions"),
        (Produced((4,), dimensions=1 << 30), "E0406", "dimensions"),
        (Produced((4,), shape=None), "E0406", "1 dimensions"),
    ],
)
def test_a_tensor_that_cannot_be_taken_is_refused(world, given, code, text) -> None:
    with pytest.raises(ArgumentError) as raised:
        world.all_reduce(given)
    assert raised.value.code == code and text in str(raised.value), raised.value
    world.barrier()


def test_a_producer_that_fails_is_named(world) -> None:
    class Failing:
        def __init__(self, capsule: object) -> None:
            self.capsule = capsule

        def __dlpack_device__(self) -> object:
            return (1, 0)

        def __dlpack__(self, **_: object) -> object:
            if isinstance(self.capsule, Exception):
                raise self.capsule
            return self.capsule

    class NoDevice:
        def __dlpack__(self) -> None: ...

    for given, text in [
        (Failing(BufferError("it wants a gradient")), "Failing, gives no memory by DLPack: it wants a gradient"),
        (Failing(None), "no capsule of DLPack that can be read, but None"),
        (NoDevice(), "__dlpack_device__"),
    ]:
        with pytest.raises(ArgumentError, match=text) as raised:
            world.all_reduce(given)
        assert raised.value.code == "E0406"
    with pytest.raises(ArgumentError, match="give out="):
        world.all_gather(Produced((4,)))


def test_types_of_numpy_are_those_of_ml_dtypes(world) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        array = numpy.ones(3, kind)
        assert (world.all_reduce(array, "prod") == 1).all()
        assert world.all_gather(array).dtype == kind


def test_a_closed_world_and_a_failed_one_say_so(world) -> None:
    world.all_reduce(numpy.ones(1), algorithm="RingAllReduce")
    share = world.share()
    world.abort("by a test")
    for each in (world, share):
        with pytest.raises(roundelay.Error, match="by a test"):
            each.all_reduce(numpy.ones(1))
    share.close()
    world.close()
    assert world._shares == {}
    with pytest.raises(roundelay.Error, match="no world"):
        world.all_reduce(numpy.ones(1))
    with pytest.raises(roundelay.Error, match="no world"):
        world.all_reduce(numpy.ones(1), "add")
