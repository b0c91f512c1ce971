//! Every way of a call's data gives the same bits, and the choice of a way ends.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::verify::Proved;

use super::{one_shot, reach::gather};
use crate::Options;
use crate::shared_memory::world::ways::choices;
use crate::shared_memory::world::ways::{Set, Way};
use crate::shared_memory::{World, WorldPlan};
use crate::sync::Ordering;

/// Makes worlds of ranks with a core each, in which all calls of new shapes take ways of `set`.
fn worlds(nranks: u32, set: Option<Set>) -> Vec<Arc<World>> {
    let options = Options::new().deadline(Duration::from_secs(30));
    // A measurement on a busy machine would end before its time: its calls cost too much there.
    let options = if set.is_none() { options.measured_anew() } else { options.measure(false) };
    let mut worlds = World::together(nranks, options).expect("worlds");
    if let Some(set) = set {
        let shared = &worlds[0].shared;
        for (nth, word) in choices::image(&[], Some(set)).chunks(8).enumerate() {
            let word = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
            let at = shared.arena.layout.choice(0) + 8 * nth;
            shared.arena.word(at).store(word, Ordering::Relaxed);
        }
    }
    for world in &mut worlds {
        world.spins = true;
    }
    worlds.into_iter().map(Arc::new).collect()
}

/// Runs `calls` calls on floats whose sums depend on their order, out of place and in place, and returns the bits of
/// each rank's last results.
fn bits(worlds: &[Arc<World>], proved: &Proved, count: usize, calls: u32) -> Vec<[Vec<u32>; 2]> {
    let reduces = proved.schedule().collective.reduces();
    let run = |world: &Arc<World>| {
        let (me, nranks) = (world.rank() as usize, world.nranks() as usize);
        let op = ReduceOp::Sum;
        let plan = WorldPlan::new(world, proved, count as u64, DType::F32, op).expect("a plan");
        let blocks = if reduces { 1 } else { nranks };
        let mine = if reduces { 0 } else { count * me };
        let value = |at: usize| (1.0 + me as f32).mul_add(1e-3, at as f32 * 1.7).exp2().fract();
        let input: Vec<f32> = (0..count).map(value).collect();
        let (mut output, mut both) = (vec![0.0; count * blocks], vec![0.0; count * blocks]);
        for _ in 0..calls {
            output.fill(0.0);
            plan.run(&input, &mut output).expect("a run");
            both.fill(0.0);
            both[mine..][..count].copy_from_slice(&input);
            plan.run_in_place(&mut both).expect("a run");
        }
        [output, both].map(|all| all.into_iter().map(f32::to_bits).collect())
    };
    thread::scope(|threads| {
        let ranks: Vec<_> = worlds.iter().map(|world| threads.spawn(move || run(world))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
    })
}

/// Two ranks and three, results for all ranks and blocks, counts of one tile, of many, and of less than a line a rank.
#[test]
fn all_ways_give_the_same_bits() {
    for nranks in [2, 3] {
        for proved in [one_shot(nranks), gather(nranks)] {
            for count in [2_100, 100_003] {
                let usual = bits(&worlds(nranks, Some(Set(0))), &proved, count, 1);
                assert!(
                    usual.iter().all(|[output, both]| output == both && *output == usual[0][0])
                );
                for id in 0..Set::WAYS {
                    let found = bits(&worlds(nranks, Some(Set(1 << id))), &proved, count, 2);
                    assert_eq!(found, usual, "{nranks} ranks, {count} elements: {}", Way::of(id));
                }
            }
        }
    }
}

/// Where one rank does not lend its buffers any more, no rank lends, whatever the way says.
#[test]
fn ranks_lend_where_all_do() {
    let proved = one_shot(3);
    let usual = bits(&worlds(3, Some(Set(0))), &proved, 100_003, 1);
    let lending = (0..Set::WAYS).filter(|id| Way::of(*id).lends_results());
    for id in lending {
        let mut worlds = worlds(3, Some(Set(1 << id)));
        // All ranks find that they reach all others.
        assert_eq!(bits(&worlds, &proved, 100_003, 2), usual, "{}", Way::of(id));
        Arc::get_mut(&mut worlds[1]).expect("nobody else has it").spins = false;
        assert_eq!(bits(&worlds, &proved, 100_003, 3), usual, "{}", Way::of(id));
    }
}

/// The ways take turns in the calls of a world, and each call takes one way on all ranks.
#[test]
fn ways_take_turns() {
    let all = Set(u64::MAX);
    for proved in [one_shot(3), gather(3)] {
        let usual = bits(&worlds(3, Some(Set(0))), &proved, 30_000, 1);
        assert_eq!(bits(&worlds(3, Some(all)), &proved, 30_000, 60), usual);
    }
}

/// After at most 192 calls of a shape and the calls until all ranks know the decision, all calls take one way, which is
/// told; a second world that begins with the decision measures nothing.
#[test]
fn a_choice_ends() {
    let (worlds, proved) = (worlds(2, None), one_shot(2));
    assert_eq!(worlds[0].ways(), []);
    bits(&worlds, &proved, 100_000, 200);
    let chosen = worlds[0].ways();
    let [chosen] = &chosen[..] else { panic!("one shape has one choice: {chosen:?}") };
    assert_eq!(chosen.call, "OneShot, AllReduce of 100000 f32, sum");
    assert!(chosen.way.starts_with("tiles of ") && chosen.seconds.is_some(), "{chosen:?}");
    assert_eq!(worlds[1].ways(), []);
    let plan = WorldPlan::new(&worlds[1], &proved, 100_000, DType::F32, ReduceOp::Sum);
    let plan = plan.expect("a plan");
    assert!(plan.0.routes.attempt().is_some(), "no call has read the decision yet");
    thread::scope(|threads| {
        threads.spawn(|| {
            let plan = WorldPlan::new(&worlds[0], &proved, 100_000, DType::F32, ReduceOp::Sum);
            plan.expect("a plan")
                .run(&vec![1.0_f32; 100_000], &mut vec![0.0; 100_000])
                .expect("a run");
        });
        plan.run(&vec![1.0_f32; 100_000], &mut vec![0.0; 100_000]).expect("a run");
    });
    assert!(plan.0.routes.attempt().is_none(), "the first call read the decision");
}

/// Calls whose times do not matter, and calls of one rank, take the usual way.
#[test]
fn small_calls_are_not_measured() {
    let worlds = worlds(2, None);
    let proved = one_shot(2);
    for (count, is_measured) in [(1, false), (511, false), (512, true), (1 << 20, true)] {
        let plan = WorldPlan::new(&worlds[0], &proved, count, DType::F32, ReduceOp::Sum);
        let plan = plan.expect("a plan");
        assert_eq!(plan.0.routes.attempt().is_some(), is_measured, "{count}");
    }
}
