//! The failure of a world: one cause, written once, which every survivor reads.

use std::sync::atomic::Ordering;

use roundelay_core::ids::RankId;

use super::memory::arena::{Arena, TEXT};
use crate::Error;
use crate::error::Ended;

/// Positions of words in the arena's first page.
const STATE: usize = 64;
const ABOUT: usize = 72;
/// Bytes of the arena's first page; the text follows it.
const PAGE: usize = 4 << 10;

const WRITING: u64 = 1;
const WRITTEN: u64 = 2;

/// The most looks at a cause that another rank is writing, before that rank is taken for dead, too.
const LOOKS: u32 = 10_000;

/// The cause of a world's failure.
pub(crate) enum Cause {
    /// A rank ended: an equal error for all ranks.
    Ended(Ended),
    /// Rank `by` gave up, for the reason `why`.
    Gave { by: RankId, why: String },
}

/// Whether the world has failed.
pub(crate) fn has_failed(arena: &Arena) -> bool {
    arena.word(STATE).load(Ordering::Relaxed) != 0
}

/// Writes the cause, unless another rank has; returns whether this rank wrote it.
pub(crate) fn write(arena: &Arena, cause: &Cause) -> bool {
    let state = arena.word(STATE);
    if state.compare_exchange(0, WRITING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return false;
    }
    let (kind, rank, pid, number, text) = match cause {
        Cause::Ended(Ended { rank, pid, number, what }) => (1, *rank, *pid, *number, what),
        Cause::Gave { by, why } => (2, *by, 0, 0, why),
    };
    let len = arena.store_beginning(PAGE, text, TEXT);
    let words = [kind, u64::from(rank.0), u64::from(pid), number, len as u64];
    for (at, word) in words.into_iter().enumerate() {
        arena.word(ABOUT + 8 * at).store(word, Ordering::Relaxed);
    }
    state.store(WRITTEN, Ordering::Release);
    true
}

/// Returns the cause, once the world has failed.
pub(crate) fn read(arena: &Arena) -> Cause {
    let state = arena.word(STATE);
    let mut looks = 0;
    while state.load(Ordering::Acquire) != WRITTEN {
        looks += 1;
        if looks > LOOKS {
            let why = "a rank ended while it wrote down why it gave up".to_owned();
            return Cause::Gave { by: RankId(0), why };
        }
        std::thread::yield_now();
    }
    let word = |at: usize| arena.word(ABOUT + 8 * at).load(Ordering::Relaxed);
    let len = (word(4) as usize).min(TEXT);
    let what = String::from_utf8_lossy(&arena.load_text(PAGE, len)).into_owned();
    let rank = RankId(word(1) as u32);
    match word(0) {
        1 => Cause::Ended(Ended { rank, pid: word(2) as u32, number: word(3), what }),
        _ => Cause::Gave { by: rank, why: what },
    }
}

/// Returns the error of the world's failure for `rank`.
pub(crate) fn told(arena: &Arena, rank: RankId) -> Error {
    match read(arena) {
        Cause::Ended(ended) => Error::RankEnded(Box::new(ended)),
        Cause::Gave { by, why } => Error::Abandoned { rank, by, why },
    }
}
