//! The two interfaces that a text may call.

use roundelay_core::verify::Signals;

/// The interface that a text calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interface {
    /// The class of the contest: a link has two flags each way, which all streams share.
    Class,
    /// An operator of one's own: the two ends of a channel have flags with indices.
    Operator,
}

impl Interface {
    /// Returns the behavior of the flags.
    pub(super) const fn signals(self) -> Signals {
        Signals { one_shot: true, link_shared: matches!(self, Self::Class) }
    }

    /// Returns the owners of the flags, for a note.
    pub(super) fn owners(self) -> &'static str {
        match self {
            Self::Class => "as its links have",
            Self::Operator => "as the lanes of its channels have",
        }
    }
}
