//! The part of a rank in calls of one shape, lowered from the proved schedule: the way of the data through shared
//! memory.
//!
//! | strategy | for | what happens |
//! |---|---|---|
//! | pull | a fused schedule | each rank stages its input, and reduces or copies staged inputs into its output |
//! | common | a fused schedule with equal sums for all ranks | each rank stages its input, makes chunks, copies sums out |
//! | split | as for common | each rank stages the parts that others fold, makes its share, copies the other shares out |
//! | streams | any other schedule | each rank stages its input, runs its streams as written, copies its output out |
//!
//! A rank need not stage an input that other ranks can read in its own memory. If the buffers of all ranks lie in
//! shared memory, nothing is staged: the ranks that are there make chunks of all outputs.

use std::sync::{Arc, OnceLock};

use roundelay_core::counts::RankBlocks;
use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::optimize::{Goal, Level, Optimized};
use roundelay_core::schedule::hash::content;
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::uneven;
use roundelay_core::verify::{Callers, Proved};

use super::plan_sharing::{PlanSource, Prepared};
use super::routes::{Route, Routes};
use super::strategy::{Direct, Strategy, Streams};
use crate::Error;
use crate::lowering::plan_call::check_multiple;
use crate::lowering::{PlannedCall, RankPart, Runs, Scratch, bad};
use crate::shared_memory::world::World;
use crate::shared_memory::world::memory::shared_state::{CallHeader, MOST_TILES};
use crate::shared_memory::world::ways::{Shape, Way};

/// The most parts that another way makes of a tile of the usual way: 128 tiles with two steps each.
const MOST_PARTS: u64 = 256;

/// The plan of a rank that is a process of one host, for calls of one shape.
pub type WorldPlan = Runs<WorldRank>;

/// The part of a process of one host in calls of one shape.
pub struct WorldRank {
    pub(crate) part: RankPart,
    pub(crate) world: Arc<World>,
    pub(crate) header: CallHeader,
    pub(crate) routes: Routes,
    /// The fused schedule, for buffers in shared memory. Its code at the count of the call is made when it is first
    /// needed.
    pub(crate) direct: Option<Arc<Optimized>>,
    at_whole_count: OnceLock<Result<Direct, Error>>,
    pub(crate) size: usize,
    /// The units of this rank's input and output.
    pub(crate) units: [u32; 2],
    pub(crate) partials: Scratch,
    /// The blocks of each call, where the plan is for a vector of counts.
    pub(crate) blocks: Option<RankBlocks>,
    /// Whether other ranks have long work of their own in each call.
    pub(crate) patient: bool,
}

impl WorldPlan {
    /// Makes the plan of the rank of `world` for calls of a schedule that was proved for ranks that call by themselves,
    /// with `count` elements a unit, at the level that the options of the world say.
    ///
    /// # Errors
    /// E0401 for a schedule of another number of ranks; E0407 for buffers that are too large; E0424 where ranks could
    /// not choose by themselves whether they run in place; E0425 for a fault of the optimizer; E0431 where the dtype
    /// does not have the op; E0306 for a schedule that was proved for one caller of all ranks; E0406 for a schedule
    /// with more signals between two ranks than the arena has room for, and for a count that its algorithm does not
    /// take.
    pub fn new(
        world: &Arc<World>,
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        let Some((even, counts)) = proved.even() else {
            return Self::from_prepared(world, &Prepared::own(proved.clone()), count, dtype, op);
        };
        let mut rank = WorldRank::of_blocks(world, even, dtype, op)?;
        rank.blocks = Some(counts.of_rank(world.id(), even.schedule().root));
        rank.part.set_call(PlannedCall::new(proved, count, dtype, op));
        Ok(Runs(rank))
    }

    /// Makes the plan for a schedule that may have been taken from another rank by [`World::prepare`].
    ///
    /// # Errors
    /// The errors of [`Self::new`].
    pub fn from_prepared(
        world: &Arc<World>,
        prepared: &Prepared,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        WorldRank::new(world, prepared, Some(count), (dtype, op)).map(Runs)
    }

    /// Makes the plan a part of the call `call`, which error messages name and ranks compare. Some ranks wait in this
    /// part while other ranks do other parts.
    #[must_use]
    pub(crate) fn within(mut self, call: &PlannedCall) -> Self {
        let PlannedCall { schedule, count, dtype, op, .. } = call;
        let shape = (schedule.collective, schedule.root);
        // The count enters the identity, as the parts of a call may differ in their length only.
        let identity = self.0.header.identity ^ self.0.part.call.count.rotate_left(32);
        let header = CallHeader::new(identity, shape, (*count, *dtype, *op));
        (self.0.header, self.0.patient) = (header, true);
        // The time of such a part is that of other hosts, too.
        self.0.routes.keep_to_usual();
        self
    }
}

impl WorldRank {
    /// Makes the part of a rank in calls of `count` elements a unit, or in calls with a count for each block.
    pub(crate) fn new(
        world: &Arc<World>,
        prepared: &Prepared,
        given: Option<u64>,
        (dtype, op): (DType, ReduceOp),
    ) -> Result<Self, Error> {
        let count = given.unwrap_or(0);
        let asked = world.options.goal(Callers::One);
        let (author, call, fused) = match &prepared.0 {
            PlanSource::Own(proved) => {
                check(proved)?;
                let call = PlannedCall::new(proved, count, dtype, op);
                let fused = (asked.level == Level::O2).then(|| proved.optimize(asked));
                let fused = fused.transpose()?.filter(|made| {
                    let serves = || given.is_some() || keeps_blocks(&made.schedule).is_ok();
                    made.level == Level::O2 && serves()
                });
                (*content(proved.schedule()).bytes(), call, fused)
            }
            PlanSource::Taken(author, made) => {
                let (schedule, proof) = (made.schedule.clone(), made.proof.clone());
                (
                    *author,
                    PlannedCall { schedule, proof, count, dtype, op, even: None },
                    Some(made.clone()),
                )
            }
        };
        check_multiple(&call.schedule, count)?;
        let (schedule, rank) = (call.schedule.clone(), world.id());
        let nranks = schedule.nranks;
        if nranks != world.nranks() {
            let (given, nranks) = (nranks as usize, world.nranks());
            return Err(Error::WrongBufferCount { what: "ranks of the schedule", given, nranks });
        }
        let size = dtype.size();
        let identity = |streams| identity(&author, asked, streams);
        let fused_routes = match &fused {
            Some(made) => Routes::fused(world, made, (given, dtype, op), identity(false))?,
            None => None,
        };
        let routes = match (fused_routes, &prepared.0) {
            (Some(routes), _) => routes,
            (None, PlanSource::Taken(..)) => {
                let what =
                    "a schedule that another rank offers does not fit where it should".to_owned();
                return Err(Error::Corrupt { what });
            }
            (None, PlanSource::Own(proved)) => {
                let level = asked.level.min(Level::O1);
                let made = proved.optimize(Goal { level, callers: Callers::Each, ..asked })?;
                let (streams, tiles) = Streams::new(world, &made, (given, dtype, op))?;
                let output = schedule.elements(Buffer::Output, rank, count) as usize;
                let usual =
                    Way::usual(Shape { output: output.saturating_mul(size), ..Shape::EMPTY });
                Routes::only(Strategy::Streams(streams), tiles, usual)
            }
        };
        let Route { strategy, tiles } = &routes.first;
        // A way has smaller tiles than the usual way, and a share of a tile counts twice.
        if tiles.number > MOST_TILES / MOST_PARTS {
            let what =
                format!("{count} elements of {dtype} a unit, which are {} tiles", tiles.number);
            return Err(Error::TooLarge { what });
        }
        let data = match strategy {
            Strategy::Pull(pull) => &pull.data,
            Strategy::Common(common) => &common.data,
            Strategy::Split(split) => &split.data,
            Strategy::Streams(streams) => &streams.code.segments,
        };
        // Room for the partials of the fused code, which are as many as the direct code may need.
        let partials = Scratch::new([data.partial_bytes()].into_iter())?;
        let units = [Buffer::Input, Buffer::Output];
        let units = units.map(|buffer| schedule.units(buffer, rank).floor() as u32);
        let is_fused = !matches!(strategy, Strategy::Streams(_));
        Ok(Self {
            header: CallHeader::new(
                identity(!is_fused),
                (schedule.collective, schedule.root),
                (count, dtype, op),
            ),
            part: RankPart::new(Arc::new(call), (nranks, rank), &world.options)?,
            world: world.clone(),
            routes,
            direct: fused.filter(|_| is_fused),
            at_whole_count: OnceLock::new(),
            size,
            units,
            partials,
            blocks: None,
            patient: false,
        })
    }

    /// Returns the code for buffers in shared memory, if the schedule is fused.
    pub(crate) fn direct(&self) -> Result<Option<&Direct>, Error> {
        let Some(made) = &self.direct else { return Ok(None) };
        let new = || Direct::new(made, &self.part.call);
        self.at_whole_count.get_or_init(new).as_ref().map(Some).map_err(Clone::clone)
    }

    /// Returns the schedule to whose statements the positions of ranks refer.
    pub(crate) fn running(&self) -> &Schedule {
        match (&self.routes.first.strategy, &self.direct) {
            (Strategy::Streams(streams), _) => &streams.running,
            (_, Some(fused)) => &fused.schedule,
            (_, None) => unreachable!("all other forms are made of what was fused"),
        }
    }

    /// Whether calls may access buffers in shared memory in place.
    pub(crate) fn can_be_direct(&self) -> bool {
        self.direct.is_some()
    }
}

/// Checks that a schedule serves every vector of counts.
///
/// # Errors
/// E0319.
pub(crate) fn keeps_blocks(schedule: &Schedule) -> Result<(), Error> {
    let found = uneven::blocks(schedule).err();
    match found.and_then(|found| found.into_iter().next()) {
        Some(found) => {
            Err(Error::EqualCounts { what: format!("{}: {}", schedule.algorithm, found.title) })
        }
        None => Ok(()),
    }
}

/// Checks that ranks that call by themselves can run the proved schedule.
pub(crate) fn check(proved: &Proved) -> Result<(), Error> {
    if proved.callers() != Callers::Each {
        let what = "the schedule was proved for one caller of all ranks".to_owned();
        return Err(bad(ErrorCode::RaceWithCaller, what));
    }
    if let Some(found) = &proved.proof().one_mode {
        let place = found.notes.join("; ");
        return Err(Error::OneMode { what: format!("{} ({place})", found.title) });
    }
    Ok(())
}

/// Returns a number that is equal on ranks that run the same schedule in the same way.
pub(crate) fn identity(author: &[u8; 32], goal: Goal, streams: bool) -> u64 {
    use sha2::{Digest as _, Sha256};
    let mut digest = Sha256::new();
    digest.update(author);
    digest.update([goal.level as u8, u8::from(goal.reassociate), u8::from(streams)]);
    digest.update(env!("CARGO_PKG_VERSION"));
    let bytes: [u8; 32] = digest.finalize().into();
    u64::from_le_bytes(bytes[..8].try_into().expect("8 of 32 bytes"))
}
