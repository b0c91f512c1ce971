//! The measured times: for each operation, rank count and size the times of all launches of all competitors.

use super::Time;
use crate::command::brief;
use crate::spread::Spread;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// An MPI as it is.
    Default,
    /// An MPI that is told which algorithm to use.
    Forced,
    Gloo,
    /// Ours by processes with private buffers.
    Private,
    /// Our processes with buffers that all of them may read.
    Alloc,
    /// Ours by threads of one process.
    Threads,
}

impl Column {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Forced => "forced",
            Self::Gloo => "gloo",
            Self::Private => "private",
            Self::Alloc => "alloc",
            Self::Threads => "threads",
        }
    }
}

/// Launches of one of them.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) column: Column,
    /// The library, or the algorithm.
    pub(super) of: String,
    /// Whether inputs were written before each call.
    pub(super) rewritten: bool,
    /// Microseconds: the median of each launch.
    pub(super) times: Vec<f64>,
    pub(super) wrong: bool,
    pub(super) failures: Vec<String>,
}

impl Series {
    pub(super) fn new(column: Column, of: &str, rewritten: bool) -> Self {
        let of = of.to_owned();
        Self { column, of, rewritten, times: Vec::new(), wrong: false, failures: Vec::new() }
    }

    fn is_of(&self, other: &Self) -> bool {
        (self.column, self.rewritten, &self.of) == (other.column, other.rewritten, &other.of)
    }

    pub(super) fn spread(&self) -> Option<Spread> {
        Spread::of(&self.times)
    }
}

/// The times of an operation at a number of ranks and bytes.
pub(super) struct Cell {
    pub(super) op: &'static str,
    pub(super) nranks: u32,
    pub(super) bytes: u64,
    pub(super) series: Vec<Series>,
    /// The least time that the memory allows, beside each launch of ours.
    pub(super) limits: Vec<f64>,
}

impl Cell {
    pub(super) fn new(op: &'static str, nranks: u32, bytes: u64) -> Self {
        Self { op, nranks, bytes, series: Vec::new(), limits: Vec::new() }
    }

    /// Adds a launch to the series of that name.
    pub(super) fn add(&mut self, series: &Series, launched: Result<Time, String>) {
        let at = self.series.iter().position(|known| known.is_of(series));
        let at = at.unwrap_or_else(|| {
            self.series.push(series.clone());
            self.series.len() - 1
        });
        let series = &mut self.series[at];
        match launched {
            Ok((time, wrong)) => {
                series.times.push(time);
                series.wrong |= wrong;
            }
            Err(why) => series.failures.push(why),
        }
    }

    /// Returns the series of a column with the least median. A series with wrong results does not count.
    pub(super) fn best(&self, column: Column, rewritten: bool) -> Option<(&Series, Spread)> {
        let of = self.series.iter().filter(|series| {
            series.column == column && series.rewritten == rewritten && !series.wrong
        });
        let times = of.filter_map(|series| Some((series, series.spread()?)));
        times.min_by(|a, b| a.1.median.total_cmp(&b.1.median))
    }

    pub(super) fn limit(&self) -> Option<Spread> {
        Spread::of(&self.limits)
    }

    /// Returns the time of the best MPI by its own choice over ours, both with equal inputs in each call or both with inputs
    /// that were written before.
    pub(super) fn ratio(&self, ours: Column, rewritten: bool) -> Option<f64> {
        Some(self.best(Column::Default, rewritten)?.1.median / self.best(ours, rewritten)?.1.median)
    }

    /// Returns the least time of any MPI in any launch over the least time of ours.
    pub(super) fn ratio_of_least(&self, ours: Column) -> Option<f64> {
        let least = |column| {
            let of = self
                .series
                .iter()
                .filter(|series| series.column == column && !series.rewritten && !series.wrong);
            of.filter_map(Series::spread).map(|spread| spread.min).min_by(f64::total_cmp)
        };
        Some(least(Column::Default)? / least(ours)?)
    }

    /// Returns our time over the limit.
    pub(super) fn of_limit(&self, ours: Column) -> Option<f64> {
        Some(self.best(ours, false)?.1.median / self.limit()?.median)
    }
}

/// A whole run.
pub(super) struct Figures {
    pub(super) cores: usize,
    pub(super) launches: u32,
    pub(super) peers: Vec<String>,
    /// The absent competitors, and why.
    pub(super) absent: Vec<String>,
    pub(super) load_before: String,
    pub(super) load_after: String,
    pub(super) cells: Vec<Cell>,
}

impl Figures {
    /// Returns the launches that did not end well, a line each.
    pub(super) fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        for Cell { op, nranks, bytes, series, .. } in &self.cells {
            for series in series {
                let rewritten = if series.rewritten { ", rewritten" } else { "" };
                let (of, column) = (&series.of, series.column.name());
                let place =
                    format!("{of} ({column}{rewritten}), {op}, {nranks} ranks, {bytes} bytes");
                if series.wrong {
                    troubles.push(format!("{place}: results are wrong"));
                }
                for why in &series.failures {
                    troubles.push(format!("{place}: {}", brief(why)));
                }
            }
        }
        troubles
    }

    pub(super) fn verdict(&self) -> Result<(), String> {
        match self.troubles().len() {
            0 => Ok(()),
            some => Err(format!("{some} of the measurements failed or were wrong")),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes a cell in which Open MPI is faster as it is and Intel's is forced.
    pub(in super::super) fn cell() -> Cell {
        let mut cell = Cell::new("AllReduce", 4, 32 << 10);
        let mut add = |column, of: &str, rewritten, times: &[f64]| {
            for time in times {
                cell.add(&Series::new(column, of, rewritten), Ok((*time, false)));
            }
        };
        add(Column::Default, "Intel MPI 2021.18.1", false, &[40.0, 44.0, 42.0]);
        add(Column::Default, "Open MPI 5.0.11", false, &[39.0, 30.0, 36.0]);
        add(Column::Default, "Intel MPI 2021.18.1", true, &[50.0, 60.0, 55.0]);
        add(Column::Forced, "Intel MPI 2021.18.1 I_MPI_ADJUST_ALLREDUCE=7", false, &[24.0]);
        add(Column::Private, "OneShotMeshAllReduce", false, &[18.0, 17.0, 20.0]);
        add(Column::Alloc, "OneShotMeshAllReduce", false, &[9.0, 9.5, 8.0]);
        add(Column::Private, "OneShotMeshAllReduce", true, &[22.0, 21.0, 23.0]);
        cell.limits = vec![3.0, 4.0, 3.0];
        cell
    }

    #[test]
    fn the_best_mpi_is_the_one_with_the_least_median() {
        let cell = cell();
        let (best, spread) = cell.best(Column::Default, false).expect("two were measured");
        assert_eq!((best.of.as_str(), spread.median), ("Open MPI 5.0.11", 36.0));
        assert_eq!(cell.ratio(Column::Private, false), Some(2.0));
        assert_eq!(cell.ratio(Column::Alloc, false), Some(4.0));
        assert_eq!(cell.of_limit(Column::Private), Some(6.0));
        assert_eq!(cell.ratio(Column::Private, true), Some(2.5));
        assert_eq!(cell.ratio_of_least(Column::Private), Some(30.0 / 17.0));
        assert_eq!(cell.ratio(Column::Threads, false), None);
    }

    #[test]
    fn wrong_results_and_failures_are_no_times_and_are_told() {
        let mut cell = cell();
        let open = Series::new(Column::Default, "Open MPI 5.0.11", false);
        cell.add(&open, Ok((1.0, true)));
        cell.add(
            &Series::new(Column::Gloo, "Gloo", true),
            Err("gave up\n\n  =====\nof thirst\nlong ago".to_owned()),
        );
        let best = cell.best(Column::Default, false).map(|(series, _)| series.of.as_str());
        assert_eq!(best, Some("Intel MPI 2021.18.1"));
        assert!(cell.best(Column::Gloo, true).is_none());
        let figures = figures(vec![cell]);
        assert_eq!(
            figures.troubles(),
            [
                "Open MPI 5.0.11 (default), AllReduce, 4 ranks, 32768 bytes: results are wrong",
                "Gloo (gloo, rewritten), AllReduce, 4 ranks, 32768 bytes: gave up: of thirst",
            ]
        );
        assert!(figures.verdict().is_err());
    }

    pub(in super::super) fn figures(cells: Vec<Cell>) -> Figures {
        Figures {
            cores: 2,
            launches: 3,
            peers: vec!["Intel MPI 2021.18.1".to_owned(), "Open MPI 5.0.11".to_owned()],
            absent: vec!["Gloo was not measured: no torch".to_owned()],
            load_before: "0.10 0.20 0.30".to_owned(),
            load_after: "2.00 1.00 0.50".to_owned(),
            cells,
        }
    }
}
