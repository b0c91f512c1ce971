//! A plan has the certificate that `check` prints.

use roundelay::library::RingAllGather;
use roundelay::{DType, Options, ReduceOp, ToPlan as _};

use super::call::roundelay;

fn certificate(args: &[&str]) -> serde_json::Value {
    let report = roundelay(&[&["check"], args, &["--format", "json"]].concat()).ends(0).json();
    let all = report["algorithms"][0]["certificates"].as_array().unwrap();
    all.last().unwrap().clone()
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
