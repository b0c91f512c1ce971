//! Rings that share no link, in either direction, so that each carries its part of the data at full speed.
//!
//! This is separate from the search for one ring: a ring that is taken first may spoil all others, so the rings must
//! be chosen together.

use super::hamilton::{self, OutOfSteps};
use super::heuristic::{self, Dice};
use super::pairs::Pairs;
use roundelay_base::ids::RankId;

/// The most ranks up to which every choice of rings is tried, while steps last.
const EXACT: u32 = 12;
/// The steps of that search.
const STEPS: u32 = 2_000_000;
/// The steps of a search for one ring among the pairs that other rings left over.
const RING_STEPS: u64 = 400_000;
/// The most times that rings are taken one by one, each time in another order.
const TRIES: u64 = 64;
/// The most pairs that all these times examine together.
const WORK: u64 = 100_000_000;

/// The resource that two disjoint rings must not share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisjointBy {
    /// The links between two ranks, in either direction.
    Cables,
    /// A link in its direction: a ring and its reverse are two.
    Links,
}

/// Rings without a common link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disjoint {
    /// The rings, each of which starts with rank 0.
    pub rings: Vec<Vec<RankId>>,
    /// Whether these are all that were asked for, or it is proved that there are no more.
    pub proved: bool,
}

/// Returns up to `k` rings through all ranks that share no link, as many as are found.
pub fn disjoint(pairs: &Pairs, k: usize, mode: DisjointBy) -> Disjoint {
    let first = hamilton::ring(pairs);
    let none = matches!(first, hamilton::RingSearch::None { .. });
    let Some(first) = first.order() else { return Disjoint { rings: Vec::new(), proved: none } };
    let wanted = k.min(bound(pairs, mode));
    let mut best = walecki(pairs, mode);
    best.truncate(wanted);
    if best.is_empty() && wanted > 0 {
        best.push(first);
    }
    let n = u64::from(pairs.nranks());
    let tries = (WORK / (n * n * wanted as u64).max(1)).clamp(1, TRIES);
    let mut dice = Dice::new();
    let mut order: Vec<_> = pairs.ranks().collect();
    for _ in 0..tries {
        if best.len() == wanted {
            break;
        }
        let rings = one_by_one(pairs, wanted, mode, &order);
        if rings.len() > best.len() {
            best = rings;
        }
        dice.shuffle(&mut order);
    }
    while best.len() < wanted && pairs.nranks() <= EXACT {
        match RingSetSearch::new(pairs, best.len() + 1, mode).find() {
            Ok(Some(rings)) => best = rings,
            Ok(None) => return Disjoint { rings: best, proved: true },
            Err(OutOfSteps) => break,
        }
    }
    Disjoint { proved: best.len() == wanted, rings: best }
}

/// Returns an upper bound: each ring leaves and enters every rank once.
fn bound(pairs: &Pairs, mode: DisjointBy) -> usize {
    let least = |graph: &Pairs| graph.ranks().map(|r| graph.degree(r)).min().unwrap_or(0);
    let most = match mode {
        _ if pairs.nranks() <= 2 => 1,
        DisjointBy::Cables => least(&pairs.cables()) / 2,
        DisjointBy::Links => least(pairs).min(least(&pairs.reverse())),
    };
    most as usize
}

/// Removes the links that the ring uses.
fn take(pairs: &mut Pairs, ring: &[RankId], mode: DisjointBy) {
    for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        pairs.forbid(*a, *b);
        if mode == DisjointBy::Cables {
            pairs.forbid(*b, *a);
        }
    }
}

/// Returns Walecki's zigzags, which use up a complete graph, except one neighbor of each rank if the number of ranks
/// is even.
fn walecki(pairs: &Pairs, mode: DisjointBy) -> Vec<Vec<RankId>> {
    let n = pairs.nranks();
    if n < 3 || !pairs.is_complete() {
        return Vec::new();
    }
    let wheel = n - 1;
    let zigzag = |turn: u32| {
        let spoke = move |j: u32| if j % 2 == 1 { j.div_ceil(2) } else { wheel - j / 2 };
        let ring = (0..wheel).map(move |j| RankId(1 + (turn + spoke(j)) % wheel));
        std::iter::once(RankId(0)).chain(ring).collect::<Vec<_>>()
    };
    let mut rings = Vec::new();
    for ring in (0..wheel / 2).map(zigzag) {
        let mut back = ring.clone();
        back[1..].reverse();
        rings.push(ring);
        if mode == DisjointBy::Links {
            rings.push(back);
        }
    }
    rings
}

/// Takes one ring after another from the remaining links, with the ranks renamed by `order`.
fn one_by_one(
    pairs: &Pairs,
    wanted: usize,
    mode: DisjointBy,
    order: &[RankId],
) -> Vec<Vec<RankId>> {
    let mut left = Pairs::all(pairs.nranks(), |a, b| pairs.has(order[a.index()], order[b.index()]));
    let mut rings = Vec::new();
    while rings.len() < wanted
        && let Ok(ring) = heuristic::ring(&left, RING_STEPS)
    {
        take(&mut left, &ring, mode);
        let named = ring.iter().map(|r| order[r.index()]).collect();
        rings.push(heuristic::from_zero(named));
    }
    rings
}

/// The search through all choices of rings. They are in the order of their second ranks, as each uses another.
struct RingSetSearch {
    out: Vec<u32>,
    mode: DisjointBy,
    /// Whether a ring stands for its reverse too.
    mirrored: bool,
    steps: u32,
    wanted: usize,
    path: Vec<RankId>,
    rings: Vec<Vec<RankId>>,
}

impl RingSetSearch {
    fn new(pairs: &Pairs, wanted: usize, mode: DisjointBy) -> Self {
        let mirrored = mode == DisjointBy::Cables && pairs.is_symmetric();
        let path = vec![RankId(0)];
        let out = hamilton::rows(pairs);
        Self { out, mode, mirrored, steps: STEPS, wanted, path, rings: Vec::new() }
    }

    fn find(mut self) -> Result<Option<Vec<Vec<RankId>>>, OutOfSteps> {
        let others = self.others();
        Ok(self.extend(0, others)?.then_some(self.rings))
    }

    fn others(&self) -> u32 {
        (1 << self.out.len()) - 2
    }

    fn extend(&mut self, end: u32, open: u32) -> Result<bool, OutOfSteps> {
        if open == 0 {
            return self.close(end);
        }
        self.steps = self.steps.checked_sub(1).ok_or(OutOfSteps)?;
        if !hamilton::hopeful(&self.out, end, open) {
            return Ok(false);
        }
        let mut choices = self.out[end as usize] & open;
        if let (1, Some(ring)) = (self.path.len(), self.rings.last()) {
            choices &= !((2 << ring[1].0) - 1);
        }
        while choices != 0 {
            let next = choices.trailing_zeros();
            choices &= choices - 1;
            let before = self.use_up(end, next);
            self.path.push(RankId(next));
            if self.extend(next, open & !(1 << next))? {
                return Ok(true);
            }
            self.path.pop();
            self.restore(end, next, before);
        }
        Ok(false)
    }

    fn close(&mut self, end: u32) -> Result<bool, OutOfSteps> {
        let second = self.path.get(1);
        if self.out[end as usize] & 1 == 0 || self.mirrored && second > self.path.last() {
            return Ok(false);
        }
        let before = self.use_up(end, 0);
        self.rings.push(std::mem::replace(&mut self.path, vec![RankId(0)]));
        if self.rings.len() == self.wanted || self.extend(0, self.others())? {
            return Ok(true);
        }
        self.path = self.rings.pop().unwrap_or_default();
        self.restore(end, 0, before);
        Ok(false)
    }

    /// Takes a link, and returns the earlier rows of its ends.
    fn use_up(&mut self, from: u32, to: u32) -> (u32, u32) {
        let before = (self.out[from as usize], self.out[to as usize]);
        self.out[from as usize] &= !(1 << to);
        if self.mode == DisjointBy::Cables {
            self.out[to as usize] &= !(1 << from);
        }
        before
    }

    fn restore(&mut self, from: u32, to: u32, before: (u32, u32)) {
        (self.out[from as usize], self.out[to as usize]) = before;
    }
}
