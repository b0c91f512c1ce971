//! Programs for MSCCL's runtime: `check` and `run` of files that end in .xml, and `emit msccl`.

use expect_test::expect_file;

use super::call::{TempFile, roundelay, with_input};

const RING: &str = "tests/msccl/msccl-tools-ring-8.xml";
const GATHER: &str = "tests/msccl/azure-allgather-hierarchical-4.xml";
const WRONG: &str = "tests/msccl/msccl-small-allreduce-8-wrong.xml";

#[test]
fn a_right_program_is_proved() {
    let call = roundelay(&["check", GATHER]).ends(0);
    let told = [
        "proved allgather_hierarchical (AllGather, 4 ranks, LL): 96 operations",
        "no deadlock, no data race, every contribution exactly once; out of place",
        "calls of any size end; 64 to 792576 bytes are declared",
    ];
    assert!(told.iter().all(|part| call.out.contains(part)), "{}", call.out);
    let call = roundelay(&["check", RING, "--deterministic", "--stats"]).ends(0);
    assert!(call.out.contains("all ranks reduce in one order"), "{}", call.out);
    assert!(call.err.contains("warning[W0007]: an <algo> without `outofplace`"), "{}", call.err);
}

#[test]
fn json_holds_the_verdict() {
    let json = roundelay(&["check", GATHER, "--format", "json"]).ends(0).json();
    let program = &json["program"];
    assert_eq!(
        (json["ok"].as_bool(), program["collective"].as_str()),
        (Some(true), Some("AllGather"))
    );
    assert_eq!(
        (program["nranks"].as_u64(), program["max_bytes"].as_u64()),
        (Some(4), Some(792_576))
    );
    assert_eq!(program["modes"][0]["mode"], "out_of_place");
    assert_eq!(program["connections"]["message_bytes"], 16 << 10);
    assert_eq!(program["connections"]["ends"], true);
    assert!(program["connections"]["safe_bytes"].is_null());
    let json = roundelay(&["check", WRONG, "--format", "json"]).ends(1).json();
    assert_eq!(json["ok"], false);
    let all = json["diagnostics"].as_array().expect("what is said");
    let refused = all.iter().find(|said| said["code"] == "E0801").expect("it is refused");
    assert_eq!((refused["line"].as_u64(), refused["severity"].as_str()), (Some(12), Some("error")));
    assert_eq!(all[0]["severity"], "warning");
}

#[test]
fn a_wrong_program_is_refused() {
    let call = roundelay(&["check", WRONG]).refused(1, "E0801");
    assert!(call.err.contains("error[E0304]"), "{}", call.err);
    assert!(call.err.contains("wrong.xml:12:7"), "{}", call.err);
    roundelay(&["run", WRONG]).refused(1, "E0801");
    let file = TempFile::new("cut.xml", b"<algo name=\"x\"><gpu id=\"0\"");
    roundelay(&["check", file.path()]).refused(1, "E0606");
    roundelay(&["check", "no_such_file.xml"]).refused(2, "E0606");
}

#[test]
fn limits_and_buffers_of_a_runtime() {
    roundelay(&["check", RING, "--runtime", "microsoft"]).ends(0);
    roundelay(&["check", RING, "--runtime", "rccl"]).refused(1, "E0801");
    let call = roundelay(&["check", GATHER, "--runtime", "azure", "--buffer", "1M"]).ends(0);
    let told = "connections of msccl-executor-nccl with 8 messages of up to 65536 bytes";
    let out = call.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains(told), "{out}");
    roundelay(&["check", "RingAllReduce", "--runtime", "rccl"]).refused(2, "E0507");
    roundelay(&["check", RING, "--nranks", "8"]).refused(2, "E0507");
    roundelay(&["list", RING]).refused(2, "E0001");
}

#[test]
fn a_program_is_simulated_and_printed() {
    let mesh = ["--topology", "full_mesh(8, 25GB/s, 2us)"];
    let call = roundelay(&[&["simulate", RING, "--bytes", "1M"][..], &mesh].concat()).ends(0);
    assert!(call.out.contains("allreduce_ring_4channelsperring"), "{}", call.out);
    roundelay(&[&["simulate", RING, "--count", "1601"][..], &mesh].concat()).refused(2, "E0406");
    roundelay(&[&["simulate", RING, "-n", "8"][..], &mesh].concat()).refused(2, "E0507");
    let call = roundelay(&["emit", "schedule", GATHER]).ends(0);
    let head = "schedule allgather_hierarchical AllGather nranks 4 root 0 multiple 4 out_of_place";
    assert!(call.out.starts_with(head), "{}", call.out);
    let call = roundelay(&["emit", "schedule", "tests/msccl/msccl-small-allreduce-8.xml"]).ends(0);
    assert!(call.out.contains("  wait local 0->0 lane "), "{}", call.out);
    roundelay(&["emit", "steps", GATHER]).ends(0);
    roundelay(&["emit", "cuda", GATHER]).refused(2, "E0507");
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
    let wrong = roundelay(&["emit", "coll", WRONG]).refused(1, "E0801");
    assert_eq!(wrong.out, "");
    roundelay(&["emit", "coll", RING, "-n", "8"]).refused(2, "E0507");
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
fn a_program_is_timed() {
    let time = |more: &[&str]| roundelay(&[&["bench", "--iters", "1"], more].concat());
    let both = format!("{GATHER},tests/mscclpp/two-rank-allreduce.json");
    let json = time(&[&both, "-b", "1000", "--format", "json"]).ends(0).json();
    let of = |row: usize, key: &str| json["results"][row][key].as_u64();
    assert_eq!([of(0, "nranks"), of(0, "count")], [Some(4), Some(60)]);
    assert_eq!([of(1, "nranks"), of(1, "count")], [Some(2), Some(250)]);
    assert_eq!(json["config"]["nranks"], serde_json::json!([4, 2]));
    // 83 floats.
    let call = time(&["tests/mscclpp/two-rank-allreduce.json", "-b", "332", "-v"]).ends(0);
    let told =
        "# AllReduce on 2 ranks: counts are rounded down to multiples of 2, as it takes no others";
    assert!(call.out.contains(told), "{}", call.out);
    let row = call.out.lines().find(|line| !line.starts_with('#')).expect("a row");
    assert_eq!(row.split_whitespace().take(2).collect::<Vec<_>>(), ["328", "82"]);
    time(&[GATHER, "-b", "4K", "--callers", "processes"]).ends(0);
    time(&[GATHER, "-n", "4"]).refused(2, "E0507");
    time(&[WRONG]).refused(1, "E0801");
    time(&[GATHER, "--device", "cuda"]).refused(2, "E0501");
}

#[test]
fn a_program_runs() {
    for (file, count) in
        [(RING, "1600"), (GATHER, "400"), ("tests/msccl/msccl-small-allreduce-8.xml", "800")]
    {
        for flags in [&["-O", "0"][..], &["-O", "1"], &["-O", "2"], &["--callers", "each"]] {
            let all = [&["run", file, "--count", count, "--iterations", "1"][..], flags].concat();
            roundelay(&all).ends(0);
        }
    }
    roundelay(&["run", RING, "--count", "1600", "--in-place", "--iterations", "1"]).ends(0);
    let call = roundelay(&["run", RING, "--count", "1601"]).refused(2, "E0406");
    assert!(call.err.contains("every count is a multiple of 16"), "{}", call.err);
    roundelay(&["run", GATHER, "--count", "400", "--in-place"]).refused(2, "E0408");
    roundelay(&["run", RING, "--nranks", "8"]).refused(2, "E0507");
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
    let refused = |args: &[&str], code: i32, error: &str, word: &str| {
        let call = roundelay(&[&["emit"], args].concat()).refused(code, error);
        assert!(call.err.contains(word), "{}", call.err);
    };
    refused(&["msccl", "RingBroadcast"], 1, "E0704", "Broadcast has a root");
    refused(&["msccl", "RingAllReduce", "-n", "40"], 1, "E0704", "78 steps of a block or more");
    // Of many ranks the first tells it: nothing is laid out.
    refused(
        &["msccl", "RingAllReduce", "-n", "65000"],
        1,
        "E0704",
        "129998 steps of a block or more",
    );
    refused(&["msccl", "MeshAllReduce", "-n", "999"], 1, "E0704", "998 thread blocks of a rank or");
    refused(&["msccl", "RingBroadcast", "-n", "999"], 1, "E0704", "Broadcast has a root");
    refused(&["msccl", "RingAllReduce", "-n", "2,4"], 2, "E0501", "several rank counts");
    refused(&["msccl", "RingAllReduce", "--protocol", "direct"], 2, "E0501", "simple, ll, ll128");
    refused(&["msccl", "RingAllReduce", "--instances", "0"], 2, "E0501", "1..=32");
    refused(
        &["msccl", "RingAllReduce", "--bytes", "5"],
        2,
        "E0507",
        "`roundelay emit goal` has it",
    );
    refused(
        &["cuda", "RingAllReduce", "--runtime", "rccl"],
        2,
        "E0507",
        "`roundelay emit msccl` has it",
    );
    refused(&["cuda", "RingAllReduce", "--protocol", "ll128"], 2, "E0501", "direct, simple, ll");
    refused(
        &["mpi", "RingAllReduce", "--instances", "2"],
        2,
        "E0507",
        "`roundelay emit msccl` has it",
    );
    refused(&["msccl", GATHER], 2, "E0507", "emit schedule");
}
