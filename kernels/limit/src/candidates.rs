//! The programs that compete for being the limit, and the part of one thread in a program.

use std::fmt::Write as _;

use super::jobs::SumJob;
use super::loops::{ALIGNED, Isa, Pass, SumKind, fence};

/// Bytes of a thread's scratch, and so the most bytes of a block.
pub(super) const SCRATCH: usize = 64 << 10;

/// The way in which results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stores {
    /// Through the caches.
    Cached,
    /// Past the caches.
    Streaming,
    /// By the system's `memcpy`.
    Memcpy,
}

/// A program that does the jobs in one way, and competes with the others for being the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) threads: usize,
    stores: Stores,
    /// Sources that are added up in one pass; the sum of a pass waits in the scratch for the next sources.
    group: usize,
    /// Whether results are written to one destination after another, from the scratch or the source.
    spread: bool,
    /// Bytes of a block; all passes work on one block before the next.
    block: usize,
    cached: Pass,
    streaming: Option<Pass>,
    isa: Isa,
}

/// Returns all programs for such jobs: for one thread, two, four and so on up to `threads`.
pub(super) fn all(jobs: &[SumJob], words: SumKind, threads: usize) -> Vec<Candidate> {
    let isa = Isa::widest();
    let cached = isa.pass(words, false).expect("every CPU writes through its caches");
    let aligned = |job: &SumJob| job.dsts.iter().all(|dst| dst.addr().is_multiple_of(ALIGNED));
    let streaming = isa.pass(words, true).filter(|_| jobs.iter().all(aligned));
    let Some(first) = jobs.first() else { return Vec::new() };
    let (sources, destinations) = (first.srcs.len(), first.dsts.len());
    let groups = [4, 8, 16].into_iter().filter(|group| *group < sources).chain([MOST]);
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n < threads).collect();
    counts.push(threads);
    let mut all = Vec::new();
    for group in groups {
        for spread in [false, true] {
            for stores in [Stores::Cached, Stores::Streaming, Stores::Memcpy] {
                let one_pass = group >= sources && !spread;
                let blocks: &[usize] =
                    if one_pass { &[SCRATCH] } else { &[4 << 10, 16 << 10, SCRATCH] };
                let possible = match stores {
                    Stores::Cached => !spread || destinations > 1,
                    Stores::Streaming => streaming.is_some() && (!spread || destinations > 1),
                    Stores::Memcpy => spread && (destinations > 1 || sources == 1),
                };
                if !possible {
                    continue;
                }
                for &block in blocks {
                    let with = |&threads: &usize| Candidate {
                        threads,
                        stores,
                        group,
                        spread,
                        block,
                        cached,
                        streaming,
                        isa,
                    };
                    all.extend(counts.iter().map(with));
                }
            }
        }
    }
    all
}

/// The sources of one pass without a bound.
const MOST: usize = usize::MAX;

impl Candidate {
    /// Describes the program in words: `2 threads, AVX-512, streaming stores, one pass`.
    pub(super) fn describe(&self) -> String {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        let stores = match self.stores {
            Stores::Cached => "cached stores",
            Stores::Streaming => "streaming stores",
            Stores::Memcpy => "memcpy",
        };
        let mut passes = match self.group {
            MOST => "one pass".to_owned(),
            group => format!("{group} sources a pass"),
        };
        if self.spread {
            passes += ", one destination after the other";
        }
        if self.group != MOST || self.spread {
            let _ = write!(passes, ", blocks of {} KiB", self.block >> 10);
        }
        format!("{} {threads}, {}, {stores}, {passes}", self.threads, self.isa.name())
    }

    /// Does the part of thread `me` of all jobs, `len` bytes of each.
    ///
    /// # Safety
    /// The pointers of the jobs are valid for `len` bytes; no thread writes the sources, and the destinations are apart
    /// and only the parts of this program touch them. `scratch` is valid for [`SCRATCH`] bytes, and the caller's own.
    /// The program was made for these jobs.
    pub(super) unsafe fn part(&self, jobs: &[SumJob], len: usize, me: usize, scratch: *mut u8) {
        let bound = |part: usize| {
            let total = jobs.len() * len;
            if part == self.threads {
                total
            } else {
                total / self.threads * part / ALIGNED * ALIGNED
            }
        };
        let (begin, end) = (bound(me), bound(me + 1));
        if begin == end {
            return;
        }
        // Cuts are rounded down within their job, because streamed bytes must be aligned.
        let cut = |at: usize| if at >= len { len } else { at / ALIGNED * ALIGNED };
        let mut job = begin / len;
        let mut from = cut(begin - job * len);
        while job * len < end {
            let stop = cut(end - job * len);
            // SAFETY: `from..stop` lies in the job, and the parts of no two threads meet, because the end of a part and
            // the beginning of the next are rounded alike.
            unsafe { self.stretch(&jobs[job], from, stop, scratch) };
            (job, from) = (job + 1, 0);
        }
        if self.stores == Stores::Streaming {
            fence();
        }
    }

    /// # Safety
    /// The promises of [`Self::part`], for `from..to` of this job.
    #[inline(always)]
    unsafe fn stretch(&self, job: &SumJob, from: usize, to: usize, scratch: *mut u8) {
        let streaming = self.streaming.filter(|_| self.stores == Stores::Streaming);
        let write = streaming.unwrap_or(self.cached);
        if self.group >= job.srcs.len() && !self.spread {
            if from < to {
                // SAFETY: the caller's promise; `streaming` is set where destinations are aligned.
                unsafe { write(&job.srcs, &job.dsts, from, to - from) };
            }
            return;
        }
        for at in (from..to).step_by(self.block) {
            let len = self.block.min(to - at);
            // The scratch stands for the block: the pass touches no byte before it.
            let sum = scratch.wrapping_sub(at);
            let mut rest = &job.srcs[..];
            let mut operands = [std::ptr::null(); 17];
            let mut held = 0;
            // SAFETY: the caller's promise, and a block fits the scratch, which is apart from all operands.
            unsafe {
                while rest.len() > self.group {
                    operands[held..held + self.group].copy_from_slice(&rest[..self.group]);
                    (self.cached)(&operands[..held + self.group], &[sum], at, len);
                    (operands[0], held) = (sum.cast_const(), 1);
                    rest = &rest[self.group..];
                }
                let last: &[*const u8] = if held == 0 {
                    rest
                } else {
                    operands[1..=rest.len()].copy_from_slice(rest);
                    &operands[..=rest.len()]
                };
                if !self.spread {
                    write(last, &job.dsts, at, len);
                    continue;
                }
                let source = if let [one] = last {
                    *one
                } else {
                    (self.cached)(last, &[sum], at, len);
                    sum.cast_const()
                };
                for dst in &job.dsts {
                    if self.stores == Stores::Memcpy {
                        std::ptr::copy_nonoverlapping(source.wrapping_add(at), dst.add(at), len);
                    } else {
                        write(&[source], &[*dst], at, len);
                    }
                }
            }
        }
    }
}
