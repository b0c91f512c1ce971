//! The facts about a topology, as plain data, from which JSON and tables are made.

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_core::topology::Topology;
use roundelay_topology::nccl;
use roundelay_topology::paths::{self, Path};
use roundelay_topology::search::disjoint::{self, DisjointBy};
use roundelay_topology::search::hamilton::How;
use roundelay_topology::search::pairs::Pairs;
use roundelay_topology::search::{self, channels, disjoint_trees};
use roundelay_topology::{Fabric, LinkKind, NodeId, NodeKind, Problem, bounds};
use serde::Serialize;

use crate::constants::{Constants, ConstantsJson};
use crate::topology::Given;

/// Disjoint rings that are looked for.
const RINGS: usize = 16;
/// Children of a rank in the tree.
const CHILDREN: u32 = 2;
/// Links up to which all bounds take seconds.
const BOUNDED: usize = 1 << 17;
/// Ranks up to which every pair's path is listed; beyond, JSON would be mostly paths.
const PATHS: u32 = 256;

#[derive(Serialize)]
pub(super) struct Description<'a> {
    ok: bool,
    pub(super) name: String,
    pub(super) nranks: u32,
    /// Bandwidths are multiples of B, the bandwidth of one link; else bytes a second.
    pub(super) relative: bool,
    /// The sources of the facts about a machine that no file of NCCL's described.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sources: Vec<[String; 2]>,
    pub(super) assumptions: Vec<String>,
    /// Unusual properties of the machine of a file.
    pub(super) notes: Vec<String>,
    /// The constants of predictions.
    pub(super) constants: ConstantsJson<'a>,
    /// The version of NCCL by whose rules paths have their types, and links of a file their bandwidths.
    pub(super) rules: &'static str,
    /// The rank of the job that each rank of a file is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) job_ranks: Option<Vec<u32>>,
    pub(super) nodes: Vec<DescribedNode>,
    pub(super) links: Vec<DescribedLink>,
    pub(super) paths: Vec<Route>,
    pub(super) ring: SearchOutcome<Vec<u32>>,
    /// Rings no two of which share a cable; only where all links are cables between ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disjoint_rings: Option<Disjoint>,
    pub(super) channels: SearchOutcome<Channels>,
    pub(super) tree: SearchOutcome<DescribedTree>,
    pub(super) bounds: SearchOutcome<Bounds>,
}

/// The result of a search, or why there is none.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum SearchOutcome<T> {
    Some(T),
    None { none: String, notes: Vec<String> },
}

impl<T> From<Result<T, Problem>> for SearchOutcome<T> {
    fn from(result: Result<T, Problem>) -> Self {
        match result {
            Ok(found) => Self::Some(found),
            Err(problem) => Self::None { none: problem.title, notes: problem.notes },
        }
    }
}

#[derive(Serialize)]
pub(super) struct Disjoint {
    pub(super) rings: Vec<Vec<u32>>,
    /// Whether no larger number exists.
    pub(super) proved: bool,
}

#[derive(Serialize)]
pub(super) struct Channels {
    pub(super) rings: Vec<Vec<u32>>,
    pub(super) bandwidth: f64,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) fallback: bool,
}

#[derive(Serialize)]
pub(super) struct DescribedTree {
    pub(super) root: u32,
    pub(super) parents: Vec<Option<u32>>,
    pub(super) depth: u32,
    pub(super) least: bool,
}

#[derive(Serialize)]
pub(super) struct Bounds {
    pub(super) collectives: Vec<DescribedBound>,
    pub(super) equal_shards: Fraction,
    /// The bound of AllReduce where the switch reduces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) on_switch: Option<DescribedBound>,
    /// The bounds over the `NVLinks` alone, where these join all ranks beside other links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nvlink: Option<Box<Bounds>>,
    pub(super) rounds: Rounds,
}

#[derive(Serialize)]
pub(super) struct DescribedBound {
    pub(super) collective: &'static str,
    #[serde(flatten)]
    pub(super) time: Fraction,
    pub(super) binding: String,
    /// Whether no other cut or partition of its kind gives more.
    pub(super) exact: bool,
}

/// Seconds for a byte of S, times B where all is relative.
#[derive(Serialize)]
pub(super) struct Fraction {
    pub(super) exactly: String,
    pub(super) seconds_per_byte: f64,
}

#[derive(Serialize)]
pub(super) struct Rounds {
    pub(super) one_port: u32,
    pub(super) all_ports: u32,
    pub(super) ports: u32,
    pub(super) diameter: u32,
    pub(super) farthest_ns: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct DescribedNode {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) group: Option<u32>,
}

/// A link of a topology, as it is printed.
#[derive(Serialize)]
pub(super) struct DescribedLink {
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

impl<'a> Description<'a> {
    pub(super) fn new(given: &Given, constants: &'a Constants, root: RankId) -> Self {
        let topology = &*given.topology;
        let system = given.system.as_ref();
        let node = |node: &roundelay_topology::Node| DescribedNode {
            name: node.name.clone(),
            kind: node_kind(node.kind),
            group: node.group,
        };
        let link = |link: &roundelay_topology::Link| DescribedLink {
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
            sources: system.map_or(Vec::new(), |s| s.sources.clone()),
            assumptions: system.map_or(Vec::new(), |s| s.assumptions.clone()),
            notes: system.map_or(&given.notes, |s| &s.notes).clone(),
            constants: constants.json(Some(topology)),
            rules: nccl::RULES,
            job_ranks: system.map(|s| s.ranks.clone()),
            nodes: topology.nodes().iter().map(node).collect(),
            links: topology.links().iter().map(link).collect(),
            paths: routes(topology),
            ring: search::ring_around(topology, topology.nranks()).map(numbers).into(),
            disjoint_rings: disjoint_rings(topology),
            channels: channels(given).into(),
            tree: tree(topology, root).into(),
            bounds: bounds(topology, root).into(),
        }
    }
}

fn numbers(ranks: Vec<RankId>) -> Vec<u32> {
    ranks.into_iter().map(|rank| rank.0).collect()
}

fn disjoint_rings(topology: &Topology) -> Option<Disjoint> {
    let cables = topology.nodes().len() == topology.nranks() as usize;
    let pairs = Pairs::direct(topology, topology.nranks());
    let found = cables.then(|| disjoint::disjoint(&pairs, RINGS, DisjointBy::Cables))?;
    Some(Disjoint { rings: found.rings.into_iter().map(numbers).collect(), proved: found.proved })
}

fn channels(given: &Given) -> Result<Channels, Problem> {
    if !channels::are_sought(&given.topology, given.topology.nranks()) {
        let most = channels::SEARCHED;
        let title = format!("channels are sought for at most {most} ranks that no switch joins");
        return Err(Problem::new(Code::NoRing, title));
    }
    if given.system.is_some() && given.topology.gpus().is_none() {
        let title = "NCCL joins GPUs, and the ranks are cores";
        return Err(Problem::new(Code::NoRing, title));
    }
    let sm = given.system.as_ref().and_then(|system| system.sm);
    let found = channels::channels(&given.topology, given.topology.nranks(), sm)?;
    Ok(Channels {
        rings: found.orders.iter().cloned().map(numbers).collect(),
        bandwidth: number(found.speed),
        kind: found.kind.name(),
        fallback: found.fallback,
    })
}

fn tree(topology: &Topology, root: RankId) -> Result<DescribedTree, Problem> {
    let found = disjoint_trees::tree(&Pairs::direct(topology, topology.nranks()), root, CHILDREN)?;
    Ok(DescribedTree {
        root: root.0,
        parents: found.tree.parent.iter().map(|parent| parent.map(|rank| rank.0)).collect(),
        depth: found.tree.depth(),
        least: found.how == How::Exact,
    })
}

fn bounds(topology: &Topology, root: RankId) -> Result<Bounds, Problem> {
    if topology.links().len() > BOUNDED {
        let title = format!("no bounds for more than {BOUNDED} links");
        return Err(Problem::new(Code::BadTopology, title)
            .note("each is hundreds of flows through all links; `check --topology` computes one"));
    }
    let alone = paths::nvlink_alone(topology, topology.nranks());
    let alone = alone.map(|alone| bounds_of(&alone, root)).transpose()?;
    Ok(Bounds { nvlink: alone.map(Box::new), ..bounds_of(topology, root)? })
}

/// Returns the bounds over all links of a graph at once.
fn bounds_of(topology: &Fabric, root: RankId) -> Result<Bounds, Problem> {
    let found = bounds::Bounds::new(topology, topology.nranks(), root)?;
    let bound = |(collective, bound): &(Collective, bounds::Bound)| DescribedBound {
        collective: collective.name(),
        time: fraction(bound.per_byte),
        binding: bound.binding.to_string(),
        exact: bound.exact,
    };
    let bounds::Rounds { one_port, all_ports, ports, diameter, farthest_ns } = found.rounds;
    Ok(Bounds {
        collectives: found.collectives.iter().map(bound).collect(),
        equal_shards: fraction(found.equal_shards.per_byte),
        on_switch: found.on_switch.map(|found| bound(&(Collective::AllReduce, found))),
        nvlink: None,
        rounds: Rounds { one_port, all_ports, ports, diameter, farthest_ns },
    })
}

fn fraction(value: bounds::Fraction) -> Fraction {
    Fraction { exactly: value.to_string(), seconds_per_byte: value.value() }
}

fn routes(topology: &Topology) -> Vec<Route> {
    if topology.nranks() > PATHS {
        return Vec::new();
    }
    let from_rank = |from: RankId| {
        let all = paths::paths_from(topology, NodeId::from(from));
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

/// Returns the nearest float, for reading; exact values are in the fractions beside it.
pub(super) fn number(value: Rat) -> f64 {
    value.num() as f64 / value.den() as f64
}

fn node_kind(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Rank => "rank",
        NodeKind::NvSwitch => "switch",
        NodeKind::Pci => "pci",
        NodeKind::Cpu => "cpu",
        NodeKind::Cache => "cache",
        NodeKind::Nic => "nic",
        NodeKind::Net => "net",
    }
}

pub(super) fn link_kind(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::NvLink => "NVL",
        LinkKind::C2c => "C2C",
        LinkKind::Pci => "PCI",
        LinkKind::Memory => "MEM",
        LinkKind::Sys => "SYS",
        LinkKind::Net => "NET",
    }
}
