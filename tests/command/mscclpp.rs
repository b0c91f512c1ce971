//! Execution plans for MSCCL++: plans that are wrong, and `emit mscclpp`.

use super::call::{TempFile, roundelay};

const PLAN: &str = "tests/mscclpp/two-rank-allreduce.json";

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
}
