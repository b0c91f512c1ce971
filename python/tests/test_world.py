"""Worlds of processes, and the refusals of their calls."""

import ctypes

import pytest

import roundelay
from roundelay import World, _codes

SUM = roundelay.OPS["sum"]
F32 = roundelay.DTYPES["f32"]
ALL_REDUCE = roundelay.COLLECTIVES["AllReduce"]


@pytest.fixture
def world():
    with World.join(roundelay.unique_id(), 1, 0, timeout=20) as alone:
        yield alone


def floats(*values: float) -> "ctypes.Array[ctypes.c_float]":
    return (ctypes.c_float * len(values))(*values)


def test_ranks_call_by_numpy(launch) -> None:
    done = launch(
        3,
        """
        import numpy
        import roundelay
        from roundelay import COLLECTIVES, DTYPES, OPS, World

        with World.from_env(timeout=20) as world:
            def call(collective, mine, theirs, count, op="sum", root=0):
                world.call(COLLECTIVES[collective], mine.ctypes.data, theirs.ctypes.data, count,
                           DTYPES["f64"], OPS[op], root)

            rank, n = world.rank, world.nranks
            mine, sums = numpy.arange(5.0) + rank, numpy.zeros(5)
            call("AllReduce", mine, sums, 5)
            assert (sums == n * numpy.arange(5.0) + 3).all(), sums
            call("AllReduce", mine, mine, 5, "max")
            assert (mine == numpy.arange(5.0) + n - 1).all(), mine
            every = numpy.zeros(2 * n)
            every[2 * rank : 2 * rank + 2] = rank
            # In place: the input is a block of the output.
            call("AllGather", every[2 * rank :], every, 2)
            assert (every == numpy.repeat(numpy.arange(n), 2)).all(), every
            said = numpy.full(4, float(rank))
            call("Broadcast", said, said, 4, root=2)
            assert (said == 2).all(), said

            # Several under way at once, in the order in which they were started.
            several = [numpy.full(1000, float(rank)) for _ in range(5)]
            requests = [
                world.start(COLLECTIVES["AllReduce"], each.ctypes.data, each.ctypes.data, 1000,
                            DTYPES["f64"])
                for each in several
            ]
            assert all(request.wait(20) for request in requests)
            assert all((each == 3).all() for each in several)

            if rank == 0:
                world.send(several[0].ctypes.data, 3, DTYPES["f64"], 1)
            if rank == 1:
                got = numpy.zeros(3)
                world.recv(got.ctypes.data, 3, DTYPES["f64"], 0)
                assert (got == 3).all()

            memory = world.alloc(64)
            assert memory.bytes == 64 and memory.address % 64 == 0
            half = world.split(rank % 2, key=-rank)
            assert (half.nranks, half.rank) == ((2, 1 - rank // 2) if rank % 2 == 0 else (1, 0))
            assert world.split(None) is None
            half.close()
            world.barrier()
        print("done")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "done\n" * 3), done.stderr


def test_a_promised_order_is_kept(launch) -> None:
    done = launch(
        3,
        """
        import numpy
        import roundelay
        from roundelay import COLLECTIVES, DTYPES, OPS, World

        ALL_REDUCE, F32, SUM = COLLECTIVES["AllReduce"], DTYPES["f32"], OPS["sum"]
        parts = numpy.array([1e6, -333333.3, 0.1], "f4")
        with World.from_env(timeout=20) as world:
            world.promise("all")
            kept = "all_ranks,all_elements,all_counts,rank_order,every_run,roundings=1"
            assert world.order(ALL_REDUCE, 1000, F32, SUM) == kept
            assert world.order(COLLECTIVES["AllGather"], 1000, F32, SUM) == ""
            for count in (1, 3, 1000, 65_537, 1_000_000):
                mine, sums = numpy.full(count, parts[world.rank]), numpy.zeros(count, "f4")
                world.call(ALL_REDUCE, mine.ctypes.data, sums.ctypes.data, count, F32, SUM)
                assert (sums == parts[0] + (parts[1] + parts[2])).all(), count
            world.use("RingAllReduce")
            for call in (lambda: world.order(ALL_REDUCE, 9, F32, SUM),
                         lambda: world.call(ALL_REDUCE, mine.ctypes.data, sums.ctypes.data, 9, F32, SUM)):
                try:
                    call()
                except roundelay.Error as error:
                    assert error.code == "E0317", error
                else:
                    raise AssertionError("a ring has no order for all counts")
            try:
                world.promise("alphabetical")
            except roundelay.Error as error:
                assert error.code == "E0406" and "is no promise" in str(error), error
        print("done")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "done\n" * 3), done.stderr


def test_an_own_algorithm_runs_in_its_range(launch) -> None:
    done = launch(
        2,
        """
        import numpy
        from roundelay import COLLECTIVES, DTYPES, Error, World

        with World.from_env(timeout=20) as world:
            # It is wrong, so the sizes that it is for are told by its refusal.
            world.use("algorithm Wrong() -> AllReduce { }", min_bytes=64, max_bytes=128)
            for size in (15, 16, 32, 33):
                data = numpy.ones(size, dtype="f4")
                try:
                    world.call(COLLECTIVES["AllReduce"], data.ctypes.data, data.ctypes.data, size,
                               DTYPES["f32"])
                    print(size, data[0])
                except Error as error:
                    print(size, error.code)
        """,
    )
    lines = sorted(done.stdout.split("\n"))
    expected = ["15 2.0", "16 E0304", "32 E0304", "33 2.0"]
    assert lines == sorted([""] + 2 * expected), done.stderr


def test_options_say_what_is_checked_and_measured(launch) -> None:
    done = launch(
        2,
        """
        import numpy
        import roundelay
        from roundelay import COLLECTIVES, DTYPES, World

        def made(options, calls):
            with World.from_env(timeout=20, **options) as world:
                data = numpy.ones(5000, "f4")
                for _ in range(calls):
                    world.call(COLLECTIVES["AllReduce"], data.ctypes.data, data.ctypes.data, 5000, DTYPES["f32"])
                return data[0], len(world.ways()) if world.rank == 0 else 1

        assert made({"check": "first"}, 1)[0] == 2
        assert made({"measured": True}, 220)[1] == 1
        usual = made({"measured": False, "check": "never"}, 220)[1]
        try:
            # Rank 1 of two makes no check, and rank 0 does.
            made({"check": "never" if usual else "first"}, 1)
        except roundelay.Error as error:
            print(error.code, "check of AllReduce" in str(error))
        """,
    )
    assert (done.returncode, done.stdout) == (0, "E0414 True\n" * 2), done.stderr


def test_calls_that_differ_are_told(launch) -> None:
    done = launch(
        2,
        """
        import numpy
        from roundelay import COLLECTIVES, DTYPES, Error, World

        with World.from_env(timeout=20) as world:
            data = numpy.ones(10)
            try:
                world.call(COLLECTIVES["AllReduce"], data.ctypes.data, data.ctypes.data,
                           10 - world.rank, DTYPES["f64"])
            except Error as error:
                print(error.code, "10 f64" in str(error), "9 f64" in str(error))
        """,
    )
    assert done.stdout == "E0414 True True\n" * 2, done.stderr


def test_a_rank_that_is_killed_is_named(launch) -> None:
    done = launch(
        3,
        """
        import os, signal, time
        import numpy
        from roundelay import COLLECTIVES, DTYPES, Error, World

        world = World.from_env(timeout=20)
        data = numpy.ones(10)
        call = lambda world: world.call(COLLECTIVES["AllReduce"], data.ctypes.data,
                                        data.ctypes.data, 10, DTYPES["f64"])
        call(world)
        if world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            call(world)
        except Error as error:
            print(error.code, "rank 1" in str(error))
        left = world.shrink()
        data[:] = 1
        call(left)
        print(left.nranks, data[0])
        """,
        "--keep-going",
    )
    lines = sorted(done.stdout.splitlines())
    assert lines == ["2 2.0", "2 2.0", "E0428 True", "E0428 True"], done.stderr


def test_what_allgather_does_wrong_is_raised() -> None:
    def broken(_: bytes) -> bytes:
        raise KeyError("no store")

    with pytest.raises(KeyError, match="no store"):
        World.bootstrap(2, 0, broken)
    with pytest.raises(ValueError, match="returned 3 bytes for 2 ranks of 192"):
        World.bootstrap(2, 0, lambda mine: b"abc")
    with World.bootstrap(1, 0, lambda mine: mine) as alone:
        assert (alone.rank, alone.nranks) == (0, 1)


def test_a_wait_has_an_end(world) -> None:
    data = floats(1, 2, 3)
    at = ctypes.addressof(data)
    request = world.start(ALL_REDUCE, at, at, 3, F32, SUM)
    assert request.wait() and request.wait(0) and request.test()
    failed = world.start(ALL_REDUCE, at, at, 3, F32, 4)
    assert failed.wait()


def test_bad_input_is_refused(world) -> None:
    data = floats(1, 2, 3)
    at = ctypes.addressof(data)
    for call, code, text in [
        (lambda: world.call(9, at, at, 3, F32), "E0406", "collective 9"),
        (lambda: world.call(ALL_REDUCE, at, at, 3, 99), "E0406", "dtype 99"),
        (lambda: world.call(ALL_REDUCE, at, 0, 3, F32), "E0406", "null pointer"),
        (lambda: world.call(3, at, at, 3, F32, SUM, 5), "E0411", "rank 5"),
        (lambda: world.send(at, 3, F32, 1), "E0411", "rank 1"),
        (lambda: world.alloc(1 << 60), "E0407", "memory"),
        (lambda: world.use("NoSuch"), "E0502", "neither a file nor"),
        (lambda: World.from_env(), "E0427", "ROUNDELAY_RANK"),
        (lambda: World.join(roundelay.unique_id(), 2, 2), "E0411", "rank 2"),
    ]:
        with pytest.raises(roundelay.Error) as raised:
            call()
        assert raised.value.code == code and text in str(raised.value), raised.value
    for call in (
        lambda: world.use("RingAllReduce", collective="Allreduce"),
        lambda: World.join(b"short", 1, 0),
        lambda: World.from_env(timeout=0),
        lambda: World.from_env(check="second"),
        lambda: world.split(-3),
    ):
        with pytest.raises(ValueError):
            call()


def test_a_world_that_is_closed_is_no_more(world) -> None:
    world.abort("by a test")
    with pytest.raises(roundelay.Error, match="by a test"):
        world.barrier()
    world.close()
    world.close()
    with pytest.raises(roundelay.Error, match="no world"):
        world.barrier()


def test_a_forked_child_has_no_world(launch) -> None:
    done = launch(
        2,
        """
        import gc, os
        import numpy
        from roundelay import COLLECTIVES, DTYPES, Error, World

        world = World.from_env(timeout=20)
        data = numpy.ones(10)
        at = data.ctypes.data
        request = world.start(COLLECTIVES["AllReduce"], at, at, 10, DTYPES["f64"])
        child = os.fork()
        if child == 0:
            try:
                world.barrier()
                os._exit(1)
            except Error as error:
                if error.code != "E0427":
                    os._exit(2)
            del world, request
            gc.collect()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert request.wait()
        # The child has left nothing, and taken nothing with it.
        world.barrier()
        print(os.waitstatus_to_exitcode(status), data[0])
        """,
    )
    assert done.stdout == "0 2.0\n" * 2, done.stderr


def test_a_library_that_is_missing_is_named(tmp_path) -> None:
    import os
    import subprocess
    import sys

    environment = {**os.environ, "ROUNDELAY_LIBRARY": str(tmp_path / "none.so")}
    done = subprocess.run(
        [sys.executable, "-c", "import roundelay"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "ImportError" in done.stderr and "none.so cannot be loaded" in done.stderr, done.stderr


def test_codes_are_those_of_the_header() -> None:
    from pathlib import Path

    header = Path(__file__).parents[2] / "capi/include/roundelay.h"
    text = header.read_text()
    for name, code in _codes.OPS.items():
        assert f"ROUNDELAY_{name.upper()} = {code}" in text
    for name, code in _codes.DTYPES.items():
        bits = 8 * _codes.SIZES[code]
        kind = {"i": "INT", "u": "UINT", "f": "FLOAT", "b": "BFLOAT"}[name[0]]
        # An 8-bit float names its form, such as E4M3, behind its bits.
        form = f"_{name[2:].upper()}" if (kind, bits) == ("FLOAT", 8) else ""
        assert f"ROUNDELAY_{kind}{bits}{form} = {code}" in text
    for name, code in _codes.COLLECTIVES.items():
        words = "".join(f"_{c}" if c.isupper() else c.upper() for c in name)
        assert f"ROUNDELAY{words} = {code}" in text
    for name, code in (
        ("CHECK_FIRST", _codes.CHECKS["first"]),
        ("CHECK_NEVER", _codes.CHECKS["never"]),
        ("USUAL_WAYS", _codes.USUAL_WAYS),
        ("SITES", _codes.SITES),
    ):
        assert f"ROUNDELAY_{name} = {code}" in text
