//! The machine of a found executor, as a text of the language: an executor names its machine by such a text, all of whose
//! ranks take part.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use roundelay_core::topology::Topology;
use roundelay_core::units::{rate_text, time_text};
use roundelay_topology::Link;

/// Returns the text of the first ranks of a topology as a full mesh with dead links; `None` if they have links to
/// switches, in one direction alone, or of several kinds.
pub fn mesh(topology: &Topology, nranks: u32) -> Option<String> {
    let out = |link: &&Link| link.from.0 < nranks;
    let mut linked = BTreeSet::new();
    let mut kind = None;
    for link in topology.links().iter().filter(out) {
        if !topology.is_rank(link.to) {
            return None;
        }
        let this = (link.capacity, link.latency);
        if link.to.0 < nranks && *kind.get_or_insert(this) != this {
            return None;
        }
        linked.insert((link.from.0, link.to.0));
    }
    let mut text = format!("full_mesh({nranks}");
    if let Some((capacity, latency)) = kind {
        match (topology.is_relative(), capacity.num(), capacity.den()) {
            (true, 1, 1) => {}
            (false, rate, 1) => {
                let _ = write!(text, ", {}", rate_text(rate));
            }
            _ => return None,
        }
        if latency > 0 {
            let _ = write!(text, ", {}", time_text(latency));
        }
    }
    text.push(')');
    for (a, b) in (0..nranks).flat_map(|a| (a + 1..nranks).map(move |b| (a, b))) {
        match (linked.contains(&(a, b)), linked.contains(&(b, a))) {
            (true, true) => {}
            (false, false) => {
                let _ = write!(text, " without ({a}, {b})");
            }
            _ => return None,
        }
    }
    Some(text)
}
