//! Closed forms, of the library's families and by hand, where links are shared and where they are not.

use std::sync::Arc;

use roundelay_core::collective::Collective;
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::schedule::Schedule;
use roundelay_simulate::cost::{self, FORMS, Term};
use roundelay_simulate::{Machine, SignalCost, closed_form, simulate};
use roundelay_topology::bounds::bound;
use roundelay_topology::{NodeId, Routing};

use super::{library, machine, run, schedule};
use crate::sources::algorithms;

/// Links of 1 GB/s without latency unless said otherwise, so that a second is a gigabyte.
const GB: u64 = 1_000_000_000;

fn near(seconds: f64, wanted: f64) {
    assert!((seconds / wanted - 1.0).abs() < 1e-3, "{seconds} s, not {wanted}");
}

#[test]
fn uncontended_runs_take_what_the_forms_say() {
    let mut compared = 0;
    for form in FORMS {
        let Some(name) = form.algorithm else { continue };
        // On more ranks not as many rings are found as could be.
        let most = if form.family == "multi-ring" { 13 } else { 16 };
        for n in [2, 3, 4, 5, 7, 8, 13, 16] {
            if n > most || cost::of_algorithm(name, n) != Some(form) {
                continue;
            }
            let schedule = schedule(name, n);
            for topology in
                [format!("full_mesh({n}, 25GB/s, 2us)"), format!("crossbar({n}, 25GB/s, 1us)")]
            {
                let machine = machine(&topology);
                // Whole blocks, halves and eighths of them.
                let count = 8 * u64::from(n) * 1024 * 15;
                for count in [count, 64 * count] {
                    let done =
                        simulate(&schedule, &machine, count, DType::F32, false).expect("it ends");
                    let Some(wanted) = closed_form(form, n, done.bytes, &machine) else {
                        let shared =
                            form.streams != Term::Int(1) && topology.starts_with("crossbar");
                        assert!(shared || !form.exact(n), "{name} at {n} on {topology}");
                        continue;
                    };
                    let off = (done.seconds / wanted - 1.0).abs();
                    assert!(
                        off < 1e-3,
                        "{name} at {n} on {topology}, {} bytes: {} s, not {wanted}",
                        done.bytes,
                        done.seconds
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 500, "only {compared} runs");
}

#[test]
fn forms_hold_where_all_links_are_alike_and_nothing_else_costs() {
    let form = cost::of_algorithm("RingAllReduce", 8).expect("it has one");
    let on = |topology: &str| closed_form(form, 8, 1 << 20, &machine(topology));
    assert!(on("full_mesh(8, 25GB/s, 2us)").is_some() && on("crossbar(8, 25GB/s)").is_some());
    for other in
        ["ring(8, 25GB/s)", "spine_leaf(2, 4, 1, 25GB/s)", "full_mesh(8, 25GB/s) without (0, 1)"]
    {
        assert_eq!(on(other), None, "{other}");
    }
    let plain = machine("crossbar(8, 25GB/s)");
    let costs = [
        Machine { reduce: Some(1e9), ..plain.clone() },
        Machine { copy: Some(1e9), ..plain.clone() },
        Machine { signals: SignalCost::Messages, ..plain.clone() },
        Machine { stragglers: vec![(RankId(3), 2.0)], ..plain.clone() },
        Machine { degraded: vec![((NodeId(0), NodeId(8)), 0.5)], ..plain },
    ];
    for machine in costs {
        assert_eq!(closed_form(form, 8, 1 << 20, &machine), None, "{machine:?}");
    }
}

/// All ranks pull from one: they share its outgoing port.
#[test]
fn one_port_for_many() {
    let done = run(&schedule("MeshScatter", 4), &machine("crossbar(4, 1GB/s)"), GB);
    near(done.seconds, 3.0);
    let done = run(&schedule("MeshScatter", 4), &machine("full_mesh(4, 1GB/s)"), GB);
    near(done.seconds, 1.0);
}

fn written(text: &str, nranks: u32) -> Schedule {
    algorithms("written.coll", text)[0].schedule(nranks).expect("it fits")
}

/// Rank 1 pulls one part of three, rank 2 the other two: at half speed both until 1 has its part, then 2 alone.
#[test]
fn who_ends_first_leaves_its_share() {
    let schedule = written(
        "pub algorithm Written(root: Rank = 0) -> Scatter {
            scratch inbox: like input;
            view part = input.split([1, 2]);
            view got = inbox.split([1, 2]);
            if rank == root {
                for r in 1..3 {
                    peer(r).TxAck();
                }
                for r in 1..3 {
                    peer(r).RxDataSignal();
                }
            } else {
                peer(root).RxAck();
                copy(peer(root).part[rank - 1], local.got[rank - 1]);
                peer(root).TxDataSignal();
            }
        }",
        3,
    );
    let done = simulate(&schedule, &machine("crossbar(3, 1GB/s)"), GB / 4, DType::F32, true)
        .expect("it ends");
    near(done.seconds, 3.0);
    let ends: Vec<f64> = done.timeline.expect("asked for").messages.iter().map(|m| m.end).collect();
    near(ends.iter().copied().fold(f64::INFINITY, f64::min), 2.0);
}

/// An op that reads from two ranks waits for both, then reduces once.
#[test]
fn messages_of_one_move_go_at_once() {
    let text = "pub algorithm Written() -> AllReduce {
        scratch sum: like output;
        copy(local.input, local.output);
        for d in 1..nranks {
            peer((rank + d) % nranks).TxAck();
        }
        for d in 1..nranks {
            peer((rank + d) % nranks).RxAck();
        }
        reduce([peer((rank + 1) % nranks).output, peer((rank + 2) % nranks).output, local.output], local.sum);
        for d in 1..nranks {
            peer((rank + d) % nranks).TxDataSignal();
        }
        for d in 1..nranks {
            peer((rank + d) % nranks).RxDataSignal();
        }
        copy(local.sum, local.output);
    }";
    let schedule = written(text, 3);
    let mut mesh = machine("full_mesh(3, 1GB/s, 1ms)");
    near(run(&schedule, &mesh, GB).seconds, 1.001);
    near(run(&schedule, &machine("crossbar(3, 1GB/s, 1ms)"), GB).seconds, 2.002);
    // The present block and three more make three reductions; two copies come beside.
    mesh.reduce = Some(4e9);
    mesh.copy = Some(10e9);
    near(run(&schedule, &mesh, GB).seconds, 1.001 + 0.75 + 0.2);
}

/// Two rounds a step more, each of a latency: a step's ack waits for the last step's data signal.
#[test]
fn signals_as_messages() {
    let schedule = schedule("RingAllReduce", 8);
    let mut machine = machine("crossbar(8, 25GB/s, 1us)");
    let free = run(&schedule, &machine, 1 << 20).seconds;
    machine.signals = SignalCost::Messages;
    near(run(&schedule, &machine, 1 << 20).seconds, free + 14.0 * 4e-6);
}

#[test]
fn slow_ranks_and_links_hold_up_a_ring() {
    let schedule = schedule("RingAllReduce", 8);
    let mut machine = machine("full_mesh(8, 1GB/s, 1ms)");
    let step = GB as f64 / 8.0 / 1e9;
    near(run(&schedule, &machine, GB).seconds, 14.0 * (1e-3 + step));
    machine.degraded = vec![((NodeId(3), NodeId(4)), 0.5)];
    near(run(&schedule, &machine, GB).seconds, 14.0 * (1e-3 + 2.0 * step));
    // The link from 4 to 3 is not used by the ring; the links of rank 5 are.
    machine.degraded = vec![((NodeId(0), NodeId(2)), 0.5)];
    near(run(&schedule, &machine, GB).seconds, 14.0 * (1e-3 + step));
    machine.stragglers = vec![(RankId(5), 3.0)];
    near(run(&schedule, &machine, GB).seconds, 14.0 * 3.0 * (1e-3 + step));
    machine.reduce = Some(1e9);
    near(run(&schedule, &machine, GB).seconds, 14.0 * 3.0 * (1e-3 + step) + 7.0 * 3.0 * step);
}

/// Halves over both spines, or all over one.
#[test]
fn several_ways() {
    let schedule = schedule("RingAllGather", 2);
    let mut machine = machine("spine_leaf(2, 1, 2, 10GB/s, 1us, 1GB/s, 1us)");
    let time = |machine: &Machine| {
        simulate(&schedule, machine, GB / 4, DType::F32, false).expect("it ends").seconds
    };
    near(time(&machine), 0.5);
    machine.routing = Routing::DModK;
    near(time(&machine), 1.0);
}

/// A message without bytes takes its latency; a rank alone takes no time.
#[test]
fn nothing_to_send() {
    let ring = schedule("RingAllReduce", 8);
    let machine8 = machine("full_mesh(8, 25GB/s, 2us)");
    assert!((run(&ring, &machine8, 0).seconds - 28e-6).abs() < 1e-12);
    let done = run(&ring, &machine8, 12);
    assert!((done.seconds - 28e-6).abs() < 1e-8, "{}", done.seconds);
    let done = run(&schedule("RingAllReduce", 1), &machine8, 1 << 20);
    assert_eq!((done.seconds, done.algbw, done.messages), (0.0, 0.0, 0));
    assert!(done.critical.is_empty());
    let relative = machine("full_mesh(8)");
    assert!(run(&ring, &relative, 0).seconds == 0.0);
}

/// A topology's own numbers stand; for missing numbers the machine's count.
#[test]
fn what_the_topology_does_not_say() {
    let ring = schedule("RingAllReduce", 8);
    let given = run(&ring, &machine("full_mesh(8, 25GB/s, 2us)"), 1 << 20);
    let said = Machine { bandwidth: 25e9, latency: 2e-6, ..machine("full_mesh(8)") };
    assert!(run(&ring, &said, 1 << 20) == given);
    let both = Machine { bandwidth: 1e9, latency: 1.0, ..machine("full_mesh(8, 25GB/s, 2us)") };
    assert!(run(&ring, &both, 1 << 20) == given);
}

/// The two-way ring around a cut cable, as contest entries have it: 0.875 S/B, where 7/27 S/B would do.
#[test]
fn the_published_entry_reaches_thirty_percent_of_the_bound() {
    let topology = "full_mesh(8, 25GB/s, 2us) without (0, 1)";
    let machine = machine(topology);
    let mut twisted = library("TwistedRingAllReduce");
    twisted.place_on(Arc::clone(&machine.topology));
    twisted.set_text("ring", "around(topology)").expect("its parameter");
    let done = run(&twisted.schedule(8).expect("it fits"), &machine, 1 << 30);
    let bound = bound(&machine.topology, 8, Collective::AllReduce, RankId(0)).expect("it fits");
    let share = bound.seconds(1 << 30) / done.seconds;
    assert!((share - 0.296).abs() < 0.001, "{share}");
}
