//! The answers that a program got from the host while it was laid out, for engines that walk the author's loops
//! themselves and cannot search for rings, grow trees or number lanes.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ids::{LaneId, RankId, ScratchId};
use crate::rational::Rat;
use crate::values::arith::Fault;
use crate::values::groups::Partition;
use crate::values::ranked_topology::RankedTopology;
use crate::values::tree::Rooted;
use crate::values::trees::Forest;

/// The questions and answers of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The value of each parameter, in their order.
    pub params: Vec<Answer>,
    /// Objects, by the expression and the arguments that they were made with.
    pub objects: BTreeMap<ObjectQuery, Answer>,
    /// `topology.relays(a, b)`, by the topology's number.
    pub relays: BTreeMap<(u32, i64, i64), Vec<i64>>,
    /// Topologies in the order of their first use, with the ranks that have a place in them.
    pub topologies: Vec<RankedTopology>,
    /// Several trees each, in the order of their first use.
    pub forests: Vec<Arc<Forest>>,
    /// The credits that each rank waits for at the end of a fifo.
    pub ends: BTreeMap<(ScratchId, RankId), Vec<Credit>>,
    /// Scratch by its declaration: the calls that lead to it, the lane, and the number of the declaration.
    pub declared: BTreeMap<(Vec<u32>, LaneId, usize), ScratchId>,
    /// The first slot of each link of a fifo.
    pub links: BTreeMap<(ScratchId, LaneId, RankId, RankId), u32>,
    /// Lanes by their numbers in this record, which are not those of the schedule.
    pub lanes: Vec<Vec<i64>>,
    /// The largest number of ranks that the `within` blocks around a statement see, summed over these blocks.
    pub members: usize,
    /// The reason why no other engine can follow the program, if there is one.
    pub irregular: Option<String>,
}

/// The question for an object: the expression, the ranks that it was evaluated for, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectQuery {
    /// The algorithm that the expression is part of.
    pub algorithm: String,
    /// The begin and end of the expression.
    pub place: (u32, u32),
    /// The number of ranks that the program saw.
    pub size: u32,
    /// These ranks, inside `within`.
    pub members: Option<Vec<RankId>>,
    /// The arguments of the expression.
    pub args: Vec<Argument>,
}

/// An argument that an object is made from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Argument {
    /// A number.
    Int(i64),
    /// A list of numbers.
    List(Vec<i64>),
    /// A topology, by its number.
    Topology(u32),
    /// Several trees, by their number.
    Trees(u32),
}

/// A value, with ranks numbered as the program saw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A number.
    Int(i64),
    /// A list of numbers.
    List(Vec<i64>),
    /// The ranks of a ring, in its order.
    Ring(Vec<i64>),
    /// The ranks of each of several rings, in its order.
    Rings(Vec<Vec<i64>>),
    /// A tree with its root.
    Tree(Arc<Rooted>),
    /// Several trees with their weights, by their number.
    Trees(u32),
    /// The ranks in groups.
    Groups(Arc<Partition>),
    /// A topology, by its number.
    Topology(u32),
}

/// Credits that a sender takes back at the end of a fifo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The receiver that gives the credits.
    pub peer: RankId,
    /// The lane of the link.
    pub lane: LaneId,
    /// The number of credits.
    pub times: u64,
}

impl Record {
    /// Returns the number of a topology.
    pub fn topology(&mut self, ranked: &RankedTopology) -> u32 {
        let same = |known: &RankedTopology| {
            Arc::ptr_eq(&known.topology, &ranked.topology) || known.topology == ranked.topology
        };
        let known = |known: &RankedTopology| known.nranks == ranked.nranks && same(known);
        let at = self.topologies.iter().position(known).unwrap_or_else(|| {
            self.topologies.push(ranked.clone());
            self.topologies.len() - 1
        });
        at as u32
    }

    /// Returns the number of several trees.
    pub fn trees(&mut self, forest: &Arc<Forest>) -> u32 {
        let same = |known: &Arc<Forest>| Arc::ptr_eq(known, forest) || known == forest;
        let at = self.forests.iter().position(same).unwrap_or_else(|| {
            self.forests.push(forest.clone());
            self.forests.len() - 1
        });
        at as u32
    }

    /// Notes the value of parameter `index` at a rank.
    pub fn param(&mut self, index: usize, name: &str, value: Answer) {
        match self.params.get(index) {
            None => self.params.push(value),
            Some(known) if *known == value => {}
            Some(_) => self.refuse(format!("parameter `{name}` differs between ranks")),
        }
    }

    /// Notes the credits that a rank waits for at the end of its fifo.
    pub fn end(&mut self, fifo: ScratchId, rank: RankId, credits: &[Credit]) {
        let known = self.ends.entry((fifo, rank)).or_insert_with(|| credits.to_vec());
        if *known != credits {
            self.refuse(
                "an algorithm with a fifo is called several times, and uses it otherwise each time"
                    .into(),
            );
        }
    }

    /// Returns the scratch that fifos pass data through.
    pub fn fifos(&self) -> impl Iterator<Item = ScratchId> + '_ {
        self.links.keys().map(|(fifo, ..)| *fifo)
    }

    /// Notes a reason why no other engine can follow the program; the first reason stays.
    pub fn refuse(&mut self, why: String) {
        self.irregular.get_or_insert(why);
    }

    /// Copies scratch, links and lanes from the tables of a finished schedule.
    pub fn complete(
        &mut self,
        declared: &FxHashMap<(Vec<u32>, LaneId, usize), ScratchId>,
        links: impl IntoIterator<Item = ((ScratchId, LaneId, RankId, RankId), u32)>,
        lanes: &[Vec<i64>],
    ) {
        self.declared = declared.iter().map(|(which, id)| (which.clone(), *id)).collect();
        self.links = links.into_iter().collect();
        self.lanes = lanes.to_vec();
    }
}

/// The largest boundary that a device counts: its 64 bits also hold the sum and difference of two.
const FINEST: u128 = 1 << 62;

/// Checks that a device can count these boundaries together where their region is cut into `parts` parts: the device
/// reduces them to lowest terms before it cuts.
pub fn countable(bounds: &[Rat], parts: u64) -> Result<(), Fault> {
    let least = bounds
        .iter()
        .try_fold(Rat::ONE, |least, bound| Rat::new(1, u64::try_from(bound.common(least)).ok()?));
    let fits = least.is_some_and(|least| {
        let grains = u128::from(least.den()) * u128::from(parts);
        let number = |bound: &Rat| u128::from(bound.num()) * (grains / u128::from(bound.den()));
        grains <= FINEST && bounds.iter().all(|bound| number(bound) <= FINEST)
    });
    if fits { Ok(()) } else { Err(Fault::Grain) }
}
