//! The processes that are ranks, as the command that started them sees them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout};

use roundelay_core::diagnostics::Code;
use roundelay_core::trace::TraceText;

use super::PlanShape;
use super::answers::arguments;
use super::protocol::{Answer, Ask, Reply, Told};
use crate::error::RunError;
use crate::launch::{Child, Children};

/// The processes of this command, one for each rank. They end when this is dropped, or when this process ends.
pub struct Ranks {
    ranks: Vec<StartedRank>,
}

struct StartedRank {
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    process: Child,
}

impl Ranks {
    /// Starts the processes of `nranks` ranks, and brings them together; `typed` is the text that this process has read
    /// from its standard input, if it did.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn start(nranks: u32, typed: Option<String>) -> Result<Self, RunError> {
        let children = Children::new(nranks)?;
        let mut ranks = Self { ranks: Vec::new() };
        for rank in 0..nranks {
            let (asks, answers, process) = children.start(rank, &arguments())?;
            ranks.ranks.push(StartedRank { asks, answers: BufReader::new(answers), process });
        }
        ranks.ask(&Ask::Join { typed })?;
        Ok(ranks)
    }

    /// Returns the number of ranks.
    pub fn nranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Has all ranks make a plan, and buffers for it.
    pub fn plan(&mut self, shape: &PlanShape) -> Result<(), RunError> {
        self.ask(&Ask::Plan(shape.clone())).map(drop)
    }

    /// Writes the inputs, and clears the outputs.
    pub fn prepare(&mut self, in_place: bool) -> Result<(), RunError> {
        self.ask(&Ask::Prepare { in_place }).map(drop)
    }

    /// Runs `runs` times in a row, after the inputs were rewritten or not, recorded or not, and returns the seconds of the
    /// slowest rank.
    pub fn row(
        &mut self,
        in_place: bool,
        runs: u32,
        (rewrite, traced): (bool, bool),
    ) -> Result<f64, RunError> {
        let answers = self.ask(&Ask::Row { in_place, runs, rewrite, traced })?;
        Ok(answers.iter().map(|answer| answer.seconds).fold(0.0, f64::max))
    }

    /// Has the world add the ways that it has chosen to the host's file; returns that file, and the ways.
    pub fn keep_ways(&mut self) -> Result<(Option<String>, Vec<String>), RunError> {
        let answers = self.ask(&Ask::KeepWays)?;
        let first = answers.into_iter().next();
        Ok(first.map(|answer| (answer.file, answer.ways)).unwrap_or_default())
    }

    /// Moves the records of the traced runs to a trace.
    pub fn trace(&mut self, text: &mut TraceText) -> Result<(), RunError> {
        for at in 0..self.ranks.len() {
            let rank = &mut self.ranks[at];
            rank.ask(&Ask::Trace);
            let answer = rank.answer().ok_or_else(|| self.ended(at))??;
            let mut lines = vec![0; answer.bytes];
            let read = self.ranks[at].answers.read_exact(&mut lines);
            read.map_err(|_| self.ended(at))?;
            text.add(&String::from_utf8_lossy(&lines));
        }
        Ok(())
    }

    /// Brings the results of all ranks.
    pub fn fetch(&mut self, in_place: bool, results: &mut [&mut [u8]]) -> Result<(), RunError> {
        // The results are read one after the other: the pipes cannot hold all bytes at once.
        for (at, result) in results.iter_mut().enumerate() {
            let rank = &mut self.ranks[at];
            rank.ask(&Ask::Show { in_place });
            let answer = rank.answer().ok_or_else(|| self.ended(at))??;
            assert_eq!(answer.bytes, result.len(), "the output of rank {at}");
            let read = self.ranks[at].answers.read_exact(result);
            read.map_err(|_| self.ended(at))?;
        }
        Ok(())
    }

    /// Asks all ranks, and returns their answers, or the cause of a failure.
    fn ask(&mut self, ask: &Ask) -> Result<Vec<Answer>, RunError> {
        for rank in &mut self.ranks {
            rank.ask(ask);
        }
        let replies: Vec<Option<Reply>> = self.ranks.iter_mut().map(StartedRank::answer).collect();
        let gone = replies.iter().position(Option::is_none);
        let (mut answers, mut failures) = (Vec::new(), Vec::new());
        for reply in replies.into_iter().flatten() {
            match reply {
                Ok(answer) => answers.push(answer),
                Err(told) => failures.push(told),
            }
        }
        // A failure that a rank reports of itself is the cause of the failures that the other ranks report.
        failures.sort_by_key(Told::is_of_another);
        match (failures.into_iter().next(), gone) {
            (Some(cause), _) => Err(cause.into()),
            (None, Some(rank)) => Err(self.ended(rank)),
            (None, None) => Ok(answers),
        }
    }

    /// Returns the failure of a rank whose process ended.
    fn ended(&mut self, rank: usize) -> RunError {
        let how = self.ranks[rank].process.end();
        RunError::usage(Code::RankEnded, format!("the process of rank {rank} {how}"))
    }
}

impl StartedRank {
    fn ask(&mut self, ask: &Ask) {
        let mut line = serde_json::to_string(ask).expect("plain data serializes");
        line.push('\n');
        // A process that has ended does not answer.
        let _ = self.asks.write_all(line.as_bytes());
    }

    /// Returns `None` where the process ended instead.
    fn answer(&mut self) -> Option<Reply> {
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for rank in &self.ranks {
            rank.process.kill();
        }
        for rank in &mut self.ranks {
            rank.process.end();
        }
    }
}
