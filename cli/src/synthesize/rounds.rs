//! Schedules in rounds, for small sizes: by greedy matching, the best of several seeds in a simulated run; or of an exact
//! number of pieces, steps and rounds.

use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_synthesis::steps::{Answer, SendList, Size, exact, greedy};

use super::Synthesis;
use crate::progress;
use crate::report::Failure;
use crate::topo::{count, short};

/// The most conflicts of an exact search: some minutes.
const CONFLICTS: u64 = 1 << 22;

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
        let flags = self.flags;
        let root = RankId(flags.root);
        let parts =
            u64::from(chunks) * if flags.collective.is_rooted() { 1 } else { self.nranks.into() };
        let bytes = (flags.bytes.bytes / parts).max(1);
        let mut best: Option<(f64, u64, SendList)> = None;
        for seed in 0..u64::from(flags.seeds) {
            progress::about(format!("seed {seed}"));
            let list =
                greedy(self.topology, self.nranks, flags.collective, root, chunks, bytes, seed)?;
            let seconds = self.seconds_of(&list.page(&self.name()))?;
            if best.as_ref().is_none_or(|(known, ..)| seconds < *known) {
                best = Some((seconds, seed, list));
            }
        }
        let (seconds, seed, list) = best.expect("there is a seed");
        let line = format!(
            "Pieces are matched with free links, {} of a block; of {}, seed {seed} is the fastest.",
            count(chunks as usize, "piece"),
            count(flags.seeds as usize, "seed"),
        );
        let time = format!("Simulated, {} takes {} us.", flags.bytes.text, short(seconds * 1e6));
        let lines = [vec![line, time], self.of_constants()].concat();
        Ok(Found { list, lines, seconds })
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
        let root = RankId(self.flags.root);
        match exact(self.topology, self.nranks, self.flags.collective, root, size, CONFLICTS)? {
            Answer::Found(list) => {
                let seconds = self.seconds_of(&list.page(&self.name()))?;
                let text = &self.flags.bytes.text;
                let mut lines = vec![
                    format!("Found by an exact search: {what}."),
                    format!("Simulated, {text} takes {} us.", short(seconds * 1e6)),
                ];
                lines.extend(self.of_constants());
                Ok(Found { list, lines, seconds })
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

    /// The name of the algorithm on the page.
    pub(super) fn name(&self) -> String {
        format!("Scheduled{}", self.flags.collective)
    }
}
