//! The nodes and links to which a turn of the ranks takes those of a topology.

use rustc_hash::FxHashMap;

use super::machine::Machine;
use roundelay_base::turns::Turns;
use roundelay_topology::{Link, NodeId};

/// Finds the images of nodes and links under turns.
pub(super) struct Images<'m> {
    pub(super) machine: &'m Machine,
    turns: &'m Turns,
    capacity: Vec<f64>,
    latency: Vec<f64>,
    /// The factor by which each rank is slower.
    slower: Vec<f64>,
}

impl<'m> Images<'m> {
    pub(super) fn new(machine: &'m Machine, turns: &'m Turns) -> Self {
        let (capacity, latency) = machine.links();
        let slower = turns.ranks().map(|rank| machine.slower(rank)).collect();
        Self { machine, turns, capacity, latency, slower }
    }

    /// Returns the image of each link under turn `by`, if the turn takes the machine to itself: each link to a link
    /// with its bandwidth and latency, each rank to a rank with its speed. Ranks beyond those that are turned stay.
    pub(super) fn links(&self, by: u32) -> Option<Vec<u32>> {
        let alike = |(rank, slower): (usize, &f64)| {
            self.slower[self.turns.turn(rank as u32, by) as usize].to_bits() == slower.to_bits()
        };
        if !self.slower.iter().enumerate().all(alike) {
            return None;
        }
        let nodes = self.nodes(by)?;
        let links = self.machine.topology.links();
        links.iter().enumerate().map(|(at, link)| self.link(at, link, &nodes)).collect()
    }

    fn link(&self, at: usize, link: &Link, nodes: &[NodeId]) -> Option<u32> {
        let (from, to) = (nodes[link.from.index()], nodes[link.to.index()]);
        let links = self.machine.topology.links();
        let key = (from, to, link.kind);
        let image =
            links.binary_search_by_key(&key, |link| (link.from, link.to, link.kind)).ok()?;
        let alike =
            (self.capacity[image], self.latency[image]) == (self.capacity[at], self.latency[at]);
        alike.then_some(image as u32)
    }

    /// Returns the image of each node under turn `by`. Switches are known by the nodes to which they are linked, those
    /// near the ranks first; switches with equal neighbors keep their order.
    pub(super) fn nodes(&self, by: u32) -> Option<Vec<NodeId>> {
        let topology = &self.machine.topology;
        let turned = |rank: u32| {
            if rank < self.turns.nranks() { self.turns.turn(rank, by) } else { rank }
        };
        let mut images: Vec<Option<NodeId>> = vec![None; topology.nodes().len()];
        for rank in topology.ranks() {
            images[rank.index()] = Some(NodeId(turned(rank.0)));
        }
        let mut open: Vec<NodeId> =
            (topology.nranks()..topology.nodes().len() as u32).map(NodeId).collect();
        while !open.is_empty() {
            let known = |node: NodeId| -> Vec<NodeId> {
                let to = topology.out(node).iter().map(|link| link.to);
                to.filter(|to| images[to.index()].is_some()).collect()
            };
            let (near, far): (Vec<_>, Vec<_>) =
                open.iter().partition(|node| !known(**node).is_empty());
            if near.is_empty() {
                return None;
            }
            let mut of: FxHashMap<Vec<NodeId>, Vec<NodeId>> = FxHashMap::default();
            for node in near.iter().rev() {
                of.entry(known(*node)).or_default().push(*node);
            }
            let mut found = Vec::with_capacity(near.len());
            for node in near {
                let mut neighbors: Vec<NodeId> =
                    known(node).iter().filter_map(|to| images[to.index()]).collect();
                neighbors.sort_unstable();
                found.push((node, of.get_mut(&neighbors)?.pop()?));
            }
            for (node, image) in found {
                images[node.index()] = Some(image);
            }
            open = far;
        }
        images.into_iter().collect()
    }
}
