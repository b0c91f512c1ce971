//! Trees that together use a topology as well as its bound allows: the optimum of AllGather, ReduceScatter, Broadcast
//! and Reduce by bandwidth, exact, on any topology; and that of AllReduce, where links have two equal directions.
//!
//! Each root sends its data along many trees through all ranks, each tree a part of the data by its weight. By a
//! theorem of Edmonds, trees exist as soon as a flow of everything reaches each rank alone; that is what the bound
//! asks. First the rate is found, and capacities become whole numbers of trees (`rate`). Then switches are taken
//! out, which leaves edges between ranks (`switches`), trees are packed into these (`trees`) and made shallower
//! (`depth`), and their edges are led through the switches again (`ways`). A switch forwards and does not copy.
//!
//! AllReduce takes trees that reduce to their root and broadcast from it, one after the other or at once. Each root may
//! have another share of the buffer; the best shares are found too (`shares`).

mod depth;
mod linear;
mod rate;
mod shares;
mod simplex;
mod switches;
mod trees;
mod ways;

use std::collections::HashMap;

use rate::{Passes, Scaled, Wires};
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_topology::bounds::{self, Fraction};
use roundelay_topology::flow::gcd;
use roundelay_topology::search::disjoint_trees::SpanningTree;
use roundelay_topology::{Fabric, NodeId, Problem, paths};
use switches::Edge;
use trees::Batch;
use ways::Ways;

/// Trees of one or of all roots, and the time that they take together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// The trees, by root. Data goes down from the root; where the collective reduces, up to it; for AllReduce, up and
    /// down.
    pub trees: Vec<WeightedTree>,
    /// Of an AllReduce that goes up other trees than down: the trees up, each for the tree down at the same place, of the
    /// same root and weight.
    pub up: Vec<WeightedTree>,
    /// The weights of the trees of one root together: the root's data is cut into as many equal parts. For AllReduce,
    /// the weights of all trees, among which the whole buffer is cut.
    pub per_root: u64,
    /// Seconds for each byte of S, nccl-tests' size, by the load of every link; in units of 1 / B where the topology
    /// is relative.
    pub per_byte: Fraction,
    /// The lower bound of that time: [`bounds::Bound::per_byte`], or a larger one, which the search proves.
    pub bound: Fraction,
    /// Of an AllReduce: whether data goes up and down at once.
    pub at_once: bool,
}

impl Packing {
    /// The bound as a part of the time: 1 for an optimum alone.
    pub fn share(&self) -> f64 {
        let share = self.bound.value() / self.per_byte.value();
        if self.per_byte == self.bound { 1.0 } else { share.min(1.0 - f64::EPSILON) }
    }

    /// The steps from a root to its farthest rank, in the deepest tree.
    pub fn depth(&self) -> u32 {
        self.trees.iter().chain(&self.up).map(|tree| tree.tree.depth()).max().unwrap_or(0)
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

impl WeightedTree {
    /// Its weight and those of its ways.
    fn weights(&mut self) -> impl Iterator<Item = &mut u64> {
        let ways = self.routes.iter_mut().flatten().map(|way| &mut way.weight);
        ways.chain([&mut self.weight])
    }

    /// Takes the tree with a part of its weight.
    fn take(&mut self, weight: u64) -> Self {
        self.weight -= weight;
        let routes = self.routes.iter_mut().map(|routes| {
            let mut ways = Ways(std::mem::take(routes));
            let taken = ways.take(weight);
            *routes = ways.0;
            taken
        });
        Self { tree: self.tree.clone(), weight, routes: routes.collect() }
    }

    /// Makes the rank in the middle of the tree its root.
    fn turn(&mut self) {
        let far = |tree: &SpanningTree| {
            let depths = tree.depths().unwrap_or_default();
            (0..).map(RankId).zip(depths).max_by_key(|(_, depth)| *depth).unwrap_or_default()
        };
        // The rank farthest from any is the end of a longest path, and the rank farthest from that is the other end.
        self.lead_from(far(&self.tree).0);
        let (mut middle, length) = far(&self.tree);
        let above = |rank: RankId| self.tree.parent[rank.index()].unwrap_or(rank);
        for _ in 0..length / 2 {
            middle = above(middle);
        }
        // Of two in the middle, the lower one, so that equal trees have equal roots.
        self.lead_from(if length % 2 == 1 { middle.min(above(middle)) } else { middle });
    }

    /// Turns the edges between a rank and the root around, so that it is the root.
    fn lead_from(&mut self, root: RankId) {
        let (mut below, mut ways, mut at) = (None, Vec::new(), Some(root));
        while let Some(rank) = at {
            at = std::mem::replace(&mut self.tree.parent[rank.index()], below);
            ways = std::mem::replace(&mut self.routes[rank.index()], ways);
            for way in &mut ways {
                way.through.reverse();
            }
            below = Some(rank);
        }
        self.tree.root = root;
    }
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
/// AllReduce, `trees` is the weight of all trees; the links of a cable are used as far as both directions are equal. Data
/// goes up all trees and then down. Its time may be more than the bound, where [`pack_at_once`] is faster.
///
/// Of a machine with links of several kinds, those that carry data from rank to rank are used alone: its `NVLinks`, where
/// they join all ranks.
///
/// Switches that send more or less than they receive are used only as far as both directions are equal; then, or if
/// the bound counts on ranks that are not in the run, the time is more than the bound.
///
/// # Errors
/// Those of [`bounds::bound`]; E0603 where no trees reach some rank, E0601 for bandwidths whose trees would be too
/// many to count, E0211 for a collective that has no such trees, or for no trees.
pub fn pack(
    topology: &Fabric,
    nranks: u32,
    collective: Collective,
    root: RankId,
    trees: Option<u32>,
) -> Result<Packing, Problem> {
    packed(topology, nranks, collective, root, trees, false)
}

/// Returns trees for an AllReduce of the first `nranks` ranks that sends data up and down at once: as many as the
/// optimum needs, or trees of the weight `trees`. Where links are equal in both directions, no AllReduce is faster by
/// bandwidth than the optimum. Where they differ, data goes up other trees than down; `trees` is then the number of each
/// root's.
///
/// # Errors
/// Those of [`pack`].
pub fn pack_at_once(
    topology: &Fabric,
    nranks: u32,
    trees: Option<u32>,
) -> Result<Packing, Problem> {
    packed(topology, nranks, Collective::AllReduce, RankId(0), trees, true)
}

fn packed(
    topology: &Fabric,
    nranks: u32,
    collective: Collective,
    root: RankId,
    trees: Option<u32>,
    at_once: bool,
) -> Result<Packing, Problem> {
    topology.holds_pairs(nranks)?;
    let carrying = paths::carrying(topology, nranks);
    let topology = carrying.as_ref().unwrap_or(topology);
    let mut bound = bounds::bound(topology, nranks, collective, root)?.per_byte;
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
    let reversed = up.then(|| topology.reverse());
    let both = collective == Collective::AllReduce;
    let passes = match (both, at_once) {
        (false, _) => Passes::Once,
        (true, false) => Passes::Twice,
        (true, true) => Passes::AtOnce,
    };
    let wires = Wires::new(reversed.as_ref().unwrap_or(topology), nranks, roots, passes);
    // The time of the bound is that of a root's part times the parts, or of two ways of the whole buffer.
    let (ways, parts) = match (both, rooted) {
        (true, _) => (2, 1),
        (false, true) => (1, 1),
        (false, false) => (1, u128::from(nranks)),
    };
    // The trees up are those down of the links in the other direction.
    let back = at_once.then(|| topology.reverse());
    let turned = back.as_ref().map(|back| Wires::new(back, nranks, wires.roots.clone(), passes));
    let opposite = |(to, from): &(u32, u32)| wires.ends.binary_search(&(*from, *to)).ok();
    let at = turned.iter().flat_map(|turned| turned.ends.iter().map(opposite));
    let at: Vec<usize> = at.collect::<Option<_>>().ok_or_else(bug)?;
    let mut scaled = match (trees, back) {
        _ if nranks == 1 => vec![Scaled { room: vec![0; wires.ends.len()], trees: vec![1] }],
        (None, back) => {
            let most = Fraction::new(bound.den() * ways, bound.num() * parts);
            let (mut scaled, rate) = wires.optimum(most)?;
            if let Some(back) = back.as_ref().filter(|_| scaled.is_empty()) {
                scaled = each_way(topology, back, &wires)?;
            } else if let [_, up] = &mut scaled[..] {
                up.room = at.iter().map(|at| up.room[*at]).collect();
            }
            let least = rate.and_then(|rate| {
                let slow = rate.num().checked_mul(wires.grain.num())?.checked_mul(parts)?;
                let times = rate.den().checked_mul(wires.grain.den())?.checked_mul(ways)?;
                Some(Fraction::new(times, slow))
            });
            bound = least.map_or(bound, |least| least.max(bound));
            scaled
        }
        (Some(trees), Some(back)) if !wires.equal() => {
            let once = |of| Wires::new(of, nranks, wires.roots.clone(), Passes::Once).fixed(trees);
            vec![once(topology)?, once(&back)?]
        }
        (Some(trees), _) => vec![wires.fixed(trees)?],
    };
    let other = if scaled.len() > 1 { scaled.pop() } else { None };
    let Some(scaled) = scaled.pop() else { return Err(bug()) };
    let same = at_once && other.is_none();
    let (mut trees, mut load) = grown(&wires, &scaled, same)?;
    let mut trees_up = Vec::new();
    if same {
        // The data that goes up takes the other direction.
        load = wires.both_ways(&load);
    }
    if let Some((turned, other)) = turned.zip(other) {
        let (others, up) = grown(&turned, &other, false)?;
        at.into_iter().zip(up).for_each(|(at, up)| load[at] += up);
        (trees, trees_up) = paired(trees, others);
    }
    let all: u64 = scaled.trees.iter().sum();
    let once = time(&load, &wires, all.into())?;
    let times = if passes == Passes::Twice { 2 } else { 1 };
    let per_byte = Fraction::new(once.num() * times, once.den());
    let mut per_root = if both { all } else { scaled.trees[0] };
    if same {
        // Trees that were joined may be all even.
        let weights = trees.iter_mut().flat_map(WeightedTree::weights);
        let mut weights: Vec<&mut u64> = weights.chain([&mut per_root]).collect();
        let common = weights.iter().fold(0, |all, of| gcd(all, u128::from(**of))).max(1) as u64;
        for of in &mut weights {
            **of /= common;
        }
    }
    let upwards = if up { &mut trees } else { &mut trees_up };
    let routes = upwards.iter_mut().flat_map(|tree| tree.routes.iter_mut().flatten());
    routes.for_each(|route| route.through.reverse());
    Ok(Packing { trees, up: trees_up, per_root, per_byte, bound, at_once })
}

/// Returns the capacities of the best trees down from all ranks and of the best trees up to them, each as if it had all
/// links: those of AllGather and of ReduceScatter, as many trees of each root.
fn each_way(topology: &Fabric, back: &Fabric, of: &Wires) -> Result<Vec<Scaled>, Problem> {
    let found = [topology, back].into_iter().map(|topology| {
        let nranks = of.nranks as u32;
        let gather = bounds::bound(topology, nranks, Collective::AllGather, RankId(0))?.per_byte;
        let most = Fraction::new(gather.den(), gather.num() * u128::from(nranks));
        let wires = Wires::new(topology, nranks, of.roots.clone(), Passes::Once);
        wires.optimum(most)?.0.pop().ok_or_else(bug)
    });
    let mut found: Vec<Scaled> = found.collect::<Result<_, _>>()?;
    if let [down, up] = &mut found[..] {
        let (once, twice) = (down.trees[0], up.trees[0]);
        let common = gcd(once.into(), twice.into()) as u64;
        down.multiply(twice / common)?;
        up.multiply(once / common)?;
    }
    Ok(found)
}

/// Returns trees for some capacities, and the load of each wire. `turn` puts the root of each tree into its middle: then
/// data goes both ways.
fn grown(
    wires: &Wires,
    scaled: &Scaled,
    turn: bool,
) -> Result<(Vec<WeightedTree>, Vec<u64>), Problem> {
    let mut edges = switches::remove(wires, scaled)?;
    let mut batches = trees::pack(&edges, wires.nranks, &wires.roots, &scaled.trees)?;
    depth::lower(&mut batches, &edges, wires.nranks);
    let mut trees = join(lead(batches, &mut edges));
    let loaded = load(&trees, wires)?;
    let of = |root: usize| {
        let own = trees.iter().filter(|tree| tree.tree.root.index() == root);
        own.map(|tree| tree.weight).sum::<u64>()
    };
    if wires.roots.iter().zip(&scaled.trees).any(|(root, weight)| of(*root) != *weight)
        || loaded.iter().zip(&scaled.room).any(|(load, room)| load > room)
    {
        return Err(bug());
    }
    if turn {
        trees.iter_mut().for_each(WeightedTree::turn);
        trees = join(trees);
    }
    Ok((trees, loaded))
}

/// Returns trees down and trees up, cut into pairs of equal root and weight.
fn paired(
    down: Vec<WeightedTree>,
    up: Vec<WeightedTree>,
) -> (Vec<WeightedTree>, Vec<WeightedTree>) {
    let (mut down, mut up) = (down.into_iter().peekable(), up.into_iter().peekable());
    let mut pairs = Vec::new();
    while let Some((one, other)) = down.peek_mut().zip(up.peek_mut()) {
        let weight = one.weight.min(other.weight);
        pairs.push((one.take(weight), other.take(weight)));
        down.next_if(|tree| tree.weight == 0);
        up.next_if(|tree| tree.weight == 0);
    }
    pairs.into_iter().unzip()
}

/// Leads the edges of trees through switches.
fn lead(batches: Vec<Batch>, edges: &mut [Edge]) -> impl Iterator<Item = WeightedTree> {
    batches.into_iter().map(|batch| {
        let mut parent = vec![None; batch.edge.len()];
        let mut routes = vec![Vec::new(); batch.edge.len()];
        for (rank, edge) in batch.edges() {
            parent[rank] = Some(RankId(edges[edge].from as u32));
            routes[rank] = edges[edge].ways.take(batch.weight);
        }
        let tree = SpanningTree { root: RankId(batch.root as u32), parent };
        WeightedTree { tree, weight: batch.weight, routes }
    })
}

/// Joins equal trees.
fn join(trees: impl IntoIterator<Item = WeightedTree>) -> Vec<WeightedTree> {
    let mut found: Vec<WeightedTree> = Vec::new();
    let mut known: HashMap<Vec<Option<RankId>>, usize> = HashMap::new();
    for new in trees {
        let at = *known.entry(new.tree.parent.clone()).or_insert(found.len());
        let Some(tree) = found.get_mut(at) else {
            found.push(new);
            continue;
        };
        tree.weight += new.weight;
        for (known, more) in tree.routes.iter_mut().zip(new.routes) {
            for route in more {
                let same = known.iter_mut().find(|r| r.through == route.through);
                match same {
                    Some(same) => same.weight += route.weight,
                    None => known.push(route),
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
