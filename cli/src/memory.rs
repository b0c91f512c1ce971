//! How much memory a run may take: asking for more is an error before anything is touched.

use roundelay::{DType, Schedule};
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::schedule::Buffer;

use crate::report::Failure;

/// Bytes of the scratch of all ranks, and of those of their other `buffers`.
pub(crate) fn needed(schedule: &Schedule, count: u64, dtype: DType, buffers: &[Buffer]) -> u128 {
    let scratch = (0..schedule.scratch.len() as u32).map(|id| Buffer::Scratch(ScratchId(id)));
    let buffers: Vec<Buffer> = buffers.iter().copied().chain(scratch).collect();
    let elements: u128 = (0..schedule.nranks)
        .flat_map(|rank| buffers.iter().map(move |buffer| (RankId(rank), *buffer)))
        .map(|(rank, buffer)| u128::from(schedule.elements(buffer, rank, count)))
        .sum();
    elements * dtype.size() as u128
}

/// Refuses a run of `bytes` on a machine that has less.
pub(crate) fn admit(bytes: u128) -> Result<(), Failure> {
    admit_to(bytes, available())
}

/// Refuses a run of `bytes` where so many are available.
pub(crate) fn admit_to(bytes: u128, available: u64) -> Result<(), Failure> {
    if bytes <= u128::from(available) {
        return Ok(());
    }
    let (gib, has) = (bytes as f64 / f64::from(1 << 30), available as f64 / f64::from(1 << 30));
    Err(Failure::usage(
        Code::TooLarge,
        format!("the run needs {gib:.1} GiB of memory, and {has:.1} GiB are available"),
    )
    .with_help("lower --count or --nranks"))
}

/// Bytes that can be had without swapping; unlimited where the system does not say.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    text.lines()
        .find_map(|line| {
            line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        })
        .map_or(u64::MAX, |kib| kib.saturating_mul(1024))
}
