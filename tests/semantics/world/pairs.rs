//! Every call after every other call, without a barrier between them: ranks run ahead of each other by as much as the
//! engine lets them, on one world and on two worlds of the same ranks.

use roundelay::{Call, Collective, DType, ReduceOp, World};
use roundelay_core::ids::RankId;
use roundelay_kernels::reference::{Reference, SplitMix64};

use super::{each, me, patient};

const NRANKS: u32 = 3;

/// Elements a unit: none, one, fewer than a line of the cache, a few lines, and several tiles.
const COUNTS: [usize; 5] = [0, 1, 13, 400, 70_000];

/// Runs of all pairs, each with other delays: together with the second test, 10^4 pairs.
const TURNS: u64 = 4;

/// A call with data, and the results that it has.
struct Known {
    call: Call,
    inputs: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
}

/// Calls of every collective and class of counts; rooted ones have two roots in turns.
fn calls() -> Vec<Known> {
    let of = |(nth, (collective, count)): (usize, (Collective, usize))| {
        let (dtype, op) = (DType::I32, ReduceOp::Sum);
        let root = if collective.is_rooted() { nth as u32 % 2 } else { 0 };
        let reference =
            Reference { collective, nranks: NRANKS, root: RankId(root), count, dtype, op };
        let inputs = reference.inputs(nth as u64);
        let outputs = reference.outputs(&inputs);
        let call = Call { collective, root, count: count as u64, dtype, op };
        Known { call, inputs, outputs }
    };
    let shapes = Collective::ALL.into_iter().flat_map(|all| COUNTS.map(|count| (all, count)));
    shapes.enumerate().map(of).collect()
}

impl Known {
    fn run(&self, world: &World, dice: &mut SplitMix64) {
        // Most ranks call at once, some late, and some after others had time to call twice.
        for _ in 0..[0, 0, 0, 200, 5_000][(dice.draw() % 5) as usize] {
            std::hint::spin_loop();
        }
        let rank = me(world) as usize;
        let expected = &self.outputs[rank];
        let mut output = vec![0xA5; expected.len()];
        let done = world.rank().call_bytes(self.call, &self.inputs[rank], &mut output);
        done.unwrap_or_else(|error| panic!("{:?}: {error}", self.call));
        assert!(output == *expected, "{:?} has another result on rank {rank}", self.call);
    }
}

/// Runs every ordered pair of calls; the second call of a pair is on the world that `second` chooses.
fn pairs(seed: u64, second: impl for<'w> Fn(&'w World, &'w World) -> &'w World + Sync) {
    let calls = calls();
    each(NRANKS, patient(), |world| {
        let other = world.split(Some(0), 0).expect("all call").expect("a color");
        for turn in 0..TURNS {
            let mut dice = SplitMix64(seed << 16 | turn << 8 | u64::from(me(&world)));
            for before in &calls {
                for after in &calls {
                    before.run(&world, &mut dice);
                    after.run(second(&world, &other), &mut dice);
                }
            }
        }
    });
}

#[test]
fn on_one_world() {
    pairs(1, |world, _| world);
}

#[test]
fn on_two_worlds_of_the_same_ranks() {
    pairs(2, |_, other| other);
}
