//! Runs that are simulated by the ops of one rank, against the simulation of all ranks.

use std::collections::BTreeSet;

use expect_test::expect;

use super::{library, machine, names};
use roundelay_core::cost::of_algorithm;
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::layout::{Algorithm as _, one_rank};
use roundelay_core::optimize::join;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Op, OpKind, Operand, Schedule, Stream};
use roundelay_core::simulate::{Machine, SignalCost, Streams, closed, simulate, symmetric};
use roundelay_core::topology::{NodeId, Routing};
use roundelay_core::turns::Turns;

/// Whether each rank's ops are those of rank 0, turned: with equal widths of regions, wherever they lie.
fn alike(schedule: &Schedule, turns: &Turns) -> bool {
    let of = |rank| schedule.streams.iter().filter(move |stream| stream.rank == RankId(rank));
    let ops = |stream: &Stream| {
        schedule.ops[stream.first.index()..][..stream.len as usize].iter().copied()
    };
    let same = |rank: u32, own: &Op, other: &Op| {
        let turned = |r: RankId| RankId(turns.turned(r.0, rank));
        if own.kind != other.kind {
            return false;
        }
        if own.kind != OpKind::Move {
            let channel = |op| *schedule.channel(op);
            let (mut a, b) = (channel(own), channel(other));
            (a.from, a.to) = (turned(a.from), turned(a.to));
            return a == b;
        }
        let width = |operand: &Operand| -> Rat {
            let region = schedule.region(*operand);
            region.hi.minus(region.lo).expect("it has a width")
        };
        let shape = |op: &Op| (op.srcs, op.dsts);
        let both = schedule.operands_of(own).iter().zip(schedule.operands_of(other));
        shape(own) == shape(other)
            && both.into_iter().all(|(a, b)| turned(a.rank) == b.rank && width(a) == width(b))
    };
    turns.ranks().all(|rank| {
        let pairs = of(0).zip(of(rank.0));
        of(0).count() == of(rank.0).count()
            && pairs.into_iter().all(|(own, other)| {
                own.len == other.len && ops(own).zip(ops(other)).all(|(a, b)| same(rank.0, &a, &b))
            })
    })
}

/// Returns the groups of turns of `n` ranks that are tried.
fn all_turns(n: u32) -> Vec<Turns> {
    let mut all = vec![Turns::rotation(n)];
    all.extend(Turns::xor(n));
    let inner: Vec<u32> = (2..n).filter(|inner| n.is_multiple_of(*inner)).collect();
    all.extend(inner.into_iter().map(|inner| Turns::of(&[n / inner, inner])));
    all
}

/// Returns the machines of `n` ranks.
fn machines(n: u32) -> Vec<Machine> {
    let mut texts =
        vec![format!("crossbar({n}, 25GB/s, 1us)"), format!("full_mesh({n}, 25GB/s, 2us)")];
    if n % 4 == 0 {
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
fn agree(
    name: &str,
    schedule: &Schedule,
    own: &Schedule,
    turns: &Turns,
    machine: &Machine,
) -> bool {
    let simulated = |schedule| simulate(schedule, machine, COUNT, DType::F32, false);
    let all = match machine.streams {
        Streams::ByData => simulated(&join(schedule)),
        Streams::InOrder => simulated(schedule),
    };
    let one = symmetric(own, turns, machine, COUNT, DType::F32);
    let on = machine.topology.name();
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
const ALIKE: [(&str, &str); 12] = [
    ("BruckAllToAll", "rotation of 16"),
    ("HalvingDoublingAllReduce", "exclusive or of 16"),
    ("HierarchicalAllReduce", "rotations of 4 x 4"),
    ("HierarchicalMeshAllReduce", "rotation of 16"),
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
            let own = one_rank(&algorithm, n, RankId(0)).expect("it fits");
            for turns in all_turns(n).iter().filter(|turns| alike(&schedule, turns)) {
                for machine in machines(n) {
                    if agree(&name, &schedule, &own, turns, &machine) {
                        found.insert((name.clone(), turns.to_string()));
                    }
                }
            }
        }
    }
    for (name, turns) in ALIKE {
        assert!(found.contains(&(name.to_owned(), turns.to_owned())), "{name}, {turns}: {found:?}");
    }
}

#[test]
fn one_rank_takes_the_time_of_all_at_many_ranks() {
    let hierarchical = |n: u32| Turns::of(&[n / 16, 16]);
    let xor = |n: u32| Turns::xor(n).expect("a power of two");
    let cases: [(&str, &[(&str, &str)], &dyn Fn(u32) -> Turns); 7] = [
        ("RingAllReduce", &[], &Turns::rotation),
        ("NhrAllReduce", &[], &Turns::rotation),
        ("MeshAllReduce", &[], &Turns::rotation),
        ("RecursiveDoublingAllReduce", &[], &xor),
        ("HalvingDoublingAllReduce", &[("near_first", "true")], &xor),
        ("PairwiseAllToAll", &[], &xor),
        (
            "HierarchicalAllReduce",
            &[("ring_inside", "true"), ("ring_across", "true")],
            &hierarchical,
        ),
    ];
    for (name, settings, turns) in cases {
        let mut algorithm = library(name);
        for (name, value) in settings {
            algorithm.set_text(name, value).expect("its parameter");
        }
        // 256 ranks are 16 islands of 16, the groups of the hierarchy.
        let schedule = algorithm.schedule(256).expect("it fits");
        let own = one_rank(&algorithm, 256, RankId(0)).expect("it fits");
        let mut texts = vec![
            "crossbar(256, 25GB/s, 1us)",
            "crossbar(300, 25GB/s, 1us)",
            "spine_leaf(32, 8, 4, 2, 25GB/s, 1us)",
        ];
        if name == "HierarchicalAllReduce" {
            texts.extend([
                "torus([16, 16], 25GB/s, 1us)",
                "islands(16, 16, 300GB/s, 1us, 25GB/s, 5us)",
            ]);
        }
        for text in texts {
            let same = agree(name, &schedule, &own, &turns(256), &machine(text));
            assert!(same, "{name} on {text}");
        }
    }
}

/// Slow ranks and links leave fewer turns, or none: then all ranks are run.
#[test]
fn a_machine_with_one_slow_part_is_simulated_with_more_ranks() {
    let n = 16;
    let (name, turns) = ("RingAllReduce", Turns::rotation(n));
    let algorithm = library(name);
    let schedule = algorithm.schedule(n).expect("it fits");
    let own = one_rank(&algorithm, n, RankId(0)).expect("it fits");
    let whole = machine("crossbar(16, 25GB/s, 1us)");
    let straggler = Machine { stragglers: vec![(RankId(5), 3.0)], ..whole.clone() };
    let two = Machine { stragglers: vec![(RankId(5), 3.0), (RankId(13), 3.0)], ..whole.clone() };
    let degraded = Machine { degraded: vec![((NodeId(3), NodeId(16)), 0.25)], ..whole.clone() };
    for machine in [straggler, two, degraded] {
        assert!(agree(name, &schedule, &own, &turns, &machine));
        assert!(
            !agree(name, &schedule, &own, &turns, &whole) || {
                let time = |machine| simulate(&schedule, machine, COUNT, DType::F32, false);
                time(&machine).expect("it ends").seconds > time(&whole).expect("it ends").seconds
            }
        );
    }
}

#[test]
fn runs_that_one_rank_does_not_tell_are_refused() {
    let own = |name: &str, n| one_rank(&library(name), n, RankId(0)).expect("it fits");
    let refused = |own: &Schedule, turns: &Turns, machine: &Machine| {
        symmetric(own, turns, machine, 1 << 16, DType::F32).expect_err("it is refused")
    };
    let crossbar = machine("crossbar(16, 25GB/s, 1us)");
    let rotation = Turns::rotation(16);
    let pieces = Machine { piece: 5e-7, ..crossbar.clone() };
    let nhr = own("NhrAllReduce", 16);
    let ring = own("RingAllReduce", 16);
    expect![[r#"
        pieces that lie side by side at one rank may be apart at another, and each costs time"#]]
    .assert_eq(&refused(&nhr, &rotation, &pieces));
    assert!(symmetric(&ring, &rotation, &pieces, 1 << 16, DType::F32).is_ok());
    expect!["rotation of 8 does not turn the 16 ranks of the run"].assert_eq(&refused(
        &ring,
        &Turns::rotation(8),
        &crossbar,
    ));
    expect!["`crossbar(8, 25GB/s, 1us)` has 8 ranks, and the run has 16"].assert_eq(&refused(
        &ring,
        &rotation,
        &machine("crossbar(8, 25GB/s, 1us)"),
    ));
    expect!["two ranks talk that are not linked in torus([4, 4], 25GB/s, 1us)"]
        .assert_eq(&refused(&ring, &rotation, &machine("torus([4, 4], 25GB/s, 1us)")));
    // A rank that waits for a signal that none of its kind posts.
    let mut waits = own("RingAllReduce", 16);
    let post = waits.ops.iter().position(|op| op.kind == OpKind::Post).expect("it posts");
    waits.ops[post].kind = OpKind::Wait;
    expect!["the streams wait for each other, or signals are left over"]
        .assert_eq(&refused(&waits, &rotation, &crossbar));
    let large = own("RingAllReduce", 16_384);
    let slow =
        Machine { stragglers: vec![(RankId(5), 3.0)], ..machine("crossbar(16384, 25GB/s, 1us)") };
    expect![[""]].assert_eq(&refused(&large, &Turns::rotation(16_384), &slow));
}

/// At as many ranks as a schedule has, against the closed forms.
#[test]
fn as_many_ranks_as_there_are() {
    let n = 1 << 16;
    let machine = machine(&format!("crossbar({n}, 25GB/s, 1us)"));
    let bytes = 1_u64 << 30;
    let xor = Turns::xor(n).expect("a power of two");
    for (name, turns) in [
        ("RingAllReduce", Turns::rotation(n)),
        ("NhrAllReduce", Turns::rotation(n)),
        ("RecursiveDoublingAllReduce", xor.clone()),
        ("HalvingDoublingAllReduce", xor),
    ] {
        let own = one_rank(&library(name), n, RankId(0)).expect("it fits");
        let one =
            symmetric(&own, &turns, &machine, bytes / 4, DType::F32).expect("it is symmetric");
        let form = of_algorithm(name, n).expect("it has a form");
        let form = closed(form, n, bytes, &machine).expect("it is exact");
        assert!((one.seconds / form - 1.0).abs() < 1e-3, "{name}: {} s, not {form}", one.seconds);
    }
}
