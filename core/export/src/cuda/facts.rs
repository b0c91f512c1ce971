//! The facts of a launch. The author's loops are in the text; the facts are the data for them: lanes, streams, slots,
//! parameters, and the rings, trees, groups and topologies that the host searched for.

use std::collections::BTreeMap;

use super::words::{
    CHILD_SIGNALS, CREDIT_WORDS, GROUP_WORDS, HELD_WORDS, Header, INPUT, Key, Kind, LINK_WORDS,
    OP_WORDS, OPERAND_WORDS, OUTPUT, PAIR_SIGNALS, SCRATCH, SCRATCH_WORDS, WordTable, name,
};
use super::{Facts, Group, Kernel, Protocol, Site, parts};
use roundelay_core::ids::{LaneId, OpId, RankId, ScratchId};
use roundelay_core::layout::record::{Answer, Argument, Record};
use roundelay_core::schedule::{Buffer, Channel, OpKind, Schedule, SignalKind, Stream};
use roundelay_core::values::groups::firsts;

/// The layout of a schedule's counters at the waiting rank.
struct Counters {
    nranks: u64,
    lanes: u64,
    streams: u64,
}

impl Counters {
    /// Returns the number of counters: those of pairs, those of children, and for each stream one at which its parts
    /// meet.
    fn words(&self) -> u64 {
        self.of_pairs() + (CHILD_SIGNALS as u64 + 1) * self.streams
    }

    fn of_pairs(&self) -> u64 {
        self.lanes * self.nranks * PAIR_SIGNALS as u64
    }

    fn index(&self, channel: &Channel) -> u64 {
        let (lane, kind) = (u64::from(channel.lane.0), channel.kind as u64);
        if channel.kind.has_lane() {
            (lane * self.nranks + u64::from(channel.from.0)) * PAIR_SIGNALS as u64 + kind
        } else {
            // In these channels the lane is the child stream.
            self.of_pairs() + lane * CHILD_SIGNALS as u64 + kind - PAIR_SIGNALS as u64
        }
    }
}

/// The layout of a rank's scratch buffers.
struct SlotLengths {
    /// For each buffer its first element, the elements of a slot, and the number of slots before it.
    of: Vec<[u64; SCRATCH_WORDS]>,
    elements: u64,
    held: u64,
}

impl Kernel {
    /// Returns the facts of a launch for `count` elements in a unit. For scratch beyond 2^63 elements the lengths
    /// saturate.
    pub fn facts(&self, count: u64) -> Facts {
        let schedule = &*self.schedule;
        let mut words = WordTable::new();
        let streams = schedule.streams.iter().map(|s| s.index + 1).max().unwrap_or(1);
        let lanes = self.lanes();
        let counters = Counters {
            nranks: schedule.nranks.into(),
            lanes: lanes.len() as u64,
            streams: streams.into(),
        };
        let slots = self.slots(count);
        let scratch = words.put(slots.of.iter().flatten().map(|word| *word as i64));
        let first_move = self.finish(&mut words);
        let mut links = 0;
        let firsts = match &self.record {
            Some((record, sites)) => {
                self.answers(&mut words, record, sites);
                let params = record.params.iter().map(|answer| object(&mut words, record, answer));
                let params: Vec<i64> = params.collect();
                let params = words.put(params);
                words.head(Header::ParamsAt, params);
                links = record.links.len();
                first_move
            }
            None => self.ops(&mut words, &counters, &slots, count),
        };
        let groups = schedule.streams.iter().zip(firsts.windows(2)).flat_map(|(stream, ends)| {
            let row: [i64; GROUP_WORDS] =
                [stream.rank.0.into(), stream.index.into(), ends[1] - ends[0], ends[0]];
            row
        });
        let groups = words.put(groups);
        let (collective, n) = (schedule.collective, schedule.nranks);
        let near = self.record.as_ref().map_or(0, |(record, _)| links_of_a_rank(record));
        let members = self.record.as_ref().map_or(0, |(record, _)| record.members as u64);
        let work = HELD_WORDS as u64 * slots.held + LINK_WORDS as u64 * near + members;
        for (word, value) in [
            (Header::Ranks, n.into()),
            (Header::GroupsAt, groups),
            (Header::Lanes, lanes.len() as i64),
            (Header::ScratchAt, scratch),
            (Header::InputUnits, collective.max_input_units(n).into()),
            (Header::OutputUnits, collective.max_output_units(n).into()),
            (Header::Streams, streams.into()),
            (Header::Slots, slots.held as i64),
            (Header::LinksOfARank, near as i64),
            (Header::Divisor, n.into()),
            (Header::Work, work as i64),
        ] {
            words.head(word, value);
        }
        words.table();
        let group = |s: &Stream| Group { rank: s.rank, stream: s.index };
        Facts {
            words: words.words,
            groups: schedule.streams.iter().map(group).collect(),
            lanes,
            posted_words: counters.words(),
            work_words: work,
            links: links as u64,
            scratch_elements: slots.elements,
            scale_outputs: self.scales(),
        }
    }

    /// Returns the lanes by their numbers in the kernel.
    fn lanes(&self) -> Vec<Vec<i64>> {
        match &self.record {
            Some((record, _)) => record.lanes.clone(),
            None => self.schedule.lanes.clone(),
        }
    }

    /// Returns the layout of scratch. Slots begin at multiples of 16 bytes; lines of LL take twice the bytes of their
    /// data.
    fn slots(&self, count: u64) -> SlotLengths {
        let size = self.spec.element.size() as u64;
        let line = 16 / size;
        let (mut of, mut elements, mut slots) = (Vec::new(), 0_u64, 0);
        for (id, scratch) in (0..).map(ScratchId).zip(&self.schedule.scratch) {
            let data = scratch.slot_elements(count);
            let len = if self.is_lined(id) {
                data.saturating_mul(size).div_ceil(8).saturating_mul(line)
            } else {
                data.div_ceil(line).saturating_mul(line)
            };
            of.push([elements, len, slots]);
            elements = elements.saturating_add(len.saturating_mul(scratch.slots.into()));
            slots += u64::from(scratch.slots);
        }
        SlotLengths { of, elements, held: slots }
    }

    /// Whether the slots of a scratch buffer hold lines of data and flag, which take twice the bytes of their data.
    /// These are the slots of fifos with the protocol [`Protocol::Ll`].
    pub fn is_lined(&self, id: ScratchId) -> bool {
        let is_fifo = |record: &Record| record.fifos().any(|fifo| fifo == id);
        self.spec.protocol == Protocol::Ll
            && self.record.as_ref().is_some_and(|(record, _)| is_fifo(record))
    }

    /// Writes a bit for each move, set if `avg` divides its result. Returns the first bit of each stream, and the end
    /// of the last.
    fn finish(&self, words: &mut WordTable) -> Vec<i64> {
        let (mut bits, mut firsts, mut moves) = (Vec::new(), Vec::new(), 0_usize);
        for stream in &self.schedule.streams {
            firsts.push(moves as i64);
            for at in (stream.first.0..stream.first.0 + stream.len).map(OpId) {
                if self.schedule.op(at).kind != OpKind::Move {
                    continue;
                }
                if moves % 64 == 0 {
                    bits.push(0_u64);
                }
                if self.finishes(at) {
                    bits[moves / 64] |= 1 << (moves % 64);
                }
                moves += 1;
            }
        }
        firsts.push(moves as i64);
        let at = words.put(bits.into_iter().map(|word| word as i64));
        words.head(Header::FinishAt, at);
        firsts
    }

    /// Whether `avg` divides the result of a move.
    pub fn finishes(&self, at: OpId) -> bool {
        self.finish.contains(&at)
    }

    fn answers(&self, words: &mut WordTable, record: &Record, sites: &[Site]) {
        for (lane, values) in record.lanes.iter().enumerate() {
            let Some((value, around)) = values.split_last() else { continue };
            let parent = record.lanes.iter().position(|lane| lane == around);
            let parent = parent.expect("a lane is named after the one around it");
            words.answer(Key::Lane, [parent as i64, *value], lane as i64);
        }
        for ((rank, parent), children) in children(&self.schedule) {
            let list = words.list(&children);
            words.answer(Key::Child, [rank.0.into(), parent.into()], list);
        }
        let mut declared = BTreeMap::new();
        for ((path, lane, k), id) in &record.declared {
            let path = path.iter().fold(0, |path, at| name(&[path, (*at).into()]));
            let key = [path, lane.0.into(), *k as i64];
            words.answer(Key::Scratch, key, id.0.into());
            declared.insert(*id, key);
        }
        for (index, ((fifo, LaneId(lane), from, to), first)) in (0..).zip(&record.links) {
            let value = words.put([(*first).into(), index]);
            let key = [fifo.0, *lane, from.0, to.0].map(i64::from);
            words.answer(Key::Link, key, value);
        }
        for ((fifo, rank), credits) in &record.ends {
            let list = words.put([credits.len() as i64]);
            for credit in credits {
                let row: [i64; CREDIT_WORDS] =
                    [credit.peer.0.into(), credit.lane.0.into(), credit.times as i64];
                words.put(row);
            }
            let key = declared[fifo].into_iter().chain([rank.0.into()]);
            words.answer(Key::EndFifo, key, list);
        }
        for (asked, answer) in &record.objects {
            let made = |(name, place): &Site| *name == asked.algorithm && *place == asked.place;
            let Some(site) = sites.iter().position(made) else { continue };
            let group = asked.members.as_ref().map_or(0, |members| {
                name(&members.iter().map(|rank| rank.0.into()).collect::<Vec<_>>()) | 1
            });
            let mut key = vec![site as i64, asked.size.into(), group];
            for arg in &asked.args {
                match arg {
                    Argument::Int(value) => key.push(*value),
                    Argument::Topology(id) | Argument::Trees(id) => key.push((*id).into()),
                    Argument::List(list) => {
                        key.push(list.len() as i64);
                        key.extend(list);
                    }
                }
            }
            let value = object(words, record, answer);
            words.answer(Key::Object, key, value);
        }
        for ((topology, a, b), relays) in &record.relays {
            let list = words.list(relays);
            words.answer(Key::Relays, [(*topology).into(), *a, *b], list);
        }
    }

    /// Writes the ops of the table form. Returns the first op of each stream, and the end of the last.
    fn ops(
        &self,
        words: &mut WordTable,
        counters: &Counters,
        slots: &SlotLengths,
        count: u64,
    ) -> Vec<i64> {
        let schedule = &*self.schedule;
        let meets = parts::ops(schedule);
        let mut ops: Vec<[i64; OP_WORDS]> = Vec::new();
        let mut operands: Vec<[i64; OPERAND_WORDS]> = Vec::new();
        let mut firsts = Vec::new();
        for stream in &schedule.streams {
            firsts.push(ops.len() as i64);
            for at in (stream.first.0..stream.first.0 + stream.len).map(OpId) {
                if meets.contains(&at) {
                    ops.push([Kind::Meet as i64, 0, 0, 0]);
                }
                let op = schedule.op(at);
                if op.kind == OpKind::Move {
                    let finish = i64::from(self.finishes(at)) << 16;
                    let shape = i64::from(op.srcs) | i64::from(op.dsts) << 8 | finish;
                    let (_, len) = schedule.extent(schedule.region(schedule.srcs(op)[0]), count);
                    ops.push([Kind::Move as i64, shape, operands.len() as i64, len as i64]);
                    for operand in schedule.operands_of(op) {
                        let region = schedule.region(*operand);
                        let base = region.base.element(count);
                        let (buffer, offset) = match region.buffer {
                            Buffer::Input => (INPUT, region.lo.element(count)),
                            Buffer::Output => (OUTPUT, region.lo.element(count)),
                            Buffer::Scratch(id) => {
                                let [first, len, _] = slots.of[id.index()];
                                let slot =
                                    first.saturating_add(len.saturating_mul(region.slot.into()));
                                (SCRATCH, slot.saturating_add(region.lo.element(count) - base))
                            }
                        };
                        operands.push([operand.rank.0.into(), buffer as i64, offset as i64]);
                    }
                    continue;
                }
                let channel = schedule.channel(op);
                let (kind, peer) = match op.kind {
                    OpKind::Post => (Kind::Post, channel.to),
                    _ => (Kind::Wait, channel.from),
                };
                ops.push([kind as i64, peer.0.into(), counters.index(channel) as i64, 0]);
            }
        }
        firsts.push(ops.len() as i64);
        let ops = words.put(ops.into_flattened());
        let operands = words.put(operands.into_flattened());
        words.head(Header::OpsAt, ops);
        words.head(Header::OperandsAt, operands);
        firsts
    }
}

/// Returns the children that each stream forks, in the order of their first forks.
fn children(schedule: &Schedule) -> BTreeMap<(RankId, u32), Vec<i64>> {
    let mut children: BTreeMap<_, Vec<i64>> = BTreeMap::new();
    for stream in &schedule.streams {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        for op in ops.iter().filter(|op| op.kind == OpKind::Post) {
            let channel = schedule.channel(op);
            let child = i64::from(channel.lane.0);
            if channel.kind == SignalKind::Fork {
                let known = children.entry((stream.rank, stream.index)).or_default();
                if !known.contains(&child) {
                    known.push(child);
                }
            }
        }
    }
    children
}

/// Returns the most links with an end at one rank.
fn links_of_a_rank(record: &Record) -> u64 {
    let mut ends: BTreeMap<RankId, u64> = BTreeMap::new();
    for (_, _, from, to) in record.links.keys() {
        for rank in [from, to] {
            *ends.entry(*rank).or_insert(0) += 1;
        }
    }
    ends.into_values().max().unwrap_or(0)
}

/// Returns a value as a word: the number itself, or the place of its words.
fn object(words: &mut WordTable, record: &Record, answer: &Answer) -> i64 {
    match answer {
        Answer::Int(value) => *value,
        Answer::List(list) | Answer::Ring(list) => words.list(list),
        Answer::Rings(rings) => {
            let rings: Vec<i64> = rings.iter().map(|ring| words.list(ring)).collect();
            words.list(&rings)
        }
        Answer::Tree(tree) => words.put(tree.words()),
        Answer::Trees(id) => {
            let forest = &record.forests[*id as usize];
            let trees: Vec<i64> = forest.trees().map(|tree| words.put(tree.words())).collect();
            let at = words.put([(*id).into()]);
            words.list(&trees);
            words.put(forest.words());
            at
        }
        Answer::Groups(groups) => words.put(groups.words()),
        Answer::Topology(id) => {
            let ranked = &record.topologies[*id as usize];
            let (topology, n) = (&ranked.topology, ranked.nranks);
            let ranks = || (0..n).map(RankId);
            let linked = ranks().flat_map(|a| ranks().map(move |b| (a, b)));
            let linked = linked.map(|(a, b)| i64::from(topology.linked(a, b)));
            let near: Vec<Vec<i64>> =
                ranks().map(|rank| ranked.members(topology.neighbors(rank))).collect();
            let at = words.put([(*id).into(), n.into()].into_iter().chain(linked));
            words.put(firsts(&near));
            words.put(near.into_iter().flatten());
            words.put(ranked.shares());
            words.list(&ranked.missing());
            words.list(&ranked.hubs());
            at
        }
    }
}
