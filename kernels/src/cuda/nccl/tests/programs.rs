//! Every algorithm of the library, and random programs.

use std::fmt::Write as _;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::text;
use roundelay_core::verify::{Callers, Proved};

use super::world::Case;
use crate::library::{admitted, library};
use crate::reference::SplitMix64;

/// Floats whose bits depend on the order, averages of both kinds, and a narrow type.
const KINDS: [(DType, ReduceOp); 6] = [
    (DType::F32, ReduceOp::Sum),
    (DType::F64, ReduceOp::Avg),
    (DType::I32, ReduceOp::Avg),
    (DType::Bf16, ReduceOp::Sum),
    (DType::U8, ReduceOp::Prod),
    (DType::F16, ReduceOp::Max),
];

#[test]
fn every_algorithm_of_the_library_gives_the_authors_bits() {
    let mut ran = 0;
    for algorithm in library() {
        for nranks in 1..=9 {
            let Some(proved) = admitted(algorithm, nranks) else { continue };
            for in_place in [false, true] {
                if in_place && !proved.proof().in_place {
                    continue;
                }
                // Where a unit has fewer elements than there are ranks, some messages are empty.
                let count = [1, 37, 5, 144][ran % 4];
                Case::new(proved.clone(), count, KINDS[ran % KINDS.len()]).is_right(in_place);
                ran += 1;
            }
        }
    }
    println!("{ran} runs");
    assert!(ran > 500, "{ran}");
}

/// Returns an `AllReduce` of random trees: each piece has a tree of its own, is folded up in it in any order of
/// children, and copied down again.
pub(super) fn trees(dice: &mut SplitMix64) -> String {
    let (nranks, pieces) = (2 + dice.draw() % 7, 1 + dice.draw() % 4);
    let mut of_rank = vec![String::new(); nranks as usize];
    for (rank, ops) in of_rank.iter_mut().enumerate() {
        let _ = writeln!(ops, "  copy {rank}.input[0..1] -> {rank}.output[0..1] @0");
    }
    let mut down = Vec::new();
    for piece in 0..pieces {
        let (lo, hi) = (part(piece, pieces), part(piece + 1, pieces));
        let mut order: Vec<u64> = (0..nranks).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (dice.draw() % (i as u64 + 1)) as usize);
        }
        let parents: Vec<(u64, u64)> = (1..order.len())
            .map(|i| (order[i], order[(dice.draw() % i as u64) as usize]))
            .collect();
        // From the leaves: a later edge is further from the root.
        for (child, parent) in parents.iter().rev() {
            let (at, to) = (*child as usize, *parent as usize);
            let _ = writeln!(of_rank[at], "  post data {child}->{parent} @0");
            let _ = writeln!(of_rank[to], "  wait data {child}->{parent} @0");
            let _ = writeln!(
                of_rank[to],
                "  fold {parent}.output[{lo}..{hi}], {child}.output[{lo}..{hi}] -> {parent}.output[{lo}..{hi}] @0"
            );
        }
        down.push((lo, hi, parents));
    }
    for (lo, hi, parents) in down {
        for (child, parent) in parents {
            let (at, from) = (child as usize, parent as usize);
            let _ = writeln!(of_rank[from], "  post data {parent}->{child} @0");
            let _ = writeln!(of_rank[at], "  wait data {parent}->{child} @0");
            let _ = writeln!(
                of_rank[at],
                "  copy {parent}.output[{lo}..{hi}] -> {child}.output[{lo}..{hi}] @0"
            );
        }
    }
    let mut schedule = format!("schedule Trees AllReduce nranks {nranks} root 0\n");
    for (rank, ops) in of_rank.iter().enumerate() {
        let _ = write!(schedule, "rank {rank} stream 0\n{ops}");
    }
    schedule
}

/// The beginning of a piece, as a fraction in lowest terms.
fn part(piece: u64, pieces: u64) -> String {
    let whole = Rat::new(piece, pieces).expect("a fraction");
    whole.to_string()
}

/// Returns the proof of a text for one call of all ranks: peers do not signal that they have read.
pub(super) fn proved(schedule: &str) -> Proved {
    let parsed = text::parse(schedule).unwrap_or_else(|error| panic!("{error:?}\n{schedule}"));
    Proved::for_callers(parsed, Callers::One)
        .unwrap_or_else(|found| panic!("{found:#?}\n{schedule}"))
}

#[test]
fn random_programs_give_the_authors_bits() {
    let mut dice = SplitMix64(17);
    for run in 0..150 {
        let proved = proved(&trees(&mut dice));
        let in_place = run % 2 == 1 && proved.proof().in_place;
        Case::new(proved, dice.draw() % 60, KINDS[run % KINDS.len()]).is_right(in_place);
    }
}
