//! The accesses to memory, for every nranks: each is in order with its owner's caller and with each other access to the
//! same memory. A class says what is in order.

use super::places::Effect;
use super::rounds::{Answer, Naming, Owned, Rounds};
use super::signals::SignalLink;
use crate::schedule::Buffer;

/// The order of events of a program.
pub(super) struct RoundOrder<'a, C: Naming> {
    pub(super) program: &'a Rounds<C>,
    pub(super) links: &'a [SignalLink<C::Peer>],
}

/// One access of a move.
#[derive(Clone, Copy)]
pub(super) struct Access<'e, C: Naming> {
    pub(super) step: usize,
    pub(super) writes: bool,
    pub(super) place: &'e Owned<C>,
}

/// The order of events in a class of programs.
pub(super) trait Ordered: Naming {
    /// Whether the owner of an access's place has always entered before the access, or else always leaves after it.
    fn owned(order: &RoundOrder<'_, Self>, access: Access<'_, Self>, before: bool) -> bool;

    /// Whether one of two accesses is before the other wherever both share memory, in any two rounds.
    fn in_order(order: &RoundOrder<'_, Self>, pair: [Access<'_, Self>; 2]) -> Answer<bool>;
}

fn accesses<C: Naming>(effects: &[Effect<C>]) -> Vec<Access<'_, C>> {
    let mut all = Vec::new();
    for Effect { step, reads, writes } in effects {
        let access = |writes| move |place| Access { step: *step, writes, place };
        all.extend(reads.iter().map(access(false)));
        all.extend(writes.iter().map(access(true)));
    }
    all
}

impl<C: Ordered> RoundOrder<'_, C> {
    /// Proves that no rank touches the buffers of another rank before their caller hands them over, or after it takes
    /// them back.
    pub(super) fn caller(&self, effects: &[Effect<C>]) -> Answer<()> {
        for access in accesses(effects) {
            let scratch = matches!(access.place.region.buffer, Buffer::Scratch(_));
            if C::is_own(access.place.owner) || scratch && !C::GUARDS_SCRATCH {
                continue;
            }
            for (before, what) in [
                (true, "its owner may not have entered yet when this touches it"),
                (false, "its owner may have left already when this touches it"),
            ] {
                if !C::owned(self, access, before) {
                    return Err(self.program.fault(access.step, what));
                }
            }
        }
        Ok(())
    }

    /// Proves that two accesses to one memory are ordered if one of them is a write. With `twice`, the program is two
    /// runs of `twice` statements each, and only scratch is checked, from the first run to the second.
    pub(super) fn races(&self, effects: &[Effect<C>], twice: Option<usize>) -> Answer<()> {
        let all = accesses(effects);
        for (i, a) in all.iter().enumerate() {
            for b in &all[i..] {
                let between_runs = |run: usize| {
                    a.step < run
                        && run <= b.step
                        && matches!(a.place.region.buffer, Buffer::Scratch(_))
                };
                if (a.writes || b.writes)
                    && twice.is_none_or(between_runs)
                    && !C::in_order(self, [*a, *b])?
                {
                    let what =
                        "nothing orders this with an access of another rank to the same memory";
                    return Err(self.program.fault(a.step, what));
                }
            }
        }
        Ok(())
    }
}
