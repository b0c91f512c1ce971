//! The ranks that each rank reaches through switches alone.
//!
//! Switches that reach each other reach equal sets of ranks, so the search runs once for each such group of switches,
//! in an order in which a group follows the groups that it leads to.

use super::{NodeId, Topology};

/// Bits, one for each rank.
type Row = Vec<u64>;

fn set(row: &mut Row, rank: NodeId) {
    row[rank.index() / 64] |= 1 << (rank.index() % 64);
}

fn merge(into: &mut Row, from: &Row) {
    for (into, from) in into.iter_mut().zip(from) {
        *into |= from;
    }
}

/// Returns, for each rank, the ranks that it reaches without passing through another rank.
pub(super) fn rows(topology: &Topology) -> Vec<Row> {
    let words = (topology.nranks() as usize).div_ceil(64);
    let group = groups(topology);
    let count = group.iter().flatten().max().map_or(0, |last| *last as usize + 1);
    let mut reached: Vec<Row> = vec![vec![0; words]; count];
    let mut members = vec![Vec::new(); count];
    for (node, group) in group.iter().enumerate() {
        if let Some(group) = group {
            members[*group as usize].push(NodeId(node as u32));
        }
    }
    let add = |row: &mut Row, node: NodeId, reached: &[Row], own: Option<u32>| {
        for link in topology.out(node) {
            match group[link.to.index()] {
                None => set(row, link.to),
                to if to == own => {}
                Some(to) => merge(row, &reached[to as usize]),
            }
        }
    };
    for (g, members) in members.iter().enumerate() {
        let mut row = vec![0; words];
        for member in members {
            add(&mut row, *member, &reached, Some(g as u32));
        }
        reached[g] = row;
    }
    let of_rank = |rank| {
        let mut row = vec![0; words];
        add(&mut row, rank, &reached, None);
        row
    };
    topology.ranks().map(|rank| of_rank(NodeId::from(rank))).collect()
}

/// Returns the group of each switch, numbered so that a group leads only to itself and to smaller numbers (Tarjan's
/// strongly connected components, without recursion). Ranks have none.
fn groups(topology: &Topology) -> Vec<Option<u32>> {
    let nodes = topology.nodes().len();
    let (mut index, mut low) = (vec![u32::MAX; nodes], vec![u32::MAX; nodes]);
    let mut group = vec![None; nodes];
    let (mut next, mut groups) = (0, 0);
    let mut open = Vec::new();
    let mut path: Vec<(NodeId, usize)> = Vec::new();
    for start in (topology.nranks()..nodes as u32).map(NodeId) {
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
                .find(|(_, link)| !topology.is_rank(link.to) && index[link.to.index()] == u32::MAX);
            if let Some((skipped, link)) = onward {
                path.push((node, at + skipped + 1));
                path.push((link.to, 0));
                continue;
            }
            for link in topology.out(node) {
                let to = link.to.index();
                if !topology.is_rank(link.to) && group[to].is_none() {
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
