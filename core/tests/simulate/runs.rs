//! Properties of any run: bytes are conserved, the critical path is a way through time, a timeline has no gaps.

use roundelay_core::dtype::DType;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::optimize::join;
use roundelay_core::schedule::load::Load;
use roundelay_core::schedule::switch::as_moves;
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_core::verify::{steps, verify};
use roundelay_simulate::{
    Machine, SignalCost, Simulated, Streams, Task, TimelineState, on_topology, simulate,
};

use super::{machine, names, schedule};
use crate::proof::random::some;
use crate::sources::algorithms;

/// Random programs that are tried.
const CASES: u64 = 1000;

const TOPOLOGIES: [&str; 5] = [
    "full_mesh(8, 25GB/s, 2us)",
    "crossbar(8, 25GB/s, 1us)",
    "spine_leaf(4, 2, 3, 20GB/s, 1us, 7GB/s, 3us)",
    "islands(2, 4, 100GB/s, 1us, 10GB/s, 4us)",
    "groups([5, 3], 50GB/s, 1us, 20GB/s, 3us)",
];

/// Every algorithm of the library on every topology that has its links: eight ranks, blocks of many bytes.
fn each(mut holds: impl FnMut(&str, &Schedule, &Machine, &Simulated)) {
    let mut runs = 0;
    for name in names() {
        let Ok(schedule) = super::library(&name).schedule(8) else { continue };
        for topology in TOPOLOGIES {
            let mut machine = machine(topology);
            let schedule = on_topology(&schedule, &machine.topology, DType::F32);
            machine.reduce = Some(80e9);
            machine.copy = Some(100e9);
            machine.signals = SignalCost::Messages;
            for streams in [Streams::ByData, Streams::InOrder] {
                machine.streams = streams;
                let Ok(done) = simulate(&schedule, &machine, 840 * 1024, DType::F32, true) else {
                    continue;
                };
                holds(&format!("{name} on {topology}, {streams:?}"), &schedule, &machine, &done);
                runs += 1;
            }
        }
    }
    assert!(runs > 200, "only {runs} runs");
}

#[test]
fn every_link_carries_what_the_schedule_asks_of_it() {
    each(|what, schedule, machine, done| {
        let load = Load::new(schedule, &machine.topology);
        let carried = done.links.iter().map(|link| link.bytes);
        for ((carried, share), link) in carried.zip(&load.links).zip(machine.topology.links()) {
            let asked = share * done.bytes as f64;
            // Pieces are cut by element.
            assert!(
                (carried - asked).abs() <= 1e-4 * asked,
                "{what}, {link:?}: {carried}, {asked}"
            );
        }
        let least = load.seconds_per_byte * done.bytes as f64;
        assert!(done.seconds >= least * 0.9999, "{what}: {} s, at least {least}", done.seconds);
        assert!(done.links.iter().all(|link| link.used <= 1.0 + 1e-9), "{what}");
        let sent: f64 = done.ports.iter().map(|port| port.sent).sum();
        let received: f64 = done.ports.iter().map(|port| port.received).sum();
        assert!((sent - received).abs() <= 1e-9 * sent, "{what}: {sent} sent, {received} received");
    });
}

#[test]
fn the_critical_path_is_a_way_from_the_start_to_the_end() {
    each(|what, schedule, _, done| {
        let mut now = 0.0;
        for step in &done.critical {
            assert!((step.start - now).abs() <= 1e-12, "{what}: {step:?} begins after {now}");
            assert!(step.end >= step.start, "{what}: {step:?}");
            now = step.end;
            let op = schedule.op(step.op);
            assert_eq!(schedule.streams[step.stream.index()].rank, step.rank, "{what}");
            match step.task {
                Task::Transfer { latency, pieces, flowing, work } => {
                    assert!(op.kind == OpKind::Move && schedule.crosses(op), "{what}: {step:?}");
                    let took = step.end - step.start;
                    let alone = latency + pieces + flowing + work;
                    assert!(took >= alone * (1.0 - 1e-9), "{what}: {step:?}");
                }
                Task::Fold => assert!(op.kind == OpKind::Move && schedule.crosses(op), "{what}"),
                Task::Local => assert!(op.kind == OpKind::Move && !schedule.crosses(op), "{what}"),
                Task::Signal { post, from } => {
                    let channel = schedule.channel(op);
                    assert_eq!(channel, schedule.channel(schedule.op(post)), "{what}");
                    assert_eq!((channel.from, channel.to), (from, step.rank), "{what}");
                }
            }
        }
        assert!((now - done.seconds).abs() <= 1e-12, "{what}: {now} of {}", done.seconds);
    });
}

#[test]
fn a_stream_is_never_idle_without_a_reason() {
    each(|what, schedule, _, done| {
        let timeline = done.timeline.as_ref().expect("it was asked for");
        assert_eq!((timeline.nranks, timeline.seconds), (8, done.seconds), "{what}");
        let mut at = vec![0.0; schedule.streams.len()];
        for span in &timeline.spans {
            let now = &mut at[span.stream.index()];
            assert!((span.start - *now).abs() <= 1e-12, "{what}: {span:?} begins after {now}");
            assert!(span.end > span.start, "{what}: {span:?}");
            *now = span.end;
            let op = schedule.op(span.op);
            assert_eq!(
                op.kind == OpKind::Wait,
                span.state == TimelineState::Idle,
                "{what}: {span:?}"
            );
            assert!(
                span.state != TimelineState::Transfer || schedule.crosses(op),
                "{what}: {span:?}"
            );
        }
        let last = at.into_iter().fold(0.0, f64::max);
        assert!((last - done.seconds).abs() <= 1e-12, "{what}");
        let order = |pair: &[roundelay_simulate::Message]| pair[0].start <= pair[1].start;
        assert!(timeline.messages.windows(2).all(order), "{what}");
        let data = timeline.messages.iter().filter(|message| message.pieces > 0);
        let pieces: u64 = data.clone().map(|message| u64::from(message.pieces)).sum();
        assert_eq!(pieces, done.pieces, "{what}");
        assert!(data.count() as u64 >= done.messages, "{what}");
        assert!(
            timeline.messages.iter().all(|m| m.end > m.start && m.end <= done.seconds),
            "{what}"
        );
    });
}

#[test]
fn recording_changes_nothing() {
    let schedule = schedule("NhrAllReduce", 8);
    let machine = machine(TOPOLOGIES[2]);
    let run = |record| simulate(&schedule, &machine, 1003, DType::F32, record).expect("it ends");
    let (with, without) = (run(true), run(false));
    assert!(with.timeline.is_some());
    assert_eq!(Simulated { timeline: None, ..with }, without);
}

/// The proof counts steps in the memory of a run; the simulator finds them by the waits between ranks, where each
/// message takes a second and bytes take no time.
#[track_caller]
fn steps_alike(schedule: &Schedule, proved: u32, what: &str) {
    let machine = machine(&format!("full_mesh({}, 1GB/s, 1s)", schedule.nranks));
    for schedule in [schedule, &join(schedule)] {
        let done = simulate(schedule, &machine, 0, DType::F32, false).expect("it ends");
        let off = (done.seconds - f64::from(proved)).abs();
        assert!(off < 1e-9, "{} s, but {proved} steps: {what}", done.seconds);
    }
}

/// Returns the steps of a run out of place, which is the run that the simulator runs.
fn longest(schedule: &Schedule) -> u32 {
    steps(schedule).expect("its events have an order").into_iter().max().unwrap_or(0)
}

#[test]
fn steps_are_counted_alike_by_the_proof_and_by_the_simulator() {
    let mut compared = 0;
    for name in names() {
        for n in [2, 3, 4, 5, 8, 9] {
            let Ok(schedule) = super::library(&name).schedule(n) else { continue };
            let schedule = as_moves(&schedule);
            if verify(&schedule).is_err() {
                continue;
            }
            steps_alike(&schedule, longest(&schedule), &format!("{name} at {n}"));
            compared += 1;
        }
    }
    assert!(compared > 250, "only {compared} runs");
}

/// Random right programs: one stream writes and sends on, folds and overwrites.
#[test]
fn steps_of_random_programs_are_counted_alike() {
    let mut compared = 0;
    for (source, schedule) in some(CASES, 1 << 41) {
        let Ok(proof) = verify(&schedule) else { continue };
        let apart = longest(&schedule);
        assert!(apart <= proof.steps, "{source}");
        steps_alike(&schedule, apart, &source);
        compared += 1;
    }
    assert!(compared > 100, "only {compared} programs");
}

/// Rank 1 pulls and pushes on with no signal in between: the push needs the data that the pull wrote.
#[test]
fn what_a_stream_sends_on_is_a_step_later() {
    let text = "pub algorithm Written(root: Rank = 0) -> Broadcast {
            if rank == root {
                copy(local.input, local.output);
                peer(1).TxAck();
                peer(1).RxDataSignal();
            }
            if rank == 1 {
                peer(0).RxAck();
                peer(2).RxAck();
                copy(peer(0).output, local.output);
                copy(local.output, peer(2).output);
                peer(0).TxDataSignal();
                peer(2).TxDataSignal();
            }
            if rank == 2 {
                peer(1).TxAck();
                peer(1).RxDataSignal();
            }
        }";
    let schedule = algorithms("written.coll", text)[0].schedule(3).expect("it fits");
    let proof = verify(&schedule).expect("it is right");
    assert_eq!(proof.steps, 2);
    steps_alike(&schedule, 2, "a relay");
}

/// A contest's stream does its moves one after another, another machine's stream does them at once.
#[test]
fn streams_in_order_wait_for_each_move() {
    let schedule = schedule("MeshAllReduce", 8);
    let machine = machine("full_mesh(8, 25GB/s, 2us)");
    let time = |machine: &Machine| {
        simulate(&schedule, machine, 0, DType::F32, false).expect("it ends").seconds
    };
    assert!((time(&machine) - 4e-6).abs() < 1e-12);
    let in_order = Machine { streams: Streams::InOrder, ..machine };
    assert!((time(&in_order) - 28e-6).abs() < 1e-12);
}

/// Ops that wait for one move go on in the order of the program: pieces of a chain follow one another.
#[test]
fn followers_go_on_in_the_order_of_the_program() {
    for (name, n, pieces) in [("NcclRingBroadcast", 4, 4.0), ("TreeBroadcast", 6, 8.0)] {
        let mut chain = super::library(name);
        let set: &[_] = match name {
            "TreeBroadcast" => &[("tree", "chain(0)"), ("slices", "8")],
            _ => &[("pieces", "4"), ("credits", "4")],
        };
        for (parameter, value) in set {
            chain.set_text(parameter, value).expect("its parameter");
        }
        let machine = machine(&format!("full_mesh({n}, 1GB/s)"));
        let schedule = chain.schedule(n).expect("it fits");
        let done = simulate(&schedule, &machine, 1 << 20, DType::F32, false).expect("it ends");
        let wanted = (f64::from(n) - 2.0 + pieces) / pieces * done.bytes as f64 / 1e9;
        assert!((done.seconds / wanted - 1.0).abs() < 1e-6, "{name}: {} {wanted}", done.seconds);
    }
}

/// All pieces of a message except the first have the machine's cost per piece, and no cost where they are joined.
#[test]
fn pieces_share_a_latency_and_have_a_price() {
    let mut nhr = super::library("NhrAllReduce");
    nhr.set_text("reorder", "true").expect("its parameter");
    let schedule = nhr.schedule(8).expect("it fits");
    let machine = machine("full_mesh(8, 1000000GB/s, 2us)");
    let time = |schedule: &Schedule, machine: &Machine| {
        simulate(schedule, machine, 8, DType::F32, false).expect("it ends").seconds
    };
    // Three steps of 4, 2 and 1 blocks, and back.
    assert!((time(&schedule, &machine) - 12e-6).abs() < 1e-9);
    let machine = Machine { piece: 1e-6, ..machine };
    assert!((time(&schedule, &machine) - (12e-6 + 8e-6)).abs() < 1e-9);
    assert!((time(&join(&schedule), &machine) - 12e-6).abs() < 1e-9);
    let traffic = (schedule.messages(), join(&schedule).messages());
    assert_eq!((traffic.0.messages, traffic.0.pieces), (48, 112));
    assert_eq!((traffic.1.messages, traffic.1.pieces), (48, 48));
}
