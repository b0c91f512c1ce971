//! Times of one program without the library that takes over calls and with it.

use super::preload::PreloadMode;
use super::table::MarkdownTable;
use crate::command::brief;
use crate::sizes::told;
use crate::spread::{Spread, micros};

/// The ratio of times up to which a difference may be chance.
const RATIO: f64 = 1.05;
/// The microseconds up to which a difference may be chance.
const MORE: f64 = 0.05;

struct Cell {
    mpi: &'static str,
    op: String,
    ranks: String,
    bytes: u64,
    without: Vec<f64>,
    with: Vec<f64>,
}

impl Cell {
    /// Returns the time of a call with the library over the time without it.
    fn ratio(&self) -> Option<f64> {
        Some(Spread::of(&self.with)?.median / Spread::of(&self.without)?.median)
    }

    fn is_slower(&self) -> bool {
        let (Some(with), Some(without)) = (Spread::of(&self.with), Spread::of(&self.without))
        else {
            return false;
        };
        with.median > without.median * RATIO && with.median - without.median > MORE
    }
}

#[derive(Default)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    failures: Vec<String>,
}

impl Cells {
    /// Adds the result of a launch.
    pub(super) fn add(
        &mut self,
        mpi: &'static str,
        op: &str,
        ranks: &str,
        sizes: &[u64],
        mode: PreloadMode,
        found: Result<Vec<f64>, String>,
    ) {
        let times = match found {
            Ok(times) => times,
            Err(why) => {
                let failure = format!("{mpi}, {op}, {ranks} ranks, {mode}: {}", brief(&why));
                println!("{failure}");
                return self.failures.push(failure);
            }
        };
        for (bytes, time) in sizes.iter().zip(times) {
            let cell = self.cell(mpi, op, ranks, *bytes);
            if mode == PreloadMode::Without {
                cell.without.push(time);
            } else {
                cell.with.push(time);
            }
        }
    }

    fn cell(&mut self, mpi: &'static str, op: &str, ranks: &str, bytes: u64) -> &mut Cell {
        let is = |cell: &Cell| {
            (cell.mpi, cell.op.as_str(), cell.ranks.as_str(), cell.bytes) == (mpi, op, ranks, bytes)
        };
        let at = self.cells.iter().position(is).unwrap_or_else(|| {
            let (op, ranks) = (op.to_owned(), ranks.to_owned());
            self.cells.push(Cell { mpi, op, ranks, bytes, without: Vec::new(), with: Vec::new() });
            self.cells.len() - 1
        });
        &mut self.cells[at]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the number of failed launches.
    pub(super) fn failures(&self) -> usize {
        self.failures.len()
    }

    pub(super) fn table(&self) -> MarkdownTable {
        let mut table = MarkdownTable::new(&[
            "MPI",
            "op",
            "ranks",
            "size",
            "without, us",
            "with, us",
            "with / without",
        ]);
        let shown = |times: &[f64]| match Spread::of(times) {
            Some(Spread { median, min, max }) if min < max => {
                format!("{} [{}-{}]", micros(median), micros(min), micros(max))
            }
            Some(spread) => micros(spread.median),
            None => "-".to_owned(),
        };
        for cell in &self.cells {
            let slower = if cell.is_slower() { " slower" } else { "" };
            table.add(&[
                cell.mpi.to_owned(),
                cell.op.clone(),
                cell.ranks.clone(),
                told(cell.bytes),
                shown(&cell.without),
                shown(&cell.with),
                cell.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.2}{slower}")),
            ]);
        }
        let compared = self.cells.iter().filter(|cell| cell.ratio().is_some()).count();
        let slower = self.cells.iter().filter(|cell| cell.is_slower()).count();
        table.remark(&format!(
            "{slower} of {compared} are slower with it: more than {RATIO} times and {} ns",
            MORE * 1e3
        ));
        for failure in &self.failures {
            table.remark(failure);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_decide_what_is_slower() {
        let mut cells = Cells::default();
        for (without, with) in [
            ([1.0, 100.0], [1.04, 150.0]),
            ([9.0, 100.0], [1.04, 106.0]),
            ([1.0, 101.0], [9.0, 103.0]),
        ] {
            cells.add("impi", "Bcast", "2", &[4, 1024], PreloadMode::Without, Ok(without.to_vec()));
            cells.add("impi", "Bcast", "2", &[4, 1024], PreloadMode::On, Ok(with.to_vec()));
        }
        cells.add("impi", "Bcast", "2", &[4, 1024], PreloadMode::On, Err("gave up".to_owned()));
        let text = cells.table().text();
        assert!(text.contains("| 4 B  | 1.00 [1.00-9.00]"), "{text}");
        assert!(text.contains("| 1.04 "), "{text}");
        assert!(text.contains("| 1.06 slower"), "{text}");
        assert!(text.contains("* 1 of 2 are slower with it"), "{text}");
        assert!(text.contains("* impi, Bcast, 2 ranks, on: gave up"), "{text}");
        assert_eq!(cells.failures(), 1);
    }
}
