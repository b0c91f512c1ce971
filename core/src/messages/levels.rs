//! The levels of acts: an act's level is the length of the longest chain of acts that must come before it because
//! they touch the same memory.
//!
//! Acts of one level touch no cell in common, so they may be done in any order. The order of a rank's actions depends
//! on the levels alone, not on the order in which the proof took the ranks. So ranks with equal work do it in equal
//! order.

use rustc_hash::FxHashMap;

use super::acts::{Act, Acts};
use super::memory::FollowedForm;
use super::windows::{Marks, Touched};
use crate::ids::RankId;

/// Sorts the acts by levels, with a rank's messages to its nearest peers first, and numbers messages in that order.
///
/// # Errors
/// The number of cells that a unit would have, where cells cannot be numbered.
pub(super) fn sort(acts: &mut Acts, of: &FollowedForm<'_>) -> Result<(), u32> {
    let levels = levels(acts, of)?;
    let nranks = of.tables.nranks;
    let key = |at: usize| match acts.list[at] {
        Act::Message(id) => {
            let message = acts.messages[id as usize];
            let distance = (message.to.0 + nranks - message.from.0) % nranks;
            (levels[at], 0, distance, message.from.0, at)
        }
        Act::Move(rank, _) => (levels[at], 1, 0, rank.0, at),
    };
    let mut order: Vec<usize> = (0..acts.list.len()).collect();
    order.sort_by_key(|at| key(*at));
    let mut messages = Vec::with_capacity(acts.messages.len());
    let act = |at: &usize| match acts.list[*at] {
        Act::Message(id) => {
            messages.push(acts.messages[id as usize]);
            Act::Message(messages.len() as u32 - 1)
        }
        act @ Act::Move(..) => act,
    };
    let sorted = order.iter().map(act).collect();
    acts.list = sorted;
    acts.messages = messages;
    acts.levels = order.iter().map(|at| levels[*at]).collect();
    Ok(())
}

/// Returns the level of each act, counted from 1. Messages from one rank to another keep their order, also within a
/// level.
fn levels(acts: &Acts, of: &FollowedForm<'_>) -> Result<Vec<u32>, u32> {
    let mut memories = Vec::new();
    for mode in of.modes {
        let memory = of.in_mode(*mode)?;
        let size = memory.size;
        let touched = Touched { tables: of.tables, memory, messages: &acts.messages };
        memories.push((touched, Marks::new(size), Marks::new(size)));
    }
    let mut last: FxHashMap<(RankId, RankId), u32> = FxHashMap::default();
    let mut levels = Vec::with_capacity(acts.list.len());
    for act in &acts.list {
        let mut level = 1;
        let before = match act {
            Act::Message(id) => {
                let message = acts.messages[*id as usize];
                Some(last.entry(of.ranks.pair(message.from, message.to)).or_insert(1))
            }
            Act::Move(..) => None,
        };
        level = level.max(before.as_deref().copied().unwrap_or(1));
        for (touched, written, any) in &mut memories {
            let (reads, writes) = touched.of(act);
            let reads = reads.into_iter().filter_map(|cells| written.of(cells).max());
            let writes = writes.into_iter().filter_map(|cells| any.of(cells).max());
            level = reads.chain(writes).fold(level, |level, before| level.max(before + 1));
        }
        if let Some(before) = before {
            *before = level;
        }
        for (touched, written, any) in &mut memories {
            let (reads, writes) = touched.of(act);
            for cells in reads.into_iter().chain(writes.iter().cloned()) {
                any.raise(cells, level);
            }
            for cells in writes {
                written.set(cells, level);
            }
        }
        levels.push(level);
    }
    Ok(levels)
}
