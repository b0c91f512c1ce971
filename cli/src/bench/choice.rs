//! How good the choice of `select` is: the algorithm that it takes by its model of time, beside the one that was fastest when
//! all were measured.

use roundelay::select;
use roundelay_kernels::reference::Reference;
use serde::Serialize;

use super::row::Row;
use super::table::number;

/// A choice that takes at most this many times what the fastest algorithm takes is as good as that: measured times of one
/// algorithm differ by as much from run to run.
const AS_GOOD: f64 = 1.1;

/// The choice for one collective, rank count and size.
#[derive(Serialize)]
pub(super) struct Choice {
    collective: &'static str,
    nranks: u32,
    size: u64,
    chosen: String,
    /// Microseconds out of place that were measured of it.
    time: f64,
    /// The algorithm that was fastest.
    best: String,
    /// Microseconds of the fastest.
    best_time: f64,
    /// `time` by `best_time`.
    ratio: f64,
}

/// All choices, and the number of those that are as good as the fastest.
#[derive(Serialize)]
pub(super) struct Choices {
    within_a_tenth: usize,
    cells: Vec<Choice>,
}

impl Choice {
    /// The choice among the algorithms of `rows`, which are all of one case; `None` where there are not two of them, or none
    /// is of the library.
    pub(super) fn of(case: &Reference, rows: &[Row]) -> Option<Self> {
        let time = |row: &Row| row.out_of_place.time;
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
    pub(super) fn new(cells: Vec<Choice>) -> Self {
        let within_a_tenth = cells.iter().filter(|cell| cell.ratio <= AS_GOOD).count();
        Self { within_a_tenth, cells }
    }

    /// The share of good choices, and each one that is not good.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { within_a_tenth: good, cells } = self;
        if cells.is_empty() {
            return vec![
                "# No choice to judge: no size has two algorithms of the library".to_owned(),
            ];
        }
        let share = 100.0 * *good as f64 / cells.len() as f64;
        let mut lines = vec![format!(
            "# Choices of select within 10 % of the fastest: {good} of {} ({share:.0} %)",
            cells.len()
        )];
        for cell in cells.iter().filter(|cell| cell.ratio > AS_GOOD) {
            let Choice { collective, nranks, size, chosen, time, best, best_time, ratio } = cell;
            let [time, best_time] = [time, best_time].map(|time| number(*time));
            lines.push(format!(
                "#   {collective} of {size} B on {nranks} ranks: {chosen} {time} us, {best} {best_time} us ({ratio:.2})"
            ));
        }
        lines
    }
}
