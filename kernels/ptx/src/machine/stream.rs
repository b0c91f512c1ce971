//! Launches that run one after another, as the launches of a CUDA stream do, or where events order them.

use std::ops::Range;

use super::Machine;
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
    /// A launch of a kernel of a module, with its grid and block, that begins when others have ended.
    pub(super) fn new(
        [grid, block]: [[u32; 3]; 2],
        module: usize,
        warps: Range<usize>,
        after: Vec<usize>,
    ) -> Self {
        let live = warps.len();
        Self { grid, block, module, warps, live, has_begun: false, after }
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
                self.warps[warp].begin();
            }
            self.launches[number].has_begun = true;
        }
    }

    /// Notes that all lanes of a warp have ended.
    pub(super) fn end_warp(&mut self, warp: usize) {
        self.warps[warp].end();
        let launch = self.rank(warp);
        let launch = &mut self.launches[launch];
        launch.live -= 1;
        if launch.live == 0 {
            self.begin_launches();
        }
    }
}
