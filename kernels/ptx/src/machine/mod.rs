//! A machine that runs kernels of several ranks at once: all blocks are resident, and every lane of a warp is a thread of
//! its own.
//!
//! Lanes of a warp that stand at the same instruction execute it together, as long as the seed does not take them
//! apart. A turn of a warp has one strong access to memory in it, or none: the order of other instructions of different
//! warps does not show, because a plain access that is not ordered with a conflicting one is an error. After a turn the
//! seed decides which warp goes on; each one gets a turn again, so a thread that polls does not keep others from what
//! it waits for.

mod access;
mod counters;
mod execute;
mod explore;
mod fault;
mod image;
mod junctions;
mod launch;
mod lines;
mod meet;
mod missing;
mod schedule;
mod shrink;
mod stream;
mod warp;

pub use crate::memory::{Conflict, Window};
pub use counters::Counters;
pub use fault::{FaultKind, KernelFault, LaunchError, Where};
pub use launch::{Failure, FinalState, Launch, Limits, RankLaunch};
pub use shrink::Shrunk;

use std::collections::HashMap;
use std::ops::Range;

use crate::choices::Choices;
use crate::memory::{LANES, Memory, Thread};
use image::Image;
use meet::Arrivals;
use stream::InStream;
use warp::Warp;

/// An error of the lanes of a mask.
type Failed = (FaultKind, u32);

/// A block.
#[derive(Debug)]
struct Block {
    rank: u32,
    /// The number of the block in its rank's grid.
    in_rank: u32,
    warps: Range<usize>,
    /// The barriers to which threads have come.
    barriers: Vec<Arrivals>,
    /// The lines of words in shared memory, by their offsets: instructions of the threads that stored them.
    lines: HashMap<u64, u32>,
}

/// The state of a run.
#[derive(Debug)]
struct Machine<'a> {
    image: Image<'a>,
    launches: Vec<InStream>,
    blocks: Vec<Block>,
    warps: Vec<Warp>,
    memory: Memory,
    choices: Choices,
    limits: Limits,
    /// For each instruction the one at which lanes that it takes apart meet again; empty where they meet by chance.
    junctions: Vec<Option<u32>>,
    /// By rank, and by the number of the warp in its block.
    counters: Vec<Vec<Counters>>,
    /// Instructions, once for each group of lanes.
    executed: u64,
    turns: u64,
    /// Turns since the last store, barrier or end of a thread.
    idle: u64,
}

impl Machine<'_> {
    fn rank(&self, warp: usize) -> usize {
        self.blocks[self.warps[warp].block].rank as usize
    }

    fn counters_of(&mut self, warp: usize) -> &mut Counters {
        let (rank, in_block) = (self.rank(warp), self.warps[warp].in_block);
        &mut self.counters[rank][in_block as usize]
    }

    /// Notes that something has happened for which other threads may wait.
    fn progress(&mut self) {
        self.idle = 0;
    }

    /// The description of a thread at an instruction.
    fn place_of(&self, thread: Thread, place: u32) -> Where {
        let warp = (thread / LANES) as usize;
        self.lanes_at(warp.min(self.warps.len() - 1), 1 << (thread % LANES), place)
    }

    /// The description of lanes of a warp at an instruction.
    fn lanes_at(&self, warp: usize, lanes: u32, place: u32) -> Where {
        let Warp { block, in_block, .. } = self.warps[warp];
        let Block { rank, in_rank, .. } = self.blocks[block];
        let instruction = self.image.code[place as usize];
        let source = self.source_of(warp, lanes, place);
        Where {
            rank,
            block: in_rank,
            warp: in_block,
            lanes,
            function: self.image.frames[self.image.frame_number(place)].function.name.clone(),
            source: source.map(|(file, line)| (file.to_owned(), line)),
            line: instruction.line,
        }
    }
}
