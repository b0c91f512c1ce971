//! Takes switches out of a network: a wire into a switch and a wire out of it become an edge, as far as all ranks
//! still get everything (Frank; Jackson; Bang-Jensen). Where every switch sends what it receives, nothing is left.
//!
//! A flow of everything to each rank is kept, and mended after a change. If a change by g leaves a flow to some rank
//! short by d, a change by g - d leaves it whole, because every cut loses exactly what the change takes.

use std::collections::{BTreeMap, HashMap};

use super::rate::{Scaled, Wires};
use super::ways::Ways;
use super::{Problem, bug};
use roundelay_topology::NodeId;

/// An edge between two ranks, with its ways through switches.
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) room: u64,
    pub(super) ways: Ways,
}

/// The times that a switch is gone through with even parts, before what is left goes where it can.
const EVEN: u32 = 4;

/// Returns edges between ranks that carry what the wires carry.
pub(super) fn remove(wires: &Wires, scaled: &Scaled) -> Result<Vec<Edge>, Problem> {
    let mut graph = Graph::new(wires, scaled);
    if wires.nodes > wires.nranks {
        graph.feed(wires, scaled)?;
        let mut left: Vec<usize> = (wires.nranks..wires.nodes).collect();
        // Switches among switches first, while they have few wires; then those with the fewest pairs of wires.
        while let Some(at) = (0..left.len()).min_by_key(|at| graph.order(left[*at], wires.nranks)) {
            graph.remove(left.swap_remove(at), wires, &scaled.trees)?;
        }
    }
    let mut edges: Vec<Edge> = Vec::new();
    for ((ends, room), mut ways) in graph.ends.into_iter().zip(graph.room).zip(graph.ways) {
        if room > 0 {
            ways.sort();
            edges.push(Edge { from: ends.0, to: ends.1, room, ways });
        }
    }
    edges.sort_by_key(|edge| (edge.from, edge.to));
    Ok(edges)
}

/// A network that changes, with a flow to each rank.
struct Graph {
    ends: Vec<(usize, usize)>,
    room: Vec<u64>,
    ways: Vec<Ways>,
    at: HashMap<(usize, usize), usize>,
    out: Vec<Vec<usize>>,
    into: Vec<Vec<usize>>,
    /// For each arc, its part of the flow to each rank.
    flow: Vec<Vec<u64>>,
    /// The ranks, those first whose flow was short lately.
    ranks: Vec<usize>,
    /// The arc by which a search came to each node, and whether it went along it; stamped by the search.
    came: Vec<(usize, bool)>,
    seen: Vec<u64>,
    search: u64,
    open: Vec<usize>,
}

impl Graph {
    fn new(wires: &Wires, scaled: &Scaled) -> Self {
        let nodes = wires.nodes;
        let mut graph = Self {
            ends: Vec::new(),
            room: Vec::new(),
            ways: Vec::new(),
            at: HashMap::new(),
            out: vec![Vec::new(); nodes],
            into: vec![Vec::new(); nodes],
            flow: Vec::new(),
            ranks: (0..wires.nranks).collect(),
            came: vec![(0, false); nodes],
            seen: vec![0; nodes],
            search: 0,
            open: Vec::new(),
        };
        for ((from, to), room) in wires.ends.iter().zip(&scaled.room) {
            if *room > 0 {
                let arc = graph.arc(*from as usize, *to as usize);
                (graph.room[arc], graph.ways[arc]) = (*room, Ways::link(*room));
            }
        }
        graph
    }

    /// Returns the arc between two nodes; a new one has no room.
    fn arc(&mut self, from: usize, to: usize) -> usize {
        *self.at.entry((from, to)).or_insert_with(|| {
            let arc = self.ends.len();
            self.ends.push((from, to));
            self.room.push(0);
            self.ways.push(Ways::default());
            self.flow.push(vec![0; self.ranks.len()]);
            self.out[from].push(arc);
            self.into[to].push(arc);
            arc
        })
    }

    /// Finds a flow of everything to each rank.
    fn feed(&mut self, wires: &Wires, scaled: &Scaled) -> Result<(), Problem> {
        for rank in 0..wires.nranks {
            let roots = wires.roots.iter().zip(&scaled.trees);
            for (&root, &trees) in roots.filter(|(root, _)| **root != rank) {
                if self.augment(rank, root, rank, trees) < trees {
                    return Err(bug());
                }
            }
        }
        Ok(())
    }

    /// Sends up to `most` more from one node to another, in the flow to `rank`; returns the amount that was sent.
    fn augment(&mut self, rank: usize, from: usize, to: usize, most: u64) -> u64 {
        let mut sent = 0;
        while sent < most && self.path(rank, from, to) {
            let mut amount = most - sent;
            let mut node = to;
            while node != from {
                let (arc, along) = self.came[node];
                let flow = self.flow[arc][rank];
                amount = amount.min(if along { self.room[arc] - flow } else { flow });
                node = if along { self.ends[arc].0 } else { self.ends[arc].1 };
            }
            node = to;
            while node != from {
                let (arc, along) = self.came[node];
                let flow = &mut self.flow[arc][rank];
                *flow = if along { *flow + amount } else { *flow - amount };
                node = if along { self.ends[arc].0 } else { self.ends[arc].1 };
            }
            sent += amount;
        }
        sent
    }

    /// Finds a shortest path with room.
    fn path(&mut self, rank: usize, from: usize, to: usize) -> bool {
        self.search += 1;
        self.seen[from] = self.search;
        self.open.clear();
        self.open.push(from);
        let mut next = 0;
        while let Some(&node) = self.open.get(next) {
            next += 1;
            for along in [true, false] {
                for &arc in if along { &self.out[node] } else { &self.into[node] } {
                    let flow = self.flow[arc][rank];
                    let (open, end) = if along {
                        (flow < self.room[arc], self.ends[arc].1)
                    } else {
                        (flow > 0, self.ends[arc].0)
                    };
                    if open && self.seen[end] != self.search {
                        self.seen[end] = self.search;
                        self.came[end] = (arc, along);
                        if end == to {
                            return true;
                        }
                        self.open.push(end);
                    }
                }
            }
        }
        false
    }

    /// Mends the flow to `rank` where an arc of a change has more than its room; returns the shortage.
    fn mend(&mut self, rank: usize, change: &Change) -> u64 {
        let over = |graph: &Self, arc: usize| graph.flow[arc][rank].saturating_sub(graph.room[arc]);
        let spare =
            |graph: &Self, arc: usize| graph.room[arc].saturating_sub(graph.flow[arc][rank]);
        let Change { first, second, edge } = *change;
        if let Some(edge) = edge {
            // Most often the flow takes the new way, or goes back to the old one.
            let flow = self.flow[first][rank].min(self.flow[second][rank]).min(spare(self, edge));
            let there = over(self, first).max(over(self, second)).min(flow);
            let room = spare(self, first).min(spare(self, second));
            let back = over(self, edge).min(room);
            for arc in [first, second] {
                self.flow[arc][rank] = self.flow[arc][rank] + back - there;
            }
            self.flow[edge][rank] = self.flow[edge][rank] + there - back;
        }
        for arc in [Some(first), Some(second), edge].into_iter().flatten() {
            let excess = over(self, arc);
            if excess == 0 {
                continue;
            }
            self.flow[arc][rank] -= excess;
            let (from, to) = self.ends[arc];
            let short = excess - self.augment(rank, from, to, excess);
            if short > 0 {
                self.flow[arc][rank] += short;
                return short;
            }
        }
        0
    }

    /// The order in which a switch is removed.
    fn order(&self, switch: usize, nranks: usize) -> (usize, usize) {
        let ranks = self.out[switch].iter().filter(|arc| self.ends[**arc].1 < nranks).count();
        (usize::from(ranks > 0), self.into[switch].len() * self.out[switch].len())
    }

    /// Returns how much of each pair of arcs at a switch all trees use if each root sends to all ranks itself, over
    /// shortest paths: the shallowest trees. Less, where that is more than an arc carries; nothing, where ranks have to
    /// forward.
    fn direct(&self, switch: usize, wires: &Wires, trees: &[u64]) -> Vec<(usize, usize, u64)> {
        let mut turns: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        let mut load = vec![0.0; self.ends.len()];
        for (&root, &trees) in wires.roots.iter().zip(trees).filter(|(_, trees)| **trees > 0) {
            let mut hops = vec![usize::MAX; wires.nodes];
            let mut came = vec![Vec::new(); wires.nodes];
            let mut order = vec![root];
            hops[root] = 0;
            let mut next = 0;
            while let Some(&node) = order.get(next) {
                next += 1;
                if node < wires.nranks && node != root {
                    continue;
                }
                for &arc in self.out[node].iter().filter(|arc| self.room[**arc] > 0) {
                    let to = self.ends[arc].1;
                    if hops[to] == usize::MAX {
                        hops[to] = hops[node] + 1;
                        order.push(to);
                    }
                    if hops[to] == hops[node] + 1 {
                        came[to].push(arc);
                    }
                }
            }
            if hops[..wires.nranks].contains(&usize::MAX) {
                return Vec::new();
            }
            let mut passes = vec![0.0; wires.nodes];
            let (mut there, mut on) = (Vec::new(), Vec::new());
            for &node in order[1..].iter().rev() {
                let amount = passes[node] + if node < wires.nranks { trees as f64 } else { 0.0 };
                let all: f64 = came[node].iter().map(|arc| self.room[*arc] as f64).sum();
                for &arc in &came[node] {
                    let part = self.room[arc] as f64 / all;
                    passes[self.ends[arc].0] += amount * part;
                    if node == switch {
                        there.push((arc, part));
                    } else if self.ends[arc].0 == switch {
                        on.push((arc, amount * part));
                    }
                }
            }
            for (first, part) in there {
                for (second, amount) in &on {
                    *turns.entry((first, *second)).or_default() += part * amount;
                    load[first] += part * amount;
                    load[*second] += part * amount;
                }
            }
        }
        let fits = |arc: usize| (self.room[arc] as f64 / load[arc]).min(1.0);
        let amount = |first: usize, second: usize, amount: f64| {
            // An amount that is whole but for the last digits is not rounded up.
            (amount * fits(first).min(fits(second)) - 1e-6).ceil() as u64
        };
        let turns = turns.into_iter();
        turns.map(|((first, second), part)| (first, second, amount(first, second, part))).collect()
    }

    fn remove(&mut self, switch: usize, wires: &Wires, trees: &[u64]) -> Result<(), Problem> {
        let (into, out) = (self.into[switch].clone(), self.out[switch].clone());
        let room = |graph: &Self, arc: usize| u128::from(graph.room[arc]);
        let total: u128 = into.iter().map(|arc| room(self, *arc)).sum();
        let back: HashMap<usize, u128> =
            into.iter().map(|arc| (self.ends[*arc].0, room(self, *arc))).collect();
        // In the order of a Latin square, so that no node takes all.
        let mut pairs = Vec::new();
        for turn in 0..out.len() {
            for (at, &first) in into.iter().enumerate() {
                let second = out[(at + turn) % out.len()];
                let to = self.ends[second].1;
                if self.ends[first].0 != to {
                    // A node's part of what comes from all others.
                    let others = total - back.get(&to).copied().unwrap_or(0);
                    let part = room(self, first) * room(self, second) / others.max(1);
                    pairs.push((first, second, part.max(1) as u64));
                }
            }
        }
        for (first, second, part) in self.direct(switch, wires, trees) {
            self.split(switch, first, second, part)?;
        }
        for _ in 0..EVEN {
            for (first, second, part) in &pairs {
                self.split(switch, *first, *second, *part)?;
            }
        }
        let mut some = true;
        while some {
            some = false;
            for (first, second, _) in &pairs {
                some |= self.split(switch, *first, *second, u64::MAX)? > 0;
            }
            // A link of a node to itself is of no use.
            for &first in &into {
                let own = |second: &&usize| self.ends[**second].1 == self.ends[first].0;
                if let Some(&second) = out.iter().find(own) {
                    some |= self.split(switch, first, second, u64::MAX)? > 0;
                }
            }
        }
        if into.iter().chain(&out).any(|arc| self.room[*arc] > 0) {
            return Err(bug());
        }
        for arc in into {
            self.out[self.ends[arc].0].retain(|other| *other != arc);
        }
        for arc in out {
            self.into[self.ends[arc].1].retain(|other| *other != arc);
        }
        self.into[switch].clear();
        self.out[switch].clear();
        Ok(())
    }

    /// Makes an edge of two arcs, of up to `most`; returns the amount.
    fn split(
        &mut self,
        switch: usize,
        first: usize,
        second: usize,
        most: u64,
    ) -> Result<u64, Problem> {
        let mut amount = self.room[first].min(self.room[second]).min(most);
        if amount == 0 {
            return Ok(0);
        }
        let (from, to) = (self.ends[first].0, self.ends[second].1);
        let edge = (from != to).then(|| self.arc(from, to));
        let change = Change { first, second, edge };
        self.room[first] -= amount;
        self.room[second] -= amount;
        if let Some(edge) = edge {
            self.room[edge] += amount;
        }
        let mut at = 0;
        while let Some(&rank) = self.ranks.get(at) {
            let short = self.mend(rank, &change);
            at += 1;
            if short > 0 {
                let less = short.min(amount);
                if less == 0 {
                    return Err(bug());
                }
                self.room[first] += less;
                self.room[second] += less;
                if let Some(edge) = edge {
                    self.room[edge] -= less;
                }
                amount -= less;
                self.ranks[..at].rotate_right(1);
                at = 0;
            }
        }
        if let Some(edge) = edge {
            let (to, from) = (self.ways[first].take(amount), self.ways[second].take(amount));
            let switch = NodeId(switch as u32);
            self.ways[edge].join(to, switch, from);
        } else {
            self.ways[first].take(amount);
            self.ways[second].take(amount);
        }
        Ok(amount)
    }
}

/// Two arcs that lose room, and the edge that gets it.
struct Change {
    first: usize,
    second: usize,
    edge: Option<usize>,
}
