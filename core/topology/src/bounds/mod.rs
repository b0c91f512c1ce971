//! Lower bounds on the time and the rounds of any algorithm on a topology, exact, each with the cut or partition of
//! the ranks that sets it.
//!
//! S is nccl-tests' size in bytes: for AllReduce, Broadcast and Reduce the buffer of one rank; for the others the
//! larger buffer of a rank, n blocks. Ranks reduce and forward, switches only forward. Links work in both directions
//! at once; a switch that reduces, as NVLink SHARP does, has a bound of its own: [`Bounds::on_switch`]. The bounds hold on
//! every graph; those of AllGather, ReduceScatter and the rooted collectives are reached where links are equal in both
//! directions. They hold for data cut as finely as necessary and without latency; a run takes at least
//! [`Bound::seconds`], and at least the latency of its rounds, but not their sum, as they may overlap.

mod cuts;
mod fraction;
mod orbits;
mod partitions;
mod rounds;
#[doc(hidden)]
pub mod twins;

use std::fmt;

use super::{Fabric, Problem, paths};
pub use fraction::Fraction;
use roundelay_base::collective::Collective;
use roundelay_base::diagnostics::Code;
use roundelay_base::ids::RankId;
pub use rounds::Rounds;

use cuts::{Cut, Graph};

/// A lower bound: the least time that any algorithm for a collective takes on a topology, by bandwidth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Seconds for each byte of S, nccl-tests' size; in units of 1 / B where the topology is relative, so that the
    /// time is this times S / B.
    pub per_byte: Fraction,
    /// The cut, partition or distance that sets the bound.
    pub binding: Binding,
    /// Whether no other cut or partition gives more; if not, only likely ones were tried.
    pub exact: bool,
}

impl Bound {
    const NONE: Self = Self { per_byte: Fraction::ZERO, binding: Binding::Nothing, exact: true };

    /// Seconds for `bytes` bytes of S, by bandwidth alone; in units of 1 / B on a relative topology.
    pub fn seconds(&self, bytes: u64) -> f64 {
        self.per_byte.value() * bytes as f64
    }
}

/// The cut, partition or distance that sets a lower bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// No data has to move.
    Nothing,
    /// The data that must leave these ranks; with the number of all ranks.
    Cut(Vec<RankId>, u32),
    /// The data that must pass between these groups of ranks.
    Partition(Vec<Vec<RankId>>),
    /// The length of the paths that all data must take, over all links together.
    Distance,
}

/// Both bounds for AllReduce, and the bound of every other collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The bound of each collective, in the order of [`Collective::ALL`].
    pub collectives: Vec<(Collective, Bound)>,
    /// ReduceScatter and AllGather one after another, where every rank owns an equal shard: the time of AllReduce in
    /// that form. More than its bound where unequal shards would help.
    pub equal_shards: Bound,
    /// The bound of AllReduce where the switch that joins all ranks reduces, as NVLink SHARP does; `None` where no such
    /// switch is known.
    pub on_switch: Option<Bound>,
    /// Rounds, for any collective.
    pub rounds: Rounds,
}

impl Bounds {
    /// The bounds for the first `nranks` ranks; `root` is the root of rooted collectives.
    pub fn new(topology: &Fabric, nranks: u32, root: RankId) -> Result<Self, Problem> {
        let graphs = Both::new(topology, nranks, root)?;
        let bound = |c: &Collective| (*c, graphs.bound(*c, root));
        let collectives: Vec<_> = Collective::ALL.iter().map(bound).collect();
        let find = |wanted| collectives.iter().find(|(c, _)| *c == wanted).map(|(_, b)| b);
        let (whole, there, back) = (
            find(Collective::AllReduce),
            find(Collective::ReduceScatter),
            find(Collective::AllGather),
        );
        let equal_shards = match (whole, there, back) {
            (Some(whole), Some(there), Some(back)) => {
                let both = there.per_byte.plus(back.per_byte);
                // That form is an AllReduce too, so its bound is at least that of AllReduce. The sum of its phases is
                // less only where nodes forward that receive and send at different speeds.
                if both < whole.per_byte {
                    whole.clone()
                } else {
                    Bound { per_byte: both, ..back.clone() }
                }
            }
            _ => Bound::NONE,
        };
        let on_switch = graphs.on_switch(Collective::AllReduce);
        let rounds = Rounds::new(topology, nranks);
        Ok(Self { collectives, equal_shards, on_switch, rounds })
    }

    /// The bound of one collective.
    pub fn bound(&self, collective: Collective) -> &Bound {
        let found = self.collectives.iter().find(|(c, _)| *c == collective);
        &found.expect("every collective has a bound").1
    }
}

/// The bound of one collective for the links that a runtime uses at once: the `NVLinks` alone where a machine has
/// other links beside them and they join all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usable {
    /// The bound over these links.
    pub bound: Bound,
    /// The bound over all links at once, where some links are left out.
    pub all: Option<Bound>,
}

impl Usable {
    /// The bound of one collective for the first `nranks` ranks.
    ///
    /// # Errors
    /// Those of [`bound`].
    pub fn new(
        topology: &Fabric,
        nranks: u32,
        collective: Collective,
        root: RankId,
    ) -> Result<Self, Problem> {
        let all = bound(topology, nranks, collective, root)?;
        match paths::nvlink_alone(topology, nranks) {
            None => Ok(Self { bound: all, all: None }),
            Some(alone) => {
                Ok(Self { bound: bound(&alone, nranks, collective, root)?, all: Some(all) })
            }
        }
    }
}

/// Returns the bound of one collective for the first `nranks` ranks where a switch reduces, over the links that a runtime uses
/// at once, as [`Usable`] has them; `None` where no such switch is known, and for collectives other than
/// AllReduce, whose bounds are the same.
pub fn on_switch(topology: &Fabric, nranks: u32, collective: Collective) -> Option<Bound> {
    let alone = paths::nvlink_alone(topology, nranks);
    Both::new(alone.as_ref().unwrap_or(topology), nranks, RankId(0)).ok()?.on_switch(collective)
}

/// Returns the bound of one collective for the first `nranks` ranks, over all links at once.
pub fn bound(
    topology: &Fabric,
    nranks: u32,
    collective: Collective,
    root: RankId,
) -> Result<Bound, Problem> {
    Ok(Both::new(topology, nranks, root)?.bound(collective, root))
}

/// A topology and its mirror: a reduction on one is a broadcast on the other.
struct Both {
    topology: Fabric,
    reversed: Fabric,
    nranks: u32,
}

impl Both {
    fn new(topology: &Fabric, nranks: u32, root: RankId) -> Result<Self, Problem> {
        topology.holds_pairs(nranks)?;
        if root.0 >= nranks {
            let title = format!("the root is rank {root}, and the ranks are 0..{nranks}");
            return Err(Problem::new(Code::RankOutOfRange, title));
        }
        Ok(Self { topology: topology.clone(), reversed: topology.reverse(), nranks })
    }

    fn bound(&self, collective: Collective, root: RankId) -> Bound {
        if self.nranks < 2 {
            return Bound::NONE;
        }
        let there = Graph::new(&self.topology, self.nranks);
        let back = Graph::new(&self.reversed, self.nranks);
        // In shares of S: a block is S / n.
        let block = |(bound, cut): (Fraction, Cut)| {
            self.cut((Fraction::new(bound.num(), bound.den() * u128::from(self.nranks)), cut))
        };
        match collective {
            Collective::AllGather => block(there.gather()),
            Collective::ReduceScatter => block(back.gather()),
            Collective::Broadcast => self.cut(there.broadcast(root)),
            Collective::Reduce => self.cut(back.broadcast(root)),
            Collective::Scatter => block(there.scatter(root)),
            Collective::Gather => block(back.scatter(root)),
            Collective::AllReduce => {
                let partitions::Partition { bound, groups, exact } = partitions::all_reduce(&there);
                Bound { per_byte: bound, binding: Binding::Partition(groups), exact }
            }
            Collective::AllToAll => self.all_to_all(&there),
        }
    }

    /// Returns the bound of a collective where switches reduce: S must leave each set of ranks, as the part that it adds, and
    /// S must come to it, as the result. The smallest cut in either direction parts some rank from rank 0.
    fn on_switch(&self, collective: Collective) -> Option<Bound> {
        if collective != Collective::AllReduce || !self.topology.has_reducing_switch(self.nranks) {
            return None;
        }
        let there = Graph::new(&self.topology, self.nranks).broadcast(RankId(0));
        let back = Graph::new(&self.reversed, self.nranks).broadcast(RankId(0));
        Some(self.cut(if back.0 > there.0 { back } else { there }))
    }

    fn cut(&self, (per_byte, cut): (Fraction, Cut)) -> Bound {
        Bound { per_byte, binding: Binding::Cut(cut.ranks, self.nranks), exact: true }
    }

    /// Returns the bound of AllToAll: n(S) (n - n(S)) blocks must cross each cut S, and all blocks must take their
    /// paths over all links.
    fn all_to_all(&self, graph: &Graph<'_>) -> Bound {
        let n = graph.n();
        let all = graph.ranks.len() <= partitions::ALL;
        let sets: Vec<(Vec<RankId>, u128)> = if all {
            let kappas = partitions::kappas(graph);
            let proper = 1..kappas.len() - 1;
            proper.map(|mask| (partitions::members(mask).collect(), kappas[mask])).collect()
        } else {
            // Of equal ranks, one alone is tried.
            let classes = twins::classes(graph.topology, &graph.ranks, None);
            let single = |rank: RankId| classes.iter().any(|class| class[0] == rank);
            let partitions = partitions::candidates(graph, &classes);
            let groups = partitions.into_iter().flatten();
            let mut sets: Vec<_> = groups.filter(|g| g.len() > 1 || single(g[0])).collect();
            // Where links are equal both ways, equal bandwidths leave a set and its rest.
            if self.topology.links() != self.reversed.links() {
                let rest = |set: &Vec<RankId>| {
                    graph.ranks.iter().copied().filter(|r| !set.contains(r)).collect()
                };
                let others: Vec<Vec<RankId>> = sets.iter().map(rest).collect();
                sets.extend(others);
            }
            sets.sort();
            sets.dedup();
            let leaves = |set: Vec<RankId>| {
                let kappa = graph.kappa(&set);
                (set, kappa)
            };
            sets.into_iter().map(leaves).collect()
        };
        let (distance, capacity) = graph.distances();
        let mut best = Bound {
            per_byte: Fraction::new(distance * graph.unit, n * capacity),
            binding: Binding::Distance,
            exact: all,
        };
        for (ranks, leaves) in sets {
            let inside = ranks.len() as u128;
            let per_byte = Fraction::new(inside * (n - inside) * graph.unit, n * leaves);
            if per_byte >= best.per_byte {
                best = Bound { per_byte, binding: Binding::Cut(ranks, self.nranks), exact: all };
            }
        }
        best
    }
}

/// The number of ranks of a group that are named before the rest is only counted.
const NAMED: usize = 8;

/// `{0, 1, 2}`
fn set(ranks: &[RankId]) -> String {
    let names: Vec<_> = ranks.iter().take(NAMED).map(ToString::to_string).collect();
    match ranks.len() {
        n if n > NAMED => format!("{{{}, … {n} ranks}}", names.join(", ")),
        _ => format!("{{{}}}", names.join(", ")),
    }
}

/// The text of reports; `{:#}` is longer, for places without other explanation.
impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing has to move"),
            Self::Cut(ranks, nranks) if ranks.len() as u32 + 1 == *nranks => {
                let out = (0..*nranks).map(RankId).find(|r| !ranks.contains(r));
                write!(f, "all but {{{}}} -> rest", out.unwrap_or_default())
            }
            Self::Cut(ranks, _) => write!(f, "{} -> rest", set(ranks)),
            Self::Partition(groups) if groups.iter().all(|g| g.len() == 1) => {
                if f.alternate() {
                    write!(f, "into {} parts of one rank", groups.len())
                } else {
                    write!(f, "{} singletons", groups.len())
                }
            }
            Self::Partition(groups) => match &groups[..] {
                [a, b] => {
                    let small = if b.len() < a.len() { b } else { a };
                    if f.alternate() {
                        write!(f, "between {} and the rest", set(small))
                    } else {
                        write!(f, "{} / rest", set(small))
                    }
                }
                _ => {
                    let names: Vec<_> = groups.iter().take(NAMED).map(|g| set(g)).collect();
                    let more = if groups.len() > NAMED { " / …" } else { "" };
                    let parts = if f.alternate() { ("into ", "parts") } else { ("", "groups") };
                    let names = names.join(" / ");
                    write!(f, "{}{} {}: {names}{more}", parts.0, groups.len(), parts.1)
                }
            },
            Self::Distance => f.write_str("the way of all data, over all links"),
        }
    }
}
