//! A machine that runs kernels of several ranks at once: all blocks are resident, and every lane of a warp is a thread of
//! its own.
//!
//! Lanes of a warp that stand at the same instruction execute it together, as long as the seed does not take them
//! apart. A turn of a warp has one strong access to memory in it, or none: the order of other instructions of different
//! warps does not show, because a plain access that is not ordered with a conflicting one is an error. After a turn the
//! seed decides which warp goes on; each one gets a turn again, so a thread that polls does not keep others from what
//! it waits for.

mod access;
mod cluster;
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
mod multicast;
mod rank;
mod schedule;
mod shrink;
mod stream;
mod warp;

pub use crate::memory::{Alias, Conflict, Window};
pub use counters::Counters;
pub use fault::{AccessedMemory, FaultKind, KernelFault, LaunchError, Where, join_waiting};
pub use launch::{Failure, FinalState, InitialVariable, Launch, Limits};
pub use rank::RankLaunch;
pub use shrink::Shrunk;

use std::collections::{BTreeSet, HashMap};

use crate::assumptions::Assumptions;
use crate::choices::Choices;
use crate::memory::{LANES, Memory, Stamp};
use cluster::ClusterBarrier;
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
    /// The number of the first block of its cluster.
    cluster: u32,
    /// The warps that it runs in.
    warps: Vec<usize>,
    /// The number of its warps that have not ended.
    live: usize,
    has_ended: bool,
    /// Whether a thread has let launches begin early.
    lets_launch: bool,
    /// The barriers to which threads have come.
    barriers: Vec<Arrivals>,
    /// The lines of words in shared memory, by their offsets: instructions of the threads that stored them.
    lines: HashMap<u64, u32>,
}

impl Block {
    /// A block of a launch, with its number in the grid, before it begins.
    fn new((rank, in_rank): (u32, u32), cluster: u32, warps: &[u32]) -> Self {
        Self {
            rank,
            in_rank,
            cluster,
            warps: warps.iter().map(|&warp| warp as usize).collect(),
            live: 0,
            has_ended: false,
            lets_launch: false,
            barriers: Vec::new(),
            lines: HashMap::new(),
        }
    }

    /// Whether launches that may begin early need not wait for it.
    fn is_done(&self) -> bool {
        self.has_ended || self.lets_launch
    }
}

/// The warp of a block that a warp of the run is from an epoch of its threads on.
#[derive(Clone, Copy, Debug)]
struct Occupant {
    epoch: u32,
    block: u32,
    in_block: u32,
}

/// The state of a run.
#[derive(Debug)]
struct Machine<'a> {
    image: Image<'a>,
    ranks: &'a [RankLaunch<'a>],
    assumptions: &'a Assumptions,
    launches: Vec<InStream>,
    /// The first launch that has not begun.
    first_open: usize,
    blocks: Vec<Block>,
    warps: Vec<Warp>,
    /// The barriers of clusters, by their first blocks.
    clusters: HashMap<u32, ClusterBarrier>,
    /// For each warp the blocks that it was in, one after another.
    occupants: Vec<Vec<Occupant>>,
    memory: Memory,
    /// Whether plain accesses to a window are relaxed ones.
    weak_is_relaxed: bool,
    choices: Choices,
    limits: Limits,
    /// For each instruction the one at which lanes that it takes apart meet again; empty where they meet by chance.
    junctions: Vec<Option<u32>>,
    /// By rank, and by the number of the warp in its block.
    counters: Vec<Vec<Counters>>,
    /// Races behind which the run went on.
    races: Vec<KernelFault>,
    /// The instructions of these.
    raced: BTreeSet<(u32, u32)>,
    /// Instructions, once for each group of lanes.
    executed: u64,
    /// For each instruction of the image whether it was executed.
    covered: Vec<bool>,
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

    /// The description of the thread of an access before.
    fn place_of(&self, Stamp { thread, epoch, place }: Stamp) -> Where {
        let warp = ((thread / LANES) as usize).min(self.warps.len() - 1);
        let occupants = &self.occupants[warp];
        let after = occupants.partition_point(|occupant| occupant.epoch <= epoch);
        match occupants.get(after.saturating_sub(1)) {
            Some(&Occupant { block, in_block, .. }) if after < occupants.len() => {
                let source = self.source(place);
                self.describe((block as usize, in_block), 1 << (thread % LANES), place, source)
            }
            _ => self.lanes_at(warp, 1 << (thread % LANES), place),
        }
    }

    /// The description of lanes of a warp at an instruction.
    fn lanes_at(&self, warp: usize, lanes: u32, place: u32) -> Where {
        let Warp { block, in_block, .. } = self.warps[warp];
        let source = self.source_of(warp, lanes, place);
        self.describe((block, in_block), lanes, place, source)
    }

    fn describe(
        &self,
        (block, warp): (usize, u32),
        lanes: u32,
        place: u32,
        source: Option<(&str, u32)>,
    ) -> Where {
        let Block { rank, in_rank, .. } = self.blocks[block];
        Where {
            rank,
            block: in_rank,
            warp,
            lanes,
            function: self.image.frames[self.image.frame_number(place)].function.name.clone(),
            source: source.map(|(file, line)| (file.to_owned(), line)),
            line: self.image.code[place as usize].line,
        }
    }
}
