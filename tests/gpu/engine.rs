//! Engines that run kernels.

use roundelay::DType;
use roundelay_kernels::Stuck;

use super::cases::{Case, Way};

pub(crate) trait Engine: Sync {
    /// Describes the engine for the report.
    fn about(&self) -> String;

    /// Whether a kernel costs so much that there must be few.
    fn is_slow(&self) -> bool;

    /// Whether a whole run has a few element types of each algorithm, and few counts beside the usual number of ranks.
    fn is_brief(&self) -> bool {
        false
    }

    /// The number of elements where nothing speaks for another one, and a large number: nothing divides them.
    fn counts(&self) -> (usize, usize) {
        (1003, if self.is_slow() { 10_007 } else { 1_000_003 })
    }

    /// The rank counts of a whole run.
    fn rank_counts(&self) -> Vec<u32> {
        // Where blocks are threads, these take turns on a few cores.
        if self.is_slow() { vec![2, 3, 4, 7, 8, 16] } else { (2..=16).collect() }
    }

    /// Whether the engine runs kernels, each in a form and with a protocol; if not, only the schedule matters.
    fn has_kernels(&self) -> bool {
        true
    }

    /// The ways of launches besides one launch for all ranks.
    fn other_ways(&self) -> &[Way] {
        &[]
    }

    /// Why the engine has no kernels for elements of a type; `None` where it has them.
    fn lacks(&self, _: DType) -> Option<String> {
        None
    }

    /// Compiles the kernels of a run of this case. Threads do so ahead of the runs.
    fn prepare(&self, _case: &Case) -> Result<(), String> {
        Ok(())
    }

    /// Whether the device is of no use to this process any more, after a run that failed.
    fn is_lost(&self) -> bool {
        false
    }

    /// Returns the outputs of all ranks, equal after each of `repeats` consecutive launches.
    fn run(&self, case: &Case, in_place: bool, repeats: u32) -> Result<Vec<Vec<u8>>, String>;

    /// Returns the report of a run whose last rank never runs; an error if another rank is blamed, or none.
    fn without_last(&self, case: &Case) -> Result<String, String>;
}

/// The report of a wait, if it blames the last rank.
pub(crate) fn blames_last(stuck: &Stuck, nranks: u32) -> Result<String, String> {
    let last = nranks - 1;
    if stuck.waiting_on.ends_with(&format!("from rank {last}")) {
        Ok(stuck.to_string())
    } else {
        Err(format!("rank {last} is not blamed: {stuck}"))
    }
}
