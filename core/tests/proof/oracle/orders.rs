//! The order of reduction of every output element, in every choice of modes, by running the schedule once on trees; and
//! the number of `avg` divisions of each. The proof's orders must equal these.

use std::collections::HashMap;

use roundelay_core::collective::Expected;
use roundelay_core::ids::{OpId, RankId};
use roundelay_core::schedule::Schedule;
use roundelay_core::verify::{Proof, Reduction, Sameness};

use super::model::{Model, What};
use super::{counts, mixtures};

/// The nesting of a reduction; leaves are ranks, with any of their elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tree {
    Leaf(usize),
    Fold(usize, usize),
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
            Tree::Fold(left, right) => {
                let (left, right) = (self.sorted(left), self.sorted(right));
                self.id(Tree::Fold(left.min(right), left.max(right)))
            }
        }
    }

    fn leaves(&self, tree: usize, all: &mut Vec<usize>) {
        match self.trees[tree] {
            Tree::Leaf(rank) => all.push(rank),
            Tree::Fold(left, right) => {
                self.leaves(left, all);
                self.leaves(right, all);
            }
        }
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
                        let folded: Vec<Option<Held>> = (0..*len)
                            .map(|i| {
                                let operands = srcs.iter().map(|src| memory[src + i]);
                                let fold = |folded: Option<Held>, operand: Option<Held>| {
                                    let ((a, x), (b, y)) = folded.zip(operand)?;
                                    Some((forest.id(Tree::Fold(b, a)), x + y))
                                };
                                operands.reduce(fold).flatten()
                            })
                            .collect();
                        let divides = u32::from(finish.contains(&OpId(act as u32)));
                        let folded = folded.iter().map(|held| held.map(|(t, d)| (t, d + divides)));
                        for dst in dsts {
                            memory[*dst..dst + len]
                                .iter_mut()
                                .zip(folded.clone())
                                .for_each(|(to, value)| *to = value);
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
pub(crate) fn unlike(schedule: &Schedule, proof: &Proof) -> Option<String> {
    let reduction = proof.reduction.as_ref()?;
    let count = counts(schedule)?[0] as usize;
    let mut forest = Forest::default();
    let uniform = |mode| vec![mode; schedule.nranks as usize];
    let mut modes = vec![uniform(false)];
    modes.extend(proof.in_place.then(|| uniform(true)));
    let held: Vec<_> =
        modes.iter().map(|modes| outputs(schedule, modes, &proof.finish, &mut forest)).collect();
    let scaled = u32::from(proof.scale_outputs);
    let mut all = Reduction {
        ranks: Sameness::Exact,
        pieces: Sameness::Exact,
        modes: Sameness::Exact,
        in_rank_order: true,
        witness: None,
    };
    for ranks in &held {
        let mut first: HashMap<(u32, usize), usize> = HashMap::new();
        let mut any = None;
        for (rank, output) in ranks.iter().enumerate() {
            for (at, value) in output.iter().enumerate() {
                let unit = (at / count) as u32;
                let expected =
                    schedule.collective.expected(RankId(rank as u32), unit, schedule.root);
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
                all.pieces = all.pieces.max(forest.compare(*any.get_or_insert(tree), tree));
                all.modes = all.modes.max(forest.compare(apart, tree));
                let mut leaves = Vec::new();
                forest.leaves(tree, &mut leaves);
                all.in_rank_order &= leaves.is_sorted();
            }
        }
    }
    let told = Reduction { witness: None, ..reduction.clone() };
    if told != all {
        return Some(format!("the proof says {told:?}, and it is {all:?}"));
    }
    if proof.in_place && proof.one_mode.is_none() {
        let other = mixtures(schedule.nranks)
            .find(|modes| outputs(schedule, modes, &proof.finish, &mut forest) != held[0]);
        return other.map(|modes| format!("with the ranks {modes:?} in place, orders are others"));
    }
    None
}
