//! The form that readers give a program: a header, the blocks of each rank, and the names of the steps in its text. The
//! operations of a block, and a part of the header, are those of the program's format.

use super::terms::{Memory, Mode, Protocol};
use roundelay_core::collective::Collective;
use roundelay_core::ids::SpanId;

/// A program of operations in blocks `B`, with the facts `H` of its format in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program<H, B> {
    /// The header.
    pub header: Header<H>,
    /// The blocks of each rank.
    pub gpus: Vec<Gpu<B>>,
    /// The operations of all ranks, as the runtime counts them.
    pub(super) operations: usize,
    /// The place of its beginning.
    pub(super) whole: SpanId,
    /// The name of each step, by place.
    pub(super) names: StepNames,
}

/// The header of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<H> {
    /// The name, for messages.
    pub name: String,
    /// The collective as the program writes it.
    pub coll: String,
    /// The collective that `coll` promises; `None` if its result cannot be compared.
    pub collective: Option<Collective>,
    /// The protocol of the connections.
    pub protocol: Protocol,
    /// The number of ranks.
    pub nranks: u32,
    /// Whether the program may be called in place.
    pub in_place: bool,
    /// Whether the program may be called with input and output apart.
    pub out_of_place: bool,
    /// The fewest bytes of a call.
    pub min_bytes: u64,
    /// The most bytes of a call; `None` for no limit.
    pub max_bytes: Option<u64>,
    /// The facts that only programs of this format have.
    pub own: H,
}

impl<H> Header<H> {
    /// Returns the modes of call that the program declares, each to be proved.
    pub fn modes(&self) -> Vec<Mode> {
        let one = self.collective.is_some_and(Collective::has_in_place);
        match (self.in_place, self.out_of_place) {
            (true, true) if one => vec![Mode::Both],
            (true, true) => vec![Mode::OutOfPlace, Mode::InPlace],
            (true, false) => vec![Mode::InPlace],
            (false, _) => vec![Mode::OutOfPlace],
        }
    }
}

/// The blocks and resources of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu<B> {
    /// The declared chunks of input, output and scratch.
    pub chunks: [u32; 3],
    /// The blocks, by their numbers.
    pub blocks: Vec<B>,
    /// The initial value of each semaphore, which only programs for MSCCL++ have.
    pub semaphores: Vec<u32>,
    /// Its place in the text; the place of the whole program for a rank that the text does not have.
    pub at: SpanId,
}

impl<B> Gpu<B> {
    /// Returns the declared chunks of a buffer.
    pub fn chunks_of(&self, memory: Memory) -> u32 {
        self.chunks[memory as usize]
    }
}

impl<H, B> Program<H, B> {
    /// Returns the number of operations of all ranks, and the most blocks of a rank.
    pub fn size(&self) -> (usize, usize) {
        (self.operations, self.gpus.iter().map(|gpu| gpu.blocks.len()).max().unwrap_or(0))
    }

    /// Returns the blocks of all ranks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &B> {
        self.gpus.iter().flat_map(|gpu| &gpu.blocks)
    }

    /// Returns the most chunks of a buffer that a rank declares.
    pub(super) fn most_chunks(&self, memory: Memory) -> u32 {
        self.gpus.iter().map(|gpu| gpu.chunks_of(memory)).max().unwrap_or(0)
    }
}

/// The names of steps, in the order of their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StepNames(pub(super) Vec<(SpanId, StepName)>);

impl StepNames {
    /// Returns the name of the step at a place.
    pub(super) fn get(&self, at: SpanId) -> Option<String> {
        let index = self.0.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.0[index].1.to_string())
    }

    /// Returns the name of the step at a place; no text for the place of something else.
    pub(super) fn text(&self, at: SpanId) -> String {
        self.get(at).unwrap_or_default()
    }
}

/// The name of a step: its rank, its block, its number in the block, and its number within a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepName {
    pub(super) gpu: u32,
    pub(super) block: u32,
    pub(super) step: u32,
    pub(super) inner: Option<u32>,
    /// The format's words for blocks and steps.
    pub(super) words: [&'static str; 2],
}

impl std::fmt::Display for StepName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gpu, block, step, inner, words: [blocks, steps] } = self;
        write!(f, "gpu {gpu} {blocks} {block} {steps} {step}")?;
        inner.map_or(Ok(()), |inner| write!(f, ".{inner}"))
    }
}
