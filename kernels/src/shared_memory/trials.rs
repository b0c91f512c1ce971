//! The choice of ways by measurement. The first calls of a shape take its ways in turns; rank 0 times them, and decides
//! for all ranks. The shapes of a call are its schedule and the power of two that its bytes reach.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ways::{Set, Shape, Way, WayId};
use super::world::World;

/// Timed calls of each way, after a first call that is not counted: it finds caches and pages cold.
const CALLS: usize = 5;
/// The most calls of a shape before its decision.
const MOST: u32 = 64;
/// The most time that calls of slower ways may cost a world: 5 % of a second.
const COST: Duration = Duration::from_millis(50);
/// A way is better than the usual one if its time is less than this part of it: smaller differences may be chance.
const BETTER: f64 = 0.97;

/// A shape whose ways are on trial, or decided.
pub(super) struct Trial {
    /// The name of the call for reports.
    pub(super) name: String,
    shape: Shape,
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
pub(super) struct Trials {
    all: BTreeMap<u64, Trial>,
    /// The time of calls beyond the time that the best known way of their shape would have taken.
    cost: Duration,
    over: bool,
}

/// A decision for reports and files.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decided {
    pub(super) key: u64,
    pub(super) name: String,
    pub(super) way: Way,
    /// Seconds of the usual way and of the best one, where both were measured.
    pub(super) seconds: Option<[f64; 2]>,
}

/// A way that a world has chosen for the calls of a shape.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChosenWay {
    /// The algorithm, and the first call of the shape: the shape also has the calls whose bytes reach the same power of
    /// two.
    pub call: String,
    /// The way in words, such as `tiles of 1 MiB, staged inputs`.
    pub way: String,
    /// Seconds of a call on the usual way, and on the chosen one; `None` where they were not both measured.
    pub seconds: Option<[f64; 2]>,
}

impl From<Decided> for ChosenWay {
    fn from(Decided { name, way, seconds, .. }: Decided) -> Self {
        Self { call: name, way: way.to_string(), seconds }
    }
}

impl Trial {
    fn new(name: String, shape: Shape) -> Self {
        let ways = Set::coarse(shape);
        let (times, stage) = (BTreeMap::new(), Stage::Coarse);
        Self { name, shape, ways, from: 0, times, calls: 0, stage }
    }

    /// Returns the time of a way: the lower quartile, as other work on the machine only makes calls longer.
    fn time(&self, way: Way) -> Option<f64> {
        let mut times = self.times.get(&way.id())?.get(1..)?.to_vec();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 4).copied()
    }

    fn is_complete(&self) -> bool {
        self.ways.ways().all(|way| self.times.get(&way.id()).is_some_and(|all| all.len() > CALLS))
    }

    /// Returns the fastest way that was measured; the usual way, unless another is clearly faster.
    fn best(&self) -> Way {
        let usual = Way::first(self.shape).within(self.shape);
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
    /// Notes the time of rank 0's call `number` on a way, and decides if the shape is known well enough.
    pub(super) fn note(
        &mut self,
        world: &World,
        (key, shape, name): (u64, Shape, impl FnOnce() -> String),
        (number, way, time): (u64, Way, Duration),
    ) {
        let trial = self.all.entry(key).or_insert_with(|| Trial::new(name(), shape));
        if matches!(trial.stage, Stage::Decided(_)) || number < trial.from {
            return;
        }
        let least = trial.times.values().flat_map(|all| all.get(1..).unwrap_or(&[]));
        let least = least.copied().min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
        let beyond = Duration::try_from_secs_f64(time.as_secs_f64() - least).unwrap_or_default();
        self.cost += beyond;
        trial.times.entry(way.id()).or_default().push(time.as_secs_f64());
        trial.calls += 1;
        let ends = trial.calls >= MOST || self.cost > COST;
        if !ends && !trial.is_complete() {
            return;
        }
        let best = trial.best();
        let next = match trial.stage {
            Stage::Coarse if !ends => Set::near(best, trial.shape, world.spins),
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
    }

    /// Returns all decisions.
    pub(super) fn decided(&self) -> Vec<Decided> {
        let decided = self.all.iter().filter_map(|(key, trial)| {
            let Stage::Decided(way) = trial.stage else { return None };
            let usual = Way::first(trial.shape).within(trial.shape);
            let seconds = trial.time(usual).zip(trial.time(way)).map(<[f64; 2]>::from);
            Some(Decided { key: *key, name: trial.name.clone(), way, seconds })
        });
        decided.collect()
    }
}
