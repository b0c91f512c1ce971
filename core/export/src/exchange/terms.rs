//! What programs of all runtimes have: buffers, chunks of them, and ways to be called.

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
    /// The buffer of that letter.
    pub fn parse(letter: &str) -> Option<Self> {
        match letter {
            "i" => Some(Self::Input),
            "o" => Some(Self::Output),
            "s" => Some(Self::Scratch),
            _ => None,
        }
    }

    /// As a program writes it.
    pub const fn letter(self) -> char {
        match self {
            Self::Input => 'i',
            Self::Output => 'o',
            Self::Scratch => 's',
        }
    }
}

/// Chunks of a buffer: the first of them. How many there are is said by the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub memory: Memory,
    /// The first chunk. A program may write a number that no chunk has.
    pub offset: i64,
}

/// How input and output lie when a program is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Apart: nothing writes the input.
    OutOfPlace,
    /// In one buffer, which the program may write everywhere.
    InPlace,
    /// As the caller likes.
    Both,
}

impl Mode {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfPlace => "out of place",
            Self::InPlace => "in place",
            Self::Both => "in place and out of place",
        }
    }
}
