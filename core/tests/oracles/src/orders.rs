//! The order of reduction of every output element, in every choice of modes, by running the schedule once on trees; and
//! the number of `avg` divisions of each. The proof's orders must equal these.

use std::collections::HashMap;

use roundelay_core::collective::Expected;
use roundelay_core::ids::{OpId, RankId};
use roundelay_core::schedule::Schedule;
use roundelay_core::verify::{Proof, ReductionOrder, Sameness};

use super::model::{Model, What};
use super::{counts, mixtures};

/// The nesting of a reduction; leaves are ranks, with any of their elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tree {
    Leaf(usize),
    /// Two operands, whether the result is rounded, and the act of a switch whose order is open.
    Fold(usize, usize, bool, Option<usize>),
}

/// Trees, each distinct one once.
#[derive(Default)]
struct Forest {
    trees: Vec<Tree>,
    known: HashMap<Tree, usize>,
}

/// The value of an element: a tree, and the number of divisions.
type Held = (usize, u32);

impl Forest {
    fn id(&mut self, tree: Tree) -> usize {
        *self.known.entry(tree).or_insert_with(|| {
            self.trees.push(tree);
            self.trees.len() - 1
        })
    }

    /// The tree with the operands of each fold in an order of their own.
    fn sorted(&mut self, tree: usize) -> usize {
        match self.trees[tree] {
            Tree::Leaf(_) => tree,
            Tree::Fold(left, right, rounds, open) => {
                let (left, right) = (self.sorted(left), self.sorted(right));
                self.id(Tree::Fold(left.min(right), left.max(right), rounds, open))
            }
        }
    }

    fn rounded(&mut self, tree: usize) -> usize {
        match self.trees[tree] {
            Tree::Fold(left, right, false, open) => self.id(Tree::Fold(left, right, true, open)),
            _ => tree,
        }
    }

    /// The most roundings between a leaf and the root, and the most folds.
    fn roundings(&self, tree: usize) -> (u32, u32) {
        match self.trees[tree] {
            Tree::Leaf(_) => (0, 0),
            Tree::Fold(left, right, rounds, open) => {
                let [(a, x), (b, y)] = [self.roundings(left), self.roundings(right)];
                // Not to the nearest: as two roundings that are.
                let more = if open.is_some() { 2 } else { 1 };
                (a.max(b) + if rounds { more } else { 0 }, 1 + x.max(y))
            }
        }
    }

    fn leaves(&self, tree: usize, all: &mut Vec<usize>) {
        match self.trees[tree] {
            Tree::Leaf(rank) => all.push(rank),
            Tree::Fold(left, right, ..) => {
                self.leaves(left, all);
                self.leaves(right, all);
            }
        }
    }

    /// Whether the order of some sum is open.
    fn is_open(&self, tree: usize) -> bool {
        match self.trees[tree] {
            Tree::Leaf(_) => false,
            Tree::Fold(left, right, _, open) => {
                open.is_some() || self.is_open(left) || self.is_open(right)
            }
        }
    }

    /// Compares orders of two elements, which are in one order only if none is open.
    fn compare_elements(&mut self, a: usize, b: usize) -> Sameness {
        if self.is_open(b) { Sameness::Differs } else { self.compare(a, b) }
    }

    fn compare(&mut self, a: usize, b: usize) -> Sameness {
        if a == b {
            Sameness::Exact
        } else if self.sorted(a) == self.sorted(b) {
            Sameness::Commuted
        } else {
            Sameness::Differs
        }
    }
}

/// Returns the contents of each rank's output after one run, where ranks run in these modes.
fn outputs(
    schedule: &Schedule,
    modes: &[bool],
    finish: &[OpId],
    forest: &mut Forest,
) -> Vec<Vec<Option<Held>>> {
    let count = counts(schedule).expect("cuts that are not too fine")[0];
    let model = Model::new(schedule, count, modes);
    let mut memory: Vec<Option<Held>> = vec![None; model.size];
    for (rank, input) in model.input.iter().enumerate() {
        let leaf = forest.id(Tree::Leaf(rank));
        memory[input.clone()].fill(Some((leaf, 0)));
    }
    let mut next: Vec<usize> = model.streams.iter().map(|acts| acts.start).collect();
    let mut signals = vec![0_u32; schedule.channels.len()];
    let mut moved = true;
    while moved {
        moved = false;
        for (stream, acts) in model.streams.iter().enumerate() {
            while next[stream] < acts.end {
                let act = next[stream];
                match &model.ops[act] {
                    What::Post(channel) => signals[*channel] += 1,
                    What::Wait(channel) if signals[*channel] == 0 => break,
                    What::Wait(channel) => signals[*channel] -= 1,
                    What::Nothing => {}
                    What::Move { srcs, dsts, len } => {
                        let op = schedule.op(OpId(act as u32));
                        let divides = u32::from(finish.contains(&OpId(act as u32)));
                        // The result for a destination of each width.
                        let mut folded = [true, false].map(|wide| {
                            let fold = |i: usize| {
                                let mut operands = srcs.iter().map(|src| memory[src + i]);
                                let mut all = operands.next().flatten()?;
                                for (nth, operand) in (2..).zip(operands) {
                                    let (with, divided) = operand?;
                                    let rounds = if nth < srcs.len() { op.chain } else { !wide };
                                    let open = op.switch.then_some(act);
                                    let tree = Tree::Fold(with, all.0, rounds, open);
                                    all = (forest.id(tree), all.1 + divided);
                                }
                                Some(all)
                            };
                            (0..*len).map(fold).collect::<Vec<Option<Held>>>()
                        });
                        for held in folded[1].iter_mut().flatten() {
                            *held = (forest.rounded(held.0), held.1 + divides);
                        }
                        for (dst, operand) in dsts.iter().zip(schedule.dsts(op)) {
                            let values = &folded[usize::from(!schedule.is_wide(*operand))];
                            memory[*dst..dst + len].copy_from_slice(values);
                        }
                    }
                }
                next[stream] += 1;
                moved = true;
            }
        }
    }
    model.output.iter().map(|output| memory[output.clone()].to_vec()).collect()
}

/// Returns a claim of a right schedule's proof about orders and averages that does not hold.
pub fn unlike(schedule: &Schedule, proof: &Proof) -> Option<String> {
    let reduction = proof.reduction.as_ref()?;
    let count = counts(schedule)?[0] as usize;
    let mut forest = Forest::default();
    let uniform = |mode| vec![mode; schedule.nranks as usize];
    let mut modes = vec![uniform(false)];
    modes.extend(proof.in_place.then(|| uniform(true)));
    let held: Vec<_> =
        modes.iter().map(|modes| outputs(schedule, modes, &proof.finish, &mut forest)).collect();
    let scaled = u32::from(proof.scale_outputs);
    let mut modes_agree = Sameness::Exact;
    let mut orders = Vec::new();
    for ranks in &held {
        let mut all = ReductionOrder {
            ranks: Sameness::Exact,
            elements: Sameness::Exact,
            counts: Sameness::Exact,
            in_rank_order: true,
            every_run: true,
            roundings: 0,
            depth: 0,
        };
        let mut first: HashMap<(u32, usize), usize> = HashMap::new();
        let mut any = None;
        for (rank, output) in ranks.iter().enumerate() {
            let mut own = None;
            for (at, value) in output.iter().enumerate() {
                let unit = (at / count) as u32;
                let expected =
                    schedule.collective.expected_value(RankId(rank as u32), unit, schedule.root);
                let Expected::Reduced { unit } = expected else { continue };
                let Some((tree, divided)) = *value else {
                    return Some(format!("rank {rank} holds nothing at {at}"));
                };
                if divided + scaled != 1 {
                    return Some(format!(
                        "element {at} of rank {rank} is divided {divided} + {scaled} times"
                    ));
                }
                let (apart, _) = held[0][rank][at].expect("looked at first");
                let same = *first.entry((unit, at % count)).or_insert(tree);
                all.ranks = all.ranks.max(forest.compare(same, tree));
                all.elements =
                    all.elements.max(forest.compare_elements(*any.get_or_insert(tree), tree));
                all.counts =
                    all.counts.max(forest.compare_elements(*own.get_or_insert(tree), tree));
                modes_agree = modes_agree.max(forest.compare(apart, tree));
                let (roundings, depth) = forest.roundings(tree);
                all.roundings = all.roundings.max(roundings + scaled);
                all.depth = all.depth.max(depth);
                let mut leaves = Vec::new();
                forest.leaves(tree, &mut leaves);
                all.every_run &= !forest.is_open(tree);
                all.in_rank_order &= leaves.is_sorted() && !forest.is_open(tree);
            }
        }
        orders.push(all);
    }
    // Where each rank may choose its mode, the proof has one order for both.
    let told: Vec<_> = [reduction.apart].into_iter().chain(reduction.in_place).collect();
    if proof.one_mode.is_none() {
        orders.dedup();
    }
    if (&told, reduction.modes) != (&orders, modes_agree) {
        return Some(format!("the proof says {told:?}, and it is {orders:?}, {modes_agree:?}"));
    }
    if proof.in_place && proof.one_mode.is_none() {
        let other = mixtures(schedule.nranks)
            .find(|modes| outputs(schedule, modes, &proof.finish, &mut forest) != held[0]);
        return other.map(|modes| format!("with the ranks {modes:?} in place, orders are others"));
    }
    None
}
