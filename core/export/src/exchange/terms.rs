//! The terms that programs of all runtimes share: buffers, chunks, and the modes of a call.

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

/// The mode of a call: where input and output lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Input and output apart: no step writes the input.
    OutOfPlace,
    /// Input and output in one buffer, all of which the program may write.
    InPlace,
    /// Either, at the caller's choice.
    Both,
}

impl Mode {
    /// Returns the name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfPlace => "out of place",
            Self::InPlace => "in place",
            Self::Both => "in place and out of place",
        }
    }
}
