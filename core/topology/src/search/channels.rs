//! Channels as NCCL searches them: rings that may share links, each with a speed, as many as the links carry. The
//! highest speed is tried first; a channel's speed is subtracted along its paths.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::{one_switch, ring_around};
use crate::paths::{self, Path, PathType};
use crate::{Fabric, NodeId, NodeKind, Problem};
use roundelay_base::ids::RankId;
use roundelay_base::rational::Rat;

/// The most ranks up to which channels are searched where not all ranks are on one switch; beyond, there is one ring.
pub const SEARCHED: u32 = 64;
/// The most channels of a search, also after they are doubled.
const MOST: u64 = 32;
/// Expansions of one try where all channels are equal, of one try where they may differ, and of all tries.
const STEPS: [u32; 3] = [256, 1 << 14, 1 << 19];
/// The least speed of channels that are doubled, at half of it, in bytes a second.
const DOUBLED: Rat = Rat::whole(25_000_000_000);
/// Beyond this capability, more channels than this number are doubled only from this speed on.
const RARELY: (u32, usize, Rat) = (80, 4, Rat::whole(50_000_000_000));
/// A speed of at most this many hundredths of the best one is not tried.
const WORTH: u64 = 49;
/// The unit of the lists of speeds, in bytes a second.
const UNIT: u64 = 10_000_000;
/// NCCL's speeds below capability 90, from 90 and from 100 on, for searches in which all ranks are in one machine:
/// that of a file. Its speeds for searches across machines do not apply, even if the file has network cards.
const SPEEDS: [&[u64]; 3] = [
    &[4000, 3000, 2000, 1800, 1500, 1200, 1000, 900, 700, 600, 500, 400, 300],
    &[6000, 5000, 4000, 3000, 2400, 2000, 1500, 1200, 1100, 600, 300],
    &[9000, 8000, 7000, 6000, 5000, 4500, 4000, 3000, 2400, 2000, 1900, 1800],
];

/// The result of a search for channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channels {
    /// The ranks of each channel in order, each sending to the next and the last to the first.
    pub orders: Vec<Vec<RankId>>,
    /// The speed of each: bytes a second, or multiples of B.
    pub speed: Rat,
    /// The worst kind of path that was allowed.
    pub kind: PathType,
    /// Whether all channels were forced to one order.
    pub same: bool,
    /// Whether the search found none, so that this is one ring at the speed that its links allow.
    pub fallback: bool,
}

impl Channels {
    /// The sum of all speeds, if that is in range.
    pub fn total(&self) -> Option<Rat> {
        times(self.speed, Rat::whole(self.orders.len() as u64))
    }
}

fn times(a: Rat, b: Rat) -> Option<Rat> {
    Rat::new(a.num().checked_mul(b.num())?, a.den().checked_mul(b.den())?)
}

/// Returns the number of times that `speed` fits into `capacity`.
fn fit(capacity: Rat, speed: Rat) -> u64 {
    let whole = u128::from(capacity.num()) * u128::from(speed.den());
    let part = (u128::from(capacity.den()) * u128::from(speed.num())).max(1);
    u64::try_from(whole / part).unwrap_or(u64::MAX)
}

/// Returns the speeds to try, highest first: NCCL's for compute capability `sm`; without one the bandwidths of the
/// links, whole and in halves, thirds and quarters.
fn speeds(topology: &Fabric, sm: Option<u32>) -> Vec<Rat> {
    if let Some(sm) = sm {
        let list = SPEEDS[usize::from(sm >= 90) + usize::from(sm >= 100)];
        return list.iter().map(|speed| Rat::whole(speed * UNIT)).collect();
    }
    let mut capacities: Vec<_> = topology.links().iter().map(|l| l.capacity).collect();
    capacities.sort_unstable();
    capacities.dedup();
    let shares = |c: &Rat| (1..=4).filter_map(|n| Rat::ZERO.boundary(*c, 1, n)).collect::<Vec<_>>();
    let mut speeds: Vec<_> = capacities.iter().rev().take(16).flat_map(shares).collect();
    speeds.sort_unstable_by(|a, b| b.cmp(a));
    speeds.dedup();
    speeds
}

/// The number of searches kept: three algorithms need one result, for every rank count of a list.
const KEPT: usize = 256;

type ChannelQuery = (Fabric, u32, Option<u32>);

static FOUND: LazyLock<Mutex<HashMap<ChannelQuery, Channels>>> = LazyLock::new(Mutex::default);

/// Returns channels through the first `nranks` ranks. `sm` is the compute capability, 90 for Hopper, which decides
/// the speeds that are tried. Fails only where there is not even one ring.
pub fn channels(topology: &Fabric, nranks: u32, sm: Option<u32>) -> Result<Channels, Problem> {
    let asked = (topology.clone(), nranks, sm);
    let found = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = found().get(&asked) {
        return Ok(known.clone());
    }
    let channels = sought(topology, nranks, sm)?;
    let mut found = found();
    if found.len() >= KEPT {
        found.clear();
    }
    found.insert(asked, channels.clone());
    Ok(channels)
}

/// Whether channels are searched among the first `nranks` ranks, and not only one ring.
pub fn are_sought(topology: &Fabric, nranks: u32) -> bool {
    nranks <= SEARCHED || one_switch::ring(topology, nranks).is_some()
}

fn sought(topology: &Fabric, nranks: u32, sm: Option<u32>) -> Result<Channels, Problem> {
    topology.holds_pairs(nranks)?;
    let speeds = speeds(topology, sm);
    let found = match nranks {
        0 | 1 => None,
        _ => on_one_switch(topology, nranks, &speeds).or_else(|| {
            (nranks <= SEARCHED).then(|| searched(topology, nranks, sm, &speeds)).flatten()
        }),
    };
    match found {
        Some(found) if sm.is_some_and(|sm| are_doubled(&found, sm)) => Ok(doubled(found)),
        Some(found) => Ok(found),
        None => fallback(topology, nranks),
    }
}

/// NCCL's rule for doubling channels in the end.
fn are_doubled(found: &Channels, sm: u32) -> bool {
    let (newer, many, fast) = RARELY;
    let rarely = sm > newer && found.orders.len() > many;
    found.speed >= if rarely { fast } else { DOUBLED } && found.orders.len() < MOST as usize
}

/// Doubles the channels, as far as there is place for them, at half of the speed.
fn doubled(mut found: Channels) -> Channels {
    if let Some(half) = Rat::ZERO.boundary(found.speed, 1, 2) {
        found.speed = half;
        found
            .orders
            .extend_from_within(..found.orders.len().min(MOST as usize - found.orders.len()));
    }
    found
}

/// Returns the channels without a search where all ranks are on one switch: each is the ring in the order of the
/// ranks.
fn on_one_switch(topology: &Fabric, nranks: u32, speeds: &[Rat]) -> Option<Channels> {
    let carried = one_switch::ring(topology, nranks)?;
    let mut best = None;
    for &speed in speeds {
        if best.is_some_and(|(best, _)| is_slow(speed, best)) {
            break;
        }
        let many = fit(carried, speed).min(MOST);
        let total = |(speed, many)| times(speed, Rat::whole(many));
        if total((speed, many)) > best.map_or(Some(Rat::ZERO), total) {
            best = Some((speed, many));
        }
    }
    let (speed, many) = best?;
    let orders = vec![(0..nranks).map(RankId).collect(); many as usize];
    Some(Channels { orders, speed, kind: PathType::Nvl, same: true, fallback: false })
}

/// Whether NCCL does not go down to `speed` from the `best` one found.
fn is_slow(speed: Rat, best: Rat) -> bool {
    times(speed, Rat::whole(100)) <= times(best, Rat::whole(WORTH))
}

fn searched(topology: &Fabric, nranks: u32, sm: Option<u32>, speeds: &[Rat]) -> Option<Channels> {
    let ranks: Vec<_> = topology.ranks().take(nranks as usize).collect();
    let paths: Vec<Vec<Path>> = ranks
        .iter()
        .map(|a| {
            let mut row = paths::paths_from(topology, NodeId::from(*a));
            row.truncate(ranks.len());
            row
        })
        .collect();
    let mut kinds: Vec<_> = paths.iter().flatten().map(|p| p.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.retain(|kind| !matches!(kind, PathType::Loc | PathType::Dis));
    let mut best: Option<Channels> = None;
    let mut left = STEPS[2];
    for &speed in speeds {
        if sm.is_some() && best.as_ref().is_some_and(|best| is_slow(speed, best.speed)) {
            break;
        }
        for &kind in &kinds {
            for same in [true, false] {
                let full = ports(topology, &ranks, speed).min(MOST);
                let carried = best.as_ref().and_then(Channels::total);
                if times(speed, Rat::whole(full)) <= carried.or(Some(Rat::ZERO)) || left == 0 {
                    continue;
                }
                let budget = STEPS[usize::from(!same)].min(left);
                let mut search = Search::new(topology, &paths, speed, kind, (same, full, budget));
                search.channel();
                left -= budget - search.budget;
                let found = Channels { orders: search.best, speed, kind, same, fallback: false };
                if found.total() > carried && !found.orders.is_empty() {
                    best = Some(found);
                }
            }
        }
    }
    let mut best = best?;
    let whole = |speed: &&Rat| {
        **speed > best.speed
            && Search::new(topology, &paths, **speed, best.kind, (false, 0, u32::MAX))
                .lay_all(&best.orders)
    };
    best.speed = speeds.iter().find(whole).copied().unwrap_or(best.speed);
    Some(best)
}

/// Returns the number of channels of `speed` that leave and enter the rank with the least room.
fn ports(topology: &Fabric, ranks: &[RankId], speed: Rat) -> u64 {
    let mut room = vec![[0_u64; 2]; topology.nodes().len()];
    for link in topology.links() {
        let more = fit(link.capacity, speed);
        for (node, way) in [(link.from, 0), (link.to, 1)] {
            let room = &mut room[node.index()][way];
            *room = room.saturating_add(more);
        }
    }
    ranks.iter().flat_map(|r| room[r.index()]).min().unwrap_or(0)
}

/// Returns one ring, at the speed that the narrowest of its links allows.
fn fallback(topology: &Fabric, nranks: u32) -> Result<Channels, Problem> {
    let order = ring_around(topology, nranks)?;
    let mut uses = vec![0_u64; topology.links().len()];
    let mut kind = PathType::Loc;
    if nranks > 1 {
        for (a, b) in order.iter().zip(order.iter().cycle().skip(1)) {
            let mut row = paths::paths_from(topology, NodeId::from(*a));
            let path = row.swap_remove(b.index());
            kind = kind.max(path.kind);
            path.links.iter().for_each(|l| uses[*l as usize] += 1);
        }
    }
    let shares = topology.links().iter().zip(uses).filter(|(_, uses)| *uses > 0);
    let share = |(link, uses): (&crate::Link, u64)| Rat::ZERO.boundary(link.capacity, 1, uses);
    let speed = shares.filter_map(share).min().unwrap_or(paths::LOCAL);
    Ok(Channels { orders: vec![order], speed, kind, same: true, fallback: true })
}

/// One try: a speed, a kind of paths, and whether all channels are equal.
struct Search<'a> {
    topology: &'a Fabric,
    paths: &'a [Vec<Path>],
    speed: Rat,
    kind: PathType,
    same: bool,
    full: u64,
    budget: u32,
    /// Whether ranks are on a switch, so that only the next and the previous rank are tried.
    switched: bool,
    room: Vec<Rat>,
    orders: Vec<Vec<RankId>>,
    best: Vec<Vec<RankId>>,
}

impl<'a> Search<'a> {
    fn new(
        topology: &'a Fabric,
        paths: &'a [Vec<Path>],
        speed: Rat,
        kind: PathType,
        (same, full, budget): (bool, u64, u32),
    ) -> Self {
        let has = |kind: NodeKind| topology.nodes().iter().any(|n| n.kind == kind);
        let switched = has(NodeKind::NvSwitch) && kind == PathType::Nvl;
        let room = topology.links().iter().map(|l| l.capacity).collect();
        let (orders, best) = (Vec::new(), Vec::new());
        Self { topology, paths, speed, kind, same, full, budget, switched, room, orders, best }
    }

    /// Subtracts the speed from every link between two ranks and returns their room before, or subtracts nothing.
    fn take(&mut self, a: RankId, b: RankId) -> Option<Vec<(u32, Rat)>> {
        let path = &self.paths[a.index()][b.index()];
        self.budget = self.budget.checked_sub(1)?;
        if path.kind > self.kind {
            return None;
        }
        let mut before = Vec::with_capacity(path.links.len());
        for &l in &path.links {
            let load = path.load(self.topology, &self.topology.links()[l as usize]);
            let room = self.room[l as usize];
            let Some(rest) = times(self.speed, load).and_then(|cost| room.minus(cost)) else {
                self.give_back(before);
                return None;
            };
            self.room[l as usize] = rest;
            before.push((l, room));
        }
        Some(before)
    }

    fn give_back(&mut self, before: Vec<(u32, Rat)>) {
        for (link, room) in before.into_iter().rev() {
            self.room[link as usize] = room;
        }
    }

    /// Searches one more channel; returns true when there are as many as fit.
    fn channel(&mut self) -> bool {
        if self.orders.len() > self.best.len() {
            self.best.clone_from(&self.orders);
        }
        if self.orders.len() as u64 >= self.full {
            return true;
        }
        let natural: Vec<_> = (0..self.paths.len() as u32).map(RankId).collect();
        let before = self.orders.last().cloned();
        let alike = self.same && before.is_some();
        if self.lay(&before.unwrap_or(natural)) {
            return true;
        }
        !alike && self.extend(&mut vec![RankId(0)])
    }

    /// Lays one channel and searches more.
    fn lay(&mut self, order: &[RankId]) -> bool {
        let mut undo = Vec::new();
        let mut done = true;
        for (a, b) in order.iter().zip(order.iter().cycle().skip(1)) {
            let Some(before) = self.take(*a, *b) else {
                done = false;
                break;
            };
            undo.push(before);
        }
        if done {
            self.orders.push(order.to_vec());
            done = self.channel();
            self.orders.pop();
        }
        undo.into_iter().rev().for_each(|before| self.give_back(before));
        done
    }

    /// Whether all these channels fit together.
    fn lay_all(&mut self, orders: &[Vec<RankId>]) -> bool {
        orders.iter().all(|order| {
            let mut hops = order.iter().zip(order.iter().cycle().skip(1));
            hops.all(|(a, b)| self.take(*a, *b).is_some())
        })
    }

    fn extend(&mut self, path: &mut Vec<RankId>) -> bool {
        let n = self.paths.len() as u32;
        let at = path[path.len() - 1];
        if path.len() == n as usize {
            let Some(before) = self.take(at, path[0]) else { return false };
            self.orders.push(path.clone());
            let done = self.channel();
            self.orders.pop();
            self.give_back(before);
            return done;
        }
        let ahead = |rank: RankId| (rank.0 + n - at.0) % n;
        let near = |rank: RankId| !self.switched || [1, n - 1].contains(&ahead(rank));
        let mut next: Vec<_> =
            (0..n).map(RankId).filter(|r| near(*r) && !path.contains(r)).collect();
        next.sort_by_cached_key(|rank| {
            let links = &self.paths[at.index()][rank.index()].links;
            let room = links.iter().map(|l| self.room[*l as usize]).min();
            (std::cmp::Reverse(room), links.len(), ahead(*rank))
        });
        for rank in next {
            let Some(before) = self.take(at, rank) else { continue };
            path.push(rank);
            let done = self.extend(path);
            path.pop();
            self.give_back(before);
            if done || self.budget == 0 {
                return done;
            }
        }
        false
    }
}
