//! Counts of the calls that were taken and passed on, for `ROUNDELAY_REPORT=1`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::call::MpiCollective;
use crate::contests::{Shape, Verdict};
use crate::seats::WorldWays;
use crate::why::Why;

/// The report of a program whose collectives did not come through the library.
pub(crate) const NOTHING: &str = "no collective came through the library: the program calls none that can be taken, or it asks MPI's library itself for the functions";

/// Counts of the calls of each collective.
#[derive(Debug, Default)]
pub(crate) struct CallReport {
    rows: BTreeMap<MpiCollective, ReportRow>,
    /// The contests that this rank took part in, in the order of their ends.
    decided: Vec<(Shape, Verdict)>,
    ways: WorldWays,
}

#[derive(Debug, Default)]
struct ReportRow {
    taken: u64,
    /// Calls that were ours, and returned an error.
    failed: u64,
    passed: BTreeMap<Why, u64>,
    algorithms: BTreeMap<String, u64>,
    time: Duration,
}

impl CallReport {
    pub(crate) fn passed(&mut self, what: MpiCollective, why: Why) {
        *self.rows.entry(what).or_default().passed.entry(why).or_default() += 1;
    }

    pub(crate) fn failed(&mut self, what: MpiCollective) {
        self.rows.entry(what).or_default().failed += 1;
    }

    pub(crate) fn decided(&mut self, shape: Shape, verdict: Verdict) {
        self.decided.push((shape, verdict));
    }

    pub(crate) fn chosen(&mut self, ways: WorldWays) {
        self.ways = ways;
    }

    pub(crate) fn taken(&mut self, what: MpiCollective, algorithm: &str, time: Duration) {
        let row = self.rows.entry(what).or_default();
        row.taken += 1;
        row.time += time;
        *row.algorithms.entry(algorithm.to_owned()).or_default() += 1;
    }
}

impl fmt::Display for CallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            writeln!(f, "roundelay: {NOTHING}")?;
        }
        for (what, row) in &self.rows {
            let ReportRow { taken, failed, passed, algorithms, time } = row;
            let left: u64 = passed.values().sum();
            let all = taken + left + failed;
            write!(f, "roundelay: {what} {all} calls, {taken} taken, {left} passed on")?;
            let list = |map: &BTreeMap<String, u64>| {
                let items: Vec<_> = map.iter().map(|(name, k)| format!("{name} {k}")).collect();
                items.join(", ")
            };
            if left > 0 {
                let why = passed.iter().map(|(why, calls)| (why.to_string(), *calls)).collect();
                write!(f, " ({})", list(&why))?;
            }
            if *failed > 0 {
                write!(f, ", {failed} failed")?;
            }
            if *taken > 0 {
                write!(f, "; {} us a taken call; by {}", micros(*time, *taken), list(algorithms))?;
            }
            writeln!(f)?;
        }
        for (shape, Verdict { ours, theirs, taken }) in &self.decided {
            let [ours, theirs] = [ours, theirs].map(|seconds| seconds * 1e6);
            let what = if *taken { "taken" } else { "passed on" };
            writeln!(f, "roundelay: {shape}: {ours:.1} us here, {theirs:.1} us by MPI: {what}")?;
        }
        for ((nranks, _), way) in &self.ways {
            writeln!(f, "roundelay: on {nranks} ranks, {way}")?;
        }
        Ok(())
    }
}

/// Returns the mean time of a call in microseconds.
fn micros(time: Duration, calls: u64) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e6 / calls as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_what_became_of_them() {
        let mut report = CallReport::default();
        assert_eq!(report.to_string().lines().count(), 1);
        report.passed(MpiCollective::Bcast, Why::Size);
        report.taken(MpiCollective::Bcast, "NhrBroadcast", Duration::from_micros(3));
        report.taken(MpiCollective::Bcast, "NhrBroadcast", Duration::from_micros(5));
        report.passed(MpiCollective::Allreduce, Why::Op);
        report.failed(MpiCollective::Allreduce);
        let verdict = Verdict { ours: 4.25e-6, theirs: 5e-6, taken: true };
        report.decided(Shape::new(MpiCollective::Bcast, 5000), verdict);
        assert_eq!(
            report.to_string(),
            "roundelay: Allreduce 2 calls, 0 taken, 1 passed on (an op that is not ours 1), 1 failed\n\
             roundelay: Bcast 3 calls, 2 taken, 1 passed on (MPI is as fast at this size 1); 4.0 us a taken call; by NhrBroadcast 2\n\
             roundelay: Bcast of 4 KB to 8 KB: 4.2 us here, 5.0 us by MPI: taken\n"
        );
    }
}
