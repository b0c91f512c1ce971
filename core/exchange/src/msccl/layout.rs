//! A program as a schedule: a block becomes a stream of its rank; a connection becomes slots of a scratch at the
//! receiver with a signal each way; waits between blocks of a rank become signals between its streams.

use std::collections::HashMap;

use super::links::{Connection, Links};
use super::program::{Block, Operation, OperationKind};
use super::words::BlockWaits;
use super::{Gpu, Program, buffers};
use crate::draft::{Draft, OPS, PLACES, streams, too_large};
use crate::memory::Memories;
use crate::terms::{Mode, Place};
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::ids::{RankId, ScratchId, SpanId};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, OpKind, Region, Schedule, Scratch, SignalKind};
use roundelay_core::syntax::Source;

impl Program {
    /// Returns the schedule of the program, called in `mode`, with `chunks` chunks in a message. `source` is the text
    /// that the program was read from.
    ///
    /// # Errors
    /// Errors that a schedule cannot express: chunks beyond a buffer (E0312), operands that overlap (E0213), an input
    /// that is written (E0110), connections that several blocks use (E0310) or whose two ends have steps of different
    /// lengths (E0208), waits that no step ends (E0301, E0302), and programs that are too large (E0206).
    pub fn schedule(
        &self,
        source: &Source,
        mode: Mode,
        chunks: u32,
    ) -> Result<Schedule, Vec<Diagnostic>> {
        let messages = |operation: &Operation| u64::from(operation.count.div_ceil(chunks).max(1));
        let operations = self.blocks().flat_map(|block| &block.operations);
        let all = operations.map(messages).fold(0, u64::saturating_add);
        let large = |what| too_large(self.whole, format!("a program of {what}"));
        if all.saturating_mul(5) > OPS {
            return Err(large(format!("{all} messages")));
        }
        let buffers = buffers::memories(self, mode);
        let places = buffers::places(&buffers, self);
        if places > PLACES {
            return Err(large(format!("{places} chunks of memory")));
        }
        let mut wrong = buffers::wrong(&buffers, self);
        let links = Links::new(self).map_err(|more| wrong.extend(more));
        let words = BlockWaits::new(self).map_err(|more| wrong.extend(more));
        let (Ok(links), Ok(words), true) = (links, words, wrong.is_empty()) else {
            return Err(wrong);
        };
        let mut layout = MscclLayout::new(self, &buffers, &links, chunks);
        for (rank, gpu) in self.gpus.iter().enumerate() {
            layout.rank(RankId(rank as u32), gpu, &words);
        }
        Ok(layout.draft.finish(source, &self.header, &buffers, mode))
    }
}

struct MscclLayout<'p> {
    program: &'p Program,
    buffers: &'p Memories,
    links: &'p Links,
    /// Chunks in a message.
    chunks: u32,
    draft: Draft,
    fifo: Option<ScratchId>,
    /// The messages of each link so far, as its sender and its receiver count them.
    sent: HashMap<Connection, u32>,
    received: HashMap<Connection, u32>,
}

impl<'p> MscclLayout<'p> {
    fn new(program: &'p Program, buffers: &'p Memories, links: &'p Links, chunks: u32) -> Self {
        let mut draft = Draft::new(buffers.scratch());
        let width = links.widest().min(chunks);
        let fifo = (width > 0).then(|| {
            draft.declare(Scratch {
                name: "fifo".to_owned(),
                slots: links.slots(),
                width: buffers.chunks(width),
                wide: false,
            })
        });
        Self {
            program,
            buffers,
            links,
            chunks,
            draft,
            fifo,
            sent: HashMap::new(),
            received: HashMap::new(),
        }
    }

    /// Adds the main stream, which copies input and output and forks the blocks' streams, and then those streams.
    fn rank(&mut self, rank: RankId, gpu: &'p Gpu, words: &BlockWaits) {
        let numbers = streams(gpu.blocks.iter().map(|block| block.operations.is_empty()));
        self.draft.main(self.buffers, rank, gpu.at, (&numbers, 1));
        for (id, block) in gpu.blocks.iter().enumerate() {
            if !block.operations.is_empty() {
                self.block(rank, (id, block), &numbers, words);
            }
        }
    }

    fn block(
        &mut self,
        rank: RankId,
        (id, block): (usize, &'p Block),
        streams: &[u32],
        words: &BlockWaits,
    ) {
        let own = streams[id];
        self.draft.begin(rank, own);
        self.draft.child(block.at, OpKind::Wait, rank, SignalKind::Fork, own);
        for (index, operation) in block.operations.iter().enumerate() {
            let [waits, posts] = words.at(rank, id, index);
            for from in waits {
                let ends = [streams[*from as usize], own];
                self.word(operation.at, OpKind::Wait, rank, ends);
            }
            self.operation(rank, block, operation);
            for to in posts {
                let ends = [own, streams[*to as usize]];
                self.word(operation.at, OpKind::Post, rank, ends);
            }
        }
        self.drain(rank, block);
        self.draft.child(block.at, OpKind::Post, rank, SignalKind::Join, own);
    }

    /// Waits at the end of a block for the receiver to take the last messages: the next run begins with empty slots.
    fn drain(&mut self, rank: RankId, block: &Block) {
        let Some(link) = Connection::out(rank, block) else { return };
        let sent = self.sent.get(&link).copied().unwrap_or(0);
        let last = block.operations.iter().rfind(|operation| operation.kind.sends());
        for _ in 0..sent.min(self.program.header.protocol.slots()) {
            let at = last.map_or(block.at, |operation| operation.at);
            self.link(at, OpKind::Wait, link, SignalKind::Head);
        }
    }

    fn operation(&mut self, rank: RankId, block: &Block, operation: &Operation) {
        let (kind, at) = (operation.kind, operation.at);
        if kind == OperationKind::Reduce {
            return self.reduce(rank, operation);
        }
        let from = Connection::into(rank, block).filter(|_| kind.receives());
        let to = Connection::out(rank, block).filter(|_| kind.sends());
        let whole = from.is_none() && to.is_none();
        let step = if whole { operation.count } else { self.chunks };
        let mut first = 0;
        while first < operation.count {
            let count = step.min(operation.count - first);
            let own = |place: Place| self.buffers.region(rank, place, (first, count));
            let src = kind.reads().then(|| (rank, own(operation.src)));
            let dst = kind.writes().then(|| (rank, own(operation.dst)));
            let incoming = from.map(|link| self.take(at, link, count));
            let outgoing = to.map(|link| self.fill(at, link, count));
            let srcs: Vec<_> = [src, incoming].into_iter().flatten().collect();
            let dsts: Vec<_> = [dst, outgoing].into_iter().flatten().collect();
            self.draft.data(at, &srcs, &dsts, false);
            if let Some(link) = to {
                self.link(at, OpKind::Post, link, SignalKind::Tail);
            }
            if let Some(link) = from {
                self.link(at, OpKind::Post, link, SignalKind::Head);
            }
            first += count;
        }
    }

    /// Adds reductions into one place, one after the other.
    fn reduce(&mut self, rank: RankId, operation: &Operation) {
        let count = operation.count;
        if count == 0 {
            return;
        }
        let place = |place| (rank, self.buffers.region(rank, place, (0, count)));
        let dst = place(operation.dst);
        let more =
            operation.more.iter().map(|(offset, _)| Place { offset: *offset, ..operation.src });
        let srcs: Vec<_> = std::iter::once(operation.src).chain(more).map(place).collect();
        for some in srcs.chunks(7) {
            let all: Vec<_> = std::iter::once(dst).chain(some.iter().copied()).collect();
            self.draft.data(operation.at, &all, &[dst], false);
        }
    }

    /// Waits for the next message of a link, and returns its place.
    fn take(&mut self, at: SpanId, link: Connection, count: u32) -> (RankId, Region) {
        let messages = self.received.entry(link).or_insert(0);
        let message = *messages;
        *messages += 1;
        self.link(at, OpKind::Wait, link, SignalKind::Tail);
        self.slot(link, message, count)
    }

    /// Returns the place of the next message of a link; if all slots hold messages, first waits for a free one.
    fn fill(&mut self, at: SpanId, link: Connection, count: u32) -> (RankId, Region) {
        let messages = self.sent.entry(link).or_insert(0);
        let message = *messages;
        *messages += 1;
        if message >= self.program.header.protocol.slots() {
            self.link(at, OpKind::Wait, link, SignalKind::Head);
        }
        self.slot(link, message, count)
    }

    fn slot(&self, link: Connection, message: u32, count: u32) -> (RankId, Region) {
        let slot = self.links.first(link) + message % self.program.header.protocol.slots();
        let buffer = self.fifo.map_or(Buffer::Input, Buffer::Scratch);
        let hi = self.buffers.chunks(count);
        (RankId(link.to), Region { buffer, slot, base: Rat::ZERO, lo: Rat::ZERO, hi })
    }

    fn link(&mut self, at: SpanId, kind: OpKind, link: Connection, signal: SignalKind) {
        let (from, to) = (RankId(link.from), RankId(link.to));
        let ends = if signal == SignalKind::Tail { (from, to) } else { (to, from) };
        self.draft.word(at, kind, ends, (signal, vec![link.channel.into()]));
    }

    fn word(&mut self, at: SpanId, kind: OpKind, rank: RankId, ends: [u32; 2]) {
        let lane = ends.map(i64::from).to_vec();
        self.draft.word(at, kind, (rank, rank), (SignalKind::Local, lane));
    }
}
