//! The least that a collective must read and write, by its contract: each part of an input that an output needs, read
//! once; each part of an output, written once. Schedules play no role.

use std::collections::BTreeMap;

use roundelay_core::collective::{Collective, Expected};
use roundelay_core::ids::RankId;

/// Units of inputs that are added up (or one that is copied), and the units of outputs that receive the result. All
/// have one length.
pub(super) struct SumJob {
    pub(super) srcs: Vec<*const u8>,
    pub(super) dsts: Vec<*mut u8>,
}

/// The jobs of a collective whose units have `unit` bytes.
///
/// # Panics
/// If a buffer is shorter than the contract says.
pub(super) fn jobs(
    collective: Collective,
    root: RankId,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    unit: usize,
) -> Vec<SumJob> {
    let nranks = inputs.len() as u32;
    let source = |rank: RankId, k: u32| inputs[rank.index()][k as usize * unit..][..unit].as_ptr();
    // Each buffer is borrowed once: a second borrow of the whole would end an earlier borrow of a part.
    let outputs: Vec<(*mut u8, usize)> =
        outputs.iter_mut().map(|output| (output.as_mut_ptr(), output.len())).collect();
    let destination = |rank: RankId, k: u32| {
        let (at, len) = outputs[rank.index()];
        let from = k as usize * unit;
        assert!(from + unit <= len, "rank {rank} has an output of {len} bytes");
        at.wrapping_add(from)
    };
    let mut jobs: BTreeMap<(u32, u32), SumJob> = BTreeMap::new();
    for rank in (0..nranks).map(RankId) {
        for k in 0..collective.output_units(rank, nranks, root) {
            let (key, ranks, from) = match collective.expected_value(rank, k, root) {
                Expected::Reduced { unit } => ((0, unit), 0..nranks, unit),
                Expected::Copied { rank, unit } => ((rank.0, unit), rank.0..rank.0 + 1, unit),
            };
            let job = jobs.entry(key).or_insert_with(|| SumJob {
                srcs: ranks.map(|rank| source(RankId(rank), from)).collect(),
                dsts: Vec::new(),
            });
            job.dsts.push(destination(rank, k));
        }
    }
    jobs.into_values().collect()
}
