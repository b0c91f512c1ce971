//! The ring as NCCL runs it: which primitive has which chunk, how many slots hold data at once, how few will
//! do, and in which order is reduced; read from runs of the schedules that know nothing of the proof.

use std::collections::{BTreeMap, BTreeSet};

use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule, SignalKind, Stream};
use roundelay_core::verify::{Sameness, depth, verify};

use super::pulls::{algorithm, along, proved, schedule, text};

const NCCL: &str = include_str!("../../../stdlib/library/nccl_ring.coll");
const NAMES: [&str; 5] = [
    "NcclRingAllReduce",
    "NcclRingReduceScatter",
    "NcclRingAllGather",
    "NcclRingBroadcast",
    "NcclRingReduce",
];

fn with(name: &str, credits: i64, slices: i64, more: &[(&str, &str)]) -> Configured {
    let (credits, slices) = (credits.to_string(), slices.to_string());
    let mut set = vec![("credits", &*credits), ("slices", &*slices)];
    set.extend(more);
    algorithm(NCCL, name, &set)
}

/// The way of one piece: the rank that it came from, the data that it was folded with, the place where it was kept, the
/// rank that it went to. Pieces of user buffers are named by their place among all pieces of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    from: Option<i64>,
    own: Option<(Buffer, i64)>,
    kept: Option<(Buffer, i64)>,
    to: Option<i64>,
}

/// Returns the steps of each rank, in order; copies within a rank are left out.
fn steps(schedule: &Schedule, per_unit: i64) -> Vec<Vec<Step>> {
    let piece = |o: &Operand| {
        let region = schedule.region(*o);
        let at = region.lo.num() as i64 * per_unit / region.lo.den() as i64;
        (region.buffer, at)
    };
    let slot = |o: &&Operand| matches!(schedule.region(**o).buffer, Buffer::Scratch(_));
    let of = |stream: &Stream| {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        let mut steps = Vec::new();
        // A wait for data names the sender, the post of data the receiver.
        let mut from = None;
        for op in ops {
            if op.kind == OpKind::Wait && schedule.channel(op).kind == SignalKind::Tail {
                from = Some(i64::from(schedule.channel(op).from.0));
            }
            if op.kind != OpKind::Move {
                continue;
            }
            let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
            let step = Step {
                from: srcs.iter().find(slot).and_then(|_| from.take()),
                own: srcs.iter().find(|o| !slot(o)).map(piece),
                kept: dsts.iter().find(|o| !slot(o)).map(piece),
                to: dsts.iter().find(slot).map(|o| o.rank.0.into()),
            };
            if step.from.is_some() || step.to.is_some() {
                steps.push(step);
            }
        }
        steps
    };
    schedule.streams.iter().map(of).collect()
}

/// A cell of memory: of a user buffer counted from its start, of a slot from the data that it holds.
type Cell = (RankId, Buffer, u32, u64);

/// A run of the streams, each as far ahead as it may go.
pub(super) struct StreamRun<'s> {
    schedule: &'s Schedule,
    /// Cells a unit: everything is cut at their boundaries.
    parts: u64,
    /// The contents of buffers and slots, as the order in which they were reduced.
    held: BTreeMap<Cell, String>,
    /// Slots of the fifo with data that no rank has taken, and the sender of the data.
    full: BTreeMap<(RankId, u32), RankId>,
    /// The most of one link at once.
    most: usize,
}

impl<'s> StreamRun<'s> {
    pub(super) fn run(schedule: &'s Schedule) -> Self {
        let cuts = schedule.regions.iter().flat_map(|r| [r.base, r.lo, r.hi]).map(Rat::den);
        let parts =
            cuts.fold(1, |all, den| (all..).step_by(all as usize).find(|n| n % den == 0).unwrap());
        let (held, full) = (BTreeMap::new(), BTreeMap::new());
        let mut run = Self { schedule, parts, held, full, most: 0 };
        let mut next = vec![0; schedule.streams.len()];
        let mut signals = vec![0; schedule.channels.len()];
        loop {
            let before = next.clone();
            for (stream, next) in schedule.streams.iter().zip(&mut next) {
                while *next < stream.len {
                    let op = &schedule.ops[stream.first.index() + *next as usize];
                    match op.kind {
                        OpKind::Move => run.carry(op, stream.rank),
                        OpKind::Post => signals[op.arg as usize] += 1,
                        OpKind::Wait if signals[op.arg as usize] == 0 => break,
                        OpKind::Wait => signals[op.arg as usize] -= 1,
                    }
                    *next += 1;
                }
            }
            if before == next {
                break;
            }
        }
        assert!(schedule.streams.iter().zip(next).all(|(s, next)| s.len == next), "it ends");
        assert!(signals.iter().all(|left| *left == 0), "every post is met");
        assert_eq!(run.full, BTreeMap::new(), "every slot was read");
        run
    }

    fn cells(&self, o: Operand) -> Vec<Cell> {
        let region = self.schedule.region(o);
        let at = |at: Rat| at.num() * self.parts / at.den();
        let base = at(region.base);
        (at(region.lo)..at(region.hi))
            .map(|c| (o.rank, region.buffer, region.slot, c - base))
            .collect()
    }

    fn in_fifo(&self, o: Operand) -> Option<(RankId, u32)> {
        let region = self.schedule.region(o);
        let Buffer::Scratch(id) = region.buffer else { return None };
        (self.schedule.scratch[id.index()].name == "fifo").then_some((o.rank, region.slot))
    }

    fn carry(&mut self, op: &Op, me: RankId) {
        let schedule = self.schedule;
        let mut folded: Vec<String> = Vec::new();
        for src in schedule.srcs(op) {
            if let Some(slot) = self.in_fifo(*src) {
                assert!(self.full.remove(&slot).is_some(), "an empty slot is read");
            }
            let values = self.cells(*src).into_iter().map(|at| match at.1 {
                Buffer::Input => at.0.to_string(),
                _ => self.held[&at].clone(),
            });
            folded = if folded.is_empty() {
                values.collect()
            } else {
                values.zip(folded).map(|(value, own)| format!("({value} {own})")).collect()
            };
        }
        for dst in schedule.dsts(op) {
            if let Some(slot) = self.in_fifo(*dst) {
                assert_eq!(self.full.insert(slot, me), None, "a full slot is written");
                let link = self.full.iter().filter(|((to, _), from)| (*to, **from) == (slot.0, me));
                self.most = self.most.max(link.count());
            }
            for (at, value) in self.cells(*dst).into_iter().zip(&folded) {
                self.held.insert(at, value.clone());
            }
        }
    }

    /// The orders in which the output of a rank is reduced.
    pub(super) fn outputs(&self, rank: u32) -> Vec<&str> {
        let mine = |cell: &Cell| cell.0 == RankId(rank) && cell.1 == Buffer::Output;
        self.held.iter().filter(|(cell, _)| mine(cell)).map(|(_, value)| &**value).collect()
    }
}

fn shuffled(n: i64) -> Vec<i64> {
    let (even, odd): (Vec<i64>, Vec<i64>) = (0..n).rev().partition(|r| r % 2 == 0);
    odd.into_iter().chain(even).collect()
}

/// Whether it receives, the operand of its fold, the place of its result, and whether it sends the result.
type Call = (bool, Option<(Buffer, i64)>, Option<(Buffer, i64)>, bool);

/// Calls of primitives by position, slice by slice: chunk numbers may be any, modulo n.
fn expected(order: &[i64], rank: i64, slices: i64, calls: &[Call]) -> Vec<Step> {
    let (left, right) = (along(order, rank, -1), along(order, rank, 1));
    let slice = |&(received, own, kept, sent): &_| {
        let cut =
            move |at: Option<(Buffer, i64)>, s| at.map(|(b, c): (_, i64)| (b, c * slices + s));
        (0..slices).map(move |s| Step {
            from: bool::then_some(received, left),
            own: cut(own, s),
            kept: cut(kept, s),
            to: bool::then_some(sent, right),
        })
    };
    calls.iter().flat_map(slice).collect()
}

#[test]
fn two_n_minus_one_primitives_on_the_chunks_of_nccl() {
    use Buffer::{Input, Output};
    for n in 2..=24_i64 {
        for (order, slices) in [((0..n).collect(), 2), (shuffled(n), 1)] {
            let ring = text(&order);
            for handshake in [false, true] {
                let set =
                    [("ring", &*ring), ("handshake", if handshake { "true" } else { "false" })];
                let all = schedule(&with("NcclRingAllReduce", 4, slices, &set), n as u32);
                for (rank, steps) in (0..).zip(steps(&all, n * slices)) {
                    let place = order.iter().position(|r| *r == rank).unwrap() as i64;
                    // NCCL's formulas, and variants with chunks counted from the chunk before.
                    let i = place + i64::from(handshake);
                    let chunk = |buffer, c: i64| Some((buffer, c.rem_euclid(n)));
                    let mut calls = vec![(false, chunk(Input, i - 1), None, true)];
                    calls.extend((2..n).map(|j| (true, chunk(Input, i - j), None, true)));
                    calls.push((true, chunk(Input, i), chunk(Output, i), true));
                    calls.extend((1..=n - 2).map(|j| (true, None, chunk(Output, i - j), true)));
                    calls.push((true, None, chunk(Output, i + 1), false));
                    assert_eq!(calls.len() as i64, 2 * n - 1);
                    assert_eq!(calls.iter().filter(|call| call.0).count() as i64, 2 * (n - 1));
                    assert_eq!(steps, expected(&order, rank, slices, &calls), "rank {rank} of {n}");
                }
            }
            let set = [("ring", &*ring)];
            let scatter = schedule(&with("NcclRingReduceScatter", 4, slices, &set), n as u32);
            let gather = schedule(&with("NcclRingAllGather", 4, slices, &set), n as u32);
            let (scatter, gather) = (steps(&scatter, slices), steps(&gather, slices));
            for (rank, (scatter, gather)) in (0..).zip(scatter.into_iter().zip(gather)) {
                // Chunks are the chunks of ranks, found j places to the left.
                let block = |buffer, j: i64| Some((buffer, along(&order, rank, -j)));
                let mut calls = vec![(false, block(Input, 1), None, true)];
                calls.extend((2..n).map(|j| (true, block(Input, j), None, true)));
                calls.push((true, block(Input, 0), Some((Output, 0)), false));
                assert_eq!(scatter, expected(&order, rank, slices, &calls), "rank {rank} of {n}");
                let mut calls = vec![(false, block(Output, 0), None, true)];
                calls.extend((1..=n - 2).map(|j| (true, None, block(Output, j), true)));
                calls.push((true, None, block(Output, -1), false));
                assert_eq!(gather, expected(&order, rank, slices, &calls), "rank {rank} of {n}");
            }
        }
    }
}

#[test]
fn pieces_go_down_the_chain() {
    for n in 2..=17_i64 {
        for (root, pieces) in [(0, 8), (n - 1, 3), (n / 2, 1)] {
            let (root_text, pieces_text) = (root.to_string(), pieces.to_string());
            let order = shuffled(n);
            let ring = text(&order);
            let set = [("root", &*root_text), ("pieces", &*pieces_text), ("ring", &*ring)];
            for name in ["NcclRingBroadcast", "NcclRingReduce"] {
                let reduces = name.ends_with("Reduce");
                let (first, last) = if reduces {
                    (along(&order, root, 1), root)
                } else {
                    (root, along(&order, root, -1))
                };
                let schedule = schedule(&with(name, 2, 1, &set), n as u32);
                for (rank, steps) in (0..).zip(steps(&schedule, pieces)) {
                    let calls: Vec<_> = (0..pieces)
                        .map(|p| {
                            let sends = rank == first && !reduces;
                            let from = if reduces { Buffer::Input } else { Buffer::Output };
                            let own = (reduces || sends).then_some((from, p));
                            let keeps = if reduces { rank == root } else { rank != root };
                            (rank != first, own, keeps.then_some((Buffer::Output, p)), rank != last)
                        })
                        .collect();
                    assert_eq!(
                        steps,
                        expected(&order, rank, 1, &calls),
                        "{name}: rank {rank} of {n}"
                    );
                }
                // A piece starts when the piece two before it, whose slot it takes, has been received.
                let steps = i64::from(proved(&with(name, 2, 1, &set), n as u32).steps);
                let pairs = (pieces - 1) / 2;
                assert_eq!(steps, n - 1 + if n == 2 { pairs } else { 2 * pairs }, "{name}");
            }
        }
    }
}

/// Returns the fewest credits with which the ring runs: all slices of the first chunk are out before any rank receives,
/// and where received data is sent on by its move, the move needs a free slot before it frees one.
fn fewest(name: &str, n: u32, slices: u32) -> Option<u32> {
    match (name, n) {
        (_, 1) => None,
        ("NcclRingBroadcast" | "NcclRingReduce", _) => Some(1),
        ("NcclRingReduceScatter" | "NcclRingAllGather", 2) => Some(slices),
        _ => Some(slices + 1),
    }
}

fn judge(name: &str, n: u32, credits: u32, slices: u32) -> bool {
    let of = with(name, credits.into(), slices.into(), &[]);
    let schedule = schedule(&of, n);
    let fewest = fewest(name, n, slices);
    let what = format!("{name} at {n}, {credits} credits, {slices} slices");
    match verify(&schedule) {
        Ok(_) => {
            assert!(fewest.is_none_or(|fewest| fewest <= credits), "{what}");
            let depth = depth(&schedule);
            assert_eq!(depth.map(|d| d.needed), fewest, "{what}");
            let most = StreamRun::run(&schedule).most;
            assert!(most as u32 <= credits, "{what}: {most} slots of a link hold data");
            assert_eq!(depth.is_some(), most > 0, "{what}");
            true
        }
        Err(found) => {
            assert!(fewest.is_some_and(|fewest| fewest > credits), "{what}: {found:#?}");
            assert_eq!(found[0].code, Code::FifoTooShallow, "{what}");
            let credits_of = format!("has {credits} credit");
            assert!(found[0].notes.iter().any(|note| note.contains(&credits_of)), "{found:#?}");
            let enough = format!("`credits = {}`", fewest.unwrap());
            assert!(found[0].help.as_ref().unwrap().contains(&enough), "{found:#?}");
            false
        }
    }
}

#[test]
fn with_as_few_credits_as_will_do_and_with_one_less() {
    let mut met = BTreeSet::new();
    for n in 1..=33_u32 {
        for credits in 1..=8 {
            for slices in 1..=4 {
                // Few ranks run all settings; of many ranks, each count runs some of the 32 settings, and no setting is
                // left out.
                let turn = (credits * 4 + slices + n * 5) % 16 == 0;
                for name in NAMES {
                    if n <= 5 || turn {
                        met.insert((name, n > 5, judge(name, n, credits, slices)));
                    }
                }
            }
        }
    }
    // The chains run with a single credit, the cycles do not.
    assert_eq!(met.len(), 3 * 4 + 2 * 2);
}

#[test]
fn a_slot_holds_a_slice_and_is_used_in_turn() {
    for (credits, slices) in [(4, 2), (5, 1), (8, 3)] {
        let all = schedule(&with("NcclRingAllReduce", credits, slices, &[]), 5);
        let [fifo] = &all.scratch[..] else { panic!("one scratch buffer") };
        assert_eq!((&*fifo.name, i64::from(fifo.slots)), ("fifo", credits));
        assert_eq!(fifo.width, Rat::new(1, 5 * slices as u64).unwrap());
        for stream in &all.streams {
            let ops = &all.ops[stream.first.index()..][..stream.len as usize];
            let moves = ops.iter().filter(|op| op.kind == OpKind::Move);
            let sent = moves.flat_map(|op| all.dsts(op)).filter(|dst| dst.rank != stream.rank);
            let slots: Vec<u32> = sent.map(|dst| all.region(*dst).slot).collect();
            assert!(slots.iter().zip(0..).all(|(slot, k)| i64::from(*slot) == k % credits));
            // Every step of a link: one wait for a credit, here or at the end.
            let heads = ops
                .iter()
                .filter(|op| op.kind == OpKind::Wait && all.channel(op).kind == SignalKind::Head);
            assert_eq!(heads.count(), slots.len());
        }
    }
}

/// Returns `(((1 2) 3) 0)`: from rank `first` on around the natural ring, each folded with the data from its left.
fn chain(first: i64, n: i64) -> String {
    let ranks = (1..n).map(|k| (first + k).rem_euclid(n));
    ranks.fold(first.rem_euclid(n).to_string(), |sum, rank| format!("({sum} {rank})"))
}

#[test]
fn the_orders_of_reduction_are_one_position_apart() {
    for n in 2..=9_i64 {
        for handshake in [false, true] {
            let set = [("handshake", if handshake { "true" } else { "false" })];
            let of = with("NcclRingAllReduce", 4, 1, &set);
            let all = schedule(&of, n as u32);
            let run = StreamRun::run(&all);
            // NCCL's chunk c sets out right of position c; the handshake's at position c.
            let first = |c: i64| if handshake { c } else { c + 1 };
            let orders: Vec<String> = (0..n).map(|c| chain(first(c), n)).collect();
            for rank in 0..n as u32 {
                assert_eq!(run.outputs(rank), orders, "rank {rank} of {n}");
            }
            let reduction = proved(&of, n as u32).reduction.expect("an AllReduce reduces");
            assert_eq!(reduction.apart.ranks, Sameness::Exact);
            let rotated = if n == 2 { Sameness::Commuted } else { Sameness::Differs };
            assert_eq!(reduction.apart.elements, rotated);
        }
    }
}

/// Two algorithms reduce every element alike on every rank.
#[test]
fn the_handshake_ring_reduces_in_the_same_order() {
    for n in 2..=9_u32 {
        for (nccl, pulled, set) in [
            ("NcclRingAllReduce", "RingAllReduce", &[("handshake", "true")][..]),
            ("NcclRingReduceScatter", "RingReduceScatter", &[]),
        ] {
            let ring = algorithm(include_str!("../../../stdlib/library/ring.coll"), pulled, &[]);
            let (slots, pulls) = (schedule(&with(nccl, 4, 1, set), n), schedule(&ring, n));
            let orders = |schedule: &Schedule| {
                let run = StreamRun::run(schedule);
                let orders = (0..n).map(|rank| run.outputs(rank).into_iter().map(str::to_owned));
                orders.map(Iterator::collect::<Vec<_>>).collect::<Vec<_>>()
            };
            assert_eq!(orders(&slots), orders(&pulls), "{nccl} at {n}");
        }
    }
}
