//! The streams of a schedule as items of blocks: regions become chunks, and signals become channels and semaphores.

use std::collections::{BTreeMap, BTreeSet};

use super::execution_plan::{Chunk, Data, PlanBlock, PlanWord};
use super::moves::{self, meet};
use super::pulls::{Pulls, mixed_up};
use super::refused;
use super::thread_blocks::{Item, Numbers, StreamSplitter};
use crate::terms::Memory;
use roundelay_core::collective::Alias;
use roundelay_core::diagnostics::Finding;
use roundelay_core::ids::{ChannelId, RankId};
use roundelay_core::rational::{Rat, gcd};
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule, SignalKind, Stream};

/// The number of chunks of a unit of the count, and the place of each scratch.
pub(super) struct Grid {
    of_unit: u64,
    /// The first chunk of each scratch, and the chunks of a slot.
    scratch: Vec<(u32, u32)>,
    /// The chunk after the last scratch.
    end: u32,
}

impl Grid {
    /// Returns the coarsest grid on which all regions begin and end; `None` if a buffer has more than `most` chunks.
    pub(super) fn new(schedule: &Schedule, most: u64) -> Option<Self> {
        let mut of_unit: u64 = schedule.multiple;
        for region in &schedule.regions {
            for at in [region.base, region.lo, region.hi] {
                let both =
                    u128::from(of_unit) * u128::from(at.den()) / u128::from(gcd(of_unit, at.den()));
                of_unit = u64::try_from(both).ok().filter(|of_unit| *of_unit <= most)?;
            }
        }
        let units = schedule.collective.max_units(schedule.nranks);
        of_unit.checked_mul(units).filter(|chunks| *chunks <= most)?;
        let (mut scratch, mut end) = (Vec::new(), 0_u64);
        for one in &schedule.scratch {
            let width = one.width.times(of_unit)?;
            let slot = width.num().div_ceil(width.den());
            scratch.push((end as u32, slot as u32));
            end = slot.checked_mul(one.slots.into())?.checked_add(end)?;
            if end > most {
                return None;
            }
        }
        Some(Self { of_unit, scratch, end: end as u32 })
    }

    /// Returns the chunks in `units` units.
    pub(super) fn chunks(&self, units: Rat) -> u32 {
        units.times(self.of_unit).map_or(0, Rat::floor) as u32
    }

    /// Returns the chunks of all scratch.
    pub(super) fn scratch(&self) -> u32 {
        self.end
    }

    fn chunk(&self, schedule: &Schedule, operand: Operand) -> Chunk {
        let region = schedule.region(operand);
        let (lo, hi) = (self.chunks(region.lo), self.chunks(region.hi));
        let (memory, index) = match region.buffer {
            Buffer::Input => (Memory::Input, lo),
            Buffer::Output => (Memory::Output, lo),
            Buffer::Scratch(id) => {
                let (first, slot) = self.scratch[id.index()];
                (Memory::Scratch, first + region.slot * slot + lo - self.chunks(region.base))
            }
        };
        Chunk { rank: operand.rank.0, memory, index, size: hi - lo }
    }
}

/// The semaphores of a rank. Each post has a semaphore of its own: then only one block releases it, also if a stream
/// continues in another block.
#[derive(Default)]
struct Semaphores {
    ids: BTreeMap<(ChannelId, u32), u32>,
    /// The posts and the waits of each channel so far.
    counts: BTreeMap<(ChannelId, bool), u32>,
}

impl Semaphores {
    fn next(&mut self, channel: ChannelId, posts: bool, numbers: &mut Numbers) -> u32 {
        let count = self.counts.entry((channel, posts)).or_default();
        let turn = *count;
        *count += 1;
        *self.ids.entry((channel, turn)).or_insert_with(|| numbers.semaphore())
    }
}

/// The streams of a schedule.
pub(super) struct Streams<'s> {
    schedule: &'s Schedule,
    grid: &'s Grid,
    in_place: bool,
    /// The number of each channel among the channels with the same sender and receiver.
    ordinals: Vec<u32>,
    /// The number of channels from a rank to another.
    counts: BTreeMap<(u32, u32), u32>,
    /// Forks and joins that order nothing, since all blocks begin and end together.
    idle: BTreeSet<ChannelId>,
    /// The ops that each op of each stream becomes.
    data: Vec<Vec<Vec<Data>>>,
    /// Chunks of scratch that each rank needs for partial sums.
    spare: Vec<u32>,
    pulls: Pulls,
}

impl<'s> Streams<'s> {
    /// Converts the moves of all streams.
    ///
    /// # Errors
    /// E0704 for a move that the executor has no op for.
    pub(super) fn new(
        schedule: &'s Schedule,
        grid: &'s Grid,
        in_place: bool,
    ) -> Result<Self, Box<Finding>> {
        let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let ordinals = schedule.channels.iter().map(|channel| {
            let count = counts.entry((channel.from.0, channel.to.0)).or_insert(0);
            *count += 1;
            *count - 1
        });
        let ordinals = ordinals.collect();
        let mut idle = BTreeSet::new();
        let mut posts: BTreeMap<ChannelId, u32> = BTreeMap::new();
        for op in schedule.ops.iter().filter(|op| op.kind == OpKind::Post) {
            *posts.entry(Schedule::channel_id(op)).or_default() += 1;
        }
        for stream in schedule.streams.iter().filter(|stream| stream.index == 0) {
            let ops = ops(schedule, stream);
            let is = |op: &&Op, kind| op.kind != OpKind::Move && schedule.channel(op).kind == kind;
            let forks = ops.iter().take_while(|op| is(op, SignalKind::Fork));
            let joins = ops.iter().rev().take_while(|op| is(op, SignalKind::Join));
            // A stream that is forked twice must wait for the ops between the forks.
            let once = |id: &ChannelId| posts.get(id) == Some(&1);
            idle.extend(forks.chain(joins).map(Schedule::channel_id).filter(once));
        }
        let mut streams = Self {
            schedule,
            grid,
            in_place,
            ordinals,
            counts,
            idle,
            data: Vec::new(),
            spare: vec![0; schedule.nranks as usize],
            pulls: Pulls::default(),
        };
        for (id, stream) in schedule.streams.iter().enumerate() {
            let data = streams.stream(stream)?;
            for pulled in data.iter().flatten().filter_map(mixed_up) {
                streams.pulls.add(id, pulled);
            }
            streams.data.push(data);
        }
        Ok(streams)
    }

    /// Returns the moves of each op of a stream.
    fn stream(&mut self, stream: &Stream) -> Result<Vec<Vec<Data>>, Box<Finding>> {
        let rank = stream.rank;
        let first = self.grid.scratch() + self.spare[rank.index()];
        let mut room = 0;
        let mut spare = |size: u32| {
            room = room.max(size);
            Chunk { rank: rank.0, memory: Memory::Scratch, index: first, size }
        };
        let mut all = Vec::new();
        for op in ops(self.schedule, stream) {
            all.push(match op.kind {
                OpKind::Move => self.data(rank, op, &mut spare)?,
                _ => Vec::new(),
            });
        }
        self.spare[rank.index()] += room;
        Ok(all)
    }

    /// Returns the number of channels between two ranks for signals of the schedule: a channel has a signal each way.
    fn signals(&self, one: u32, other: u32) -> u32 {
        let count = |from, to| self.counts.get(&(from, to)).copied().unwrap_or(0);
        count(one, other).max(count(other, one))
    }

    /// Returns the number of all channels between two ranks.
    fn between(&self, one: u32, other: u32) -> u32 {
        self.signals(one, other) + self.pulls.between(one, other)
    }

    /// Returns the peer of each channel of a rank.
    pub(super) fn channels(&self, rank: RankId) -> Vec<u32> {
        let peers = (0..self.schedule.nranks).filter(|peer| *peer != rank.0);
        peers
            .flat_map(|peer| std::iter::repeat_n(peer, self.between(rank.0, peer) as usize))
            .collect()
    }

    /// Returns the blocks of a rank, and the chunks of scratch for their partial sums.
    pub(super) fn blocks(&self, rank: RankId, numbers: &mut Numbers) -> (Vec<PlanBlock>, u32) {
        let meet = |one: &Chunk, other: &Chunk| meet(&self.home(one), &self.home(other));
        let mut semaphores = Semaphores::default();
        // The first channel to each peer.
        let mut firsts = BTreeMap::new();
        let mut next = 0;
        for peer in (0..self.schedule.nranks).filter(|peer| *peer != rank.0) {
            firsts.insert(peer, next);
            next += self.between(rank.0, peer);
        }
        let asks = |peer: u32, ordinal: u32| {
            firsts.get(&peer).copied().unwrap_or(0) + self.signals(rank.0, peer) + ordinal
        };
        let mut blocks = Vec::new();
        let of_rank = self.schedule.streams.iter().zip(&self.data).enumerate();
        for (id, (stream, moved)) in of_rank.filter(|(_, (stream, _))| stream.rank == rank) {
            let mut items = Vec::new();
            for (op, moved) in ops(self.schedule, stream).iter().zip(moved) {
                if op.kind != OpKind::Move {
                    items.extend(self.signal(rank, op, &firsts, (&mut semaphores, numbers)));
                }
                for data in moved {
                    let Some((src, _)) = mixed_up(data) else {
                        items.push(Item::Data(data.clone()));
                        continue;
                    };
                    let channel = asks(src.rank, self.pulls.ordinal(id, src.rank));
                    items.extend(
                        [PlanWord::Signal, PlanWord::Wait].map(|word| Item::Word(word, channel)),
                    );
                }
            }
            if !items.is_empty() {
                blocks.extend(StreamSplitter::new(rank.0, numbers, &meet).blocks(items));
            }
        }
        for pull in self.pulls.served_by(rank.0) {
            let channel = asks(pull.client, pull.ordinal);
            let [wait, signal] = [PlanWord::Wait, PlanWord::Signal];
            let word = |word| Item::Word(word, channel);
            let one = |put: &Data| [word(wait), Item::Data(put.clone()), word(signal)];
            let items = pull.puts.iter().flat_map(one).collect();
            blocks.extend(StreamSplitter::new(rank.0, numbers, &meet).blocks(items));
        }
        (blocks, self.spare[rank.index()])
    }

    fn data(
        &self,
        rank: RankId,
        op: &Op,
        spare: &mut dyn FnMut(u32) -> Chunk,
    ) -> Result<Vec<Data>, Box<Finding>> {
        let chunks = |operands: &[Operand]| -> Vec<Chunk> {
            operands.iter().map(|operand| self.grid.chunk(self.schedule, *operand)).collect()
        };
        let (srcs, dsts) = (chunks(self.schedule.srcs(op)), chunks(self.schedule.dsts(op)));
        if srcs.iter().all(|src| src.size == 0) {
            return Ok(Vec::new());
        }
        if op.switch {
            let name = if srcs.len() > 1 { "glres" } else { "gstore" };
            return Ok(vec![Data { name, srcs, dsts }]);
        }
        moves::ops(rank.0, &srcs, &dsts, spare).map_err(|why| refused(op.at, why))
    }

    fn signal(
        &self,
        rank: RankId,
        op: &Op,
        firsts: &BTreeMap<u32, u32>,
        (semaphores, numbers): (&mut Semaphores, &mut Numbers),
    ) -> Option<Item> {
        let id = Schedule::channel_id(op);
        let channel = self.schedule.channel(op);
        let posts = op.kind == OpKind::Post;
        if self.idle.contains(&id) {
            return None;
        }
        if channel.from == channel.to {
            let word = if posts { PlanWord::Release } else { PlanWord::Acquire };
            return Some(Item::Word(word, semaphores.next(id, posts, numbers)));
        }
        let peer = if channel.from == rank { channel.to.0 } else { channel.from.0 };
        let number = firsts.get(&peer).copied().unwrap_or(0) + self.ordinals[id.index()];
        Some(Item::Word(if posts { PlanWord::Signal } else { PlanWord::Wait }, number))
    }

    /// Returns the place of a chunk in the buffer that input and output share in place.
    fn home(&self, chunk: &Chunk) -> Chunk {
        if !self.in_place {
            return *chunk;
        }
        let alias = self.schedule.collective.alias(RankId(chunk.rank), self.schedule.root);
        let (input, output) = match alias {
            Alias::Apart => return *chunk,
            alias => alias.starts(),
        };
        let start = match chunk.memory {
            Memory::Input => input,
            Memory::Output => output,
            Memory::Scratch => return *chunk,
        };
        let index = chunk.index + self.grid.chunks(Rat::whole(start.into()));
        Chunk { memory: Memory::Output, index, ..*chunk }
    }
}

fn ops<'s>(schedule: &'s Schedule, stream: &Stream) -> &'s [Op] {
    &schedule.ops[stream.first.index()..][..stream.len as usize]
}
