//! The choice of ways by measurement. The first calls of a shape take its ways in turns. Every rank times them, and rank 0
//! decides for all ranks by the mean of each call; by the slowest rank where a root does not wait for its readers.
//! A shape is a schedule and the power of two that the bytes of a call reach.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Passage, Set, Shape, Way, WayId};
use crate::call_numbers::WINDOW;
use crate::chosen_way::ChosenWay;
use crate::options::Choosing;
use crate::shared_memory::world::memory::shared_state::SharedState;

/// The rounds of a comparison: the calls of each way by the end of a round, and the most time of a way, in times of the
/// best one, that takes part in the next round. Before the last round the ways that are near the best one come in, and
/// after it the best one is decided.
const ROUNDS: [(usize, f64); 4] = [(3, 1.3), (6, 1.15), (10, 1.06), (8, 1.0)];
/// The most calls of a shape before its decision.
const MOST: u32 = 192;
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
    usual: Way,
    /// The number of the first call of the shape.
    first: u64,
    ways: Set,
    /// The first call of the ways that are compared now.
    from: u64,
    /// Seconds of each way's calls, in the order of the calls.
    times: BTreeMap<WayId, Vec<f64>>,
    calls: u32,
    /// The last call, and its way.
    last: (u64, Way),
    round: usize,
    decided: Option<Way>,
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
    all_wait: bool,
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
    /// Begins with the usual way, which is decided where trials are `over`.
    fn new(name: String, (shape, can_lend): (Shape, bool), first: u64, over: bool) -> Self {
        let usual = Way::usual(shape);
        let stored = usual.lends() && !(can_lend && shape.pulls);
        let usual = if stored { Way { passage: Passage::Stored, ..usual } } else { usual };
        let decided = over.then_some(usual);
        let (ways, times, last) = (Set::one(usual), BTreeMap::new(), (0, usual));
        let (from, calls, round) = (0, 0, 0);
        Self { name, shape, usual, first, ways, from, times, calls, last, round, decided }
    }

    /// Returns the time of a way: the lower quartile, as cold caches and other work only make calls longer.
    fn time(&self, way: Way) -> Option<f64> {
        let mut times = self.times.get(&way.id())?.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 4).copied()
    }

    /// Whether all ways have been called often enough for this round.
    fn is_complete(&self) -> bool {
        let enough = |way: Way| {
            self.times.get(&way.id()).is_some_and(|all| all.len() >= ROUNDS[self.round].0)
        };
        self.ways.ways().all(enough)
    }

    /// Returns the fastest way of those that are compared; the usual way, unless another is clearly faster.
    fn best(&self) -> Way {
        let usual = self.usual;
        let times = self.ways.ways().filter_map(|way| Some((way, self.time(way)?)));
        match (times.min_by(|(_, a), (_, b)| a.total_cmp(b)), self.time(usual)) {
            (Some((_, time)), Some(time_of_usual)) if time >= BETTER * time_of_usual => usual,
            (Some((way, _)), _) => way,
            (None, _) => usual,
        }
    }

    /// Returns the ways of the next round; the best way alone if there is none.
    fn next(&mut self, ends: bool) -> Set {
        let (best, within) = (self.best(), ROUNDS[self.round].1);
        self.round += 1;
        if ends || self.round == ROUNDS.len() {
            return Set::one(best);
        }
        let most = self.time(best).unwrap_or(f64::INFINITY) * within;
        let kept = self.ways.ways().filter(|way| self.time(*way).is_some_and(|time| time <= most));
        let kept = Set::of(kept.chain([best]));
        let is_last = self.round + 1 == ROUNDS.len();
        if is_last { kept.with(Set::near(best, self.shape)) } else { kept }
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
        if !self.all.contains_key(&key) {
            self.all.insert(key, Trial::new(name(), (shape, world.can_lend), number, self.over));
            if !self.over {
                self.go_on(world, (key, number), Set::coarse(shape, world.can_lend));
            }
        }
        self.pending.push(Pending { number, key, way, all_wait: shape.all_wait });
        let mut known = Vec::new();
        self.pending.retain(|call| match world.shared.time(call.number, call.all_wait) {
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
        if trial.decided.is_some() || call.number < trial.from {
            return;
        }
        let before = std::mem::replace(&mut trial.last, (call.number, call.way));
        trial.calls += 1;
        // A call right after one on another way finds the caches as that way has left them.
        if before.0 + 1 != call.number || before.1 == call.way {
            let least = trial.times.values().flatten().copied().min_by(f64::total_cmp);
            let least = least.unwrap_or(f64::INFINITY);
            // A call that lost its core says nothing about its way.
            let beyond = (time.as_secs_f64() - least).min(SLOWEST * least);
            let beyond = Duration::try_from_secs_f64(beyond).unwrap_or_default();
            if world.choosing != Choosing::Anew {
                self.cost += beyond;
            }
            trial.times.entry(call.way.id()).or_default().push(time.as_secs_f64());
        }
        let ends = trial.calls >= MOST || self.cost > COST;
        if !ends && !trial.is_complete() {
            return;
        }
        let next = trial.next(ends);
        self.go_on(world, (call.key, number), next);
    }

    /// Has the calls of a shape take the ways of a set, in rank 0's call `number`.
    fn go_on(&mut self, world: &Measured<'_>, (key, number): (u64, u64), next: Set) {
        let from = world.shared.decide(key, next, number);
        let Some(trial) = self.all.get_mut(&key) else { return };
        (trial.ways, trial.decided) = (next, next.only());
        match from {
            Some(from) => trial.from = from,
            // All shapes without an entry keep to the usual ways, this one among them.
            None => trial.decided = Some(trial.usual),
        }
        // The table is full, or the trials of a world have cost enough.
        if !self.over && (from.is_none() || self.cost > COST) {
            self.over = true;
            world.shared.settle_rest(number);
        }
    }

    /// Returns all decisions, in the order of the first calls of their shapes.
    pub(crate) fn decided(&self) -> Vec<Decided> {
        let mut all: Vec<_> = self.all.iter().collect();
        all.sort_by_key(|(_, trial)| trial.first);
        let decided = all.into_iter().filter_map(|(key, trial)| {
            let way = trial.decided?;
            let seconds = trial.time(trial.usual).zip(trial.time(way)).map(<[f64; 2]>::from);
            Some(Decided { key: *key, name: trial.name.clone(), way, seconds })
        });
        decided.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::call_numbers::WINDOW;
    use crate::shared_memory::World;

    /// Returns the time of the way that is chosen for calls of `shape`, in times of the best way: a way has one of the times
    /// of chance, the first calls and calls after another way are longer, and a part of the calls, `lost`, are much longer.
    /// Also returns the number of calls until the decision.
    fn chosen(shared: &SharedState, key: u64, first: u64, shape: Shape, lost: f64) -> (f64, u64) {
        let mut chance = fastrand::Rng::with_seed(key);
        let times: Vec<f64> = (0..Set::WAYS).map(|_| 140e-6 * (1.0 + 2.0 * chance.f64())).collect();
        let of = |way: Way| times[way.id() as usize];
        let (mut trials, mut last) = (Trials::default(), Way::usual(shape));
        let world = Measured { shared, choosing: Choosing::Measured, can_lend: true };
        for number in first.. {
            let decided = shared.decided(key, number);
            let way = decided.and_then(|set| set.turn(number)).unwrap_or(Way::usual(shape));
            let cold = if number < first + WINDOW { 3.0 } else { 1.0 };
            let switched = if way == last { 1.0 } else { 1.0 + chance.f64() };
            let alone = if chance.f64() < lost { 1.0 + 9.0 * chance.f64() } else { 1.0 };
            let time = of(way) * cold * switched * alone * (1.0 + 0.1 * chance.f64());
            shared.took(0, number, Duration::from_secs_f64(time));
            trials.note(&world, (key, shape, String::new), (number, way));
            last = way;
            if let [Decided { way, .. }] = trials.decided()[..] {
                let best = Set::coarse(shape, true).ways().map(of).min_by(f64::total_cmp);
                return (of(way) / best.expect("a way"), number - first);
            }
        }
        unreachable!("a choice ends")
    }

    /// The choice is within 1.15 of the best way in 9 of 10 worlds, on a quiet machine and on one where a third of the calls
    /// lose their core.
    #[test]
    fn choices_hold() {
        for bytes in [32 << 10, 256 << 10, 1 << 20, 16 << 20] {
            // Each world has a table of its own.
            let worlds = World::together(1, Options::new()).expect("a world");
            let (shared, mut first) = (&worlds[0].shared, 1);
            for (shares, lost) in [(true, 0.0), (true, 0.3), (false, 0.0), (false, 0.3)] {
                let shape = Shape { bytes, output: bytes, shares, ..Shape::EMPTY };
                let mut all = Vec::new();
                for _ in 0..20 {
                    let (ratio, calls) = chosen(shared, 1 + first, first, shape, lost);
                    assert!(calls <= u64::from(MOST) + 5 * WINDOW, "{calls} calls");
                    all.push(ratio);
                    first += calls + 2 * WINDOW;
                }
                all.sort_by(f64::total_cmp);
                assert!(all[17] <= 1.15, "{bytes} bytes, {shares}, {lost}: {all:?}");
            }
        }
    }
}
