//! An executor as it is declared: its topology, the resources that it may take, and its algorithms by size.

use std::sync::Arc;

use crate::collective::Collective;
use crate::source::Span;
use crate::topology::Topology;
use crate::units::{count, size_text};
use roundelay_base::named_enum;

/// An executor: `executor NAME for COLLECTIVE { … }`. Its algorithms have the form `A`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executor<A> {
    /// Its name.
    pub name: String,
    /// The place of the name.
    pub name_span: Span,
    /// Lines of its doc comment.
    pub docs: Vec<String>,
    /// Whether `pub` stands before it.
    pub public: bool,
    /// The collective it implements.
    pub collective: Collective,
    /// The topology that it runs on: all its ranks take part.
    pub topology: Arc<Topology>,
    /// The place of the topology.
    pub topology_span: Span,
    /// Bytes of each of the two CCL buffers of a rank.
    pub ccl_buffer: u64,
    /// The place of that number; the executor's name if it is not written.
    pub ccl_buffer_span: Span,
    /// The most bytes of a unit that a loop takes, where the author sets it, and its place.
    pub loop_bytes: Option<(u64, Span)>,
    /// Whether the executor moves the caller's memory itself, also where that is larger than the CCL buffers.
    pub dma_reduce: bool,
    /// The assets that the author declares; each once.
    pub declared: Vec<Declared>,
    /// The classes by size, the smallest first; the last takes the remaining sizes.
    pub classes: Vec<Class<A>>,
    /// Its source in canonical form.
    pub source: String,
}

impl<A> Executor<A> {
    /// Returns the executor with another form of its algorithms.
    pub(crate) fn map<B>(&self, mut form: impl FnMut(&A) -> B) -> Executor<B> {
        let classes = self.classes.iter().map(|class| Class {
            below: class.below,
            run: form(&class.run),
            span: class.span,
        });
        Executor {
            classes: classes.collect(),
            name: self.name.clone(),
            name_span: self.name_span,
            docs: self.docs.clone(),
            public: self.public,
            collective: self.collective,
            topology: self.topology.clone(),
            topology_span: self.topology_span,
            ccl_buffer: self.ccl_buffer,
            ccl_buffer_span: self.ccl_buffer_span,
            loop_bytes: self.loop_bytes,
            dma_reduce: self.dma_reduce,
            declared: self.declared.clone(),
            source: self.source.clone(),
        }
    }
}

/// A declaration of the author: the most that the executor takes of an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The declared asset.
    pub what: Asset,
    /// The most that is taken of it, in the unit of [`Asset`].
    pub most: u64,
    /// The place of the declaration in the source.
    pub span: Span,
}

named_enum! {
    /// A resource that an executor takes from its framework.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Asset {
        /// Bytes of memory of a rank beside its two CCL buffers.
        Scratch = "scratch",
        /// Streams of a rank beside its main stream.
        SlaveStreams = "slave_streams",
        /// Notifies between the streams of a rank.
        Notifies = "notifies",
        /// Links of a rank: peers whose memory it touches, or that it signals.
        Links = "links",
    }
}

impl Asset {
    /// Returns the words for `n` of the asset, such as `3 slave streams`.
    pub fn words(self, n: u64) -> String {
        match self {
            Self::Scratch => format!("{} of scratch", size_text(n)),
            Self::SlaveStreams => count(n, "slave stream"),
            Self::Notifies => format!("{n} notif{}", if n == 1 { "y" } else { "ies" }),
            Self::Links => count(n, "link"),
        }
    }
}

/// A range of sizes, and its algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class<A> {
    /// The limit in bytes, by nccl-tests' size; `None` for the remaining sizes.
    pub below: Option<u64>,
    /// An algorithm whose only statement runs the algorithm that the author names, with its arguments.
    pub run: A,
    /// The place of the call.
    pub span: Span,
}
