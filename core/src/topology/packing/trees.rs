//! Packs trees into edges between ranks (Edmonds; Lovasz; Berczi and Frank), several equal ones at a time.
//!
//! A set of ranks needs, of every tree that has no rank in it yet, one edge into it. An edge may join a tree as long
//! as all sets keep what the other trees need; the flow to the end of the edge, from its begin and from all other
//! trees, tells how often it may. There always is an edge that may, so nothing is ever taken back.

use super::switches::Edge;
use super::{Problem, bug};
use crate::topology::flow::{Network, UNLIMITED};

/// Marks the absence of an edge.
const NONE: usize = usize::MAX;

/// Equal trees that grow together.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) root: usize,
    /// The edge to each rank that has joined.
    pub(super) edge: Vec<usize>,
    pub(super) weight: u64,
    /// The ranks that have joined, in their order.
    order: Vec<usize>,
    joined: Vec<bool>,
}

impl Batch {
    fn new(root: usize, nranks: usize, weight: u64) -> Self {
        let mut joined = vec![false; nranks];
        joined[root] = true;
        Self { root, edge: vec![NONE; nranks], weight, order: vec![root], joined }
    }

    /// The ranks other than the root, with their edges, in the order in which they joined.
    pub(super) fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.order[1..].iter().map(|rank| (*rank, self.edge[*rank]))
    }
}

/// Returns batches of trees that span all ranks, of weight `trees` for each root.
pub(super) fn pack(
    edges: &[Edge],
    nranks: usize,
    roots: &[usize],
    trees: u64,
) -> Result<Vec<Batch>, Problem> {
    let mut packing = Packing::new(edges, nranks, roots, trees);
    let mut done = Vec::new();
    for &root in roots {
        packing.waiting[root] = 0;
        packing.halves.push(Batch::new(root, nranks, trees));
        while let Some(batch) = packing.halves.pop() {
            done.push(packing.grow(batch)?);
        }
    }
    Ok(done)
}

struct Packing<'e> {
    edges: &'e [Edge],
    nranks: usize,
    room: Vec<u64>,
    /// The edges from each rank, the best first.
    out: Vec<Vec<usize>>,
    /// The weight of the trees of each root that have not begun.
    waiting: Vec<u64>,
    /// Batches that have begun and wait.
    halves: Vec<Batch>,
    /// The edges in order, then an arc from the source to each rank, then the halves.
    network: Network,
}

impl<'e> Packing<'e> {
    fn new(edges: &'e [Edge], nranks: usize, roots: &[usize], trees: u64) -> Self {
        let mut waiting = vec![0; nranks];
        for root in roots {
            waiting[*root] = trees;
        }
        let mut out = vec![Vec::new(); nranks];
        for (at, edge) in edges.iter().enumerate() {
            out[edge.from].push(at);
        }
        for (from, row) in out.iter_mut().enumerate() {
            // Neighbors first; from each rank in another order, so that not all trees go through one.
            let turn = |to: usize| (to + nranks - from) % nranks;
            row.sort_by_key(|at| (edges[*at].ways.shortest(), turn(edges[*at].to)));
        }
        Self {
            edges,
            nranks,
            room: edges.iter().map(|edge| edge.room).collect(),
            out,
            waiting,
            halves: Vec::new(),
            network: Network::new(0),
        }
    }

    /// Makes the network of what is left for a batch.
    fn network(&mut self) {
        let source = self.nranks;
        let mut network = Network::new(self.nranks + 1 + self.halves.len());
        for (edge, room) in self.edges.iter().zip(&self.room) {
            network.arc(edge.from, edge.to, (*room).into());
        }
        for (rank, waiting) in self.waiting.iter().enumerate() {
            network.arc(source, rank, (*waiting).into());
        }
        for (half, node) in self.halves.iter().zip(source + 1..) {
            network.arc(source, node, half.weight.into());
            for rank in &half.order {
                network.arc(node, *rank, UNLIMITED);
            }
        }
        self.network = network;
    }

    /// Joins ranks to a batch, breadth first, until it spans; splits it where an edge takes only some of its trees.
    fn grow(&mut self, mut batch: Batch) -> Result<Batch, Problem> {
        self.network();
        // Sets of ranks that no more edges of this batch may enter.
        let mut full: Vec<Vec<bool>> = Vec::new();
        while batch.order.len() < self.nranks {
            let before = batch.order.len();
            let mut part = None;
            let mut next = 0;
            while let Some(&from) = batch.order.get(next) {
                next += 1;
                for at in 0..self.out[from].len() {
                    let edge = self.out[from][at];
                    let to = self.edges[edge].to;
                    let barred = |set: &Vec<bool>| set[to] && !set[from];
                    if batch.joined[to] || self.room[edge] == 0 || full.iter().any(barred) {
                        continue;
                    }
                    let taken = self.most(&batch, edge, &mut full);
                    if taken == batch.weight {
                        self.take(&mut batch, edge, taken);
                    } else if taken > 0 && part.is_none() {
                        part = Some((edge, taken));
                    }
                }
            }
            if batch.order.len() > before {
                continue;
            }
            let (edge, taken) = part.ok_or_else(bug)?;
            let rest = Batch { weight: batch.weight - taken, ..batch.clone() };
            self.halves.push(rest);
            batch.weight = taken;
            self.take(&mut batch, edge, taken);
            self.network();
        }
        Ok(batch)
    }

    /// Returns how many trees of a batch an edge may join.
    fn most(&mut self, batch: &Batch, edge: usize, full: &mut Vec<Vec<bool>>) -> u64 {
        let Edge { from, to, .. } = self.edges[edge];
        let waiting = self.waiting.iter().chain(self.halves.iter().map(|half| &half.weight));
        let others: u64 = waiting.sum();
        let wanted = batch.weight.min(self.room[edge]);
        let (source, arc) = (self.nranks, 2 * (self.edges.len() + from));
        self.network.set(arc, UNLIMITED);
        let flow = self.network.max_flow(source, to, u128::from(others + wanted));
        let most = flow.saturating_sub(others.into()) as u64;
        if most == 0 {
            let reached = self.network.reached(source);
            full.push((0..self.nranks).map(|rank| !reached[rank]).collect());
        }
        self.network.set(arc, self.waiting[from].into());
        most
    }

    fn take(&mut self, batch: &mut Batch, edge: usize, taken: u64) {
        let to = self.edges[edge].to;
        batch.edge[to] = edge;
        batch.joined[to] = true;
        batch.order.push(to);
        self.room[edge] -= taken;
        self.network.set(2 * edge, self.room[edge].into());
    }
}
