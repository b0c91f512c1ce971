//! The paths of a schedule's messages, each found once.

use super::machine::{Machine, SignalCost};
use super::machine_turns::MachineTurns;
use roundelay_base::ids::{RankId, RegionId};
use roundelay_core::schedule::{Op, OpKind, Operand, Schedule};
use roundelay_topology::routes::Routes;
use roundelay_topology::{Fabric, NodeId, ReducingTree};

/// The ends of a path: two ranks, or a rank and its switch.
pub(super) type Ends = (NodeId, NodeId);

/// The path from one rank to another, or between a rank and its switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankPath {
    /// Its links in [`RankPaths::links`].
    first: u32,
    len: u32,
    /// The latency in seconds.
    pub(super) latency: f64,
    /// Bytes a second if no other message is on its links.
    pub(super) alone: f64,
}

/// The paths of all pairs of ranks that talk.
pub(super) struct RankPaths<'m> {
    all: Vec<RankPath>,
    /// The links of paths, and the part of the bytes that each carries.
    links: Vec<(u32, f64)>,
    /// Open addressing by the ends: the ends and the path; a power of two of slots, at most half of them taken.
    slots: Vec<(u64, u32)>,
    /// Bytes a second of each link of the topology.
    pub(super) capacity: Vec<f64>,
    /// The turns that the run is alike under, where one rank stands for several.
    turns: Option<&'m MachineTurns>,
}

const EMPTY: u64 = u64::MAX;

impl<'m> RankPaths<'m> {
    /// Returns the paths; `None` if two ranks talk that are not linked. With `turns`, the schedule has the ranks that
    /// stand for the others, and a path has the load of the messages of all ranks that it stands for.
    pub(super) fn new(
        schedule: &Schedule,
        machine: &Machine,
        turns: Option<&'m MachineTurns>,
    ) -> Option<Self> {
        let (mut found, mut ends) = (Self::empty(machine, turns), Vec::new());
        for stream in &schedule.streams {
            let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
            for op in ops.iter().filter(|op| op.kind == OpKind::Move) {
                for (path, _) in transfers(schedule, &machine.topology, stream.rank, op) {
                    found.meet(path, &mut ends);
                }
            }
        }
        // Signals that take no time need no link.
        if machine.signals == SignalCost::Messages {
            for channel in schedule.channels.iter().filter(|channel| channel.from != channel.to) {
                found.meet((channel.from.into(), channel.to.into()), &mut ends);
            }
        }
        found.find(ends, machine).then_some(found)
    }

    /// Returns the paths of these pairs of ranks; `None` if two of them are not linked.
    pub(super) fn between_pairs(pairs: &[(RankId, RankId)], machine: &Machine) -> Option<Self> {
        let (mut found, mut ends) = (Self::empty(machine, None), Vec::new());
        for (from, to) in pairs {
            found.meet(((*from).into(), (*to).into()), &mut ends);
        }
        found.find(ends, machine).then_some(found)
    }

    fn empty(machine: &Machine, turns: Option<&'m MachineTurns>) -> Self {
        let (capacity, slots) = (machine.links().0, vec![(EMPTY, 0); 1 << 10]);
        Self { all: Vec::new(), links: Vec::new(), slots, capacity, turns }
    }

    /// Finds the paths of these ends; returns whether all of them are linked.
    fn find(&mut self, ends: Vec<Ends>, machine: &Machine) -> bool {
        let topology = &machine.topology;
        let linked = |(from, to): &Ends| match (rank(topology, *from), rank(topology, *to)) {
            (Some(from), Some(to)) => topology.are_linked(from, to),
            _ => true,
        };
        if !ends.iter().all(linked) {
            return false;
        }
        let (turns, latency) = (self.turns, machine.links().1);
        // The paths from one rank are found together.
        let alike = |(from, to): Ends| match turns {
            Some(turns) if topology.is_rank(from) && topology.is_rank(to) => {
                let (from, to) = turns.pair(RankId(from.0), RankId(to.0));
                (from.into(), to.into())
            }
            _ => (from, to),
        };
        let mut ends: Vec<_> = ends.into_iter().map(|ends| (alike(ends), ends)).collect();
        ends.sort_unstable();
        let mut routes = Routes::new(topology, machine.routing);
        let mut way = Vec::new();
        for ((source, target), (from, to)) in ends {
            way.clear();
            routes.way(source, target, |link, share| {
                way.push((link as u32, share));
            });
            let links = routes.latency(&way, |link| latency[link]);
            let latency = match (rank(topology, from), rank(topology, to)) {
                (Some(from), Some(to)) => machine.on_path(links, (from, to)),
                (None, None) => return false,
                // To the switch and from it: what the switch takes in and gives out flows at once.
                (Some(end), None) | (None, Some(end)) => machine.on_path(2.0 * links, (end, end)),
            };
            let alone = way.iter().map(|(link, share)| self.capacity[*link as usize] / share);
            let alone = alone.fold(f64::INFINITY, f64::min);
            if let Some(turns) = turns {
                turns.load(&mut way);
            }
            let (first, len) = (self.links.len() as u32, way.len() as u32);
            self.links.extend_from_slice(&way);
            let path = RankPath { first, len, latency, alone };
            let slot = self.slot(key((from, to)));
            self.slots[slot].1 = self.all.len() as u32;
            self.all.push(path);
        }
        true
    }

    /// The number of ranks that each rank of the schedule stands for.
    pub(super) fn each(&self) -> u64 {
        self.turns.map_or(1, |turns| u64::from(turns.each()))
    }

    /// Returns the bytes that each link carried, from the bytes of the links that stand for the others.
    pub(super) fn carried(&self, carried: Vec<f64>) -> Vec<f64> {
        match self.turns {
            None => carried,
            Some(turns) => {
                (0..carried.len()).map(|link| carried[turns.link(link) as usize]).collect()
            }
        }
    }

    /// Returns the number of the path between two ends that the schedule joins.
    pub(super) fn between(&self, ends: Ends) -> u32 {
        self.slots[self.slot(key(ends))].1
    }

    pub(super) fn path(&self, path: u32) -> &RankPath {
        &self.all[path as usize]
    }

    /// Returns the links of a path, and the part of the bytes that each carries.
    pub(super) fn links(&self, path: u32) -> &[(u32, f64)] {
        let RankPath { first, len, .. } = self.all[path as usize];
        &self.links[first as usize..][..len as usize]
    }

    /// Returns the largest number of links of a path.
    pub(super) fn longest(&self) -> usize {
        self.all.iter().map(|path| path.len as usize).max().unwrap_or(0)
    }

    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[at].0 != key && self.slots[at].0 != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    fn meet(&mut self, path: Ends, ends: &mut Vec<Ends>) {
        let slot = self.slot(key(path));
        if self.slots[slot].0 != EMPTY {
            return;
        }
        self.slots[slot].0 = key(path);
        ends.push(path);
        if 2 * ends.len() > self.slots.len() {
            self.slots = vec![(EMPTY, 0); 4 * self.slots.len()];
            for &path in ends.iter() {
                let slot = self.slot(key(path));
                self.slots[slot].0 = key(path);
            }
        }
    }
}

/// Returns the transfers of a move of rank `by`, as [`Schedule::crossing`] does. A move that a switch makes takes what
/// each of its sources has to the switch, and from there to each destination; where it folds for several ranks, the rank
/// that moves gets the sum and stores it. In a tree of switches one rank below each switch stands for all of them further up.
pub(super) fn transfers(
    schedule: &Schedule,
    topology: &Fabric,
    by: RankId,
    op: &Op,
) -> impl Iterator<Item = (Ends, RegionId)> {
    let tree = op.switch.then(|| switches_of(schedule, topology, op)).flatten();
    let own = tree.is_none().then(|| {
        let crossing = schedule.crossing(by, op);
        crossing.map(|(from, to, region)| ((NodeId::from(from), NodeId::from(to)), region))
    });
    let of_switch = tree.map(|tree| {
        let ends = |operands: &[Operand]| -> Vec<(NodeId, NodeId, RegionId)> {
            let joins = tree.joins(operands.iter().map(|operand| operand.rank));
            let each = operands.iter().zip(joins);
            each.map(|(operand, switch)| (operand.rank.into(), switch, operand.region)).collect()
        };
        let srcs = ends(schedule.srcs(op)).into_iter().map(|(rank, at, r)| ((rank, at), r));
        let dsts = ends(schedule.dsts(op)).into_iter().map(|(rank, at, r)| ((at, rank), r));
        let (root, sum) = (tree.root(), schedule.srcs(op)[0].region);
        let stores = op.srcs > 1 && op.dsts > 1;
        let through = stores.then_some([((root, by.into()), sum), ((by.into(), root), sum)]);
        srcs.chain(dsts).chain(through.into_iter().flatten())
    });
    own.into_iter().flatten().chain(of_switch.into_iter().flatten())
}

/// Returns the switches that make a move; `None` where the ranks of the move have none that reduce.
pub(super) fn switches_of(schedule: &Schedule, topology: &Fabric, op: &Op) -> Option<ReducingTree> {
    let ranks: Vec<_> = schedule.operands_of(op).iter().map(|operand| operand.rank).collect();
    topology.reducing_tree(&ranks)
}

/// Returns the rank that a node is; `None` for a switch.
pub(super) fn rank(topology: &Fabric, node: NodeId) -> Option<RankId> {
    topology.is_rank(node).then_some(RankId(node.0))
}

fn key((from, to): Ends) -> u64 {
    u64::from(from.0) << 32 | u64::from(to.0)
}
