//! Scratch of the two-sided form, where a rank keeps received data until it has folded it or sent it on.
//!
//! Slots are of a few widths, each at most twice the width of the data in it; data of scratch that keeps narrow floats
//! as f32 is received into slots that do so too. A slot is used again when two are free,
//! so the next message may come in while the message before is folded.

use std::collections::{BTreeMap, VecDeque};

use crate::ids::{RankId, ScratchId};
use crate::rational::Rat;
use crate::schedule::{Buffer, Region, Scratch};

/// Free slots that a rank keeps before it uses one again.
const AHEAD: usize = 2;

/// Slots of one class of widths.
struct SlotClass {
    width: Rat,
    wide: bool,
    /// The most slots that a rank has.
    slots: u32,
    /// For each rank the number of its slots, and its free slots, the longest free first.
    of: Vec<(u32, VecDeque<u32>)>,
}

/// The slots of all ranks.
pub(super) struct MessageSlots {
    /// The number of followed ranks.
    nranks: u32,
    /// Where one rank is followed, the slots that were taken, each with the region whose data it takes.
    pub(super) likes: Vec<(Region, Region)>,
    /// The author's scratch, which comes before the slots.
    authors: Vec<Scratch>,
    classes: Vec<SlotClass>,
    by_size: BTreeMap<(i32, bool), usize>,
}

impl MessageSlots {
    pub(super) fn new(authors: &[Scratch], nranks: u32) -> Self {
        Self {
            nranks,
            likes: Vec::new(),
            authors: authors.to_vec(),
            classes: Vec::new(),
            by_size: BTreeMap::new(),
        }
    }

    /// Takes a slot of `rank` for the data of `region`, cut at the same elements; `None` where the width does not fit
    /// 64-bit numbers.
    pub(super) fn take(&mut self, rank: RankId, region: &Region) -> Option<Region> {
        let wide = self.is_wide(region.buffer);
        let width = region.hi.minus(region.lo)?;
        let (classes, nranks) = (&mut self.classes, self.nranks);
        let at = *self.by_size.entry((size(width), wide)).or_insert_with(|| {
            let of = vec![(0, VecDeque::new()); nranks as usize];
            classes.push(SlotClass { width, wide, slots: 0, of });
            classes.len() - 1
        });
        let class = &mut self.classes[at];
        class.width = class.width.max(width);
        let (has, free) = &mut class.of[of_rank(rank, nranks)];
        let slot = if free.len() >= AHEAD { free.pop_front() } else { None };
        let slot = slot.unwrap_or_else(|| {
            *has += 1;
            *has - 1
        });
        class.slots = class.slots.max(*has);
        let buffer = Buffer::Scratch(ScratchId((self.authors.len() + at) as u32));
        let taken = Region { buffer, slot, base: region.lo, lo: region.lo, hi: region.hi };
        if nranks == 1 {
            self.likes.push((taken, *region));
        }
        Some(taken)
    }

    /// Whether a buffer keeps narrow floats as f32.
    pub(super) fn is_wide(&self, buffer: Buffer) -> bool {
        let Buffer::Scratch(id) = buffer else { return false };
        let received = || self.classes[id.index() - self.authors.len()].wide;
        self.authors.get(id.index()).map_or_else(received, |scratch| scratch.wide)
    }

    /// Marks the slot as free again.
    pub(super) fn give_back(&mut self, rank: RankId, region: &Region) {
        if let Buffer::Scratch(id) = region.buffer
            && let Some(at) = id.index().checked_sub(self.authors.len())
        {
            self.classes[at].of[of_rank(rank, self.nranks)].1.push_back(region.slot);
        }
    }

    /// Returns the author's scratch, then one scratch buffer for each class of slots.
    pub(super) fn scratch(self) -> Vec<Scratch> {
        let mut all = self.authors;
        let mut number = 0;
        for SlotClass { width, wide, slots, .. } in self.classes {
            let name = loop {
                let name = format!("received{number}");
                number += 1;
                if all.iter().all(|known| known.name != name) {
                    break name;
                }
            };
            all.push(Scratch { name, slots, width, wide });
        }
        all
    }
}

/// Returns the position of a rank's slots: where one rank stands for all, they are those of all ranks.
fn of_rank(rank: RankId, followed: u32) -> usize {
    if followed == 1 { 0 } else { rank.index() }
}

/// Returns the exponent of the largest power of two that is at most `width`.
fn size(width: Rat) -> i32 {
    let bits = |n: u64| 64 - n.leading_zeros() as i32;
    let guess = bits(width.num()) - bits(width.den());
    // num / den is at least 2^(guess - 1) and less than 2^(guess + 1).
    let (num, den) = (u128::from(width.num()), u128::from(width.den()));
    let at_least =
        if guess >= 0 { num >= den << guess as u32 } else { num << guess.unsigned_abs() >= den };
    if at_least { guess } else { guess - 1 }
}
