//! A plan as a schedule: a block becomes a stream of its rank, a channel becomes a signal each way, and the peer's
//! memory that an op accesses becomes a region of the peer.

use super::Program;
use super::ports::{self, RankStreams};
use super::program::{Act, Chunk};
use super::steps::{All, Grid, MscclppStep, Word, streams};
use super::{local, packets, threads, wires};
use crate::draft::{Draft, OPS, PLACES, too_large};
use crate::memory::{Memories, MemoryShape};
use crate::report::span;
use crate::terms::{Memory, Mode, Place, Protocol};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::schedule::{Buffer, OpKind, Region, Schedule, Scratch, SignalKind};
use roundelay_core::syntax::Source;

/// The most errors that are reported.
const MOST: usize = 16;

/// A plan as a schedule, with warnings.
pub(super) struct Laid {
    pub(super) schedule: Schedule,
    pub(super) warnings: Vec<Diagnostic>,
    /// A warning of puts that a proxy may read after their rank has returned.
    pub(super) unread: Option<Diagnostic>,
}

impl Program {
    /// Returns the schedule of a plan, with `stretches` stretches in each loop, for an executor that flushes or does not.
    /// `source` is the text that the plan was read from. If calls take the halves of scratch in turn, the schedule is that of two calls, one after the other.
    ///
    /// # Errors
    /// Errors that a schedule cannot express: chunks beyond a buffer (E0312), operands that overlap (E0213), an input
    /// that is written (E0110), chunks of unequal size (E0801), invalid barriers, semaphores and packets (E03xx), data
    /// without a `nop` (E0305), and plans that are too large (E0206).
    pub(super) fn lay_out(
        &self,
        source: &Source,
        stretches: u32,
        flushes: bool,
    ) -> Result<Laid, Vec<Diagnostic>> {
        let large = |what: String| too_large(self.whole, format!("a plan of {what}"));
        let Some(grid) = self.grid(stretches) else { return Err(large("too many parts".into())) };
        let length = self.length(grid);
        if length > OPS {
            return Err(large(format!("{length} steps")));
        }
        let memories = self.memories(grid)?;
        let scratch = self.most_chunks(Memory::Scratch);
        let cells = memories.places(u64::from(scratch) * u64::from(grid.cells) * 2);
        if cells > PLACES {
            return Err(large(format!("{cells} chunks of memory")));
        }
        let mut all = self.steps(grid);
        let mut wrong = ports::carry(&mut all, flushes);
        if wrong.is_empty() {
            wrong = self.wrong(&memories, grid, &all);
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let warnings = wires::connect(&mut all);
        let mut wrong = local::connect(self, &mut all);
        wrong.extend(packets::connect(self, grid, &mut all));
        if !wrong.is_empty() {
            wrong.truncate(MOST);
            return Err(wrong);
        }
        let packets = all.iter().flatten().flatten().flat_map(|step| step.what.parts()).flatten();
        let packets = packets.into_iter().any(|part| part.packets);
        let layout = MscclppLayout::new(self, &memories, (scratch > 0, packets));
        let ranks: Vec<_> = all.iter().zip(&self.gpus).map(RankStreams::new).collect();
        let rounds = layout.rounds;
        let schedule = layout.lay_out(source, all)?;
        let unread = ports::unread(&schedule, &ranks, rounds);
        Ok(Laid { schedule, warnings, unread })
    }

    /// Returns the mode of calls.
    pub(super) fn mode(&self) -> Mode {
        if self.header.in_place { Mode::InPlace } else { Mode::OutOfPlace }
    }

    /// Returns the places of chunks. All ranks must cut their data alike: otherwise an offset would mean another place
    /// at a peer.
    fn memories(&self, grid: Grid) -> Result<Memories, Vec<Diagnostic>> {
        let nranks = self.header.nranks;
        let first = &self.gpus[0];
        for (rank, gpu) in self.gpus.iter().enumerate() {
            if gpu.chunks[..2] != first.chunks[..2] && self.header.collective.is_some() {
                let title = format!("gpu {rank} cuts its data into other chunks than gpu 0");
                return Err(vec![Diagnostic::new(Code::RefusedByRuntime, span(gpu.at), title)]);
            }
        }
        let [input, output, _] = first.chunks.map(u64::from);
        if let Some(collective) = self.header.collective {
            let units = |buffer| match buffer {
                Buffer::Input => collective.input_units(RankId(0), nranks, RankId(0)),
                _ => collective.output_units(RankId(0), nranks, RankId(0)),
            };
            let [of_input, of_output] = [Buffer::Input, Buffer::Output].map(units).map(u64::from);
            if input * of_output != output * of_input {
                let title = format!(
                    "{input} chunks of input and {output} of output, where chunks of both are equally long"
                );
                return Err(vec![Diagnostic::new(Code::RefusedByRuntime, span(first.at), title)]);
            }
        }
        let named = |chunks: u32| chunks.saturating_mul(grid.cells);
        let [of_input, of_output, scratch] = [Memory::Input, Memory::Output, Memory::Scratch]
            .map(|memory| named(self.most_chunks(memory)));
        Ok(Memories::new(&MemoryShape {
            collective: self.header.collective,
            nranks,
            chunks: of_input.max(of_output),
            scratch,
            mode: self.mode(),
        }))
    }

    /// Returns the errors of steps that a schedule cannot express.
    fn wrong(&self, memories: &Memories, grid: Grid, all: &All) -> Vec<Diagnostic> {
        let mut wrong = Vec::new();
        for (rank, blocks) in all.iter().enumerate() {
            let blocks = blocks.iter().enumerate();
            for (block, step) in blocks.flat_map(|(at, steps)| steps.iter().map(move |s| (at, s))) {
                let queue = block >= self.gpus[rank].blocks.len();
                wrong.extend(self.wrong_step(memories, grid, (rank as u32, queue), step));
                if wrong.len() >= MOST {
                    return wrong;
                }
            }
        }
        wrong
    }

    fn wrong_step(
        &self,
        memories: &Memories,
        grid: Grid,
        (own, queue): (u32, bool),
        step: &MscclppStep,
    ) -> Option<Diagnostic> {
        let [srcs, dsts] = step.what.parts();
        let error = |code, title: String| Some(Diagnostic::new(code, span(step.at), title));
        for part in srcs.iter().chain(dsts) {
            let gpu = &self.gpus[part.rank as usize];
            let mut room = gpu.chunks_of(part.memory);
            if part.packets && self.header.protocol != Protocol::Ll {
                // Without LL, scratch has no room for flags.
                room /= 2;
            }
            if u64::from(part.end()) > u64::from(room) * u64::from(grid.cells) {
                let (first, end) = (part.index / grid.cells, part.end().div_ceil(grid.cells));
                let (letter, rank) = (part.memory.letter(), part.rank);
                let what = if part.packets { "packets" } else { "chunks" };
                return error(
                    Code::OutOfBounds,
                    format!("{what} {first}..{end} of `{letter}`, of which gpu {rank} has {room}"),
                );
            }
            let first_half = part.rank != own || queue;
            if part.memory == Memory::Scratch
                && !part.packets
                && first_half
                && self.header.own.doubled
            {
                let whose = if part.rank == own { "over a port from" } else { "in a peer's" };
                return error(
                    Code::RefusedByRuntime,
                    format!("plain data {whose} scratch, of which calls take the halves in turn"),
                )
                .map(|error| error.note("the executor always takes the first half there"));
            }
        }
        if memories.keeps_input() && dsts.iter().any(|part| part.memory == Memory::Input) {
            return error(Code::InputWritten, "out of place, the input is written".into())
                .map(|error| error.help("write `o`, or say that the plan is called in place"));
        }
        let overlaps = |one: &Chunk, other: &Chunk| {
            let place = |part: &Chunk| Place { memory: part.memory, offset: part.index.into() };
            let rank = RankId(one.rank);
            one.rank == other.rank
                && one.packets == other.packets
                && memories.overlap(rank, (place(one), place(other)), one.size)
        };
        let twice = |at: usize| {
            dsts[..at].iter().any(|other| overlaps(other, &dsts[at]) || *other == dsts[at])
        };
        let switch = matches!(step.what, Act::Data { switch: true, .. });
        let met =
            |dst: &Chunk| srcs.iter().any(|src| overlaps(src, dst) && !(switch && src == dst));
        let met = dsts.iter().any(met);
        if met || (0..dsts.len()).any(twice) {
            return error(Code::RepeatedDestination, "an op whose chunks overlap".into());
        }
        None
    }
}

struct MscclppLayout<'p> {
    program: &'p Program,
    memories: &'p Memories,
    /// The number of calls in the schedule.
    rounds: u32,
    draft: Draft,
    /// The scratch buffers of a rank, for chunks and for packets.
    scratch: Option<[ScratchId; 2]>,
}

impl<'p> MscclppLayout<'p> {
    fn new(program: &'p Program, memories: &'p Memories, (scratch, packets): (bool, bool)) -> Self {
        let rounds = if program.header.own.doubled { 2 } else { 1 };
        let mut all = memories.scratch();
        let mut ids = None;
        if scratch && let Some(own) = all.first_mut() {
            own.slots = rounds;
            let own = own.clone();
            ids = Some([ScratchId(0); 2]);
            if packets {
                all.push(Scratch { name: "packets".to_owned(), ..own });
                ids = Some([ScratchId(0), ScratchId(all.len() as u32 - 1)]);
            }
        }
        Self { program, memories, rounds, draft: Draft::new(all), scratch: ids }
    }

    fn lay_out(mut self, source: &Source, all: All) -> Result<Schedule, Vec<Diagnostic>> {
        let mut wrong = Vec::new();
        for (rank, blocks) in (0..).map(RankId).zip(all) {
            let numbers = streams(&blocks);
            let count = numbers.last().copied().unwrap_or(0);
            let gpu = &self.program.gpus[rank.index()];
            self.draft.main(self.memories, rank, gpu.at, (&numbers, self.rounds));
            let mut arranged = Vec::new();
            for (block, steps) in blocks.into_iter().enumerate() {
                // A queue has one order.
                let Some(block) = gpu.blocks.get(block) else {
                    arranged.push((gpu.at, steps));
                    continue;
                };
                let lies = |part: &Chunk| self.region(part, 0);
                match threads::arrange(steps, &lies) {
                    Ok(steps) => arranged.push((block.at, steps)),
                    Err(error) => wrong.push(*error),
                }
            }
            for round in 0..self.rounds {
                let busy =
                    arranged.iter().zip(&numbers).filter(|((_, steps), _)| !steps.is_empty());
                for ((at, steps), number) in busy {
                    let own = round * count + number;
                    self.draft.begin(rank, own);
                    self.draft.child(*at, OpKind::Wait, rank, SignalKind::Fork, own);
                    for step in steps {
                        self.step(step, round);
                    }
                    self.draft.child(*at, OpKind::Post, rank, SignalKind::Join, own);
                }
            }
        }
        if !wrong.is_empty() {
            wrong.truncate(MOST);
            return Err(wrong);
        }
        // A second call begins with the caller's data again; in place, the first call would have overwritten it.
        let mode = if self.rounds > 1 { Mode::OutOfPlace } else { self.program.mode() };
        Ok(self.draft.finish(source, &self.program.header, self.memories, mode))
    }

    fn step(&mut self, step: &MscclppStep, round: u32) {
        for word in &step.before {
            self.word(step, word, round);
        }
        if let Act::Data { srcs, dsts, switch } = &step.what {
            let place = |parts: &[Chunk]| -> Vec<_> {
                parts.iter().map(|part| self.region(part, round)).collect()
            };
            let (srcs, dsts) = (place(srcs), place(dsts));
            self.draft.data(step.at, &srcs, &dsts, *switch);
        }
        for word in &step.after {
            self.word(step, word, round);
        }
    }

    fn word(&mut self, step: &MscclppStep, word: &Word, round: u32) {
        let mut lane = word.lane.clone();
        if word.anew && self.rounds > 1 {
            lane.push(round.into());
        }
        let (from, to) = word.ends;
        self.draft.word(step.at, word.kind, (RankId(from), RankId(to)), (word.signal, lane));
    }

    /// Returns the region of a part in a call.
    fn region(&self, part: &Chunk, round: u32) -> (RankId, Region) {
        let rank = RankId(part.rank);
        let place = Place { memory: part.memory, offset: part.index.into() };
        let mut region = self.memories.region(rank, place, (0, part.size));
        if let Some([chunks, packets]) = self.scratch.filter(|_| part.memory == Memory::Scratch) {
            region.buffer = Buffer::Scratch(if part.packets { packets } else { chunks });
            region.slot = round;
        }
        (rank, region)
    }
}
