//! Execution plans for MSCCL++: `check`, `run`, `simulate` and `emit` of files that end in .json, and `emit mscclpp`.

use super::call::{TempFile, roundelay};

const PLAN: &str = "tests/mscclpp/two-rank-allreduce.json";

#[test]
fn a_right_plan_is_proved() {
    let call = roundelay(&["check", PLAN, "--deterministic", "--stats"]).ends(0);
    let told = [
        "proved two_rank_allreduce (AllReduce, 2 ranks, Simple): 20 operations in up to 1 block",
        "no deadlock, no data race, every contribution exactly once; in place",
        "all ranks reduce in one order",
        "calls of any size are declared; the executor takes multiples of 16 bytes",
    ];
    assert!(told.iter().all(|part| call.out.contains(part)), "{}", call.out);
    let json = roundelay(&["check", PLAN, "--format", "json"]).ends(0).json();
    let plan = &json["program"];
    assert_eq!(
        (plan["collective"].as_str(), plan["protocol"].as_str()),
        (Some("AllReduce"), Some("Simple"))
    );
    assert_eq!(
        (plan["modes"][0]["mode"].as_str(), plan["orders"].as_u64()),
        (Some("in_place"), Some(1))
    );
    assert!(plan["max_bytes"].is_null());
}

#[test]
fn a_wrong_plan_is_refused() {
    let right = std::fs::read_to_string(roundelay_tests::root().join(PLAN)).expect("it is there");
    let late = right.replacen(
        "\"index\": 0, \"size\": 1}], \"channel_type\"",
        "\"index\": 0, \"size\": 1}], \"channel\"",
        1,
    );
    let file = TempFile::new("key.json", late.as_bytes());
    let call = roundelay(&["check", file.path()]).refused(1, "E0801");
    assert!(call.err.contains("no key of an op is called `channel`"), "{}", call.err);
    let wrong = right.replacen("\"type\": \"i\", \"index\": 1", "\"type\": \"i\", \"index\": 0", 1);
    let file = TempFile::new("wrong.json", wrong.as_bytes());
    roundelay(&["check", file.path()]).refused(1, "E0304");
    roundelay(&["run", file.path()]).refused(1, "E0304");
    roundelay(&["check", "no_such_file.json"]).refused(2, "E0001");
    roundelay(&["check", PLAN, "--runtime", "rccl"]).refused(2, "E0507");
    roundelay(&["check", PLAN, "--nranks", "2"]).refused(2, "E0507");
}

#[test]
fn a_plan_runs_and_is_printed() {
    roundelay(&["run", PLAN, "--count", "1600", "--in-place", "--iterations", "1"]).ends(0);
    roundelay(&["run", PLAN, "--count", "1601", "--iterations", "1"]).refused(2, "E0406");
    let mesh = ["--topology", "full_mesh(2, 25GB/s, 2us)"];
    roundelay(&[&["simulate", PLAN, "--bytes", "1M"][..], &mesh].concat()).ends(0);
    let call = roundelay(&["emit", "schedule", PLAN]).ends(0);
    let head = "schedule two_rank_allreduce AllReduce nranks 2 root 0 multiple 2\n";
    assert!(call.out.starts_with(head), "{}", call.out);
    roundelay(&["emit", "steps", PLAN]).ends(0);
    roundelay(&["emit", "mscclpp", PLAN]).refused(2, "E0507");
}

#[test]
fn an_algorithm_becomes_a_plan() {
    for flags in [&["--nranks", "4"][..], &["--nranks", "4", "--in-place"]] {
        let call = roundelay(&[&["emit", "mscclpp", "RingAllReduce"][..], flags].concat()).ends(0);
        let file = TempFile::new("ring.json", call.out.as_bytes());
        let told = roundelay(&["check", file.path(), "--deny", "warnings"]).ends(0);
        assert!(
            told.out.contains("proved RingAllReduce (AllReduce, 4 ranks, Simple)"),
            "{}",
            told.out
        );
    }
    let call = roundelay(&["emit", "mscclpp", "RingBroadcast", "-n", "4"]).refused(1, "E0704");
    assert!(call.err.contains("no plan is for Broadcast"), "{}", call.err);
    // Of many ranks the first tells it: nothing is proved.
    let call = roundelay(&["emit", "mscclpp", "RingAllReduce", "-n", "1000"]).refused(1, "E0704");
    assert!(call.err.contains("267 blocks of a rank, and 108 run at once"), "{}", call.err);
    roundelay(&["emit", "mscclpp", "RingAllReduce", "-n", "2,4"]).refused(2, "E0501");
    let call = roundelay(&["emit", "steps", "RingAllReduce", "--in-place"]).refused(2, "E0507");
    assert!(call.err.contains("`roundelay emit mscclpp` has it"), "{}", call.err);
}
