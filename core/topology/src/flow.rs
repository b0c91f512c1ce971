//! Exact maximum flows: Dinic's algorithm on whole numbers, and the cut that limits a flow.

use super::Fabric;
use roundelay_base::rational::Rat;

/// A network of arcs with whole capacities.
#[derive(Clone, Debug)]
pub struct Network {
    /// An arc and its reverse are adjacent, at even and odd positions.
    arcs: Vec<Arc>,
    out: Vec<Vec<u32>>,
    level: Vec<u32>,
    next: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Arc {
    to: u32,
    capacity: u128,
    left: u128,
}

/// A capacity above any flow: sums of capacities stay below.
pub const UNLIMITED: u128 = u128::MAX >> 8;

impl Network {
    /// A network of `nodes` nodes without arcs.
    pub fn new(nodes: usize) -> Self {
        let out = vec![Vec::new(); nodes];
        Self { arcs: Vec::new(), out, level: vec![0; nodes], next: vec![0; nodes] }
    }

    /// Adds an arc and returns its number.
    pub fn arc(&mut self, from: usize, to: usize, capacity: u128) -> usize {
        let id = self.arcs.len();
        for (to, capacity, at) in [(to, capacity, from), (from, 0, to)] {
            self.out[at].push(self.arcs.len() as u32);
            self.arcs.push(Arc { to: to as u32, capacity, left: capacity });
        }
        id
    }

    /// Changes the capacity of an arc.
    pub fn set(&mut self, arc: usize, capacity: u128) {
        self.arcs[arc].capacity = capacity;
    }

    /// The flow over an arc.
    pub fn flow(&self, arc: usize) -> u128 {
        self.arcs[arc].capacity.saturating_sub(self.arcs[arc].left)
    }

    /// Removes all flow.
    pub fn clear(&mut self) {
        for arc in &mut self.arcs {
            arc.left = arc.capacity;
        }
    }

    /// Returns the greatest flow from `source` to `sink`, up to `enough`. The earlier flow is removed.
    pub fn max_flow(&mut self, source: usize, sink: usize, enough: u128) -> u128 {
        self.clear();
        let mut flow = 0;
        while flow < enough && self.levels(source, sink) {
            self.next.fill(0);
            while flow < enough {
                match self.augment(source, sink, enough - flow) {
                    0 => break,
                    more => flow += more,
                }
            }
        }
        flow
    }

    /// Computes the distance of each node over arcs that are not full. Returns whether `sink` is reached.
    fn levels(&mut self, source: usize, sink: usize) -> bool {
        self.level.fill(u32::MAX);
        self.level[source] = 0;
        let mut order = vec![source];
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            at += 1;
            for &id in &self.out[node] {
                let Arc { to, left, .. } = self.arcs[id as usize];
                if left > 0 && self.level[to as usize] == u32::MAX {
                    self.level[to as usize] = self.level[node] + 1;
                    if to as usize == sink {
                        return true;
                    }
                    order.push(to as usize);
                }
            }
        }
        false
    }

    /// Adds one more path, without recursion: a topology may be a line of thousands of nodes.
    fn augment(&mut self, source: usize, sink: usize, most: u128) -> u128 {
        let mut path: Vec<u32> = Vec::new();
        let mut node = source;
        while node != sink {
            let open = |network: &Self, id: u32| {
                let Arc { to, left, .. } = network.arcs[id as usize];
                left > 0 && network.level[to as usize] == network.level[node] + 1
            };
            let from = self.next[node];
            let found = self.out[node][from..].iter().position(|id| open(self, *id));
            match found {
                Some(skipped) => {
                    self.next[node] = from + skipped;
                    let id = self.out[node][from + skipped];
                    path.push(id);
                    node = self.arcs[id as usize].to as usize;
                }
                None => {
                    let Some(id) = path.pop() else { return 0 };
                    node = self.arcs[id as usize ^ 1].to as usize;
                    self.next[node] += 1;
                }
            }
        }
        let narrowest = path.iter().map(|id| self.arcs[*id as usize].left).min().unwrap_or(0);
        let flow = narrowest.min(most);
        for id in path {
            self.arcs[id as usize].left -= flow;
            self.arcs[id as usize ^ 1].left += flow;
        }
        flow
    }

    /// Returns the nodes that arcs with room reach from `source`: one side of a least cut, after a flow.
    pub fn reach(&mut self, source: usize) -> Vec<bool> {
        self.levels(source, source);
        self.level.iter().map(|level| *level != u32::MAX).collect()
    }
}

/// The greatest common divisor; of 0 and a number, that number.
pub fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the capacities of a topology as whole numbers: the number that makes 1 byte a second (or 1 B), and the
/// number of each link.
pub fn whole(topology: &Fabric) -> (u128, Vec<u128>) {
    // Denominators come from the oversubscription of one tier, so their common multiple is one of them.
    let unit = topology.links().iter().fold(1_u128, |unit, link| {
        let den = u128::from(link.capacity.den());
        unit / gcd(unit, den) * den
    });
    let scaled = |c: Rat| u128::from(c.num()) * (unit / u128::from(c.den()));
    (unit, topology.links().iter().map(|l| scaled(l.capacity)).collect())
}
