//! Searches for rings, channels and trees in a topology.
//!
//! Every search is deterministic, has a budget of steps, and tells whether its answer is proved the best or only
//! found.

pub mod channels;
pub mod disjoint;
pub mod disjoint_trees;
pub mod hamilton;
pub mod pairs;
pub mod proof;

mod cover;
#[doc(hidden)]
pub mod heuristic;
mod islands;
mod one_switch;

use hamilton::RingSearch;
use pairs::Pairs;

use super::{Fabric, LinkKind, Problem};
use roundelay_base::diagnostics::Code;
use roundelay_base::ids::RankId;

/// Kinds of links, the best first.
const KINDS: [LinkKind; 6] = [
    LinkKind::NvLink,
    LinkKind::C2c,
    LinkKind::Pci,
    LinkKind::Memory,
    LinkKind::Sys,
    LinkKind::Net,
];

/// Returns a ring through the first `nranks` ranks over the best kind of links that has one: links between cards and
/// their switches first, then PCI, links between CPUs and the network as well. It never passes through a rank without
/// stopping there, and leaves an island of better links, where possible, only after all its ranks.
pub fn ring_around(topology: &Fabric, nranks: u32) -> Result<Vec<RankId>, Problem> {
    topology.holds_pairs(nranks)?;
    let mut verdict = None;
    let mut tried: Option<Pairs> = None;
    for kind in KINDS {
        let pairs = Pairs::by_kind(topology, nranks, kind);
        if tried.as_ref() == Some(&pairs) {
            continue;
        }
        if let Some(order) = tried.as_ref().and_then(|better| islands::ring(better, &pairs)) {
            return Ok(order);
        }
        match hamilton::ring(&pairs) {
            RingSearch::Found { order, .. } => return Ok(order),
            failed => verdict = Some(failed),
        }
        tried = Some(pairs);
    }
    let ranks = format!("the {nranks} ranks of `{}`", topology.name());
    Err(match verdict {
        Some(RingSearch::GaveUp { steps, .. }) => {
            let title = format!("no ring was found through {ranks}");
            Problem::new(Code::NoRing, title)
                .note(format!(
                    "the search is exact up to {} ranks; beyond, it gave up after {steps} steps",
                    hamilton::EXACT
                ))
                .help("name the order of the ranks, if you know one")
        }
        verdict => {
            let title = format!("no ring passes through {ranks}");
            let mut problem = Problem::new(Code::NoRing, title);
            if let Some(RingSearch::None { proof }) = verdict {
                problem = problem.note(proof.to_string());
            }
            problem.help("use an algorithm that needs no ring, or let another rank relay")
        }
    })
}
