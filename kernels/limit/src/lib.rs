//! The least time that memory allows any algorithm: the time of a hand-blocked program that reads every input once and
//! writes every output once, on spinning threads, without a schedule, a signal or a step between.
//!
//! The collective's contract gives the jobs (`jobs`), several programs do them (`candidates`, with the loops of
//! `loops`), and the fastest program on this machine, for these buffers, is the limit. The programs' results are right,
//! and tested, because only then is their traffic the traffic of a collective.

mod candidates;
mod jobs;
mod loops;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use roundelay_core::collective::Collective;
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;

use candidates::{Candidate, SCRATCH};
use jobs::SumJob;
use loops::SumKind;

/// Bytes that the programs move to be compared, if the jobs have that many: several times the size of caches.
const TRIED: usize = 192 << 20;
/// Programs that are measured to the end.
const FINALISTS: usize = 4;
/// The least time that a sample lasts.
const SAMPLE: Duration = Duration::from_millis(1);
/// The least time that a sample lasts while programs are compared.
const GLANCE: Duration = Duration::from_micros(200);
/// Trials of each program between two cuts.
const GLANCES: u32 = 2;
/// Samples of each finalist.
const SAMPLES: std::ops::RangeInclusive<usize> = 5..=40;

/// The collective and the sizes whose limit is measured.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// The collective whose inputs are read and outputs written.
    pub collective: Collective,
    /// The root; rank 0 where there is none.
    pub root: RankId,
    /// Elements a unit, as NCCL counts.
    pub count: u64,
    /// Element type. The program sums `f32` as such; the bytes of other types are added up as 32-bit integers.
    pub dtype: DType,
}

/// The measured limit: the rate at which this machine's memory lets the traffic of a collective pass.
#[derive(Clone, Debug)]
pub struct Limit {
    /// The seconds that a run took, for each sample of the fastest program.
    pub samples: Vec<f64>,
    /// The number of threads of that program.
    pub threads: u32,
    /// The program, in words.
    pub program: String,
    /// Bytes read and written by one run.
    pub bytes: u64,
}

impl Limit {
    /// The median of the samples.
    pub fn median(&self) -> f64 {
        median(&self.samples)
    }
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Measures the limit on these buffers, with at most `threads` threads and about `time`. The contents of the outputs
/// are lost.
///
/// # Panics
/// If a buffer is shorter than the collective's contract says.
pub fn measure(
    traffic: &Traffic,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    threads: u32,
    time: Duration,
) -> Limit {
    let unit = traffic.count as usize * traffic.dtype.size();
    let words = if traffic.dtype == DType::F32 { SumKind::Float } else { SumKind::Integer };
    let jobs = jobs::jobs(traffic.collective, traffic.root, inputs, outputs, unit);
    let operands: usize = jobs.iter().map(|job| job.srcs.len() + job.dsts.len()).sum();
    let programs = candidates::all(&jobs, words, threads.max(1) as usize);
    let mut limit =
        Limit { samples: vec![0.0], threads: 1, program: "nothing".to_owned(), bytes: 0 };
    if unit == 0 || programs.is_empty() {
        return limit;
    }
    // A multiple of the size of a cache line, a vector and a page.
    let tried = unit.min((TRIED / operands).next_multiple_of(4096));
    // SAFETY: the jobs are made of the callers' slices, `unit` bytes of each, which are borrowed until the function
    // returns; the slices of outputs are apart from all others.
    let (best, samples) = unsafe {
        with_crew(&jobs, &programs, |crew| {
            let finalists: Vec<(usize, u32)> = crew
                .fastest(tried)
                .into_iter()
                .map(|at| (at, crew.runs(at, unit, SAMPLE)))
                .collect();
            let mut samples = vec![Vec::new(); finalists.len()];
            let begun = Instant::now();
            for round in 0..*SAMPLES.end() {
                if round >= *SAMPLES.start() && begun.elapsed() > time {
                    break;
                }
                for (&(at, runs), samples) in finalists.iter().zip(&mut samples) {
                    samples.push(crew.time(at, unit, runs));
                }
            }
            finalists
                .into_iter()
                .map(|(at, _)| at)
                .zip(samples)
                .min_by(|a, b| median(&a.1).total_cmp(&median(&b.1)))
                .expect("there is a program")
        })
    };
    limit.samples = samples;
    limit.threads = programs[best].threads as u32;
    limit.program = programs[best].describe();
    limit.bytes = (operands * unit) as u64;
    limit
}

/// A value alone in its two cache lines, since CPUs fetch neighboring lines in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// The state that threads share: the program to be run, the number of the run, and the threads that have completed it.
struct Crew<'a> {
    jobs: &'a [SumJob],
    programs: &'a [Candidate],
    /// The number of runs, and in the lowest bits the program.
    turn: Apart<AtomicU64>,
    len: AtomicUsize,
    over: AtomicBool,
    /// The last turn that each thread has completed; the first is the caller's, and not used.
    done: Vec<Apart<AtomicU64>>,
    scratch: Vec<*mut u8>,
}

/// Polls a word without a pause, because the answer is expected within a microsecond; after many polls it yields the
/// core.
#[derive(Default)]
struct Spin(u32);

impl Spin {
    fn again(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(1 << 14) {
            thread::yield_now();
        }
    }
}

/// Bits of a turn that name the program.
const NAME: u32 = 16;

// SAFETY: the jobs' pointers are the callers' slices, which the parts of a run divide among the threads; a thread uses
// its own scratch only.
unsafe impl Sync for Crew<'_> {}

/// Ends the spinning of the other threads, also when the caller panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Calls `work` while the threads of the largest program spin.
///
/// # Safety
/// The pointers of the jobs are valid for every length that `work` asks for, no thread writes the sources meanwhile,
/// and the destinations are apart and no other thread touches them.
unsafe fn with_crew<R>(
    jobs: &[SumJob],
    programs: &[Candidate],
    work: impl FnOnce(&mut Captain<'_, '_>) -> R,
) -> R {
    let threads = programs.iter().map(|program| program.threads).max().unwrap_or(1);
    let mut scratch: Vec<Box<[Page]>> =
        (0..threads).map(|_| vec![Page([0; 4096]); SCRATCH / size_of::<Page>()].into()).collect();
    let crew = Crew {
        jobs,
        programs,
        turn: Apart(AtomicU64::new(0)),
        len: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        done: (0..threads).map(|_| Apart(AtomicU64::new(0))).collect(),
        scratch: scratch.iter_mut().map(|pages| pages.as_mut_ptr().cast()).collect(),
    };
    thread::scope(|scope| {
        let _over = Over(&crew.over);
        for me in 1..threads {
            let crew = &crew;
            scope.spawn(move || crew.help(me));
        }
        work(&mut Captain { crew: &crew, turn: 0 })
    })
}

/// A page of scratch.
#[derive(Clone, Copy)]
#[repr(align(4096))]
struct Page(#[allow(dead_code)] [u8; 4096]);

impl Crew<'_> {
    fn help(&self, me: usize) {
        let mut seen = 0;
        loop {
            let mut spin = Spin::default();
            let turn = loop {
                let turn = self.turn.0.load(Ordering::Acquire);
                if turn != seen {
                    break turn;
                }
                if self.over.load(Ordering::Acquire) {
                    return;
                }
                spin.again();
            };
            seen = turn;
            self.part(turn, me);
            self.done[me].0.store(turn, Ordering::Release);
        }
    }

    fn part(&self, turn: u64, me: usize) {
        let program = &self.programs[(turn & ((1 << NAME) - 1)) as usize];
        if me < program.threads {
            let len = self.len.load(Ordering::Relaxed);
            // SAFETY: the caller of `with_crew` promised it for every length; each thread has a part and a scratch of
            // its own, and a turn begins when all parts of the last turn are done.
            unsafe { program.part(self.jobs, len, me, self.scratch[me]) };
        }
    }
}

/// The calling thread's side of the crew.
struct Captain<'c, 'a> {
    crew: &'c Crew<'a>,
    turn: u64,
}

impl Captain<'_, '_> {
    /// Runs a program once, on `len` bytes of each unit.
    fn run(&mut self, program: usize, len: usize) {
        let crew = self.crew;
        crew.len.store(len, Ordering::Relaxed);
        let threads = crew.programs[program].threads;
        self.turn += 1;
        let turn = self.turn << NAME | program as u64;
        if threads > 1 {
            crew.turn.0.store(turn, Ordering::Release);
        }
        crew.part(turn, 0);
        if threads == 1 {
            return;
        }
        for done in &crew.done[1..] {
            // Threads without a part answer too: a later turn must not begin before they have seen this one.
            let mut spin = Spin::default();
            while done.0.load(Ordering::Acquire) != turn {
                spin.again();
            }
        }
    }

    /// Returns the seconds of a run, averaged over `runs` consecutive runs.
    fn time(&mut self, program: usize, len: usize, runs: u32) -> f64 {
        let begun = Instant::now();
        for _ in 0..runs {
            self.run(program, len);
        }
        begun.elapsed().as_secs_f64() / f64::from(runs)
    }

    /// Returns the fastest programs: the slower half is dropped again and again, because other work of the machine may
    /// hit any of them.
    fn fastest(&mut self, len: usize) -> Vec<usize> {
        let mut left: Vec<(f64, usize, u32)> = (0..self.crew.programs.len())
            .map(|at| (f64::MAX, at, self.runs(at, len, GLANCE)))
            .collect();
        loop {
            for (best, at, runs) in &mut left {
                for _ in 0..GLANCES {
                    *best = best.min(self.time(*at, len, *runs));
                }
            }
            left.sort_by(|a, b| a.0.total_cmp(&b.0));
            if left.len() <= FINALISTS {
                return left.into_iter().map(|(_, at, _)| at).collect();
            }
            left.truncate((left.len() / 2).max(FINALISTS));
        }
    }

    /// Returns the number of runs that take about `least` together; the trial runs also warm up.
    fn runs(&mut self, program: usize, len: usize, least: Duration) -> u32 {
        let least = least.as_secs_f64();
        let mut runs = 1;
        loop {
            let took = self.time(program, len, runs) * f64::from(runs);
            if took >= least {
                return runs;
            }
            let factor = (1.2 * least / took.max(1e-9)).clamp(2.0, 16.0);
            runs = (f64::from(runs) * factor).ceil() as u32;
        }
    }
}
