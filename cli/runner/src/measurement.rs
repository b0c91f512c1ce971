//! One algorithm at one size in one form: timed, and its results compared with a plain reference.

use roundelay_kernels::reference::Reference;
use serde::Serialize;

use crate::bench_buffers::BenchBuffers;
use crate::calls::CallPlan;
use crate::error::RunError;
use crate::timing::{Timing, bandwidth};

/// The times and bandwidths of one form of an algorithm, out of place or in place.
#[derive(Serialize)]
pub struct Measurement {
    /// Microseconds, as are the three below.
    pub time: f64,
    /// GB/s
    pub alg_bw: f64,
    /// GB/s
    pub bus_bw: f64,
    /// Null where results were not looked at.
    pub nwrong: Option<u64>,
    /// The shortest sample in microseconds.
    pub min: f64,
    /// The median of the samples in microseconds.
    pub median: f64,
    /// The mean of the samples in microseconds.
    pub mean: f64,
}

impl Measurement {
    /// Makes the figures of a timing of runs of `size` bytes.
    pub fn new(timing: &Timing, size: u64, bus_factor: f64, nwrong: Option<u64>) -> Self {
        let (time, us) = (timing.time(), |seconds: f64| seconds * 1e6);
        let alg_bw = bandwidth(size, time);
        Self {
            time: us(time),
            alg_bw,
            bus_bw: alg_bw * bus_factor,
            nwrong,
            min: us(timing.least()),
            median: us(timing.median()),
            mean: us(timing.mean()),
        }
    }
}

/// The numbers of runs, and whether results are checked.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Runs before the first sample.
    pub warmup: u32,
    /// The number of samples.
    pub iters: u32,
    /// Whether results are compared with the reference.
    pub check: bool,
}

/// Times a plan in one form, and counts the wrong elements in the result of one more run.
pub fn place(
    plan: &mut CallPlan<'_>,
    buffers: &mut BenchBuffers,
    in_place: bool,
    (size, reduce_depth): (u64, u32),
    effort: Effort,
) -> Result<Measurement, RunError> {
    let Effort { warmup, iters, check } = effort;
    let Reference { collective, nranks, .. } = buffers.reference;
    let mut nwrong = None;
    plan.prepare(in_place)?;
    let timing = if in_place {
        buffers.enter();
        let mut shared = buffers.in_place();
        Timing::take(warmup, iters, |runs| plan.in_place(&mut shared, runs))?
    } else {
        let (mut inputs, mut outputs) = buffers.apart();
        Timing::take(warmup, iters, |runs| plan.apart(&mut inputs, &mut outputs, runs))?
    };
    if check {
        plan.prepare(in_place)?;
        if in_place {
            buffers.enter();
            plan.in_place(&mut buffers.in_place(), 1)?;
        } else {
            buffers.clear();
            let (mut inputs, mut outputs) = buffers.apart();
            plan.apart(&mut inputs, &mut outputs, 1)?;
        }
        plan.fetch(in_place, &mut buffers.results(in_place))?;
        nwrong = Some(buffers.wrong(reduce_depth, in_place));
    }
    Ok(Measurement::new(&timing, size, collective.bus_factor(nranks), nwrong))
}
