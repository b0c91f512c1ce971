//! `roundelay ps`: the worlds of this host's processes, as they are at this moment. It only reads, and no rank notices.

mod ps_flags;
mod ranks_json;
mod tables;

use std::thread;
use std::time::Duration;

use roundelay_core::diagnostics::Code;
use roundelay_kernels::shared_memory::observe::{self, Observed, ObservedProcess, ObservedWorld};

use crate::report::Failure;
use crate::streams::{print, print_json};
pub(crate) use ps_flags::PsFlags;

/// The time between two looks of `--watch`.
const AGAIN: Duration = Duration::from_secs(1);

pub(crate) fn main(flags: &PsFlags) -> Result<bool, Failure> {
    loop {
        let mut seen = observe::all();
        if let Some(pid) = flags.of {
            seen.worlds.retain(|world| processes(world).any(|rank| rank.descends_from(pid)));
        }
        seen.worlds.sort_by_key(|world| (job(world).map(|process| process.parent), world.id));
        if seen.worlds.is_empty() && flags.of.is_some() && !flags.watch {
            return Err(nothing(flags.of.unwrap_or_default(), &seen));
        }
        if flags.json {
            print_json(&ranks_json::document(&seen));
        } else {
            print(tables::text(&seen, flags.calls).trim_end());
        }
        if !flags.watch {
            return Ok(true);
        }
        thread::sleep(AGAIN);
        if !flags.json {
            print("");
        }
    }
}

/// Returns the error of a process that is in no world.
fn nothing(pid: u32, seen: &Observed) -> Failure {
    let title =
        format!("neither process {pid} nor any process that it started is a rank of a world");
    let failure = Failure::usage(Code::BadFlag, title);
    match &seen.refused[..] {
        [] => failure.with_help("`roundelay ps` without a number shows all worlds of this user"),
        refused => failure.with_help(format!("some cannot be read: {}", refused.join("; "))),
    }
}

/// Returns the processes of a world's ranks, as far as they are there.
fn processes(world: &ObservedWorld) -> impl Iterator<Item = &ObservedProcess> {
    world.ranks.iter().filter_map(|rank| rank.process.as_ref())
}

/// Returns the process whose parent is the job of a world: the first rank that is there.
fn job(world: &ObservedWorld) -> Option<&ObservedProcess> {
    processes(world).next()
}
