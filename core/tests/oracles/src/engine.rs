//! Two engines that know nothing of each other's schedule: one runs an author's ops in turns, the other runs the
//! two-sided form, a thread for each rank, with only channels between ranks.
//!
//! Sends are eager, and take the data where they begin, or synchronous: then the data is read when the receive ends,
//! and the send ends after that. The target of a receive holds garbage from its beginning on. So an effect of a send or
//! a receive at another time shows in the bits.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use fastrand::Rng;
use roundelay_core::collective::Alias;
use roundelay_core::ids::{LaneId, OpId, RankId, RegionId};
use roundelay_core::messages::{Action, Message, MessageId, TwoSided};
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule};
use roundelay_core::verify::{Proof, Proved};

/// A value that is never a result.
const GARBAGE: u32 = 0xFFC0_BAD0;
/// A message that takes longer never comes.
const DEADLINE: Duration = Duration::from_secs(30);

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Elements a unit.
    pub count: u64,
    pub in_place: bool,
    /// Whether sums are divided by the number of ranks.
    pub averages: bool,
}

/// How messages travel.
#[derive(Clone, Copy, Debug)]
pub struct Transport {
    /// Whether a send ends only when its receive does.
    pub synchronous: bool,
    /// Whether lanes keep messages apart; if not, the k-th between two ranks meets the k-th.
    pub tags: bool,
    pub seed: u64,
}

/// A rank's buffers, one after another.
struct Memory {
    cells: Vec<AtomicU32>,
    firsts: Vec<usize>,
}

impl Memory {
    /// Inputs hold numbers of many sizes, so that a sum tells its order.
    fn new(schedule: &Schedule, rank: RankId, run: Run) -> Self {
        let len = |buffer| schedule.elements(buffer, rank, run.count) as usize;
        let (input, output) = (len(Buffer::Input), len(Buffer::Output));
        let alias = if run.in_place {
            schedule.collective.alias(rank, schedule.root)
        } else {
            Alias::Apart
        };
        let unit = |units: u32| units as usize * run.count as usize;
        let (at_input, at_output, both) = match alias {
            Alias::Apart => (0, input, input + output),
            Alias::InputInOutput(units) => (unit(units), 0, output),
            Alias::OutputInInput(units) => (0, unit(units), input),
        };
        let mut firsts = vec![at_input, at_output];
        let mut end = both;
        for id in 0..schedule.scratch.len() {
            firsts.push(end);
            end += schedule.scratch[id].elements(run.count) as usize;
        }
        let cells: Vec<AtomicU32> = (0..end).map(|_| AtomicU32::new(GARBAGE)).collect();
        let mut random = Rng::with_seed(u64::from(rank.0) << 32);
        for cell in &cells[at_input..at_input + input] {
            let random = random.u64(..);
            let sign = if random & 1 == 0 { 1.0 } else { -1.0 };
            let value =
                sign * (1.0 + (random >> 41) as f32 / 8e6) * 2_f32.powi((random >> 8 & 15) as i32);
            cell.store(value.to_bits(), Ordering::Relaxed);
        }
        Self { cells, firsts }
    }

    fn first(&self, buffer: Buffer) -> usize {
        self.firsts[match buffer {
            Buffer::Input => 0,
            Buffer::Output => 1,
            Buffer::Scratch(id) => 2 + id.index(),
        }]
    }

    fn region(&self, schedule: &Schedule, region: RegionId, count: u64) -> &[AtomicU32] {
        let region = &schedule.regions[region.index()];
        let (first, len) = schedule.extent(region, count);
        &self.cells[self.first(region.buffer) + first as usize..][..len as usize]
    }

    fn read(&self, schedule: &Schedule, region: RegionId, count: u64) -> Vec<u32> {
        let cells = self.region(schedule, region, count);
        cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
    }

    fn write(&self, schedule: &Schedule, region: RegionId, count: u64, values: &[u32]) {
        let cells = self.region(schedule, region, count);
        assert_eq!(cells.len(), values.len(), "both ends have as many elements");
        for (cell, value) in cells.iter().zip(values) {
            cell.store(*value, Ordering::Relaxed);
        }
    }

    fn output(&self, schedule: &Schedule, rank: RankId, run: Run) -> Vec<u32> {
        let len = schedule.elements(Buffer::Output, rank, run.count) as usize;
        let cells = &self.cells[self.first(Buffer::Output)..][..len];
        cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
    }
}

/// The memory of all ranks, and the schedule whose moves run in it.
pub struct World<'a> {
    pub schedule: &'a Schedule,
    proof: &'a Proof,
    run: Run,
    memory: Vec<Memory>,
}

impl<'a> World<'a> {
    pub fn new(schedule: &'a Schedule, proof: &'a Proof, run: Run) -> Self {
        let ranks = (0..schedule.nranks).map(RankId);
        let memory = ranks.map(|rank| Memory::new(schedule, rank, run)).collect();
        Self { schedule, proof, run, memory }
    }

    pub fn read(&self, operand: Operand) -> Vec<u32> {
        self.memory[operand.rank.index()].read(self.schedule, operand.region, self.run.count)
    }

    pub fn write(&self, operand: Operand, values: &[u32]) {
        let memory = &self.memory[operand.rank.index()];
        memory.write(self.schedule, operand.region, self.run.count, values);
    }

    /// From here on it holds garbage.
    pub fn spoil(&self, target: Operand) {
        let len = self.read(target).len();
        self.write(target, &vec![GARBAGE; len]);
    }

    fn share(&self, value: u32) -> u32 {
        (f32::from_bits(value) / self.schedule.nranks as f32).to_bits()
    }

    pub fn do_move(&self, at: OpId, op: &Op) {
        let mut operands = self.schedule.srcs(op).iter().map(|src| self.read(*src));
        let mut values = operands.next().expect("a move has a source");
        for operand in operands {
            for (value, other) in values.iter_mut().zip(operand) {
                *value = (f32::from_bits(other) + f32::from_bits(*value)).to_bits();
            }
        }
        if self.run.averages && self.proof.finish.binary_search(&at).is_ok() {
            for value in &mut values {
                *value = self.share(*value);
            }
        }
        self.schedule.dsts(op).iter().for_each(|dst| self.write(*dst, &values));
    }

    pub fn outputs(&self) -> Vec<Vec<u32>> {
        let scales = self.run.averages && self.proof.scale_outputs;
        let output = |(rank, memory): (u32, &Memory)| {
            let mut output = memory.output(self.schedule, RankId(rank), self.run);
            output.iter_mut().filter(|_| scales).for_each(|value| *value = self.share(*value));
            output
        };
        (0..).zip(&self.memory).map(output).collect()
    }
}

/// The bits of all outputs after one interleaving of the author's schedule, which stands for all.
pub fn author(author: &Proved, run: Run) -> Vec<Vec<u32>> {
    let schedule = author.schedule();
    let world = World::new(schedule, author.proof(), run);
    let mut next = vec![0; schedule.streams.len()];
    let mut signals = vec![0_u32; schedule.channels.len()];
    loop {
        let mut went_on = false;
        for (stream, next) in schedule.streams.iter().zip(&mut next) {
            while *next < stream.len {
                let at = OpId(stream.first.0 + *next);
                let op = schedule.op(at);
                match op.kind {
                    OpKind::Move => world.do_move(at, op),
                    OpKind::Post => signals[op.arg as usize] += 1,
                    OpKind::Wait if signals[op.arg as usize] == 0 => break,
                    OpKind::Wait => signals[op.arg as usize] -= 1,
                }
                *next += 1;
                went_on = true;
            }
        }
        if !went_on {
            break;
        }
    }
    assert!(schedule.streams.iter().zip(next).all(|(stream, next)| next == stream.len));
    world.outputs()
}

/// The way of messages: from a rank to another, in a lane where there are tags.
type Way = (RankId, RankId, LaneId);

/// The data that a send gives the receiver: the data of an eager send.
type Parcel = Option<Vec<u32>>;

/// A rank's thread.
struct Rank<'a> {
    world: &'a World<'a>,
    form: &'a TwoSided,
    transport: Transport,
    random: Rng,
    to: HashMap<Way, Sender<Parcel>>,
    from: HashMap<Way, Receiver<Parcel>>,
    /// The number of sends and receives that have begun on each way: the k-th send meets the k-th receive.
    begun: HashMap<Way, usize>,
    /// The position of each receive on its way, and the parcels that have arrived so far.
    place: HashMap<MessageId, usize>,
    come: HashMap<Way, Vec<Parcel>>,
    /// The ends of synchronous sends.
    taken: HashMap<MessageId, Receiver<()>>,
    takes: HashMap<MessageId, Sender<()>>,
}

impl Rank<'_> {
    fn message(&self, id: MessageId) -> (&Message, Way) {
        let message = self.form.message(id);
        let lane = if self.transport.tags { message.lane } else { LaneId(0) };
        (message, (message.from, message.to, lane))
    }

    fn run(&mut self, actions: &[Action]) {
        for action in actions {
            match self.random.u64(..) % 64 {
                0 => std::thread::sleep(Duration::from_micros(20)),
                1..8 => std::thread::yield_now(),
                _ => {}
            }
            self.action(*action);
        }
        assert!(self.taken.is_empty() && self.takes.is_empty(), "all that begins ends");
    }

    fn action(&mut self, action: Action) {
        let world = self.world;
        match action {
            Action::Move(at) => world.do_move(at, world.schedule.op(at)),
            Action::Send(id) => {
                let (message, way) = self.message(id);
                let source = Operand { rank: message.from, region: message.source };
                let parcel = (!self.transport.synchronous).then(|| world.read(source));
                self.to[&way].send(parcel).expect("the receiver is there");
            }
            Action::Sent(id) => {
                let taken = self.taken.remove(&id).expect("it is sent once");
                if self.transport.synchronous {
                    taken.recv_timeout(DEADLINE).expect("a rank receives it");
                }
            }
            Action::Receive(id) => {
                let (message, way) = self.message(id);
                let target = Operand { rank: message.to, region: message.target };
                world.spoil(target);
                let begun = self.begun.entry(way).or_default();
                self.place.insert(id, *begun);
                *begun += 1;
            }
            Action::Received(id) => {
                let (message, way) = self.message(id);
                let (source, target) = (
                    Operand { rank: message.from, region: message.source },
                    Operand { rank: message.to, region: message.target },
                );
                let place = self.place.remove(&id).expect("it has begun");
                let come = self.come.entry(way).or_default();
                while come.len() <= place {
                    let parcel = self.from[&way].recv_timeout(DEADLINE);
                    come.push(parcel.expect("a rank sends it"));
                }
                // Read at the last moment, or long ago.
                let values = come[place].take().unwrap_or_else(|| world.read(source));
                world.write(target, &values);
                let takes = self.takes.remove(&id).expect("it is received once");
                // An eager send may have ended, and its rank too.
                let _ = takes.send(());
            }
        }
    }
}

/// The bits of all outputs after a run of the two-sided form.
pub fn two_sided(form: &TwoSided, run: Run, transport: Transport) -> Vec<Vec<u32>> {
    let schedule = form.schedule();
    let world = World::new(schedule, form.proof(), run);
    let mut random = Rng::with_seed(transport.seed);
    let mut ranks: Vec<Rank<'_>> = (0..schedule.nranks)
        .map(|_| Rank {
            world: &world,
            form,
            transport,
            random: random.fork(),
            to: HashMap::new(),
            from: HashMap::new(),
            begun: HashMap::new(),
            place: HashMap::new(),
            come: HashMap::new(),
            taken: HashMap::new(),
            takes: HashMap::new(),
        })
        .collect();
    for id in (0..form.messages().len() as u32).map(MessageId) {
        let (message, way) = ranks[0].message(id);
        let (from, to) = (message.from.index(), message.to.index());
        if let Entry::Vacant(first) = ranks[from].to.entry(way) {
            let (sender, receiver) = channel();
            first.insert(sender);
            ranks[to].from.insert(way, receiver);
        }
        let (sender, receiver) = channel();
        ranks[from].taken.insert(id, receiver);
        ranks[to].takes.insert(id, sender);
    }
    std::thread::scope(|scope| {
        for (rank, mut thread) in (0..).map(RankId).zip(ranks) {
            scope.spawn(move || thread.run(form.actions(rank)));
        }
    });
    world.outputs()
}
