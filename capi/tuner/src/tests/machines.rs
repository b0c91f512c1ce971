//! Hops of whole machines: what the plugin adds is what a simulation of all ranks has and NCCL's formula lacks.

use std::sync::Arc;

use roundelay_core::dtype::DType;
use roundelay_core::layout::{Algorithm as _, Configured, Limits};
use roundelay_core::topology::Topology;
use roundelay_core::values::params::ParamValue;
use roundelay_core::values::tree::Tree;
use roundelay_simulate::{Machine, simulate};

use crate::levels::{Levels, MOST, algorithm};

/// Microseconds of a hop in a node and between nodes, in the simulations of this file.
const INSIDE: u64 = 1;
const ACROSS: u64 = 100;

/// Simulates an all-reduce of no data on `nodes` nodes of `per_node` ranks, and returns its hops in nodes and between
/// them.
fn hops(all_reduce: &Configured, nodes: u32, per_node: u32) -> (u64, u64) {
    // A hop is a link up and a link down; between nodes there are two links more, to the spine and from it.
    let (inside, across) = (INSIDE * 500, (ACROSS - INSIDE) * 500);
    let links = format!("spine_leaf({nodes}, {per_node}, 1, 1GB/s, {inside}us, 1GB/s, {across}us)");
    let topology: Topology = links.parse().expect("a topology");
    let machine = Machine { bandwidth: 1e15, ..Machine::new(Arc::new(topology)) };
    let schedule = all_reduce.schedule_within(nodes * per_node, Limits::FULL).expect("a schedule");
    let done = simulate(&schedule, &machine, 2, DType::U8, false).expect("a simulation");
    let all = (done.seconds * 1e3).round() as u64;
    (all % ACROSS / INSIDE, all / ACROSS)
}

/// Below 2048 nodes, the trees are as deep as the logarithm rounded up, and NCCL's formula has it rounded down.
#[test]
fn a_tree_has_the_levels_of_the_next_power_of_two() {
    for nodes in (2..=40).chain([63, 64, 65, 100, MOST]) {
        let levels = Levels::over(nodes).expect("levels");
        let log = f64::from(nodes.next_power_of_two().ilog2());
        assert_eq!(
            levels,
            Levels { all_reduce: 2.0 * log, all_gather: log, reduce_scatter: log },
            "{nodes} nodes"
        );
        let formula = Levels::by_formula(nodes);
        assert_eq!(formula == levels, nodes.is_power_of_two(), "{nodes} nodes");
        assert!(log - formula.all_gather <= 1.0, "{nodes} nodes");
    }
}

/// NCCL's tree in full: the ranks of a node are a chain below its first, and the first ranks are the double binary
/// tree, here its first tree, by hand. The chains take as many hops on any number of nodes, so that a rank may stand
/// for a node.
#[test]
fn the_chains_of_the_nodes_add_the_same_on_any_number_of_nodes() {
    let heads: [&[i64]; 5] =
        [&[-1, 0], &[-1, 2, 0], &[-1, 2, 0, 2], &[-1, 2, 4, 2, 0], &[-1, 2, 4, 2, 0, 4]];
    for heads in heads {
        let nodes = heads.len() as u32;
        let levels = Levels::over(nodes).expect("levels").all_reduce as u64;
        for per_node in [1, 2, 8] {
            let k = i64::from(per_node);
            let parent = |rank: i64| match (rank % k, heads[(rank / k) as usize]) {
                (0, -1) => -1,
                (0, above) => above * k,
                _ => rank - 1,
            };
            let parents = (0..i64::from(nodes) * k).map(parent);
            let mut tree = algorithm("tree.coll", "TreeAllReduce").expect("the library has it");
            tree.set("tree", ParamValue::Tree(Tree::parents(parents))).expect("a parameter");
            tree.set("slices", ParamValue::Int(1)).expect("a parameter");
            let expected = (2 * u64::from(per_node - 1), levels);
            assert_eq!(hops(&tree, nodes, per_node), expected, "{nodes} nodes of {per_node}");
        }
    }
}

/// The costs of rings stay: NCCL's formula has all their hops. On several nodes it takes up to two of them for hops in
/// a node that are hops between nodes, on any number of nodes alike, so that its constants are fitted to that.
#[test]
fn a_ring_has_the_hops_of_the_formula() {
    let mut ring = algorithm("nccl_ring.coll", "NcclRingAllReduce").expect("the library has it");
    ring.set("slices", ParamValue::Int(1)).expect("a parameter");
    ring.set("credits", ParamValue::Int(8)).expect("a parameter");
    for (nodes, per_node) in
        [(1, 2), (1, 8), (2, 1), (3, 1), (7, 1), (2, 2), (3, 2), (2, 8), (3, 8), (4, 4), (5, 8)]
    {
        let (inside, across) = hops(&ring, nodes, per_node);
        let (all, counted) = (2 * u64::from(nodes * per_node - 1), 2 * u64::from(nodes - 1));
        assert_eq!(inside + across, all, "{nodes} nodes of {per_node}");
        let more = match (nodes, per_node) {
            (1, _) | (_, 1) => 0,
            (_, 2) => 1,
            _ => 2,
        };
        assert_eq!(across, counted + more, "{nodes} nodes of {per_node}");
    }
}
