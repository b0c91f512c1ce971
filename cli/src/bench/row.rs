//! A row: the measured times of one algorithm at one size, as nccl-tests counts it.

use roundelay::Collective;
use roundelay_core::ids::RankId;
use roundelay_kernels::reference::Reference;
use roundelay_runner::limit::Limit;
use roundelay_runner::measurement::Measurement;
use serde::Serialize;

use super::Case;
use super::subject::Subject;

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

/// Returns nccl-tests' root: -1 where there is none.
fn root(collective: Collective, root: RankId) -> i64 {
    if collective.is_rooted() { i64::from(root.0) } else { -1 }
}
