//! The levels of a topology: links whose ends are as far from the ranks as each other's.

use std::collections::{BTreeMap, VecDeque};

use roundelay_core::simulate::Usage;
use roundelay_core::topology::{NodeId, Topology};

/// All of them, from the ranks up.
pub(super) struct Levels {
    pub(super) names: Vec<String>,
    /// For each link of the topology its level, and whether it leads away from the ranks.
    of: Vec<(usize, bool)>,
}

/// What the busiest link of a level carries in a run, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Load {
    /// Away from the ranks, or between nodes as far from them as each other.
    pub(super) up: f64,
    /// Towards the ranks.
    pub(super) down: f64,
}

impl Load {
    pub(super) fn most(self) -> f64 {
        self.up.max(self.down)
    }
}

impl Levels {
    pub(super) fn new(topology: &Topology) -> Self {
        let tiers = tiers(topology);
        let tier = |node: NodeId| tiers[node.index()];
        let key = |from, to| (tier(from).min(tier(to)), tier(from).max(tier(to)));
        let links = topology.links();
        let keys: BTreeMap<_, _> = links.iter().map(|l| (key(l.from, l.to), 0)).collect();
        let keys: BTreeMap<_, usize> = keys.into_keys().zip(0..).collect();
        let word = |tier| word(topology, &tiers, tier);
        let name = |(low, high): &(u32, u32)| format!("{}-{}", word(*low), word(*high));
        let of = |link: &roundelay_core::topology::Link| {
            (keys[&key(link.from, link.to)], tier(link.from) <= tier(link.to))
        };
        Self { names: keys.keys().map(name).collect(), of: links.iter().map(of).collect() }
    }

    /// What the busiest link of each level carries.
    pub(super) fn loads(&self, links: &[Usage]) -> Vec<Load> {
        let mut loads = vec![Load::default(); self.names.len()];
        for (link, (level, up)) in links.iter().zip(&self.of) {
            let load = &mut loads[*level];
            let most = if *up { &mut load.up } else { &mut load.down };
            *most = most.max(link.bytes);
        }
        loads
    }
}

/// How many links each node is away from the nearest rank.
fn tiers(topology: &Topology) -> Vec<u32> {
    let mut tiers = vec![u32::MAX; topology.nodes().len()];
    let mut queue: VecDeque<NodeId> = topology.ranks().map(NodeId::from).collect();
    for rank in &queue {
        tiers[rank.index()] = 0;
    }
    while let Some(node) = queue.pop_front() {
        for link in topology.out(node) {
            if tiers[link.to.index()] == u32::MAX {
                tiers[link.to.index()] = tiers[node.index()] + 1;
                queue.push_back(link.to);
            }
        }
    }
    tiers
}

/// What the nodes of a tier are called: `leaf`, if all have that word and a number for a name.
fn word(topology: &Topology, tiers: &[u32], tier: u32) -> String {
    if tier == 0 {
        return "rank".to_owned();
    }
    let first_word = |name: &str| {
        let end = name.find(|c: char| !c.is_alphabetic()).unwrap_or(name.len());
        name[..end].to_lowercase()
    };
    let nodes = topology.nodes().iter().zip(tiers).filter(|(_, of)| **of == tier);
    let mut words: Vec<_> = nodes.map(|(node, _)| first_word(&node.name)).collect();
    words.dedup();
    match &words[..] {
        [one] if !one.is_empty() => one.clone(),
        _ => format!("tier{tier}"),
    }
}

#[cfg(test)]
mod tests {
    use super::Levels;
    use roundelay_core::topology::Topology;

    fn names(text: &str) -> Vec<String> {
        Levels::new(&text.parse::<Topology>().expect("a topology")).names
    }

    #[test]
    fn levels_have_the_names_of_their_ends() {
        assert_eq!(names("spine_leaf(4, 8, 2, 2)"), ["rank-leaf", "leaf-spine"]);
        assert_eq!(names("crossbar(4)"), ["rank-switch"]);
        assert_eq!(names("full_mesh(4)"), ["rank-rank"]);
        assert_eq!(names("islands(2, 4)").len(), 2);
    }
}
