//! Packs trees into edges between ranks (Edmonds; Lovasz; Berczi and Frank), several equal ones at a time.
//!
//! A set of ranks needs, of every tree that has no rank in it yet, one edge into it. An edge may join a tree as long
//! as all sets keep what the other trees need; the flow to the end of the edge, from its begin and from all other
//! trees, tells how often it may. There always is an edge that may, so nothing is ever taken back.

use std::collections::VecDeque;

use super::switches::Edge;
use super::{Problem, bug};
use roundelay_topology::flow::{Network, UNLIMITED};

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
    /// The number of ranks in order whose edges were tried.
    tried: usize,
}

impl Batch {
    fn new(root: usize, nranks: usize, weight: u64) -> Self {
        let mut joined = vec![false; nranks];
        joined[root] = true;
        Self { root, edge: vec![NONE; nranks], weight, order: vec![root], joined, tried: 0 }
    }

    /// The ranks other than the root, with their edges, parents first.
    pub(super) fn edges(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> {
        self.order[1..].iter().map(|rank| (*rank, self.edge[*rank]))
    }

    /// Puts parents first again, when ranks have got other edges.
    pub(super) fn sort(&mut self, edges: &[Edge]) {
        let mut children = vec![Vec::new(); self.edge.len()];
        for (rank, edge) in self.edges() {
            children[edges[edge].from].push(rank);
        }
        self.order.truncate(1);
        let mut next = 0;
        while let Some(rank) = self.order.get(next) {
            self.order.extend_from_slice(&children[*rank]);
            next += 1;
        }
    }
}

/// Returns batches of trees that span all ranks, of the weight in `trees` for each root. All grow by a level in turn, so
/// that none gets only what others have left.
pub(super) fn pack(
    edges: &[Edge],
    nranks: usize,
    roots: &[usize],
    trees: &[u64],
) -> Result<Vec<Batch>, Problem> {
    let mut packing = Packing::new(edges, nranks);
    let all = roots.iter().zip(trees).filter(|(_, weight)| **weight > 0);
    packing.others = all.map(|(root, weight)| Batch::new(*root, nranks, *weight)).collect();
    let mut done = Vec::new();
    while let Some(batch) = packing.others.pop_front() {
        let batch = packing.level(batch)?;
        if batch.order.len() == nranks {
            done.push(batch);
        } else {
            packing.others.push_back(batch);
        }
    }
    done.sort_by_key(|batch| batch.root);
    Ok(done)
}

struct Packing<'e> {
    edges: &'e [Edge],
    nranks: usize,
    room: Vec<u64>,
    /// The edges from each rank, the best first.
    out: Vec<Vec<usize>>,
    /// The batches that wait for their turn.
    others: VecDeque<Batch>,
    /// The edges in order, then an arc from the source to each rank, then the others that have more ranks.
    network: Network,
    /// The weight of the others that only have this rank, their root.
    waiting: Vec<u64>,
    /// Sets of ranks whose edges inwards are all for batches that have no rank in them.
    full: Vec<Vec<bool>>,
}

impl<'e> Packing<'e> {
    fn new(edges: &'e [Edge], nranks: usize) -> Self {
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
            others: VecDeque::new(),
            network: Network::new(0),
            waiting: Vec::new(),
            full: Vec::new(),
        }
    }

    /// Makes the network of what is left for a batch.
    fn network(&mut self) {
        let source = self.nranks;
        let mut network = Network::new(self.nranks + 1 + self.others.len());
        for (edge, room) in self.edges.iter().zip(&self.room) {
            network.arc(edge.from, edge.to, (*room).into());
        }
        let (begun, waiting): (Vec<_>, Vec<_>) =
            self.others.iter().partition(|batch| batch.order.len() > 1);
        self.waiting = vec![0; self.nranks];
        for batch in waiting {
            self.waiting[batch.root] += batch.weight;
        }
        for (rank, waiting) in self.waiting.iter().enumerate() {
            network.arc(source, rank, (*waiting).into());
        }
        for (batch, node) in begun.into_iter().zip(source + 1..) {
            network.arc(source, node, batch.weight.into());
            for rank in &batch.order {
                network.arc(node, *rank, UNLIMITED);
            }
        }
        self.network = network;
    }

    /// Joins ranks to a batch by the edges of those that have joined. Where none of these takes all of its trees, the
    /// batch is split by an edge that takes some.
    fn level(&mut self, mut batch: Batch) -> Result<Batch, Problem> {
        self.network();
        let end = batch.order.len();
        if batch.tried < end {
            for at in batch.tried..end {
                let from = batch.order[at];
                for at in 0..self.out[from].len() {
                    let edge = self.out[from][at];
                    if self.most(&batch, edge) == batch.weight {
                        let all = batch.weight;
                        self.take(&mut batch, edge, all);
                    }
                }
            }
            batch.tried = end;
            return Ok(batch);
        }
        for at in 0..end {
            let from = batch.order[at];
            for at in 0..self.out[from].len() {
                let edge = self.out[from][at];
                let taken = self.most(&batch, edge);
                if taken > 0 {
                    if taken < batch.weight {
                        let weight = batch.weight - taken;
                        self.others.push_back(Batch { weight, ..batch.clone() });
                        batch.weight = taken;
                    }
                    self.take(&mut batch, edge, taken);
                    return Ok(batch);
                }
            }
        }
        Err(bug())
    }

    /// Returns how many trees of a batch an edge may join.
    fn most(&mut self, batch: &Batch, edge: usize) -> u64 {
        let Edge { from, to, .. } = self.edges[edge];
        let barred =
            |set: &Vec<bool>| set[to] && !set[from] && batch.order.iter().any(|rank| set[*rank]);
        if batch.joined[to] || self.room[edge] == 0 || self.full.iter().any(barred) {
            return 0;
        }
        let others: u64 = self.others.iter().map(|batch| batch.weight).sum();
        let wanted = batch.weight.min(self.room[edge]);
        let (source, arc) = (self.nranks, 2 * (self.edges.len() + from));
        self.network.set(arc, UNLIMITED);
        let flow = self.network.max_flow(source, to, u128::from(others + wanted));
        let most = flow.saturating_sub(others.into()) as u64;
        if most == 0 {
            let reached = self.network.reach(source);
            self.full.push((0..self.nranks).map(|rank| !reached[rank]).collect());
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
