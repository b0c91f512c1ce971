//! The choice of ways by measurement. The first calls of a shape take its ways in turns. Every rank times them, as the
//! root of a broadcast does not wait for its readers, and rank 0 decides for all ranks by the slowest rank of each call.
//! A shape is a schedule and the power of two that the bytes of a call reach.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Set, Shape, Way, WayId};
use crate::call_numbers::WINDOW;
use crate::chosen_way::ChosenWay;
use crate::options::Choosing;
use crate::shared_memory::world::memory::shared_state::SharedState;

/// The least calls of each way before a decision.
const CALLS: usize = 4;
/// The most calls of a shape before its decision, and before the ways that differ much are decided.
const MOST: u32 = 64;
const MOST_COARSE: u32 = 44;
/// Calls of all ways of a stage, where they are enough: few ways are called more often, as first calls find all cold.
const COARSE: usize = 40;
const FINE: usize = 20;
/// The most time that calls of slower ways may cost a world: 5 % of a second.
const COST: Duration = Duration::from_millis(50);
/// The most time of a call beyond the best one that counts as its way's, in times of the best one.
const SLOWEST: f64 = 8.0;
/// A way is better than the usual one if its time is less than this part of it: smaller differences may be chance.
const BETTER: f64 = 0.97;

/// A shape whose ways are on trial, or decided.
pub(crate) struct Trial {
    /// The name of the call for reports.
    pub(crate) name: String,
    shape: Shape,
    /// The number of the first call of the shape.
    first: u64,
    ways: Set,
    /// The first call of the ways that are compared now.
    from: u64,
    /// Seconds of each way's calls, in the order of the calls.
    times: BTreeMap<WayId, Vec<f64>>,
    calls: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Coarse,
    Fine,
    Decided(Way),
}

/// The trials of rank 0.
#[derive(Default)]
pub(crate) struct Trials {
    all: BTreeMap<u64, Trial>,
    /// Calls on trial whose times of other ranks are not known yet.
    pending: Vec<Pending>,
    /// The time of calls beyond the time that the best known way of their shape would have taken.
    cost: Duration,
    over: bool,
}

/// The facts about the world whose calls are measured.
pub(crate) struct Measured<'w> {
    pub(crate) shared: &'w SharedState,
    pub(crate) choosing: Choosing,
    /// Whether ranks may lend their inputs.
    pub(crate) can_lend: bool,
}

/// A call on trial: its number, its shape, and its way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    key: u64,
    way: Way,
}

/// A decision for reports and files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decided {
    pub(crate) key: u64,
    pub(crate) name: String,
    pub(crate) way: Way,
    /// Seconds of the usual way and of the best one, where both were measured.
    pub(crate) seconds: Option<[f64; 2]>,
}

impl From<Decided> for ChosenWay {
    fn from(Decided { name, way, seconds, .. }: Decided) -> Self {
        Self { call: name, way: way.to_string(), seconds }
    }
}

impl Trial {
    fn new(name: String, shape: Shape, first: u64) -> Self {
        let ways = Set::coarse(shape);
        let (times, stage) = (BTreeMap::new(), Stage::Coarse);
        Self { name, shape, first, ways, from: 0, times, calls: 0, stage }
    }

    /// Returns the time of a way: the lower quartile, as cold caches and other work only make calls longer.
    fn time(&self, way: Way) -> Option<f64> {
        let mut times = self.times.get(&way.id())?.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 4).copied()
    }

    fn is_complete(&self) -> bool {
        let all = if self.stage == Stage::Coarse { COARSE } else { FINE };
        let each = (all / self.ways.ways().count().max(1)).max(CALLS);
        self.ways.ways().all(|way| self.times.get(&way.id()).is_some_and(|all| all.len() >= each))
    }

    /// Returns the fastest way that was measured; the usual way, unless another is clearly faster.
    fn best(&self) -> Way {
        let usual = Way::usual(self.shape);
        let measured = (0..Set::WAYS).map(Way::of);
        let times = measured.filter_map(|way| Some((way, self.time(way)?)));
        let best = times.min_by(|(_, a), (_, b)| a.total_cmp(b));
        match (best, self.time(usual)) {
            (Some((way, time)), Some(time_of_usual)) if time < BETTER * time_of_usual => way,
            (Some((way, _)), None) => way,
            _ => usual,
        }
    }
}

impl Trials {
    /// Notes a call of rank 0 on a way, and decides about the shapes that are known well enough.
    pub(crate) fn note(
        &mut self,
        world: &Measured<'_>,
        (key, shape, name): (u64, Shape, impl FnOnce() -> String),
        (number, way): (u64, Way),
    ) {
        self.all.entry(key).or_insert_with(|| Trial::new(name(), shape, number));
        self.pending.push(Pending { number, key, way });
        let mut known = Vec::new();
        self.pending.retain(|call| match world.shared.slowest(call.number) {
            Some(time) => {
                known.push((*call, time));
                false
            }
            // A rank that is far ahead has published later times in place of this one.
            None => call.number + 2 * WINDOW > number,
        });
        for (call, time) in known {
            self.take(world, call, time, number);
        }
    }

    /// Takes the time of a call, in rank 0's call `number`.
    fn take(&mut self, world: &Measured<'_>, call: Pending, time: Duration, number: u64) {
        let Some(trial) = self.all.get_mut(&call.key) else { return };
        if matches!(trial.stage, Stage::Decided(_)) || call.number < trial.from {
            return;
        }
        let (key, way) = (call.key, call.way);
        let least = trial.times.values().flatten().copied().min_by(f64::total_cmp);
        let least = least.unwrap_or(f64::INFINITY);
        // A call that lost its core says nothing about its way.
        let beyond = (time.as_secs_f64() - least).min(SLOWEST * least);
        let beyond = Duration::try_from_secs_f64(beyond).unwrap_or_default();
        if world.choosing != Choosing::Anew {
            self.cost += beyond;
        }
        trial.times.entry(way.id()).or_default().push(time.as_secs_f64());
        trial.calls += 1;
        let ends = trial.calls >= MOST || self.cost > COST;
        let coarse = trial.stage == Stage::Coarse && trial.calls >= MOST_COARSE;
        if !ends && !coarse && !trial.is_complete() {
            return;
        }
        let best = trial.best();
        let next = match trial.stage {
            Stage::Coarse if !ends => Set::near(best, trial.shape, world.can_lend),
            _ => Set::one(best),
        };
        match world.shared.decide(key, next, number) {
            Some(from) => trial.from = from,
            // The table is full. All shapes without an entry keep to the usual ways, this one among them.
            None if !self.over => {
                self.over = true;
                world.shared.settle_rest(number);
            }
            None => {}
        }
        if self.cost > COST && !self.over {
            self.over = true;
            world.shared.settle_rest(number);
        }
        trial.ways = next;
        trial.stage = next.only().map_or(Stage::Fine, Stage::Decided);
        if self.over {
            // Shapes without an entry have the usual way from now on.
            for trial in self.all.values_mut().filter(|trial| trial.stage == Stage::Coarse) {
                trial.stage = Stage::Decided(Way::usual(trial.shape));
            }
        }
    }

    /// Returns all decisions, in the order of the first calls of their shapes.
    pub(crate) fn decided(&self) -> Vec<Decided> {
        let mut all: Vec<_> = self.all.iter().collect();
        all.sort_by_key(|(_, trial)| trial.first);
        let decided = all.into_iter().filter_map(|(key, trial)| {
            let Stage::Decided(way) = trial.stage else { return None };
            let usual = Way::usual(trial.shape);
            let seconds = trial.time(usual).zip(trial.time(way)).map(<[f64; 2]>::from);
            Some(Decided { key: *key, name: trial.name.clone(), way, seconds })
        });
        decided.collect()
    }
}
