//! The executor in small, written from its rules and not from the importer: blocks of two threads each, of which each
//! moves its elements and some signal and wait; counters for signals, flags for packets, and callers that write a rank's
//! buffers before and after each of three calls. Values are sets of contributions, and clocks say what is ordered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::Dice;

/// What comes of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Right,
    Wrong,
    Race,
    /// Two blocks use one end of a signal, in no order.
    Shared,
    Hangs,
    Refused,
}

/// Elements of a chunk, threads of a block, and calls one after the other.
const ELEMENTS: usize = 6;
const THREADS: usize = 2;
const CALLS: usize = 3;

type Sum = BTreeMap<(usize, usize), u32>;
type Clock = Vec<u32>;

#[derive(Clone, Default)]
struct Cell {
    value: Option<Sum>,
    write: Option<(usize, u32)>,
    reads: Vec<(usize, u32)>,
    /// Of a packet: the call that it was written in, and what its writer knew.
    flag: Option<(usize, Clock)>,
}

/// A thread: its rank and block, its number there, the next op and the call.
struct Thread {
    rank: usize,
    block: usize,
    lane: usize,
    next: usize,
    call: usize,
}

/// An op, and which of how many stretches of a loop.
type Flat = (Json, (usize, usize));

struct Machine<'p> {
    plan: &'p Json,
    ranks: usize,
    programs: Vec<Vec<Vec<Flat>>>,
    threads: Vec<Thread>,
    clocks: Vec<Clock>,
    memory: BTreeMap<(usize, char, usize), Cell>,
    /// Signals by from, to, type and number: what posters knew, and how many were taken by whom.
    signals: BTreeMap<(usize, usize, String, usize), (Vec<Clock>, Vec<Clock>)>,
    /// Semaphores of ranks.
    semaphores: BTreeMap<(usize, usize), (Vec<Option<Clock>>, usize)>,
    /// Who has come to a point of synchronization: threads by what they wait for.
    arrived: BTreeMap<(usize, usize), Vec<usize>>,
    /// The call that each rank is in, and whether its caller has begun it.
    calls: Vec<usize>,
    found: BTreeSet<Outcome>,
}

pub(super) fn number(value: &Json) -> usize {
    value.as_u64().expect("a number") as usize
}

pub(super) fn items(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Json) -> &str {
    value.as_str().unwrap_or("")
}

/// What comes of a plan whose loops go through so many stretches.
pub(super) fn outcome(plan: &Json, stretches: usize, dice: &mut Dice) -> Outcome {
    let mut machine = Machine::new(plan, stretches);
    if let Some(wrong) = machine.refused() {
        return wrong;
    }
    if !machine.run(dice) {
        return Outcome::Hangs;
    }
    machine.found.last().copied().unwrap_or(Outcome::Right)
}

impl<'p> Machine<'p> {
    fn new(plan: &'p Json, stretches: usize) -> Self {
        let gpus = items(&plan["gpus"]);
        let flat = |ops: &Json| -> Vec<Flat> {
            let mut all = Vec::new();
            for op in items(ops) {
                if word(&op["name"]) == "pipeline" {
                    for stretch in 0..stretches {
                        let inner = items(&op["ops"]).iter();
                        all.extend(inner.map(|op| (op.clone(), (stretch, stretches))));
                    }
                } else {
                    all.push((op.clone(), (0, 1)));
                }
            }
            all
        };
        let programs: Vec<Vec<Vec<Flat>>> = gpus
            .iter()
            .map(|gpu| items(&gpu["threadblocks"]).iter().map(|tb| flat(&tb["ops"])).collect())
            .collect();
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
        let width = threads.len() + gpus.len();
        let clocks = (0..width).map(|id| (0..width).map(|at| u32::from(at == id)).collect());
        let clocks = clocks.collect();
        let ranks = gpus.len();
        let mut machine = Self {
            plan,
            ranks,
            programs,
            threads,
            clocks,
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

    fn gpu(&self, rank: usize) -> &'p Json {
        &self.plan["gpus"][rank]
    }

    fn chunks(&self, rank: usize, letter: char) -> usize {
        let key = match letter {
            'i' => "input_chunks",
            'o' => "output_chunks",
            _ => "scratch_chunks",
        };
        number(&self.gpu(rank)[key])
    }

    /// Where an element lies, in place in the one buffer that is the longer.
    fn cell(&self, call: usize, rank: usize, letter: char, element: usize) -> (usize, char, usize) {
        let inputs = self.chunks(rank, 'i') * ELEMENTS;
        let outputs = self.chunks(rank, 'o') * ELEMENTS;
        if self.plan["inplace"] == true {
            match (word(&self.plan["collective"]), letter) {
                ("allgather", 'i') => return (rank, 'o', rank * inputs + element),
                ("reducescatter", 'o') => return (rank, 'i', rank * outputs + element),
                ("allreduce" | "alltoall", 'i') => return (rank, 'o', element),
                _ => {}
            }
        }
        let half = match letter {
            's' | 'p' if self.plan["use_double_scratch_buffer"] == true => call % 2,
            _ => 0,
        };
        (rank, letter, element + half * 1_000_000)
    }

    /// A caller writes all of a rank's buffers, and a call begins.
    fn enter(&mut self, rank: usize) {
        let caller = self.threads.len() + rank;
        let call = self.calls[rank];
        for letter in ['o', 'i'] {
            for element in 0..self.chunks(rank, letter) * ELEMENTS {
                let value = (letter == 'i').then(|| Sum::from([((rank, element), 1)]));
                let cell = self.cell(call, rank, letter, element);
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
        for at in (0..self.threads.len()).filter(|at| self.threads[*at].rank == rank) {
            let clock = self.clocks[at].clone();
            join(&mut self.clocks[caller], &clock);
            self.clocks[at][at] += 1;
        }
        let call = self.calls[rank];
        for element in 0..self.chunks(rank, 'o') * ELEMENTS {
            let cell = self.cell(call, rank, 'o', element);
            let got = self.read(caller, cell);
            if got != Some(self.expected(rank, element)) {
                self.found.insert(Outcome::Wrong);
            }
        }
        self.calls[rank] += 1;
        // Whatever comes next may write both buffers.
        self.enter(rank);
        if self.calls[rank] < CALLS {
            for thread in self.threads.iter_mut().filter(|thread| thread.rank == rank) {
                (thread.next, thread.call) = (0, thread.call + 1);
            }
        }
    }

    fn expected(&self, rank: usize, element: usize) -> Sum {
        let n = self.ranks;
        let part = self.chunks(rank, 'i') * ELEMENTS;
        match word(&self.plan["collective"]) {
            "allreduce" => (0..n).map(|from| ((from, element), 1)).collect(),
            "allgather" => Sum::from([((element / part, element % part), 1)]),
            "reducescatter" => (0..n).map(|from| ((from, rank * part / n + element), 1)).collect(),
            _ => {
                let block = part / n;
                Sum::from([((element / block, rank * block + element % block), 1)])
            }
        }
    }

    /// Runs all calls; whether they come to their end, and leave nothing behind.
    fn run(&mut self, dice: &mut Dice) -> bool {
        loop {
            let mut order: Vec<usize> = (0..self.threads.len()).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, dice.roll(at + 1));
            }
            let mut moved = false;
            for at in order {
                moved |= self.advance(at);
            }
            for rank in 0..self.ranks {
                let done = |thread: &Thread| {
                    thread.rank != rank || thread.next == self.programs[rank][thread.block].len()
                };
                if self.calls[rank] < CALLS && self.threads.iter().all(done) {
                    self.leave(rank);
                    moved = true;
                }
            }
            if !moved {
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
        let Some((op, stretch)) = self.programs[rank][block].get(next).cloned() else {
            return false;
        };
        let ready = match word(&op["name"]) {
            "nop" => self.meet(at, (rank, block), THREADS),
            "barrier" => {
                let id = 1000 + number(&op["barrier_id"]);
                let all = number(&op["num_threadblocks"]) * THREADS;
                return self.barrier(at, (rank, id), all);
            }
            "signal" | "rlxsignal" => {
                for (turn, id) in items(&op["channel_ids"]).iter().enumerate() {
                    if turn % THREADS == lane {
                        let clock = self.clocks[at].clone();
                        let wire = self.wire(rank, block, &op, id, true);
                        let (posts, _) = self.signals.entry(wire).or_default();
                        let shared = posts.last().is_some_and(|last| !knows(&clock, last));
                        posts.push(clock);
                        self.clocks[at][at] += 1;
                        if shared {
                            self.found.insert(Outcome::Shared);
                        }
                    }
                }
                true
            }
            "wait" | "rlxwait" => {
                let mine = |turn: usize| turn % THREADS == lane;
                let ids: Vec<_> = items(&op["channel_ids"]).iter().enumerate().collect();
                let ids: Vec<_> = ids.into_iter().filter(|(turn, _)| mine(*turn)).collect();
                let wires: Vec<_> =
                    ids.iter().map(|(_, id)| self.wire(rank, block, &op, id, false)).collect();
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
            here.iter().for_each(|other| join(&mut clock, &self.clocks[*other]));
            for other in here {
                self.clocks[other].clone_from(&clock);
                self.clocks[other][other] += 1;
                self.threads[other].next += 1;
            }
        }
        true
    }

    fn barrier(&mut self, at: usize, place: (usize, usize), all: usize) -> bool {
        self.meet(at, place, all)
    }

    /// The direction of a channel that an op of a block uses.
    fn wire(
        &self,
        rank: usize,
        block: usize,
        op: &Json,
        id: &Json,
        out: bool,
    ) -> (usize, usize, String, usize) {
        let kind = word(&op["channel_type"]);
        let own: Vec<usize> = items(&self.gpu(rank)["threadblocks"][block]["channels"])
            .iter()
            .filter(|channel| word(&channel["channel_type"]) == kind)
            .flat_map(|channel| items(&channel["channel_ids"]).iter().map(number))
            .collect();
        let peers: Vec<usize> = items(&self.gpu(rank)["channels"])
            .iter()
            .filter(|channel| word(&channel["channel_type"]) == kind)
            .flat_map(|channel| items(&channel["connected_to"]).iter().map(number))
            .collect();
        let id = own[number(id)];
        let peer = peers[id];
        let turn = peers[..id].iter().filter(|other| **other == peer).count();
        let (from, to) = if out { (rank, peer) } else { (peer, rank) };
        (from, to, kind.to_owned(), turn)
    }

    /// A chunk of an op: its rank, buffer and first and last element.
    fn place(
        &self,
        rank: usize,
        block: usize,
        op: &Json,
        chunk: &Json,
    ) -> (usize, char, usize, usize) {
        let (owner, letter) = match chunk.get("buffer_id") {
            None => (rank, word(&chunk["type"])),
            Some(id) => {
                let kind = word(&op["channel_type"]);
                let ids: Vec<usize> =
                    items(&self.gpu(rank)["threadblocks"][block]["remote_buffer_refs"])
                        .iter()
                        .filter(|refs| word(&refs["access_channel_type"]) == kind)
                        .flat_map(|refs| items(&refs["remote_buffer_ids"]).iter().map(number))
                        .collect();
                let remote = &self.gpu(rank)["remote_buffers"][ids[number(id)]];
                (number(&remote["rank"]), word(&remote["type"]))
            }
        };
        let first = number(&chunk["index"]) * ELEMENTS;
        let letter = letter.chars().next().expect("a letter");
        (owner, letter, first, first + number(&chunk["size"]) * ELEMENTS)
    }

    /// What a thread moves for an op; whether what it reads is there.
    fn data(&mut self, at: usize, op: &Json, stretch: (usize, usize), call: usize) -> bool {
        let Thread { rank, block, lane, .. } = self.threads[at];
        let name = word(&op["name"]).to_owned();
        let place = |chunk: &Json| self.place(rank, block, op, chunk);
        let mut srcs: Vec<_> = items(&op["src_buff"]).iter().map(place).collect();
        let mut dsts: Vec<_> = items(&op["dst_buff"]).iter().map(place).collect();
        let packet = |place: &mut (usize, char, usize, usize)| place.1 = 'p';
        match &*name {
            "ppkt" | "cpkt" => dsts.iter_mut().for_each(packet),
            "upkt" => srcs.iter_mut().for_each(packet),
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
        let length = |place: &(usize, char, usize, usize)| (place.3 - place.2) / part.1;
        let mine: Vec<(usize, usize)> = (0..groups.len())
            .flat_map(|group| {
                let whole = length(&groups[group].0[0]);
                let (turn, all) = stretch;
                let one = whole / all;
                let first = part.0 * whole + turn * one;
                let own = (0..one).filter(|k| k % 4 / 2 == lane);
                own.map(move |k| (group, first + k)).collect::<Vec<_>>()
            })
            .collect();
        let cell = |machine: &Self, place: &(usize, char, usize, usize), k: usize| {
            machine.cell(call, place.0, place.1, place.2 + k)
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
            // A copy onto itself changes nothing, as that of a rank's own chunk in place.
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

    fn read(&mut self, by: usize, at: (usize, char, usize)) -> Option<Sum> {
        let clock = &self.clocks[by];
        let cell = self.memory.entry(at).or_default();
        if cell.write.is_some_and(|(writer, when)| writer != by && clock[writer] < when) {
            self.found.insert(Outcome::Race);
        }
        cell.reads.push((by, clock[by]));
        if cell.value.is_none() && by < self.threads.len() {
            self.found.insert(Outcome::Wrong);
        }
        cell.value.clone()
    }

    fn write(&mut self, by: usize, at: (usize, char, usize), value: Option<Sum>) {
        let clock = &self.clocks[by];
        let cell = self.memory.entry(at).or_default();
        let unordered = |(other, when): &(usize, u32)| *other != by && clock[*other] < *when;
        if cell.write.iter().chain(&cell.reads).any(unordered) {
            self.found.insert(Outcome::Race);
        }
        cell.write = Some((by, clock[by]));
        cell.reads.clear();
        cell.value = value;
    }

    /// What can be said without running.
    fn refused(&self) -> Option<Outcome> {
        let mut worst = None;
        if self.packets_meet_chunks() {
            return Some(Outcome::Refused);
        }
        for rank in 0..self.ranks {
            let mut released: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            let mut acquired: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            let mut barriers: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
            for (block, ops) in self.programs[rank].iter().enumerate() {
                for (op, _) in ops {
                    let name = word(&op["name"]);
                    let uses = match name {
                        "sem_release" => Some(&mut released),
                        "sem_acquire" => Some(&mut acquired),
                        _ => None,
                    };
                    if let Some(uses) = uses {
                        for id in items(&op["semaphore_ids"]) {
                            uses.entry(number(id)).or_default().push(block);
                        }
                    }
                    if name == "barrier" {
                        let blocks = number(&op["num_threadblocks"]);
                        barriers
                            .entry(number(&op["barrier_id"]))
                            .or_default()
                            .push((block, blocks));
                    }
                    if self.refuses(rank, block, op) {
                        return Some(Outcome::Refused);
                    }
                }
            }
            for id in 0..items(&self.gpu(rank)["semaphores"]).len() {
                let [given, taken] =
                    [&released, &acquired].map(|uses| uses.get(&id).cloned().unwrap_or_default());
                if given.len() != taken.len() {
                    worst = worst.max(Some(Outcome::Hangs));
                }
                let blocks = |uses: &[usize]| uses.iter().collect::<BTreeSet<_>>().len();
                if blocks(&given) > 1 || blocks(&taken) > 1 {
                    worst = worst.max(Some(Outcome::Shared));
                }
            }
            for uses in barriers.values() {
                let mut count: BTreeMap<usize, usize> = BTreeMap::new();
                uses.iter().for_each(|(block, _)| *count.entry(*block).or_default() += 1);
                let all = uses[0].1;
                let level = count.values().all(|times| *times == count[&uses[0].0]);
                if count.len() < all || !level || uses.iter().any(|(_, blocks)| *blocks != all) {
                    worst = worst.max(Some(Outcome::Hangs));
                } else if count.len() > all {
                    worst = worst.max(Some(Outcome::Shared));
                }
            }
        }
        worst
    }

    /// Whether packets, which take twice their room, lie where chunks do.
    fn packets_meet_chunks(&self) -> bool {
        let [mut packets, mut chunks] = [BTreeSet::new(), BTreeSet::new()];
        for (rank, blocks) in self.programs.iter().enumerate() {
            for (block, ops) in blocks.iter().enumerate() {
                for (op, _) in ops {
                    let name = word(&op["name"]);
                    let sides = [&op["src_buff"], &op["dst_buff"]];
                    for (side, all) in sides.into_iter().enumerate() {
                        for (turn, chunk) in items(all).iter().enumerate() {
                            let (owner, letter, first, end) = self.place(rank, block, op, chunk);
                            let packet = match name {
                                "ppkt" | "cpkt" => side == 1,
                                "upkt" => side == 0,
                                "rppkt" => true,
                                _ => name.ends_with("pkt") && turn > 0,
                            };
                            for at in first..end {
                                match (letter, packet) {
                                    ('s', true) => {
                                        packets.extend([(owner, 2 * at), (owner, 2 * at + 1)])
                                    }
                                    ('s', false) => chunks.extend([(owner, at)]),
                                    _ => {}
                                }
                            }
                        }
                    }
                }
            }
        }
        packets.intersection(&chunks).next().is_some()
    }

    /// Whether an op makes no sense: beyond its buffers, over itself, or where it must not write.
    fn refuses(&self, rank: usize, block: usize, op: &Json) -> bool {
        let place = |chunk: &Json| self.place(rank, block, op, chunk);
        let mut srcs: Vec<_> = items(&op["src_buff"]).iter().map(place).collect();
        let mut dsts: Vec<_> = items(&op["dst_buff"]).iter().map(place).collect();
        let name = word(&op["name"]);
        if name == "get" {
            for (src, dst) in srcs.iter_mut().zip(&mut dsts) {
                std::mem::swap(&mut src.2, &mut dst.2);
                std::mem::swap(&mut src.3, &mut dst.3);
            }
        }
        let out = |place: &(usize, char, usize, usize)| {
            place.3 > self.chunks(place.0, place.1) * ELEMENTS
        };
        if srcs.iter().chain(&dsts).any(out) {
            return true;
        }
        if self.plan["inplace"] == false && dsts.iter().any(|dst| dst.1 == 'i') {
            return true;
        }
        if name.ends_with("pkt") {
            let (from, to) = match name {
                "ppkt" | "cpkt" => (srcs.len(), 0),
                "upkt" => (0, dsts.len()),
                "rppkt" => (0, 0),
                _ => (1, 1),
            };
            return srcs[from..].iter().chain(&dsts[to..]).any(|place| place.1 != 's');
        }
        if name == "put" && srcs.iter().any(|src| src.1 != srcs[0].1) {
            return true;
        }
        let cells = |place: &(usize, char, usize, usize)| {
            let (owner, letter, start) = self.cell(0, place.0, place.1, place.2);
            (owner, letter, start, start + place.3 - place.2)
        };
        let overlap = |one: &(usize, char, usize, usize), other: &(usize, char, usize, usize)| {
            let (one, other) = (cells(one), cells(other));
            (one.0, one.1) == (other.0, other.1) && one.2 < other.3 && other.2 < one.3
        };
        let same = |one: &(usize, char, usize, usize), other: &(usize, char, usize, usize)| {
            cells(one) == cells(other)
        };
        let pairs = matches!(name, "put" | "get");
        dsts.iter().enumerate().any(|(at, dst)| {
            srcs.iter()
                .enumerate()
                .any(|(from, src)| (!pairs || from == at) && overlap(src, dst) && !same(src, dst))
                || !pairs && dsts[..at].iter().any(|other| overlap(other, dst))
        })
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

fn knows(clock: &Clock, other: &Clock) -> bool {
    clock.iter().zip(other).all(|(own, other)| own >= other)
}

fn add(left: Option<Sum>, right: Option<Sum>) -> Option<Sum> {
    let (mut left, right) = left.zip(right)?;
    for (leaf, times) in right {
        *left.entry(leaf).or_insert(0) += times;
    }
    Some(left)
}
