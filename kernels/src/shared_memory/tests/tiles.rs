//! The tiles of calls with a count for each block.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use roundelay_core::collective::Collective;
use roundelay_core::counts::Counts;
use roundelay_core::dtype::{DType, ReduceOp};

use super::reach::gather;
use super::{plan, worlds};
use crate::lowering::UserBuffers;
use crate::shared_memory::{World, WorldRank};

/// Returns a rank's part of `AllGather`s with a count for each block.
fn part(world: &Arc<World>) -> WorldRank {
    let op = ReduceOp::Sum;
    WorldRank::of_blocks(world, &gather(world.nranks()), DType::U32, op).expect("a plan")
}

/// A plan for any counts has the tiles of a call that is too large for one tile: short tiles would cost a wait each.
#[test]
fn blocks_have_the_tiles_of_a_large_call() {
    for world in worlds(3, Duration::from_secs(20)) {
        let large = plan(&world, &gather(3), 16 << 20);
        let (blocks, large) = (part(&world), large.0.routes.first.tiles.count);
        assert_eq!(blocks.routes.first.tiles.count, large);
    }
}

/// Equal blocks are one case of blocks with a count each: staged tile by tile, they give the bits of the call with one
/// count, and as many tiles are staged.
#[test]
fn equal_blocks_are_staged_as_one_count_is() {
    const COUNT: usize = 600_001;
    let mut worlds = worlds(2, Duration::from_secs(20));
    for world in &mut worlds {
        // A rank with a core of its own would have its input read where it lies.
        Arc::get_mut(world).expect("nobody else has it").spins = false;
    }
    let counts = Counts::new(Collective::AllGather, 2, &[COUNT as u64; 2]).expect("counts");
    thread::scope(|threads| {
        for world in &worlds {
            let counts = &counts;
            threads.spawn(move || {
                let (one, each) = (plan(world, &gather(2), COUNT as u64), part(world));
                let of = counts.of_rank(world.id(), 0.into());
                let input: Vec<u32> = (0..COUNT as u32).map(|at| at ^ world.rank()).collect();
                let mut outputs = [vec![0; 2 * COUNT], vec![0; 2 * COUNT]];
                let slots = || world.enter().expect("no call").stage.slots;
                let before = slots();
                one.run(&input, &mut outputs[0]).expect("a call");
                let staged = slots() - before;
                let to = outputs[1].as_mut_ptr().cast();
                let buffers = UserBuffers::new(input.as_ptr().cast(), to);
                // SAFETY: both buffers hold the blocks, and are borrowed for the call.
                unsafe { each.run_blocks(&of, buffers).expect("a call") };
                assert_eq!(slots() - before, 2 * staged);
                assert!(staged > 1, "{staged} tiles");
                assert!(outputs[0] == outputs[1]);
            });
        }
    });
}
