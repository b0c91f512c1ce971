//! The results of several sources in one line.

use roundelay_core::units::count;

use crate::report::took;
use crate::streams::remark;

/// The numbers of results so far.
#[derive(Default)]
pub(crate) struct Tally {
    /// Sources that were asked for.
    sources: usize,
    /// Of them, those without an algorithm to prove: they cannot be read, or have errors of syntax, names or types.
    unproved: usize,
    /// Algorithms that are proved.
    proved: usize,
    /// Of the proved ones, those that refuse rank counts that were asked for.
    partial: usize,
    /// Algorithms with errors.
    failed: usize,
}

impl Tally {
    /// Counts a source, by its exit code and the results of its algorithms.
    pub(crate) fn source(&mut self, code: u8, before: usize) {
        self.sources += 1;
        self.unproved += usize::from(code > 0 && self.algorithms() == before);
    }

    /// Counts an algorithm that is proved, or has errors.
    pub(crate) fn algorithm(&mut self, ok: bool, refuses: bool) {
        self.proved += usize::from(ok);
        self.partial += usize::from(ok && refuses);
        self.failed += usize::from(!ok);
    }

    /// Returns the number of algorithms so far.
    pub(crate) fn algorithms(&self) -> usize {
        self.proved + self.failed
    }

    /// Prints the line.
    pub(crate) fn print(&self, seconds: f64) {
        remark(&self.line(seconds));
    }

    fn line(&self, seconds: f64) -> String {
        let Self { sources, unproved, proved, partial, failed } = *self;
        let some = |number: usize, words: &str| match number {
            0 => String::new(),
            _ => format!(", {number} {words}"),
        };
        let color = if failed + unproved == 0 { "92" } else { "91" };
        let files = count(sources, "file");
        format!(
            "  \x1b[1;{color}mchecked\x1b[0m {files}{}: {proved} proved{}{} in {}",
            some(unproved, "of them wrong or missing"),
            some(partial, "of them not for all rank counts asked for"),
            some(failed, "failed"),
            took(seconds)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_several_sources() {
        let mut tally = Tally::default();
        tally.algorithm(true, false);
        tally.source(0, 0);
        let plain =
            |tally: &Tally| tally.line(1.25).replace("\x1b[1;92m", "").replace("\x1b[0m", "");
        assert_eq!(plain(&tally), "  checked 1 file: 1 proved in 1.2 s");
        tally.algorithm(true, true);
        tally.algorithm(false, true);
        tally.source(1, 1);
        tally.source(2, 3);
        let wrong = plain(&tally).replace("\x1b[1;91m", "");
        assert_eq!(
            wrong,
            "  checked 3 files, 1 of them wrong or missing: 2 proved, 1 of them not for all rank \
             counts asked for, 1 failed in 1.2 s"
        );
    }
}
