//! A row: the measured times of one algorithm at one size, as nccl-tests counts it.

use roundelay::Collective;
use roundelay_core::ids::RankId;
use roundelay_kernels::reference::Reference;
use serde::Serialize;

use super::Case;
use super::buffers::BenchBuffers;
use super::limit::Limit;
use super::subject::Subject;
use super::timing::{Timing, bandwidth};
use crate::calls::CallPlan;
use crate::report::Failure;

/// One line of the table. The keys are nccl-tests', and our own before them.
#[derive(Serialize)]
pub(super) struct BenchRow {
    pub(super) algo: String,
    pub(super) collective: &'static str,
    pub(super) nranks: u32,
    pub(super) streams: u32,
    pub(super) size: u64,
    pub(super) count: u64,
    /// The counts of the blocks, where each has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counts: Option<Vec<u64>>,
    #[serde(rename = "type")]
    pub(super) dtype: &'static str,
    pub(super) redop: &'static str,
    /// -1 where there is no root.
    pub(super) root: i64,
    pub(super) out_of_place: Measurement,
    /// Null where the algorithm has no form in place.
    pub(super) in_place: Option<Measurement>,
    /// The limit's time as a percentage of the time out of place: 100 is as fast as memory allows.
    pub(super) percent_of_limit: Option<f64>,
    /// On GPUs: the floor's time as a percentage of the time out of place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) percent_of_floor: Option<f64>,
    /// On GPUs: microseconds out of place, by the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) predicted: Option<f64>,
}

impl BenchRow {
    /// Makes the row of a subject, before it is compared with the limit.
    pub(super) fn new(
        algo: String,
        subject: &Subject,
        case: &Case,
        (out_of_place, in_place): (Measurement, Option<Measurement>),
    ) -> Self {
        let Reference { collective, nranks, count, dtype, op, .. } = case.reference;
        Self {
            algo,
            collective: collective.name(),
            nranks,
            streams: subject.streams,
            size: case.size,
            count: count as u64,
            counts: case.counts.as_ref().map(|counts| counts.all().to_vec()),
            dtype: dtype.name(),
            redop: if collective.reduces() { op.name() } else { "none" },
            root: root(collective, subject.proved.schedule().root),
            out_of_place,
            in_place,
            percent_of_limit: None,
            percent_of_floor: None,
            predicted: None,
        }
    }

    pub(super) fn compare(&mut self, limit: &Limit) {
        let time = self.out_of_place.time;
        self.percent_of_limit = (time > 0.0 && self.size > 0).then(|| 100.0 * limit.time / time);
    }
}

/// The times and bandwidths of one form of an algorithm, out of place or in place.
#[derive(Serialize)]
pub(super) struct Measurement {
    /// Microseconds, as are the three below.
    pub(super) time: f64,
    /// GB/s
    pub(super) alg_bw: f64,
    /// GB/s
    pub(super) bus_bw: f64,
    /// Null where results were not looked at.
    pub(super) nwrong: Option<u64>,
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) mean: f64,
}

impl Measurement {
    pub(super) fn new(timing: &Timing, size: u64, bus_factor: f64, nwrong: Option<u64>) -> Self {
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
pub(super) struct Effort {
    pub(super) warmup: u32,
    pub(super) iters: u32,
    pub(super) check: bool,
}

/// Times a plan in one form, and counts the wrong elements in the result of one more run.
pub(super) fn place(
    plan: &mut CallPlan<'_>,
    buffers: &mut BenchBuffers,
    in_place: bool,
    (size, reduce_depth): (u64, u32),
    effort: Effort,
) -> Result<Measurement, Failure> {
    let Effort { warmup, iters, check } = effort;
    let Reference { collective, nranks, .. } = buffers.reference;
    let mut nwrong = None;
    plan.prepare(in_place)?;
    let timing = if in_place {
        buffers.enter();
        let mut shared = buffers.shared();
        Timing::take(warmup, iters, |runs| plan.in_place(&mut shared, runs))?
    } else {
        let (mut inputs, mut outputs) = buffers.apart();
        Timing::take(warmup, iters, |runs| plan.apart(&mut inputs, &mut outputs, runs))?
    };
    if check {
        plan.prepare(in_place)?;
        if in_place {
            buffers.enter();
            plan.in_place(&mut buffers.shared(), 1)?;
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

/// Returns nccl-tests' root: -1 where there is none.
fn root(collective: Collective, root: RankId) -> i64 {
    if collective.is_rooted() { i64::from(root.0) } else { -1 }
}
