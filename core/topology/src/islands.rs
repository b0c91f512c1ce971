//! Islands: ranks that reach each other without leaving their machine.

use super::{Fabric, LinkKind, NodeId};
use roundelay_base::ids::RankId;

impl Fabric {
    /// Returns the islands, each in order and all in order of their first ranks. Ranks are of one island if links
    /// outside of the network join them, in either direction and through any nodes. Ranks with network links only are
    /// of one island with their group, such as the hosts under a leaf, and so are cores, which links inside of a CPU
    /// alone join: their group is a cache or a memory node.
    pub fn islands(&self) -> Vec<Vec<RankId>> {
        let mut parent: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let inside = |kind| !matches!(kind, LinkKind::Memory | LinkKind::Net);
        for link in self.links.iter().filter(|link| inside(link.kind)) {
            join(&mut parent, link.from, link.to);
        }
        let mut first_of_group: Vec<Option<NodeId>> = Vec::new();
        for rank in self.ranks().map(NodeId::from) {
            let Some(group) = self.nodes[rank.index()].group else { continue };
            if self.out(rank).iter().any(|link| inside(link.kind)) {
                continue;
            }
            let group = group as usize;
            first_of_group.resize(first_of_group.len().max(group + 1), None);
            let first = *first_of_group[group].get_or_insert(rank);
            join(&mut parent, first, rank);
        }
        let mut island_of = vec![None; self.nodes.len()];
        let mut islands: Vec<Vec<RankId>> = Vec::new();
        for rank in self.ranks() {
            let top = find(&mut parent, rank.0) as usize;
            let island = *island_of[top].get_or_insert(islands.len());
            if island == islands.len() {
                islands.push(Vec::new());
            }
            islands[island].push(rank);
        }
        islands
    }
}

fn find(parent: &mut [u32], mut node: u32) -> u32 {
    while parent[node as usize] != node {
        parent[node as usize] = parent[parent[node as usize] as usize];
        node = parent[node as usize];
    }
    node
}

fn join(parent: &mut [u32], a: NodeId, b: NodeId) {
    let (a, b) = (find(parent, a.0), find(parent, b.0));
    parent[a as usize] = b;
}
