//! What the runtimes promise that run these programs: how much passes through a connection at once, and how many
//! steps, blocks and channels there are.

use roundelay_core::diagnostics::near::nearest;

/// The protocol of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Large messages, with a flag a slice.
    Simple,
    /// A flag with every 4 bytes.
    Ll,
    /// A flag with every line of 128 bytes.
    Ll128,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::Simple, Self::Ll, Self::Ll128];

    /// The name, as a program writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simple => "Simple",
            Self::Ll => "LL",
            Self::Ll128 => "LL128",
        }
    }

    /// The protocol of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// The name that was probably meant.
    pub(super) fn meant(name: &str) -> Option<&'static str> {
        nearest(name, Self::ALL.map(Self::name))
    }

    /// Messages that a connection holds: of its 8 steps one takes 4 with Simple, and 1 otherwise.
    pub const fn slots(self) -> u32 {
        match self {
            Self::Simple => 2,
            Self::Ll | Self::Ll128 => 8,
        }
    }
}

/// A runtime that runs such programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// RCCL, AMD's.
    #[default]
    Rccl,
    /// Azure's `msccl-executor-nccl`.
    Azure,
    /// `microsoft/msccl`, the first.
    Microsoft,
}

impl Runtime {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rccl, Self::Azure, Self::Microsoft];

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rccl => "RCCL",
            Self::Azure => "msccl-executor-nccl",
            Self::Microsoft => "microsoft/msccl",
        }
    }

    /// The word for it on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rccl => "rccl",
            Self::Azure => "azure",
            Self::Microsoft => "microsoft",
        }
    }

    /// The runtime of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|runtime| runtime.word() == word)
    }

    /// Steps of a block.
    pub const fn steps(self) -> u32 {
        match self {
            Self::Rccl | Self::Azure => 64,
            Self::Microsoft => 256,
        }
    }

    /// Blocks of a rank.
    pub const fn blocks(self) -> u32 {
        match self {
            Self::Rccl => 64,
            Self::Azure => 1024,
            Self::Microsoft => 216,
        }
    }

    /// Elements of the file that a rank keeps.
    pub(super) const fn nodes(self) -> Option<u32> {
        match self {
            Self::Rccl | Self::Azure => Some(4096),
            Self::Microsoft => None,
        }
    }

    /// Whether it wants `outofplace`, `minBytes` and `maxBytes` said.
    pub(super) const fn wants_sizes(self) -> bool {
        !matches!(self, Self::Microsoft)
    }

    /// Where a program does not say how large a call may be: the most bytes.
    pub(super) const fn default_bytes(self) -> Option<u64> {
        match self {
            Self::Microsoft => Some(1 << 27),
            Self::Rccl | Self::Azure => None,
        }
    }

    /// The size of a connection's buffer, in bytes, if its user says nothing.
    pub const fn buffer(self, protocol: Protocol) -> u64 {
        match (protocol, self) {
            (Protocol::Simple, _) => 4 << 20,
            // Lines of 16 bytes, 8 a thread; and lines of words, of 256 or more threads.
            (Protocol::Ll, Self::Rccl) => 16 * 8 * 256 * 8,
            (Protocol::Ll, _) => 16 * 8 * 512 * 8,
            (Protocol::Ll128, Self::Rccl) => 8 * 28 * 256 * 8,
            (Protocol::Ll128, _) => 8 * 120 * 640 * 8,
        }
    }

    /// The bytes of data in one message, of a connection with a buffer of `buffer` bytes: 4 of its 8 steps with
    /// Simple (1 where `slow`), and 1 otherwise, of which flags take a part.
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

/// Chunks that a step moves, at most.
pub(super) const COUNT: u32 = 71;
/// Channels of a communicator.
pub(super) const CHANNELS: u32 = 32;
/// Reductions into one place that are one step.
pub(super) const FUSED: usize = 16;
/// The numbers of blocks that a step can wait for are bytes with a sign.
pub(super) const LAST_AWAITED: i64 = 127;
/// Attributes of an element that are kept.
pub(super) const ATTRIBUTES: usize = 16;
/// Bytes of a name or a value.
pub(super) const WORD: usize = 255;
