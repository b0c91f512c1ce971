//! `SimGrid`'s fluid model, all correction factors 1: a logical ring and recursive doubling.

use super::{library, machine, run, schedule};
use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::optimize::join;
use roundelay_core::schedule::Schedule;
use roundelay_simulate::Machine;
use roundelay_topology::Routing;
use roundelay_topology::bounds::bound;

/// Hosts on links of 25 GB/s and 1 us each.
fn platform(name: &str, n: u32) -> Machine {
    let mut machine = machine(&match name {
        "xbar" => format!("crossbar({n}, 25GB/s, 1us)"),
        // Leaves of 8 hosts with one uplink to each of 4 spines.
        "leaf" => format!("spine_leaf({}, 8, 4, 25GB/s, 1us, 25GB/s, 1us)", n / 8),
        _ => format!("full_mesh({n}, 25GB/s, 2us)"),
    });
    machine.routing = Routing::DModK;
    machine
}

fn microseconds(schedule: &Schedule, platform_name: &str, bytes: u64) -> f64 {
    run(schedule, &platform(platform_name, schedule.nranks), bytes).seconds * 1e6
}

const SIZES: [u64; 3] = [1 << 10, 1 << 20, 1 << 26];

/// Platform, ranks, and microseconds of the ring and of recursive doubling, for each of the sizes.
const GOLDEN: [(&str, u32, [f64; 3], [f64; 3]); 7] = [
    ("xbar", 8, [28.081, 101.409, 4725.629], [6.125, 131.831, 8059.066]),
    ("xbar", 64, [252.161, 334.656, 5536.904], [12.250, 263.662, 16118.131]),
    ("xbar", 256, [1020.408, 1103.885, 6368.064], [16.333, 351.549, 21490.842]),
    ("leaf", 8, [28.081, 101.409, 4725.629], [6.125, 131.831, 8059.066]),
    ("leaf", 16, [120.096, 198.662, 5153.184], [10.208, 219.718, 13431.776]),
    ("leaf", 64, [504.161, 586.656, 5788.904], [18.374, 395.493, 24177.197]),
    ("mesh8", 8, [28.081, 101.409, 4725.629], [6.125, 131.831, 8059.066]),
];

#[test]
fn golden_values() {
    for (platform, n, ring, doubling) in GOLDEN {
        let rows = [("RingAllReduce", ring), ("RecursiveDoublingAllReduce", doubling)];
        for (algorithm, golden) in rows {
            let schedule = schedule(algorithm, n);
            for (bytes, golden) in SIZES.into_iter().zip(golden) {
                let simulated = microseconds(&schedule, platform, bytes);
                let off = (simulated / golden - 1.0).abs();
                assert!(
                    off < 0.01,
                    "{algorithm} on {platform}, {n} ranks, {bytes} bytes: {simulated} us, not {golden}"
                );
            }
        }
    }
}

/// Shared uplinks put the neighbor ring before halving and doubling, neighbors first too; on a crossbar the ring is
/// behind.
#[test]
fn oversubscription_changes_the_order() {
    let mut halving = library("HalvingDoublingAllReduce");
    halving.set_text("near_first", "true").expect("its parameter");
    let (ring, halving) = (schedule("RingAllReduce", 64), halving.schedule(64).expect("it fits"));
    let time = |schedule, platform| microseconds(schedule, platform, 1 << 26);
    let on_leaves = (time(&ring, "leaf"), time(&halving, "leaf"));
    assert!((on_leaves.0 / 5789.0 - 1.0).abs() < 0.001, "{on_leaves:?}");
    assert!((on_leaves.1 / 5908.0 - 1.0).abs() < 0.001, "{on_leaves:?}");
    assert!(time(&halving, "xbar") < time(&ring, "xbar"));
}

/// The share of the bandwidth bound that algorithms reach at 1 MiB on 64 ranks of 25 GB/s, 2 us a message: figures of
/// the field.
#[test]
fn shares_of_the_bound_on_a_crossbar() {
    let golden = [
        ("RingAllReduce", 24.7),
        ("RecursiveDoublingAllReduce", 31.3),
        ("HalvingDoublingAllReduce", 77.5),
        ("MeshAllReduce", 95.3),
    ];
    let machine = machine("crossbar(64, 25GB/s, 1us)");
    let bound = bound(&machine.topology, 64, Collective::AllReduce, RankId(0)).expect("it fits");
    for (name, golden) in golden {
        let done = run(&schedule(name, 64), &machine, 1 << 20);
        let share = 100.0 * bound.seconds(1 << 20) / done.seconds;
        assert!((share - golden).abs() < 1.0, "{name} reaches {share} %, not {golden}");
    }
}

/// The slices of a step travel as one message: 2 ceil(log2 n) L + 2 (n - 1)/n S/B.
#[test]
fn nhr_keeps_its_promise() {
    for n in [5, 8, 13, 16, 31, 32, 64, 100, 128, 200, 256] {
        for reorder in ["false", "true"] {
            let mut nhr = library("NhrAllReduce");
            nhr.set_text("reorder", reorder).expect("its parameter");
            let schedule = join(&nhr.schedule(n).expect("it fits"));
            let machine = machine(&format!("crossbar({n}, 25GB/s, 1us)"));
            for bytes in [1 << 16, 1 << 20, 1 << 26] {
                let done = run(&schedule, &machine, bytes);
                let steps = 2.0 * f64::from(n.next_power_of_two().ilog2());
                let ranks = f64::from(n);
                let promised =
                    steps * 2e-6 + 2.0 * (ranks - 1.0) / ranks * done.bytes as f64 / 25e9;
                let off = (done.seconds / promised - 1.0).abs();
                assert!(off < 0.01, "{n} ranks, {bytes} bytes: {} s, not {promised}", done.seconds);
            }
        }
    }
}
