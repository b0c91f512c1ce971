//! The first words of an arena, by which a process that is no rank recognizes an arena and finds its parts.

use sha2::{Digest as _, Sha256};

use super::arena::{Arena, ArenaLayout, CALLS, NAME, NAMES, SITE, SITES};
use crate::shared_memory::meet::join::VERSION;
use crate::sync::Ordering;
use roundelay_core::schedule::RANK_LIMIT;

/// The position of the words in the arena's first page.
const HEAD: usize = 512;
/// Bytes at the beginning of an arena that hold the words.
pub(crate) const HEAD_END: usize = HEAD + 8 * (WORDS + TEXT);
/// The words before the version's text.
const WORDS: usize = 5;
/// Words of the version's text.
const TEXT: usize = 8;
/// The first word of an arena whose head is written.
const MAGIC: u64 = u64::from_le_bytes(*b"roundely");
/// The number of the meaning of the words that an observer reads. A change of their meaning changes this number.
const MEANING: u64 = 2;

/// Returns a number that is equal in programs that lay out arenas alike and give their words one meaning.
fn format() -> u64 {
    let layout = ArenaLayout::new(3, 1 << 30);
    let words = format!("{VERSION} {MEANING} {layout:?} {CALLS} {NAMES} {NAME} {SITES} {SITE}");
    let digest: [u8; 32] = Sha256::digest(words).into();
    u64::from_le_bytes(digest[..8].try_into().expect("8 of 32 bytes"))
}

/// Writes the head of an arena whose other words are zeros.
pub(crate) fn write(arena: &Arena) {
    let layout = &arena.layout;
    let version = VERSION.as_bytes();
    let version = &version[..version.len().min(8 * TEXT)];
    arena.store_text(HEAD + 8 * WORDS, version);
    let words = [format(), layout.nranks as u64, layout.heap as u64, version.len() as u64];
    for (word, at) in words.into_iter().zip(1..) {
        arena.word(HEAD + 8 * at).store(word, Ordering::Relaxed);
    }
    arena.word(HEAD).store(MAGIC, Ordering::Release);
}

/// Returns the layout of an arena by its first bytes and its size; `None` where no head is written yet.
///
/// # Errors
/// Where another version of Roundelay made the arena, or the words are wrong: the reason.
pub(crate) fn read(first: &[u8; HEAD_END], size: u64) -> Result<Option<ArenaLayout>, String> {
    let word = |at: usize| {
        let bytes = &first[HEAD + 8 * at..][..8];
        u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
    };
    match word(0) {
        0 => return Ok(None),
        MAGIC => {}
        _ => return Err("its memory does not begin as that of a world".to_owned()),
    }
    if word(1) != format() {
        let len = (word(4) as usize).min(8 * TEXT);
        let made = String::from_utf8_lossy(&first[HEAD + 8 * WORDS..][..len]);
        let made = made.escape_debug();
        return Err(format!(
            "`{made}` made it, and this is another build, `{VERSION}`: look at it with the command of that build"
        ));
    }
    let nranks = u32::try_from(word(2)).ok().filter(|n| (1..=RANK_LIMIT).contains(n));
    let layout = nranks.map(|nranks| ArenaLayout::new(nranks, word(3) as usize));
    match layout.filter(|layout| layout.bytes as u64 == size) {
        Some(layout) => Ok(Some(layout)),
        None => Err(format!("its first words do not fit its size of {size} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first bytes of an arena of two ranks with the words of `change` in place, and its size.
    fn first(change: &[(usize, u64)]) -> ([u8; HEAD_END], u64) {
        let worlds = crate::shared_memory::World::together(2, crate::Options::new());
        let worlds = worlds.expect("a world");
        let arena = &worlds[0].shared.arena;
        for (at, word) in change {
            arena.word(HEAD + 8 * at).store(*word, Ordering::Relaxed);
        }
        let bytes = arena.load_text(0, HEAD_END);
        (bytes.try_into().expect("as many bytes"), arena.layout.bytes as u64)
    }

    #[test]
    fn a_layout_is_found_again() {
        let (bytes, size) = first(&[]);
        let layout = read(&bytes, size).expect("a head").expect("it is written");
        assert_eq!((layout.nranks, layout.bytes as u64), (2, size));
        assert_eq!(read(&[0; HEAD_END], size), Ok(None));
    }

    #[test]
    fn wrong_words_are_no_layout() {
        let cases: [(&[(usize, u64)], &str); 8] = [
            (&[(0, 7)], "does not begin as that of a world"),
            (&[(1, 7)], "another build"),
            (&[(1, 7), (4, u64::MAX)], "another build"),
            (&[(1, 7), (5, u64::MAX)], "another build"),
            (&[(2, 0)], "do not fit its size"),
            (&[(2, 3)], "do not fit its size"),
            (&[(2, u64::MAX)], "do not fit its size"),
            (&[(3, u64::MAX)], "do not fit its size"),
        ];
        for (change, why) in cases {
            let (bytes, size) = first(change);
            let refused = read(&bytes, size).expect_err("it is refused");
            assert!(refused.contains(why), "{change:?}: {refused}");
        }
        let (bytes, size) = first(&[]);
        assert!(read(&bytes, size - 1).is_err_and(|why| why.contains("do not fit")));
    }
}
