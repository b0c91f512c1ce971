//! The records that the ranks of a suite wrote of its cases.

use std::collections::{BTreeMap, BTreeSet};

/// The result of a case, the best first: the worst of all ranks counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Skipped,
    Passed,
    Failed(String),
}

/// The records of all ranks together.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub(super) cases: BTreeMap<String, Outcome>,
    /// The last case that a rank began and did not end, in the order of the cases.
    pub(super) unfinished: Option<String>,
    /// Whether all ranks came to the end of the suite.
    pub(super) complete: bool,
}

impl Records {
    /// Reads one text of each rank.
    pub(super) fn read(ranks: &[String]) -> Self {
        let mut records = Self { complete: !ranks.is_empty(), ..Self::default() };
        let mut furthest = 0;
        for (rank, text) in ranks.iter().enumerate() {
            let mut begun: Option<&str> = None;
            let mut number = 0;
            for line in text.lines() {
                let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
                let outcome = match word {
                    "begin" => {
                        begun = Some(rest);
                        number += 1;
                        continue;
                    }
                    "end" => {
                        begun = None;
                        continue;
                    }
                    "passed" => Outcome::Passed,
                    "skipped" => Outcome::Skipped,
                    "failed" => Outcome::Failed(format!("rank {rank}: {rest}")),
                    _ => continue,
                };
                if let Some(case) = begun {
                    records.add(case, outcome);
                }
            }
            records.complete &= text.lines().last() == Some("done");
            if let Some(case) = begun {
                records.add(case, Outcome::Failed(format!("rank {rank}: it did not end")));
                if number > furthest {
                    furthest = number;
                    records.unfinished = Some(case.to_owned());
                }
            }
        }
        records
    }

    fn add(&mut self, case: &str, outcome: Outcome) {
        let known = self.cases.entry(case.to_owned()).or_insert_with(|| outcome.clone());
        *known = known.clone().max(outcome);
    }

    /// Adds the records of another part of the suite.
    pub(super) fn append(&mut self, other: Self) {
        for (case, outcome) in other.cases {
            self.add(&case, outcome);
        }
        (self.unfinished, self.complete) = (other.unfinished, other.complete);
    }

    /// Adds a failure that is of no case.
    pub(super) fn fail(&mut self, what: &str, why: &str) {
        self.add(what, Outcome::Failed(why.to_owned()));
    }

    /// Returns the number of cases that passed, and the number that were left out.
    pub(super) fn counts(&self) -> (usize, usize) {
        let count = |wanted: &Outcome| self.cases.values().filter(|found| *found == wanted).count();
        (count(&Outcome::Passed), count(&Outcome::Skipped))
    }

    /// Returns the cases that failed.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.failed().into_iter().map(|(case, _)| case.to_owned()).collect()
    }

    /// Returns the cases that failed, each with a reason.
    pub(super) fn failed(&self) -> Vec<(&str, &str)> {
        let failed = self.cases.iter().filter_map(|(case, outcome)| match outcome {
            Outcome::Failed(why) => Some((case.as_str(), why.as_str())),
            Outcome::Passed | Outcome::Skipped => None,
        });
        failed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ranks: &[&str]) -> Records {
        Records::read(&ranks.iter().map(|text| text.replace("; ", "\n")).collect::<Vec<_>>())
    }

    #[test]
    fn of_all_ranks_the_worst_counts() {
        let records = read(&[
            "begin a; passed; end; begin b; skipped no such type; end; begin c; passed; end; done",
            "begin a; passed; end; begin b; passed; end; begin c; failed 3 != 4; end; done",
        ]);
        assert!(records.complete);
        assert_eq!(records.counts(), (2, 0));
        assert_eq!(records.failed(), [("c", "rank 1: 3 != 4")]);
        assert_eq!(read(&["begin a; skipped; end; done"]).counts(), (0, 1));
    }

    #[test]
    fn a_case_that_does_not_end_has_failed_and_the_suite_goes_on_after_the_last_of_them() {
        let records = read(&[
            "begin a; passed; end; begin b",
            "begin a; passed; end; begin b; passed; end; begin c",
        ]);
        assert!(!records.complete);
        assert_eq!(records.unfinished.as_deref(), Some("c"));
        assert_eq!(
            records.failed(),
            [("b", "rank 0: it did not end"), ("c", "rank 1: it did not end")]
        );
        let mut all = records;
        all.append(read(&["begin d; passed; end; done", "begin d; passed; end; done"]));
        assert!(all.complete && all.unfinished.is_none());
        assert_eq!((all.counts(), all.failed().len()), ((2, 0), 2));
    }

    #[test]
    fn parts_of_a_case_that_fail_are_no_end() {
        let records =
            read(&["begin a; failed part 1; failed part 2; end; begin b; passed; end; done"]);
        assert!(records.complete);
        assert_eq!(records.counts(), (1, 0));
        assert_eq!(records.failed().len(), 1);
        assert!(!read(&[]).complete);
    }
}
