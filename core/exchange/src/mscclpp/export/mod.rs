//! Writes a proved schedule as an execution plan: streams become thread blocks, signals between ranks become channels,
//! and signals between streams of a rank become semaphores. The text is read and proved before it is returned.

mod execution_plan;
mod moves;
mod pulls;
mod streams;
mod thread_blocks;

use self::execution_plan::{Plan, PlanBlock, PlanGpu};
use self::streams::{Grid, Streams};
use self::thread_blocks::Numbers;
use super::table::COLLECTIVES;
use crate::{Text, first_of_many};
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::layout::Algorithm;
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::verify::Proved;

/// The most blocks of a rank. Each block needs a multiprocessor, and all run at once; an A100 has 108.
const BLOCKS: usize = 108;
/// The most chunks of a buffer.
const CHUNKS: u64 = 1 << 20;

/// Returns the text of the plan of a schedule, for calls in place or with input and output apart.
///
/// # Errors
/// E0704 for an algorithm that plans or the executor cannot express; E0408 for an algorithm without an in-place form.
pub fn export(proved: &Proved, in_place: bool) -> Result<String, Vec<Finding>> {
    let by_switch = proved.by_switch().filter(|proved| has_ops_for_switch(proved.schedule()));
    let schedule = by_switch.as_ref().unwrap_or(proved).schedule();
    if in_place && !proved.proof().in_place {
        let title = "this algorithm has no in-place form".to_owned();
        return Err(vec![Finding::new(Code::NoInPlace, SpanId::default(), title)]);
    }
    if let Some(late) = schedule.rounds_late() {
        return Err(vec![*late]);
    }
    let plan = plan(schedule, in_place).map_err(|finding| vec![*finding])?;
    let text = plan.text();
    check(schedule, &text, in_place)?;
    Ok(text)
}

/// Whether each move of a switch is an op of the executor: it stores the sum of all ranks' chunks in their place, or a chunk
/// of its own rank at all ranks.
fn has_ops_for_switch(schedule: &Schedule) -> bool {
    schedule.ops.iter().filter(|op| op.switch).all(|op| {
        let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
        dsts.len() > 1 && (srcs.len() == 1 || srcs == dsts)
    })
}

/// Checks whether a plan of an algorithm for `nranks` ranks fits the executor, as far as the schedule of rank 0 shows:
/// for many ranks this is much faster than a proof of the whole schedule.
///
/// # Errors
/// The E0704 errors of [`export`] that rank 0 has.
pub fn fits<A: Algorithm + ?Sized>(algorithm: &A, nranks: u32) -> Result<(), Vec<Finding>> {
    let Some(own) = first_of_many(algorithm, nranks) else { return Ok(()) };
    collective(&own).and_then(|_| first_rank(&own)).map_err(|finding| vec![*finding])
}

/// Checks that the blocks of rank 0 run at once, without the blocks that only serve other ranks.
fn first_rank(own: &Schedule) -> Result<(), Box<Finding>> {
    let grid = grid(own)?;
    let streams = Streams::new(own, &grid, false)?;
    few(&streams.blocks(RankId(0), &mut Numbers::default()).0)
}

fn refused(at: SpanId, title: impl Into<String>) -> Box<Finding> {
    Box::new(Finding::new(Code::NotExportable, at, title.into()))
}

/// Returns the executor's name of the collective.
fn collective(schedule: &Schedule) -> Result<&'static str, Box<Finding>> {
    let known = COLLECTIVES.into_iter().find(|(known, _)| *known == schedule.collective);
    known.map(|(_, word)| word).ok_or_else(|| {
        let other = schedule.collective;
        let title = format!("no plan is for {other}: a plan does not say which rank is the root");
        refused(SpanId::default(), title)
    })
}

fn grid(schedule: &Schedule) -> Result<Grid, Box<Finding>> {
    Grid::new(schedule, CHUNKS).ok_or_else(|| {
        let title = format!("the data is cut into more than {CHUNKS} equal chunks");
        refused(SpanId::default(), title)
    })
}

/// Refuses a rank with more blocks than run at once.
fn few(blocks: &[PlanBlock]) -> Result<(), Box<Finding>> {
    if blocks.len() <= BLOCKS {
        return Ok(());
    }
    let title = format!("{} blocks of a rank, and {BLOCKS} run at once", blocks.len());
    Err(refused(SpanId::default(), title))
}

fn plan(schedule: &Schedule, in_place: bool) -> Result<Plan, Box<Finding>> {
    let collective = collective(schedule)?;
    let grid = grid(schedule)?;
    let streams = Streams::new(schedule, &grid, in_place)?;
    let mut gpus = Vec::new();
    for rank in (0..schedule.nranks).map(RankId) {
        let mut numbers = Numbers::default();
        let (blocks, spare) = streams.blocks(rank, &mut numbers);
        few(&blocks)?;
        let chunks = |buffer| grid.chunks(schedule.units(buffer, rank));
        gpus.push(PlanGpu {
            chunks: [chunks(Buffer::Input), chunks(Buffer::Output), grid.scratch() + spare],
            blocks,
            channels: streams.channels(rank),
            remotes: numbers.remotes,
            switches: numbers.switches,
            semaphores: numbers.semaphores,
        });
    }
    let size = gpus.iter().flat_map(|gpu| gpu.chunks).max().unwrap_or(1).max(1);
    let of_call = match schedule.collective {
        Collective::AllGather => gpus[0].chunks[1],
        _ => gpus[0].chunks[0],
    };
    // Offsets have 32 bits.
    let max_bytes = u64::from(u32::MAX) / u64::from(size) * u64::from(of_call);
    Ok(Plan { name: schedule.algorithm.clone(), collective, in_place, max_bytes, gpus })
}

/// Reads and proves the text of a plan.
fn check(schedule: &Schedule, text: &str, in_place: bool) -> Result<(), Vec<Finding>> {
    let Text { source, program, errors, .. } = super::read("plan.json", text.as_bytes());
    let verdict = program.map(|program| (program.header.clone(), program.verdict(&source)));
    let wrong = match &verdict {
        Some((header, verdict)) => {
            let same = header.collective == Some(schedule.collective)
                && header.nranks == schedule.nranks
                && header.in_place == in_place;
            match verdict.errors().next() {
                Some(error) => Some(format!("{}: {}", error.code, error.title)),
                None => (!same || verdict.modes[0].proved.is_none()).then(|| "its head".to_owned()),
            }
        }
        None => Some(errors.first().map_or_else(String::new, |error| error.title.clone())),
    };
    match wrong {
        None => Ok(()),
        Some(why) => {
            let title = format!("the plan that was made is not right: {why}");
            Err(vec![Finding::new(Code::Unproved, SpanId::default(), title)])
        }
    }
}
