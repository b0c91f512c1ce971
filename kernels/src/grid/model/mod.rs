//! What a launch takes on a GPU, by estimate: how long each op of each stream takes, and what it waits for.
//!
//! Every stream has a clock. A move takes as long as its loads, which are limited by the loads that its CTAs have under way at
//! once (Little's law: bytes in flight = bandwidth * latency) and by its share of the memory's bandwidth, as if all streams
//! moved all the time. A wait ends a signal's way after its post. The slowest stream is the launch. Nothing of this was
//! measured: a first run on a GPU is held against it.

mod gpu;
#[cfg(all(test, not(loom)))]
mod tests;

pub use gpu::Gpu;

use std::collections::VecDeque;

use roundelay_core::emit::cuda::Kernel;
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule, SignalKind};

use super::order;

/// Bytes of a line of LL, and those of them that are data.
const LINE: u64 = 16;
const LINE_DATA: u64 = 8;

/// How a kernel is launched on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// CTAs that share a stream.
    pub parts: u32,
    /// Bytes that the loads of one CTA have under way at once in long moves.
    pub in_flight: u32,
    /// Whether a CUDA graph launches it.
    pub graph: bool,
}

/// What a launch takes, by estimate, and what the time goes to. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// From one launch to the next.
    pub time: f64,
    /// The launch itself.
    pub launch: f64,
    /// Of the slowest stream's way back to the start: moves, at the rate of loads or of memory.
    pub moving: f64,
    /// The same: latency of memory and of the walk through the program.
    pub latency: f64,
    /// The same: signals on their way.
    pub signals: f64,
    /// The number of signals on that way, one behind the other.
    pub waits: u32,
    /// Bytes that all streams load and store.
    pub traffic: u64,
    /// Bytes of the buffers and of the scratch that is used. If the GPU's cache holds them, memory has the cache's rate.
    pub touched: u64,
    /// Bytes that the loads of all streams have under way at once.
    pub in_flight: u64,
}

/// When something is over, and what the time before it went to.
#[derive(Clone, Copy, Default)]
struct Clock {
    moving: f64,
    latency: f64,
    signals: f64,
    waits: u32,
}

impl Clock {
    fn now(&self) -> f64 {
        self.moving + self.latency + self.signals
    }

    fn later(self, other: Self) -> Self {
        if other.now() > self.now() { other } else { self }
    }
}

impl Estimate {
    /// What a launch of `kernel` takes for `count` elements a unit.
    ///
    /// ```
    /// use roundelay_core::emit::cuda::Kernel;
    /// use roundelay_kernels::grid::{Estimate, Gpu, LaunchShape};
    ///
    /// fn tell(kernel: &Kernel, gpu: &Gpu) {
    ///     let shape = LaunchShape { parts: 16, in_flight: 56 << 10, graph: false };
    ///     let estimate = Estimate::of(kernel, 1 << 20, gpu, shape);
    ///     println!("{:.1} us", estimate.time * 1e6);
    /// }
    /// ```
    pub fn of(kernel: &Kernel, count: u64, gpu: &Gpu, shape: LaunchShape) -> Self {
        let element = kernel.spec.element.size() as u64;
        let lined = |id| kernel.is_lined(id);
        Self::of_schedule(&kernel.schedule, (count, element), lined, gpu, shape)
    }

    /// The same of a schedule, for elements of so many bytes. `lined`: whether the slots of a scratch buffer hold lines, which
    /// say themselves that they have arrived.
    fn of_schedule(
        schedule: &Schedule,
        (count, element): (u64, u64),
        lined: impl Fn(ScratchId) -> bool,
        gpu: &Gpu,
        shape: LaunchShape,
    ) -> Self {
        let work = Work::of(schedule, (count, element), &lined);
        // What lines say is not said again.
        let by_lines = (0..).map(ScratchId).zip(&schedule.scratch).any(|(id, _)| lined(id));
        let is_said = |op: &Op| by_lines && schedule.channel(op).kind == SignalKind::Tail;
        let streams = schedule.streams.iter().filter(|stream| stream.len > 0).count().max(1);
        let rate = gpu.rate(work.touched) / streams as f64;
        let loads = f64::from(shape.parts) * f64::from(shape.in_flight) / gpu.memory_latency;
        let moving = |Bytes { loaded, stored }: Bytes| {
            (loaded as f64 / loads).max((loaded + stored) as f64 / rate)
        };
        let mut clocks = vec![Clock::default(); schedule.streams.len()];
        // By channel, the posts that nobody took yet.
        let mut posts: Vec<VecDeque<Clock>> = vec![VecDeque::new(); schedule.channels.len()];
        for (stream, id) in order(schedule) {
            let op = schedule.op(id);
            let clock = &mut clocks[stream.index()];
            match op.kind {
                OpKind::Move => {
                    clock.latency += gpu.step + gpu.memory_latency;
                    clock.moving += moving(work.moves[id.index()]);
                }
                OpKind::Post => {
                    clock.latency += if is_said(op) { 0.0 } else { gpu.step };
                    posts[op.arg as usize].push_back(*clock);
                }
                OpKind::Wait => {
                    let sent = posts[op.arg as usize].pop_front();
                    let mut sent = sent.expect("an order has no wait before its post");
                    sent.signals += if is_said(op) { gpu.line } else { gpu.signal };
                    sent.waits += 1;
                    *clock = clock.later(sent);
                    clock.latency += if is_said(op) { 0.0 } else { gpu.step };
                }
            }
        }
        let last = clocks.into_iter().fold(Clock::default(), Clock::later);
        let launch = if shape.graph { gpu.graph_launch } else { gpu.launch };
        Self {
            time: launch + last.now(),
            launch,
            moving: last.moving,
            latency: last.latency,
            signals: last.signals,
            waits: last.waits,
            traffic: work.moves.iter().map(|bytes| bytes.loaded + bytes.stored).sum(),
            touched: work.touched,
            in_flight: streams as u64 * u64::from(shape.parts) * u64::from(shape.in_flight),
        }
    }
}

/// What a move loads and stores.
#[derive(Clone, Copy, Default)]
struct Bytes {
    loaded: u64,
    stored: u64,
}

/// What moves do to memory.
struct Work {
    /// By op; nothing for those that are no moves.
    moves: Vec<Bytes>,
    touched: u64,
}

impl Work {
    fn of(
        schedule: &Schedule,
        (count, element): (u64, u64),
        lined: impl Fn(ScratchId) -> bool,
    ) -> Self {
        let stored = |bytes: u64, buffer| match buffer {
            Buffer::Scratch(id) if lined(id) => {
                bytes.next_multiple_of(LINE_DATA) * LINE / LINE_DATA
            }
            _ => bytes,
        };
        let bytes = |operand: &Operand| {
            let region = schedule.region(*operand);
            stored(schedule.extent(region, count).1 * element, region.buffer)
        };
        let moves = schedule.ops.iter().map(|op| match op.kind {
            OpKind::Move => Bytes {
                loaded: schedule.srcs(op).iter().map(bytes).sum(),
                stored: schedule.dsts(op).iter().map(bytes).sum(),
            },
            OpKind::Post | OpKind::Wait => Bytes::default(),
        });
        let moves = moves.collect();
        let scratch = (0..schedule.scratch.len()).map(|id| Buffer::Scratch(ScratchId(id as u32)));
        let buffers: Vec<Buffer> =
            [Buffer::Input, Buffer::Output].into_iter().chain(scratch).collect();
        let of_rank = |rank| -> u64 {
            let bytes = |buffer| schedule.elements(buffer, RankId(rank), count) * element;
            buffers.iter().map(|buffer| stored(bytes(*buffer), *buffer)).sum()
        };
        Self { moves, touched: (0..schedule.nranks).map(of_rank).sum() }
    }
}
