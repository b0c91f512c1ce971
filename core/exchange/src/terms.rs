//! The terms that programs of all runtimes share: buffers, chunks, protocols, and the modes of a call.

use roundelay_core::diagnostics::near::nearest;
use roundelay_core::dtype::named_enum;

/// A buffer of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Memory {
    /// `i`
    Input,
    /// `o`
    Output,
    /// `s`
    Scratch,
}

impl Memory {
    /// Returns the buffer of a letter.
    pub fn parse(letter: &str) -> Option<Self> {
        match letter {
            "i" => Some(Self::Input),
            "o" => Some(Self::Output),
            "s" => Some(Self::Scratch),
            _ => None,
        }
    }

    /// Returns the letter that a program writes for the buffer.
    pub const fn letter(self) -> char {
        match self {
            Self::Input => 'i',
            Self::Output => 'o',
            Self::Scratch => 's',
        }
    }
}

/// The first of some chunks of a buffer. The operation holds their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub memory: Memory,
    /// The number of the first chunk. A program may write a number that no chunk has.
    pub offset: i64,
}

named_enum! {
    /// The mode of a call: where input and output lie.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mode {
        /// Input and output apart: no step writes the input.
        OutOfPlace = "out of place",
        /// Input and output in one buffer, all of which the program may write.
        InPlace = "in place",
        /// Either, at the caller's choice.
        Both = "in place and out of place",
    }
}

named_enum! {
    /// The protocol of the connections.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Protocol {
        /// Large messages, with one flag for each slice.
        Simple = "Simple",
        /// A flag with every 4 bytes.
        Ll = "LL",
        /// A flag with every line of 128 bytes.
        Ll128 = "LL128",
    }
}

impl Protocol {
    /// Returns the name that was probably meant.
    pub(super) fn meant(name: &str) -> Option<&'static str> {
        nearest(name, Self::ALL.map(Self::name))
    }

    /// Returns the messages that a connection holds: a message takes 4 of its 8 steps with Simple, and 1 otherwise.
    pub const fn slots(self) -> u32 {
        match self {
            Self::Simple => 2,
            Self::Ll | Self::Ll128 => 8,
        }
    }
}

/// The largest call for which all blocks end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safe {
    /// The fewest chunks in a message for which all blocks end; 1 if calls of any size end.
    pub chunks: u32,
    /// The most bytes of a call; `None` for any.
    pub bytes: Option<u64>,
}
