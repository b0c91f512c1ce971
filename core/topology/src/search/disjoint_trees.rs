//! Trees through all ranks: one shallow tree, and several that share no link.

use std::collections::VecDeque;

use super::hamilton::{self, How, RingSearch};
use super::pairs::{Pairs, members};
use crate::Problem;
use roundelay_base::diagnostics::Code;
use roundelay_base::ids::RankId;

/// The most operations on words that a packing takes.
const WORK: u64 = 1_000_000_000;

/// A tree through all ranks, from the root down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanningTree {
    /// The root, at which the tree begins.
    pub root: RankId,
    /// The parent of each rank, which sends to it; the root has none.
    pub parent: Vec<Option<RankId>>,
}

impl SpanningTree {
    /// Returns the steps from the root to each rank; `None` if the parents do not lead to every rank.
    pub fn depths(&self) -> Option<Vec<u32>> {
        let mut depths = vec![None; self.parent.len()];
        *depths.get_mut(self.root.index())? = Some(0);
        for start in 0..self.parent.len() {
            let (mut up, mut at) = (Vec::new(), start);
            while depths[at].is_none() {
                up.push(at);
                at = self.parent[at].filter(|_| up.len() < self.parent.len())?.index();
            }
            for rank in up.into_iter().rev() {
                depths[rank] = depths[at].map(|d: u32| d + 1);
                at = rank;
            }
        }
        depths.into_iter().collect()
    }

    /// Returns the steps from the root to the farthest rank.
    pub fn depth(&self) -> u32 {
        self.depths().into_iter().flatten().max().unwrap_or(0)
    }

    /// The ranks to which `rank` sends, in order.
    pub fn children(&self, rank: RankId) -> Vec<RankId> {
        let all = (0..self.parent.len() as u32).map(RankId);
        all.filter(|child| self.parent[child.index()] == Some(rank)).collect()
    }
}

/// A tree, and whether no other is shallower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// The tree.
    pub tree: SpanningTree,
    /// Whether its depth is proved to be the least; else it is the least that was found.
    pub how: How,
}

/// Returns a shallow tree in which no rank has more than `max_children`. Level by level as many ranks as possible are
/// joined, evenly among their parents; where that ends too early, a chain is searched.
pub fn tree(pairs: &Pairs, root: RankId, max_children: u32) -> Result<Grown, Problem> {
    let n = pairs.nranks();
    if root.0 >= n {
        let title = format!("a tree from rank {root}, and the ranks are 0..{n}");
        return Err(Problem::new(Code::TopologyTooSmall, title));
    }
    let reached = pairs.flood(root, &pairs.set(&[]));
    if let Some(lost) = pairs.ranks().find(|r| reached[r.index() / 64] >> (r.index() % 64) & 1 == 0)
    {
        let title = format!("no tree from rank {root}: nothing gets from there to rank {lost}");
        return Err(Problem::new(Code::Disconnected, title));
    }
    if let Some(tree) = by_levels(pairs, root, max_children) {
        let least = shallowest(pairs, root, max_children);
        let how = if tree.depth() == least { How::Exact } else { How::Heuristic };
        return Ok(Grown { tree, how });
    }
    let (chain, none) = chain(pairs, root);
    if max_children > 0
        && let Some(tree) = chain
    {
        let how = if max_children == 1 { How::Exact } else { How::Heuristic };
        return Ok(Grown { tree, how });
    }
    let title = format!(
        "no tree from rank {root} was found in which each rank has at most {max_children} children"
    );
    let mut problem = Problem::new(Code::Disconnected, title);
    if max_children == 1 && none {
        problem = problem.note("it would be a chain, and there is none through all ranks");
    }
    Err(problem.help("allow more children"))
}

/// Returns a lower bound of the depth: the distance of the farthest rank, and the levels that have room for all.
fn shallowest(pairs: &Pairs, root: RankId, max_children: u32) -> u32 {
    let mut depth = 0;
    let (mut room, mut level) = (1_u64, 1_u64);
    while room < u64::from(pairs.nranks()) && level > 0 {
        level = level.saturating_mul(max_children.into());
        room = room.saturating_add(level);
        depth += 1;
    }
    let farthest = by_levels(pairs, root, u32::MAX).map_or(0, |tree| tree.depth());
    farthest.max(depth)
}

/// Builds the tree level by level; `None` if ranks are left over that the last level has no link to.
fn by_levels(pairs: &Pairs, root: RankId, max_children: u32) -> Option<SpanningTree> {
    let n = pairs.nranks() as usize;
    let mut parent = vec![None; n];
    let mut level = vec![root];
    let mut open: Vec<RankId> = pairs.ranks().filter(|r| *r != root).collect();
    while !open.is_empty() {
        let set = pairs.set(&open);
        let ways = |r: &RankId| {
            pairs.row(*r).iter().zip(&set).map(|(row, open)| (row & open).count_ones()).sum::<u32>()
        };
        let mut wishes = open.clone();
        wishes.sort_by_key(|r| (std::cmp::Reverse(ways(r)), *r));
        let mut joined = 0;
        let mut eager = level.clone();
        for _ in 0..max_children {
            let before = joined;
            eager.retain(|adult| {
                let found = joined < open.len() && adopt(pairs, *adult, &wishes, &mut parent);
                joined += usize::from(found);
                found
            });
            if joined == before || joined == open.len() {
                break;
            }
        }
        if joined == 0 {
            return None;
        }
        level = open.iter().copied().filter(|r| parent[r.index()].is_some()).collect();
        open.retain(|r| parent[r.index()].is_none());
    }
    Some(SpanningTree { root, parent })
}

/// Gives `adult` one more child of this level; earlier children may have to change their parents.
fn adopt(pairs: &Pairs, adult: RankId, wishes: &[RankId], parent: &mut [Option<RankId>]) -> bool {
    let mut wished_by = vec![None; parent.len()];
    let mut given_up = vec![None; parent.len()];
    let mut adults = VecDeque::from([adult]);
    while let Some(asker) = adults.pop_front() {
        for &child in wishes.iter().filter(|c| pairs.has(asker, **c)) {
            if wished_by[child.index()].is_some() {
                continue;
            }
            wished_by[child.index()] = Some(asker);
            if let Some(other) = parent[child.index()] {
                if other != adult && given_up[other.index()].is_none() {
                    given_up[other.index()] = Some(child);
                    adults.push_back(other);
                }
                continue;
            }
            let mut moved = Some(child);
            while let Some(child) = moved {
                parent[child.index()] = wished_by[child.index()];
                moved = wished_by[child.index()].and_then(|asker| given_up[asker.index()]);
            }
            return true;
        }
    }
    false
}

/// Returns a chain from the root through all ranks, and, if there is none, whether that is proved. The chain is a
/// ring through one more rank, which every rank may send to and which may send to the root alone.
fn chain(pairs: &Pairs, root: RankId) -> (Option<SpanningTree>, bool) {
    let n = pairs.nranks();
    let closed =
        Pairs::all(n + 1, |a, b| if a.0 == n { b == root } else { b.0 == n || pairs.has(a, b) });
    let search = hamilton::ring(&closed);
    let none = matches!(search, RingSearch::None { .. });
    let tree = search.order().map(|mut order| {
        let end = order.iter().position(|r| r.0 == n).unwrap_or(0);
        order.rotate_left(end);
        let mut parent = vec![None; n as usize];
        for pair in order[1..].windows(2) {
            parent[pair[1].index()] = Some(pair[0]);
        }
        SpanningTree { root, parent }
    });
    (tree, none)
}

/// Trees that share no link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// The trees, all from one root.
    pub trees: Vec<SpanningTree>,
    /// Whether these are all that were asked for, or no more exist; else there were too many pairs.
    pub proved: bool,
}

/// Returns up to `k` trees from `root` that share no link, where each direction is a link: as many as there are
/// link-disjoint paths to the rank that has the fewest (Edmonds), which is the bandwidth of a broadcast where all
/// links have one bandwidth. A link joins a tree if all later trees can still reach the rank at its end (Lovasz).
pub fn packing(pairs: &Pairs, root: RankId, k: u32) -> Packing {
    let n = u64::from(pairs.nranks());
    let affordable = (WORK / (n * n * n.div_ceil(64)).max(1)).isqrt().max(1);
    let sought = k.min(affordable as u32);
    let others = pairs.ranks().filter(|r| *r != root);
    let most = match pairs.nranks() {
        n if root.0 >= n => 0,
        1 => sought.min(1),
        _ => others.map(|to| ways(pairs, root, to, sought)).min().unwrap_or(0),
    };
    let mut rest = pairs.clone();
    let trees: Vec<_> = (0..most).rev().map_while(|later| grow(&mut rest, root, later)).collect();
    let proved = trees.len() == most as usize && (sought == k || most < sought);
    Packing { trees, proved }
}

/// Grows a tree in `rest` that leaves enough links for `later` trees. There always is one.
fn grow(rest: &mut Pairs, root: RankId, later: u32) -> Option<SpanningTree> {
    let mut tree = SpanningTree { root, parent: vec![None; rest.nranks() as usize] };
    let mut joined = vec![root];
    let mut at = 0;
    while joined.len() < tree.parent.len() {
        let from = *joined.get(at)?;
        at += 1;
        let to: Vec<_> = rest.out(from).collect();
        for to in to.into_iter().filter(|to| *to != root) {
            if tree.parent[to.index()].is_some() {
                continue;
            }
            rest.forbid(from, to);
            if ways(rest, root, to, later) < later {
                rest.allow(from, to);
                continue;
            }
            tree.parent[to.index()] = Some(from);
            joined.push(to);
        }
    }
    Some(tree)
}

/// Returns the number of paths from `root` to `to` that share no link, up to `most`.
fn ways(pairs: &Pairs, root: RankId, to: RankId, most: u32) -> u32 {
    let n = pairs.nranks();
    let (mut used, mut back) = (Pairs::none(n), Pairs::none(n));
    let mut ways = 0;
    while ways < most {
        let mut seen = pairs.set(&[root]);
        let mut before = vec![None; n as usize];
        let mut open = VecDeque::from([root]);
        while let Some(at) = open.pop_front() {
            if at == to {
                break;
            }
            let rows = pairs.row(at).iter().zip(used.row(at)).zip(back.row(at));
            let fresh: Vec<u64> = rows
                .zip(&mut seen)
                .map(|(((row, used), back), seen)| {
                    let fresh = (row & !used | back) & !*seen;
                    *seen |= fresh;
                    fresh
                })
                .collect();
            for next in members(&fresh) {
                before[next.index()] = Some(at);
                open.push_back(next);
            }
        }
        let mut at = to;
        if before[to.index()].is_none() {
            break;
        }
        while let Some(from) = before[at.index()] {
            if used.has(at, from) {
                used.forbid(at, from);
                back.forbid(from, at);
            } else {
                used.allow(from, at);
                back.allow(at, from);
            }
            at = from;
        }
        ways += 1;
    }
    ways
}
