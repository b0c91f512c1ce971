//! A schedule that cannot be simulated is an error with a code, at its statement.

use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::dtype::DType;
use roundelay_core::ids::{OpId, RankId};
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_simulate::{Machine, simulate};
use roundelay_topology::NodeId;

use super::{machine, schedule};

fn refused(schedule: &Schedule, machine: &Machine, count: u64) -> Vec<Finding> {
    simulate(schedule, machine, count, DType::F32, false).expect_err("it cannot be simulated")
}

/// Without the last op of a kind in the first stream.
fn without(kind: OpKind) -> (Schedule, u32) {
    let mut schedule = schedule("RingAllReduce", 4);
    let len = schedule.streams[0].len;
    let at = (0..len).rev().find(|op| schedule.op(OpId(*op)).kind == kind).expect("there is one");
    let line = schedule.location(schedule.ops[at as usize].at).line;
    schedule.ops.remove(at as usize);
    schedule.streams[0].len -= 1;
    for later in &mut schedule.streams[1..] {
        later.first.0 -= 1;
    }
    (schedule, line)
}

#[test]
fn work_that_is_left_over() {
    let machine = machine("full_mesh(4, 25GB/s, 2us)");
    let (no_post, _) = without(OpKind::Post);
    let findings = refused(&no_post, &machine, 1024);
    assert_eq!(findings[0].code, Code::UnmatchedWait, "{findings:?}");
    assert!(no_post.location(findings[0].at).line > 0);
    let (no_wait, line) = without(OpKind::Wait);
    let findings = refused(&no_wait, &machine, 1024);
    assert_eq!(findings[0].code, Code::LeftOverSignal, "{findings:?}");
    assert!(no_wait.location(findings[0].at).line > 0 && line > 0);
}

#[test]
fn ranks_that_wait_for_each_other() {
    let mut schedule = schedule("RingAllReduce", 4);
    // All wait before they send.
    for stream in schedule.streams.clone() {
        let ops = &mut schedule.ops[stream.first.index()..][..stream.len as usize];
        let post = ops.iter().position(|op| op.kind == OpKind::Post).expect("an ack");
        let wait = ops.iter().position(|op| op.kind == OpKind::Wait).expect("an ack");
        ops.swap(post, wait);
    }
    let findings = refused(&schedule, &machine("full_mesh(4, 25GB/s)"), 1024);
    assert_eq!(findings[0].code, Code::Deadlock, "{findings:?}");
}

#[test]
fn topologies_that_do_not_fit() {
    let ring = schedule("RingAllReduce", 8);
    let code = |topology: &str| refused(&ring, &machine(topology), 1024)[0].code;
    assert_eq!(code("full_mesh(7, 25GB/s)"), Code::TopologyTooSmall);
    assert_eq!(code("full_mesh(8, 25GB/s) without (0, 1)"), Code::MissingLink);
}

#[test]
fn machines_that_make_no_sense() {
    let ring = schedule("RingAllReduce", 8);
    let plain = machine("full_mesh(8, 25GB/s, 2us)");
    let slow = |rank, factor| Machine { stragglers: vec![(RankId(rank), factor)], ..plain.clone() };
    let cut =
        |a, b, share| Machine { degraded: vec![((NodeId(a), NodeId(b)), share)], ..plain.clone() };
    let cases = [
        (Machine { bandwidth: 0.0, ..plain.clone() }, Code::BadTopology),
        (Machine { reduce: Some(f64::NAN), ..plain.clone() }, Code::BadTopology),
        (Machine { copy: Some(f64::INFINITY), ..plain.clone() }, Code::BadTopology),
        (Machine { latency: -1.0, ..plain.clone() }, Code::BadTopology),
        (Machine { piece: -1e-9, ..plain.clone() }, Code::BadTopology),
        (Machine { piece: f64::NAN, ..plain.clone() }, Code::BadTopology),
        (slow(8, 2.0), Code::RankOutOfRange),
        (slow(0, 0.5), Code::BadTopology),
        (slow(0, f64::NAN), Code::BadTopology),
        (cut(0, 8, 0.5), Code::BadLink),
        (cut(0, 0, 0.5), Code::BadLink),
        (cut(0, 1, 0.0), Code::BadTopology),
        (cut(0, 1, 1.5), Code::BadTopology),
    ];
    for (machine, code) in cases {
        assert_eq!(refused(&ring, &machine, 1024)[0].code, code, "{machine:?}");
    }
    for count in [u64::MAX, u64::MAX / 4, 1 << 49] {
        assert_eq!(refused(&ring, &plain, count)[0].code, Code::TooLarge, "{count}");
    }
}
