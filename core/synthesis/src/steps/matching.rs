//! Greedy matching on the time-expanded network, as TACOS does it: no bound, but any topology and any latency.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Send, Spread};
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_topology::routes::Routes;
use roundelay_topology::search::heuristic::Dice;
use roundelay_topology::{Fabric, NodeId, Problem, Routing};

/// How many times longer than the way from the nearest rank that has a chunk, or will get it, a link may take for this
/// chunk: a run for each. Links that are spared bring the chunk too late where others have room, and are missed
/// where others have not.
const PATIENCE: [u64; 4] = [1, 3, 16, u64::MAX];
/// The sends of all runs with one patience, roughly, and the least and the most of these runs.
const WORK: u64 = 1 << 13;
const RUNS: (u64, u64) = (1, 48);
/// Ticks, in which time is counted, of the slowest way between two ranks.
const TICKS: f64 = (1_u64 << 36) as f64;
/// Two ranks that are linked: a chunk goes from the first to the second without passing through a third.
struct Pair {
    from: u32,
    to: u32,
    /// The links on the way, each with the time that it is busy.
    links: Vec<(u32, u64)>,
    /// The time until the chunk is there.
    ticks: u64,
}

/// The linked pairs of ranks, and which of them share a link.
struct Network {
    nranks: usize,
    pairs: Vec<Pair>,
    /// The pairs that begin at each rank.
    out: Vec<Vec<u32>>,
    /// The pairs whose way has each link.
    over: Vec<Vec<u32>>,
    /// The time from rank to rank, through other ranks too: row by row.
    far: Vec<u64>,
}

impl Network {
    fn new(topology: &Fabric, nranks: u32, bytes: u64) -> Self {
        let links = topology.links();
        let n = nranks as usize;
        let mut routes = Routes::new(topology, Routing::default());
        let mut network = Self {
            nranks: n,
            pairs: Vec::new(),
            out: vec![Vec::new(); n],
            over: vec![Vec::new(); links.len()],
            far: vec![u64::MAX; n * n],
        };
        // The ways, each with the seconds of its links and of a chunk.
        let mut ways = Vec::new();
        for (from, to) in (0..nranks).flat_map(|from| (0..nranks).map(move |to| (from, to))) {
            if from == to || !topology.are_linked(RankId(from), RankId(to)) {
                continue;
            }
            let mut way: Vec<(u32, f64)> = Vec::new();
            routes.way(NodeId(from), NodeId(to), |link, share| way.push((link as u32, share)));
            let latency = routes.latency(&way, |link| links[link].latency as f64 / 1e9);
            for (link, time) in &mut way {
                let capacity = links[*link as usize].capacity;
                *time *= bytes as f64 * capacity.den() as f64 / capacity.num() as f64;
            }
            let whole = way.iter().map(|(_, time)| *time).fold(0.0, f64::max) + latency;
            ways.push((from, to, way, whole));
        }
        let longest = ways.iter().map(|way| way.3).fold(0.0, f64::max);
        let scale = if longest > 0.0 { TICKS / longest } else { 0.0 };
        let ticks = |time: f64| ((time * scale).round() as u64).max(1);
        for ((from, to, way, whole), number) in ways.into_iter().zip(0..) {
            network.out[from as usize].push(number);
            for (link, _) in &way {
                network.over[*link as usize].push(number);
            }
            network.far[from as usize * n + to as usize] = ticks(whole);
            let links = way.into_iter().map(|(link, time)| (link, ticks(time))).collect();
            network.pairs.push(Pair { from, to, links, ticks: ticks(whole) });
        }
        (0..n).for_each(|rank| network.far[rank * n + rank] = 0);
        for via in 0..n {
            for from in 0..n {
                let first = network.far[from * n + via];
                for to in 0..n {
                    let whole = first.saturating_add(network.far[via * n + to]);
                    network.far[from * n + to] = network.far[from * n + to].min(whole);
                }
            }
        }
        network
    }
}

/// Returns rounds in which the chunks of `root`, or of all ranks, reach the first `nranks` ranks: the best of several
/// runs.
pub(super) fn rounds(
    topology: &Fabric,
    nranks: u32,
    root: Option<RankId>,
    chunks: u32,
    bytes: u64,
    seed: u64,
) -> Result<Spread, Problem> {
    let network = Network::new(topology, nranks, bytes);
    let n = network.nranks;
    if let Some(at) = network.far.iter().position(|ticks| *ticks == u64::MAX) {
        let title = format!("no data gets from rank {} to rank {} within the run", at / n, at % n);
        return Err(Problem::new(Code::Disconnected, title));
    }
    let mut best: Option<(u64, Vec<Vec<Send>>)> = None;
    let sends = u64::from(chunks) * n as u64 * if root.is_some() { 1 } else { n as u64 };
    let runs = (WORK / sends).clamp(RUNS.0, RUNS.1) * PATIENCE.len() as u64;
    for run in 0..runs {
        let patience = PATIENCE[run as usize % PATIENCE.len()];
        let dice =
            Dice::from_seed(seed.wrapping_mul(RUNS.1 * PATIENCE.len() as u64).wrapping_add(run));
        let found = Run::new(&network, root, chunks, patience, dice).done();
        if best.as_ref().is_none_or(|best| found.0 < best.0) {
            best = Some(found);
        }
    }
    let rounds = best.map(|(_, rounds)| rounds).unwrap_or_default();
    let rounds = Spread { nranks, root, chunks, rounds };
    rounds.check()?;
    Ok(rounds)
}

/// A run of the matching. Chunks are numbered over all roots.
struct Run<'n> {
    network: &'n Network,
    patience: u64,
    dice: Dice,
    root: Option<RankId>,
    chunks: u32,
    /// The chunks that each rank has, and those that it has or will get, as bits.
    has: Vec<Vec<u64>>,
    coming: Vec<Vec<u64>>,
    /// The number of ranks that have or will get each chunk.
    holders: Vec<u32>,
    /// For each chunk and rank, the time from the nearest rank that has or will get the chunk.
    near: Vec<u64>,
    /// The time at which each link gets free.
    free: Vec<u64>,
    /// The round in which each rank is, and whether it has received a chunk in it.
    round: Vec<(u32, bool)>,
    rounds: Vec<Vec<Send>>,
    /// The place of each pair in the order in which pairs choose: the fastest first.
    turn: Vec<u32>,
}

/// The end of a send, or of the time that a link is busy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival { chunk: u32, pair: u32, told: u32 },
    Free { link: u32 },
}

impl<'n> Run<'n> {
    fn new(
        network: &'n Network,
        root: Option<RankId>,
        chunks: u32,
        patience: u64,
        mut dice: Dice,
    ) -> Self {
        let n = network.nranks;
        let all = chunks as usize * if root.is_some() { 1 } else { n };
        let mut order: Vec<usize> = (0..network.pairs.len()).collect();
        dice.shuffle(&mut order);
        order.sort_by_key(|pair| network.pairs[*pair].ticks);
        let mut turn = vec![0; order.len()];
        order.into_iter().zip(0..).for_each(|(pair, at)| turn[pair] = at);
        let none = vec![vec![0; all.div_ceil(64)]; n];
        let mut run = Self {
            network,
            patience,
            dice,
            root,
            chunks,
            has: none.clone(),
            coming: none,
            holders: vec![0; all],
            near: vec![u64::MAX; all * n],
            free: vec![0; network.over.len()],
            round: vec![(0, false); n],
            rounds: Vec::new(),
            turn,
        };
        for chunk in 0..all {
            let root = run.owner(chunk).index();
            run.has[root][chunk / 64] |= 1 << (chunk % 64);
            run.take(chunk, root);
        }
        run
    }

    /// The root of a chunk.
    fn owner(&self, chunk: usize) -> RankId {
        self.root.unwrap_or(RankId(chunk as u32 / self.chunks))
    }

    /// Notes that `rank` will have `chunk`.
    fn take(&mut self, chunk: usize, rank: usize) {
        let n = self.network.nranks;
        self.coming[rank][chunk / 64] |= 1 << (chunk % 64);
        self.holders[chunk] += 1;
        let near = &mut self.near[chunk * n..][..n];
        for (near, far) in near.iter_mut().zip(&self.network.far[rank * n..]) {
            *near = (*near).min(*far);
        }
    }

    /// Notes that the receiver of a pair has a chunk, which it reads in its round, or in that in which the sender told
    /// of it if this is later.
    fn read(&mut self, chunk: usize, pair: &Pair, told: u32) {
        let round = &mut self.round[pair.to as usize];
        *round = (round.0.max(told), true);
        let round = round.0 as usize;
        self.rounds.resize_with(self.rounds.len().max(round + 1), Vec::new);
        let (from, to, root) = (RankId(pair.from), RankId(pair.to), self.owner(chunk));
        self.rounds[round].push(Send { from, to, root, chunk: chunk as u32 % self.chunks, told });
    }

    /// Returns the time at the end, and all sends in rounds: a rank tells of a chunk when a send of it begins, and
    /// reads chunks in the order of their arrivals.
    fn done(mut self) -> (u64, Vec<Vec<Send>>) {
        let network = self.network;
        let mut events = BinaryHeap::new();
        let (mut now, mut end) = (0, 0);
        let mut ready: Vec<u32> = (0..network.pairs.len() as u32).collect();
        let mut marked = vec![false; network.pairs.len()];
        loop {
            ready.sort_unstable_by_key(|pair| self.turn[*pair as usize]);
            for number in ready.drain(..) {
                marked[number as usize] = false;
                let pair = &network.pairs[number as usize];
                if pair.links.iter().any(|(link, _)| self.free[*link as usize] > now) {
                    continue;
                }
                let Some(chunk) = self.choice(pair) else { continue };
                self.take(chunk, pair.to as usize);
                for (link, ticks) in &pair.links {
                    let free = now.saturating_add(*ticks);
                    self.free[*link as usize] = free;
                    events.push(Reverse((free, Event::Free { link: *link })));
                }
                // A rank begins a round when it tells of a chunk after it has read one.
                let (told, reads) = &mut self.round[pair.from as usize];
                *told += u32::from(std::mem::take(reads));
                let told = *told;
                let arrival = Event::Arrival { chunk: chunk as u32, pair: number, told };
                events.push(Reverse((now.saturating_add(pair.ticks), arrival)));
            }
            let Some(Reverse((next, _))) = events.peek() else { break };
            now = *next;
            while let Some(Reverse((_, event))) = events.peek().filter(|e| e.0.0 == now).copied() {
                events.pop();
                let woken = match event {
                    Event::Free { link } => &network.over[link as usize],
                    Event::Arrival { chunk, pair, told } => {
                        let pair = &network.pairs[pair as usize];
                        let (to, chunk) = (pair.to as usize, chunk as usize);
                        self.has[to][chunk / 64] |= 1 << (chunk % 64);
                        self.read(chunk, pair, told);
                        end = now;
                        &network.out[to]
                    }
                };
                for pair in woken {
                    if !std::mem::replace(&mut marked[*pair as usize], true) {
                        ready.push(*pair);
                    }
                }
            }
        }
        (end, self.rounds)
    }

    /// Returns the chunk that a pair sends: one of those that the fewest ranks have.
    fn choice(&mut self, pair: &Pair) -> Option<usize> {
        let n = self.network.nranks;
        let (mut best, mut fewest, mut equal) = (None, u32::MAX, 0);
        let rows = self.has[pair.from as usize].iter().zip(&self.coming[pair.to as usize]);
        for (word, (has, coming)) in rows.enumerate() {
            let mut bits = has & !coming;
            while bits != 0 {
                let chunk = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let near = self.near[chunk * n + pair.to as usize];
                if self.holders[chunk] > fewest || near.saturating_mul(self.patience) < pair.ticks {
                    continue;
                }
                if self.holders[chunk] < fewest {
                    (fewest, equal) = (self.holders[chunk], 0);
                }
                // Each of the equal ones is chosen with the same probability.
                equal += 1;
                if self.dice.below(equal) == 0 {
                    best = Some(chunk);
                }
            }
        }
        best
    }
}
