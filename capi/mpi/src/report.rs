//! The report of a job's calls, for `ROUNDELAY_REPORT=1`.

use std::fmt;

use roundelay_interposer::{CallReport, Shape, Verdict};

use crate::call::MpiCollective;
use crate::seats::WorldWays;
use crate::why::Why;

/// The report of a program whose collectives did not come through the library.
pub(crate) const NOTHING: &str = "no collective came through the library: the program calls none that can be taken, or it asks MPI's library itself for the functions";

/// The calls of each collective, and what was decided about them.
#[derive(Debug, Default)]
pub(crate) struct MpiReport {
    pub(crate) calls: CallReport<MpiCollective, Why>,
    /// The contests that this rank took part in, in the order of their ends.
    decided: Vec<(Shape<MpiCollective>, Verdict)>,
    ways: WorldWays,
}

impl MpiReport {
    pub(crate) fn decided(&mut self, shape: Shape<MpiCollective>, verdict: Verdict) {
        self.decided.push((shape, verdict));
    }

    pub(crate) fn chosen(&mut self, ways: WorldWays) {
        self.ways = ways;
    }
}

impl fmt::Display for MpiReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.calls.is_empty() {
            writeln!(f, "roundelay: {NOTHING}")?;
        }
        write!(f, "{}", self.calls)?;
        for (shape, verdict) in &self.decided {
            f.write_str(&verdict.line(shape, "MPI"))?;
        }
        for ((nranks, _), way) in &self.ways {
            writeln!(f, "roundelay: on {nranks} ranks, {way}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contests_are_behind_the_calls() {
        let mut report = MpiReport::default();
        assert_eq!(report.to_string(), format!("roundelay: {NOTHING}\n"));
        report.calls.add_pass(MpiCollective::Bcast, Why::Size);
        let verdict = Verdict { ours: 4.25e-6, theirs: 5e-6, taken: true };
        report.decided(Shape::new(MpiCollective::Bcast, 5000), verdict);
        assert_eq!(
            report.to_string(),
            "roundelay: Bcast 1 calls, 0 taken, 1 passed on (MPI is as fast at this size 1)\n\
             roundelay: Bcast of 4 KB to 8 KB: 4.2 us here, 5.0 us by MPI: taken\n"
        );
    }
}
