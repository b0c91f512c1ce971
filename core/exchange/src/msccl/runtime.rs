//! The limits of the runtimes that run these programs: the messages that a connection holds, and the numbers of steps,
//! blocks and channels.

use crate::terms::Protocol;

/// A runtime for MSCCL's programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// AMD's RCCL.
    #[default]
    Rccl,
    /// Azure's `msccl-executor-nccl`.
    Azure,
    /// `microsoft/msccl`, the first runtime.
    Microsoft,
}

impl Runtime {
    /// All runtimes.
    pub const ALL: [Self; 3] = [Self::Rccl, Self::Azure, Self::Microsoft];

    /// Returns the name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rccl => "RCCL",
            Self::Azure => "msccl-executor-nccl",
            Self::Microsoft => "microsoft/msccl",
        }
    }

    /// Returns the word for the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rccl => "rccl",
            Self::Azure => "azure",
            Self::Microsoft => "microsoft",
        }
    }

    /// Returns the runtime of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|runtime| runtime.word() == word)
    }

    /// Returns the most steps of a block.
    pub const fn steps(self) -> u32 {
        match self {
            Self::Rccl | Self::Azure => 64,
            Self::Microsoft => 256,
        }
    }

    /// Returns the most blocks of a rank.
    pub const fn blocks(self) -> u32 {
        match self {
            Self::Rccl => 64,
            Self::Azure => 1024,
            Self::Microsoft => 216,
        }
    }

    /// Returns the most elements of the file that the runtime keeps for a rank.
    pub(super) const fn nodes(self) -> Option<u32> {
        match self {
            Self::Rccl | Self::Azure => Some(4096),
            Self::Microsoft => None,
        }
    }

    /// Whether the runtime requires `outofplace`, `minBytes` and `maxBytes`.
    pub(super) const fn wants_sizes(self) -> bool {
        !matches!(self, Self::Microsoft)
    }

    /// Returns the most bytes of a call if the program has no `maxBytes`.
    pub(super) const fn default_bytes(self) -> Option<u64> {
        match self {
            Self::Microsoft => Some(1 << 27),
            Self::Rccl | Self::Azure => None,
        }
    }

    /// Returns the default size of a connection's buffer, in bytes.
    pub const fn buffer(self, protocol: Protocol) -> u64 {
        match (protocol, self) {
            (Protocol::Simple, _) => 4 << 20,
            // LL: lines of 16 bytes, 8 for each thread. LL128: words of 8 bytes. Each for 256 or more threads.
            (Protocol::Ll, Self::Rccl) => 16 * 8 * 256 * 8,
            (Protocol::Ll, _) => 16 * 8 * 512 * 8,
            (Protocol::Ll128, Self::Rccl) => 8 * 28 * 256 * 8,
            (Protocol::Ll128, _) => 8 * 120 * 640 * 8,
        }
    }

    /// Returns the bytes of data in one message of a connection with a buffer of `buffer` bytes. A message takes 4 of
    /// the 8 steps of the buffer with Simple (1 if `slow`), and 1 otherwise; with LL and LL128 flags take a part of it.
    pub(super) const fn message(self, protocol: Protocol, buffer: u64, slow: bool) -> u64 {
        let step = buffer / 8;
        match (protocol, self) {
            (Protocol::Simple, _) if slow => step,
            (Protocol::Simple, _) => 4 * step,
            (Protocol::Ll, _) => step / 2,
            (Protocol::Ll128, Self::Rccl) => step / 8 * 7,
            (Protocol::Ll128, _) => step / 16 * 15,
        }
    }
}

/// The most chunks that a step moves.
pub(super) const COUNT: u32 = 71;
/// The channels of a communicator.
pub(super) const CHANNELS: u32 = 32;
/// The most reductions into one place that become one step.
pub(super) const FUSED: usize = 16;
/// The last block that a step can wait for: the number is a signed byte.
pub(super) const LAST_AWAITED: i64 = 127;
/// The most attributes of an element that the runtime keeps.
pub(super) const ATTRIBUTES: usize = 16;
/// The most bytes of a name or a value.
pub(super) const WORD: usize = 255;
