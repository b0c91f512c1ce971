//! Ports of the executor in small: threads enter puts and signals into the queue of their rank's proxy, which hands them
//! to connections, one for each channel; each connection carries them out in order, and as late as it likes.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use serde_json::Value as Json;

use super::model::{Model, Place, THREADS, items, number, word};
use super::run::{Machine, Wire};
use crate::models::{Clock, join};

/// A put, a signal, or both.
struct Entry {
    wire: Wire,
    clock: Clock,
    call: usize,
    put: Option<[Place; 2]>,
    packets: bool,
    signals: bool,
    /// The thread that waits for its end.
    flushes: Option<usize>,
}

#[derive(Default)]
pub(super) struct Proxies {
    /// The clock of each connection.
    clocks: BTreeMap<Wire, usize>,
    queues: BTreeMap<usize, VecDeque<Entry>>,
    connections: BTreeMap<Wire, VecDeque<Entry>>,
    /// The number of ends that each thread waits for, and the clocks of those that came.
    flushes: BTreeMap<usize, (usize, Vec<Clock>)>,
}

/// Whether a thread enters an op into a queue.
pub(super) fn is_of_port(op: &Json) -> bool {
    let names = ["signal", "rlxsignal", "put", "pws", "pwsf", "portpkt"];
    word(&op["channel_type"]) == "port" && names.contains(&word(&op["name"]))
}

impl Proxies {
    pub(super) fn new(wires: Vec<Wire>, first: usize) -> Self {
        Self { clocks: wires.into_iter().zip(first..).collect(), ..Self::default() }
    }

    /// The clocks of a rank's connections.
    pub(super) fn of_rank(&self, rank: usize) -> impl Iterator<Item = usize> {
        self.clocks.iter().filter(move |(wire, _)| wire.0 == rank).map(|(_, clock)| *clock)
    }

    /// Whether nothing of a rank is on its way.
    pub(super) fn idle(&self, rank: usize) -> bool {
        self.queues.get(&rank).is_none_or(VecDeque::is_empty)
            && self.connections.iter().all(|(wire, all)| wire.0 != rank || all.is_empty())
    }
}

impl Model<'_> {
    /// The directions of all channels over ports.
    pub(super) fn ports(&self) -> Vec<Wire> {
        let mut wires = Vec::new();
        for rank in 0..self.ranks {
            let channels = items(&self.gpu(rank)["channels"]).iter();
            let ports = channels.filter(|channel| word(&channel["channel_type"]) == "port");
            let peers: Vec<usize> = ports
                .flat_map(|channel| items(&channel["connected_to"]).iter().map(number))
                .collect();
            for (at, peer) in peers.iter().enumerate() {
                let turn = peers[..at].iter().filter(|other| *other == peer).count();
                wires.push((rank, *peer, "port".to_owned(), turn));
            }
        }
        wires
    }
}

impl Machine<'_> {
    /// Enters a thread's part of an op; whether the thread may go on.
    pub(super) fn enter_port(
        &mut self,
        at: usize,
        (rank, block, lane): (usize, usize, usize),
        (op, (turn, all), call): (&Json, (usize, usize), usize),
    ) -> bool {
        if let Some((wanted, ends)) = self.proxies.flushes.get(&at) {
            if ends.len() < *wanted {
                return false;
            }
            let (_, ends) = self.proxies.flushes.remove(&at).expect("it is there");
            for end in &ends {
                join(&mut self.clocks[at], end);
            }
            return true;
        }
        let name = word(&op["name"]);
        let own = items(&op["channel_ids"]).iter().enumerate();
        let own: Vec<_> = own.filter(|(turn, _)| turn % THREADS == lane).collect();
        let part = op
            .get("tbg_info")
            .map_or((0, 1), |info| (number(&info["tb_id"]), number(&info["tbg_size"])));
        for (place, id) in &own {
            let put = items(&op["src_buff"]).get(*place).map(|src| {
                [src, &items(&op["dst_buff"])[*place]].map(|chunk| {
                    let (owner, letter, first, end) = self.model.place(rank, block, op, chunk);
                    let whole = (end - first) / part.1;
                    let first = first + part.0 * whole + turn * (whole / all);
                    let letter = if name == "portpkt" { 'p' } else { letter };
                    (owner, letter, first, first + whole / all)
                })
            });
            let entry = Entry {
                wire: self.model.wire(rank, block, op, id, true),
                clock: self.clocks[at].clone(),
                call,
                put,
                packets: name == "portpkt",
                signals: matches!(name, "signal" | "rlxsignal" | "pws" | "pwsf"),
                flushes: (name == "pwsf").then_some(at),
            };
            self.clocks[at][at] += 1;
            self.proxies.queues.entry(rank).or_default().push_back(entry);
        }
        if name == "pwsf" && !own.is_empty() {
            self.proxies.flushes.insert(at, (own.len(), Vec::new()));
            return false;
        }
        true
    }

    /// Lets proxies hand on and connections carry out some entries; at least one if it `must`, and there is one. Whether
    /// there was.
    pub(super) fn carry(&mut self, random: &mut Rng, must: bool) -> bool {
        let mut moved = false;
        let mut go = |moved: bool| must && !moved || random.usize(..3) == 0;
        for queue in self.proxies.queues.values_mut() {
            if !queue.is_empty() && go(moved) {
                let entry = queue.pop_front().expect("it is there");
                let connection = self.proxies.connections.entry(entry.wire.clone());
                connection.or_default().push_back(entry);
                moved = true;
            }
        }
        let wires: Vec<Wire> = self.proxies.connections.keys().cloned().collect();
        for wire in wires {
            let connection = self.proxies.connections.get_mut(&wire).expect("it is there");
            if !connection.is_empty() && go(moved) {
                let entry = connection.pop_front().expect("it is there");
                self.carry_out(entry);
                moved = true;
            }
        }
        moved
    }

    fn carry_out(&mut self, entry: Entry) {
        let own = self.proxies.clocks[&entry.wire];
        join(&mut self.clocks[own], &entry.clock);
        if let Some([src, dst]) = entry.put {
            for k in 0..src.3 - src.2 {
                let [from, to] = [src, dst]
                    .map(|place| self.model.cell(entry.call, place.0, place.1, place.2 + k));
                let value = self.read(own, from);
                self.write(own, to, value);
                if entry.packets {
                    let flag = self.memory[&from].flag.clone();
                    let flag = flag.map(|(call, _)| (call, self.clocks[own].clone()));
                    self.memory.get_mut(&to).expect("it is there").flag = flag;
                }
            }
            self.clocks[own][own] += 1;
        }
        if entry.signals {
            self.post(own, entry.wire);
        }
        if let Some(thread) = entry.flushes {
            let clock = self.clocks[own].clone();
            self.proxies.flushes.get_mut(&thread).expect("it waits").1.push(clock);
            self.clocks[own][own] += 1;
        }
    }
}
