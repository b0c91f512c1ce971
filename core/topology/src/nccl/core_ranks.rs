//! Cores as ranks: their number as they are found, and the distances of their memory nodes.

use super::element::{Element, integer};
use super::ranks;
use crate::Problem;
use crate::file::File;

/// The cores of a machine as they are found.
pub(super) struct CoreRanks {
    pub(super) count: usize,
    /// The number of the island that the next core belongs to.
    pub(super) island: u32,
    pub(super) caches: u32,
    /// Whether memory nodes are islands: not where each has but one core.
    pub(super) apart: bool,
}

impl CoreRanks {
    /// Returns the cores of a machine, none of which is found yet; `None` where GPUs are the ranks.
    pub(super) fn new(root: &Element) -> Option<Self> {
        let several = |cpu: &Element| {
            cpu.all("core")
                .chain(cpu.all("l3").flat_map(|cache| cache.all("core")))
                .nth(1)
                .is_some()
        };
        let apart = root.all("cpu").any(several);
        (ranks::tag(root) == "core").then_some(Self { count: 0, island: 0, caches: 0, apart })
    }
}

/// Returns the distances of a memory node to those of its host, in their order in the file, 10 for itself; none where
/// the file has none.
pub(super) fn distances(file: File, cpu: &Element) -> Result<Vec<u64>, Problem> {
    let words = cpu.get("distance").unwrap_or_default().split_whitespace();
    let distance = |word| match integer(word) {
        Some(distance @ 10..=255) => Ok(distance as u64),
        _ => Err(file.wrong(cpu, "the `distance` of a <cpu> is no list of numbers from 10 to 255")),
    };
    words.map(distance).collect()
}
