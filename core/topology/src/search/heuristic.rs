//! Rings through too many ranks for a table of their sets: covers of several rings patched into one, and paths
//! rotated until they close (Karp's patching, Posa's rotations).
//!
//! Every pseudorandom number comes from a fixed seed, and every loop has a budget of steps.

use super::cover;
use super::pairs::{Pairs, members};
use roundelay_base::ids::RankId;

/// The number of covers that are patched before paths are rotated.
const COVERS: u32 = 16;

/// Pseudorandom numbers that are equal on all machines: xorshift64*.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub(super) const fn new() -> Self {
        Self::from_seed(0)
    }

    /// Makes dice whose numbers follow from `seed`.
    pub const fn from_seed(seed: u64) -> Self {
        Self(0x9E37_79B9_7F4A_7C15 ^ seed.wrapping_mul(0xBF58_476D_1CE4_E5B9))
    }

    /// Returns a number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    /// Puts items in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// Returns a ring that starts with rank 0. Fails with the number of steps used, `steps` or somewhat more.
pub(super) fn ring(pairs: &Pairs, steps: u64) -> Result<Vec<RankId>, u64> {
    let mut dice = Dice::new();
    let mut left = steps;
    let symmetric = pairs.is_symmetric();
    let mut order: Vec<_> = pairs.ranks().collect();
    for _ in 0..COVERS {
        let Ok(cover) = cover::successors(pairs, &order) else { break };
        if let Some(ring) = Patch::new(pairs, cover, symmetric).one(&mut left) {
            return Ok(from_zero(ring));
        }
        dice.shuffle(&mut order);
        if left < steps / 2 {
            break;
        }
    }
    while symmetric && left > 0 {
        if let Some(ring) = Rotation::new(pairs, &mut dice).turn(&mut dice, &mut left) {
            return Ok(from_zero(ring));
        }
    }
    Err(steps - left)
}

/// Rotates the ring until rank 0 is in front.
pub(super) fn from_zero(mut ring: Vec<RankId>) -> Vec<RankId> {
    let zero = ring.iter().position(|r| r.0 == 0).unwrap_or(0);
    ring.rotate_left(zero);
    ring
}

/// Several rings that together pass through every rank once.
struct Patch<'a> {
    pairs: &'a Pairs,
    symmetric: bool,
    next: Vec<RankId>,
    before: Vec<RankId>,
    /// The ring of each rank.
    ring: Vec<u32>,
    size: Vec<u32>,
}

impl<'a> Patch<'a> {
    fn new(pairs: &'a Pairs, next: Vec<RankId>, symmetric: bool) -> Self {
        let mut before = vec![RankId(0); next.len()];
        for rank in pairs.ranks() {
            before[next[rank.index()].index()] = rank;
        }
        let unset = u32::MAX;
        let mut patch = Self {
            pairs,
            symmetric,
            next,
            before,
            ring: vec![unset; pairs.nranks() as usize],
            size: Vec::new(),
        };
        for rank in pairs.ranks() {
            if patch.ring[rank.index()] == unset {
                let size = patch.relabel(rank, patch.size.len() as u32);
                patch.size.push(size);
            }
        }
        patch
    }

    /// Gives the ring through `start` a number, and returns its size.
    fn relabel(&mut self, start: RankId, ring: u32) -> u32 {
        let (mut at, mut size) = (start, 0);
        loop {
            self.ring[at.index()] = ring;
            size += 1;
            at = self.next[at.index()];
            if at == start {
                return size;
            }
        }
    }

    /// Reverses the ring through `start`.
    fn reverse(&mut self, start: RankId) {
        let mut at = start;
        loop {
            let next = self.next[at.index()];
            self.next[at.index()] = self.before[at.index()];
            self.before[at.index()] = next;
            at = next;
            if at == start {
                return;
            }
        }
    }

    /// Joins rings where two hops of two rings can be exchanged, until one is left.
    fn one(mut self, left: &mut u64) -> Option<Vec<RankId>> {
        let mut rings = self.size.len();
        let mut joined = true;
        while rings > 1 && joined && *left > 0 {
            joined = false;
            for a in self.pairs.ranks() {
                for to in self.pairs.out(a) {
                    *left = left.saturating_sub(1);
                    if self.join(a, to, left) {
                        rings -= 1;
                        joined = true;
                    }
                }
            }
        }
        let mut order = vec![RankId(0)];
        while rings == 1 && order.len() < self.next.len() {
            order.push(self.next[order[order.len() - 1].index()]);
        }
        (rings == 1).then_some(order)
    }

    /// Joins the ring of `a` and the ring of `to` by letting `a` send to `to`.
    fn join(&mut self, a: RankId, to: RankId, left: &mut u64) -> bool {
        let (mine, theirs) = (self.ring[a.index()], self.ring[to.index()]);
        if mine == theirs {
            return false;
        }
        let after = self.next[a.index()];
        if !self.pairs.has(self.before[to.index()], after) {
            if !(self.symmetric && self.pairs.has(self.next[to.index()], after)) {
                return false;
            }
            *left = left.saturating_sub(u64::from(self.size[theirs as usize]));
            self.reverse(to);
        }
        let end = self.before[to.index()];
        (self.next[a.index()], self.before[to.index()]) = (to, a);
        (self.next[end.index()], self.before[after.index()]) = (after, end);
        let (keep, drop) = if self.size[mine as usize] < self.size[theirs as usize] {
            (theirs, mine)
        } else {
            (mine, theirs)
        };
        let start = if drop == theirs { (to, end) } else { (after, a) };
        let mut at = start.0;
        self.ring[at.index()] = keep;
        while at != start.1 {
            at = self.next[at.index()];
            self.ring[at.index()] = keep;
        }
        *left = left.saturating_sub(u64::from(self.size[drop as usize]));
        self.size[keep as usize] += self.size[drop as usize];
        true
    }
}

/// A path that grows at its end; where it cannot grow, its part behind a neighbor of the end is reversed.
struct Rotation<'a> {
    pairs: &'a Pairs,
    path: Vec<RankId>,
    /// The position of each rank in the path.
    place: Vec<usize>,
    /// The ranks that are not in the path, as bits.
    open: Vec<u64>,
}

impl<'a> Rotation<'a> {
    fn new(pairs: &'a Pairs, dice: &mut Dice) -> Self {
        let n = pairs.nranks() as usize;
        let all: Vec<_> = pairs.ranks().collect();
        let mut rotation =
            Self { pairs, path: Vec::new(), place: vec![0; n], open: pairs.set(&all) };
        rotation.push(RankId(dice.below(n) as u32));
        rotation
    }

    fn push(&mut self, rank: RankId) {
        self.place[rank.index()] = self.path.len();
        self.path.push(rank);
        self.open[rank.index() / 64] &= !(1 << (rank.index() % 64));
    }

    /// Returns the open neighbors of `rank`, as bits.
    fn ways(&self, rank: RankId) -> impl Iterator<Item = u64> + '_ {
        self.pairs.row(rank).iter().zip(&self.open).map(|(row, open)| row & open)
    }

    fn turn(mut self, dice: &mut Dice, left: &mut u64) -> Option<Vec<RankId>> {
        let n = self.place.len();
        for _ in 0..200 * n {
            let end = self.path[self.path.len() - 1];
            let degree = self.pairs.degree(end) as usize;
            *left = left.saturating_sub((degree * self.open.len()) as u64);
            if *left == 0 {
                return None;
            }
            let open: Vec<_> = self.ways(end).collect();
            let fewest = |r: &RankId| self.ways(*r).map(u64::count_ones).sum::<u32>();
            if let Some(next) = members(&open).min_by_key(fewest) {
                self.push(next);
                continue;
            }
            if self.path.len() == n && self.pairs.has(end, self.path[0]) {
                return Some(self.path);
            }
            let pick = self.pairs.out(end).nth(dice.below(degree.max(1)))?;
            let from = self.place[pick.index()] + 1;
            *left = left.saturating_sub((self.path.len() - from) as u64);
            self.path[from..].reverse();
            for i in from..self.path.len() {
                self.place[self.path[i].index()] = i;
            }
        }
        None
    }
}
