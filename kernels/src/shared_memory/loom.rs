//! Models of the protocol of ranks that are processes, in every interleaving of the threads of a few ranks. The models
//! run the engine itself; loom provides the words of the arena, and the sleep on them. The staged data lies in a real
//! mapping, and every copy and reduction that accesses it is reported to loom. Waits have no time limit: a sleeper that
//! no thread wakes is a deadlock, which loom reports.

mod runs;
mod sleep;
mod words;

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

pub(crate) use words::{ArenaWords, Half, wait, wake};

/// Refuses registration, as loom has no barrier that one thread makes in all others: each thread makes its own barrier,
/// as on a system without that barrier.
pub(crate) fn register() -> bool {
    false
}

pub(crate) fn barrier() {}

use super::world::World;
use super::world::memory::arena::{Arena, ArenaLayout};
use super::world::memory::shared_state::SharedState;
use crate::Options;
use crate::model_memory::{share, share_nothing};

/// Bytes of a rank's heap in a model.
const HEAP: usize = 4 << 10;

/// The memory that the ranks of a model share.
struct Host {
    layout: ArenaLayout,
    memory: File,
}

impl Host {
    fn new(nranks: u32) -> Self {
        let memory = memfd_create("model", MemfdFlags::CLOEXEC).expect("memory");
        Self { layout: ArenaLayout::new(nranks, HEAP), memory: memory.into() }
    }

    /// Returns an arena for each rank, all over empty memory.
    fn arenas(&self) -> Vec<Arena> {
        words::ModelWords::begin(self.layout);
        share_nothing();
        ftruncate(&self.memory, 0).expect("it is ours");
        ftruncate(&self.memory, self.layout.bytes as u64).expect("it is ours");
        let arena = |_| {
            let arena = Arena::new(&self.memory, self.layout).expect("a mapping");
            let base = arena.address(0, 0).addr();
            share(base..base + self.layout.bytes);
            arena
        };
        (0..self.layout.nranks).map(arena).collect()
    }

    fn states(&self) -> Vec<Arc<SharedState>> {
        self.arenas().into_iter().map(|arena| Arc::new(SharedState::new(arena))).collect()
    }

    fn worlds(&self, options: Options) -> Vec<Arc<World>> {
        let options = options.deadline(Duration::MAX);
        let world = |(arena, rank)| Arc::new(World::over(arena, rank, options));
        self.arenas().into_iter().zip(0..).map(world).collect()
    }
}
