//! Who calls: one caller for all ranks, or each rank's thread for itself.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use roundelay::{DType, Options, Plan, ReduceOp, SpmdPlan, stay_on_core};
use roundelay_core::ids::RankId;
use roundelay_core::verify::Proved;
use roundelay_kernels::{Error, RankPlan};

use crate::flags::Callers;

/// How plans are called.
#[derive(Clone, Copy)]
pub(super) struct Calls {
    pub(super) callers: Callers,
    pub(super) options: Options,
}

/// What is timed.
pub(super) enum Way {
    One(Plan),
    Each(Box<SpmdPlan>, u32),
}

impl Way {
    pub(super) fn new(
        Calls { callers, options }: Calls,
        proved: &Proved,
        (count, dtype, op): (u64, DType, ReduceOp),
    ) -> Result<Self, Error> {
        Ok(match callers {
            Callers::One => Self::One(Plan::with(proved, count, dtype, op, options)?),
            Callers::Each => {
                let plan = SpmdPlan::new(proved, count, dtype, op, options)?;
                Self::Each(Box::new(plan), proved.proof().reduce_depth)
            }
        })
    }

    /// The deepest reduction of a result.
    pub(super) fn reduce_depth(&self) -> u32 {
        match self {
            Self::One(plan) => plan.proof().reduce_depth,
            Self::Each(_, depth) => *depth,
        }
    }

    /// Seconds of so many runs in a row out of place.
    pub(super) fn apart(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        runs: u32,
    ) -> Result<f64, Error> {
        match self {
            Self::One(plan) => row(runs, || plan.run_bytes(inputs, outputs).map(drop)),
            Self::Each(plan, _) => {
                let buffers = inputs.iter().zip(outputs);
                spmd_row(plan, runs, buffers, |rank, (input, output)| rank.run_bytes(input, output))
            }
        }
    }

    /// Seconds of so many runs in a row in place, on one buffer for each rank.
    pub(super) fn in_place(&self, buffers: &mut [&mut [u8]], runs: u32) -> Result<f64, Error> {
        match self {
            Self::One(plan) => row(runs, || plan.run_bytes_in_place(buffers).map(drop)),
            Self::Each(plan, _) => {
                let buffers = buffers.iter_mut();
                spmd_row(plan, runs, buffers, |rank, buffer| rank.run_bytes_in_place(buffer))
            }
        }
    }
}

fn row(runs: u32, mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let begun = Instant::now();
    for _ in 0..runs {
        run()?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// A thread for each rank, each on a core of its own as far as there are so many, and all started before the clock is:
/// the time of the slowest.
fn spmd_row<B: Send>(
    plan: &SpmdPlan,
    runs: u32,
    buffers: impl Iterator<Item = B>,
    run: impl Fn(&RankPlan<'_>, &mut B) -> Result<(), Error> + Sync,
) -> Result<f64, Error> {
    let ready = Barrier::new(plan.nranks() as usize);
    let (ready, run) = (&ready, &run);
    thread::scope(|threads| {
        let calls: Vec<_> = (0..)
            .map(RankId)
            .zip(buffers)
            .map(|(rank, mut buffer)| {
                threads.spawn(move || {
                    stay_on_core(rank.0);
                    let mine = plan.rank(rank)?;
                    ready.wait();
                    row(runs, || run(&mine, &mut buffer))
                })
            })
            .collect();
        let mut times = calls.into_iter().map(|call| call.join().expect("a rank does not panic"));
        times.try_fold(0.0, |slowest: f64, time| Ok(slowest.max(time?)))
    })
}
