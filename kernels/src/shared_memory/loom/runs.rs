//! Models of whole calls of two ranks: their use of slots and their waits. A tile has two lines here, and a chunk has
//! one line, so a call of a few lines has several tiles.

use std::fmt::Write as _;
use std::sync::Arc;

use loom::thread;
use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::optimize::Level;
use roundelay_core::schedule::hash::content;
use roundelay_core::schedule::text;
use roundelay_core::verify::{Callers, Proved};

use super::Host;
use crate::Options;
use crate::model_memory::within;
use crate::reduce::{Stores, copy};
use crate::shared_memory::WorldPlan;
use crate::shared_memory::stage::plan_sharing::{PlanSource, Prepared};
use crate::shared_memory::stage::routes::{Route, Routes};
use crate::shared_memory::stage::strategy::{Strategy, fused_strategy};
use crate::shared_memory::world::World;
use crate::shared_memory::world::memory::shared_state::CallHeader;
use crate::shared_memory::world::ways::Makers;

/// Elements of a tile whose buffers have one unit each.
const TILE: usize = 32;

/// Returns a schedule of two ranks in which both do `steps`, where `ME` is the rank and `OTHER` the other rank.
fn both_do(collective: &str, steps: &[&str]) -> Proved {
    let mut all = format!("schedule Model {collective} nranks 2 root 0\n");
    all += "scratch sum slots 1 width 1\n";
    for rank in 0..2_u32 {
        _ = writeln!(all, "rank {rank} stream 0");
        for step in steps {
            let step = step.replace("ME", &rank.to_string());
            _ = writeln!(all, "  {} @0", step.replace("OTHER", &(1 - rank).to_string()));
        }
    }
    let schedule = text::parse(&all).unwrap_or_else(|why| panic!("{why:?}\n{all}"));
    Proved::new(schedule).expect("it is right")
}

/// Returns an AllGather: a rank reads the other rank's slots, and writes its own output.
fn gather() -> Proved {
    let copies = ["copy 0.input[0..1] -> ME.output[0..1]", "copy 1.input[0..1] -> ME.output[1..2]"];
    both_do("AllGather", &[&MEET[..], &copies, &PART].concat())
}

/// Returns a broadcast from rank 0, which waits for no rank.
fn broadcast() -> Proved {
    both_do("Broadcast", &[&MEET[..], &["copy 0.input[0..1] -> ME.output[0..1]"], &PART].concat())
}

/// Returns a sum for all ranks, which lies in one place for all where it is fused.
fn sum() -> Proved {
    let fold = ["fold 0.input[0..1], 1.input[0..1] -> ME.sum#0@0[0..1]"];
    let copy = ["copy ME.sum#0@0[0..1] -> ME.output[0..1]"];
    both_do("AllReduce", &[&MEET[..], &fold, &PART, &copy].concat())
}

const MEET: [&str; 2] = ["post ack ME->OTHER", "wait ack OTHER->ME"];
const PART: [&str; 2] = ["post data ME->OTHER", "wait data OTHER->ME"];

/// Returns a schedule as a rank takes it from another rank: a model makes a plan of it each time.
fn fused(proved: &Proved) -> Arc<Prepared> {
    let goal = Options::new().goal(Callers::One);
    let made = proved.optimize(goal).expect("it fuses");
    assert_eq!(made.level, Level::O2);
    let author = *content(proved.schedule()).bytes();
    Arc::new(Prepared(PlanSource::Taken(author, made)))
}

/// A rank of a model, and the elements of its input. It knows of other ranks only through the arena.
struct Seat {
    world: Arc<World>,
    prepared: Arc<Prepared>,
    input: Vec<u32>,
}

impl Seat {
    fn plan(&self) -> WorldPlan {
        let count = self.input.len() as u64;
        let plan =
            WorldPlan::from_prepared(&self.world, &self.prepared, count, DType::U32, ReduceOp::Sum);
        plan.expect("a plan")
    }

    /// Makes a plan in whose calls each rank makes a share of the result for both.
    fn plan_of_shares(&self, makers: Makers) -> WorldPlan {
        let mut plan = self.plan();
        let PlanSource::Taken(_, made) = &self.prepared.0 else { panic!("it is fused") };
        let call = (Some(self.input.len() as u64), DType::U32, ReduceOp::Sum);
        let way = plan.0.routes.usual.with_makers(makers);
        let made = fused_strategy(made, self.world.id(), call, (way.makers, way.tile()));
        let (strategy, tiles) = made.expect("it is lowered").expect("ranks can share the work");
        plan.0.routes = Routes::only(strategy, tiles, way);
        plan
    }

    /// Makes a call on buffers outside of the arena.
    fn run(&self, plan: &WorldPlan, outputs: usize) -> Vec<u32> {
        let mut output = vec![0; outputs * self.input.len()];
        plan.run(&self.input, &mut output).expect("a run");
        output
    }
}

fn input(rank: u32, elements: usize) -> impl Iterator<Item = u32> + Clone {
    (0..elements as u32).map(move |at| at + 256 * rank)
}

/// Checks a model of two ranks that each do `run` with an input of `elements` elements.
fn model(
    (preemptions, options): (usize, Options),
    prepared: &Arc<Prepared>,
    elements: usize,
    run: impl Fn(&Seat) + Copy + Send + Sync + 'static,
) {
    let (host, prepared) = (Host::new(2), prepared.clone());
    within(preemptions, move || {
        let seat = |world: Arc<World>| {
            let input = input(world.rank(), elements).collect();
            Seat { world, prepared: prepared.clone(), input }
        };
        let [mine, theirs] = <[_; 2]>::try_from(host.worlds(options)).expect("two ranks").map(seat);
        let other = thread::spawn(move || run(&theirs));
        run(&mine);
        other.join().unwrap();
    });
}

#[test]
fn nobody_reads_a_slot_that_is_overwritten() {
    model((2, Options::new()), &fused(&gather()), 3 * TILE, |seat| {
        let plan = seat.plan();
        assert!(
            matches!(plan.0.routes.first.strategy, Strategy::Pull(_))
                && plan.0.routes.first.tiles.number == 3
        );
        let right = input(0, 3 * TILE).chain(input(1, 3 * TILE));
        assert!(seat.run(&plan, 2).into_iter().eq(right));
    });
}

/// The sender gets ahead by whole calls.
#[test]
fn nobody_reads_a_slot_that_a_later_call_overwrites() {
    model((1, Options::new()), &fused(&broadcast()), 1, |seat| {
        let plan = seat.plan();
        let input = if seat.world.rank == 0 { &seat.input[..] } else { &[] };
        for _ in 0..3 {
            let mut output = [7];
            plan.run(input, &mut output).expect("a run");
            assert_eq!(output, [0]);
        }
    });
}

#[test]
fn a_place_of_all_is_used_again_when_all_have_copied_it() {
    model((1, Options::new()), &fused(&sum()), 3 * TILE, |seat| {
        let plan = seat.plan();
        assert!(
            matches!(plan.0.routes.first.strategy, Strategy::Common(_))
                && plan.0.routes.first.tiles.number == 3
        );
        let right = input(0, 3 * TILE).zip(input(1, 3 * TILE)).map(|(a, b)| a + b);
        assert!(seat.run(&plan, 1).into_iter().eq(right));
    });
}

#[test]
fn a_place_of_all_is_used_again_by_a_later_call() {
    model((1, Options::new()), &fused(&sum()), 1, |seat| {
        let plan = seat.plan();
        for _ in 0..3 {
            assert_eq!(seat.run(&plan, 1), [256]);
        }
    });
}

/// The places of shares: one for all ranks, and those of the inputs.
const SHARES: [Makers; 2] = [Makers::Share, Makers::ShareInPlace];

#[test]
fn a_share_is_copied_before_its_place_is_used_again() {
    for makers in SHARES {
        model((1, Options::new()), &fused(&sum()), 3 * TILE, move |seat| {
            let plan = seat.plan_of_shares(makers);
            let Route { strategy, tiles } = &plan.0.routes.first;
            assert!(matches!(strategy, Strategy::Split(_)) && tiles.number == 3);
            let right = input(0, 3 * TILE).zip(input(1, 3 * TILE)).map(|(a, b)| a + b);
            assert!(seat.run(&plan, 1).into_iter().eq(right));
        });
    }
}

#[test]
fn a_share_is_copied_before_a_later_call_uses_its_place() {
    for makers in SHARES {
        model((1, Options::new()), &fused(&sum()), TILE, move |seat| {
            let plan = seat.plan_of_shares(makers);
            let right = input(0, TILE).zip(input(1, TILE)).map(|(a, b)| a + b);
            for _ in 0..3 {
                assert!(seat.run(&plan, 1).into_iter().eq(right.clone()));
            }
        });
    }
}

/// Inputs and outputs lie in heaps: a rank that has returned may write its input and read its output.
#[test]
fn who_returns_has_its_buffers_for_itself() {
    model((1, Options::new()), &fused(&sum()), TILE, |seat| {
        let plan = seat.plan();
        let layout = seat.world.shared.arena.layout;
        let heap = layout.heap_of(seat.world.rank);
        let [input, output] = [heap, heap + 4 * TILE]
            .map(|at| seat.world.shared.arena.address(at, 4 * TILE).cast::<u32>());
        for turn in 0..2 {
            let mut sums = [0_u32; TILE];
            // SAFETY: only this rank accesses its heap outside of calls; loom checks this.
            unsafe {
                copy(input.cast(), seat.input.as_ptr().cast(), 4 * TILE, Stores::Cached);
                let (input, output) = (
                    std::slice::from_raw_parts(input, TILE),
                    std::slice::from_raw_parts_mut(output, TILE),
                );
                plan.run(input, output).expect("a run");
                copy(sums.as_mut_ptr().cast(), output.as_ptr().cast(), 4 * TILE, Stores::Cached);
            }
            let right = self::input(0, TILE).zip(self::input(1, TILE)).map(|(a, b)| a + b);
            assert!(sums.into_iter().eq(right), "turn {turn}");
        }
    });
}

/// A schedule that is not fused, with signals.
#[test]
fn signals_order_what_ranks_do_to_their_rooms() {
    let options = Options::new().level(Level::O0);
    let prepared = Arc::new(Prepared::own(sum()));
    model((1, options), &prepared, TILE, |seat| {
        let plan = seat.plan();
        assert!(matches!(plan.0.routes.first.strategy, Strategy::Streams(_)));
        let right = input(0, TILE).zip(input(1, TILE)).map(|(a, b)| a + b);
        assert!(seat.run(&plan, 1).into_iter().eq(right));
    });
}

/// A rank that only sends gets ahead, until its next call would overwrite a line that other ranks could still read.
#[test]
fn each_call_meets_its_own() {
    let host = Host::new(2);
    within(1, move || {
        let [mine, theirs] = <[_; 2]>::try_from(host.worlds(Options::new())).expect("two ranks");
        let call = |count| {
            CallHeader::new(
                7,
                (Collective::Broadcast, RankId(1)),
                (count, DType::U32, ReduceOp::Sum),
            )
        };
        let proved = sum();
        let of_theirs = proved.clone();
        let other = thread::spawn(move || {
            for count in 1..=5 {
                let mut active =
                    theirs.begin(call(count), of_theirs.schedule()).expect("it begins");
                active.publish(1);
                active.end(Ok(())).expect("it ends");
            }
        });
        for count in 1..=4 {
            let mut active = mine.begin(call(count), proved.schedule()).expect("it begins");
            active.publish(0);
            let met = active.meet(1, 1).map(|header| header.count);
            assert_eq!(met, Ok(count));
            active.end(Ok(())).expect("it ends");
        }
        other.join().unwrap();
    });
}
