//! Trees for AllReduce, each of which reduces to its root and broadcasts from it at once, and their weights.
//!
//! An edge of a tree between two ranks uses the links of a way there and of a way back. The most weight that fits the
//! links is a linear program with a row for each link and a column for each tree. Columns are made as they are needed:
//! where the program gives each link a price, the tree that costs least is a minimum spanning tree by the prices of
//! the ways. No tree that costs less than it weighs: the weights are the best.
//!
//! The program is solved in floating point, and only guesses: its trees and exhausted links are equations that are
//! solved in whole numbers, or its weights are rounded, and the time is computed exactly from the load of each link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rate::Wires;
use super::{Problem, Route, WeightedTree};
use crate::diagnostics::Code;
use crate::ids::RankId;
use crate::topology::NodeId;
use crate::topology::flow::gcd;
use crate::topology::search::trees::SpanningTree;

/// The most links of a program.
const LINKS: usize = 1024;
/// The rounds of a program, for each link.
const ROUNDS: usize = 50;
/// The difference up to which prices are equal.
const CLOSE: f64 = 1e-9;
/// The largest sum of weights that is sought.
const FINEST: usize = 1 << 10;

/// A tree that is no tree yet: its edges, each with the wires of the way there and back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Column {
    edges: Vec<(usize, usize, [Vec<usize>; 2])>,
}

impl Column {
    fn wires(&self) -> impl Iterator<Item = usize> {
        self.edges.iter().flat_map(|(_, _, ways)| ways.iter().flatten().copied())
    }
}

/// Returns trees, and the sum of their weights: `sum`, or the least in which they are best.
pub(super) fn pack(wires: &Wires, sum: Option<u32>) -> Result<(Vec<WeightedTree>, u64), Problem> {
    if wires.ends.len() > LINKS {
        let title = format!("{} links are too many to weigh trees for AllReduce", wires.ends.len());
        return Err(Problem::new(Code::BadTopology, title)
            .note(format!("the most are {LINKS}"))
            .help("join the trees of ReduceScatter and AllGather"));
    }
    let best = match wires.nranks {
        1 => vec![(Column { edges: Vec::new() }, 1.0)],
        _ => TreeProgram::new(wires).solve()?,
    };
    let small = whole(wires, &best, sum.map(|sum| sum as usize));
    let exact = if small.best { None } else { exact(wires, &best) };
    let weights = exact.unwrap_or(small.weights);
    let sum = weights.iter().sum();
    let columns = best.iter().zip(weights).filter(|(_, weight)| *weight > 0);
    let trees = columns.map(|((column, _), weight)| hang(wires, column, weight)).collect();
    Ok((trees, sum))
}

/// A variable of the program: it takes up the capacity of links.
enum Basic {
    Tree(Column),
    Left,
}

/// Prices of links, and the columns that are in use.
struct TreeProgram<'w> {
    wires: &'w Wires,
    /// The wires from each node.
    out: Vec<Vec<usize>>,
    capacity: Vec<f64>,
    /// As many as there are links: trees, and what some links have left.
    basis: Vec<Basic>,
    inverse: Vec<Vec<f64>>,
    amount: Vec<f64>,
}

impl<'w> TreeProgram<'w> {
    fn new(wires: &'w Wires) -> Self {
        let most = wires.capacity.iter().copied().max().unwrap_or(1) as f64;
        let capacity: Vec<f64> = wires.capacity.iter().map(|c| *c as f64 / most).collect();
        let mut out = vec![Vec::new(); wires.nodes];
        for (wire, (from, _)) in wires.ends.iter().enumerate() {
            out[*from as usize].push(wire);
        }
        let rows = capacity.len();
        let unit = |row: usize| (0..rows).map(|at| f64::from(at == row)).collect();
        // Slightly uneven capacities, so that no two rows are exhausted at once and no round is in vain.
        let uneven =
            |(row, c): (usize, &f64)| c * (1.0 + 1e-7 * (row * 7919 % 1021) as f64 / 1021.0);
        let amount = capacity.iter().enumerate().map(uneven).collect();
        let inverse = (0..rows).map(unit).collect();
        let basis = (0..rows).map(|_| Basic::Left).collect();
        Self { wires, out, capacity, basis, inverse, amount }
    }

    /// Returns the trees in use at the optimum, with their weights.
    fn solve(mut self) -> Result<Vec<(Column, f64)>, Problem> {
        let rows = self.basis.len();
        for _ in 0..ROUNDS * rows {
            let prices = self.prices();
            let negative = (0..rows).min_by(|a, b| prices[*a].total_cmp(&prices[*b]));
            let (entering, change) = match negative.filter(|row| prices[*row] < -CLOSE) {
                Some(row) => (Basic::Left, vec![row]),
                None => {
                    let column = self.cheapest(&prices)?;
                    let wires: Vec<usize> = column.wires().collect();
                    if wires.iter().map(|wire| prices[*wire]).sum::<f64>() > 1.0 - CLOSE {
                        break;
                    }
                    (Basic::Tree(column), wires)
                }
            };
            if !self.enter(entering, &change) {
                break;
            }
        }
        let capacity = &self.capacity;
        let weighed = self.basis.into_iter().zip(self.inverse).filter_map(|(basic, row)| {
            // The amounts for the capacities as they are.
            let amount: f64 = row.iter().zip(capacity).map(|(a, c)| a * c).sum();
            match basic {
                Basic::Tree(column) if amount > CLOSE => Some((column, amount)),
                _ => None,
            }
        });
        Ok(weighed.collect())
    }

    /// Returns the price of each link: the weight that the last bit of its capacity adds.
    fn prices(&self) -> Vec<f64> {
        let mut prices = vec![0.0; self.basis.len()];
        let tree = |(basic, _): &(&Basic, _)| matches!(basic, Basic::Tree(_));
        for (_, row) in self.basis.iter().zip(&self.inverse).filter(tree) {
            for (price, of) in prices.iter_mut().zip(row) {
                *price += of;
            }
        }
        prices
    }

    /// Takes a column into use, in place of the one that is exhausted first.
    fn enter(&mut self, basic: Basic, entering: &[usize]) -> bool {
        let change: Vec<f64> =
            self.inverse.iter().map(|row| entering.iter().map(|wire| row[*wire]).sum()).collect();
        let limit = |row: &usize| self.amount[*row].max(0.0) / change[*row];
        let falls = (0..change.len()).filter(|row| change[*row] > CLOSE);
        let Some(first) = falls.min_by(|a, b| limit(a).total_cmp(&limit(b))) else {
            return false;
        };
        let pivot = change[first];
        let mut row = std::mem::take(&mut self.inverse[first]);
        for value in &mut row {
            *value /= pivot;
        }
        let amount = self.amount[first] / pivot;
        for (at, other) in self.inverse.iter_mut().enumerate().filter(|(at, _)| *at != first) {
            let times = change[at];
            if times != 0.0 {
                other.iter_mut().zip(&row).for_each(|(value, of)| *value -= times * of);
                self.amount[at] -= times * amount;
            }
        }
        (self.inverse[first], self.amount[first], self.basis[first]) = (row, amount, basic);
        true
    }

    /// Returns a tree whose links cost least, by Prim's method on the ways between ranks.
    fn cheapest(&self, prices: &[f64]) -> Result<Column, Problem> {
        let nranks = self.wires.nranks;
        // Among equal prices, short ways over wide links.
        let cost = |wire: usize| prices[wire].max(0.0) + 1e-3 * CLOSE / self.capacity[wire];
        let ways: Vec<_> = (0..nranks).map(|rank| self.ways(rank, cost)).collect();
        let both = |a: usize, b: usize| ways[a].0[b] + ways[b].0[a];
        let way = |from: usize, to: usize| {
            let (mut at, mut wires) = (to, Vec::new());
            while at != from {
                wires.push(ways[from].1[at]);
                at = self.wires.ends[ways[from].1[at]].0 as usize;
            }
            wires.reverse();
            wires
        };
        let mut nearest: Vec<(f64, usize)> = (0..nranks).map(|rank| (both(0, rank), 0)).collect();
        let mut left: Vec<usize> = (1..nranks).collect();
        let mut edges = Vec::new();
        while let Some(at) =
            (0..left.len()).min_by(|a, b| nearest[left[*a]].0.total_cmp(&nearest[left[*b]].0))
        {
            let rank = left.swap_remove(at);
            let (cost, from) = nearest[rank];
            if cost.is_infinite() {
                let title = format!("no tree joins rank {rank} in both directions");
                return Err(Problem::new(Code::Disconnected, title)
                    .note("each edge needs a way there and back that passes through no rank"));
            }
            edges.push((from, rank, [way(from, rank), way(rank, from)]));
            for other in &left {
                let cost = both(rank, *other);
                if cost < nearest[*other].0 {
                    nearest[*other] = (cost, rank);
                }
            }
        }
        edges.sort();
        Ok(Column { edges })
    }

    /// Returns the cost of the ways from a rank to each node through switches, and the last wire of each.
    fn ways(&self, from: usize, cost: impl Fn(usize) -> f64) -> (Vec<f64>, Vec<usize>) {
        let mut costs = vec![f64::INFINITY; self.wires.nodes];
        let mut last = vec![usize::MAX; self.wires.nodes];
        costs[from] = 0.0;
        // Costs are not negative, so their bits are in their order.
        let mut open = BinaryHeap::from([Reverse((0, from))]);
        while let Some(Reverse((bits, node))) = open.pop() {
            if bits != costs[node].to_bits() || (node < self.wires.nranks && node != from) {
                continue;
            }
            for &wire in &self.out[node] {
                let (to, all) = (self.wires.ends[wire].1 as usize, costs[node] + cost(wire));
                if all < costs[to] {
                    (costs[to], last[to]) = (all, wire);
                    open.push(Reverse((all.to_bits(), to)));
                }
            }
        }
        (costs, last)
    }
}

/// Whole weights of trees, and whether no others are better.
struct Whole {
    weights: Vec<u64>,
    best: bool,
}

/// Returns whole weights near the best ones: of the first sum at which they are as good, or the best of few.
fn whole(wires: &Wires, best: &[(Column, f64)], sum: Option<usize>) -> Whole {
    let all: f64 = best.iter().map(|(_, amount)| amount).sum();
    let time = |weights: &[u64], sum: usize| {
        let mut load = vec![0_u64; wires.ends.len()];
        for ((column, _), weight) in best.iter().zip(weights) {
            column.wires().for_each(|wire| load[wire] += weight);
        }
        let times = load.iter().zip(&wires.capacity).map(|(load, c)| *load as f64 / *c as f64);
        times.fold(0.0, f64::max) / sum as f64
    };
    let rounded = |sum: usize| {
        let shares: Vec<f64> = best.iter().map(|(_, share)| share / all * sum as f64).collect();
        let mut weights: Vec<u64> =
            shares.iter().map(|share| (share + 1e-6).floor() as u64).collect();
        let mut order: Vec<usize> = (0..weights.len()).collect();
        let lost: Vec<f64> = shares.iter().zip(&weights).map(|(s, w)| s - *w as f64).collect();
        // The missing units go to those that lost most.
        order.sort_by(|a, b| lost[*b].total_cmp(&lost[*a]));
        let missing = (sum as u64).saturating_sub(weights.iter().sum());
        for at in order.into_iter().take(missing as usize) {
            weights[at] += 1;
        }
        weights
    };
    if let Some(sum) = sum {
        return Whole { weights: rounded(sum), best: true };
    }
    let most = wires.capacity.iter().copied().max().unwrap_or(1) as f64;
    let least = 1.0 / (all * most);
    let mut found = (f64::INFINITY, Vec::new());
    for sum in 1..=FINEST {
        let weights = rounded(sum);
        let time = time(&weights, sum);
        if time < found.0 * (1.0 - CLOSE) {
            found = (time, weights);
        }
        if found.0 <= least * (1.0 + CLOSE) {
            return Whole { weights: found.1, best: true };
        }
    }
    Whole { weights: found.1, best: false }
}

/// Returns the weights at which as many links as there are trees are full, the fullest by the weights that are known;
/// `None` where there are no such weights, or numbers grow too large.
fn exact(wires: &Wires, best: &[(Column, f64)]) -> Option<Vec<u64>> {
    let n = best.len();
    let mut uses = vec![vec![0_i128; n + 1]; wires.ends.len()];
    for (at, (column, _)) in best.iter().enumerate() {
        column.wires().for_each(|wire| uses[wire][at] += 1);
    }
    let most = wires.capacity.iter().copied().max()? as f64;
    let left = |wire: usize| {
        let load: f64 = uses[wire].iter().zip(best).map(|(uses, (_, of))| *uses as f64 * of).sum();
        1.0 - load * most / wires.capacity[wire] as f64
    };
    let full: Vec<usize> = (0..uses.len()).filter(|wire| left(*wire) < 1e-6).collect();
    let mut rows: Vec<Vec<i128>> = full.iter().map(|wire| uses[*wire].clone()).collect();
    for (row, wire) in rows.iter_mut().zip(full) {
        row[n] = i128::try_from(wires.capacity[wire]).ok()?;
    }
    // Gauss and Jordan without fractions, after Bareiss: the divisions leave no rest.
    let mut before = 1;
    for at in 0..n {
        let pivot = (at..rows.len()).find(|row| rows[*row][at] != 0)?;
        rows.swap(at, pivot);
        let row = rows[at].clone();
        for (_, other) in rows.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let times = other[at];
            for (value, of) in other.iter_mut().zip(&row) {
                let product = value.checked_mul(row[at])?;
                *value = product.checked_sub(times.checked_mul(*of)?)? / before;
            }
        }
        before = row[at];
    }
    let sign = before.signum();
    let common = rows[..n].iter().fold(0, |all, row| gcd(all, row[n].unsigned_abs()));
    let weight = |row: &Vec<i128>| {
        let amount = row[n].checked_mul(sign).filter(|amount| *amount >= 0)?;
        u64::try_from(amount.unsigned_abs().checked_div(common)?).ok()
    };
    let weights: Option<Vec<u64>> = rows[..n].iter().map(weight).collect();
    let fits = |weights: &Vec<u64>| {
        weights.iter().map(|weight| u128::from(*weight)).sum::<u128>() < 1 << 48
    };
    weights.filter(fits)
}

/// Hangs a tree from the rank in its middle.
fn hang(wires: &Wires, column: &Column, weight: u64) -> WeightedTree {
    let mut neighbors = vec![Vec::new(); wires.nranks];
    for (a, b, [there, back]) in &column.edges {
        neighbors[*a].push((*b, there, back));
        neighbors[*b].push((*a, back, there));
    }
    let route = |wires_of: &[usize]| {
        let ends = wires_of[1..].iter().map(|wire| NodeId(wires.ends[*wire].0));
        vec![Route { through: ends.collect(), weight }]
    };
    let from = |root: usize| {
        let mut parent = vec![None; wires.nranks];
        let (mut routes, mut ups) =
            (vec![Vec::new(); wires.nranks], vec![Vec::new(); wires.nranks]);
        let mut open = vec![root];
        while let Some(rank) = open.pop() {
            for (child, there, back) in &neighbors[rank] {
                if parent[rank] != Some(RankId(*child as u32)) {
                    parent[*child] = Some(RankId(rank as u32));
                    (routes[*child], ups[*child]) = (route(there), route(back));
                    open.push(*child);
                }
            }
        }
        let tree = SpanningTree { root: RankId(root as u32), parent };
        WeightedTree { tree, weight, routes, back: ups }
    };
    let all = (0..wires.nranks).map(from);
    all.min_by_key(|tree| tree.tree.depth()).unwrap_or_else(|| from(0))
}
