//! Several machines of one kind, joined by their network cards.
//!
//! Network card r of each machine hangs on the switch of rail r, and each rail carries to the other rails what its cards
//! send, as the spines of a fat tree that never block.

use super::graph::Completed;
use super::machines::NamedMachine;
use super::{System, graph, tree};
use crate::draft::{Draft, FASTEST};
use crate::file::File;
use crate::{Fabric, Link, LinkKind, NodeId, NodeKind, Problem};
use roundelay_base::rational::Rat;

impl NamedMachine {
    /// Returns `count` of these machines, without the links between some pairs of ranks, as a topology file describes
    /// one of them.
    ///
    /// # Errors
    /// E0601 for too many ranks, E0602 for a cut of a link that does not exist, E0603 where the cuts separate ranks.
    pub fn system(&self, name: &str, count: u32, cuts: &[(i64, i64)]) -> Result<System, Problem> {
        let file = File { name, text: "" };
        let mut root = tree::of(self);
        self.links.join(&mut root)?;
        let one = graph::system(name, file, root, Completed::default())?;
        let mut draft = draft(name, &one.topology, count, self.ports())?;
        for (a, b) in cuts {
            draft.cut(*a, *b)?;
        }
        let mut topology = draft.build()?;
        topology.gpus = one.topology.gpus;
        let product = self.product;
        let mut notes = vec![format!(
            "{product}, of published facts; a list of all machines names their documents"
        )];
        if count > 1 {
            notes.push(
                "rail r joins network card r of all machines, and carries to the other rails what its cards send"
                    .to_owned(),
            );
        }
        let ranks = topology.ranks().map(|rank| rank.0).collect();
        Ok(System { topology, ranks, notes, ..one })
    }
}

/// Returns the draft of `count` machines; cards whose numbers are equal modulo `rails` share a rail. One machine alone
/// is as it is.
fn draft(name: &str, machine: &Fabric, count: u32, rails: u32) -> Result<Draft, Problem> {
    let (nodes, ranks) = (machine.nodes(), machine.nranks());
    let mut draft = Draft::new(name, u64::from(ranks) * u64::from(count), false)?;
    let joined = count > 1;
    let is_port = |kind: NodeKind| joined && kind == NodeKind::Net;
    let mut switches: Vec<(NodeId, Rat)> = Vec::new();
    let groups = nodes.iter().filter_map(|node| node.group).max().map_or(1, |last| last + 1);
    let fastest = Rat::whole(FASTEST);
    let mut places: Vec<Vec<NodeId>> = Vec::new();
    for host in 0..count {
        let mut ports = 0..;
        let mut here = Vec::with_capacity(nodes.len());
        for (at, node) in (0..).zip(nodes) {
            let group = node.group.map(|group| host * groups + group);
            if at < ranks {
                let rank = NodeId(host * ranks + at);
                if let Some(group) = group {
                    draft.group(rank, group);
                }
                here.push(rank);
                continue;
            }
            if is_port(node.kind) {
                let rail = ports.next().unwrap_or(0) % rails;
                if rail as usize == switches.len() {
                    let name = format!("rail {rail}");
                    switches.push((draft.switch(name, NodeKind::Net, None), Rat::ZERO));
                }
                here.push(switches[rail as usize].0);
                continue;
            }
            let name =
                if joined { format!("{} of machine {host}", node.name) } else { node.name.clone() };
            let place = draft.switch(name, node.kind, group);
            if let Some(vendor) = node.vendor {
                draft.vendor(place, vendor);
            }
            here.push(place);
        }
        places.push(here);
    }
    for here in &places {
        for link in machine.links() {
            let (from, to) = (here[link.from.index()], here[link.to.index()]);
            draft.link(Link { from, to, ..*link })?;
            if let Some((_, sum)) = switches.iter_mut().find(|(rail, _)| *rail == to) {
                *sum = sum.plus(link.capacity).unwrap_or(fastest).min(fastest);
            }
        }
    }
    for (at, (rail, capacity)) in switches.iter().enumerate() {
        for (other, _) in switches.iter().skip(at + 1) {
            draft.cable(*rail, *other, LinkKind::Net, *capacity, 0)?;
        }
    }
    Ok(draft)
}
