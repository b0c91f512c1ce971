//! Paths by NCCL's rules: the links from a node to every other, their kind and their bandwidth.
//!
//! The kind of a path matters more than its bandwidth, so a slow path over `NVLink` is preferred to a fast one over
//! PCI. A rank forwards only one hop of `NVLink`. On constructed topologies every path is `NVL`, `NVB` or `NET`, as
//! they have no other links.

use std::collections::BTreeSet;
use std::fmt;

use super::{Fabric, Link, LinkKind, NodeId, NodeKind, Vendor};
use roundelay_base::ids::RankId;
use roundelay_base::named_enum;
use roundelay_base::rational::Rat;

/// Bytes a second from a node to itself.
pub const LOCAL: Rat = Rat::whole(5_000_000_000_000);

named_enum! {
    /// The kind of a path, best first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum PathType {
        /// A rank to itself.
        Loc = "LOC",
        /// `NVLink`, straight or through switches.
        Nvl = "NVL",
        /// `NVLink` through one other rank.
        Nvb = "NVB",
        /// Chip to chip.
        C2c = "C2C",
        /// Through one PCI switch.
        Pix = "PIX",
        /// Through several PCI switches, without the CPU.
        Pxb = "PXB",
        /// Chip to chip to the CPU, then PCI to a network card.
        P2c = "P2C",
        /// To a network card through a rank that is joined by `NVLink`.
        Pxn = "PXN",
        /// Over PCI through the CPU.
        Phb = "PHB",
        /// A path from one CPU to another.
        Sys = "SYS",
        /// Over the network.
        Net = "NET",
        /// There is no path.
        Dis = "DIS",
    }
}

impl PathType {
    /// Whether a network card accesses a rank's memory directly over a path of this type (`GPUDirect` RDMA).
    pub fn is_gdr(self) -> bool {
        self <= Self::P2c
    }
}

impl fmt::Display for PathType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A path from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The type of the path, by the worst link that it passes.
    pub kind: PathType,
    /// Bytes a second, or multiples of B: the bandwidth of its narrowest link. 0 where there is no path.
    pub bandwidth: Rat,
    /// Positions in [`Fabric::links`], in order.
    pub links: Vec<u32>,
}

impl Path {
    const NONE: Self = Self { kind: PathType::Dis, bandwidth: Rat::ZERO, links: Vec::new() };

    /// Whether it replaces `other`: a better kind, else more bandwidth, else fewer hops.
    fn beats(&self, other: &Self) -> bool {
        let hops = |path: &Self| path.links.len();
        self.kind < other.kind
            || self.kind == other.kind
                && (self.bandwidth > other.bandwidth
                    || self.bandwidth == other.bandwidth && hops(self) < hops(other))
    }

    /// Returns the load that a unit of traffic on this path puts on its link `link`: 6/5 for PCI links when a rank's
    /// data crosses the host bridge of an Intel CPU, else 1.
    pub fn load(&self, topology: &Fabric, link: &Link) -> Rat {
        const TOLL: Option<Rat> = Rat::new(6, 5);
        let pci = link.kind == LinkKind::Pci;
        if pci && crosses_intel(topology, &self.links) {
            TOLL.unwrap_or(Rat::ONE)
        } else {
            Rat::ONE
        }
    }
}

fn link(topology: &Fabric, index: u32) -> &Link {
    &topology.links()[index as usize]
}

/// Whether a rank's data enters an Intel CPU by PCI and leaves it again, or comes from another processor and leaves
/// it by PCI.
fn crosses_intel(topology: &Fabric, links: &[u32]) -> bool {
    let from_rank = links.first().is_some_and(|l| topology.is_rank(link(topology, *l).from));
    from_rank
        && links.windows(2).any(|pair| {
            let (into, out) = (link(topology, pair[0]), link(topology, pair[1]));
            topology.nodes()[into.to.index()].vendor == Some(Vendor::Intel)
                && (into.kind == LinkKind::Pci || out.kind == LinkKind::Pci)
        })
}

/// Returns the bandwidth of the narrowest link.
fn bandwidth(topology: &Fabric, links: &[u32]) -> Rat {
    let toll = crosses_intel(topology, links);
    let through = |index: &u32| {
        let Link { kind, capacity, .. } = *link(topology, *index);
        match kind {
            LinkKind::Pci if toll => Rat::ZERO.boundary(capacity, 5, 6).unwrap_or(capacity),
            _ => capacity,
        }
    };
    links.iter().map(through).min().unwrap_or(LOCAL)
}

/// Returns `path` with one more link, unless a rank would have to forward data that it does not forward.
fn extend(topology: &Fabric, path: &Path, index: u32) -> Option<Path> {
    let Link { from, to, kind: link_kind, capacity, .. } = *link(topology, index);
    let relayed = topology.is_rank(from) && !path.links.is_empty();
    let passes = path.links.len() == 1
        && path.kind == PathType::Nvl
        && link_kind == LinkKind::NvLink
        && topology.is_rank(to);
    if relayed && !passes {
        return None;
    }
    let kind_of = |node: NodeId| topology.nodes()[node.index()].kind;
    let ends = [kind_of(from), kind_of(to)];
    let hop = match link_kind {
        LinkKind::NvLink if relayed => PathType::Nvb,
        LinkKind::NvLink => PathType::Nvl,
        LinkKind::C2c => PathType::C2c,
        LinkKind::Pci | LinkKind::Memory if ends.contains(&NodeKind::Cpu) => PathType::Phb,
        LinkKind::Pci if ends == [NodeKind::Pci; 2] => PathType::Pxb,
        LinkKind::Pci | LinkKind::Memory => PathType::Pix,
        LinkKind::Sys => PathType::Sys,
        LinkKind::Net => PathType::Net,
    };
    let mut links = Vec::with_capacity(path.links.len() + 1);
    links.extend_from_slice(&path.links);
    links.push(index);
    let near = matches!(link_kind, LinkKind::NvLink | LinkKind::Net);
    let bandwidth = if near { path.bandwidth.min(capacity) } else { bandwidth(topology, &links) };
    Some(Path { kind: path.kind.max(hop), bandwidth, links })
}

/// Returns a path from `source` to every node, by number of hops. Of equal paths the first one found wins, which has
/// the smaller nodes.
fn breadth_first(topology: &Fabric, source: NodeId) -> Vec<Path> {
    let mut paths = vec![Path::NONE; topology.nodes().len()];
    paths[source.index()] = Path { kind: PathType::Loc, bandwidth: LOCAL, links: Vec::new() };
    let mut open = vec![(source, paths[source.index()].clone())];
    while !open.is_empty() {
        let mut found = BTreeSet::new();
        for (node, path) in &open {
            let first = topology.first[node.index()];
            for index in first..first + topology.out(*node).len() as u32 {
                let to = link(topology, index).to;
                if let Some(new) = extend(topology, path, index)
                    && new.beats(&paths[to.index()])
                {
                    paths[to.index()] = new;
                    found.insert(to);
                }
            }
        }
        open = found.into_iter().map(|node| (node, paths[node.index()].clone())).collect();
    }
    paths
}

/// Returns a path from `source` to every rank.
pub fn to_ranks(topology: &Fabric, source: NodeId) -> Vec<Path> {
    let mut paths = breadth_first(topology, source);
    paths.truncate(topology.nranks() as usize);
    paths
}

/// Returns the `NVLinks` of a machine alone, where it has links of other kinds and the `NVLinks` join its first
/// `nranks` ranks: then no runtime sends data over other links.
pub fn nvlink_alone(topology: &Fabric, nranks: u32) -> Option<Fabric> {
    if !topology.has_kinds() {
        return None;
    }
    let joined = |rank: RankId| {
        let paths = to_ranks(topology, rank.into());
        paths.iter().take(nranks as usize).all(|path| path.kind <= PathType::Nvb)
    };
    let mut ranks = topology.ranks().take(nranks as usize);
    (nranks > 1 && ranks.all(joined))
        .then(|| topology.keeping(|link| link.kind == LinkKind::NvLink))
}

/// Returns the links alone that carry data between the first `nranks` ranks, in either direction, where a machine has
/// links of several kinds: data takes one path from rank to rank, so that PCI beside `NVLinks` carries none. These are
/// its `NVLinks` where they join the ranks.
pub fn carrying(topology: &Fabric, nranks: u32) -> Option<Fabric> {
    if !topology.has_kinds() {
        return None;
    }
    let cable = |link: &Link| (link.from.min(link.to), link.from.max(link.to), link.kind);
    let mut carrying = BTreeSet::new();
    for rank in topology.ranks().take(nranks as usize) {
        for path in to_ranks(topology, rank.into()).iter().take(nranks as usize) {
            carrying.extend(path.links.iter().map(|index| cable(link(topology, *index))));
        }
    }
    Some(topology.keeping(|link| carrying.contains(&cable(link))))
}

/// Returns a path from `source` to every node. PXN and P2C exist only between ranks and network cards.
pub fn paths_from(topology: &Fabric, source: NodeId) -> Vec<Path> {
    let mut paths = breadth_first(topology, source);
    if !topology.is_rank(source) {
        return paths;
    }
    let is_nic = |node: &NodeId| topology.nodes()[node.index()].kind == NodeKind::Nic;
    let nics: Vec<_> = (0..paths.len() as u32).map(NodeId).filter(is_nic).collect();
    chip_to_chip(topology, &nics, &mut paths);
    if nics.iter().any(|nic| paths[nic.index()].kind > PathType::Pxn) {
        let peers: Vec<_> = topology.ranks().map(NodeId::from).collect();
        for peer in peers.into_iter().filter(|p| *p != source) {
            if paths[peer.index()].kind == PathType::Nvl {
                through(topology, peer, &nics, &mut paths);
            }
        }
    }
    for nic in nics {
        let first = topology.first[nic.index()];
        for index in first..first + topology.out(nic).len() as u32 {
            let Link { to, kind, .. } = *link(topology, index);
            if kind == LinkKind::Net
                && let Some(new) = extend(topology, &paths[nic.index()], index)
                && (paths[to.index()].kind == PathType::Dis || last(&paths[to.index()]) == index)
            {
                paths[to.index()] = new;
            }
        }
    }
    paths
}

fn last(path: &Path) -> u32 {
    path.links.last().copied().unwrap_or(u32::MAX)
}

/// Marks paths to network cards over a chip-to-chip link and the PCI of one CPU as P2C.
fn chip_to_chip(topology: &Fabric, nics: &[NodeId], paths: &mut [Path]) {
    for nic in nics {
        let path = &mut paths[nic.index()];
        let c2c = path.links.iter().any(|l| link(topology, *l).kind == LinkKind::C2c);
        if path.kind == PathType::Phb && c2c {
            path.kind = PathType::P2c;
        }
    }
}

/// Replaces the rank's own path to a network card near `peer`, which `paths` reaches over `NVLink`, by the path
/// through `peer`, where that is better.
fn through(topology: &Fabric, peer: NodeId, nics: &[NodeId], paths: &mut [Path]) {
    let mut own = breadth_first(topology, peer);
    chip_to_chip(topology, nics, &mut own);
    for nic in nics {
        let near = &own[nic.index()];
        if !near.kind.is_gdr() {
            continue;
        }
        let way = &paths[peer.index()];
        let new = Path {
            kind: PathType::Pxn,
            bandwidth: way.bandwidth.min(near.bandwidth),
            links: [&way.links[..], &near.links].concat(),
        };
        if new.beats(&paths[nic.index()]) {
            paths[nic.index()] = new;
        }
    }
}

/// Returns the worst kind of path over which two ranks of `topology` access each other's memory: PXB; SYS where there
/// are at most two ranks and every CPU is AMD's.
pub fn p2p_limit(topology: &Fabric) -> PathType {
    let mut cpus = topology.nodes().iter().filter(|n| n.kind == NodeKind::Cpu).peekable();
    let amd = cpus.peek().is_some() && cpus.all(|cpu| cpu.vendor == Some(Vendor::Amd));
    if amd && topology.nranks() <= 2 { PathType::Sys } else { PathType::Pxb }
}

/// Whether two ranks joined by `path` access each other's memory; else their data is staged in the memory of a CPU,
/// or goes over the network.
pub fn p2p_allowed(topology: &Fabric, path: &Path) -> bool {
    path.kind <= p2p_limit(topology)
}
