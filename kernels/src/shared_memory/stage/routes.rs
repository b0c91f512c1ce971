//! The routes of a plan: its strategy and its tiles, for each way that calls have taken, and the way of the next call.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::optimize::Optimized;
use roundelay_core::schedule::{Buffer, Schedule};

use super::geometry::Tiles;
use super::strategy::{Strategy, fused_strategy, is_common, is_made_together, staged_units};
use crate::Error;
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::world::World;
use crate::shared_memory::world::ways::{Makers, SHARED, Set, Shape, Way};

/// The work of a rank in calls that take one way.
pub(crate) struct Route {
    pub(crate) strategy: Strategy,
    pub(crate) tiles: Tiles,
}

/// The routes of a plan.
pub(crate) struct Routes {
    pub(crate) usual: Way,
    pub(crate) first: Route,
    /// The routes of other ways, by their layouts; each is made when a call first takes it.
    pub(crate) others: Box<[OnceLock<Route>]>,
    /// The shape of calls, and its number in the table of ways; `None` where all calls take the usual way.
    pub(crate) measured: Option<(u64, Shape)>,
    /// The way of all later calls, [`OPEN`] until it is decided.
    settled: AtomicU8,
}

/// The mark of routes whose way is not decided.
const OPEN: u8 = Set::WAYS;

/// A call of a shape that is on trial.
pub(crate) struct Attempt(pub(crate) Instant);

impl Routes {
    /// Takes the only route of a plan.
    pub(crate) fn only(strategy: Strategy, tiles: Tiles, usual: Way) -> Self {
        let settled = AtomicU8::new(usual.id());
        let first = Route { strategy, tiles };
        Self { usual, first, others: Box::default(), measured: None, settled }
    }

    /// Makes the routes of a fused schedule; `None` if it does not fit the slots or its segments are not independent.
    pub(crate) fn fused(
        world: &World,
        made: &Optimized,
        (count, dtype, op): (Option<u64>, DType, ReduceOp),
        identity: u64,
    ) -> Result<Option<Self>, Error> {
        let call = (count, dtype, op);
        // Blocks of a call may be of any length.
        let mut shape = shape(&made.schedule, count.unwrap_or(u64::MAX), dtype);
        let usual = Way::usual(shape);
        let make = |way: Way| fused_strategy(made, world.id(), call, (way.makers, way.tile()));
        let Some((strategy, tiles)) = make(usual)? else { return Ok(None) };
        let mut routes = Self::only(strategy, tiles, usual);
        if count.is_none() || world.nranks() == 1 {
            return Ok(Some(routes));
        }
        let shared = if shape.shares { make(usual.with_makers(Makers::Share))? } else { None };
        shape.shares = shared.is_some();
        if shape.is_measured() {
            routes.settled = AtomicU8::new(OPEN);
            routes.others = (0..Way::LAYOUTS).map(|_| OnceLock::new()).collect();
            if let Some((strategy, tiles)) = shared {
                let route = Route { strategy, tiles };
                routes.others[usual.with_makers(Makers::Share).layout() as usize] = route.into();
            }
            routes.measured = Some((key(identity, shape), shape));
        }
        Ok(Some(routes))
    }

    /// Has all calls take the usual way.
    pub(crate) fn keep_to_usual(&mut self) {
        self.measured = None;
        self.settled = AtomicU8::new(self.usual.id());
    }

    /// Returns the start of a call whose time may decide about later calls.
    pub(crate) fn attempt(&self) -> Option<Attempt> {
        (self.settled.load(Ordering::Relaxed) == OPEN).then(|| Attempt(Instant::now()))
    }

    /// Returns the way of a call, and whether the call is on trial.
    pub(crate) fn way(&self, active: &ActiveCall<'_>) -> (Way, bool) {
        let settled = self.settled.load(Ordering::Relaxed);
        let Some((key, shape)) = self.measured.filter(|_| settled == OPEN) else {
            return (Way::of(settled), false);
        };
        // The first calls find all memory cold, and are not compared.
        let Some(set) = active.world.shared.decided(key, active.number) else {
            return (self.usual, true);
        };
        match (set.turn(active.number), set.only()) {
            // No correct rank decides for a way that does not fit the shape.
            (Some(way), _) if way.makers != Makers::Any && !shape.shares => (self.usual, false),
            (Some(way), None) => (way, true),
            (way, _) => {
                let way = way.unwrap_or(self.usual);
                self.settled.store(way.id(), Ordering::Relaxed);
                (way, false)
            }
        }
    }
}

/// Returns the shape of calls of a fused schedule.
fn shape(schedule: &Schedule, count: u64, dtype: DType) -> Shape {
    let bytes = |units: u64| (units.saturating_mul(count) as usize).saturating_mul(dtype.size());
    let ranks = (0..schedule.nranks).map(roundelay_core::ids::RankId);
    let output = ranks.map(|rank| schedule.units(Buffer::Output, rank).floor()).max().unwrap_or(0);
    let staged = bytes(staged_units(schedule));
    Shape {
        bytes: staged,
        output: bytes(output),
        shares: staged >= SHARED && is_common(schedule),
        pulls: !is_made_together(schedule),
        all_wait: !schedule.collective.is_rooted(),
    }
}

/// Returns the number of a shape: schedule, options, and the power of two that its bytes reach.
fn key(identity: u64, shape: Shape) -> u64 {
    let class = u64::from(shape.bytes.max(1).ilog2()) << 1 | u64::from(shape.shares);
    (identity ^ class.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1)
}
