//! Schedules that one rank makes and other ranks take: a host lays out, proves and fuses an algorithm once. A rank
//! takes a schedule as text, reads it like any schedule text, and lowers it with every check of lowering, so it uses no
//! unchecked index of another rank.

use std::fmt::Write as _;
use std::sync::Arc;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{OpId, RankId};
use roundelay_core::optimize::{Goal, Level, Optimized};
use roundelay_core::schedule::hash::content;
use roundelay_core::schedule::{Schedule, text};
use roundelay_core::verify::{Callers, Ports, Proof, Proved};
use sha2::{Digest as _, Sha256};

use super::strategy::fused_strategy;
use crate::Error;
use crate::shared_memory::world::World;
use crate::shared_memory::world::memory::arena::OFFER;
use crate::shared_memory::world::watch::{self, Watch};
use crate::shared_memory::world::ways::{Shape, Way};
use crate::sync::{AtomicU64, Ordering};

/// The name of an algorithm for the ranks of a world: a hash of all facts from which its schedule follows.
#[derive(Clone, Copy)]
struct Key([u64; 4]);

impl Key {
    /// Returns the key of these words, which must be equal on all ranks.
    fn new(words: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for word in words {
            digest.update((word.len() as u64).to_le_bytes());
            digest.update(word);
        }
        let bytes: [u8; 32] = digest.finalize().into();
        Self(std::array::from_fn(|at| {
            u64::from_le_bytes(bytes[8 * at..][..8].try_into().expect("8 of 32 bytes"))
        }))
    }
}

/// A schedule for the plans of a world: made by this rank, or taken from the rank that made it.
#[derive(Debug)]
pub struct Prepared(pub(crate) PlanSource);

#[derive(Debug)]
pub(crate) enum PlanSource {
    Own(Proved),
    /// A fused schedule, with the digest of the schedule that its author wrote.
    Taken([u8; 32], Arc<Optimized>),
}

impl Prepared {
    /// Returns a schedule that this rank laid out and proved by itself.
    pub fn own(proved: Proved) -> Self {
        Self(PlanSource::Own(proved))
    }

    /// Returns the schedule: the author's, or the schedule that was fused from it and has its guarantees.
    pub fn schedule(&self) -> &Schedule {
        match &self.0 {
            PlanSource::Own(proved) => proved.schedule(),
            PlanSource::Taken(_, fused) => &fused.schedule,
        }
    }
}

/// States of a record of one schedule. Above the state bits stand the rank that makes the schedule, and the number of
/// changes of the record.
const CLAIMED: u64 = 1;
const MAKING: u64 = 2;
const READY: u64 = 3;
const REFUSED: u64 = 4;
const STATE: u64 = 7;
const RANK: u32 = 3;
const TURN: u32 = 32;

/// Words before the text: the state, the key, the length of the text, and its digest.
const WORDS: usize = 8;

impl World {
    /// Returns the schedule that `make` makes, or takes it from another rank that has made it or is making it now.
    /// `words` name all facts from which the schedule follows, so that equal words give equal schedules.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn prepare<E>(
        &self,
        words: &[&str],
        make: impl FnOnce() -> Result<Proved, E>,
    ) -> Result<Prepared, E> {
        let own = |make: &dyn Fn() -> Result<Proved, E>| make().map(Prepared::own);
        let make = std::cell::Cell::new(Some(make));
        let make = || (make.take().expect("it is made once"))();
        let goal = self.options.goal(Callers::One);
        // A forked child has no arena to look at, and cannot call the schedules that it makes.
        if goal.level != Level::O2 || self.nranks() == 1 || self.here().is_err() {
            return own(&make);
        }
        // Ranks that may reassociate reductions have other schedules.
        let [first, rest @ ..] = Key::new(words).0;
        let [second, third, fourth] = rest;
        let key = Key([first ^ u64::from(goal.reassociate), second, third, fourth]);
        let place = PlanRecord { world: self, at: self.shared.arena.layout.offer(key.0[0]) };
        loop {
            let state = place.word(0).load(Ordering::Acquire);
            let same = place.key() == key.0;
            match state & STATE {
                READY if same => {
                    return match place.read(state) {
                        Some(taken) => Ok(taken),
                        None => own(&make),
                    };
                }
                // The maker is a rank like this one, so the schedule comes soon; or the maker is gone, or the record is
                // damaged.
                MAKING | CLAIMED if same || state & STATE == CLAIMED => {
                    let changed = || place.word(0).load(Ordering::Acquire) != state;
                    let maker = (state >> RANK) as u32 as usize & ((1 << (TURN - RANK)) - 1);
                    if maker >= self.shared.nranks()
                        || watch::wait(&Seeking(self), Some(maker), changed).is_err()
                    {
                        return own(&make);
                    }
                }
                REFUSED if same => return own(&make),
                MAKING => return own(&make),
                _ => {
                    if place.claim(state, key) {
                        let made = make();
                        place.offer(made.as_ref().ok(), goal);
                        return made.map(Prepared::own);
                    }
                }
            }
        }
    }
}

/// The record of one schedule in the arena, found by the schedule's key.
struct PlanRecord<'w> {
    world: &'w World,
    at: usize,
}

impl PlanRecord<'_> {
    fn word(&self, at: usize) -> &AtomicU64 {
        self.world.shared.arena.word(self.at + 8 * at)
    }

    fn key(&self) -> [u64; 4] {
        std::array::from_fn(|at| self.word(1 + at).load(Ordering::Relaxed))
    }

    /// Returns the word for a new state by this rank, after the word `before`.
    fn next(&self, before: u64, state: u64) -> u64 {
        (before >> TURN).wrapping_add(1) << TURN | (self.world.rank as u64) << RANK | state
    }

    /// Claims the record for a key; returns whether this rank has it.
    fn claim(&self, before: u64, key: Key) -> bool {
        let claimed = self.next(before, CLAIMED);
        let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        if self.word(0).compare_exchange(before, claimed, done, failed).is_err() {
            return false;
        }
        for (at, word) in key.0.into_iter().enumerate() {
            self.word(1 + at).store(word, Ordering::Relaxed);
        }
        self.word(0).store(self.next(claimed, MAKING), Ordering::Release);
        self.world.shared.wake_all();
        true
    }

    /// Writes the schedule to the record, or that there is no schedule to take.
    fn offer(&self, proved: Option<&Proved>, goal: Goal) {
        let text = proved.and_then(|proved| printed(proved, goal));
        let text = text.filter(|text| text.len() <= OFFER - 8 * WORDS);
        let state = if text.is_some() { READY } else { REFUSED };
        if let Some(text) = text {
            self.world.shared.arena.store_text(self.at + 8 * WORDS, text.as_bytes());
            self.word(5).store(text.len() as u64, Ordering::Relaxed);
            self.word(6).store(Key::new(&[&text]).0[0], Ordering::Relaxed);
        }
        let before = self.word(0).load(Ordering::Relaxed);
        self.word(0).store(self.next(before, state), Ordering::Release);
        self.world.shared.wake_all();
    }

    /// Returns the schedule of the record; `None` if the record has changed meanwhile or is damaged.
    fn read(&self, state: u64) -> Option<Prepared> {
        let len = usize::try_from(self.word(5).load(Ordering::Relaxed)).ok()?;
        if len > OFFER - 8 * WORDS {
            return None;
        }
        let bytes = self.world.shared.arena.load_text(self.at + 8 * WORDS, len);
        let digest = self.word(6).load(Ordering::Acquire);
        let text = String::from_utf8(bytes).ok()?;
        let whole =
            self.word(0).load(Ordering::Acquire) == state && Key::new(&[&text]).0[0] == digest;
        if whole { read(&text, self.world.nranks()) } else { None }
    }
}

/// Returns the fused schedule as text: a line about the proof, and then the schedule. `None` if it does not fuse or
/// does not fit the slots: then ranks need the author's schedule.
fn printed(proved: &Proved, goal: Goal) -> Option<String> {
    let made = proved.optimize(goal).ok().filter(|made| made.level == Level::O2)?;
    // Checks with the largest elements, as these may not fit.
    let way = Way::usual(Shape::EMPTY);
    let call = (Some(1), DType::F64, ReduceOp::Sum);
    fused_strategy(&made, RankId(0), call, (way.makers, way.tile())).ok()??;
    let Proof { finish, scale_outputs, in_place, .. } = &*made.proof;
    let mut line = String::new();
    for byte in content(proved.schedule()).bytes() {
        write!(line, "{byte:02x}").ok()?;
    }
    write!(line, " {scale_outputs} {in_place}").ok()?;
    for op in finish {
        write!(line, " {}", op.0).ok()?;
    }
    Some(format!("{line}\n{}", text::print(&made.schedule)))
}

/// Reads the text that [`printed`] wrote.
fn read(text: &str, nranks: u32) -> Option<Prepared> {
    let (line, schedule) = text.split_once('\n')?;
    let mut words = line.split(' ');
    let digits = words.next()?;
    let mut author = [0; 32];
    for (byte, at) in author.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
    }
    let (scale_outputs, in_place) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let finish: Vec<OpId> =
        words.map(|word| Some(OpId(word.parse().ok()?))).collect::<Option<_>>()?;
    let schedule = text::parse(schedule).ok().filter(|schedule| schedule.nranks == nranks)?;
    let proof = Proof {
        finish,
        scale_outputs,
        in_place,
        one_mode: None,
        reduce_depth: 0,
        steps: 0,
        ports: Ports::default(),
        reduction: None,
        orders: Arc::default(),
    };
    let made = Optimized {
        schedule: Arc::new(schedule),
        proof: Arc::new(proof),
        level: Level::O2,
        unfit: None,
    };
    Some(Prepared(PlanSource::Taken(author, Arc::new(made))))
}

/// A wait for a schedule that another rank makes. If the wait fails, this rank makes the schedule itself.
struct Seeking<'w>(&'w World);

impl Watch for Seeking<'_> {
    fn world(&self) -> &World {
        self.0
    }

    fn ends(&self) -> bool {
        self.goes_on().is_err()
    }

    fn goes_on(&self) -> Result<(), Error> {
        self.0.intact()
    }

    fn needs(&self, _rank: usize) -> bool {
        true
    }

    fn lost(&self, rank: usize, how: &str) -> Error {
        Error::Corrupt { what: format!("rank {rank} {how} while it made a schedule") }
    }

    fn late(&self, _on: Option<usize>) -> Error {
        Error::Corrupt { what: "a schedule is long in the making".to_owned() }
    }
}

#[cfg(test)]
mod tests;
