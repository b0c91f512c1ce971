//! `SimGrid`'s fluid model, all correction factors 1: a logical ring and recursive doubling.

use super::{library, machine, run, schedule};
use roundelay_core::schedule::{Algorithm as _, Schedule};
use roundelay_core::simulate::Machine;
use roundelay_core::topology::Routing;

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

/// Uplinks that are shared put the neighbor ring before halving and doubling, neighbors first too; on a
/// crossbar it is behind.
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
