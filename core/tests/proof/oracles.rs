//! The oracles against each other, and the search against one that takes no short cut.

use roundelay_core::schedule::{legality, text};
use roundelay_core::verify::verify;
use roundelay_oracles::{Verdict, judge, model, search};

use crate::proof::mutation::CLASSES;
use crate::proof::schedule;

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

/// A slot whose scratch elsewhere holds data of another place, and that is written in two parts: one after another, and
/// by two streams.
const IN_PARTS: [&str; 2] = [
    "
schedule Parts AllGather nranks 1 root 0
scratch slot slots 2 width 1
rank 0 stream 0
  copy 0.input[0..1/2] -> 0.slot#0@0[0..1/2] @0
  copy 0.input[1/2..1] -> 0.slot#0@0[1/2..1] @1
  copy 0.slot#0@0[0..1] -> 0.output[0..1] @2
  copy 0.input[1/2..1] -> 0.slot#1@1/2[1/2..1] @3
",
    "
schedule Streams AllGather nranks 1 root 0
scratch slot slots 2 width 1
rank 0 stream 0
  post fork 0->0 stream 1 @0
  copy 0.input[0..1/2] -> 0.slot#0@0[0..1/2] @1
  copy 0.slot#0@0[0..1/2] -> 0.output[0..1/2] @2
  wait join 0->0 stream 1 @3
rank 0 stream 1
  wait fork 0->0 stream 1 @0
  copy 0.input[1/2..1] -> 0.slot#0@0[1/2..1] @4
  copy 0.slot#0@0[1/2..1] -> 0.output[1/2..1] @5
  copy 0.input[1/2..1] -> 0.slot#1@1/2[1/2..1] @6
  post join 0->0 stream 1 @7
",
];

#[test]
fn slots_may_be_written_in_parts() {
    for written in IN_PARTS {
        let schedule = text::parse(written).expect("a schedule");
        assert_eq!(judge(&schedule).expect("coarse cuts").objections, []);
        assert!(verify(&schedule).is_ok(), "{written}");
    }
}
