//! Puts and signals over ports. One thread of a block enters them into the queue of the rank's proxy, which carries them
//! out later: in the order of the queue on one channel, and in any order on several, as each channel has a connection
//! of its own. So each channel that a block enters into has a stream, behind the streams of the blocks. A put is done
//! when a signal behind it on its channel arrives, or when a flush ends.

use super::Gpu;
use super::program::{Act, Chunk, Wire};
use super::steps::{All, MscclppStep, Word, streams};
use crate::report::span;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::{OpId, RankId, SpanId};
use roundelay_core::schedule::{Buffer, OpKind, Schedule, SignalKind, Stream};
use roundelay_core::verify;

/// A put, a signal, or both, as a thread enters them.
struct Entry {
    at: SpanId,
    thread: u32,
    put: Option<[Chunk; 2]>,
    signals: bool,
    /// The wait until the thread has entered it.
    entered: Option<Word>,
    /// The post that ends the thread's flush.
    done: Option<Word>,
}

/// The queue of a channel that a block enters into.
struct PortQueue {
    rank: u32,
    /// The streams of the block and of the queue.
    ends: [u32; 2],
    wire: Wire,
    entries: i64,
    /// Entries since the threads of the block last waited for each other.
    open: Vec<Entry>,
    steps: Vec<MscclppStep>,
}

/// Moves puts and signals over ports from each block to queues, which become further blocks of the rank. `flushes` tells
/// whether the executor flushes.
///
/// # Errors
/// E0305 for entries of several threads into one queue of which the order matters.
pub(super) fn carry(all: &mut All, flushes: bool) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for (rank, blocks) in (0..).zip(all) {
        let numbers = streams(blocks);
        let first = numbers.last().copied().unwrap_or(0) + 1;
        let mut queues: Vec<Vec<MscclppStep>> = Vec::new();
        for (steps, number) in blocks.iter_mut().zip(numbers) {
            let ends = [number, first + queues.len() as u32];
            queues.extend(of_block(steps, (rank, ends), flushes, &mut wrong));
        }
        blocks.extend(queues);
    }
    wrong
}

/// Moves the puts and signals of one block; the first queue has the second of the streams `ends`.
fn of_block(
    steps: &mut Vec<MscclppStep>,
    (rank, [number, first]): (u32, [u32; 2]),
    flushes: bool,
    wrong: &mut Vec<Diagnostic>,
) -> Vec<Vec<MscclppStep>> {
    let mut queues: Vec<PortQueue> = Vec::new();
    // Whether a thread has waited since the threads last waited for each other.
    let mut waited = false;
    for step in std::mem::take(steps) {
        let (wire, put, signals, flush) = match step.what {
            Act::Put(put) => {
                (put.wire, Some([put.src, put.dst]), put.signals, put.flushes && flushes)
            }
            Act::Signal(wire) if wire.port => (wire, None, true, false),
            Act::Sync | Act::Barrier { .. } => {
                for queue in &mut queues {
                    queue.close(wrong);
                }
                waited = false;
                steps.push(step);
                continue;
            }
            _ => {
                let arrives = step.what.parts()[0].iter().any(|part| part.packets);
                waited |= step.waits() || arrives;
                steps.push(step);
                continue;
            }
        };
        let known = queues.iter().position(|queue| queue.wire == wire);
        let place = known.unwrap_or_else(|| {
            let ends = [number, first + queues.len() as u32];
            let (open, steps) = (Vec::new(), Vec::new());
            queues.push(PortQueue { rank, ends, wire, entries: 0, open, steps });
            queues.len() - 1
        });
        let queue = &mut queues[place];
        let (at, thread) = (step.at, step.thread);
        if waited && queue.open.iter().any(|entry| entry.thread != thread) {
            let title =
                "a wait, and entries of two threads on one channel, without a `nop` between them";
            let error = Diagnostic::new(Code::Race, span(at), title);
            wrong.push(error.note("which of the entries comes first is open"));
            return Vec::new();
        }
        let turn = queue.entries;
        queue.entries += 1;
        let word = |kind, purpose| queue.word(kind, [purpose, turn]);
        let own = |what, before, after| MscclppStep { at, what, thread, before, after };
        steps.push(own(Act::Enter, Vec::new(), vec![word(OpKind::Post, ENTERED)]));
        if flush {
            steps.push(own(Act::Flush, vec![word(OpKind::Wait, DONE)], Vec::new()));
        }
        let entry = Entry {
            at,
            thread,
            put,
            signals,
            entered: Some(word(OpKind::Wait, ENTERED)),
            done: flush.then(|| word(OpKind::Post, DONE)),
        };
        queue.open.push(entry);
    }
    for queue in &mut queues {
        queue.close(wrong);
    }
    queues.into_iter().map(|queue| queue.steps).collect()
}

/// The purposes of signals between a block and a queue: an entry is there, and it is done. Barriers, semaphores and
/// packets have the numbers below.
const ENTERED: i64 = 4;
const DONE: i64 = 5;

impl PortQueue {
    /// Returns a signal between the block and the queue. Signals of entries go from the block to the queue.
    fn word(&self, kind: OpKind, purpose: [i64; 2]) -> Word {
        let [block, queue] = self.ends.map(i64::from);
        let ends = if purpose[0] == ENTERED { [block, queue] } else { [queue, block] };
        Word {
            kind,
            ends: (self.rank, self.rank),
            signal: SignalKind::Local,
            lane: [ends, purpose].concat(),
            anew: true,
        }
    }

    /// Adds the steps of the open entries. A thread's entries are in its order. The order of several threads is open, so
    /// each put comes as late as it may.
    fn close(&mut self, wrong: &mut Vec<Diagnostic>) {
        let mut open = std::mem::take(&mut self.open);
        let Some(first) = open.first() else { return };
        if open.iter().all(|entry| entry.thread == first.thread) {
            for entry in &mut open {
                self.put(entry);
                self.signal(entry);
            }
            return;
        }
        let overlap = |one: &Entry, other: &Entry| match (one.put, other.put) {
            (Some([_, one]), Some([_, other])) => {
                one.memory == other.memory
                    && one.packets == other.packets
                    && one.index < other.end()
                    && other.index < one.end()
            }
            _ => false,
        };
        for (at, late) in open.iter().enumerate() {
            let mut early = open[..at].iter().filter(|early| early.thread != late.thread);
            if let Some(early) = early.find(|early| overlap(early, late)) {
                let title = "two threads put to one place, without a `nop` between them";
                let error = Diagnostic::new(Code::Race, span(late.at), title);
                wrong.push(error.other(span(early.at), "the other put"));
                return;
            }
        }
        // Of the signals, all may come before a put but those that its own thread enters behind it.
        let signals: Vec<usize> = (0..open.len()).filter(|at| open[*at].signals).collect();
        let early = |at: usize| {
            let own = signals
                .iter()
                .filter(|late| **late >= at && open[**late].thread == open[at].thread);
            signals.len() - own.count()
        };
        let early: Vec<usize> = (0..open.len()).map(early).collect();
        for turn in 0..=signals.len() {
            for (entry, _) in open.iter_mut().zip(&early).filter(|(_, early)| **early == turn) {
                self.put(entry);
            }
            if let Some(at) = signals.get(turn) {
                self.signal(&mut open[*at]);
            }
        }
    }

    fn put(&mut self, entry: &mut Entry) {
        let Some([src, dst]) = entry.put else { return };
        let what = Act::Data { srcs: vec![src], dsts: vec![dst], switch: false };
        self.step(entry, what);
    }

    fn signal(&mut self, entry: &mut Entry) {
        if entry.signals {
            self.step(entry, Act::Signal(self.wire));
        }
    }

    fn step(&mut self, entry: &mut Entry, what: Act) {
        let put = matches!(what, Act::Data { .. });
        let before = entry.entered.take().into_iter().collect();
        let after = entry.done.take_if(|_| put).into_iter().collect();
        let (at, thread) = (entry.at, entry.thread);
        self.steps.push(MscclppStep { at, what, thread, before, after });
    }
}

/// The streams of one rank, numbered from 1: those of its blocks in one call, and after them those of its queues.
pub(super) struct RankStreams {
    blocks: u32,
    all: u32,
}

impl RankStreams {
    /// Returns the streams of a rank's blocks and queues.
    pub(super) fn new((steps, gpu): (&Vec<Vec<MscclppStep>>, &Gpu)) -> Self {
        let count = |steps: &[Vec<MscclppStep>]| streams(steps).last().copied().unwrap_or(0);
        Self { blocks: count(&steps[..gpu.blocks.len()]), all: count(steps) }
    }

    fn has_queues(&self) -> bool {
        self.blocks < self.all
    }
}

/// Warns of puts that a proxy may still read when their rank has returned from the call, as far as the blocks of the
/// rank know. Scratch whose halves take turns is read in time if it is before the end of the next call.
pub(super) fn unread(
    schedule: &Schedule,
    ranks: &[RankStreams],
    rounds: u32,
) -> Option<Diagnostic> {
    if !ranks.iter().any(RankStreams::has_queues) {
        return None;
    }
    let order = verify::in_order(schedule).ok()?;
    let mut found: Vec<SpanId> = Vec::new();
    for (rank, streams) in (0..).map(RankId).zip(ranks).filter(|(_, one)| one.has_queues()) {
        let of_rank: Vec<&Stream> =
            schedule.streams.iter().filter(|stream| stream.rank == rank).collect();
        let first = |round: u32| (round * streams.all) as usize + 1;
        let mut known: Vec<Vec<bool>> = Vec::new();
        for round in 0..rounds {
            let blocks = of_rank[first(round)..].iter().take(streams.blocks as usize);
            let ends = blocks.map(|stream| OpId(stream.first.0 + stream.len - 1)).collect();
            known.push(before(schedule, &order, ranks, ends));
        }
        for round in 0..rounds {
            let all = of_rank[first(round)..].iter().take(streams.all as usize);
            for stream in all.skip(streams.blocks as usize) {
                for op in (stream.first.0..stream.first.0 + stream.len).map(OpId) {
                    let this = schedule.op(op);
                    if this.kind != OpKind::Move {
                        continue;
                    }
                    let halves = match schedule.region(schedule.srcs(this)[0]).buffer {
                        Buffer::Scratch(id) => schedule.scratch[id.index()].slots > 1,
                        _ => false,
                    };
                    let by = round + u32::from(halves);
                    if known.get(by as usize).is_some_and(|known| !known[op.index()]) {
                        found.push(this.at);
                    }
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    let title = "a rank may return before its proxy has read this";
    let warning = Diagnostic::new(Code::PassedOver, span(*found.first()?), title)
        .note("until then its caller must not write the source, nor call this plan again; the proof takes both for granted")
        .help("write `pwsf` for executors from June 2026 on, or let the peer signal back");
    Some(match found.len() {
        1 => warning,
        2 => warning.note("and 1 more such put"),
        all => warning.note(format!("and {} more such puts", all - 1)),
    })
}

/// Returns for each op whether it comes before one of `ends`. That a rank returns after its queues is not counted.
fn before(
    schedule: &Schedule,
    order: &verify::Order,
    ranks: &[RankStreams],
    mut ends: Vec<OpId>,
) -> Vec<bool> {
    let mut known = vec![false; schedule.ops.len()];
    let queue = |stream: &Stream| {
        let RankStreams { blocks, all } = ranks[stream.rank.index()];
        stream.index > 0 && (stream.index - 1) % all >= blocks
    };
    let of = |op: OpId| &schedule.streams[order.stream_of[op.index()].index()];
    while let Some(op) = ends.pop() {
        if std::mem::replace(&mut known[op.index()], true) {
            continue;
        }
        if op != of(op).first {
            ends.push(OpId(op.0 - 1));
        }
        let this = schedule.op(op);
        if this.kind == OpKind::Wait {
            let post = order.meets[op.index()];
            if schedule.channel(this).kind != SignalKind::Join || !queue(of(post)) {
                ends.push(post);
            }
        }
    }
    known
}
