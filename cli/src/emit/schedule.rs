//! `emit schedule` and `emit steps`: an algorithm at a rank count, or a program for MSCCL, op by op and step by step.

use std::fmt::Write as _;
use std::sync::Arc;

use roundelay::Algorithm as _;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::one_rank;
use roundelay_core::schedule::{Schedule, text};
use roundelay_core::source::Span;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
use roundelay_export::steps;

use super::{ScheduleFlags, StepsFlags, for_each_count, placed, wrong};
use crate::lints::LintFlags;
use crate::msccl;
use crate::report::{Failure, Format};
use crate::texts::{Texts, stem};

pub(super) fn schedule(flags: &ScheduleFlags, to: &Texts) -> Result<(), Failure> {
    if msccl::is_program(&flags.source.source) {
        return of_program(flags, to, |schedule| Ok(text::print(schedule)));
    }
    for_each_count(flags, to, |algorithm, nranks| {
        let schedule = of_blocks(algorithm, nranks, flags);
        let printed = schedule.map(|schedule| text::print(&schedule));
        Ok(printed.map_err(|all| placed(algorithm, nranks, all)))
    })
}

pub(super) fn steps(flags: &StepsFlags, to: &Texts) -> Result<(), Failure> {
    let StepsFlags { of, rank } = flags;
    if msccl::is_program(&of.source.source) {
        return match rank.rank {
            None => of_program(of, to, |schedule| table(schedule, &[])),
            Some(_) => {
                let title = "--rank does not go with a program for MSCCL";
                Err(Failure::usage(Code::BadCall, title)
                    .with_help("`emit steps` prints all its ranks"))
            }
        };
    }
    for_each_count(of, to, |algorithm, nranks| {
        let printed = match rank.of(nranks)? {
            Some(rank) if of.blocks.any() => {
                of_blocks(algorithm, nranks, of).map(|schedule| streams_of(&schedule, rank))
            }
            Some(rank) => {
                one_rank(algorithm, nranks, rank).map(|schedule| streams_of(&schedule, rank))
            }
            None if of.blocks.any() => {
                let title = "`emit steps` with --counts prints the ops of one rank";
                return Err(Failure::usage(Code::BadFlag, title).with_help("add --rank 0"));
            }
            None => algorithm
                .schedule(nranks)
                .and_then(|schedule| table(&schedule, &of.source.settings)),
        };
        Ok(printed.map_err(|all| placed(algorithm, nranks, all)))
    })
}

/// Prints a text of the schedule that a program for MSCCL was proved as.
fn of_program(
    flags: &ScheduleFlags,
    to: &Texts,
    text: impl Fn(&Schedule) -> Result<String, Vec<Finding>>,
) -> Result<(), Failure> {
    msccl::counts_ranks(flags.nranks.is_some())?;
    let (path, lints) = (&flags.source.source, &flags.source.lints);
    let (source, proved) = program(path, lints)?;
    to.put(stem(path), &whole(text(proved.schedule()), &source)?)
}

/// Reads and proves a program for MSCCL.
pub(super) fn program(path: &str, lints: &LintFlags) -> Result<(Arc<Source>, Proved), Failure> {
    msccl::proved(path, lints, false, Format::Human)
}

/// Makes a text of a program for MSCCL; findings are reported for the whole file.
pub(super) fn whole(
    text: Result<String, Vec<Finding>>,
    source: &Source,
) -> Result<String, Failure> {
    text.map_err(|findings| {
        let whole = |finding: Finding| {
            let said = Diagnostic::new(finding.code, Span::default(), finding.title);
            finding.notes.into_iter().fold(said, Diagnostic::note)
        };
        wrong(&findings.into_iter().map(whole).collect::<Vec<_>>(), source)
    })
}

/// Returns a text with an op a line, stream by stream, each with the line of the source that it stands in.
fn streams_of(schedule: &Schedule, rank: RankId) -> String {
    let mut out = format!("rank {rank} of {}:", schedule.nranks);
    let streams: Vec<_> = schedule.streams.iter().filter(|stream| stream.rank == rank).collect();
    for stream in &streams {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        if streams.len() > 1 {
            let _ = write!(out, "\nstream {}", stream.index);
        }
        for op in ops {
            let line = schedule.location(op.at).line;
            let _ = write!(out, "\n  {}  line {line}", text::op(schedule, op));
        }
    }
    out
}

/// Returns the schedule of an algorithm; with counts for its blocks, the proved schedule of elements.
fn of_blocks(
    algorithm: &Configured,
    nranks: u32,
    flags: &ScheduleFlags,
) -> Result<Schedule, Vec<Finding>> {
    let schedule = algorithm.schedule(nranks)?;
    if !flags.blocks.any() {
        return Ok(schedule);
    }
    let proved = Proved::new(schedule)?;
    let uneven = flags.blocks.of(&proved)?;
    Ok(Schedule::clone(uneven.as_ref().unwrap_or(&proved).schedule()))
}

/// Returns a text with a line a step, however long, under the heading of the schedule.
fn table(schedule: &Schedule, settings: &[(String, String)]) -> Result<String, Vec<Finding>> {
    let steps = steps::steps(schedule)?;
    let lines = steps.lines(usize::MAX);
    Ok([vec![steps.heading(settings)], lines].concat().join("\n"))
}
