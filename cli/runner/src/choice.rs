//! The quality of `select`'s choice: the algorithm that it takes by its model of time, beside the fastest one when all
//! were measured.

use roundelay::select;
use roundelay_kernels::reference::Reference;
use serde::Serialize;

/// A choice is as good as the fastest algorithm if its time is at most this many times the fastest time: measured times
/// of one algorithm differ by as much from run to run.
pub const AS_GOOD: f64 = 1.1;

/// The choice for one collective, rank count and size.
#[derive(Serialize)]
pub struct BenchChoice {
    /// The name of the collective.
    pub collective: &'static str,
    /// The number of ranks.
    pub nranks: u32,
    /// The size in bytes.
    pub size: u64,
    /// The algorithm that `select` takes.
    pub chosen: String,
    /// Measured microseconds out of place of the chosen algorithm.
    pub time: f64,
    /// The algorithm that was fastest.
    pub best: String,
    /// Microseconds of the fastest.
    pub best_time: f64,
    /// `time` by `best_time`.
    pub ratio: f64,
}

/// All choices, and the number of choices that are as good as the fastest algorithm.
#[derive(Serialize)]
pub struct Choices {
    /// The number of choices that are as good as the fastest algorithm.
    pub within_a_tenth: usize,
    /// All choices.
    pub cells: Vec<BenchChoice>,
}

impl BenchChoice {
    /// Returns the choice among algorithms that were timed for one case of `size` bytes, each with its name and its
    /// microseconds; `None` where there are fewer than two algorithms, or none is of the library.
    pub fn among(case: &Reference, size: u64, timed: &[(&str, f64)]) -> Option<Self> {
        let best = timed.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let ranked = select(case.collective, case.nranks, size, None).ranked;
        let named = |name: &String| timed.iter().find(|(known, _)| known == name);
        let chosen = ranked.iter().find_map(|row| named(&row.algorithm))?;
        (timed.len() > 1).then(|| Self {
            collective: case.collective.name(),
            nranks: case.nranks,
            size,
            chosen: chosen.0.to_owned(),
            time: chosen.1,
            best: best.0.to_owned(),
            best_time: best.1,
            ratio: chosen.1 / best.1,
        })
    }
}

impl Choices {
    /// Counts the choices that are as good as the fastest algorithm.
    pub fn new(cells: Vec<BenchChoice>) -> Self {
        let within_a_tenth = cells.iter().filter(|cell| cell.ratio <= AS_GOOD).count();
        Self { within_a_tenth, cells }
    }
}
