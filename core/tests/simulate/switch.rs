//! Runs on a switch that reduces: its ports carry what the switch takes in and gives out, and nothing else.

use roundelay_core::collective::Collective;
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::rational::Rat;
use roundelay_simulate::{Simulated, on_topology, simulate};
use roundelay_topology::bounds::{Bounds, on_switch};
use roundelay_topology::draft::Draft;
use roundelay_topology::{LinkKind, NodeKind};

use super::{library, machine, schedule};

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
        for reducing in [", gpus(sm=90)", ", reducing", ", reducing, gpus(sm=80)"] {
            let done = run(name, &hopper(reducing));
            let time = 2.0 * latency + buffers * BYTES / bandwidth;
            assert!((done.seconds - time).abs() < 1e-9, "{name}: {} s, {time}", done.seconds);
            let ports = done.ports.iter().map(|port| port.sent.max(port.received));
            let most = ports.fold(0.0, f64::max);
            assert!((most - buffers * BYTES).abs() < 1.0, "{name}: {most} bytes");
        }
    }
}

/// Two islands of four: the switches of the islands reduce, and with `reducing` those of the rails, too.
#[test]
fn switches_of_islands_and_of_rails_reduce() {
    let (inside, across) = ((400e9, 1e-6), (50e9, 5e-6));
    let topology = "islands(2, 4, 400GB/s, 1us, 50GB/s, 5us, reducing)";
    let part = BYTES / 4.0;
    for (name, rail) in [
        ("SwitchIslandsAllReduce", 2.0 * (2.0 * across.1 + part / 2.0 / across.0)),
        ("CollNetAllReduce", 2.0 * across.1 + 1.5 * part / across.0),
    ] {
        let mut algorithm = library(name);
        algorithm.set_text("topology", topology).expect("a topology");
        let schedule = algorithm.schedule(8).expect("it can be laid out");
        let machine = machine(topology);
        assert!(on_topology(&schedule, &machine.topology, DType::F32).has_switch());
        let done = simulate(&schedule, &machine, BYTES as u64 / 4, DType::F32, false);
        let seconds = done.expect("it ends").seconds;
        let time = 2.0 * (2.0 * inside.1 + BYTES / inside.0) + rail;
        assert!((seconds - time).abs() < 1e-9, "{name}: {seconds} s, {time}");
    }
}

/// The leaves of a tree of switches each pass one sum up, and take one result down.
#[test]
fn a_tree_of_switches_reduces_at_each_of_them() {
    let topology = "spine_leaf(2, 4, 2, 50GB/s, reducing)";
    let graph = machine(topology).topology;
    let ranks = |ranks: &[u32]| ranks.iter().copied().map(RankId).collect::<Vec<_>>();
    assert!(graph.reducing_switch(&ranks(&[0, 1, 2, 3])).is_some());
    assert_eq!(graph.reducing_switch(&ranks(&[3, 4])), None);
    let tree = graph.reducing_tree(&ranks(&[0, 3, 4, 7])).expect("a tree");
    let (root, joins) =
        (tree.root(), |all: &[u32]| tree.joins(ranks(all).into_iter()).collect::<Vec<_>>());
    let leaf = |rank: u32| graph.out(RankId(rank).into())[0].to;
    assert_eq!(joins(&[0, 3, 4, 7]), [root, leaf(3), root, leaf(7)]);
    assert_eq!(joins(&[3]), [root]);
    assert!(on_switch(&graph, 8, Collective::AllReduce).is_some());
    assert!(on_topology(&schedule("SwitchAllReduce", 8), &graph, DType::F32).has_switch());
    let done = run("SwitchAllReduce", topology);
    for usage in &done.links {
        let [from, to] = [usage.from, usage.to].map(|node| graph.is_rank(node));
        // Between a leaf and the root there is each block once, and the sum of each of its ranks' own blocks on its way
        // to that rank and back.
        let uplink = if [usage.from, usage.to].contains(&root) { 1.5 * BYTES } else { 0.0 };
        let expected = if from || to { BYTES + BYTES / 8.0 } else { uplink };
        assert!((usage.bytes - expected).abs() < 1.0, "{usage:?}");
    }
    assert!(done.seconds < 0.8 * run("MeshAllReduce", topology).seconds);
    // A leaf that does not reduce makes no tree, for one rank neither.
    let graph = machine("spine_leaf(2, 4, 2, 50GB/s)").topology;
    assert_eq!([&[3][..], &[3, 4]].map(|all| graph.reducing_tree(&ranks(all))), [None, None]);
}

/// Two switches below the root have a leaf in common, which is no root of theirs.
#[test]
fn a_leaf_is_no_root_of_the_switches_above_it() {
    let mut draft = Draft::new("three rows", 3, true).expect("a few ranks");
    let names = ["leaf 0", "leaf 1", "leaf 2", "spine 0", "spine 1", "core"];
    let switches = names.map(|name| draft.switch(name, NodeKind::NvSwitch, None));
    let [leaf0, leaf1, leaf2, spine0, spine1, core] = switches;
    let [rank0, rank1, rank2] = [0, 1, 2].map(|rank| RankId(rank).into());
    for (below, above) in [
        (rank0, leaf0),
        (rank1, leaf1),
        (rank2, leaf2),
        (leaf0, spine0),
        (leaf0, spine1),
        (leaf1, spine0),
        (leaf2, spine1),
        (spine0, core),
        (spine1, core),
    ] {
        draft.cable(below, above, LinkKind::NvLink, Rat::ONE, 0).expect("two ends");
    }
    for switch in switches {
        draft.reduce_at(switch);
    }
    let graph = draft.build().expect("every rank reaches every other");
    let tree = graph.reducing_tree(&[0, 1, 2].map(RankId)).expect("a tree");
    let joins: Vec<_> = tree.joins([0, 1, 2].map(RankId).into_iter()).collect();
    assert_eq!((tree.root(), joins), (core, vec![core, spine0, core]));
}

/// Switches fold no elements of 8 bits, and store them.
#[test]
fn elements_that_no_switch_folds_are_moved_by_ranks() {
    let topology = machine(&hopper(", gpus(sm=90)")).topology;
    for (name, expected) in [("SwitchAllReduce", [true, false]), ("SwitchAllGather", [true, true])]
    {
        let made = [DType::F16, DType::U8]
            .map(|dtype| on_topology(&schedule(name, 8), &topology, dtype).has_switch());
        assert_eq!(made, expected, "{name}");
    }
}

/// Without a switch that reduces, ranks move the same data, and more of it.
#[test]
fn elsewhere_ranks_do_the_moves() {
    for gpus in ["", ", gpus(sm=80)", ", gpus(gfx942)"] {
        let topology = hopper(gpus);
        let written = schedule("SwitchAllReduce", 8);
        assert!(!on_topology(&written, &machine(&topology).topology, DType::F32).has_switch());
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
