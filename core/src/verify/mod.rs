//! The proof: a schedule is replayed once, and every fact about the replay holds for every interleaving.
//!
//! No event depends on data, and the k-th post meets the k-th wait, so the order of events is one partial order: if it
//! is acyclic with equal counts, no run deadlocks; if it is free of races, there is one result. The caller is part of
//! the order: `enter` and `exit` count as writes of a rank's whole input and output, so any sequence of plans is safe
//! without a barrier between them.

mod all_ranks;
mod blame;
mod cache;
mod callers;
#[doc(hidden)]
pub mod clocks;
pub(crate) mod completions;
mod deadlock;
mod demands;
mod fifo;
mod history;
pub(crate) mod in_place;
mod lanes;
pub(crate) mod layout;
mod links;
pub(crate) mod memory;
mod next_run;
mod order;
mod orders;
pub mod owners;
pub mod parametric;
mod piece;
pub(crate) mod ports;
pub(crate) mod ranking;
pub(crate) mod ranks;
mod reduction;
pub(crate) mod replay;
pub(crate) mod report;
mod result;
mod signals;
mod transfers;
pub(crate) mod values;

use std::sync::Arc;

use crate::diagnostics::Code;
pub use crate::diagnostics::Finding;
use crate::ids::OpId;
use crate::schedule::{Schedule, legality};
use crate::stages::stage;
pub use cache::Proved;
pub use callers::Callers;
use clocks::Clocks;
pub use demands::unmet;
pub(crate) use demands::unmet_by;
pub(crate) use fifo::has_fifo;
pub use fifo::{Depth, depth};
use layout::{BufferMode, Cells};
pub use links::links;
pub use order::Order;
pub use orders::Orders;
pub use owners::owners;
pub(crate) use piece::piece_text;
pub use ports::{Busiest, Ports};
pub use reduction::{Reduction, ReductionOrder, Sameness, Witness, unit_roundoff};
use replay::Replayed;
pub use report::Access;
pub use signals::Signals;
pub use transfers::{Stretch, Transfer, transfers};

/// The results of the proof of a schedule: the ops after which averages divide, whether the proof holds in place, and
/// how deep, how long and how wide the schedule is.
///
/// A `Proof` exists only if the schedule is right for every interleaving and every count of elements: no deadlock, no
/// race, no signal left over, and every contribution exactly once and in its place. A [`Proved`] keeps the proof
/// together with the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The moves whose results all become complete as they are rounded, in ascending order: `avg` divides there, before
    /// the rounding.
    pub finish: Vec<OpId>,
    /// Whether completion is not uniform: `avg` then divides each rank's whole output at the end of its main stream
    /// instead, which rounds once more, and `finish` is empty.
    pub scale_outputs: bool,
    /// Whether the in-place form was proved too.
    pub in_place: bool,
    /// The reason why all ranks must run in place or none (E0424): a rank reads an input which, in place, its output
    /// has overwritten. Without this finding, each rank may choose by itself in every run, and results are equal.
    pub one_mode: Option<Box<Finding>>,
    /// The deepest reduction tree of any output element, in reduce steps.
    pub reduce_depth: u32,
    /// The number of steps: the length of the longest chain of messages of which each needs its predecessor, in the
    /// mode in which the chain is longest.
    pub steps: u32,
    /// The most peers that a rank sends to, and receives from, in one step, in the mode in which they are most.
    pub ports: Ports,
    /// The agreement of the orders in which results are reduced, between ranks and between counts, where the collective
    /// reduces.
    pub reduction: Option<Reduction>,
    /// The order in which each element is reduced, with which the order of an optimized schedule is compared.
    pub orders: Arc<Orders>,
}

/// Proves `schedule`, out of place and (where it has that form) in place, and that it keeps to the demands of its
/// author: budgets, links, order.
///
/// # Errors
/// All findings, the worst first: E03xx.
pub fn verify(schedule: &Schedule) -> Result<Proof, Vec<Finding>> {
    let proof = verify_with(schedule, Signals::default())?;
    let unmet = unmet(schedule, &proof);
    if unmet.is_empty() { Ok(proof) } else { Err(unmet) }
}

/// Returns the order of events, the only part of the proof that the count of steps needs.
pub fn in_order(schedule: &Schedule) -> Result<Order, Vec<Finding>> {
    let reporter = report::Reporter::new(schedule);
    stage("order", || deadlock::order(schedule, &reporter)).map_err(ranking::fold)
}

/// Returns the waits that block each other for ever, each with the post that would meet it; `None` where all streams
/// end, and an empty list where they do not end because a post is missing.
pub fn stuck(schedule: &Schedule) -> Option<Vec<(OpId, OpId)>> {
    deadlock::stuck(schedule)
}

/// Returns the step of each op: the length of the longest chain of messages that ends with the op, of which each needs
/// its predecessor. The step of a move between ranks is its own, from 1. The largest step is the number of steps of a
/// run out of place.
///
/// A message needs the waits above it and the moves of its stream that write its data. It needs neither the other moves
/// above it nor the data that it is folded into.
///
/// # Errors
/// A deadlock, a signal without a partner (E0301 to E0303), or more pieces than can be numbered.
pub fn steps(schedule: &Schedule) -> Result<Vec<u32>, Vec<Finding>> {
    steps_in(schedule, &in_order(schedule)?)
}

/// [`steps`] of a schedule whose order of events is known.
fn steps_in(schedule: &Schedule, order: &Order) -> Result<Vec<u32>, Vec<Finding>> {
    let steps = stage("steps", || ports::steps(schedule, order));
    steps.map(|steps| steps.of).map_err(|cells| vec![too_fine(cells)])
}

/// Returns the finding for cells that cannot be numbered; `per_unit` is the number of cells that a unit would have.
pub(crate) fn too_fine(per_unit: u32) -> Finding {
    report::Reporter::too_fine(per_unit)
}

/// Proves `schedule` for a runtime with the given `signals`, without regard to the demands of its author.
///
/// # Errors
/// All findings, the worst first: E03xx.
pub fn verify_with(schedule: &Schedule, signals: Signals) -> Result<Proof, Vec<Finding>> {
    verify_called(schedule, signals, Callers::Each)
}

/// Proves `schedule` for a runtime with the given `signals` and `callers`: if one call runs all ranks, it orders the
/// beginnings and the ends of runs; if each rank calls by itself, signals alone order them.
///
/// # Errors
/// All findings, the worst first: E03xx.
pub fn verify_called(
    schedule: &Schedule,
    signals: Signals,
    callers: Callers,
) -> Result<Proof, Vec<Finding>> {
    verify_in_order(schedule, signals, callers).map(|(proof, _)| proof)
}

/// Proves `schedule` as [`verify_called`] does, and returns the order of events too, of the schedule as a runtime with
/// the given signals sees it.
fn verify_in_order(
    schedule: &Schedule,
    signals: Signals,
    callers: Callers,
) -> Result<(Proof, Order), Vec<Finding>> {
    let seen = signals.apply(schedule);
    let schedule = seen.as_ref();
    let reporter = report::Reporter::new(schedule).with(signals);
    stage("legality", || legality::check(schedule))
        .map_err(|all| ranking::fold(all.iter().map(|i| reporter.illegal(i)).collect()))?;
    prove(schedule, signals, callers).map_err(|findings| lanes::explained(schedule, findings))
}

/// Proves a legal schedule, as a runtime with the given signals sees it.
fn prove(
    schedule: &Schedule,
    signals: Signals,
    callers: Callers,
) -> Result<(Proof, Order), Vec<Finding>> {
    let reporter = report::Reporter::new(schedule).with(signals);
    let in_place = schedule.collective.has_in_place() && !schedule.out_of_place;

    let order = stage("order", || deadlock::order(schedule, &reporter)).map_err(ranking::fold)?;
    let too_fine = |cells| vec![too_fine(cells)];
    let cells = stage("cells", || Cells::new(schedule)).map_err(too_fine)?;
    let differs = in_place && !in_place::follows(schedule, &cells).map_err(too_fine)?;
    let modes = &BufferMode::BOTH[..=usize::from(differs)];
    let of = Replayed {
        schedule,
        order: &order,
        reporter: &reporter,
        again: signals.one_shot || order.shares_scratch(schedule),
        callers,
    };
    let replay = stage("replay", || all_ranks::replay(&of, &cells, modes, signals.one_shot))
        .map_err(|finding| vec![*finding])?;

    if !replay.findings.is_empty() {
        return Err(ranking::fold(replay.findings));
    }
    if !replay.in_place_findings.is_empty() {
        let told = ranking::fold(replay.in_place_findings);
        return Err(told.into_iter().map(only_in_place).collect());
    }
    let (steps, ports) = ports::ports(schedule, &order, &cells, modes).map_err(too_fine)?;
    let reduces = schedule.collective.reduces() && schedule.nranks > 1;
    let at_end = reduces && replay.finish.is_none();
    let proof = Proof {
        scale_outputs: false,
        finish: replay.finish.unwrap_or_default(),
        in_place,
        one_mode: replay.one_mode.map(|at| Box::new(reporter.one_mode(at))),
        reduce_depth: replay.reduce_depth,
        steps,
        ports,
        reduction: replay.reduction,
        orders: Arc::new(replay.orders),
    };
    Ok((if at_end { proof.divided_at_end() } else { proof }, order))
}

impl Proof {
    /// Returns the proof with averages that are divided at the end.
    pub(crate) fn divided_at_end(self) -> Self {
        Self {
            finish: Vec::new(),
            scale_outputs: true,
            reduction: self.reduction.map(Reduction::rounded_again),
            orders: Arc::new(self.orders.divided_at_end()),
            ..self
        }
    }
}

/// The findings of a replay out of place and in place, the moves that complete results, and the depth of reductions.
#[doc(hidden)]
pub type ReplayFacts = ([Vec<Finding>; 2], Option<Vec<OpId>>, u32);

/// Replays a schedule with given clocks, for tests, which compare kinds of clocks; `None` where these clocks are not sure.
///
/// # Errors
/// Those of [`in_order`]; cells that cannot be numbered.
#[doc(hidden)]
pub fn replay_with_clocks(
    schedule: &Schedule,
    clocks: Clocks<'_>,
) -> Result<Option<ReplayFacts>, Vec<Finding>> {
    let order = in_order(schedule)?;
    let cells = Cells::new(schedule).map_err(|cells| vec![too_fine(cells)])?;
    let of = Replayed {
        schedule,
        order: &order,
        reporter: &report::Reporter::new(schedule),
        again: order.shares_scratch(schedule),
        callers: Callers::Each,
    };
    let replay = all_ranks::replay_with(clocks, &of, &cells, &BufferMode::BOTH, false)
        .map_err(|finding| vec![*finding])?
        .ok();
    Ok(replay.map(|of| ([of.findings, of.in_place_findings], of.finish, of.reduce_depth)))
}

/// Whether the proof out of place serves in place too, for tests: see [`in_place::follows`].
///
/// # Errors
/// Cells that cannot be numbered.
#[doc(hidden)]
pub fn in_place_follows(schedule: &Schedule) -> Result<bool, Vec<Finding>> {
    let follows = Cells::new(schedule).and_then(|cells| in_place::follows(schedule, &cells));
    follows.map_err(|cells| vec![too_fine(cells)])
}

/// Turns a finding into one that shows only where input and output share memory.
pub(crate) fn only_in_place(finding: Finding) -> Finding {
    let why = format!("{} [{}]", finding.title, finding.code);
    let title = "right out of place, wrong in place".to_owned();
    let mut finding = Finding { code: Code::InPlaceOnly, title, ..finding };
    finding.notes.insert(0, why);
    finding.help(
        "read the input before its memory is written as output, or mark the algorithm `#[out_of_place]`",
    )
}
