//! Splits a stream into thread blocks. Threads of a block wait for each other at a `nop`, which is placed between
//! writes and their signal, between a wait and the ops after it, and between ops on the same chunks. A stream that is
//! too long for one block continues in another block, which waits for the first.

use super::execution_plan::{Chunk, Data, PlanBlock, PlanOp, PlanWord, Side};
use crate::mscclpp::table::{CHANNELS, CHANNELS_OF_OP, OPERATIONS};
use crate::terms::Memory;

/// An item of a stream.
pub(super) enum Item {
    Data(Data),
    /// A post or a wait on a channel or a semaphore of the rank.
    Word(PlanWord, u32),
}

/// The remote buffers and semaphores of a rank, numbered at first use.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) remotes: Vec<(u32, Memory)>,
    pub(super) switches: Vec<(Vec<u32>, Memory)>,
    pub(super) semaphores: u32,
}

impl Numbers {
    fn remote(&mut self, chunk: &Chunk) -> u32 {
        number(&mut self.remotes, (chunk.rank, chunk.memory))
    }

    /// Returns the number of the switch's channel that has these chunks, one of each rank.
    fn switch(&mut self, chunks: &[Chunk]) -> u32 {
        let mut ranks: Vec<_> = chunks.iter().map(|chunk| chunk.rank).collect();
        ranks.sort_unstable();
        number(&mut self.switches, (ranks, chunks[0].memory))
    }

    /// Returns a new semaphore.
    pub(super) fn semaphore(&mut self) -> u32 {
        self.semaphores += 1;
        self.semaphores - 1
    }
}

/// Splits one stream into blocks.
pub(super) struct StreamSplitter<'a> {
    own: u32,
    numbers: &'a mut Numbers,
    /// Whether two chunks share memory.
    meet: &'a dyn Fn(&Chunk, &Chunk) -> bool,
    done: Vec<PlanBlock>,
    block: PlanBlock,
    /// The moves since the last `nop`, and whether there was a wait.
    moved: Vec<Data>,
    waited: bool,
}

/// The most ops that an item takes: a `nop` and the item's op.
const ITEM: usize = 2;
/// The most ops that the end of a block takes: a `nop` and the release of the next block.
const END: usize = 2;

impl<'a> StreamSplitter<'a> {
    pub(super) fn new(
        own: u32,
        numbers: &'a mut Numbers,
        meet: &'a dyn Fn(&Chunk, &Chunk) -> bool,
    ) -> Self {
        let (done, block, moved) = (Vec::new(), PlanBlock::default(), Vec::new());
        Self { own, numbers, meet, done, block, moved, waited: false }
    }

    /// Returns the blocks of a stream.
    pub(super) fn blocks(mut self, items: Vec<Item>) -> Vec<PlanBlock> {
        for item in items {
            if !self.fits(&item) {
                self.go_on();
            }
            self.item(item);
        }
        self.done.push(self.block);
        self.done
    }

    /// Whether a block has room for one more item.
    fn fits(&self, item: &Item) -> bool {
        let room = self.block.ops.len() + ITEM + END <= OPERATIONS;
        room && match item {
            Item::Word(PlanWord::Signal | PlanWord::Wait, id) => {
                let known = &self.block.channels;
                known.len() + usize::from(!known.contains(id)) <= CHANNELS
            }
            // Each buffer of a peer may need a new number.
            Item::Data(data) if data.by_switch() => self.block.switches.len() < CHANNELS,
            Item::Data(data) => {
                let far = data.srcs.iter().chain(&data.dsts).filter(|chunk| chunk.rank != self.own);
                self.block.remotes.len() + far.count() <= CHANNELS
            }
            Item::Word(..) => true,
        }
    }

    fn go_on(&mut self) {
        let next = self.numbers.semaphore();
        self.item(Item::Word(PlanWord::Release, next));
        self.done.push(std::mem::take(&mut self.block));
        (self.moved, self.waited) = (Vec::new(), false);
        self.item(Item::Word(PlanWord::Acquire, next));
    }

    fn nop(&mut self) {
        self.block.ops.push(PlanOp::Nop);
        (self.moved, self.waited) = (Vec::new(), false);
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Data(data) => {
                if self.waited || self.moved.iter().any(|early| self.collide(early, &data)) {
                    self.nop();
                }
                let op = self.data(&data);
                self.block.ops.push(op);
                self.moved.push(data);
            }
            Item::Word(word, id) => {
                let posts = matches!(word, PlanWord::Signal | PlanWord::Release);
                if posts {
                    self.settle();
                }
                let id = match word {
                    PlanWord::Signal | PlanWord::Wait => number(&mut self.block.channels, id),
                    PlanWord::Release | PlanWord::Acquire => id,
                };
                // Two threads must not use one channel.
                let joins = |ids: &[u32]| ids.len() < CHANNELS_OF_OP && !ids.contains(&id);
                match self.block.ops.last_mut() {
                    Some(PlanOp::Words(last, ids)) if *last == word && joins(ids) => ids.push(id),
                    _ => self.block.ops.push(PlanOp::Words(word, vec![id])),
                }
                self.waited |= !posts;
            }
        }
    }

    /// Adds a `nop` before a signal, so that all threads are done with the ops that it announces.
    fn settle(&mut self) {
        if self.waited || !self.moved.is_empty() {
            self.nop();
        }
    }

    fn collide(&self, early: &Data, late: &Data) -> bool {
        let any = |left: &[Chunk], right: &[Chunk]| {
            left.iter().any(|left| right.iter().any(|right| (self.meet)(left, right)))
        };
        any(&early.srcs, &late.dsts) || any(&early.dsts, &late.srcs) || any(&early.dsts, &late.dsts)
    }

    fn data(&mut self, data: &Data) -> PlanOp {
        let by_switch = data.by_switch();
        let mut sides = |chunks: &[Chunk]| -> Vec<(Side, Chunk)> {
            if by_switch && chunks.len() > 1 {
                let id = self.numbers.switch(chunks);
                return vec![(Side::All(number(&mut self.block.switches, id)), chunks[0])];
            }
            let side = |chunk: &Chunk| {
                if chunk.rank == self.own {
                    return (Side::Own(chunk.memory), *chunk);
                }
                let id = self.numbers.remote(chunk);
                (Side::Peer(number(&mut self.block.remotes, id)), *chunk)
            };
            chunks.iter().map(side).collect()
        };
        let (srcs, dsts) = (sides(&data.srcs), sides(&data.dsts));
        PlanOp::Data { name: data.name, srcs, dsts }
    }
}

/// Returns the number of a channel or a buffer among those that are known.
fn number<T: PartialEq>(known: &mut Vec<T>, item: T) -> u32 {
    let at = known.iter().position(|known| *known == item);
    at.unwrap_or_else(|| {
        known.push(item);
        known.len() - 1
    }) as u32
}
