//! Trees that together use a topology as well as its bound allows: the optimum of AllGather, ReduceScatter, Broadcast
//! and Reduce by bandwidth, exact, on any topology; and, where links have two equal directions, that of an AllReduce which
//! goes up trees and then down.
//!
//! Each root sends its data along many trees through all ranks, each tree a part of the data by its weight. By a
//! theorem of Edmonds, trees exist as soon as a flow of everything reaches each rank alone; that is what the bound
//! asks. First the rate is found, and capacities become whole numbers of trees (`rate`). Then switches are taken
//! out, which leaves edges between ranks (`switches`), trees are packed into these (`trees`) and made shallower
//! (`depth`), and their edges are led through the switches again (`paths`). A switch forwards and does not copy.
//!
//! AllReduce takes trees that reduce to their root and then broadcast from it. Each root may have another share of the
//! buffer; the best shares are found too (`shares`).

mod depth;
mod paths;
mod rate;
mod shares;
mod switches;
mod trees;

use std::collections::HashMap;

use super::bounds::{self, Fraction};
use super::search::trees::SpanningTree;
use super::{NodeId, Problem, Topology};
use crate::collective::Collective;
use crate::diagnostics::Code;
use crate::ids::RankId;
use rate::{Scaled, Wires};
use switches::Edge;
use trees::Batch;

/// Trees of one or of all roots, and the time that they take together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// The trees, by root. Data goes down from the root; where the collective reduces, up to it; for AllReduce, up and
    /// then down.
    pub trees: Vec<WeightedTree>,
    /// The weights of the trees of one root together: the root's data is cut into as many equal parts. For AllReduce,
    /// the weights of all trees, among which the whole buffer is cut.
    pub per_root: u64,
    /// Seconds for each byte of S, nccl-tests' size, by the load of every link; in units of 1 / B where the topology
    /// is relative.
    pub per_byte: Fraction,
    /// The lower bound of that time, [`bounds::Bound::per_byte`].
    pub bound: Fraction,
}

impl Packing {
    /// The bound as a part of the time: 1 for an optimum.
    pub fn share(&self) -> f64 {
        if self.per_byte == self.bound { 1.0 } else { self.bound.value() / self.per_byte.value() }
    }

    /// The steps from a root to its farthest rank, in the deepest tree.
    pub fn depth(&self) -> u32 {
        self.trees.iter().map(|tree| tree.tree.depth()).max().unwrap_or(0)
    }
}

/// A tree with its part of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedTree {
    /// The tree through all ranks.
    pub tree: SpanningTree,
    /// The parts of the root's data that take this tree.
    pub weight: u64,
    /// For each rank, the ways of the edge from its parent; none for the root. Their weights sum to that of the tree.
    /// Where data goes up first, it takes the same ways in the other direction.
    pub routes: Vec<Vec<Route>>,
}

/// A way between two ranks through switches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The nodes between the ranks, in the direction of the data.
    pub through: Vec<NodeId>,
    /// The parts of the data that take this way.
    pub weight: u64,
}

/// Returns trees for a collective of the first `nranks` ranks: as many as the optimum needs, or `trees` for each
/// root. `root` is the root of Broadcast and Reduce; with AllGather and ReduceScatter, every rank is a root. For
/// AllReduce, `trees` is the weight of all trees; the links of a cable are used as far as both directions are equal. Its
/// time may be more than the bound, where up and down at once would be faster than one after the other.
///
/// Switches that send more or less than they receive are used only as far as both directions are equal; then, or if
/// the bound counts on ranks that are not in the run, the time is more than the bound.
///
/// # Errors
/// Those of [`bounds::bound`]; E0603 where no trees reach some rank, E0601 for bandwidths whose trees would be too
/// many to count, E0211 for a collective that has no such trees, or for no trees.
pub fn pack(
    topology: &Topology,
    nranks: u32,
    collective: Collective,
    root: RankId,
    trees: Option<u32>,
) -> Result<Packing, Problem> {
    let bound = bounds::bound(topology, nranks, collective, root)?.per_byte;
    let (rooted, up) = match collective {
        Collective::AllGather | Collective::AllReduce => (false, false),
        Collective::ReduceScatter => (false, true),
        Collective::Broadcast => (true, false),
        Collective::Reduce => (true, true),
        _ => {
            let title = format!("trees of one or all roots do not make {collective}");
            return Err(Problem::new(Code::BadParameter, title));
        }
    };
    if trees == Some(0) {
        return Err(Problem::new(Code::BadParameter, "a packing of no trees"));
    }
    let roots = if rooted { vec![root.index()] } else { (0..nranks as usize).collect() };
    let reversed = up.then(|| topology.reversed());
    let both = collective == Collective::AllReduce;
    let wires = Wires::new(reversed.as_ref().unwrap_or(topology), nranks, roots, both);
    // The time of the bound is that of a root's part times the parts, or of two phases with the whole buffer.
    let (phases, parts) = match (both, rooted) {
        (true, _) => (2, 1),
        (false, true) => (1, 1),
        (false, false) => (1, u128::from(nranks)),
    };
    let scaled = match trees {
        _ if nranks == 1 => Scaled { room: vec![0; wires.ends.len()], trees: vec![1] },
        None => wires.optimum(Fraction::new(bound.den() * phases, bound.num() * parts))?,
        Some(trees) => wires.fixed(trees)?,
    };
    let mut edges = switches::remove(&wires, &scaled)?;
    let mut batches = trees::pack(&edges, nranks as usize, &wires.roots, &scaled.trees)?;
    depth::lower(&mut batches, &edges, nranks as usize);
    let mut trees = lead(batches, &mut edges);
    let load = load(&trees, &wires)?;
    let of = |root: usize| {
        let own = trees.iter().filter(|tree| tree.tree.root.index() == root);
        own.map(|tree| tree.weight).sum::<u64>()
    };
    if wires.roots.iter().zip(&scaled.trees).any(|(root, weight)| of(*root) != *weight)
        || load.iter().zip(&scaled.room).any(|(load, room)| load > room)
    {
        return Err(bug());
    }
    let all: u64 = scaled.trees.iter().sum();
    let once = time(&load, &wires, all.into())?;
    let per_byte = Fraction::new(once.num() * phases, once.den());
    let per_root = if both { all } else { scaled.trees[0] };
    if up {
        let routes = trees.iter_mut().flat_map(|tree| tree.routes.iter_mut().flatten());
        routes.for_each(|route| route.through.reverse());
    }
    Ok(Packing { trees, per_root, per_byte, bound })
}

/// Leads the edges of trees through switches, and joins equal trees.
fn lead(batches: Vec<Batch>, edges: &mut [Edge]) -> Vec<WeightedTree> {
    let mut found: Vec<WeightedTree> = Vec::new();
    let mut known: HashMap<(RankId, Vec<Option<RankId>>), usize> = HashMap::new();
    for batch in batches {
        let mut parent = vec![None; batch.edge.len()];
        let mut routes = vec![Vec::new(); batch.edge.len()];
        for (rank, edge) in batch.edges() {
            parent[rank] = Some(RankId(edges[edge].from as u32));
            routes[rank] = edges[edge].ways.take(batch.weight);
        }
        let root = RankId(batch.root as u32);
        let at = *known.entry((root, parent.clone())).or_insert(found.len());
        match found.get_mut(at) {
            None => {
                let tree = SpanningTree { root, parent };
                found.push(WeightedTree { tree, weight: batch.weight, routes });
            }
            Some(tree) => {
                tree.weight += batch.weight;
                for (known, more) in tree.routes.iter_mut().zip(routes) {
                    for route in more {
                        let same = known.iter_mut().find(|r| r.through == route.through);
                        match same {
                            Some(same) => same.weight += route.weight,
                            None => known.push(route),
                        }
                    }
                }
            }
        }
    }
    found
}

/// Checks that every tree spans and that the ways of its edges carry it; returns the load of each wire.
fn load(trees: &[WeightedTree], wires: &Wires) -> Result<Vec<u64>, Problem> {
    let at: HashMap<_, _> = wires.ends.iter().copied().zip(0_usize..).collect();
    let mut load = vec![0_u64; wires.ends.len()];
    let mut lead = |from: RankId, to: RankId, routes: &[Route]| {
        for route in routes {
            let mut from = from.0;
            for to in route.through.iter().map(|node| node.0).chain([to.0]) {
                *at.get(&(from, to)).and_then(|at| load.get_mut(*at))? += route.weight;
                from = to;
            }
        }
        Some(routes.iter().map(|route| route.weight).sum::<u64>())
    };
    for WeightedTree { tree, weight, routes } in trees {
        let mut right = tree.depths().is_some();
        for (rank, parent) in (0..).map(RankId).zip(&tree.parent) {
            let Some(parent) = *parent else { continue };
            right &= lead(parent, rank, &routes[rank.index()]) == Some(*weight);
        }
        if !right {
            return Err(bug());
        }
    }
    Ok(load)
}

/// Returns the time of the fullest wire, where S is cut into `all` parts.
fn time(load: &[u64], wires: &Wires, all: u128) -> Result<Fraction, Problem> {
    let times = load.iter().zip(&wires.capacity).map(|(load, capacity)| {
        let grains = capacity.checked_mul(all)?.checked_mul(wires.grain.num())?;
        Some(Fraction::new(u128::from(*load).checked_mul(wires.grain.den())?, grains))
    });
    let times: Option<Vec<_>> = times.collect();
    Ok(times.ok_or_else(too_fine)?.into_iter().max().unwrap_or(Fraction::ZERO))
}

/// A check of the packing failed.
fn bug() -> Problem {
    Problem::new(Code::BadTopology, "trees were packed wrongly")
        .note("this is a bug of Roundelay, not of the topology")
}

/// Weights do not fit their numbers.
fn too_fine() -> Problem {
    Problem::new(Code::BadTopology, "the bandwidths are too uneven to count trees")
        .help("round them to fewer digits")
}
