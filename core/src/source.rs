//! Where things stand in a source: spans are ranges of token indices, the same for both doors.

use crate::schedule::Location;

/// Tokens `lo..hi` of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First token.
    pub lo: u32,
    /// One past the last token.
    pub hi: u32,
}

impl Span {
    /// Tokens `lo..hi`.
    pub fn new(lo: usize, hi: usize) -> Self {
        Self { lo: lo as u32, hi: hi as u32 }
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }
}

/// A place on a page: a token's.
pub type Place = Location;
