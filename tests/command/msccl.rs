//! Programs for MSCCL's runtime as algorithms of the language, and `emit msccl`.

use expect_test::expect_file;

use super::call::{TempFile, roundelay, with_input};

const RING: &str = "tests/msccl/msccl-tools-ring-8.xml";
const GATHER: &str = "tests/msccl/azure-allgather-hierarchical-4.xml";
const WRONG: &str = "tests/msccl/msccl-small-allreduce-8-wrong.xml";

#[test]
fn json_holds_what_is_refused() {
    let json = roundelay(&["check", WRONG, "--format", "json"]).ends(1).json();
    let all = json["diagnostics"].as_array().expect("what is said");
    let refused = all.iter().find(|said| said["code"] == "E0801").expect("it is refused");
    assert_eq!((refused["line"].as_u64(), refused["severity"].as_str()), (Some(12), Some("error")));
}

#[test]
fn a_program_is_printed_as_an_algorithm() {
    let plan = "tests/mscclpp/two-rank-allreduce.json";
    let others = ["astra-sim-ring-allreduce-8", "msccl-small-allreduce-8"];
    let others = others.map(|name| format!("tests/msccl/{name}.xml"));
    for (file, nranks) in [(RING, 8), (GATHER, 4), (&others[0], 8), (&others[1], 8), (plan, 2)] {
        let text = roundelay(&["emit", "coll", file]).ends(0).out;
        let own = TempFile::new("own.coll", text.as_bytes());
        let call = roundelay(&["check", own.path(), "--deny", "warnings"]).ends(0);
        assert!(call.out.contains(&format!("for nranks {nranks}:")), "{}", call.out);
        assert_eq!(call.out.contains("in place too"), file != GATHER, "{}", call.out);
        assert_eq!(with_input(&["fmt", "-"], text.as_bytes()).ends(0).out, text);
        if file == plan {
            expect_file!["../golden/two_rank_allreduce.coll"].assert_eq(&text);
        }
    }
}

/// Its scratch is wider than the buffers like which an algorithm declares scratch, and data lies across two of them.
const WIDE: &str = r#"<algo name="2 wide" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="0" outofplace="1">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="6"><tb id="0" send="1" recv="1" chan="0">STEPS</tb></gpu>
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="6"><tb id="0" send="0" recv="0" chan="0">STEPS</tb></gpu>
</algo>"#;

#[test]
fn scratch_that_is_wider_than_the_buffers() {
    let steps = [
        ("s", "i", 0, "s", 1),
        ("r", "i", 0, "s", 3),
        ("cpy", "i", 0, "o", 0),
        ("re", "s", 3, "o", 0),
    ];
    let step = |(at, (kind, src, from, dst, to))| {
        format!(
            r#"<step s="{at}" type="{kind}" srcbuf="{src}" srcoff="{from}" dstbuf="{dst}" dstoff="{to}" cnt="2" depid="-1" deps="-1" hasdep="0"/>"#
        )
    };
    let steps = (0..).zip(steps).map(step).collect::<Vec<_>>().concat();
    let file = TempFile::new("wide.xml", WIDE.replace("STEPS", &steps).as_bytes());
    let text = roundelay(&["emit", "coll", file.path()]).ends(0).out;
    let told = [
        "pub algorithm Program2Wide() -> AllReduce {",
        "scratch work: 3 like output;",
        "reduce(local.work[1].split(2)[1], local.dst[0]);",
        "reduce(local.work[2].split(2)[0], local.dst[1]);",
    ];
    assert!(told.iter().all(|line| text.contains(line)), "{text}");
    let own = TempFile::new("wide.coll", text.as_bytes());
    roundelay(&["check", own.path(), "--deny", "warnings"]).ends(0);
}

#[test]
fn an_algorithm_is_written_as_a_program() {
    let call = ["emit", "msccl", "RingAllReduce", "-n", "3", "--protocol", "ll128", "--instances"];
    let out = roundelay(&[&call[..], &["2", "--runtime", "azure"]].concat()).ends(0).out;
    let file = TempFile::new("ring.xml", out.as_bytes());
    let call = roundelay(&["check", file.path(), "--runtime", "azure"]).ends(0);
    let told = ["proved RingAllReduce (AllReduce, 3 ranks, LL128)", "in place and out of place"];
    assert!(told.iter().all(|part| call.out.contains(part)), "{}", call.out);
    roundelay(&["run", file.path(), "--count", "600", "--iterations", "1"]).ends(0);
}
