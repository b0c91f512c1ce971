//! All that is known of a topology, as plain data: what JSON prints and tables are made from.

use roundelay_core::ids::RankId;
use roundelay_core::schedule::rational::Rat;
use roundelay_core::topology::paths::{self, Path};
use roundelay_core::topology::{LinkKind, NodeId, NodeKind, Topology};
use serde::Serialize;

use crate::topology::Given;

/// Ranks up to which every pair's path is listed; beyond, JSON would be mostly paths.
const PATHS: u32 = 256;

#[derive(Serialize)]
pub(super) struct Description {
    ok: bool,
    pub(super) name: String,
    pub(super) nranks: u32,
    /// Bandwidths are multiples of b, the bandwidth of one link; else bytes a second.
    pub(super) relative: bool,
    pub(super) assumptions: Vec<String>,
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<Link>,
    pub(super) paths: Vec<Route>,
}

#[derive(Serialize)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) group: Option<u32>,
}

#[derive(Serialize)]
pub(super) struct Link {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) kind: &'static str,
    pub(super) bandwidth: f64,
    pub(super) latency_ns: u64,
}

/// The path between two ranks, by NCCL's rules.
#[derive(Serialize)]
pub(super) struct Route {
    pub(super) from: u32,
    pub(super) to: u32,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) bandwidth: f64,
    pub(super) hops: usize,
}

impl Description {
    pub(super) fn new(given: &Given, _root: RankId) -> Self {
        let topology = &*given.topology;
        let node = |node: &roundelay_core::topology::Node| Node {
            name: node.name.clone(),
            kind: node_kind(node.kind),
            group: node.group,
        };
        let link = |link: &roundelay_core::topology::Link| Link {
            from: link.from.0,
            to: link.to.0,
            kind: link_kind(link.kind),
            bandwidth: number(link.capacity),
            latency_ns: link.latency,
        };
        Self {
            ok: true,
            name: topology.name().to_owned(),
            nranks: topology.nranks(),
            relative: topology.is_relative(),
            assumptions: given.system.as_ref().map_or(Vec::new(), |s| s.assumptions.clone()),
            nodes: topology.nodes().iter().map(node).collect(),
            links: topology.links().iter().map(link).collect(),
            paths: routes(topology),
        }
    }
}

fn routes(topology: &Topology) -> Vec<Route> {
    if topology.nranks() > PATHS {
        return Vec::new();
    }
    let from_rank = |from: RankId| {
        let all = paths::from(topology, NodeId::from(from));
        let route = move |(to, path): (usize, Path)| Route {
            from: from.0,
            to: to as u32,
            kind: path.kind.name(),
            bandwidth: number(path.bandwidth),
            hops: path.links.len(),
        };
        let ranks = all.into_iter().take(topology.nranks() as usize).enumerate();
        ranks.filter(move |(to, _)| *to != from.index()).map(route).collect::<Vec<_>>()
    };
    topology.ranks().flat_map(from_rank).collect()
}

/// The nearest float, for reading; exact values are in the fractions beside it.
pub(super) fn number(value: Rat) -> f64 {
    value.num() as f64 / value.den() as f64
}

fn node_kind(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Rank => "rank",
        NodeKind::NvSwitch => "switch",
        NodeKind::Pci => "pci",
        NodeKind::Cpu => "cpu",
        NodeKind::Nic => "nic",
        NodeKind::Net => "net",
    }
}

pub(super) fn link_kind(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::NvLink => "NVL",
        LinkKind::C2c => "C2C",
        LinkKind::Pci => "PCI",
        LinkKind::Sys => "SYS",
        LinkKind::Net => "NET",
    }
}
