//! A plan without signals: each chunk of its segments is independent of every other, so workers take them in any
//! order, each from a range of its own first.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::bases::Bases;
use super::code::Code;
use super::crew::Crew;
use super::error::Error;
use super::machine::{Failure, message};
use super::pool::{self, Job};
use super::scratch::Scratch;
use super::sync::{AtomicBool, AtomicU32, Mutex, Ordering, Padded, lock};

/// Bytes of traffic of a chunk: enough to make taking it free, and few enough to share the last ones.
const CHUNK: Range<usize> = 256 << 10..4 << 20;
/// Chunks a worker, where they are not smaller or larger than that.
const CHUNKS: usize = 8;
/// Chunks in all of one segment, however large that is.
const MOST: usize = 1 << 12;

/// Elements of a segment.
#[derive(Clone, Copy)]
struct Chunk {
    segment: u32,
    first: usize,
    end: usize,
}

/// One run at a time of one plan.
pub(super) struct Flat {
    code: Arc<Code>,
    chunks: Box<[Chunk]>,
    /// Each worker's chunks: the next, and the end.
    ranges: Box<[(Padded<AtomicU32>, u32)]>,
    firsts: Box<[u32]>,
    /// Each worker's partials.
    partials: Scratch,
    crew: Crew,
    stopped: AtomicBool,
    /// Helpers stay on cores of their own.
    pinned: bool,
    failure: Mutex<Option<Failure>>,
    bases: Bases,
}

impl Flat {
    pub(super) fn new(code: Arc<Code>, workers: u32, pinned: bool) -> Result<Self, Error> {
        let chunks = chunks(&code, workers as usize);
        let total: u128 = chunks.iter().map(|chunk| weight(&code, *chunk)).sum();
        // Neighbouring chunks of about equal weight for each.
        let mut firsts = vec![0];
        let mut before = 0;
        for (at, chunk) in (1..).zip(chunks.iter()) {
            before += weight(&code, *chunk);
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
            crew: Crew::new(),
            stopped: AtomicBool::new(false),
            pinned,
            failure: Mutex::new(None),
            bases: Bases::new(code.buffers.len.len()),
            code,
        })
    }

    /// Runs the plan and returns when no worker can touch the buffers any more. `place` fills in where they are.
    ///
    /// # Safety
    /// Only one call at a time. `place` gives each buffer of the code an address that is good for its length,
    /// aligned, initialised, writable unless it is an input, and lent for the call.
    pub(super) unsafe fn run(self: &Arc<Self>, place: impl FnOnce(&Bases)) -> Option<Failure> {
        place(&self.bases);
        for ((next, _), first) in self.ranges.iter().zip(&self.firsts) {
            next.0.store(*first, Ordering::Relaxed);
        }
        self.stopped.store(false, Ordering::Relaxed);
        self.crew.enter();
        let workers = self.ranges.len() as u32;
        if workers == 1 {
            self.work(0);
        } else {
            // The others learn of all this through the pool's lock.
            let job: Arc<dyn Job> = self.clone();
            pool::offer(&job, 1..workers, self.pinned);
            self.work(0);
            pool::revoke(&job);
            self.crew.wait_until_empty();
        }
        // Set by nobody unless the run was stopped.
        if self.stopped.load(Ordering::Relaxed) { lock(&self.failure).take() } else { None }
    }

    /// A chunk of this worker, or what another one has left.
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

impl Job for Flat {
    fn admit(&self) {
        self.crew.enter();
    }

    fn work(&self, me: u32) {
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let partials = self.partials.address(me as usize);
            let stopped = || self.stopped.load(Ordering::Relaxed);
            while let Some(Chunk { segment, first, end }) = self.next(me as usize) {
                let segment = self.code.segments.all[segment as usize];
                // SAFETY: the buffers are lent for the run; lowering found the segments independent, and a
                // segment's elements are; each worker has partials of its own.
                unsafe {
                    self.code.segments.run(segment, first..end, &self.bases, partials, stopped)
                };
            }
        }));
        if let Err(panic) = worked {
            lock(&self.failure)
                .get_or_insert(Failure::Panicked { message: message(panic.as_ref()) });
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.crew.leave();
    }
}

/// Bytes.
fn weight(code: &Code, chunk: Chunk) -> u128 {
    let traffic = code.segments.traffic(code.segments.all[chunk.segment as usize]);
    traffic as u128 * (chunk.end - chunk.first) as u128
}

/// All elements of all segments, in chunks that begin where tiles do.
fn chunks(code: &Code, workers: usize) -> Vec<Chunk> {
    let data = &code.segments;
    let total: u128 = data.all.iter().map(|s| data.traffic(*s) as u128 * s.elements as u128).sum();
    let share = usize::try_from(total / (workers * CHUNKS) as u128).unwrap_or(usize::MAX);
    let wanted = share.clamp(CHUNK.start, CHUNK.end);
    let mut chunks = Vec::new();
    for (id, segment) in (0..).zip(data.all.iter()) {
        let whole = segment.elements;
        let most = (wanted / data.traffic(*segment).max(1)).max(whole / MOST);
        // Whole cache lines, where the buffer begins with one.
        let line = 64 / data.kernel.size();
        let step = if workers == 1 { whole } else { most.next_multiple_of(line).max(line) };
        for first in (0..whole).step_by(step.max(1)) {
            chunks.push(Chunk { segment: id, first, end: whole.min(first + step) });
        }
    }
    chunks
}
