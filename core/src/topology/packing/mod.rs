//! Trees that together use a topology as well as its bound allows: the optimum of AllGather, ReduceScatter, Broadcast
//! and Reduce by bandwidth, exact, on any topology.
//!
//! Each root sends its data along many trees through all ranks, each tree a part of the data by its weight. By a
//! theorem of Edmonds, trees exist as soon as a flow of everything reaches each rank alone; that is what the bound
//! asks. First the rate is found, and capacities become whole numbers of trees ([`rate`]). Then switches are taken
//! out, which leaves edges between ranks ([`switches`]), trees are packed into these ([`trees`]), and their edges are
//! led through the switches again ([`paths`]). A switch forwards and does not copy.

mod paths;
mod rate;
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
    /// The trees, by root. Data goes down from the root; where the collective reduces, up to it.
    pub trees: Vec<WeightedTree>,
    /// The weights of the trees of one root together: the root's data is cut into so many equal parts.
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
}

/// A tree with its part of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedTree {
    /// The tree through all ranks.
    pub tree: SpanningTree,
    /// The parts of the root's data that take this tree.
    pub weight: u64,
    /// For each rank, the ways of the edge from its parent; none for the root. Their weights sum to that of the tree.
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
/// root. `root` is the root of Broadcast and Reduce; with the others, every rank is a root.
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
        Collective::AllGather => (false, false),
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
    let wires = Wires::new(reversed.as_ref().unwrap_or(topology), nranks, roots);
    // S in parts that one root sends.
    let blocks = u128::from(if rooted { 1 } else { nranks });
    let scaled = match trees {
        _ if nranks == 1 => Scaled { room: vec![0; wires.ends.len()], trees: 1 },
        None => wires.optimum(Fraction::new(bound.den(), bound.num() * blocks))?,
        Some(trees) => wires.fixed(trees)?,
    };
    let mut edges = switches::remove(&wires, &scaled)?;
    let batches = trees::pack(&edges, nranks as usize, &wires.roots, scaled.trees)?;
    let mut trees = lead(batches, &mut edges);
    let per_byte = check(&trees, &wires, &scaled, blocks)?;
    if up {
        let routes = trees.iter_mut().flat_map(|tree| tree.routes.iter_mut().flatten());
        routes.for_each(|route| route.through.reverse());
    }
    Ok(Packing { trees, per_root: scaled.trees, per_byte, bound })
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

/// Checks that every tree spans, that each root has all its trees, and that no wire has more than its room; returns
/// the time of the fullest wire.
fn check(
    trees: &[WeightedTree],
    wires: &Wires,
    scaled: &Scaled,
    blocks: u128,
) -> Result<Fraction, Problem> {
    let at: HashMap<_, _> = wires.ends.iter().copied().zip(0_usize..).collect();
    let mut load = vec![0_u64; wires.ends.len()];
    let mut weights = vec![0; wires.nranks];
    for WeightedTree { tree, weight, routes } in trees {
        if tree.depths().is_none() {
            return Err(bug());
        }
        weights[tree.root.index()] += weight;
        for ((parent, routes), rank) in tree.parent.iter().zip(routes).zip(0..) {
            let Some(parent) = parent else { continue };
            if routes.iter().map(|route| route.weight).sum::<u64>() != *weight {
                return Err(bug());
            }
            for route in routes {
                let mut from = parent.0;
                for to in route.through.iter().map(|node| node.0).chain([rank]) {
                    *at.get(&(from, to)).and_then(|at| load.get_mut(*at)).ok_or_else(bug)? +=
                        route.weight;
                    from = to;
                }
            }
        }
    }
    let whole = wires.roots.iter().all(|root| weights[*root] == scaled.trees);
    if !whole || load.iter().zip(&scaled.room).any(|(load, room)| load > room) {
        return Err(bug());
    }
    let all = u128::from(scaled.trees) * blocks;
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
