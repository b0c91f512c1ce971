//! Launches that run one after another, as the launches of a CUDA stream do, or where events order them.

use std::ops::Range;

use super::Machine;
use super::launch::RankLaunch;
use super::warp::State;
use crate::memory::{LANES, Thread};

/// A launch among the others of a run.
#[derive(Debug)]
pub(super) struct InStream {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// The number of its kernel's module.
    pub(super) module: usize,
    /// Its warps.
    warps: Range<usize>,
    /// The number of its warps that have not ended.
    live: usize,
    has_begun: bool,
    /// The launches that end before it begins.
    after: Vec<usize>,
}

impl InStream {
    pub(super) fn new(launch: &RankLaunch, module: usize, warps: Range<usize>) -> Self {
        Self {
            grid: launch.grid,
            block: launch.block,
            module,
            live: warps.len(),
            warps,
            has_begun: false,
            after: launch.after.clone(),
        }
    }

    fn threads(&self) -> Range<Thread> {
        self.warps.start as Thread * LANES..self.warps.end as Thread * LANES
    }

    fn has_ended(&self) -> bool {
        self.has_begun && self.live == 0
    }
}

impl Machine<'_> {
    /// Begins the launches before which all others have ended that are to. Their threads know all that these did.
    pub(super) fn begin_launches(&mut self) {
        for number in 0..self.launches.len() {
            let launch = &self.launches[number];
            let before = || launch.after.iter().map(|&before| &self.launches[before]);
            if launch.has_begun || !before().all(InStream::has_ended) {
                continue;
            }
            let ended = before().flat_map(InStream::threads);
            self.memory.clocks.start(launch.threads(), ended);
            for warp in launch.warps.clone() {
                self.warps[warp].groups.iter_mut().for_each(|group| group.state = State::Ready);
            }
            self.launches[number].has_begun = true;
        }
    }

    /// Notes that a warp of a block has ended.
    pub(super) fn end_warp(&mut self, block: usize) {
        let launch = &mut self.launches[self.blocks[block].rank as usize];
        launch.live -= 1;
        if launch.live == 0 {
            self.begin_launches();
        }
    }
}
