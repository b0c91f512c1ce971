//! Schedules for small sizes: data in few chunks, sent from rank to rank in rounds.
//!
//! [`greedy`] makes them for any topology, quickly and without a promise. [`fn@exact`] finds those of the fewest steps
//! and rounds on few ranks, or tells that there are none. A schedule is a list of sends, which [`SendList::page`]
//! writes as a source of the language, so that it is proved and run like any other algorithm.

mod exact;
mod matching;
mod page;

use std::collections::HashMap;

use exact::Miss;
pub use exact::Size;
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_topology::{Fabric, Problem};

/// A chunk that one rank sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Send {
    /// The sender.
    pub from: RankId,
    /// The receiver.
    pub to: RankId,
    /// The rank whose block the chunk is a part of.
    pub root: RankId,
    /// The place of the chunk in the block.
    pub chunk: u32,
    /// The round in which the sender tells that the chunk may be read: the round of the send, or an earlier one.
    pub told: u32,
}

/// The way of every chunk from its root to all ranks, as sends in rounds: an AllGather, or a Broadcast if there is
/// one root. Backwards, with each send turned around as a reduction, it is a ReduceScatter or a Reduce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The number of ranks.
    pub nranks: u32,
    /// The only root; every rank is a root if there is none.
    pub root: Option<RankId>,
    /// The equal chunks of each root's block.
    pub chunks: u32,
    /// The sends of each round, in which the receiver reads the chunk. A rank tells of a chunk that it receives in a
    /// round in later rounds only.
    pub rounds: Vec<Vec<Send>>,
}

impl Spread {
    /// Checks that every rank gets every chunk once, and that each sender has in an earlier round what it sends.
    ///
    /// # Errors
    /// E0601 with the first send or chunk that is wrong.
    pub fn check(&self) -> Result<(), Problem> {
        let wrong = |title: String| Problem::new(Code::BadTopology, title);
        let roots = || (0..self.nranks).map(RankId).filter(|r| self.root.is_none_or(|o| o == *r));
        let blocks = || roots().flat_map(|root| (0..self.chunks).map(move |chunk| (root, chunk)));
        // The first round in which a rank can tell of a chunk.
        let mut held: HashMap<_, _> = blocks().map(|(r, chunk)| ((r, r, chunk), 0)).collect();
        for (round, sends) in self.rounds.iter().enumerate() {
            let next = round as u32 + 1;
            for send in sends {
                let first = held.get(&(send.from, send.root, send.chunk));
                if first.is_none_or(|first| *first > send.told) || send.told >= next {
                    return Err(wrong(format!(
                        "in round {round}, the sender lacks the chunk of {send:?}"
                    )));
                }
                let got = held.insert((send.to, send.root, send.chunk), next);
                if send.to.0 >= self.nranks || got.is_some() {
                    return Err(wrong(format!(
                        "in round {round}, the receiver has the chunk of {send:?}"
                    )));
                }
            }
        }
        match blocks()
            .find(|(r, c)| (0..self.nranks).any(|v| !held.contains_key(&(RankId(v), *r, *c))))
        {
            None => Ok(()),
            Some((root, chunk)) => {
                Err(wrong(format!("chunk {chunk} of rank {root} does not reach all ranks")))
            }
        }
    }
}

/// The schedule of a collective: reductions along sends backwards, then sends forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendList {
    /// The collective that it computes.
    pub collective: Collective,
    /// The sends whose reverse reduces; none for AllGather and Broadcast.
    pub up: Option<Spread>,
    /// The sends of results; none for ReduceScatter and Reduce.
    pub down: Option<Spread>,
}

impl SendList {
    /// Makes the schedule of a collective of rounds that `search` finds: on the topology itself, and on its reverse
    /// for reductions. `root` is the root of Broadcast and Reduce.
    fn of<E: From<Problem>>(
        topology: &Fabric,
        collective: Collective,
        root: RankId,
        mut search: impl FnMut(&Fabric, Option<RankId>) -> Result<Spread, E>,
    ) -> Result<Self, E> {
        let (up, down, root) = match collective {
            Collective::AllGather => (false, true, None),
            Collective::ReduceScatter => (true, false, None),
            Collective::AllReduce => (true, true, None),
            Collective::Broadcast => (false, true, Some(root)),
            Collective::Reduce => (true, false, Some(root)),
            _ => {
                let title = format!("chunks that reach all ranks do not make {collective}");
                return Err(Problem::new(Code::BadParameter, title).into());
            }
        };
        let up = up.then(|| search(&topology.reverse(), root)).transpose()?;
        let down = down.then(|| search(topology, root)).transpose()?;
        Ok(Self { collective, up, down })
    }

    /// The sends in rounds as they are done: what reduces first, backwards and turned around.
    fn in_order(&self) -> Vec<Vec<Send>> {
        let up = self.up.as_ref().map_or(&[][..], |up| &up.rounds);
        let turns = up.len() as u32;
        let mut rounds = vec![Vec::new(); up.len()];
        for (round, sends) in up.iter().enumerate().rev() {
            for send in sends.iter().rev() {
                let told = turns - 1 - round as u32;
                let turned = Send { from: send.to, to: send.from, told, ..*send };
                rounds[(turns - 1 - send.told) as usize].push(turned);
            }
        }
        for sends in self.down.iter().flat_map(|down| &down.rounds) {
            let later = |send: &Send| Send { told: send.told + turns, ..*send };
            rounds.push(sends.iter().map(later).collect());
        }
        rounds
    }

    /// The text of a source that has this schedule as its only algorithm, `name`.
    pub fn page(&self, name: &str) -> String {
        page::text(self, name)
    }
}

/// Returns a schedule of the first `nranks` ranks by greedy matching: whenever a link gets free, it carries a chunk
/// that the rank at its begin has and the rank at its end lacks. Each root's block is cut into `chunks` chunks of
/// `bytes` bytes, which decides the time of links beside their latencies; as in the simulator, B is 1 byte a second
/// where the topology gives none. The best of several runs is taken; all choices follow from `seed`.
///
/// # Errors
/// E0604 for too few ranks, E0603 where a rank is not reached, E0204 for a root that is not in the run, E0211 for a
/// collective that has no such schedule or no chunks, E0601 for more sends than [`SENDS_LIMIT`].
pub fn greedy(
    topology: &Fabric,
    nranks: u32,
    collective: Collective,
    root: RankId,
    chunks: u32,
    bytes: u64,
    seed: u64,
) -> Result<SendList, Problem> {
    in_run(topology, nranks, root)?;
    if chunks == 0 {
        return Err(Problem::new(Code::BadParameter, "a block of no chunks"));
    }
    if u64::from(nranks) * u64::from(nranks) * u64::from(chunks) > SENDS_LIMIT {
        let title = format!("{chunks} chunks of {nranks} ranks are too many to send one by one");
        return Err(Problem::new(Code::BadTopology, title));
    }
    SendList::of(topology, collective, root, |topology, root| {
        matching::rounds(topology, nranks, root, chunks, bytes, seed)
    })
}

/// Checks that the topology has the ranks of the run, and the run has the root.
fn in_run(topology: &Fabric, nranks: u32, root: RankId) -> Result<(), Problem> {
    topology.holds_pairs(nranks)?;
    if root.0 < nranks {
        return Ok(());
    }
    let title = format!("root {root}, and the ranks are 0..{nranks}");
    Err(Problem::new(Code::RankOutOfRange, title))
}

/// The most sends of an AllGather that is searched.
pub const SENDS_LIMIT: u64 = 1 << 18;

/// The answer of an exact search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A schedule of the size that was asked for.
    Found(SendList),
    /// There is no such schedule.
    None,
    /// The budget of the search was too small to tell.
    Unknown,
}

/// Searches a schedule of the first `nranks` ranks with the given chunks, steps and rounds; an AllReduce has these
/// once for its ReduceScatter and once for its AllGather. The search ends after `conflicts` conflicts of the solver.
///
/// # Errors
/// E0604 for too few ranks, E0204 for a root that is not in the run, E0211 for a collective that has no such schedule
/// and a size that makes no sense, E0601 for more ranks or chunks than an exact search can take.
pub fn exact(
    topology: &Fabric,
    nranks: u32,
    collective: Collective,
    root: RankId,
    size: Size,
    conflicts: u64,
) -> Result<Answer, Problem> {
    in_run(topology, nranks, root)?;
    let found = SendList::of(topology, collective, root, |topology, root| {
        exact::rounds(topology, nranks, root, size, conflicts)
    });
    match found {
        Ok(steps) => Ok(Answer::Found(steps)),
        Err(Miss::None) => Ok(Answer::None),
        Err(Miss::Unknown) => Ok(Answer::Unknown),
        Err(Miss::Wrong(problem)) => Err(problem),
    }
}
