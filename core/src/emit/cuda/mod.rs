//! CUDA: a kernel's text from a checked algorithm or from a flat schedule, and the facts that it reads.

use std::sync::Arc;

use crate::diagnostics::Diagnostic;
use crate::dtype::{DType, ReduceOp};
use crate::ids::RankId;
use crate::optimize::{Callers, Optimized};
use crate::schedule::Schedule;
use crate::schedule::interpret::Interpreted;
use crate::verify::{Proof, Proved};

/// The type of a kernel's elements: those of the host, and what only GPUs compute with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// One of the host's.
    Host(DType),
    /// fp8 of 4 exponent bits.
    F8E4m3,
    /// fp8 of 5 exponent bits.
    F8E5m2,
}

impl Element {
    /// Its name on the command line and in kernels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host(dtype) => dtype.name(),
            Self::F8E4m3 => "f8e4m3",
            Self::F8E5m2 => "f8e5m2",
        }
    }

    /// The element of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let fp8 = [Self::F8E4m3, Self::F8E5m2].into_iter().find(|element| element.name() == name);
        fp8.or_else(|| DType::from_name(name).map(Self::Host))
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::Host(dtype) => dtype.size(),
            Self::F8E4m3 | Self::F8E5m2 => 1,
        }
    }
}

impl From<DType> for Element {
    fn from(dtype: DType) -> Self {
        Self::Host(dtype)
    }
}

/// How data and signals travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Peers' memory is read and written where it is, as the handshake is written.
    Direct,
    /// Slots at the receiver with credits: NCCL's Simple.
    Simple,
    /// Slots of lines that carry data and flag in one store: NCCL's LL.
    Ll,
}

/// How the kernel holds the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The author's loops.
    Loops,
    /// A table of ops that a fixed loop walks.
    Table,
}

/// What a kernel is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Type of the elements.
    pub element: Element,
    /// How contributions are combined.
    pub op: ReduceOp,
    /// How they travel.
    pub protocol: Protocol,
    /// Bytes of the widest load.
    pub vector: u32,
    /// Who brings the ranks in: one launch for all, or one for each device.
    pub callers: Callers,
}

/// A kernel's text with the schedule that it performs.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The entry's name.
    pub name: String,
    /// The text, for NVRTC.
    pub text: String,
    /// How it holds the algorithm.
    pub form: Form,
    /// What it was made for.
    pub spec: Spec,
    /// Exactly what it does.
    pub schedule: Arc<Schedule>,
    /// What holds of that.
    pub proof: Arc<Proof>,
}

/// A group of CTAs: one stream of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Whose.
    pub rank: RankId,
    /// Which of its streams.
    pub stream: u32,
}

/// What a launch of a kernel needs besides its text and its buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What the kernel reads.
    pub words: Vec<i64>,
    /// Streams, in the order of the grid.
    pub groups: Vec<Group>,
    /// 8-byte counters at each rank.
    pub posted_words: u64,
    /// 8-byte words of each CTA's own.
    pub work_words: u64,
    /// Links of the fifos; a part of a side of each has a step number.
    pub links: u64,
    /// Elements of scratch at each rank.
    pub scratch_elements: u64,
    /// `avg` divides whole outputs after the kernel.
    pub scale_outputs: bool,
}

impl Kernel {
    /// The author's loops as a kernel.
    pub fn of_loops(
        algorithm: &Interpreted,
        proved: &Proved,
        spec: Spec,
    ) -> Result<Self, Vec<Diagnostic>> {
        let _ = (algorithm, proved, spec);
        todo!()
    }

    /// A schedule as a table.
    pub fn of_table(optimized: &Optimized, spec: Spec) -> Result<Self, Vec<Diagnostic>> {
        let _ = (optimized, spec);
        todo!()
    }

    /// What a launch for `count` elements a unit reads.
    pub fn facts(&self, count: u64) -> Facts {
        let _ = count;
        todo!()
    }
}
