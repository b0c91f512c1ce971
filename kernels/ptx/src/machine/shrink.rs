//! A failing run with fewer choices that are not plain.

use super::launch::{Failure, Launch};
use crate::choices::Choices;

/// A run that fails with few choices beyond the plain ones.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The failure.
    pub failure: Failure,
    /// The number of choices of the seed's run that were not plain: switches of threads, lanes taken apart, old values.
    pub choices_before: usize,
    /// The number of those that are left.
    pub choices: usize,
}

impl Launch<'_> {
    /// Makes the failing run of the seed smaller: leaves out choices that the failure does not need, in at most `runs`
    /// runs. None: the run does not fail.
    pub fn shrink(&self, runs: usize) -> Option<Shrunk> {
        let (choices, result) = self.run_by(Choices::recorded(self.seed));
        let mut failure = result.err()?;
        let mut left = choices.into_recorded();
        let choices_before = left.len();
        let mut chunk = left.len().next_power_of_two();
        let mut runs = runs;
        while chunk > 0 {
            let before = left.len();
            let mut start = 0;
            while start < left.len() && runs > 0 {
                let mut fewer = left.clone();
                fewer.drain(start..(start + chunk).min(left.len()));
                runs -= 1;
                match self.run_by(Choices::sparse(fewer.clone())).1 {
                    Err(smaller) if is_same(&smaller, &failure) => {
                        (failure, left) = (smaller, fewer);
                    }
                    _ => start += chunk,
                }
            }
            if chunk > 1 || left.len() == before {
                chunk /= 2;
            }
        }
        Some(Shrunk { failure, choices_before, choices: left.len() })
    }
}

/// Whether two failures are of one kind.
fn is_same(one: &Failure, other: &Failure) -> bool {
    match (one, other) {
        (Failure::Fault(one), Failure::Fault(other)) => {
            std::mem::discriminant(&one.kind) == std::mem::discriminant(&other.kind)
        }
        (one, other) => one == other,
    }
}
