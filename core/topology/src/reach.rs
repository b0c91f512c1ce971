//! The ranks that are reached through switches alone.
//!
//! Switches that reach each other reach equal sets of ranks, so the search runs once for each such group of switches,
//! in an order in which a group follows the groups that it leads to.

use super::{Fabric, NodeId};

/// The ranks that lie behind switches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reach {
    /// The group of each switch; none for ranks.
    groups: Vec<Option<u32>>,
    /// The ranks that each group reaches, in ascending order.
    ranks: Vec<Vec<NodeId>>,
}

impl Reach {
    pub(super) fn new(topology: &Fabric) -> Self {
        let groups = groups(topology, |node| !topology.is_rank(node));
        let count = groups.iter().flatten().max().map_or(0, |last| *last as usize + 1);
        let mut members = vec![Vec::new(); count];
        for (node, group) in groups.iter().enumerate() {
            if let Some(group) = group {
                members[*group as usize].push(NodeId(node as u32));
            }
        }
        let mut ranks: Vec<Vec<NodeId>> = Vec::with_capacity(count);
        for (own, members) in members.iter().enumerate() {
            let mut reached = Vec::new();
            for link in members.iter().flat_map(|member| topology.out(*member)) {
                match groups[link.to.index()] {
                    None => reached.push(link.to),
                    Some(to) if to as usize == own => {}
                    Some(to) => reached.extend(&ranks[to as usize]),
                }
            }
            reached.sort_unstable();
            reached.dedup();
            reached.shrink_to_fit();
            ranks.push(reached);
        }
        Self { groups, ranks }
    }

    /// Returns the ranks behind a switch, in ascending order.
    pub(super) fn ranks(&self, switch: NodeId) -> &[NodeId] {
        self.groups[switch.index()].map_or(&[], |group| &self.ranks[group as usize])
    }

    /// Whether a rank lies behind a switch.
    pub(super) fn behind(&self, switch: NodeId, rank: NodeId) -> bool {
        self.ranks(switch).binary_search(&rank).is_ok()
    }
}

/// Returns the group of each wanted node, whose members reach each other through wanted nodes, numbered so that a group
/// leads only to itself and to smaller numbers (Tarjan's strongly connected components, without recursion).
pub(super) fn groups(topology: &Fabric, wanted: impl Fn(NodeId) -> bool) -> Vec<Option<u32>> {
    let nodes = topology.nodes().len();
    let (mut index, mut low) = (vec![u32::MAX; nodes], vec![u32::MAX; nodes]);
    let mut group = vec![None; nodes];
    let (mut next, mut groups) = (0, 0);
    let mut open = Vec::new();
    let mut path: Vec<(NodeId, usize)> = Vec::new();
    for start in (0..nodes as u32).map(NodeId).filter(|node| wanted(*node)) {
        if index[start.index()] != u32::MAX {
            continue;
        }
        path.push((start, 0));
        while let Some((node, at)) = path.pop() {
            let here = node.index();
            if at == 0 {
                (index[here], low[here]) = (next, next);
                next += 1;
                open.push(node);
            }
            let onward = topology.out(node)[at..]
                .iter()
                .enumerate()
                .find(|(_, link)| wanted(link.to) && index[link.to.index()] == u32::MAX);
            if let Some((skipped, link)) = onward {
                path.push((node, at + skipped + 1));
                path.push((link.to, 0));
                continue;
            }
            for link in topology.out(node) {
                let to = link.to.index();
                if wanted(link.to) && group[to].is_none() {
                    low[here] = low[here].min(low[to]);
                }
            }
            if low[here] == index[here] {
                while let Some(member) = open.pop() {
                    group[member.index()] = Some(groups);
                    if member == node {
                        break;
                    }
                }
                groups += 1;
            }
        }
    }
    group
}
