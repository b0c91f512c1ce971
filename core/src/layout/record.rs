//! What a program asked while it was laid out: for engines that walk the author's loops themselves and cannot
//! search for rings, grow trees or number lanes.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ids::{LaneId, RankId, ScratchId};
use crate::rational::Rat;
use crate::values::arith::Fault;
use crate::values::groups::Partition;
use crate::values::site::RankedTopology;
use crate::values::tree::Rooted;

/// Everything that was asked by all ranks.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The value of each parameter, in their order.
    pub params: Vec<Answer>,
    /// Objects, by where and with what they were made.
    pub objects: BTreeMap<ObjectQuery, Answer>,
    /// `topology.relays(a, b)`, by the topology's number.
    pub relays: BTreeMap<(u32, i64, i64), Vec<i64>>,
    /// Topologies in the order of their first use, with the ranks that have a place in them.
    pub topologies: Vec<RankedTopology>,
    /// What each rank waits for at the end of a fifo.
    pub ends: BTreeMap<(ScratchId, RankId), Vec<Credit>>,
    /// Scratch by who declares it: the calls that lead there, the lane, and which of its declarations.
    pub declared: BTreeMap<(Vec<u32>, LaneId, usize), ScratchId>,
    /// The first slot of each link of a fifo.
    pub links: BTreeMap<(ScratchId, LaneId, RankId, RankId), u32>,
    /// Lanes by their numbers here, which are not those of the schedule.
    pub lanes: Vec<Vec<i64>>,
    /// The most ranks that the `within` blocks around a statement see, all together.
    pub members: usize,
    /// Why no other engine could follow, if so.
    pub irregular: Option<String>,
}

/// Where an object was made, by whom, and from what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectQuery {
    /// The algorithm whose expression it is.
    pub algorithm: String,
    /// Where the expression begins and ends.
    pub place: (u32, u32),
    /// Ranks that the program saw.
    pub size: u32,
    /// Who they were, inside `within`.
    pub members: Option<Vec<RankId>>,
    /// What the expression is made from.
    pub args: Vec<Argument>,
}

/// What an object is made from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Argument {
    /// A number.
    Int(i64),
    /// A list of numbers.
    List(Vec<i64>),
    /// A topology, by its number.
    Topology(u32),
}

/// A value, in numbers of the ranks that the program saw.
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
    /// A topology's number.
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

    /// The value of parameter `index` at some rank.
    pub fn param(&mut self, index: usize, name: &str, value: Answer) {
        match self.params.get(index) {
            None => self.params.push(value),
            Some(known) if *known == value => {}
            Some(_) => self.refuse(format!("parameter `{name}` differs between ranks")),
        }
    }

    /// What a rank waits for where its fifo ends.
    pub fn end(&mut self, fifo: ScratchId, rank: RankId, credits: &[Credit]) {
        let known = self.ends.entry((fifo, rank)).or_insert_with(|| credits.to_vec());
        if *known != credits {
            self.refuse(
                "an algorithm with a fifo is called several times, and uses it otherwise each time"
                    .into(),
            );
        }
    }

    /// The scratch that fifos pass data through.
    pub fn fifos(&self) -> impl Iterator<Item = ScratchId> + '_ {
        self.links.keys().map(|(fifo, ..)| *fifo)
    }

    /// Notes why no other engine can follow the program; the first reason stays.
    pub fn refuse(&mut self, why: String) {
        self.irregular.get_or_insert(why);
    }

    /// Takes over what the tables of a finished schedule know.
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

/// What a device counts boundaries up to: its 64 bits also hold the sums and differences of two.
const FINEST: u128 = 1 << 62;

/// Whether a device can count these boundaries together where their region is cut in so many parts: it has them in lowest
/// terms before it cuts.
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
