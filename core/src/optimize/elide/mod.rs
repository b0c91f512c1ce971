//! Signal elision: drops signals whose order other signals imply, each post with its wait.
//!
//! The orders that the proof needs stay: of conflicting accesses, in place and out of place; of scratch between one
//! run and the next; and, where each rank is a call of its own, of the owner's enter before, and its exit after,
//! every access of other ranks to its buffers. So the result has the same bits, as every order of reduction is the
//! author's.
//!
//! Elision is for signals that count. A one-shot flag must be taken down before it is raised again, and the order of
//! that may rest on a signal that elision drops.

mod choose;
mod least;
mod needs;
mod paths;
mod reasons;

use std::fmt;

use crate::diagnostics::Finding;
use crate::ids::{LaneId, OpId, RankId};
use crate::schedule::interner::Renumber;
use crate::schedule::{OpKind, Operand, Schedule, SignalKind};
use crate::stages::stage;
use crate::values::resource::Resource;
use crate::verify::Callers;
use crate::verify::{Access, Order, Signals, in_order, verify_called};
use choose::{ElisionChoice, choose, stays};
use least::least;
use needs::{After, NeedKind, Needs, Stop, needs};
use paths::Paths;
pub use reasons::{Reason, reasons};

/// A schedule with fewer signals.
#[derive(Clone, Debug)]
pub struct Elided {
    /// The schedule, which is proved like any other, for the same callers.
    pub schedule: Schedule,
    /// The signals that are left, in the order of their waits.
    pub kept: Vec<Kept>,
    /// The number of signals that were dropped.
    pub dropped: usize,
    /// Whether each kept signal was tried: then none of them can be dropped alone.
    pub least: bool,
    /// The reason why the schedule is unchanged, unless the reason is that all signals are needed.
    pub unchanged: Option<Unchanged>,
}

/// The reason why no signal was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchanged {
    /// The search would take more memory or work than it is worth.
    TooMuch,
    /// A budget counts steps, and signals make steps.
    Budget(Resource),
}

impl fmt::Display for Unchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMuch => f.write_str(
                "to tell which are needed would take more memory or time than it is worth",
            ),
            Self::Budget(resource) => {
                write!(f, "its budget of {resource} counts steps, and signals make these")
            }
        }
    }
}

/// A signal that stays. Ops are those of the new schedule.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The post of the signal.
    pub post: OpId,
    /// The wait of the signal.
    pub wait: OpId,
    /// The order that would be lost without the signal.
    pub why: Why,
}

/// The reason why a signal is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Two ops touch the same memory.
    Conflict {
        /// The earlier op, and how it touches the memory.
        first: (OpId, Access),
        /// The later op, and how it touches the memory.
        second: (OpId, Access),
        /// The memory that both touch.
        operand: Operand,
        /// Whether the later op is of the next run.
        across: bool,
    },
    /// The caller of the buffer must enter before another rank touches the buffer.
    Enter {
        /// The op that touches the buffer.
        op: OpId,
        /// The part of the buffer; its rank is the owner.
        operand: Operand,
    },
    /// The caller of the buffer may leave only after another rank has touched the buffer.
    Exit {
        /// The op that touches the buffer.
        op: OpId,
        /// Whether it reads or writes.
        access: Access,
        /// The part of the buffer; its rank is the owner.
        operand: Operand,
    },
    /// Two streams share one end of a signal, and take turns.
    Count,
    /// The signal begins or ends a stream.
    Stream,
    /// The reason is not known, as no signal was examined: see [`Elided::unchanged`].
    Unknown,
}

/// Drops every signal that others make needless. The schedule must be proved for `callers` or for [`Callers::Each`];
/// for one that is not, the error is the fault in its order.
pub fn elide(schedule: &Schedule, callers: Callers) -> Result<Elided, Vec<Finding>> {
    elide_in(schedule, &in_order(schedule)?, callers)
}

/// [`elide`] for a schedule whose order of events is known.
pub(super) fn elide_in(
    schedule: &Schedule,
    order: &Order,
    callers: Callers,
) -> Result<Elided, Vec<Finding>> {
    let counts_steps = |r: &Resource| matches!(r, Resource::Ports | Resource::Fifo);
    let budgets = schedule.demands.budgets.iter().map(|budget| budget.resource);
    if let Some(resource) = budgets.into_iter().find(counts_steps) {
        return Ok(unchanged(schedule, order, Unchanged::Budget(resource)));
    }
    match stage("elide", || few(schedule, order, callers)) {
        Ok((needs, choice, least)) => Ok(rebuild(schedule, order, &needs, &choice, least)),
        Err(Stop::TooMuch) => Ok(unchanged(schedule, order, Unchanged::TooMuch)),
        Err(Stop::Unordered) => {
            let wrong = verify_called(schedule, Signals::default(), callers);
            Err(wrong.expect_err("what is proved is ordered"))
        }
    }
}

/// Returns the needs, and signals that meet them: few, and often the least.
fn few(
    schedule: &Schedule,
    order: &Order,
    callers: Callers,
) -> Result<(Needs, ElisionChoice, bool), Stop> {
    let needs = needs(schedule, order, callers).map_err(|_| Stop::TooMuch)?;
    let mut paths = Paths::new(schedule, order);
    let mut choice = choose(schedule, order, &needs, &mut paths)?;
    let least = least(schedule, order, &needs, &mut paths, &mut choice)?;
    Ok((needs, choice, least))
}

fn unchanged(schedule: &Schedule, order: &Order, why: Unchanged) -> Elided {
    let waits = (0..schedule.ops.len()).filter(|at| schedule.ops[*at].kind == OpKind::Wait);
    let kept = waits.map(|wait| {
        let wait = OpId(wait as u32);
        let why = if stays(schedule, wait) { Why::Stream } else { Why::Unknown };
        Kept { post: order.meets[wait.index()], wait, why }
    });
    Elided {
        schedule: schedule.clone(),
        kept: kept.collect(),
        dropped: 0,
        least: false,
        unchanged: Some(why),
    }
}

/// Returns the schedule without the signals that are not kept.
fn rebuild(
    schedule: &Schedule,
    order: &Order,
    needs: &Needs,
    choice: &ElisionChoice,
    least: bool,
) -> Elided {
    let mut stays: Vec<bool> = schedule.ops.iter().map(|op| op.kind == OpKind::Move).collect();
    let waits = (0..schedule.ops.len()).filter(|at| schedule.ops[*at].kind == OpKind::Wait);
    let (mut all, mut left) = (0, Vec::new());
    for wait in waits {
        all += 1;
        if choice.kept[wait] {
            let post = order.meets[wait];
            (stays[wait], stays[post.index()]) = (true, true);
            left.push((post, OpId(wait as u32)));
        }
    }
    let mut now = Vec::with_capacity(schedule.ops.len());
    let mut ops = Vec::new();
    let (mut channels, mut lanes) = (Renumber::default(), Renumber::default());
    for (op, stays) in schedule.ops.iter().zip(&stays) {
        now.push(OpId(ops.len() as u32));
        if *stays {
            let mut op = *op;
            if op.kind != OpKind::Move {
                op.arg = channels.id(op.arg);
            }
            ops.push(op);
        }
    }
    let now = |op: OpId| now[op.index()];
    let mut streams = schedule.streams.clone();
    for stream in &mut streams {
        let ops = &stays[stream.first.index()..][..stream.len as usize];
        stream.len = ops.iter().filter(|stays| **stays).count() as u32;
    }
    let mut first = 0;
    for stream in &mut streams {
        stream.first = OpId(first);
        first += stream.len;
    }
    lanes.id(0);
    let mut channels = channels.pick(&schedule.channels);
    for channel in channels.iter_mut().filter(|channel| channel.kind.has_lane()) {
        channel.lane = LaneId(lanes.id(channel.lane.0));
    }
    let why = |wait: OpId| {
        let Some(need) = needs.all.get(choice.why[wait.index()] as usize) else {
            return Why::Stream;
        };
        let (op, operand) = (now(need.before), need.operand);
        match (need.kind, need.after) {
            (NeedKind::Conflict(first, second), After::Op(at) | After::Next(at)) => Why::Conflict {
                first: (op, first),
                second: (now(at), second),
                operand,
                across: matches!(need.after, After::Next(_)),
            },
            (NeedKind::Enter, After::Op(at) | After::Next(at)) => {
                Why::Enter { op: now(at), operand }
            }
            (NeedKind::Exit(access), _) => Why::Exit { op, access, operand },
            (NeedKind::Conflict(..) | NeedKind::Enter | NeedKind::Count, _) => Why::Count,
        }
    };
    let kept: Vec<_> = left
        .into_iter()
        .map(|(post, wait)| Kept { post: now(post), wait: now(wait), why: why(wait) })
        .collect();
    let schedule = Schedule {
        streams,
        ops,
        channels,
        lanes: lanes.pick(&schedule.lanes),
        algorithm: schedule.algorithm.clone(),
        scratch: schedule.scratch.clone(),
        operands: schedule.operands.clone(),
        regions: schedule.regions.clone(),
        locations: schedule.locations.clone(),
        origins: schedule.origins.clone(),
        file: schedule.file.clone(),
        demands: schedule.demands.clone(),
        elements: schedule.elements.clone(),
        ..*schedule
    };
    let dropped = all - kept.len();
    Elided { schedule, kept, dropped, least, unchanged: None }
}

impl Elided {
    /// The numbers of kept and of dropped signals between ranks.
    pub fn between_ranks(&self) -> (usize, usize) {
        (self.kept.iter().filter(|kept| kept.why != Why::Stream).count(), self.dropped)
    }

    /// The number of signals of one kind that `rank` waits for.
    pub fn waits(&self, rank: RankId, kind: SignalKind) -> usize {
        let to = |kept: &&Kept| {
            let channel = self.schedule.channel(self.schedule.op(kept.wait));
            (channel.to, channel.kind) == (rank, kind)
        };
        self.kept.iter().filter(to).count()
    }
}
