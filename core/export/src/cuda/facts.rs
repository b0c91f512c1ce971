//! The facts of a launch. The author's loops are in the text; the facts are the data for them: lanes, streams, scratch, and
//! the tables of the loops.

use super::switch::{self, SwitchSides};
use super::words::{
    CHILD_SIGNALS, GROUP_WORDS, Header, INPUT, Kind, OP_WORDS, OPERAND_WORDS, OUTPUT, PAIR_SIGNALS,
    SCRATCH, SCRATCH_WORDS, WordTable,
};
use super::{Facts, Group, Kernel, parts};
use crate::loops::lanes::lanes_within;
use roundelay_core::ids::{OpId, RankId, ScratchId};
use roundelay_core::schedule::{Buffer, Channel, OpKind, Operand, SignalKind, Stream};

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
    /// For each buffer its first element, and the elements of a slot.
    of: Vec<[u64; SCRATCH_WORDS]>,
    elements: u64,
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
        words.put(slots.of.iter().flatten().map(|word| *word as i64));
        if let Some((loops, _)) = &self.loops {
            let entries = loops.tables.all.iter().flat_map(|table| &table.entries);
            words.put(entries.flatten().copied());
        }
        let first_move = self.finish(&mut words);
        let firsts = match &self.loops {
            Some(_) => {
                let within = words.put(lanes_within(&lanes));
                words.head(Header::LanesAt, within);
                let children = self.children(&mut words, streams);
                words.head(Header::ChildrenAt, children);
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
        for (word, value) in [
            (Header::Ranks, n.into()),
            (Header::GroupsAt, groups),
            (Header::Lanes, lanes.len() as i64),
            (Header::OutputUnits, collective.max_output_units(n).into()),
            (Header::Streams, streams.into()),
            (Header::Divisor, n.into()),
        ] {
            words.head(word, value);
        }
        let group = |s: &Stream| Group { rank: s.rank, stream: s.index };
        Facts {
            words: words.words,
            groups: schedule.streams.iter().map(group).collect(),
            lanes,
            posted_words: counters.words(),
            counts_launches: self.spec.protocol.has_lines(),
            scratch_elements: slots.elements,
            scale_outputs: self.scales(),
            switches: switch::groups(schedule),
        }
    }

    /// Returns the lanes by their numbers in the kernel.
    fn lanes(&self) -> Vec<Vec<i64>> {
        match &self.loops {
            Some((loops, facts)) => loops.lane_numbers(facts, &self.schedule),
            None => self.schedule.lanes.clone(),
        }
    }

    /// Writes the children that each stream of each rank forks, in the order of their first forks. Returns the place of
    /// their places.
    fn children(&self, words: &mut WordTable, streams: u32) -> i64 {
        let schedule = &*self.schedule;
        let mut firsts = vec![0; (schedule.nranks * streams) as usize];
        for stream in &schedule.streams {
            let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
            let mut children = Vec::new();
            for op in ops.iter().filter(|op| op.kind == OpKind::Post) {
                let channel = schedule.channel(op);
                let child = i64::from(channel.lane.0);
                if channel.kind == SignalKind::Fork && !children.contains(&child) {
                    children.push(child);
                }
            }
            firsts[(stream.rank.0 * streams + stream.index) as usize] = words.put(children);
        }
        words.put(firsts)
    }

    /// Returns the layout of scratch. Slots begin at multiples of the bytes that a warp moves at once as lines, or else of
    /// 16 bytes.
    fn slots(&self, count: u64) -> SlotLengths {
        let size = self.spec.element.size() as u64;
        let (unit, data_in_unit) = self.spec.protocol.unit();
        let (mut of, mut elements) = (Vec::new(), 0_u64);
        for (id, scratch) in (0..).map(ScratchId).zip(&self.schedule.scratch) {
            let data = scratch.slot_elements(count);
            let held = if self.is_lined(id) { data_in_unit } else { unit };
            let len = data.saturating_mul(size).div_ceil(held).saturating_mul(unit / size);
            of.push([elements, len]);
            elements = elements.saturating_add(len.saturating_mul(scratch.slots.into()));
        }
        SlotLengths { of, elements }
    }

    /// Whether the slots of a scratch buffer hold lines of data and flag. These are the slots of fifos with a protocol that
    /// has lines.
    pub fn is_lined(&self, id: ScratchId) -> bool {
        self.spec.protocol.has_lines() && self.fifos.contains(&id)
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
        let switches = switch::groups(schedule);
        let members = |group: &Vec<RankId>| {
            let ranks = group.iter().map(|rank| i64::from(rank.0));
            words.put(std::iter::once(group.len() as i64).chain(ranks))
        };
        let members: Vec<i64> = switches.iter().map(members).collect();
        let members = words.put(members);
        words.head(Header::SwitchesAt, members);
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
                    let (_, len) = schedule.extent(schedule.region(schedule.srcs(op)[0]), count);
                    // A side of all ranks is one operand, of the group in the place of the rank.
                    let sides = SwitchSides::of(op);
                    let group = sides.map(|_| {
                        let group = switch::group_of(schedule, op);
                        let at = switches.iter().position(|known| *known == group);
                        i64::from(schedule.nranks) + at.unwrap_or(0) as i64
                    });
                    let (kind, shape) = match sides {
                        Some(sides) => (Kind::Switch, i64::from(sides.number()) | finish),
                        None => (Kind::Move, i64::from(op.srcs) | i64::from(op.dsts) << 8 | finish),
                    };
                    ops.push([kind as i64, shape, operands.len() as i64, len as i64]);
                    let listed: Vec<(bool, &Operand)> = match sides {
                        Some(SwitchSides { from_all, to_all }) => {
                            let (src, dst) = (&schedule.srcs(op)[0], &schedule.dsts(op)[0]);
                            vec![(from_all, src), (to_all, dst)]
                        }
                        None => schedule.operands_of(op).iter().map(|one| (false, one)).collect(),
                    };
                    for (of_all, operand) in listed {
                        let region = schedule.region(*operand);
                        let base = region.base.element(count);
                        let (buffer, offset) = match region.buffer {
                            Buffer::Input => (INPUT, region.lo.element(count)),
                            Buffer::Output => (OUTPUT, region.lo.element(count)),
                            Buffer::Scratch(id) => {
                                let [first, len] = slots.of[id.index()];
                                let slot =
                                    first.saturating_add(len.saturating_mul(region.slot.into()));
                                (SCRATCH, slot.saturating_add(region.lo.element(count) - base))
                            }
                        };
                        let rank = group.filter(|_| of_all).unwrap_or(operand.rank.0.into());
                        operands.push([rank, buffer as i64, offset as i64]);
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
