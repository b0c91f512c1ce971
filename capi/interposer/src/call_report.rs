//! Counts of the calls that were taken and passed on, for `ROUNDELAY_REPORT=1`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Counts of the calls of each function, with the reasons for which calls were passed on.
#[derive(Debug)]
pub struct CallReport<What, Why> {
    rows: BTreeMap<What, ReportRow<Why>>,
}

#[derive(Debug)]
struct ReportRow<Why> {
    taken: u64,
    failed: u64,
    passed: BTreeMap<Why, u64>,
    algorithms: BTreeMap<String, u64>,
    time: Duration,
}

impl<What, Why> Default for CallReport<What, Why> {
    fn default() -> Self {
        Self::new()
    }
}

impl<What, Why> CallReport<What, Why> {
    /// A report of no calls.
    pub const fn new() -> Self {
        Self { rows: BTreeMap::new() }
    }
}

impl<What: Ord, Why: Ord> CallReport<What, Why> {
    /// Whether no call was counted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Counts a call that the library behind makes.
    pub fn add_pass(&mut self, what: What, why: Why) {
        *self.row(what).passed.entry(why).or_default() += 1;
    }

    /// Counts a call that was not passed on, and returned an error.
    pub fn add_failure(&mut self, what: What) {
        self.row(what).failed += 1;
    }

    /// Counts a call that was made here, by this algorithm and in this time.
    pub fn add_take(&mut self, what: What, algorithm: &str, time: Duration) {
        let row = self.row(what);
        row.taken += 1;
        row.time += time;
        *row.algorithms.entry(algorithm.to_owned()).or_default() += 1;
    }

    fn row(&mut self, what: What) -> &mut ReportRow<Why> {
        self.rows.entry(what).or_insert_with(|| ReportRow {
            taken: 0,
            failed: 0,
            passed: BTreeMap::new(),
            algorithms: BTreeMap::new(),
            time: Duration::ZERO,
        })
    }
}

impl<What: fmt::Display, Why: fmt::Display> fmt::Display for CallReport<What, Why> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, row) in &self.rows {
            let ReportRow { taken, failed, passed, algorithms, time } = row;
            let left: u64 = passed.values().sum();
            let all = taken + left + failed;
            write!(f, "roundelay: {what} {all} calls, {taken} taken, {left} passed on")?;
            if left > 0 {
                write!(f, " ({})", list(passed))?;
            }
            if *failed > 0 {
                write!(f, ", {failed} failed")?;
            }
            if *taken > 0 {
                write!(f, "; {} us a taken call; by {}", micros(*time, *taken), list(algorithms))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Returns each key with its count.
fn list<Key: fmt::Display>(counts: &BTreeMap<Key, u64>) -> String {
    let items: Vec<_> = counts.iter().map(|(key, count)| format!("{key} {count}")).collect();
    items.join(", ")
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
        assert!(report.is_empty() && report.to_string().is_empty());
        report.add_pass("Bcast", "its size");
        report.add_take("Bcast", "NhrBroadcast", Duration::from_micros(3));
        report.add_take("Bcast", "NhrBroadcast", Duration::from_micros(5));
        report.add_pass("Allreduce", "its op");
        report.add_failure("Allreduce");
        assert_eq!(
            report.to_string(),
            "roundelay: Allreduce 2 calls, 0 taken, 1 passed on (its op 1), 1 failed\n\
             roundelay: Bcast 3 calls, 2 taken, 1 passed on (its size 1); 4.0 us a taken call; by NhrBroadcast 2\n"
        );
    }
}
