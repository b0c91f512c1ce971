//! The output of `check` about a proof, and its flags: signals, budgets, one order.

use super::call::{TempFile, roundelay};

fn certificate(args: &[&str]) -> serde_json::Value {
    let report = roundelay(&[&["check"], args, &["--format", "json"]].concat()).ends(0).json();
    let all = report["algorithms"][0]["certificates"].as_array().unwrap();
    all.last().unwrap().clone()
}

#[test]
fn the_ring() {
    let of = certificate(&["RingAllReduce", "--nranks", "2..=8"]);
    assert_eq!(of["nranks"], 8);
    assert_eq!(of["in_place"], true);
    assert_eq!((&of["streams"], &of["notifies"], &of["joins"]), (&1.into(), &1.into(), &0.into()));
    assert_eq!(of["scratch_units"], 0.0);
    assert_eq!((&of["sends_to"]["peers"], &of["receives_from"]["peers"]), (&1.into(), &1.into()));
    assert_eq!(
        (&of["order"]["on_all_ranks"], &of["order"]["for_all_counts"]),
        (&"exact".into(), &"differs".into())
    );
    assert_eq!(of["reduce_depth"], 7);
    let ideal = &of["ideal"];
    assert_eq!((&ideal["units"], &ideal["least_units"]), (&1.75.into(), &1.75.into()));
    assert_eq!((&ideal["steps"], &ideal["least_steps"]), (&14.into(), &3.into()));
}

#[test]
fn scratch_streams_and_orders() {
    let doubling = certificate(&["examples/recursive_doubling.coll", "--nranks", "8"]);
    assert_eq!(doubling["scratch_units"], 1.0);
    assert_eq!(doubling["order"]["on_all_ranks"], "commuted");
    assert_eq!(doubling["order"]["for_all_elements"], "commuted");
    assert_eq!(doubling["order"]["for_all_counts"], "exact");
    let exchange = certificate(&["examples/all_to_all.coll", "--nranks", "5"]);
    assert_eq!((&exchange["streams"], &exchange["joins"]), (&4.into(), &6.into()));
    assert_eq!(exchange["sends_to"]["peers"], 4);
    assert_eq!(exchange["in_place"], false);
    assert!(exchange.get("order").is_none());
}

#[test]
fn the_two_way_ring_where_streams_share_flags() {
    let check = |nranks, signals| {
        roundelay(&["check", "TwistedRingAllReduce", "--nranks", nranks, "--signals", signals])
    };
    check("2", "counting").ends(0);
    check("2", "binary").ends(0);
    check("2", "link-shared").refused(1, "E0310");
    let lost = check("2", "binary,link-shared").refused(1, "E0314");
    assert!(!lost.err.contains("E0304"), "what a lost signal causes is no error of its own");
    check("3..=8", "binary,link-shared").ends(0);
    for nranks in ["2", "3", "8"] {
        let call = roundelay(&[
            "check",
            "RingAllReduce",
            "--nranks",
            nranks,
            "--signals",
            "binary,link-shared",
        ]);
        call.ends(0);
    }
}

#[test]
fn budgets_and_one_order() {
    let check = |source: &str, flags: &[&str]| {
        roundelay(&[&["check", source, "--nranks", "4"], flags].concat())
    };
    check("TwistedRingAllReduce", &["--budget", "streams=2,notifies=2,scratch=0,ports=2"]).ends(0);
    check("TwistedRingAllReduce", &["--budget", "streams=1"]).refused(1, "E0315");
    check("TwistedRingAllReduce", &["--budget", "ports=1"]).refused(1, "E0316");
    check("examples/recursive_doubling.coll", &["--budget", "scratch=0"]).refused(1, "E0315");
    check("RingAllReduce", &["--deterministic"]).ends(0);
    check("tests/wrong/E0317_two_orders.coll", &[]).refused(1, "E0317");
    check("RingAllReduce", &["--budget", "stream=1"]).refused(2, "E0501");
    check("RingAllReduce", &["--budget", "streams=-1"]).refused(2, "E0501");
    check("RingAllReduce", &["--signals", "flags"]).refused(2, "E0501");
    check("RingAllReduce", &["--signals", "counting,binary"]).refused(2, "E0501");
}

#[test]
fn rank_counts_come_from_the_attribute() {
    let text = "#[verify(nranks = [3, 5])]\nalgorithm A(ring: Ring) -> AllGather {\n    copy(local.input, local.output.block(ring.position));\n    for round in 0..nranks - 1 {\n        let b = (ring.position - round - 1) % nranks;\n        ring.right.TxAck();\n        ring.left.RxAck();\n        copy(ring.left.output.block(b), local.output.block(b));\n        ring.left.TxDataSignal();\n        ring.right.RxDataSignal();\n    }\n}\n";
    let file = TempFile::new("attribute.coll", text.as_bytes());
    let call = roundelay(&["check", file.path()]);
    assert!(call.out.contains("for nranks 3, 5:"), "{}", call.out);
    let call = roundelay(&["check", file.path(), "--nranks", "2..=4"]);
    assert!(call.out.contains("for nranks 2..=4:"), "{}", call.out);
}
