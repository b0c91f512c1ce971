//! What must hold of any run: bytes are conserved, the critical path is a way through time, a timeline has no gaps.

use roundelay_core::cost::Load;
use roundelay_core::dtype::DType;
use roundelay_core::schedule::Schedule;
use roundelay_core::schedule::{Algorithm as _, OpKind};
use roundelay_core::simulate::{Machine, SignalCost, Simulated, State, Task, simulate};

use super::{machine, names, schedule};

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
            machine.reduce = Some(80e9);
            machine.copy = Some(100e9);
            machine.signals = SignalCost::Messages;
            let Ok(done) = simulate(&schedule, &machine, 840 * 1024, DType::F32, true) else {
                continue;
            };
            holds(&format!("{name} on {topology}"), &schedule, &machine, &done);
            runs += 1;
        }
    }
    assert!(runs > 100, "only {runs} runs");
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
                Task::Transfer { latency, flowing, work } => {
                    assert!(op.kind == OpKind::Move && schedule.crosses(op), "{what}: {step:?}");
                    let (took, alone) = (step.end - step.start, latency + flowing + work);
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
            assert_eq!(op.kind == OpKind::Wait, span.state == State::Idle, "{what}: {span:?}");
            assert!(span.state != State::Transfer || schedule.crosses(op), "{what}: {span:?}");
        }
        let last = at.into_iter().fold(0.0, f64::max);
        assert!((last - done.seconds).abs() <= 1e-12, "{what}");
        let order = |pair: &[roundelay_core::simulate::Message]| pair[0].start <= pair[1].start;
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
