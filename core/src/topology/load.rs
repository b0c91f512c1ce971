//! What a schedule asks of each link, and so the least time it could take on a topology: everything
//! overlapped, no latency, each link busy without a pause.
//!
//! Data goes the shortest way through switches; where there are several, in equal parts (as ECMP does).

use std::collections::BTreeMap;

use super::{NodeId, Topology};
use crate::ids::RankId;
use crate::schedule::Schedule;

/// The load of a schedule on the links of a topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// For each of [`Topology::links`], the share of M that passes: M is nccl-tests' size in bytes.
    pub links: Vec<f64>,
    /// Seconds a byte of M that the busiest link takes, times b where the topology is relative.
    pub seconds_per_byte: f64,
    /// The busiest link, an index into [`Topology::links`]; `None` where nothing passes.
    pub busiest: Option<usize>,
}

impl Load {
    /// The load of `schedule`. Moves between ranks that are not linked count nowhere: they are findings.
    pub fn new(schedule: &Schedule, topology: &Topology) -> Self {
        let n = schedule.nranks;
        let units =
            schedule.collective.max_input_units(n).max(schedule.collective.max_output_units(n));
        let mut demand: BTreeMap<RankId, BTreeMap<RankId, f64>> = BTreeMap::new();
        for used in schedule.traffic() {
            if let Some(data) = used.units {
                let share = data.num() as f64 / data.den() as f64 / f64::from(units);
                *demand.entry(used.from).or_default().entry(used.to).or_default() += share;
            }
        }
        let mut into = vec![Vec::new(); topology.nodes().len()];
        for (i, link) in topology.links().iter().enumerate() {
            into[link.to.index()].push(i);
        }
        let mut links = vec![0.0; topology.links().len()];
        for (from, to) in &demand {
            spread(topology, &into, NodeId::from(*from), to, &mut links);
        }
        let time = |i: &usize| {
            let capacity = topology.links()[*i].capacity;
            links[*i] * capacity.den() as f64 / capacity.num() as f64
        };
        let busiest =
            (0..links.len()).filter(|i| links[*i] > 0.0).max_by(|a, b| time(a).total_cmp(&time(b)));
        let seconds_per_byte = busiest.as_ref().map_or(0.0, time);
        Self { links, seconds_per_byte, busiest }
    }
}

/// How a message gets from one rank to another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Way {
    /// Nanoseconds, along the slowest of the shortest ways.
    pub latency: u64,
    /// Seconds a byte, times b where the topology is relative.
    pub per_byte: f64,
}

/// The way between two ranks; nothing where they are not linked.
pub fn way(topology: &Topology, from: RankId, to: RankId) -> Way {
    let (from, to) = (NodeId::from(from), NodeId::from(to));
    let passes = |node: NodeId| node == from || !topology.is_rank(node);
    // Hop by hop, until `to` is met: what reaches each node, by which links.
    let mut hops = vec![None; topology.nodes().len()];
    let mut latency = vec![0_u64; topology.nodes().len()];
    hops[from.index()] = Some(0_u32);
    let mut layer = vec![from];
    let mut layers = Vec::new();
    while !layer.is_empty() && hops[to.index()].is_none() {
        let mut next = Vec::new();
        let depth = layers.len() as u32 + 1;
        for link in layer.iter().filter(|node| passes(**node)).flat_map(|node| topology.out(*node))
        {
            if hops[link.to.index()].is_none() {
                hops[link.to.index()] = Some(depth);
                next.push(link.to);
            }
            if hops[link.to.index()] == Some(depth) {
                let passed = latency[link.from.index()].saturating_add(link.latency);
                latency[link.to.index()] = latency[link.to.index()].max(passed);
            }
        }
        layers.push(std::mem::replace(&mut layer, next));
    }
    let mut amount = BTreeMap::from([(to, 1.0)]);
    let mut per_byte = 0.0_f64;
    for layer in layers.iter().rev() {
        let passing: Vec<&super::Link> = layer
            .iter()
            .filter(|node| passes(**node))
            .flat_map(|node| topology.out(*node))
            .filter(|link| amount.contains_key(&link.to))
            .collect();
        let mut into: BTreeMap<NodeId, f64> = BTreeMap::new();
        for link in &passing {
            *into.entry(link.to).or_default() += 1.0;
        }
        let mut before = BTreeMap::new();
        for link in passing {
            let share = amount[&link.to] / into[&link.to];
            let capacity = link.capacity;
            per_byte = per_byte.max(share * capacity.den() as f64 / capacity.num() as f64);
            *before.entry(link.from).or_default() += share;
        }
        amount = before;
    }
    Way { latency: latency[to.index()], per_byte }
}

/// Adds what `source` sends to each rank, along all shortest ways that pass no other rank.
fn spread(
    topology: &Topology,
    into: &[Vec<usize>],
    source: NodeId,
    to: &BTreeMap<RankId, f64>,
    links: &mut [f64],
) {
    let passes = |node: NodeId| node == source || !topology.is_rank(node);
    let mut hops = vec![u32::MAX; topology.nodes().len()];
    hops[source.index()] = 0;
    let mut order = vec![source];
    let mut next = 0;
    while let Some(&node) = order.get(next) {
        next += 1;
        for link in topology.out(node).iter().filter(|_| passes(node)) {
            if hops[link.to.index()] == u32::MAX {
                hops[link.to.index()] = hops[node.index()] + 1;
                order.push(link.to);
            }
        }
    }
    let mut amount = vec![0.0; topology.nodes().len()];
    for (rank, share) in to {
        amount[rank.index()] = *share;
    }
    for node in order.into_iter().skip(1).rev().filter(|node| hops[node.index()] > 0) {
        let nearer = |link: &&usize| {
            let from = topology.links()[**link].from;
            passes(from) && hops[from.index()].saturating_add(1) == hops[node.index()]
        };
        let ways: Vec<usize> = into[node.index()].iter().filter(nearer).copied().collect();
        let share = amount[node.index()] / ways.len() as f64;
        for way in ways.into_iter().filter(|_| share > 0.0) {
            links[way] += share;
            amount[topology.links()[way].from.index()] += share;
        }
    }
}
