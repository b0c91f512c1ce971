//! The quality of `select`'s choice: the algorithm that it takes by its model of time, beside the fastest one when all
//! were measured.

use roundelay::select;
use roundelay_kernels::reference::Reference;
use serde::Serialize;

use super::row::BenchRow;

/// A choice is as good as the fastest algorithm if its time is at most this many times the fastest time: measured times
/// of one algorithm differ by as much from run to run.
pub(super) const AS_GOOD: f64 = 1.1;

/// The choice for one collective, rank count and size.
#[derive(Serialize)]
pub(super) struct BenchChoice {
    pub(super) collective: &'static str,
    pub(super) nranks: u32,
    pub(super) size: u64,
    pub(super) chosen: String,
    /// Measured microseconds out of place of the chosen algorithm.
    pub(super) time: f64,
    /// The algorithm that was fastest.
    pub(super) best: String,
    /// Microseconds of the fastest.
    pub(super) best_time: f64,
    /// `time` by `best_time`.
    pub(super) ratio: f64,
}

/// All choices, and the number of choices that are as good as the fastest algorithm.
#[derive(Serialize)]
pub(super) struct Choices {
    pub(super) within_a_tenth: usize,
    pub(super) cells: Vec<BenchChoice>,
}

impl BenchChoice {
    /// Returns the choice among the algorithms of `rows`, which are all of one case; `None` where there are fewer than
    /// two algorithms, or none is of the library.
    pub(super) fn of(case: &Reference, rows: &[BenchRow]) -> Option<Self> {
        let time = |row: &BenchRow| row.out_of_place.time;
        let size = rows.first()?.size;
        let best = rows.iter().min_by(|a, b| time(a).total_cmp(&time(b)))?;
        let ranked = select(case.collective, case.nranks, size, None).ranked;
        let named = |name: &String| rows.iter().find(|row| row.algo == *name);
        let chosen = ranked.iter().find_map(|row| named(&row.algorithm))?;
        (rows.len() > 1).then(|| Self {
            collective: case.collective.name(),
            nranks: case.nranks,
            size,
            chosen: chosen.algo.clone(),
            time: time(chosen),
            best: best.algo.clone(),
            best_time: time(best),
            ratio: time(chosen) / time(best),
        })
    }
}

impl Choices {
    pub(super) fn new(cells: Vec<BenchChoice>) -> Self {
        let within_a_tenth = cells.iter().filter(|cell| cell.ratio <= AS_GOOD).count();
        Self { within_a_tenth, cells }
    }
}
