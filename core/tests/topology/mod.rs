//! Topologies: the layout of the constructors, their text form, and the faults of bad ones.

mod files;
mod links;
mod ns3;
mod shapes;
mod text;

use roundelay_core::check;
use roundelay_core::ids::RankId;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;

/// The topology of a text that is right.
fn read(text: &str) -> Topology {
    let source = Source::from_text("topology", text);
    check::topology::read(&source)
        .unwrap_or_else(|errors| panic!("{text}: {}", errors[0].report(&source)))
}

/// Returns the errors of a text: `E0601 title`, one error per line.
fn wrong(text: &str) -> String {
    let source = Source::from_text("topology", text);
    let errors = check::topology::read(&source).expect_err(text);
    let lines: Vec<_> = errors.iter().map(|e| format!("{} {}", e.code, e.title)).collect();
    lines.join("\n")
}

fn ranks(ranks: &[u32]) -> Vec<RankId> {
    ranks.iter().copied().map(RankId).collect()
}
