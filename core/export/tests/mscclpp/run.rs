//! The executor in small, written from its rules and not from the importer: blocks of three threads each, of which each
//! moves its elements and some signal and wait; counters for signals, flags for packets, and callers that write a
//! rank's buffers before and after each of three calls. Values are sets of contributions, and clocks give the order.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use serde_json::Value as Json;

use super::model::{CALLS, ELEMENTS, Model, Place, THREADS, items, number, word};
use super::proxies::{Proxies, is_of_port};
use crate::models::{Cell, Clock, Outcome, Sum, add, join};

/// An element, or that of a packet.
#[derive(Clone, Default)]
pub(super) struct Element {
    cell: Cell,
    /// Of a packet: the call in which it was written, and its writer's clock.
    pub(super) flag: Option<(usize, Clock)>,
}

/// A thread: its rank and block, its number there, the next op and the call.
struct Thread {
    rank: usize,
    block: usize,
    lane: usize,
    next: usize,
    call: usize,
}

/// A direction of a channel: from, to, type and number.
pub(super) type Wire = (usize, usize, String, usize);
/// The clocks of a semaphore's releases, and the number of releases that were taken.
type Semaphore = (Vec<Option<Clock>>, usize);

pub(super) struct Machine<'m> {
    pub(super) model: &'m Model<'m>,
    threads: Vec<Thread>,
    /// The clocks of threads, of callers and of the connections of ports.
    pub(super) clocks: Vec<Clock>,
    pub(super) proxies: Proxies,
    pub(super) memory: BTreeMap<(usize, char, usize), Element>,
    /// Signals by from, to, type and number: the posters' clocks, and the clocks of the waits that took them.
    signals: BTreeMap<Wire, (Vec<Clock>, Vec<Clock>)>,
    /// Semaphores of ranks.
    semaphores: BTreeMap<(usize, usize), Semaphore>,
    /// The threads that have come to a point of synchronization.
    arrived: BTreeMap<(usize, usize), Vec<usize>>,
    /// The call that each rank is in, and whether its caller has begun it.
    calls: Vec<usize>,
    found: BTreeSet<Outcome>,
}

/// Returns the outcome of a plan whose loops go through `stretches` stretches.
pub(super) fn outcome(plan: &Json, stretches: usize, random: &mut Rng) -> Outcome {
    let model = Model::new(plan, stretches);
    if let Some(wrong) = model.refused() {
        return wrong;
    }
    let mut machine = Machine::new(&model);
    if !machine.run(random) {
        return Outcome::Hangs;
    }
    machine.found.last().copied().unwrap_or(Outcome::Right)
}

impl<'m> Machine<'m> {
    fn new(model: &'m Model<'m>) -> Self {
        let Model { plan, ranks, programs } = model;
        let (ranks, gpus) = (*ranks, items(&plan["gpus"]));
        let wires = model.ports();
        let mut threads = Vec::new();
        for (rank, blocks) in programs.iter().enumerate() {
            for block in 0..blocks.len() {
                for lane in 0..THREADS {
                    threads.push(Thread { rank, block, lane, next: 0, call: 0 });
                }
            }
        }
        let mut semaphores = BTreeMap::new();
        for (rank, gpu) in gpus.iter().enumerate() {
            for (id, semaphore) in items(&gpu["semaphores"]).iter().enumerate() {
                let init = number(&semaphore["init_value"]);
                semaphores.insert((rank, id), (vec![None; init], 0));
            }
        }
        let first = threads.len() + gpus.len();
        let width = first + wires.len();
        let clocks = (0..width).map(|id| (0..width).map(|at| u32::from(at == id)).collect());
        let clocks = clocks.collect();
        let mut machine = Self {
            model,
            threads,
            clocks,
            proxies: Proxies::new(wires, first),
            memory: BTreeMap::new(),
            signals: BTreeMap::new(),
            semaphores,
            arrived: BTreeMap::new(),
            calls: vec![0; ranks],
            found: BTreeSet::new(),
        };
        for rank in 0..ranks {
            machine.enter(rank);
        }
        machine
    }

    /// A caller writes all of a rank's buffers, and a call begins.
    fn enter(&mut self, rank: usize) {
        let caller = self.threads.len() + rank;
        let call = self.calls[rank];
        for letter in ['o', 'i'] {
            for element in 0..self.model.chunks(rank, letter) * ELEMENTS {
                let value = (letter == 'i').then(|| Sum::from([((rank, element), 1)]));
                let cell = self.model.cell(call, rank, letter, element);
                self.write(caller, cell, value);
            }
        }
        let clock = self.clocks[caller].clone();
        for at in (0..self.threads.len()).filter(|at| self.threads[*at].rank == rank) {
            join(&mut self.clocks[at], &clock);
        }
        self.clocks[caller][caller] += 1;
    }

    /// All blocks of a rank are done: its caller looks at the output, and calls again.
    fn leave(&mut self, rank: usize) {
        let caller = self.threads.len() + rank;
        let threads = (0..self.threads.len()).filter(|at| self.threads[*at].rank == rank);
        // That a call ends after its puts is taken for granted.
        for at in threads.chain(self.proxies.of_rank(rank)).collect::<Vec<_>>() {
            let clock = self.clocks[at].clone();
            join(&mut self.clocks[caller], &clock);
            self.clocks[at][at] += 1;
        }
        let call = self.calls[rank];
        for element in 0..self.model.chunks(rank, 'o') * ELEMENTS {
            let cell = self.model.cell(call, rank, 'o', element);
            let got = self.read(caller, cell);
            if got != Some(self.model.expected(rank, element)) {
                self.found.insert(Outcome::Wrong);
            }
        }
        self.calls[rank] += 1;
        // The next op may write both buffers.
        self.enter(rank);
        if self.calls[rank] < CALLS {
            for thread in self.threads.iter_mut().filter(|thread| thread.rank == rank) {
                (thread.next, thread.call) = (0, thread.call + 1);
            }
        }
    }

    /// Runs all calls; whether they come to their end, and leave nothing behind.
    fn run(&mut self, random: &mut Rng) -> bool {
        loop {
            let mut order: Vec<usize> = (0..self.threads.len()).collect();
            random.shuffle(&mut order);
            let mut moved = false;
            for at in order {
                moved |= self.advance(at);
            }
            for rank in 0..self.model.ranks {
                let done = |thread: &Thread| {
                    thread.rank != rank
                        || thread.next == self.model.programs[rank][thread.block].len()
                };
                if self.calls[rank] < CALLS
                    && self.threads.iter().all(done)
                    && self.proxies.idle(rank)
                {
                    self.leave(rank);
                    moved = true;
                }
            }
            let must = !moved;
            if !self.carry(random, must) && must {
                break;
            }
        }
        let heard = self
            .signals
            .values()
            .all(|(posts, waits)| waits.is_empty() || posts.len() == waits.len());
        self.calls.iter().all(|calls| *calls == CALLS) && heard
    }

    /// The next op of a thread; whether anything was done.
    fn advance(&mut self, at: usize) -> bool {
        let Thread { rank, block, next, lane, call } = self.threads[at];
        let Some((op, stretch)) = self.model.programs[rank][block].get(next).cloned() else {
            return false;
        };
        let ready = match word(&op["name"]) {
            _ if is_of_port(&op) => self.enter_port(at, (rank, block, lane), (&op, stretch, call)),
            "nop" => self.meet(at, (rank, block), THREADS),
            "barrier" => {
                let id = 1000 + number(&op["barrier_id"]);
                let all = number(&op["num_threadblocks"]) * THREADS;
                return self.meet(at, (rank, id), all);
            }
            "signal" | "rlxsignal" => {
                for (turn, id) in items(&op["channel_ids"]).iter().enumerate() {
                    if turn % THREADS == lane {
                        let wire = self.model.wire(rank, block, &op, id, true);
                        self.post(at, wire);
                    }
                }
                true
            }
            "wait" | "rlxwait" => {
                let mine = |turn: usize| turn % THREADS == lane;
                let ids: Vec<_> = items(&op["channel_ids"]).iter().enumerate().collect();
                let ids: Vec<_> = ids.into_iter().filter(|(turn, _)| mine(*turn)).collect();
                let wires: Vec<_> = ids
                    .iter()
                    .map(|(_, id)| self.model.wire(rank, block, &op, id, false))
                    .collect();
                let come = wires.iter().all(|wire| {
                    self.signals.get(wire).is_some_and(|(posts, waits)| posts.len() > waits.len())
                });
                if come {
                    for wire in wires {
                        let (posts, waits) = self.signals.get_mut(&wire).expect("it is there");
                        let clock = posts[waits.len()].clone();
                        join(&mut self.clocks[at], &clock);
                        if waits.last().is_some_and(|last| !knows(&self.clocks[at], last)) {
                            self.found.insert(Outcome::Shared);
                        }
                        waits.push(self.clocks[at].clone());
                        self.clocks[at][at] += 1;
                    }
                }
                come
            }
            "sem_release" => {
                for (turn, id) in items(&op["semaphore_ids"]).iter().enumerate() {
                    if turn % THREADS == lane {
                        let clock = self.clocks[at].clone();
                        let semaphore = self.semaphores.get_mut(&(rank, number(id)));
                        semaphore.expect("it is there").0.push(Some(clock));
                        self.clocks[at][at] += 1;
                    }
                }
                true
            }
            "sem_acquire" => {
                let ids: Vec<_> = items(&op["semaphore_ids"]).iter().enumerate().collect();
                let ids: Vec<_> =
                    ids.into_iter().filter(|(turn, _)| turn % THREADS == lane).collect();
                let free = ids.iter().all(|(_, id)| {
                    let (given, taken) = &self.semaphores[&(rank, number(id))];
                    given.len() > *taken
                });
                if free {
                    for (_, id) in ids {
                        let (given, taken) =
                            self.semaphores.get_mut(&(rank, number(id))).expect("it is there");
                        if let Some(clock) = given[*taken].clone() {
                            join(&mut self.clocks[at], &clock);
                        }
                        *taken += 1;
                    }
                }
                free
            }
            _ => self.data(at, &op, stretch, call),
        };
        if ready && word(&op["name"]) != "nop" {
            self.threads[at].next += 1;
        }
        ready
    }

    /// Sends a signal.
    pub(super) fn post(&mut self, at: usize, wire: Wire) {
        let clock = self.clocks[at].clone();
        let (posts, _) = self.signals.entry(wire).or_default();
        let shared = posts.last().is_some_and(|last| !knows(&clock, last));
        posts.push(clock);
        self.clocks[at][at] += 1;
        if shared {
            self.found.insert(Outcome::Shared);
        }
    }

    /// A thread comes to where others of its block are waited for.
    fn meet(&mut self, at: usize, place: (usize, usize), all: usize) -> bool {
        let here = self.arrived.entry(place).or_default();
        if here.contains(&at) {
            return false;
        }
        here.push(at);
        if here.len() == all {
            let here = std::mem::take(here);
            let mut clock = self.clocks[here[0]].clone();
            for other in &here {
                join(&mut clock, &self.clocks[*other]);
            }
            for other in here {
                self.clocks[other].clone_from(&clock);
                self.clocks[other][other] += 1;
                self.threads[other].next += 1;
            }
        }
        true
    }

    /// Moves a thread's data for an op; returns whether the data that it reads is there.
    fn data(&mut self, at: usize, op: &Json, stretch: (usize, usize), call: usize) -> bool {
        let Thread { rank, block, lane, .. } = self.threads[at];
        let name = word(&op["name"]).to_owned();
        let place = |chunk: &Json| self.model.place(rank, block, op, chunk);
        let mut srcs: Vec<_> = items(&op["src_buff"]).iter().map(place).collect();
        let mut dsts: Vec<_> = items(&op["dst_buff"]).iter().map(place).collect();
        let packet = |place: &mut Place| place.1 = 'p';
        match &*name {
            "ppkt" | "cpkt" => dsts.iter_mut().for_each(packet),
            "upkt" | "arrive" => srcs.iter_mut().for_each(packet),
            "rppkt" => srcs.iter_mut().chain(&mut dsts).for_each(packet),
            "repkt" | "respkt" | "recpkt" | "recspkt" => {
                srcs[1..].iter_mut().chain(&mut dsts[1..]).for_each(packet);
            }
            _ => {}
        }
        // Pairs of places, or a sum into all destinations.
        let groups: Vec<(Vec<_>, Vec<_>)> = match &*name {
            "put" | "ppkt" => srcs.iter().zip(&dsts).map(|(s, d)| (vec![*s], vec![*d])).collect(),
            "get" => srcs
                .iter()
                .zip(&dsts)
                .map(|(s, d)| (vec![(s.0, s.1, d.2, d.3)], vec![(d.0, d.1, s.2, s.3)]))
                .collect(),
            _ => vec![(srcs, dsts)],
        };
        let part = op
            .get("tbg_info")
            .map_or((0, 1), |info| (number(&info["tb_id"]), number(&info["tbg_size"])));
        let length = |place: &Place| (place.3 - place.2) / part.1;
        let mine: Vec<(usize, usize)> = (0..groups.len())
            .flat_map(|group| {
                let whole = length(&groups[group].0[0]);
                let (turn, all) = stretch;
                let one = whole / all;
                let first = part.0 * whole + turn * one;
                let own = (0..one).filter(|k| k / 2 % THREADS == lane);
                own.map(move |k| (group, first + k)).collect::<Vec<_>>()
            })
            .collect();
        let cell = |machine: &Self, place: &Place, k: usize| {
            machine.model.cell(call, place.0, place.1, place.2 + k)
        };
        for (group, k) in &mine {
            for src in groups[*group].0.iter().filter(|src| src.1 == 'p') {
                let there =
                    self.memory.get(&cell(self, src, *k)).and_then(|cell| cell.flag.clone());
                if there.is_none_or(|(written, _)| written != call) {
                    return false;
                }
            }
        }
        for (group, k) in mine {
            let (srcs, dsts) = &groups[group];
            // A copy onto itself changes nothing, such as the copy of a rank's own chunk in place.
            if name == "copy" && cell(self, &srcs[0], k) == cell(self, &dsts[0], k) {
                continue;
            }
            let mut sum: Option<Option<Sum>> = None;
            for src in srcs {
                let from = cell(self, src, k);
                if src.1 == 'p' {
                    let (_, clock) = self.memory[&from].flag.clone().expect("it is there");
                    join(&mut self.clocks[at], &clock);
                }
                let value = self.read(at, from);
                sum = Some(match sum {
                    None => value,
                    Some(sum) => add(sum, value),
                });
            }
            for dst in dsts {
                let to = cell(self, dst, k);
                self.write(at, to, sum.clone().flatten());
                if dst.1 == 'p' {
                    let clock = self.clocks[at].clone();
                    self.memory.get_mut(&to).expect("it is there").flag = Some((call, clock));
                }
            }
            self.clocks[at][at] += 1;
        }
        true
    }

    pub(super) fn read(&mut self, by: usize, at: (usize, char, usize)) -> Option<Sum> {
        let cell = &mut self.memory.entry(at).or_default().cell;
        if cell.read(by, &self.clocks[by]) {
            self.found.insert(Outcome::Race);
        }
        let callers = self.threads.len()..self.threads.len() + self.model.ranks;
        if cell.value.is_none() && !callers.contains(&by) {
            self.found.insert(Outcome::Wrong);
        }
        cell.value.clone()
    }

    pub(super) fn write(&mut self, by: usize, at: (usize, char, usize), value: Option<Sum>) {
        if self.memory.entry(at).or_default().cell.write(by, &self.clocks[by], value) {
            self.found.insert(Outcome::Race);
        }
    }
}

fn knows(clock: &Clock, other: &Clock) -> bool {
    clock.iter().zip(other).all(|(own, other)| own >= other)
}
