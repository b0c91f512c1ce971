//! From a program to its schedule: each rank is laid out by itself, and the results are put together.

use std::sync::Arc;

use super::Algorithm;
use super::builder::{Builder, Stop};
use super::interning::{Limits, Tables};
use super::turning::{Axis, Leaves, Turning};
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, OpId, RankId, RegionId, SpanId};
use crate::schedule::demands::Demands;
use crate::schedule::interner::Renumber;
use crate::schedule::{Op, OpKind, Operand, Schedule, Stream, legality};
use crate::stages;
use crate::topology::Topology;
use crate::turns::Turns;
use crate::values::arith::Fault;

/// Returns the schedule of `algorithm` for `nranks` ranks, placed on `topology` if there is one.
pub(crate) fn build<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    limits: Limits,
    topology: Option<&Arc<Topology>>,
) -> Result<Schedule, Vec<Finding>> {
    walk_ranks(algorithm, nranks, limits, topology, |b| algorithm.build(b))
}

/// Returns the ops of rank `rank` of `algorithm` for `nranks` ranks, in a schedule without the other ranks. These are
/// not laid out, unless numbers depend on them: of slots of a fifo, and of scratch of called algorithms.
///
/// # Errors
/// The faults of this rank: E02xx.
pub fn one_rank<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    rank: RankId,
) -> Result<Schedule, Vec<Finding>> {
    admit(nranks)?;
    if rank.0 >= nranks {
        let fault = Fault::Rank { rank: rank.0.into(), nranks };
        return Err(vec![fault.finding(SpanId(0))]);
    }
    if let Some(alone) = laid_out_alone(algorithm, nranks, rank, Tables::numbers_together)? {
        return Ok(alone);
    }
    let mut schedule = build(algorithm, nranks, Limits::FULL, None)?;
    schedule.streams.retain(|stream| stream.rank == rank);
    Ok(schedule)
}

/// Whether the ranks of an algorithm are laid out together: signals or slots have numbers that all ranks share.
///
/// # Errors
/// Those of [`Algorithm::schedule`] at rank 0.
pub(crate) fn is_together<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
) -> Result<bool, Vec<Finding>> {
    admit(nranks)?;
    laid_out_alone(algorithm, nranks, RankId(0), Tables::numbers_together).map(|own| own.is_none())
}

/// The ops of rank 0, and the axes along which each of their operands moves from rank to rank.
pub(crate) struct OfOneRank {
    pub(crate) own: Schedule,
    /// The axes of each operand, as a position in `lists`.
    pub(crate) axes: Vec<u32>,
    pub(crate) lists: Vec<Vec<Axis>>,
}

/// The reason why no rank stands for all.
pub(crate) enum Unlike {
    /// The program leaves the class; other turns may serve its groups: their number and their size.
    Leaves(Leaves, Option<[u32; 2]>),
    /// Rank 0 cannot be laid out.
    Faulty(Vec<Finding>),
}

/// Lays out rank 0, and follows how the values of its walk change from rank to rank by `turns`.
pub(crate) fn one_for_all<A: Algorithm + ?Sized>(
    algorithm: &A,
    turns: &Turns,
) -> Result<OfOneRank, Unlike> {
    let nranks = turns.nranks();
    admit(nranks).map_err(Unlike::Faulty)?;
    let mut tables = Tables::new(algorithm.name(), algorithm.collective(), nranks, Limits::FULL);
    tables.turning = Some(Turning::new(turns.clone()));
    let mut assembly = Assembly::default();
    assembly.lay_out(|b| algorithm.build(b), RankId(0), &mut tables);
    let turning = tables.turning.take().expect("it was put there");
    if let Some(leaves) = turning.leaves {
        return Err(Unlike::Leaves(leaves, turning.groups));
    }
    if !tables.problems.is_empty() {
        return Err(Unlike::Faulty(tables.problems));
    }
    let axes = std::mem::take(&mut assembly.axes);
    let own = assembly.finish(tables, algorithm);
    Ok(OfOneRank { own, axes, lists: turning.axes.items })
}

/// Returns the ops of one rank as [`one_rank`] does; `None` where numbers depend on other ranks.
pub(crate) fn alone<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    rank: RankId,
) -> Result<Option<Schedule>, Vec<Finding>> {
    admit(nranks)?;
    // The regions of calls are compared between ranks while they are laid out together.
    let together = |tables: &Tables| {
        tables.numbers_together() || !tables.calls.is_empty() || tables.has_objects()
    };
    laid_out_alone(algorithm, nranks, rank, together)
}

/// Lays out one rank; `None` where it must be laid out with the others.
fn laid_out_alone<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    rank: RankId,
    together: impl Fn(&Tables) -> bool,
) -> Result<Option<Schedule>, Vec<Finding>> {
    let mut tables = Tables::new(algorithm.name(), algorithm.collective(), nranks, Limits::FULL);
    tables.placed = algorithm.placed_on().cloned();
    let mut assembly = Assembly::default();
    assembly.lay_out(|b| algorithm.build(b), rank, &mut tables);
    if !tables.problems.is_empty() {
        return Err(tables.problems);
    }
    Ok((!together(&tables)).then(|| assembly.finish(tables, algorithm)))
}

fn admit(nranks: u32) -> Result<(), Vec<Finding>> {
    if nranks == 0 || nranks > Tables::RANK_LIMIT {
        let title = format!("nranks is {nranks}, and must be in 1..={}", Tables::RANK_LIMIT);
        return Err(vec![Finding::new(Code::NoRanks, SpanId(0), title)]);
    }
    Ok(())
}

/// Returns the schedule of `algorithm` as [`build`] does; `walk` lays out each rank, in whole or in part.
pub(super) fn walk_ranks<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    limits: Limits,
    topology: Option<&Arc<Topology>>,
    walk: impl Fn(&mut Builder<'_>) -> Result<(), Stop>,
) -> Result<Schedule, Vec<Finding>> {
    stages::stage("schedule", || {
        admit(nranks)?;
        let mut tables = Tables::new(algorithm.name(), algorithm.collective(), nranks, limits);
        tables.placed = topology.or(algorithm.placed_on()).cloned();
        let mut assembly = Assembly::default();
        for rank in (0..nranks).map(RankId) {
            assembly.lay_out(&walk, rank, &mut tables);
            if tables.hopeless() {
                break;
            }
        }
        if !tables.problems.is_empty() {
            return Err(tables.problems);
        }
        let schedule = assembly.finish(tables, algorithm);
        debug_assert_eq!(legality::check(&schedule), Ok(()), "the builder makes legal schedules");
        Ok(schedule)
    })
}

/// Streams one after another, and tables in the order of their first use: so equal programs give equal schedules,
/// however they were laid out, and neighbors in a stream are neighbors in memory.
#[derive(Default)]
struct Assembly {
    streams: Vec<Stream>,
    ops: Vec<Op>,
    operands: Vec<Operand>,
    /// The axes of each operand, where a walk follows them.
    axes: Vec<u32>,
    regions: Renumber,
    channels: Renumber,
}

impl Assembly {
    /// Lays out a rank by its program. A fault that stops it has been recorded; the next rank may find more.
    fn lay_out(
        &mut self,
        walk: impl Fn(&mut Builder<'_>) -> Result<(), Stop>,
        rank: RankId,
        tables: &mut Tables,
    ) {
        let mut builder = Builder::new(tables, rank);
        let built = builder.on_placed().and_then(|()| walk(&mut builder));
        let (Ok(()) | Err(Stop)) = built.and_then(|()| builder.end_fifo());
        let streams = builder.into_streams();
        self.add(rank, streams, tables);
    }

    /// Adds a rank's streams while its ops are at hand; its operands are not needed afterwards.
    fn add(&mut self, rank: RankId, streams: Vec<Vec<Op>>, tables: &mut Tables) {
        for (index, list) in streams.into_iter().enumerate() {
            self.streams.push(Stream {
                rank,
                index: index as u32,
                first: OpId(self.ops.len() as u32),
                len: list.len() as u32,
            });
            for mut op in list {
                if op.kind == OpKind::Move {
                    let (first, many) = (op.arg as usize, op.operands());
                    let used = &tables.operands[first..][..many];
                    if let Some(turning) = &tables.turning {
                        self.axes.extend(&turning.operands[first..][..many]);
                    }
                    op.arg = self.operands.len() as u32;
                    self.operands.extend(used.iter().map(|operand| Operand {
                        region: RegionId(self.regions.id(operand.region.0)),
                        ..*operand
                    }));
                } else {
                    op.arg = self.channels.id(op.arg);
                }
                self.ops.push(op);
            }
        }
        tables.operands.clear();
        if let Some(turning) = &mut tables.turning {
            turning.operands.clear();
        }
    }

    fn finish<A: Algorithm + ?Sized>(self, tables: Tables, algorithm: &A) -> Schedule {
        let mut lanes = Renumber::default();
        lanes.id(0);
        let mut channels = self.channels.pick(&tables.channels.items);
        for channel in &mut channels {
            if channel.kind.has_lane() {
                channel.lane = LaneId(lanes.id(channel.lane.0));
            }
        }
        Schedule {
            elements: None,
            algorithm: tables.algorithm,
            collective: tables.collective,
            nranks: tables.nranks,
            root: tables.root,
            out_of_place: algorithm.out_of_place(),
            multiple: tables.multiple,
            scratch: tables.scratch,
            streams: self.streams,
            ops: self.ops,
            operands: self.operands,
            regions: self.regions.pick(&tables.regions.items),
            channels,
            lanes: lanes.pick(&tables.lanes.items),
            locations: algorithm.locations().to_vec(),
            origins: Vec::new(),
            file: algorithm.file().into(),
            demands: Demands {
                rings: tables.demands.topology.is_some()
                    && !(tables.ring_orders.is_empty() && tables.rings.is_empty()),
                ..tables.demands
            },
        }
    }
}
