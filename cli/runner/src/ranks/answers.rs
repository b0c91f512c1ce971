//! The process that is a rank: it answers the questions of the command, until there are no more or an answer is a
//! failure.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, Result, Write as _, stdin, stdout};
use std::process::id;

use roundelay::{DType, Options, ReduceOp};
use roundelay_core::counts::Counts;
use roundelay_core::verify::Proved;

use super::PlanShape;
use super::protocol::{Answer, Ask, Reply, Told};
use super::rank_state::{Held, HeldPlace};
use crate::again;
use crate::error::RunError;
use crate::launch::tie_to;

/// The first argument of a process that answers. It is no subcommand, which help and completions would list.
const WORD: &str = "answer-as-rank";

/// Returns the arguments of a process that answers this one; the command's own arguments follow them.
pub(super) fn arguments() -> [String; 2] {
    [WORD.to_owned(), id().to_string()]
}

/// Returns the command's own arguments, if this process was started to answer it; its life is tied to the command's.
/// `fail` says an error and returns its exit code.
pub fn become_rank(fail: fn(RunError) -> u8) -> Option<std::result::Result<Vec<OsString>, u8>> {
    let mut args = again::args().into_iter();
    let (word, asker) = (args.next()?, args.next()?);
    if word != WORD {
        return None;
    }
    let asker = asker.to_str()?.parse().ok()?;
    let tied = tie_to(asker).map_err(|error| error.map_or(1, fail));
    Some(tied.map(|()| args.collect()))
}

/// A function that finds and proves the algorithm of a plan, for a number of ranks.
pub type Find<'a> = dyn FnMut(u32, &PlanShape) -> std::result::Result<Proved, RunError> + 'a;

/// Returns the proof for a vector of counts, which the command has found before.
fn of_blocks(proved: &Proved, counts: &[u64]) -> std::result::Result<Proved, RunError> {
    let (collective, nranks) = (proved.schedule().collective, proved.schedule().nranks);
    let counts = Counts::new(collective, nranks, counts)?;
    proved.for_counts(&counts).map_err(|_| RunError::Unproved)
}

/// Answers all questions, and returns the exit code; `retype` takes the text that the process which asks has read from its
/// standard input.
pub fn answer(
    options: Options,
    alloc: bool,
    retype: fn(Option<String>),
    find: &mut Find<'_>,
) -> u8 {
    let (proved, traced) = (BTreeMap::new(), String::new());
    let rank = AnsweringRank { options, alloc, retype, place: None, held: None, proved, traced };
    match rank.serve(find) {
        Ok(true) => 0,
        // The command, if it still runs, reports the failure.
        Ok(false) | Err(_) => 1,
    }
}

struct AnsweringRank {
    options: Options,
    alloc: bool,
    retype: fn(Option<String>),
    place: Option<HeldPlace>,
    held: Option<Held>,
    /// The earlier proofs, by the index of the algorithm and by root.
    proved: BTreeMap<(usize, Option<u32>), Proved>,
    /// The record that is to be sent.
    traced: String,
}

impl AnsweringRank {
    /// Whether no answer was a failure.
    fn serve(mut self, find: &mut Find<'_>) -> Result<bool> {
        let mut to = stdout().lock();
        for line in stdin().lock().lines() {
            let ask: Ask = serde_json::from_str(&line?)?;
            let shown = match ask {
                Ask::Show { in_place } => Some(in_place),
                _ => None,
            };
            let reply: Reply = self.reply(ask, find).map_err(Told::from);
            serde_json::to_writer(&mut to, &reply)?;
            to.write_all(b"\n")?;
            to.write_all(std::mem::take(&mut self.traced).as_bytes())?;
            if let (Some(in_place), Some(held)) = (shown, &self.held) {
                to.write_all(held.shown(in_place))?;
            }
            to.flush()?;
            if reply.is_err() {
                // The other ranks need not wait for this rank.
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn reply(&mut self, ask: Ask, find: &mut Find<'_>) -> std::result::Result<Answer, RunError> {
        let mut answer = Answer::default();
        if let Ask::Join { typed } = ask {
            (self.retype)(typed);
            self.place = Some(HeldPlace::join(self.options, self.alloc)?);
            return Ok(answer);
        }
        let place = self.place.as_ref().expect("joining is asked for first");
        if let Ask::Plan(shape) = ask {
            let key = (shape.which, shape.root);
            let proved = match self.proved.remove(&key) {
                Some(proved) => proved,
                None => find(place.nranks(), &shape)?,
            };
            let dtype = DType::from_name(&shape.dtype).expect("dtypes have one name");
            let op = ReduceOp::from_name(&shape.op).expect("reduce ops have one name");
            let data = (shape.count, dtype, op);
            let planned = match &shape.counts {
                Some(counts) => of_blocks(&proved, counts)?,
                None => proved.clone(),
            };
            self.held = Some(place.hold(self.held.take(), &planned, data, shape.seed)?);
            self.proved.insert(key, proved);
            return Ok(answer);
        }
        if let Ask::KeepWays = ask {
            (answer.ways, answer.file) = place.keep_ways()?;
            return Ok(answer);
        }
        if let Ask::Trace = ask {
            self.traced = place.trace();
            answer.bytes = self.traced.len();
            return Ok(answer);
        }
        let held = self.held.as_mut().expect("a plan is asked for before it is run");
        match ask {
            Ask::Prepare { in_place } => held.prepare(in_place),
            Ask::Row { in_place, runs, rewrite: false, traced } => {
                answer.seconds = place.row(held, (in_place, traced), runs)?;
            }
            Ask::Row { in_place, runs, rewrite: true, traced } => {
                for _ in 0..runs {
                    held.rewrite(in_place);
                    answer.seconds += place.row(held, (in_place, traced), 1)?;
                }
            }
            Ask::Show { in_place } => answer.bytes = held.shown(in_place).len(),
            Ask::Join { .. } | Ask::Plan(_) | Ask::KeepWays | Ask::Trace => {
                unreachable!("answered above")
            }
        }
        Ok(answer)
    }
}
