//! Plans that the reader accepts and the executor refuses, and faults that show without a run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::model::{ELEMENTS, Model, Place, items, number, word};
use crate::models::Outcome;

impl Model<'_> {
    /// Returns the outcome that shows without a run.
    pub(super) fn refused(&self) -> Option<Outcome> {
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
                for (block, _) in uses {
                    *count.entry(*block).or_default() += 1;
                }
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
                                "rppkt" | "portpkt" | "arrive" => true,
                                _ => name.ends_with("pkt") && turn > 0,
                            };
                            for at in first..end {
                                match (letter, packet) {
                                    ('s', true) => {
                                        packets.extend([(owner, 2 * at), (owner, 2 * at + 1)]);
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
        let ids: Vec<_> = items(&op["channel_ids"]).iter().map(number).collect();
        let twice = ids.iter().collect::<BTreeSet<_>>().len() < ids.len();
        if twice && srcs.is_empty() {
            return true;
        }
        let out = |place: &Place| place.3 > self.chunks(place.0, place.1) * ELEMENTS;
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
                "rppkt" | "portpkt" => (0, 0),
                _ => (1, 1),
            };
            return srcs[from..].iter().chain(&dsts[to..]).any(|place| place.1 != 's');
        }
        let port = word(&op["channel_type"]) == "port";
        if name == "put" && !port && srcs.iter().any(|src| src.1 != srcs[0].1) {
            return true;
        }
        let cells = |place: &Place| {
            let (owner, letter, start) = self.cell(0, place.0, place.1, place.2);
            (owner, letter, start, start + place.3 - place.2)
        };
        let overlap = |one: &Place, other: &Place| {
            let (one, other) = (cells(one), cells(other));
            (one.0, one.1) == (other.0, other.1) && one.2 < other.3 && other.2 < one.3
        };
        let same = |one: &Place, other: &Place| cells(one) == cells(other);
        let pairs = port || matches!(name, "put" | "get");
        dsts.iter().enumerate().any(|(at, dst)| {
            srcs.iter()
                .enumerate()
                .any(|(from, src)| (!pairs || from == at) && overlap(src, dst) && !same(src, dst))
                || !pairs && dsts[..at].iter().any(|other| overlap(other, dst))
        })
    }
}
