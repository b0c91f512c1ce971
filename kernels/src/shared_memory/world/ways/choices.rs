//! The table of the ways that ranks take, in the arena. Rank 0 writes it, and every rank reads it at the beginning of a
//! call, so all ranks take one way.
//!
//! An entry holds two decisions, each of which begins with a call's number. Rank 0 writes a decision in its call N and
//! lets it begin with call N + [`WINDOW`]. No rank begins that call before rank 0 has published call N + 1, so every
//! rank has seen the decision by then. Rank 0 writes the next decision over the older one, and only when all ranks are
//! in calls of the newer one.

use std::time::Duration;

use super::Set;
use crate::call_numbers::WINDOW;
use crate::shared_memory::world::memory::arena::{CHOICES, LINE};
use crate::shared_memory::world::memory::shared_state::SharedState;
use crate::sync::Ordering;

/// The entry for calls of shapes that have no entry of their own.
const REST: usize = 0;
/// The entries that a shape's entry may be.
const NEAR: usize = 16;
/// Words of an entry: the shape's key, and two decisions of two words each, the first call and the ways.
const WORDS: usize = LINE / 8;
/// The first call of a decision that was never made.
const NEVER: u64 = 0;

/// The words of a table, for memory that no rank shares yet: the entries of known shapes, and the ways of all other
/// shapes, which are to be measured if there are none; an empty set stands for the usual way.
pub(crate) fn image(known: &[(u64, Set)], rest: Option<Set>) -> Vec<u8> {
    let mut words = vec![0_u64; CHOICES * WORDS];
    if let Some(rest) = rest {
        words[REST * WORDS + 1..][..2].copy_from_slice(&[1, rest.0]);
    }
    for (key, set) in known {
        let place = places(*key).find(|at| words[at * WORDS] == 0);
        if let Some(at) = place {
            words[at * WORDS..][..3].copy_from_slice(&[*key, 1, set.0]);
        }
    }
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Returns the entries that may be that of a shape.
fn places(key: u64) -> impl Iterator<Item = usize> {
    let first = key as usize;
    (0..NEAR).map(move |next| 1 + first.wrapping_add(next) % (CHOICES - 1))
}

impl SharedState {
    fn choice(&self, at: usize, word: usize) -> &crate::sync::AtomicU64 {
        self.arena.word(self.arena.layout.choice(at) + 8 * word)
    }

    /// Returns the ways of a shape's call `number`: `None` if no decision holds for it.
    pub(crate) fn decided(&self, key: u64, number: u64) -> Option<Set> {
        let found = places(key).map(|at| (at, self.choice(at, 0).load(Ordering::Acquire)));
        let mut found = found.take_while(|(_, found)| *found != 0);
        let own = found.find(|(_, found)| *found == key);
        own.and_then(|(at, _)| self.decision(at, number)).or_else(|| self.decision(REST, number))
    }

    fn decision(&self, at: usize, number: u64) -> Option<Set> {
        let first = |which: usize| self.choice(at, 1 + 2 * which).load(Ordering::Acquire);
        let begins = [first(0), first(1)].map(|first| if first <= number { first } else { NEVER });
        let which = usize::from(begins[1] > begins[0]);
        let set = || Set(self.choice(at, 2 + 2 * which).load(Ordering::Relaxed));
        (begins[which] != NEVER).then(set)
    }

    /// Publishes the ways of a shape from call `number` + [`WINDOW`] on, in rank 0's call `number`; returns the first
    /// call with these ways, or `None` if the table has no room.
    pub(crate) fn decide(&self, key: u64, set: Set, number: u64) -> Option<u64> {
        let key_at = |at: usize| self.choice(at, 0).load(Ordering::Relaxed);
        let at = places(key).find(|at| [0, key].contains(&key_at(*at)))?;
        Some(self.write(at, key, set, number))
    }

    /// Publishes the time of a call of this process's rank, in nanoseconds.
    pub(crate) fn took(&self, rank: usize, number: u64, time: Duration) {
        let nanoseconds = time.as_nanos().min(u128::from(u32::MAX)) as u64;
        let word = self.arena.word(self.arena.layout.time(rank, number));
        word.store(number << 32 | nanoseconds, Ordering::Relaxed);
    }

    /// Returns the mean time of the ranks in a call, or that of the slowest rank where some ranks may not wait for others,
    /// if all ranks have published theirs, and no rank has written a later time in the same place. Where all wait for
    /// all, a rank that is late in one call is early in the next one, so the slowest rank's time would be too long.
    pub(crate) fn time(&self, number: u64, all_wait: bool) -> Option<Duration> {
        let word = |rank| self.arena.word(self.arena.layout.time(rank, number));
        let times = (0..self.nranks()).map(|rank| {
            let word = word(rank).load(Ordering::Relaxed);
            (word >> 32 == number & u64::from(u32::MAX)).then_some(u64::from(word as u32))
        });
        let times: Vec<u64> = times.collect::<Option<_>>()?;
        let mean = times.iter().sum::<u64>() / times.len() as u64;
        let time = if all_wait { mean } else { times.into_iter().max()? };
        Some(Duration::from_nanos(time))
    }

    /// Publishes that shapes without an entry keep to the usual ways.
    pub(crate) fn settle_rest(&self, number: u64) {
        self.write(REST, 0, Set(0), number);
    }

    fn write(&self, at: usize, key: u64, set: Set, number: u64) -> u64 {
        let word = |word: usize| self.choice(at, word);
        let begins = [1, 3].map(|first| word(first).load(Ordering::Relaxed));
        // The older decision is the one that no rank reads any more.
        let which = if begins[0] <= begins[1] { 1 } else { 3 };
        let first = number + WINDOW;
        word(which + 1).store(set.0, Ordering::Relaxed);
        // Release: the ways come before the first call, and the decision before the key.
        word(which).store(first, Ordering::Release);
        word(0).store(key, Ordering::Release);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::super::Way;
    use super::*;
    use crate::Options;
    use crate::shared_memory::World;

    fn sets() -> [Set; 3] {
        [3, 5, 17].map(|id| Set::one(Way::of(id)))
    }

    /// A rank that is behind still reads the decision of its own call.
    #[test]
    fn a_decision_begins_with_its_call() {
        let worlds = World::together(2, Options::new()).expect("worlds");
        let [ours, theirs] = [&worlds[0].shared, &worlds[1].shared];
        let [a, b, c] = sets();
        assert_eq!(theirs.decided(7, 1), None);
        let first = ours.decide(7, a, 10).expect("room");
        assert_eq!([first - 1, first].map(|at| theirs.decided(7, at)), [None, Some(a)]);
        let second = ours.decide(7, b, 40).expect("room");
        let seen = [first - 1, first, second - 1, second].map(|at| theirs.decided(7, at));
        assert_eq!(seen, [None, Some(a), Some(a), Some(b)]);
        let third = ours.decide(7, c, 100).expect("room");
        assert_eq!(
            [second, third - 1, third].map(|at| theirs.decided(7, at)),
            [Some(b), Some(b), Some(c)]
        );
    }

    /// A table that is full has no room for a further shape, and the rest of the shapes have a decision of their own.
    #[test]
    fn a_full_table_keeps_its_entries() {
        let worlds = World::together(1, Options::new()).expect("a world");
        let (shared, [a, b, _]) = (&worlds[0].shared, sets());
        let same: Vec<u64> = (1..).map(|n| n * (CHOICES as u64 - 1)).take(NEAR + 1).collect();
        let (last, room) = same.split_last().expect("more than one");
        assert!(room.iter().all(|key| shared.decide(*key, a, 1).is_some()));
        assert_eq!(shared.decide(*last, b, 1), None);
        assert!(room.iter().all(|key| shared.decided(*key, 1 + WINDOW) == Some(a)));
        assert_eq!(shared.decided(*last, 1 + WINDOW), None);
        shared.settle_rest(2);
        assert_eq!(shared.decided(*last, 2 + WINDOW), Some(Set(0)));
        assert_eq!(shared.decided(*last, 1 + WINDOW), None);
    }

    /// Until a shape's first decision begins, the decision for the rest holds for the shape.
    #[test]
    fn the_rest_holds_until_a_decision_begins() {
        let worlds = World::together(1, Options::new()).expect("a world");
        let (shared, [a, ..]) = (&worlds[0].shared, sets());
        shared.settle_rest(1);
        let first = shared.decide(7, a, 20).expect("room");
        assert_eq!([first - 1, first].map(|at| shared.decided(7, at)), [Some(Set(0)), Some(a)]);
    }

    /// The first call already finds the decisions of memory that was written before ranks shared it.
    #[test]
    fn known_shapes_are_decided_from_the_first_call_on() {
        let worlds = World::together(1, Options::new()).expect("a world");
        let (shared, [a, b, _]) = (&worlds[0].shared, sets());
        let layout = shared.arena.layout;
        for (nth, word) in image(&[(7, a), (8, b)], Some(Set(0))).chunks(8).enumerate() {
            let word = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
            shared.arena.word(layout.choice(0) + 8 * nth).store(word, Ordering::Relaxed);
        }
        assert_eq!([7, 8, 9].map(|key| shared.decided(key, 1)), [Some(a), Some(b), Some(Set(0))]);
    }
}
