//! Promises about the order of reductions among ranks that are processes.

use roundelay::library::{OrderedAllReduce, RingAllReduce};
use roundelay::{Promises, ReduceOp, World};

use super::{code, each, patient};

/// The codes with which 3 ranks that `told` tells to keep promises end a call of 8,000 bytes.
fn ended(told: impl Fn(World) -> World + Sync) -> Vec<String> {
    each(3, patient(), |world| {
        let world = told(world);
        let mut numbers = vec![1.0_f32; 2000];
        code(world.rank().all_reduce(&mut numbers, ReduceOp::Sum))
    })
}

/// Ranks that may nest reductions otherwise do not where an order is promised, also by the algorithm alone.
#[test]
fn a_promised_order_is_not_nested_otherwise() {
    let part = |rank: u32| [1.0e8_f32, 1.0, -1.0e8, 1.0, 3.0][rank as usize];
    let sum = |told: &(dyn Fn(World) -> World + Sync)| {
        each(5, patient().reassociate(true), |world| {
            let world = told(world);
            let mut numbers = vec![part(world.rank().id()); 500];
            world.rank().all_reduce(&mut numbers, ReduceOp::Sum).expect("it is right");
            numbers
        })
    };
    let promised = (0..4).rev().fold(part(4), |sum, rank| part(rank) + sum);
    let in_order =
        |sums: Vec<Vec<f32>>| sums.iter().flatten().all(|sum| sum.to_bits() == promised.to_bits());
    assert!(in_order(sum(&|world| world.in_order(Promises::all()))));
    assert!(in_order(sum(&|world| world.using(OrderedAllReduce::new()))));
    assert!(!in_order(sum(&|world| world.using(RingAllReduce::new()))));
}

#[test]
fn algorithms_that_break_a_promise_are_refused_on_all_ranks() {
    let all = Promises::all();
    assert_eq!(ended(|world| world.in_order(all)), ["none"; 3]);
    assert_eq!(ended(|world| world.in_order(all).using(OrderedAllReduce::new())), ["none"; 3]);
    assert_eq!(ended(|world| world.in_order(all).using(RingAllReduce::new())), ["E0317"; 3]);
    // The ring is for smaller calls alone, but then these have another order.
    let small = |world: World| world.in_order(all).using_up_to(1 << 10, RingAllReduce::new());
    assert_eq!(ended(small), ["E0317"; 3]);
    assert_eq!(ended(|world| world.using(RingAllReduce::new())), ["none"; 3]);
}
