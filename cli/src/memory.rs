//! How much memory a run may take: asking for more is an error before anything is touched.

use roundelay_core::diagnostics::Code;

use crate::report::Failure;

/// Refuses a run of `bytes` on a machine that has less.
pub(crate) fn admit(bytes: u128) -> Result<(), Failure> {
    let available = available();
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
