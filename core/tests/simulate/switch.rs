//! Runs on a switch that reduces: its ports carry what the switch takes in and gives out, and nothing else.

use roundelay_core::collective::Collective;
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_simulate::{Simulated, on_topology, simulate};
use roundelay_topology::bounds::{Bounds, on_switch};

use super::{machine, schedule};

/// The bytes of a buffer, which eight ranks cut into equal blocks.
const BYTES: f64 = (1 << 23) as f64;

/// The bandwidth of a port, and the latency of one link.
const PORT: (f64, f64) = (400e9, 1e-6);

fn hopper(gpus: &str) -> String {
    format!("crossbar(8, 400GB/s, 1us{gpus})")
}

fn run(name: &str, topology: &str) -> Simulated {
    let schedule = schedule(name, 8);
    let count = BYTES as u64 / 4 / schedule.collective.max_units(8);
    simulate(&schedule, &machine(topology), count, DType::F32, false).expect("it ends")
}

/// Each formula is that of the page in the library. The latency of a machine of GPUs is that of a path, two links.
#[test]
fn a_switch_takes_the_time_that_the_pages_say() {
    let (bandwidth, latency) = PORT;
    for (name, buffers) in [
        ("SwitchAllReduce", 1.0 + 1.0 / 8.0),
        ("OneShotSwitchAllReduce", 8.0),
        ("SwitchReduceScatter", 1.0),
        ("SwitchAllGather", 1.0),
    ] {
        let done = run(name, &hopper(", gpus(sm=90)"));
        let time = 2.0 * latency + buffers * BYTES / bandwidth;
        assert!((done.seconds - time).abs() < 1e-9, "{name}: {} s, {time}", done.seconds);
        let most = done.ports.iter().map(|port| port.sent.max(port.received)).fold(0.0, f64::max);
        assert!((most - buffers * BYTES).abs() < 1.0, "{name}: {most} bytes");
    }
}

/// Without a switch that reduces, ranks move the same data, and more of it.
#[test]
fn elsewhere_ranks_do_the_moves() {
    for gpus in ["", ", gpus(sm=80)", ", gpus(gfx942)"] {
        let topology = hopper(gpus);
        let written = schedule("SwitchAllReduce", 8);
        assert!(!on_topology(&written, &machine(&topology).topology).has_switch());
        let (by_ranks, direct) =
            (run("SwitchAllReduce", &topology), run("MeshAllReduce", &topology));
        let sent = |run: &Simulated| run.ports.iter().map(|port| port.sent).sum::<f64>();
        assert!((sent(&by_ranks) - sent(&direct)).abs() < 1.0, "{gpus}");
    }
}

/// A ring is below the bound of ranks that reduce; the switch is above it, and below its own.
#[test]
fn the_bound_of_a_switch_is_its_own() {
    let topology = hopper(", gpus(sm=90)");
    let graph = machine(&topology).topology;
    let bounds = Bounds::new(&graph, 8, RankId(0)).expect("a topology of eight ranks");
    let ranks = bounds.bound(Collective::AllReduce).seconds(1 << 23);
    let switch = on_switch(&graph, 8, Collective::AllReduce).expect("it reduces").seconds(1 << 23);
    assert!((ranks - 1.75 * BYTES / PORT.0).abs() < 1e-12, "{ranks}");
    assert!((switch - BYTES / PORT.0).abs() < 1e-12, "{switch}");
    let run = run("SwitchAllReduce", &topology).seconds;
    assert!(switch < run && run < ranks, "{switch} {run} {ranks}");
    assert!(on_switch(&graph, 8, Collective::AllGather).is_none());
    let plain = machine(&hopper("")).topology;
    assert!(on_switch(&plain, 8, Collective::AllReduce).is_none());
}
