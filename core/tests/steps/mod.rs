//! Schedules in rounds, each proved as a page.

mod exact;
mod greedy;

use roundelay_topology::Fabric;
use std::sync::Arc;

use roundelay_core::check::Frontend;
use roundelay_core::dtype::DType;
use roundelay_core::layout::Configured;
use roundelay_core::syntax::Source;
use roundelay_core::{compile, prove};
use roundelay_simulate::{Machine, simulate};
use roundelay_synthesis::steps::SendList;

/// Proves a schedule as a page, and returns its simulated time for blocks of `bytes` bytes, on the links of its
/// topology; `None` where some links have no way back for signals.
fn proved(topology: &Fabric, list: &SendList, bytes: u64) -> Option<f64> {
    let page = list.page("Found");
    let n = topology.nranks();
    let source = Source::from_text("found.coll", page.as_str());
    let checked = compile(&source, Frontend::File).unwrap_or_else(|e| panic!("{e:#?}\n{page}"));
    let algorithm = checked.algorithms.into_iter().next().unwrap();
    let proved = prove(&Configured::new(algorithm, &source), n);
    let proved = proved.unwrap_or_else(|found| panic!("{found:#?}\n{page}"));
    let pairs = || topology.ranks().flat_map(|a| topology.ranks().map(move |b| (a, b)));
    if pairs().any(|(a, b)| topology.are_linked(a, b) && !topology.are_linked(b, a)) {
        return None;
    }
    let machine = Machine::new(Arc::new(topology.clone().into()));
    // It refuses a move between ranks that are not linked.
    let simulated = simulate(proved.schedule(), &machine, bytes / 4, DType::F32, false);
    Some(simulated.unwrap_or_else(|found| panic!("{found:#?}\n{page}")).seconds)
}
