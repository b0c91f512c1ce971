//! Schedules in rounds, for small sizes: by greedy matching, the best of several seeds in a simulated run; or of an exact
//! number of pieces, steps and rounds.

use roundelay_core::diagnostics::Code;
use roundelay_synthesis::steps::{Answer, SendList, Size};

use super::Synthesis;
use crate::progress;
use crate::report::Failure;
use crate::topo::{count, short};

/// A page, and the lines at its head that tell how it was found.
pub(super) struct Found {
    pub(super) list: SendList,
    pub(super) lines: Vec<String>,
    /// The seconds of a simulated run.
    pub(super) seconds: f64,
}

impl Synthesis<'_> {
    /// Returns the best schedule of some seeds, each with as many pieces of a block.
    pub(super) fn matched(&self, chunks: u32) -> Result<Found, Failure> {
        let seeds = self.flags.seeds;
        let (list, seed, seconds) = self.search.match_rounds(chunks, seeds)?;
        let line = format!(
            "Pieces are matched with free links, {} of a block; of {}, seed {seed} is the fastest.",
            count(chunks as usize, "piece"),
            count(seeds as usize, "seed"),
        );
        Ok(self.timed(list, line, seconds))
    }

    /// Returns a schedule of exactly this size.
    pub(super) fn exactly(&self, size: Size) -> Result<Found, Failure> {
        let Size { chunks, steps, rounds } = size;
        let what = format!(
            "{}, {} and {}",
            count(chunks as usize, "piece"),
            count(steps as usize, "step"),
            count(rounds as usize, "round")
        );
        progress::about(what.clone());
        match self.search.exactly(size)? {
            Answer::Found(list) => {
                let seconds = self.search.seconds_of(&list.page(&self.search.name()))?;
                Ok(self.timed(list, format!("Found by an exact search: {what}."), seconds))
            }
            Answer::None => {
                let title = format!("there is no {} of {what}", self.flags.collective);
                Err(Failure::usage(Code::BadParameter, title)
                    .with_help("this is proved: take fewer pieces, or more rounds or steps"))
            }
            Answer::Unknown => {
                let title = format!("the search for {what} was given up");
                Err(Failure::usage(Code::StepLimit, title).with_help("take fewer pieces or rounds"))
            }
        }
    }

    fn timed(&self, list: SendList, line: String, seconds: f64) -> Found {
        let text = &self.flags.bytes.text;
        let time = format!("Simulated, {text} takes {} us.", short(seconds * 1e6));
        Found { list, lines: [vec![line, time], self.of_constants()].concat(), seconds }
    }
}
