//! The callers of plans: one caller for all ranks, each rank's thread for itself, or each rank's process.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use roundelay::{DType, Options, Plan, ReduceOp, SpmdPlan, stay_in_place};
use roundelay_core::ids::RankId;
use roundelay_core::syntax::Source;
use roundelay_core::trace::TraceText;
use roundelay_core::verify::Proved;
use roundelay_kernels::{Error, RankPlan};

use crate::error::RunError;
use crate::page_buffers::rewrite;
use crate::ranks::{PlanShape, Ranks, meeting};

/// The callers of the ranks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledBy {
    /// A call for each rank, from a thread.
    Each,
    /// One call for all ranks.
    One,
    /// A call for each rank, from a process.
    Processes,
}

/// The way in which plans are called.
pub struct Calls {
    /// The callers of the ranks.
    pub callers: CalledBy,
    /// The options of the engine.
    pub options: Options,
    /// Whether each rank writes its input again before each run.
    rewrite: bool,
    /// The processes that were started for the last number of ranks.
    ranks: Option<Ranks>,
    /// Returns the text that this process has read from its standard input.
    typed: fn() -> Option<String>,
    /// The trace so far, where one is wanted.
    pub trace: Option<TraceText>,
}

/// An algorithm, as it was asked for and proved.
pub struct AskedAlgorithm<'a> {
    /// The proof of the algorithm.
    pub proved: &'a Proved,
    /// Its index among the algorithms that the command's arguments name.
    pub which: usize,
    /// The root, where it is not the algorithm's own.
    pub root: Option<u32>,
}

/// The plan of the calls that are timed, for each kind of caller.
pub enum CallPlan<'a> {
    /// The plan that one caller runs for all ranks.
    One(Box<Plan>),
    /// The plan of the algorithm, and the plan by which the ranks meet; `rewrite` as in [`Calls`].
    Each {
        /// The two plans.
        plans: Box<[SpmdPlan; 2]>,
        /// Whether each rank writes its input again before each run.
        rewrite: bool,
    },
    /// Processes with buffers of their own; `rewrite` as in [`Calls`], and whether runs are recorded.
    Processes {
        /// The processes.
        ranks: &'a mut Ranks,
        /// Whether each rank writes its input again before each run.
        rewrite: bool,
        /// Whether runs are recorded.
        traced: bool,
    },
}

impl Calls {
    /// Makes the calls; `typed` returns the text that this process has read from its standard input, if it did.
    pub fn new(
        callers: CalledBy,
        options: Options,
        rewrite: bool,
        typed: fn() -> Option<String>,
    ) -> Self {
        Self { callers, options, rewrite, ranks: None, typed, trace: None }
    }

    /// Makes a plan for `count` elements, on inputs of this seed.
    pub fn plan(
        &mut self,
        AskedAlgorithm { proved, which, root }: AskedAlgorithm<'_>,
        (count, dtype, op): (u64, DType, ReduceOp),
        seed: u64,
    ) -> Result<CallPlan<'_>, RunError> {
        let Self { options, rewrite, .. } = *self;
        Ok(match self.callers {
            CalledBy::One => {
                CallPlan::One(Box::new(Plan::for_options(proved, count, dtype, op, options)?))
            }
            CalledBy::Each => {
                let meet = meeting(proved.schedule().nranks);
                let meet = SpmdPlan::new(&meet, 1, DType::U8, ReduceOp::Max, options)?;
                let plan = SpmdPlan::new(proved, count, dtype, op, options)?;
                CallPlan::Each { plans: Box::new([plan, meet]), rewrite }
            }
            CalledBy::Processes => {
                let nranks = proved.schedule().nranks;
                // Processes for another number of ranks end before new ones are started.
                let before = self.ranks.take().filter(|ranks| ranks.nranks() == nranks);
                let ranks = match before {
                    Some(ranks) => ranks,
                    None => Ranks::start(nranks, (self.typed)())?,
                };
                let ranks = self.ranks.insert(ranks);
                let (dtype, op) = (dtype.name().to_owned(), op.name().to_owned());
                let counts = proved.even().map(|(_, counts)| counts.all().to_vec());
                ranks.plan(&PlanShape { which, root, count, counts, dtype, op, seed })?;
                CallPlan::Processes { ranks, rewrite, traced: false }
            }
        })
    }
}

impl CallPlan<'_> {
    /// Where ranks have buffers of their own: writes the inputs, and clears the outputs.
    pub fn prepare(&mut self, in_place: bool) -> Result<(), RunError> {
        match self {
            Self::Processes { ranks, .. } => ranks.prepare(in_place),
            Self::One(_) | Self::Each { .. } => Ok(()),
        }
    }

    /// Where ranks have buffers of their own: copies their outputs to `results`.
    pub fn fetch(&mut self, in_place: bool, results: &mut [&mut [u8]]) -> Result<(), RunError> {
        match self {
            Self::Processes { ranks, .. } => ranks.fetch(in_place, results),
            Self::One(_) | Self::Each { .. } => Ok(()),
        }
    }

    /// Records the runs from now on.
    pub fn record(&mut self) {
        match self {
            Self::One(plan) => plan.record(),
            Self::Each { plans, .. } => plans[0].record(),
            Self::Processes { traced, .. } => *traced = true,
        }
    }

    /// Moves the recorded runs to a trace.
    pub fn trace(&mut self, text: &mut TraceText, source: Option<&Source>) -> Result<(), RunError> {
        match self {
            Self::One(plan) => plan.trace(text, source),
            Self::Each { plans, .. } => plans[0].trace(text, source),
            Self::Processes { ranks, .. } => ranks.trace(text)?,
        }
        Ok(())
    }

    /// Runs `runs` times in a row out of place, and returns the seconds.
    pub fn apart(
        &mut self,
        inputs: &mut [&mut [u8]],
        outputs: &mut [&mut [u8]],
        runs: u32,
    ) -> Result<f64, RunError> {
        Ok(match self {
            Self::One(plan) => {
                let inputs: Vec<&[u8]> = inputs.iter().map(|input| &**input).collect();
                row(runs, || plan.run_bytes(&inputs, outputs).map(drop))?
            }
            Self::Each { plans, rewrite } => {
                let outputs = outputs.iter_mut().map(|output| &mut **output);
                let buffers = inputs.iter_mut().map(|input| &mut **input).zip(outputs);
                let row = (runs, *rewrite);
                spmd_row(
                    plans,
                    row,
                    buffers,
                    |(input, _)| input,
                    |rank, (input, output)| rank.run_bytes(input, output),
                )?
            }
            Self::Processes { ranks, rewrite, traced } => {
                ranks.row(false, runs, (*rewrite, *traced))?
            }
        })
    }

    /// Runs `runs` times in a row in place, on one buffer for each rank, and returns the seconds.
    pub fn in_place(&mut self, buffers: &mut [&mut [u8]], runs: u32) -> Result<f64, RunError> {
        Ok(match self {
            Self::One(plan) => row(runs, || plan.run_bytes_in_place(buffers).map(drop))?,
            Self::Each { plans, rewrite } => {
                let buffers = buffers.iter_mut().map(|buffer| &mut **buffer);
                let row = (runs, *rewrite);
                spmd_row(
                    plans,
                    row,
                    buffers,
                    |buffer| buffer,
                    |rank, buffer| rank.run_bytes_in_place(buffer),
                )?
            }
            Self::Processes { ranks, rewrite, traced } => {
                ranks.row(true, runs, (*rewrite, *traced))?
            }
        })
    }
}

fn row(runs: u32, mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let begun = Instant::now();
    for _ in 0..runs {
        run()?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Starts a thread for each rank, each on a core of its own while there are cores, and all before the clock starts;
/// returns the time of the slowest. Where inputs are rewritten, all ranks meet again before each run.
fn spmd_row<B: Send>(
    [plan, meet]: &[SpmdPlan; 2],
    (runs, rewritten): (u32, bool),
    buffers: impl Iterator<Item = B>,
    input: impl Fn(&mut B) -> &mut [u8] + Sync,
    run: impl Fn(&RankPlan<'_>, &mut B) -> Result<(), Error> + Sync,
) -> Result<f64, Error> {
    let start = CommonStart::of(plan.nranks());
    let (start, input, run) = (&start, &input, &run);
    thread::scope(|threads| {
        let mut calls = Vec::new();
        for (rank, mut buffer) in (0..).map(RankId).zip(buffers) {
            let call = move || {
                stay_in_place(rank.0, plan.nranks());
                let (mine, meet) = (plan.rank(rank)?, meet.rank(rank)?);
                if !start.wait() {
                    return Ok(0.0);
                }
                if !rewritten {
                    return row(runs, || run(&mine, &mut buffer));
                }
                let mut seconds = 0.0;
                for _ in 0..runs {
                    rewrite(input(&mut buffer));
                    meet.run::<u8>(&[0], &mut [0])?;
                    seconds += row(1, || run(&mine, &mut buffer))?;
                }
                Ok(seconds)
            };
            match thread::Builder::new().spawn_scoped(threads, call) {
                Ok(call) => calls.push(call),
                Err(error) => {
                    start.call_off();
                    let what = format!(
                        "the system refuses a thread for rank {}: {error}; use fewer ranks, or raise the limits (`ulimit -v`, `ulimit -u`)",
                        rank.0
                    );
                    return Err(Error::SystemRefused { what });
                }
            }
        }
        let mut times = calls.into_iter().map(|call| call.join().expect("a rank does not panic"));
        times.try_fold(0.0, |slowest: f64, time| Ok(slowest.max(time?)))
    })
}

/// The start of threads that begin together, or not at all.
struct CommonStart {
    /// The number of threads that have not come; `None` where one cannot.
    missing: Mutex<Option<u32>>,
    changed: Condvar,
}

impl CommonStart {
    fn of(threads: u32) -> Self {
        Self { missing: Mutex::new(Some(threads)), changed: Condvar::new() }
    }

    /// Waits until all threads have come; returns whether they have.
    fn wait(&self) -> bool {
        let mut missing = self.missing();
        if let Some(missing) = &mut *missing {
            *missing -= 1;
        }
        self.changed.notify_all();
        while missing.is_some_and(|missing| missing > 0) {
            missing = self.changed.wait(missing).unwrap_or_else(PoisonError::into_inner);
        }
        missing.is_some()
    }

    fn call_off(&self) {
        *self.missing() = None;
        self.changed.notify_all();
    }

    fn missing(&self) -> MutexGuard<'_, Option<u32>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of threads that start together, of which `missing` cannot be started.
    fn started(threads: u32, missing: u32) -> Vec<bool> {
        let start = &CommonStart::of(threads);
        thread::scope(|scope| {
            let others: Vec<_> =
                (missing..threads).map(|_| scope.spawn(move || start.wait())).collect();
            if missing > 0 {
                start.call_off();
            }
            others.into_iter().map(|other| other.join().expect("no panic")).collect()
        })
    }

    #[test]
    fn threads_start_together_or_not_at_all() {
        assert_eq!(started(4, 0), [true; 4]);
        assert_eq!(started(4, 1), [false; 3]);
    }
}
