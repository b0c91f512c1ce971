"""Algorithms that are compiled by the program: proofs, predictions, results and refusals."""

from pathlib import Path

import numpy
import pytest

import roundelay

STAR = """
algorithm Star(root: Rank = 0) -> Broadcast {
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
"""
MESH = "full_mesh(4, 25GB/s, 2us)"


def test_what_is_proved_is_an_object() -> None:
    ring = roundelay.compile("RingAllReduce")
    assert (ring.name, ring.collective, ring.every_from) == ("RingAllReduce", "AllReduce", 2)
    certificate = ring.certificate(4)
    assert (certificate.nranks, certificate.steps, certificate.least_steps) == (4, 6, 2)
    assert "no deadlock" in certificate.proved and certificate.in_place
    assert certificate.data["order"]["on_all_ranks"] == "exact"
    assert {each.nranks for each in ring.certificates} >= {2, 8}
    tree = roundelay.compile("TreeBroadcast", nranks=4)
    assert tree.values[0] == "root 0..=3" and "slices = 1" in tree.values, tree.values


def test_a_schedule_is_data() -> None:
    schedule = roundelay.compile("RingAllReduce").schedule(3)
    assert (schedule.algorithm, schedule.nranks, schedule.root) == ("RingAllReduce", 3, 0)
    assert {op.rank for op in schedule.ops} == {0, 1, 2}
    kinds = [op.kind for op in schedule.ops]
    assert kinds.count("post") == kinds.count("wait") > 0
    assert all(op.line for op in schedule.ops)
    assert schedule.text.startswith("schedule RingAllReduce AllReduce nranks 3 root 0\n")
    with pytest.raises(ValueError, match="no schedule begins with"):
        roundelay.Schedule.of("nothing")


def test_runs_are_predicted_and_shown() -> None:
    ring = roundelay.compile("RingAllReduce")
    run = ring.simulate(MESH, bytes=1 << 20, costs="messages")
    # Two times three steps of a quarter each, by hand.
    assert run.seconds == pytest.approx(6 * ((1 << 18) / 25e9 + 2e-6))
    assert run.bound_seconds < run.seconds and 0 < run.share_of_bound < 1
    assert run._repr_svg_().startswith("<svg ") and "RingAllReduce" in run.svg
    assert ring._repr_svg_().startswith("<svg ")
    bounds = ring.bounds(MESH)
    assert bounds.seconds_per_byte["AllReduce"] == pytest.approx(2e-11)
    assert bounds._repr_svg_().startswith("<svg ")
    assert "Bounds(nranks=4" in repr(bounds) and "Simulation(seconds=" in repr(run)


def test_pictures_are_saved(tmp_path: Path) -> None:
    picture = roundelay.compile("RingAllReduce").picture(3)
    picture.save(tmp_path / "ring.svg")
    assert (tmp_path / "ring.svg").read_text(encoding="utf-8") == picture.svg


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_results_are_those_of_numpy(kind: str) -> None:
    inputs = [numpy.arange(7, dtype=kind) + rank for rank in range(3)]
    outputs = roundelay.compile("RingAllReduce").run(inputs)
    for output in outputs:
        assert output.dtype == kind and (output == sum(inputs)).all()
    (largest, *_) = roundelay.compile("RingAllReduce").run(inputs, op="max")
    assert (largest == inputs[2]).all()


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_all_pairs_of_fp8_are_those_of_ml_dtypes(kind: str) -> None:
    """ml_dtypes rounds, and the test saturates: a finite result beyond the largest number becomes that number."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    fp8 = numpy.dtype(getattr(ml_dtypes, kind))
    largest = float(ml_dtypes.finfo(fp8).max)
    every = numpy.arange(256, dtype=numpy.uint8).view(fp8)
    pair = [numpy.repeat(every, 256), numpy.tile(every, 256)]
    a, b = (each.astype(numpy.float32) for each in pair)
    smaller = numpy.where(numpy.signbit(a), a, b)
    larger = numpy.where(numpy.signbit(a), b, a)
    with numpy.errstate(all="ignore"):
        exact = {
            "sum": a + b,
            "prod": a * b,
            # Zeros of both signs compare equal.
            "min": numpy.where(a == b, smaller, numpy.minimum(a, b)),
            "max": numpy.where(a == b, larger, numpy.maximum(a, b)),
            # The sum is divided before it is rounded.
            "avg": (a + b) / 2,
        }
    for op, value in exact.items():
        finite = numpy.isfinite(value)
        with numpy.errstate(all="ignore"):
            right = numpy.where(finite, value.clip(-largest, largest), value).astype(fp8)
        (got, _) = roundelay.compile("OneShotMeshAllReduce").run(pair, op=op)
        nan = numpy.isnan(right.astype(numpy.float32))
        assert (numpy.isnan(got.astype(numpy.float32)) == nan).all(), op
        wrong = (got.view(numpy.uint8) != right.view(numpy.uint8)) & ~nan
        assert not wrong.any(), (op, a[wrong][:5], b[wrong][:5], got[wrong][:5], right[wrong][:5])


def test_blocks_and_roots_go_where_they_should() -> None:
    parts = roundelay.compile("MeshReduceScatter").run([numpy.arange(6.0)] * 3)
    assert [part.tolist() for part in parts] == [[0, 3], [6, 9], [12, 15]]
    gathered = roundelay.compile("RingAllGather").run([numpy.full(2, r) for r in range(3)])
    assert all(each.tolist() == [0, 0, 1, 1, 2, 2] for each in gathered)
    none = numpy.zeros(0)
    said = roundelay.compile(STAR, root=1, nranks=3).run([none, numpy.ones(3), none])
    assert all(each.tolist() == [1, 1, 1] for each in said)


def test_a_page_that_is_wrong_is_shown() -> None:
    with pytest.raises(roundelay.CompileError) as raised:
        roundelay.compile(STAR.replace("hub.RxAck();", ""))
    error = raised.value
    assert error.code.startswith("E03") and error.code == error.diagnostics[0].code
    assert error.diagnostics[0].line > 1 and "<stdin>" in str(error.diagnostics[0])
    # The message is the command's: with the line of the source, and a mark below it.
    assert "error[E03" in str(error) and "^^^" in str(error)


def test_what_cannot_be_done_is_refused() -> None:
    ring = roundelay.compile("RingAllReduce")
    for call, code, text in [
        (lambda: roundelay.compile("RingAllReduce", slices=3), "E0211", "no parameter `slices`"),
        (lambda: roundelay.compile("RingAlReduce"), "E0502", "did you mean `RingAllReduce`"),
        (lambda: roundelay.compile("no/such.coll"), "E0001", "cannot be read"),
        (lambda: roundelay.bounds("full_mes(4)"), "E0101", "did you mean `full_mesh`"),
        (lambda: ring.simulate("full_mesh(4)", bytes=-1), "E0501", "-1"),
        (lambda: ring.schedule(0), "E0409", "rank count"),
    ]:
        with pytest.raises(roundelay.Error) as raised:
            call()
        assert raised.value.code == code and text in str(raised.value), raised.value
    two = STAR + STAR.replace("Star", "Sun")
    with pytest.raises(ValueError, match="several algorithms, name one of them: Star, Sun"):
        roundelay.compile(two)
    assert roundelay.compile(two, "Sun").name == "Sun"
    for inputs, error in [
        ([], ValueError),
        ([numpy.ones(3), numpy.ones(4)], ValueError),
        ([numpy.ones(3), numpy.ones(3, dtype="f4")], TypeError),
        ([numpy.ones(3, dtype=complex)] * 2, TypeError),
    ]:
        with pytest.raises(error):
            ring.run(inputs)
    with pytest.raises(ValueError, match="'mean' is none of"):
        ring.run([numpy.ones(3)] * 2, op="mean")


def test_a_page_may_be_a_file(tmp_path: Path) -> None:
    page = tmp_path / "star.coll"
    page.write_text(STAR)
    assert roundelay.compile(page).name == "Star"
