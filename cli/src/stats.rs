//! `check --stats`: the costs of a proof. Time stage by stage, ops a second, and the most memory that the process has
//! held.

use std::time::Duration;

use roundelay_core::stages::Spent;
use serde::Serialize;

use crate::report::took;
use crate::streams::print;

#[derive(Serialize)]
pub(crate) struct Stats {
    stages: Vec<Stage>,
    ops_per_second: f64,
    /// The peak of the whole process, up to now; absent where the system does not report it.
    peak_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Stage {
    name: &'static str,
    seconds: f64,
}

impl Stats {
    pub(crate) fn new(spent: Vec<Spent>, ops: usize) -> Self {
        let all: Duration = spent.iter().map(|(_, took)| *took).sum();
        let stage = |(name, took): Spent| Stage { name, seconds: took.as_secs_f64() };
        Self {
            stages: spent.into_iter().map(stage).collect(),
            ops_per_second: ops as f64 / all.as_secs_f64().max(f64::MIN_POSITIVE),
            peak_bytes: peak(),
        }
    }

    pub(crate) fn print(&self) {
        let stages: Vec<_> = self
            .stages
            .iter()
            .map(|stage| format!("{} {}", stage.name, took(stage.seconds)))
            .collect();
        let memory = self.peak_bytes.map_or_else(String::new, |bytes| {
            format!(", peak memory {:.1} MiB", bytes as f64 / f64::from(1 << 20))
        });
        print(&format!(
            "          {}; {:.2} million ops a second{memory}",
            stages.join(", "),
            self.ops_per_second / 1e6
        ));
    }
}

/// Returns the most memory that this process has held at once.
pub(crate) fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}
