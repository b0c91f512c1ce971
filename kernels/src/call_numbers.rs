//! The numbers of calls, which ranks that call by themselves have alike, whether they are threads or processes.
//!
//! Each rank numbers its calls from 1. Before it posts anything, it publishes its call: a word with the number, and bits
//! of its engine's below. Before it takes a signal, moves or reduces data, it compares its call with the calls of the
//! ranks that it waits for or whose memory it accesses. If two ranks make different calls under one number, the call is
//! *refused*: the number is void for all ranks, each rank gets the error once, and calls with later numbers work as
//! usual. Every other failure, such as a missed deadline, ends all calls, now and later.
//!
//! A word is overwritten after a window of calls, so a rank gets no further ahead of the slowest rank than that. A rank
//! that had left a refused call before it was known hears of it in place of its next call, or when it leaves.

use std::time::Duration;

use roundelay_core::ids::RankId;

use crate::error::{Differ, Error, Missing};
use crate::sync::MODELLED;

/// The number of a rank's last calls that other ranks can still read. It is small in a model, so that a few calls wrap
/// around it.
pub(crate) const WINDOW: u64 = if MODELLED { 3 } else { 8 };

/// Bits of the word of a call below its number.
pub(crate) const LOW: u32 = 24;

/// Returns the word of a call: bits of the engine's, and above them the low bits of the number.
pub(crate) fn word(number: u64, low: u64) -> u64 {
    number << LOW | low
}

/// Returns the bits below the number in a word, if it is the word of call `number`: a number comes again after 2^40
/// calls, and a word is overwritten after a window of them.
pub(crate) fn low(of: u64, number: u64) -> Option<u64> {
    let low = of & ((1 << LOW) - 1);
    (of == word(number, low)).then_some(low)
}

/// The calls of all ranks, as one of the ranks sees them.
pub(crate) trait CallsSeen {
    /// Returns the other ranks, in another order for each rank.
    fn others(&self) -> impl Iterator<Item = usize>;

    /// Returns the name of a rank in messages.
    fn named(&self, rank: usize) -> RankId;

    /// Returns this rank.
    fn own(&self) -> usize;

    /// Returns the number of calls that a rank has made.
    fn number(&self, rank: usize) -> u64;

    /// Returns the call `number` of a rank in words, if it can be read.
    fn call_name(&self, rank: usize, number: u64) -> Option<String>;

    /// Whether a rank is in call `number`, which it has made.
    fn is_inside(&self, rank: usize, number: u64) -> bool;

    /// Returns the number of refused calls.
    fn refused(&self) -> u64;

    /// Whether call `number` was refused; calls are known for two windows.
    fn is_void(&self, number: u64) -> bool;

    /// Returns the record of a call that was refused.
    fn differ(&self, number: u64) -> Differ;

    /// Whether all calls have failed.
    fn has_failed(&self) -> bool;

    /// Fails with the reason if all calls have failed.
    fn intact(&self) -> Result<(), Error>;

    /// Whether call `number` ends early.
    fn ends(&self, number: u64) -> bool {
        self.has_failed() || self.is_void(number)
    }

    /// Fails with the reason if call `number` ends early.
    fn goes_on(&self, number: u64) -> Result<(), Error> {
        // Checked first, as a refused call may be the reason why all calls ended.
        if self.is_void(number) {
            return Err(Error::CallsDiffer(Box::new(self.differ(number))));
        }
        self.intact()
    }

    /// Returns the result of call `number` for its caller. If the call is void, it reports that even after it has moved
    /// its data, so that no rank has to wait for the next call.
    fn outcome(&self, number: u64, result: Result<(), Error>) -> Result<(), Error> {
        match result {
            Ok(()) if self.is_void(number) => self.goes_on(number),
            result => result,
        }
    }

    /// Returns the error of this rank, which waited in call `waits_in`, named `own`, or before it, for rank `on`, which
    /// did not make a call.
    fn missing(
        &self,
        (waits_in, own): (u64, Option<String>),
        on: usize,
        (after, circle): (Duration, Option<String>),
    ) -> Error {
        // The rank may have made the call just now.
        let made = self.number(on).min(waits_in - 1);
        let mut all = self.others().chain([self.own()]);
        let call = all.find_map(|rank| self.call_name(rank, made + 1)).or(own);
        Error::Missing(Box::new(Missing {
            rank: self.named(self.own()),
            waits_in,
            missing: self.named(on),
            number: made + 1,
            call: call.unwrap_or_default(),
            last: (made != 0).then(|| (made, self.call_name(on, made).unwrap_or_default())),
            busy: made != 0 && self.is_inside(on, made),
            after,
            circle,
        }))
    }
}

/// The numbers of a rank's calls that only this rank uses.
#[derive(Default)]
pub(crate) struct CallNumbers {
    /// The number of calls that the rank has made.
    pub(crate) made: u64,
    /// The last call whose word is known to be free, without another look at the other ranks.
    room: u64,
    /// The number of refused calls up to which this rank has looked.
    heard: u64,
    /// The numbers of refused calls whose error this rank has returned, as far back as later differences can be found.
    told: Vec<u64>,
}

impl CallNumbers {
    /// Returns a rank that must make a call before there is room for this rank's next call, and the number of that
    /// call; `None` where there is room.
    pub(crate) fn awaited(&mut self, seen: &impl CallsSeen) -> Option<(usize, u64)> {
        let next = self.made + 1;
        if next > self.room {
            let numbers = seen.others().map(|other| (seen.number(other), other));
            match numbers.min() {
                None => self.room = u64::MAX,
                // A rank in a call is done with the words of the call before.
                Some((slowest, _)) if slowest.saturating_add(WINDOW) > next => {
                    self.room = slowest.saturating_add(WINDOW - 1);
                }
                Some((_, who)) => return Some((who, next - WINDOW + 1)),
            }
        }
        None
    }

    /// Fails if an earlier call was refused after this rank had left it.
    pub(crate) fn hear(&mut self, seen: &impl CallsSeen) -> Result<(), Error> {
        let heard = seen.refused();
        if heard == self.heard {
            return Ok(());
        }
        let next = self.made + 1;
        // A rank that finds a difference is in one of the two calls, so a refused call is at most so far back.
        let first = next.saturating_sub(2 * WINDOW).max(1);
        let untold = |before: &u64| seen.is_void(*before) && !self.told.contains(before);
        if let Some(before) = (first..next).find(untold) {
            self.told.push(before);
            self.told.retain(|told| *told >= first);
            let mut differ = seen.differ(before);
            differ.late = Some(seen.named(seen.own()));
            return Err(Error::CallsDiffer(Box::new(differ)));
        }
        self.heard = heard;
        Ok(())
    }

    /// Whether the rank's last call is void, and the number of refused calls does not say so yet: another rank is about to
    /// count it.
    pub(crate) fn is_about_to_hear(&self, seen: &impl CallsSeen) -> bool {
        let number = self.made;
        let is_told = self.told.contains(&number);
        number > 0 && seen.is_void(number) && !is_told && seen.refused() == self.heard
    }

    /// Notes that the rank gets the error of a refused call, and returns the number of that call.
    pub(crate) fn note<T>(&mut self, result: &Result<T, Error>) -> Option<u64> {
        let Err(Error::CallsDiffer(differ)) = result else { return None };
        self.told.push(differ.number);
        Some(differ.number)
    }
}
