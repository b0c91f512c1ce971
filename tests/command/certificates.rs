//! The output of `check` about a proof, and its flags: signals, budgets, one order.

use roundelay::library::RingAllGather;
use roundelay::{DType, Options, ReduceOp, ToPlan as _};

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
fn a_plan_has_the_certificate_of_the_command() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Among them one order and none, scratch, a fifo, averages that round again, and moves for equal counts alone.
    for (name, nranks) in [
        ("RingAllReduce", 8),
        ("RingAllGather", 5),
        ("OneShotMeshAllReduce", 4),
        ("TreeAllReduce", 7),
        ("NcclRingAllReduce", 4),
        ("BruckAllToAll", 6),
    ] {
        let found = roundelay::tools::algorithms(name, None, &[]);
        let algorithm = found.unwrap_or_else(|(_, why)| panic!("{why}")).remove(0);
        let plan = algorithm.plan(nranks, 12, DType::F32, ReduceOp::Sum).unwrap();
        let certificate = plan.certificate();
        let n = nranks.to_string();
        let told: serde_json::Value =
            serde_json::from_str(&certificate.json().to_string()).unwrap();
        assert_eq!(told, self::certificate(&[name, "-n", &n]), "{name}");
        let printed = words(&roundelay(&["check", name, "-n", &n]).ends(0).out);
        for line in certificate.lines(true) {
            assert!(printed.contains(&words(&line)), "{name}: `{line}` is not in {printed}");
        }
    }
    // A plan with a count for each block has that of the proof for equal counts.
    let ring = RingAllGather::new();
    let (counts, options) = ([1, 0, 2], Options::default());
    let blocks = ring.plan_of_blocks(3, &counts, DType::I32, ReduceOp::Sum, options).unwrap();
    let equal = ring.spmd_plan(3, 5, DType::I32, ReduceOp::Sum).unwrap().certificate();
    assert_eq!(blocks.certificate().json(), equal.json());
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

/// Rooted collectives are proved for every root, however the count was given, and where that is dear the certificate
/// names the root.
#[test]
fn every_root_is_proved_or_one_is_named() {
    let text = "algorithm FromZero(root: Rank = 0) -> Broadcast {\n    if rank == 0 {\n        copy(local.input, local.output);\n        for d in 1..nranks {\n            peer(d).TxAck();\n        }\n        for d in 1..nranks {\n            peer(d).RxDataSignal();\n        }\n    } else {\n        peer(0).RxAck();\n        copy(peer(0).output, local.output);\n        peer(0).TxDataSignal();\n    }\n}\n";
    let file = TempFile::new("from_zero.coll", text.as_bytes());
    for counts in [&[][..], &["-n", "4"], &["-n", "2,8"], &["-n", "3..=5"], &["-n", "100"]] {
        let call = roundelay(&[&["check", file.path()], counts].concat()).refused(1, "E0207");
        assert!(call.err.contains("with root 1"), "{counts:?}: {}", call.err);
    }
    // A root that was set is that of the proof.
    roundelay(&["check", file.path(), "-n", "4", "--set", "root=0"]).ends(0);
    let held = |args: &[&str]| {
        let report = roundelay(&[&["check"], args, &["--format", "json"]].concat()).ends(0).json();
        report["algorithms"][0]["values"].to_string()
    };
    let values = |root: &str| format!(r#"["{root}","slices = 8","ring = natural"]"#);
    let ring = "RingBroadcast";
    assert_eq!(held(&[ring, "-n", "2,16"]), values("root 0..=15"));
    assert_eq!(held(&[ring, "-n", "16", "--set", "root=3"]), values("root 3"));
    assert_eq!(held(&[ring, "-n", "64"]), values("root 0 alone"));
    let both = values("root 0..=3 at nranks 4 and root 0 alone at nranks 64");
    assert_eq!(held(&[ring, "-n", "4,64"]), both);
}

/// A ring that is not said is the natural one, unless the proof is of rings in any order.
#[test]
fn values_of_all_types_are_named() {
    let text = "algorithm A(ring: Ring, first: Ring = Ring::natural(nranks), k: int = 2) -> AllReduce {\n    require k > 1 && ring[0].rank >= 0 && first[0].rank >= 0, \"why\";\n    copy(local.input, local.output);\n    RingAllReduce(ring) on (output);\n}\n";
    let file = TempFile::new("rings.coll", text.as_bytes());
    let held = |args: &[&str]| {
        let args = [&["check", file.path(), "-n", "4"], args].concat();
        roundelay(&args).ends(0).out
    };
    let natural = "for ring = natural, first = Ring::natural(nranks), k = 2\n";
    assert!(held(&[]).contains(natural), "{}", held(&[]));
    let set = "for ring = 0,2,1,3, first = Ring::natural(nranks), k = 3\n";
    assert!(held(&["--set", "ring=0,2,1,3", "--set", "k=3"]).contains(set));
    let any = roundelay(&["check", "RingAllReduce", "-n", "4"]).ends(0).out;
    assert!(any.contains("proved for every nranks") && !any.contains("ring ="), "{any}");
}
