//! The oracles against each other, and the search against one that takes no short cut.

use crate::mutation::CLASSES;
use crate::oracle::{Verdict, model, search};
use crate::schedule;
use roundelay_core::schedule::legality;

/// States of a search without short cuts.
const STATES: usize = 60_000;

/// Two ranks, two ops of data each, and a stream more: few enough for every interleaving.
const TINY: &[&str] = &[
    "algorithm Swap() -> AllToAll {
        view give = input.split(2);
        view take = output.split(2);
        let it = peer(1 - rank);
        it.TxAck();
        copy(local.give[rank], local.take[rank]);
        it.RxAck();
        copy(it.give[rank], local.take[1 - rank]);
        it.TxDataSignal();
        it.RxDataSignal();
    }",
    "algorithm Both() -> AllGather {
        let it = peer(1 - rank);
        parallel way in 0..2 {
            if way == 0 {
                copy(local.input, local.output.split(2)[rank]);
            } else {
                it.TxAck();
                it.RxAck();
                copy(local.input, it.output.split(2)[rank]);
                it.TxDataSignal();
                it.RxDataSignal();
            }
        }
    }",
    "algorithm Through(root: Rank = 0) -> Broadcast {
        scratch kept: like output;
        let it = peer(1 - rank);
        if rank == 0 {
            copy(local.input, local.kept);
            it.TxAck();
            copy(local.input, local.output);
            it.RxDataSignal();
        } else {
            it.RxAck();
            copy(it.kept, local.output);
            it.TxDataSignal();
        }
    }",
];

#[test]
fn the_search_loses_nothing() {
    let [mut wrong, mut right, mut long] = [0; 3];
    for source in TINY {
        let schedule = schedule(source, 2);
        let mutants = CLASSES.iter().flat_map(|(_, mutate)| mutate(&schedule));
        for mutant in std::iter::once(schedule.clone()).chain(mutants) {
            if legality::check(&mutant).is_err() {
                continue;
            }
            let model = model(&mutant, 2);
            let (short, full) = (search(&model, true, STATES), search(&model, false, STATES));
            match (short, full) {
                (_, Verdict::Undecided) => long += 1,
                (Verdict::Right, Verdict::Right) => right += 1,
                (Verdict::Wrong(_), Verdict::Wrong(_)) => wrong += 1,
                (short, full) => panic!("{short:?} with short cuts, {full:?} without"),
            }
        }
    }
    println!("{wrong} wrong, {right} right, {long} too long");
    assert!(wrong > 0 && right > 0 && long * 10 < wrong + right);
}
