//! The levels of a topology: a level has the links between nodes of two classes; nodes of one class have equal names,
//! but for numbers, and are equally far from the ranks.

use std::collections::{BTreeMap, VecDeque};

use roundelay_core::topology::Topology;
use roundelay_simulate::Usage;
use roundelay_topology::{Link, Node, NodeId};

/// All levels, from the ranks up.
#[derive(Debug)]
pub struct Levels {
    /// The names of the levels, such as `rank-leaf`.
    pub names: Vec<String>,
    /// The level of each link of the topology, and whether it leads away from the ranks.
    of: Vec<(usize, bool)>,
}

/// The bytes that the busiest link of a level carries in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Away from the ranks, or between nodes that are equally far from them.
    pub up: f64,
    /// Towards the ranks.
    pub down: f64,
}

impl Load {
    /// Returns the load of the busier direction.
    pub fn most(self) -> f64 {
        self.up.max(self.down)
    }
}

impl Levels {
    /// Makes the levels of a topology.
    pub fn new(topology: &Topology) -> Self {
        let kinds = kinds(topology);
        let kind = |node: NodeId| &kinds[node.index()];
        let ends = |link: &Link| {
            let (from, to) = (kind(link.from), kind(link.to));
            (from.min(to), from.max(to))
        };
        let links = topology.links();
        let all: BTreeMap<_, _> = links.iter().map(|link| (ends(link), 0)).collect();
        let all: BTreeMap<_, usize> = all.into_keys().zip(0..).collect();
        let of = |link: &Link| (all[&ends(link)], kind(link.from).tier <= kind(link.to).tier);
        Self {
            names: all.keys().map(|(low, high)| format!("{}-{}", low.word, high.word)).collect(),
            of: links.iter().map(of).collect(),
        }
    }

    /// Returns the bytes that the busiest link of each level carries.
    pub fn loads(&self, links: &[Usage]) -> Vec<Load> {
        let mut loads = vec![Load::default(); self.names.len()];
        for (link, (level, up)) in links.iter().zip(&self.of) {
            let load = &mut loads[*level];
            let most = if *up { &mut load.up } else { &mut load.down };
            *most = most.max(link.bytes);
        }
        loads
    }
}

/// The class of a node.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NodeClass {
    /// The number of links to the nearest rank.
    tier: u32,
    /// `leaf` for `leaf 3`.
    word: String,
}

/// Returns the class of every node.
fn kinds(topology: &Topology) -> Vec<NodeClass> {
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
    let kind =
        |(node, tier): (&Node, &u32)| NodeClass { tier: *tier, word: word(&node.name, *tier) };
    topology.nodes().iter().zip(&tiers).map(kind).collect()
}

/// Returns the letters that a name begins with; ranks are numbers.
fn word(name: &str, tier: u32) -> String {
    let end = name.find(|c: char| !c.is_alphabetic()).unwrap_or(name.len());
    match &name[..end] {
        _ if tier == 0 => "rank".to_owned(),
        "" => format!("tier{tier}"),
        word => word.to_lowercase(),
    }
}
