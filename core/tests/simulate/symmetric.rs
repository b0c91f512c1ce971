//! Runs that are simulated by the ops of one rank, against the simulation of all ranks.

use std::collections::BTreeSet;

use expect_test::expect;

use super::{library, machine, names};
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::optimize::join;
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_core::symmetry::{Representative, representative};
use roundelay_core::turns::Turns;
use roundelay_simulate::cost::of_algorithm;
use roundelay_simulate::{Machine, SignalCost, Streams, closed_form, simulate, symmetric};
use roundelay_topology::{NodeId, Routing};

/// Returns the machines of `n` ranks.
fn machines(n: u32) -> Vec<Machine> {
    let mut texts =
        vec![format!("crossbar({n}, 25GB/s, 1us)"), format!("full_mesh({n}, 25GB/s, 2us)")];
    if n.is_multiple_of(4) {
        texts.push(format!("spine_leaf({}, 4, 2, 2, 25GB/s, 1us)", n / 4));
        texts.push(format!("spine_leaf({}, 4, 3, 25GB/s, 1us, 10GB/s, 3us)", n / 4));
        texts.push(format!("islands({}, 4, 300GB/s, 1us, 25GB/s, 5us)", n / 4));
    }
    let mut machines: Vec<Machine> = texts.iter().map(|text| machine(text)).collect();
    let reduce = |machine: &Machine| Machine {
        reduce: Some(50e9),
        copy: Some(80e9),
        signals: SignalCost::Messages,
        ..machine.clone()
    };
    let in_order = |machine: &Machine| Machine { streams: Streams::InOrder, ..reduce(machine) };
    let dmodk = |machine: &Machine| Machine { routing: Routing::DModK, ..machine.clone() };
    let more: Vec<Machine> =
        machines.iter().flat_map(|m| [reduce(m), in_order(m), dmodk(m)]).collect();
    machines.extend(more);
    machines
}

/// Simulates a run by all ranks and by one, and compares the two. Returns whether both could be simulated.
fn agree(schedule: &Schedule, of: &Representative, machine: &Machine) -> bool {
    let (name, turns) = (&schedule.algorithm, &of.turns);
    let simulated = |schedule| simulate(schedule, machine, COUNT, DType::F32, false);
    let all = match machine.streams {
        Streams::ByData => simulated(&join(schedule)),
        Streams::InOrder => simulated(schedule),
    };
    let one = symmetric(of, machine, COUNT, DType::F32);
    let on = machine.topology.name();
    // One op after another, several moves take longer than the one that rank 0 makes of them.
    if one.as_ref().is_err_and(|why| why.starts_with("some ranks do in several moves")) {
        assert_eq!(machine.streams, Streams::InOrder, "{name}, {turns}, {on}");
        return false;
    }
    let (Ok(all), Ok(one)) = (&all, &one) else {
        assert!(all.is_err(), "{name}, {turns}, {on}: {}", one.unwrap_err());
        return false;
    };
    let what = |what: &str| format!("{what} of {name}, {turns}, {on}, {machine:?}");
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.max(b);
    assert!(same(all.seconds, one.seconds), "{} {}: {}", all.seconds, one.seconds, what("time"));
    assert_eq!((all.messages, all.bytes), (one.messages, one.bytes), "{}", what("messages"));
    for (all, one) in all.links.iter().zip(&one.links) {
        assert!(same(all.bytes, one.bytes), "{all:?} {one:?}: {}", what("links"));
    }
    // Among steps that end together, either may be on the path, but the path ends when the run does.
    let end = one.critical.last().map_or(0.0, |step| step.end);
    assert!(same(end, one.seconds), "{}", what("critical path"));
    true
}

/// The elements of a unit: a multiple of the numbers of blocks.
const COUNT: u64 = 5040 * 512;

/// Algorithms whose ranks do the same, turned, with their turns of 16 ranks.
const ALIKE: [(&str, &str); 11] = [
    ("BruckAllToAll", "rotation of 16"),
    ("HalvingDoublingAllReduce", "exclusive or of 16"),
    ("HierarchicalAllReduce", "rotations of 4 x 4"),
    ("MeshAllReduce", "rotation of 16"),
    ("NcclRingAllReduce", "rotation of 16"),
    ("NhrAllReduce", "rotation of 16"),
    ("PairwiseAllToAll", "exclusive or of 16"),
    ("PushedMeshAllReduce", "rotation of 16"),
    ("RecursiveDoublingAllReduce", "exclusive or of 16"),
    ("RingAllReduce", "rotation of 16"),
    ("TwistedRingAllReduce", "rotation of 16"),
];

#[test]
fn one_rank_takes_the_time_of_all_in_the_library() {
    let mut found = BTreeSet::new();
    for name in names() {
        let algorithm = library(&name);
        for n in [6, 8, 16] {
            let Ok(schedule) = algorithm.schedule(n) else { continue };
            let Ok(of) = representative(&algorithm, n) else { continue };
            for machine in machines(n) {
                if agree(&schedule, &of, &machine) {
                    found.insert((name.clone(), of.turns.to_string()));
                }
            }
        }
    }
    for (name, turns) in ALIKE {
        assert!(found.contains(&(name.to_owned(), turns.to_owned())), "{name}, {turns}: {found:?}");
    }
}

/// An algorithm, the number of its ranks, and the values of its parameters.
type Case = (&'static str, u32, &'static [(&'static str, &'static str)]);

#[test]
fn one_rank_takes_the_time_of_all_at_many_ranks() {
    let rings: &[(&str, &str)] = &[("ring_inside", "true"), ("ring_across", "true")];
    let cases: [Case; 8] = [
        ("RingAllReduce", 512, &[]),
        ("TwistedRingAllReduce", 128, &[]),
        ("NhrAllReduce", 512, &[]),
        ("MeshAllReduce", 256, &[]),
        ("RecursiveDoublingAllReduce", 512, &[]),
        ("HalvingDoublingAllReduce", 512, &[]),
        ("PairwiseAllToAll", 64, &[]),
        ("HierarchicalAllReduce", 16, rings),
    ];
    for (name, n, settings) in cases {
        let mut algorithm = library(name);
        for (name, value) in settings {
            algorithm.set_text(name, value).expect("its parameter");
        }
        let schedule = algorithm.schedule(n).expect("it fits");
        let of = representative(&algorithm, n).expect(name);
        let mut texts = vec![
            format!("crossbar({n}, 25GB/s, 1us)"),
            format!("crossbar({}, 25GB/s, 1us)", n + 44),
            format!("spine_leaf({}, 4, 4, 2, 25GB/s, 1us)", n / 4),
        ];
        // The groups of the hierarchy are 4 of 4.
        if name == "HierarchicalAllReduce" {
            texts.push("torus([4, 4], 25GB/s, 1us)".to_owned());
            texts.push("islands(4, 4, 300GB/s, 1us, 25GB/s, 5us)".to_owned());
        }
        for text in texts {
            assert!(agree(&schedule, &of, &machine(&text)), "{name} on {text}");
        }
    }
}

/// Slow ranks and links leave fewer turns, or none: then all ranks are run.
#[test]
fn a_machine_with_a_slow_part_is_simulated_with_more_ranks() {
    let algorithm = library("RingAllReduce");
    let schedule = algorithm.schedule(16).expect("it fits");
    let of = representative(&algorithm, 16).expect("it is symmetric");
    let whole = machine("crossbar(16, 25GB/s, 1us)");
    let one = Machine { stragglers: vec![(RankId(5), 3.0)], ..whole.clone() };
    let two = Machine { stragglers: vec![(RankId(5), 3.0), (RankId(13), 3.0)], ..whole.clone() };
    let degraded = Machine { degraded: vec![((NodeId(3), NodeId(16)), 0.25)], ..whole.clone() };
    for machine in [whole, one, two, degraded] {
        assert!(agree(&schedule, &of, &machine));
    }
}

#[test]
fn runs_that_one_rank_does_not_tell_are_refused() {
    let of = |name: &str, n| representative(&library(name), n).expect("it is symmetric");
    let refused = |of: &Representative, machine: &Machine| {
        symmetric(of, machine, 1 << 16, DType::F32).expect_err("it is refused")
    };
    let crossbar = machine("crossbar(16, 25GB/s, 1us)");
    let pieces = Machine { piece: 5e-7, ..crossbar.clone() };
    let (nhr, ring) = (of("NhrAllReduce", 16), of("RingAllReduce", 16));
    expect![
        "pieces cost time, and those that lie side by side at one rank may be apart at another"
    ]
    .assert_eq(&refused(&nhr, &pieces));
    assert!(symmetric(&ring, &pieces, 1 << 16, DType::F32).is_ok());
    let mut other = ring.clone();
    other.turns = Turns::rotation(8);
    expect!["the rotation of 8 does not turn the 16 ranks of the run"]
        .assert_eq(&refused(&other, &crossbar));
    expect!["`crossbar(8, 25GB/s, 1us)` has 8 ranks, and the run has 16"]
        .assert_eq(&refused(&ring, &machine("crossbar(8, 25GB/s, 1us)")));
    expect!["two ranks talk that are not linked in torus([4, 4], 25GB/s, 1us)"]
        .assert_eq(&refused(&ring, &machine("torus([4, 4], 25GB/s, 1us)")));
    // A wait in place of a post, whose signal no rank sends.
    let mut waits = ring;
    let post = waits.own.ops.iter().position(|op| op.kind == OpKind::Post).expect("it posts");
    waits.own.ops[post].kind = OpKind::Wait;
    expect!["the streams wait for each other, or signals are left over"]
        .assert_eq(&refused(&waits, &crossbar));
    let slow = machine("crossbar(16384, 25GB/s, 1us)");
    let slow = Machine { stragglers: vec![(RankId(5), 3.0)], ..slow };
    expect!["the ranks of crossbar(16384, 25GB/s, 1us) are of 16384 kinds under the rotation of 16384, with 163831 ops each: more than 16777216 ops in all"].assert_eq(&refused(&of("RingAllReduce", 16_384), &slow));
}

/// At as many ranks as a schedule has, against the closed forms.
#[test]
fn as_many_ranks_as_there_are() {
    let n = 1 << 16;
    let machine = machine(&format!("crossbar({n}, 25GB/s, 1us)"));
    let bytes = 1_u64 << 30;
    let names =
        ["RingAllReduce", "NhrAllReduce", "RecursiveDoublingAllReduce", "HalvingDoublingAllReduce"];
    for name in names {
        let of = representative(&library(name), n).expect("it is symmetric");
        let one = symmetric(&of, &machine, bytes / 4, DType::F32).expect("it is told");
        let form = of_algorithm(name, n).expect("it has a form");
        let form = closed_form(form, n, bytes, &machine).expect("it is exact");
        assert!((one.seconds / form - 1.0).abs() < 1e-3, "{name}: {} s, not {form}", one.seconds);
    }
}
