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
pub(crate) struct Record {
    /// The value of each parameter, in their order.
    pub(crate) params: Vec<Answer>,
    /// Objects, by where and with what they were made.
    pub(crate) objects: BTreeMap<Asked, Answer>,
    /// `topology.relays(a, b)`, by the topology's number.
    pub(crate) relays: BTreeMap<(u32, i64, i64), Vec<i64>>,
    /// Topologies in the order of their first use, with the ranks that have a place in them.
    pub(crate) topologies: Vec<RankedTopology>,
    /// What each rank waits for at the end of a fifo.
    pub(crate) ends: BTreeMap<(ScratchId, RankId), Vec<Credit>>,
    /// Scratch by who declares it: the calls that lead there, the lane, and which of its declarations.
    pub(crate) declared: BTreeMap<(Vec<u32>, LaneId, usize), ScratchId>,
    /// The first slot of each link of a fifo.
    pub(crate) links: BTreeMap<(ScratchId, LaneId, RankId, RankId), u32>,
    /// Lanes by their numbers here, which are not those of the schedule.
    pub(crate) lanes: Vec<Vec<i64>>,
    /// The most ranks that the `within` blocks around a statement see, all together.
    pub(crate) members: usize,
    /// Why no other engine could follow, if so.
    pub(crate) irregular: Option<String>,
}

/// Where an object was made, by whom, and from what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    /// The algorithm whose expression it is.
    pub(crate) algorithm: String,
    /// Where the expression begins and ends.
    pub(crate) place: (u32, u32),
    /// Ranks that the program saw.
    pub(crate) size: u32,
    /// Who they were, inside `within`.
    pub(crate) members: Option<Vec<RankId>>,
    /// What the expression is made from.
    pub(crate) args: Vec<Argument>,
}

/// What an object is made from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Argument {
    Int(i64),
    List(Vec<i64>),
    /// By its number.
    Topology(u32),
}

/// A value, in numbers of the ranks that the program saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Int(i64),
    List(Vec<i64>),
    Ring(Vec<i64>),
    Rings(Vec<Vec<i64>>),
    Tree(Arc<Rooted>),
    Groups(Arc<Partition>),
    /// By its number.
    Topology(u32),
}

/// Credits that a sender takes back at the end of a fifo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credit {
    pub(crate) peer: RankId,
    pub(crate) lane: LaneId,
    pub(crate) times: u64,
}

impl Record {
    /// A topology's number.
    pub(crate) fn topology(&mut self, ranked: &RankedTopology) -> u32 {
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
    pub(crate) fn param(&mut self, index: usize, name: &str, value: Answer) {
        match self.params.get(index) {
            None => self.params.push(value),
            Some(known) if *known == value => {}
            Some(_) => self.refuse(format!("parameter `{name}` differs between ranks")),
        }
    }

    /// What a rank waits for where its fifo ends.
    pub(crate) fn end(&mut self, fifo: ScratchId, rank: RankId, credits: &[Credit]) {
        let known = self.ends.entry((fifo, rank)).or_insert_with(|| credits.to_vec());
        if *known != credits {
            self.refuse(
                "an algorithm with a fifo is called several times, and uses it otherwise each time"
                    .into(),
            );
        }
    }

    /// The scratch that fifos pass data through.
    pub(crate) fn fifos(&self) -> impl Iterator<Item = ScratchId> + '_ {
        self.links.keys().map(|(fifo, ..)| *fifo)
    }

    pub(crate) fn refuse(&mut self, why: String) {
        self.irregular.get_or_insert(why);
    }

    /// Takes over what the tables of a finished schedule know.
    pub(crate) fn complete(
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
pub(crate) fn countable(bounds: &[Rat], parts: u64) -> Result<(), Fault> {
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
