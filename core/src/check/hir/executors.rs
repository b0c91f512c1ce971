//! A checked executor: what it runs on, what it may take, and what it runs by size.

use std::sync::Arc;

use super::Algorithm;
use crate::collective::Collective;
use crate::source::Span;
use crate::topology::Topology;
use crate::units::size_text;

/// `executor NAME for COLLECTIVE { … }`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executor {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub name_span: Span,
    /// Lines of its doc comment.
    pub docs: Vec<String>,
    /// Whether `pub` stands before it.
    pub public: bool,
    /// The collective it implements.
    pub collective: Collective,
    /// What it runs on: all its ranks take part.
    pub topology: Arc<Topology>,
    /// Where the topology stands.
    pub topology_span: Span,
    /// Bytes of each of the two CCL buffers of a rank.
    pub ccl_buffer: u64,
    /// Where that is written; the executor's name if it is not.
    pub ccl_buffer_span: Span,
    /// Bytes of a unit that a loop takes at most, where its author says so, and who does.
    pub loop_bytes: Option<(u64, Span)>,
    /// Whether it moves the caller's memory itself, also where that is larger than the CCL buffers.
    pub dma_reduce: bool,
    /// What its author says that it takes; each once.
    pub declared: Vec<Declared>,
    /// By size, the smallest first; the last takes what is left.
    pub classes: Vec<Class>,
    /// Its source in canonical form.
    pub source: String,
}

/// A declaration of the author's: the executor takes at most so much of an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The asset that is declared.
    pub what: Asset,
    /// The most that is taken of it, in the unit that [`Asset`] says.
    pub most: u64,
    /// The place in the source that says so.
    pub span: Span,
}

/// What an executor takes from its framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Asset {
    /// Bytes of memory of a rank beside its two CCL buffers.
    Scratch,
    /// Streams of a rank beside the main one.
    SlaveStreams,
    /// Notifies between the streams of a rank.
    Notifies,
    /// Links of a rank: peers whose memory it touches, or that it signals.
    Links,
}

impl Asset {
    /// All assets.
    pub const ALL: [Self; 4] = [Self::Scratch, Self::SlaveStreams, Self::Notifies, Self::Links];

    /// The name of the setting that declares it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scratch => "scratch",
            Self::SlaveStreams => "slave_streams",
            Self::Notifies => "notifies",
            Self::Links => "links",
        }
    }

    /// The words for `n` of the asset, such as `3 slave streams`.
    pub fn counted(self, n: u64) -> String {
        let plural = if n == 1 { "" } else { "s" };
        match self {
            Self::Scratch => format!("{} of scratch", size_text(n)),
            Self::SlaveStreams => format!("{n} slave stream{plural}"),
            Self::Notifies => format!("{n} notif{}", if n == 1 { "y" } else { "ies" }),
            Self::Links => format!("{n} link{plural}"),
        }
    }
}

/// A range of sizes, and what runs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Fewer bytes than this, by nccl-tests' size; `None` for what is left.
    pub below: Option<u64>,
    /// An algorithm whose one statement runs the one that the author names, with its arguments.
    pub run: Algorithm,
    /// Where the call stands.
    pub span: Span,
}
