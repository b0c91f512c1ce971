//! `avg` divides each output element exactly once: where the proof says, or at the end.

use std::collections::BTreeMap;

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::ids::OpId;
use roundelay_core::layout::Configured;
use roundelay_core::messages::TwoSided;
use roundelay_core::optimize::{Goal, Level, optimize};
use roundelay_core::schedule::{Buffer, OpKind, Operand, Schedule};
use roundelay_core::symmetry;
use roundelay_core::syntax::Source;
use roundelay_core::verify::{Callers, Proof, Proved, verify};

use crate::proof::programs::{RECURSIVE_DOUBLING, RIGHT, UNEVEN};
use crate::proof::schedule;

/// A sum of that many contributions, divided that many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    terms: u32,
    divided: u32,
}

const GARBAGE: Value = Value { terms: 1_000_000, divided: 0 };

/// All outputs after one interleaving, which stands for all.
fn outputs(schedule: &Schedule, proof: &Proof, count: u64) -> Vec<Value> {
    let mut memory: BTreeMap<(u32, Buffer, u64), Value> = BTreeMap::new();
    let cells = |o: &Operand| {
        let (first, len) = schedule.extent(schedule.region(*o), count);
        let (rank, buffer) = (o.rank.0, schedule.region(*o).buffer);
        (first..first + len).map(move |at| (rank, buffer, at)).collect::<Vec<_>>()
    };
    for stream in &schedule.streams {
        for at in 0..schedule.elements(Buffer::Input, stream.rank, count) {
            memory.insert((stream.rank.0, Buffer::Input, at), Value { terms: 1, divided: 0 });
        }
    }
    let mut next = vec![0; schedule.streams.len()];
    let mut signals = vec![0_i32; schedule.channels.len()];
    while (0..next.len()).fold(false, |moved, id| {
        let stream = schedule.streams[id];
        let here = OpId(stream.first.0 + next[id]);
        if next[id] == stream.len {
            return moved;
        }
        let op = schedule.op(here);
        match op.kind {
            OpKind::Post => signals[op.arg as usize] += 1,
            OpKind::Wait if signals[op.arg as usize] == 0 => return moved,
            OpKind::Wait => signals[op.arg as usize] -= 1,
            OpKind::Move => {
                let srcs: Vec<_> = schedule.srcs(op).iter().map(cells).collect();
                let read = |cell| memory.get(cell).copied().unwrap_or(GARBAGE);
                let fold = |i: usize| {
                    srcs.iter().map(|cells| read(&cells[i])).reduce(|a, b| Value {
                        terms: a.terms + b.terms,
                        divided: a.divided + b.divided,
                    })
                };
                let values: Vec<_> = (0..srcs[0].len()).filter_map(fold).collect();
                for dst in schedule.dsts(op) {
                    for (cell, value) in cells(dst).into_iter().zip(&values) {
                        let divided = value.divided + u32::from(proof.finish.contains(&here));
                        memory.insert(cell, Value { divided, ..*value });
                    }
                }
            }
        }
        next[id] += 1;
        true
    }) {}
    let scaled = u32::from(proof.scale_outputs);
    let outputs = memory.into_iter().filter(|((_, buffer, _), _)| *buffer == Buffer::Output);
    outputs.map(|(_, v)| Value { divided: v.divided + scaled, ..v }).collect()
}

fn divided_once(source: &str, nranks: u32) -> Proof {
    let schedule = schedule(source, nranks);
    let proof = verify(&schedule).expect("it is right");
    let outputs = outputs(&schedule, &proof, 7);
    let once = Value { terms: nranks, divided: u32::from(nranks > 1) };
    assert!(!outputs.is_empty());
    assert!(outputs.iter().all(|v| *v == once), "{nranks} ranks: {outputs:?}\n{source}");
    proof
}

#[test]
fn each_output_is_divided_once() {
    for (source, refuses) in &RIGHT[..3] {
        for nranks in (1..=8).filter(|n| !refuses(*n)) {
            assert!(!divided_once(source, nranks).scale_outputs);
        }
    }
    divided_once(RECURSIVE_DOUBLING, 8);
}

#[test]
fn uneven_completion_divides_at_the_end() {
    let proof = divided_once(UNEVEN, 3);
    assert!(proof.scale_outputs && proof.finish.is_empty());
    // Two sums, and the division after them.
    let order = |proof: &Proof| proof.reduction.as_ref().expect("it reduces").in_every_mode();
    assert_eq!((order(&proof).roundings, order(&proof).depth), (3, 2));
    let even = divided_once(RIGHT[0].0, 3);
    assert_eq!(order(&even).roundings, order(&even).depth);
}

/// A fused move completes all that it writes, and yet an average keeps the bits of the author's schedule.
#[test]
fn every_form_divides_where_the_author_s_schedule_does() {
    let author = Proved::new(schedule(UNEVEN, 3)).expect("it is right");
    for level in [Level::O1, Level::O2] {
        for callers in [Callers::Each, Callers::One] {
            let made = optimize(&author, Goal { level, callers, reassociate: false });
            let made = made.expect("a schedule");
            assert!(
                made.proof.scale_outputs && made.proof.finish.is_empty(),
                "{level} {callers:?}"
            );
            assert_eq!(made.proof.orders.differs(&author.proof().orders), None);
        }
    }
    let form = TwoSided::new(&author).expect("a form");
    assert!(form.proof().scale_outputs);
}

/// The proof of one rank for all counts the division as the proof of all ranks does.
#[test]
fn one_rank_for_all_counts_the_division() {
    for (source, scales) in [(UNEVEN, true), (RIGHT[0].0, false)] {
        let page = Source::from_text("averages.coll", source);
        let program = compile(&page, Frontend::File).expect("a right page");
        let algorithm = Configured::new(program.algorithms[0].clone(), &page);
        let Ok(one) = symmetry::prove(&algorithm, 3) else { panic!("one rank stands for all") };
        let all = verify(&schedule(source, 3)).expect("it is right");
        assert_eq!((one.proof.scale_outputs, all.scale_outputs), (scales, scales));
        let order = |proof: &Proof| proof.reduction.as_ref().expect("it reduces").in_every_mode();
        assert_eq!(order(&one.proof).roundings, order(&all).roundings);
    }
}
