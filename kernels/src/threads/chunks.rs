//! A plan without signals: each chunk of its segments is independent of every other, so workers take them in any
//! order, each from a range of its own first.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use super::pool::{self, Job};
use super::streams::{Failure, message};
use super::worker_group::WorkerGroup;
use crate::error::Error;
use crate::lowering::{Bases, Code, InstrKind, Scratch, Segment};
use crate::recorder::{Recorded, Recorder, now};
use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering, Padded, lock};

/// Bytes of traffic of a chunk: enough to make the cost of taking it negligible, and few enough to share the last
/// chunks.
const CHUNK: Range<usize> = 256 << 10..4 << 20;
/// Chunks per worker, where their sizes are within [`CHUNK`].
const CHUNKS: usize = 8;
/// The most chunks of one segment of any size.
const MOST: usize = 1 << 12;

/// An interval of a segment's elements.
#[derive(Clone, Copy)]
struct Chunk {
    segment: u32,
    first: usize,
    end: usize,
}

/// Runs a plan without signals by chunks of its segments, one run at a time.
pub(super) struct ChunkEngine {
    code: Arc<Code>,
    chunks: Box<[Chunk]>,
    /// For each worker: the next chunk of its range, and the end of the range.
    ranges: Box<[(Padded<AtomicU32>, u32)]>,
    firsts: Box<[u32]>,
    /// The partials of each worker.
    partials: Scratch,
    group: WorkerGroup,
    stopped: AtomicBool,
    /// Whether helpers stay on cores of their own.
    pinned: bool,
    failure: Mutex<Option<Failure>>,
    bases: Bases,
    /// The record of the runs, where there is one.
    recorder: OnceLock<ChunkRecorder>,
}

/// The record of runs, and the first op of each segment with the number of its ops.
struct ChunkRecorder {
    recorder: Arc<Recorder>,
    segments: Box<[Recorded]>,
}

impl ChunkEngine {
    pub(super) fn new(code: Arc<Code>, workers: u32, pinned: bool) -> Result<Self, Error> {
        let (chunks, weights) = chunks(&code, workers as usize);
        let total: u128 = weights.iter().sum();
        // Neighboring chunks of about equal weight for each worker.
        let mut firsts = vec![0];
        let mut before = 0;
        for (at, weight) in (1..).zip(weights) {
            before += weight;
            while firsts.len() < workers as usize
                && before * u128::from(workers) >= total * firsts.len() as u128
            {
                firsts.push(at);
            }
        }
        firsts.resize(workers as usize, chunks.len() as u32);
        let ends = firsts[1..].iter().copied().chain([chunks.len() as u32]);
        let ranges = ends.map(|end| (Padded(AtomicU32::new(0)), end)).collect();
        let bytes = code.segments.partial_bytes();
        let partials = Scratch::new((0..workers).map(|_| bytes))?;
        Ok(Self {
            chunks: chunks.into(),
            ranges,
            firsts: firsts.into(),
            partials,
            group: WorkerGroup::new(),
            stopped: AtomicBool::new(false),
            pinned,
            failure: Mutex::new(None),
            bases: Bases::new(code.buffers.len.len()),
            recorder: OnceLock::new(),
            code,
        })
    }

    /// Runs the plan and returns when no worker can touch the buffers any more. `place` sets their addresses.
    ///
    /// # Safety
    /// Only one call at a time. `place` gives each buffer of the code an address that is valid for its length, aligned,
    /// initialized, writable unless it is an input, and lent for the call.
    pub(super) unsafe fn run(self: &Arc<Self>, place: impl FnOnce(&Bases)) -> Option<Failure> {
        place(&self.bases);
        for ((next, _), first) in self.ranges.iter().zip(&self.firsts) {
            next.0.store(*first, Ordering::Relaxed);
        }
        self.stopped.store(false, Ordering::Relaxed);
        self.group.enter();
        let workers = self.ranges.len() as u32;
        if workers == 1 {
            self.work(0);
        } else {
            // The pool's lock makes these stores visible to the helpers.
            let job: Arc<dyn Job> = self.clone();
            pool::offer(&job, 1..workers, self.pinned);
            self.work(0);
            pool::revoke(&job);
            self.group.wait_until_empty();
        }
        // A worker that sets a failure also stops the run.
        if self.stopped.load(Ordering::Relaxed) { lock(&self.failure).take() } else { None }
    }

    /// Records the runs from now on.
    pub(super) fn record(&self, recorder: Arc<Recorder>) {
        let code = &*self.code;
        let unknown = Recorded::Ops { stream: 0, step: 0, len: 0 };
        let mut segments = vec![unknown; code.segments.all.len()];
        for (task, stream) in code.tasks.iter().zip(0..) {
            for instr in &code.instrs[task.first as usize..][..task.len as usize] {
                if instr.kind == InstrKind::Data {
                    let (step, len) = (instr.step, code.step_after(stream, *instr) - instr.step);
                    segments[instr.arg as usize] = Recorded::Ops { stream, step, len };
                }
            }
        }
        _ = self.recorder.set(ChunkRecorder { recorder, segments: segments.into() });
    }

    /// Takes the next chunk of worker `me`, or one that another worker has left.
    fn next(&self, me: usize) -> Option<Chunk> {
        let workers = self.ranges.len();
        (0..workers).find_map(|i| {
            let (next, end) = &self.ranges[(me + i) % workers];
            let left = next.0.load(Ordering::Relaxed) < *end;
            let at = left.then(|| next.0.fetch_add(1, Ordering::Relaxed))?;
            (at < *end).then(|| self.chunks[at as usize])
        })
    }
}

impl Job for ChunkEngine {
    fn admit(&self) {
        self.group.enter();
    }

    fn work(&self, me: u32) {
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let partials = self.partials.address(me as usize);
            let stopped = || self.stopped.load(Ordering::Relaxed);
            let record = self.recorder.get();
            while let Some(Chunk { segment, first, end }) = self.next(me as usize) {
                let (begin, nth) = (record.map(|_| now()), segment as usize);
                let segment = self.code.segments.all[segment as usize];
                // SAFETY: the buffers are lent for the run; lowering found the segments independent of each other, and
                // the elements of a segment are independent, too; each worker has partials of its own.
                unsafe {
                    self.code.segments.run(segment, first..end, &self.bases, partials, stopped)
                };
                if let Some((ChunkRecorder { recorder, segments }, begin)) = record.zip(begin) {
                    recorder.in_row(me as usize, recorder.current(), begin, segments[nth]);
                }
            }
        }));
        if let Err(panic) = worked {
            lock(&self.failure)
                .get_or_insert(Failure::Panicked { message: message(panic.as_ref()) });
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.group.leave();
    }
}

/// Cuts all segments into chunks, and returns the chunks and the bytes of traffic of each.
fn chunks(code: &Code, workers: usize) -> (Vec<Chunk>, Vec<u128>) {
    let data = &code.segments;
    let traffic: Vec<usize> = data.all.iter().map(|segment| data.traffic(*segment)).collect();
    let bytes =
        |(segment, traffic): (&Segment, &usize)| *traffic as u128 * segment.elements as u128;
    let total: u128 = data.all.iter().zip(&traffic).map(bytes).sum();
    let share = usize::try_from(total / (workers * CHUNKS) as u128).unwrap_or(usize::MAX);
    let wanted = share.clamp(CHUNK.start, CHUNK.end);
    let (mut chunks, mut weights) = (Vec::new(), Vec::new());
    for (id, (segment, traffic)) in (0..).zip(data.all.iter().zip(traffic)) {
        let whole = segment.elements;
        let most = (wanted / traffic.max(1)).max(whole / MOST);
        // Whole cache lines, where the buffer begins with one.
        let line = 64 / data.kernel.size();
        let step = if workers == 1 { whole } else { most.next_multiple_of(line).max(line) };
        for first in (0..whole).step_by(step.max(1)) {
            let end = whole.min(first + step);
            chunks.push(Chunk { segment: id, first, end });
            weights.push(traffic as u128 * (end - first) as u128);
        }
    }
    (chunks, weights)
}
