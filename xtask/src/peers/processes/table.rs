//! Figures for the terminal, for the book and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::figures::{Cell, Column, Figures, Series};
use crate::sizes::told as size;
use crate::spread::{Spread, micros};

/// The number of columns.
const COLUMNS: usize = 17;
const HEADS: [&str; COLUMNS] = [
    "op",
    "ranks",
    "size",
    "best MPI",
    "rewritten",
    "forced",
    "Gloo",
    "processes",
    "processes, rewritten",
    "with alloc",
    "threads",
    "limit",
    "MPI / processes",
    "of the least",
    "rewritten",
    "MPI / with alloc",
    "processes / limit",
];
/// The text of a cell without a measurement.
const NOTHING: &str = "-";

fn row(cell: &Cell) -> [String; COLUMNS] {
    let named = |column, rewritten| match cell.best(column, rewritten) {
        Some((series, spread)) => format!("{} {}", told(spread), short(series)),
        None => NOTHING.to_owned(),
    };
    let time = |column, rewritten| {
        cell.best(column, rewritten).map_or(NOTHING.to_owned(), |(_, spread)| told(spread))
    };
    let ratio =
        |ratio: Option<f64>| ratio.map_or(NOTHING.to_owned(), |ratio| format!("{ratio:.2}"));
    [
        cell.op.to_owned(),
        cell.nranks.to_string(),
        size(cell.bytes),
        named(Column::Default, false),
        named(Column::Default, true),
        named(Column::Forced, false),
        time(Column::Gloo, false),
        time(Column::Private, false),
        time(Column::Private, true),
        time(Column::Alloc, false),
        time(Column::Threads, false),
        cell.limit().map_or(NOTHING.to_owned(), told),
        ratio(cell.ratio(Column::Private, false)),
        ratio(cell.ratio_of_least(Column::Private)),
        ratio(cell.ratio(Column::Private, true)),
        ratio(cell.ratio(Column::Alloc, false)),
        ratio(cell.of_limit(Column::Private)),
    ]
}

/// Returns the library without its version, and the algorithm that it was told to use.
fn short(series: &Series) -> String {
    let no_version = |word: &&str| !word.starts_with(|first: char| first.is_ascii_digit());
    let library: Vec<&str> = series.of.split(' ').take_while(no_version).collect();
    let library = library.join(" ");
    match series.of.split_once('=') {
        Some((_, algorithm)) => format!("{library}, {algorithm}"),
        None => library,
    }
}

/// Formats a median and, where there is one, its spread.
fn told(Spread { median, min, max }: Spread) -> String {
    if min < max {
        format!("{} [{}-{}]", micros(median), micros(min), micros(max))
    } else {
        micros(median)
    }
}

/// Returns the facts that all rows share.
pub(super) fn heading(figures: &Figures) -> String {
    format!(
        "{}. f32 sum, out of place (Broadcast in place), {} cores, rank r on core r % {}; microseconds: the median of {} launches [least-most]. \
         Load before: {}.",
        figures.peers.join(", "),
        figures.cores,
        figures.cores,
        figures.launches,
        figures.load_before,
    )
}

/// Renders a table for the terminal.
pub(super) fn render(cells: &[Cell]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(cells.iter().map(row));
    let widths: [usize; COLUMNS] =
        std::array::from_fn(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or_default());
    let mut table = String::new();
    for row in rows {
        let mut line = String::new();
        for (text, width) in row.iter().zip(widths) {
            let _ = write!(line, "{text:width$}  ");
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

/// Returns the notes below the table.
pub(super) fn notes(figures: &Figures) -> String {
    let mut notes = String::new();
    for line in figures.absent.iter().chain(&figures.troubles()) {
        let _ = writeln!(notes, "{line}");
    }
    notes
}

/// Returns the table for the book.
pub(super) fn markdown(figures: &Figures) -> String {
    let mut page = format!(
        "{}\n\n\
         *best MPI* is the better of the MPI libraries as they are. *rewritten* is the same with inputs that each rank \
         writes again before each call; the writing is not timed. Columns without that word have the same inputs in each call. \
         *forced* is the fastest algorithm that an MPI library can be told to use, tried one by one. *processes* has \
         private buffers, and *with alloc* buffers that all ranks may read. *threads* is a thread for each rank of one \
         process. *limit* is the least time that the memory allows. *of the least* is the least time of any MPI over the \
         least time of ours; the other ratios are of medians.",
        heading(figures),
    );
    for line in &figures.absent {
        let _ = write!(page, " {line}.");
    }
    let rows: Vec<_> = figures.cells.iter().map(row).collect();
    // Columns in which nothing was measured are left out.
    let shown = |at: &usize| rows.iter().any(|row| row[*at] != NOTHING);
    let shown: Vec<usize> = (0..COLUMNS).filter(shown).collect();
    let line = |texts: &[&str]| {
        let texts: Vec<&str> = shown.iter().map(|at| texts[*at]).collect();
        format!("| {} |", texts.join(" | "))
    };
    let _ = writeln!(page, "\n\n{}", line(&HEADS));
    let _ = writeln!(page, "|{}", "---|".repeat(shown.len()));
    for row in &rows {
        let _ = writeln!(page, "{}", line(&row.each_ref().map(String::as_str)));
    }
    let troubles = figures.troubles();
    if !troubles.is_empty() {
        page.push_str("\nNot measured, or wrong:\n\n");
        for line in troubles {
            let _ = writeln!(page, "* {line}");
        }
    }
    page
}

/// Returns all figures, with the median of each launch.
pub(super) fn json(figures: &Figures) -> String {
    let cells: Vec<Value> = figures.cells.iter().map(cell).collect();
    let report = json!({
        "unit": "us",
        "cores": figures.cores,
        "launches": figures.launches,
        "peers": figures.peers,
        "absent": figures.absent,
        "troubles": figures.troubles(),
        "load": { "before": figures.load_before, "after": figures.load_after },
        "results": cells,
    });
    format!("{report:#}\n")
}

fn cell(cell: &Cell) -> Value {
    let series = |series: &Series| {
        json!({
            "column": series.column.name(),
            "of": series.of,
            "rewritten": series.rewritten,
            "time": spread(series.spread()),
            "launches": series.times,
            "wrong": series.wrong,
            "failures": series.failures,
        })
    };
    let ratio = |column| json!({ "mpi": cell.ratio(column, false), "mpi_rewritten": cell.ratio(column, true), "limit": cell.of_limit(column) });
    json!({
        "op": cell.op,
        "nranks": cell.nranks,
        "size": cell.bytes,
        "limit": spread(cell.limit()),
        "series": cell.series.iter().map(series).collect::<Vec<_>>(),
        "ratios": {
            "private": ratio(Column::Private),
            "alloc": ratio(Column::Alloc),
            "threads": ratio(Column::Threads),
        },
    })
}

fn spread(spread: Option<Spread>) -> Value {
    spread.map_or(
        Value::Null,
        |Spread { median, min, max }| json!({ "median": median, "min": min, "max": max }),
    )
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{cell, figures};
    use super::*;

    #[test]
    fn a_row_names_the_best_and_tells_the_spread() {
        let row = row(&cell());
        let expected = [
            "AllReduce",
            "4",
            "32 KB",
            "36.0 [30.0-39.0] Open MPI",
            "55.0 [50.0-60.0] Intel MPI",
            "24.0 Intel MPI, 7",
            "-",
            "18.0 [17.0-20.0]",
            "22.0 [21.0-23.0]",
            "9.00 [8.00-9.50]",
            "-",
            "3.00 [3.00-4.00]",
            "2.00",
            "1.76",
            "2.50",
            "4.00",
            "6.00",
        ];
        assert_eq!(row, expected);
    }

    #[test]
    fn columns_of_the_terminal_are_aligned() {
        let table = render(&[cell(), Cell::new("Broadcast", 16, 3)]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        let at = lines[0].find("best MPI").expect("a head");
        assert!(lines[1][at..].starts_with("36.0 ["), "{table}");
        assert!(lines[2][at..].starts_with("-  "), "{table}");
    }

    #[test]
    fn the_book_gets_a_table_and_what_was_not_there() {
        let page = markdown(&figures(vec![cell()]));
        assert!(page.contains("Gloo was not measured: no torch."), "{page}");
        assert!(page.contains("\n| AllReduce | 4 | 32 KB | 36.0 [30.0-39.0] Open MPI |"), "{page}");
        let table: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(table.len(), 3, "{page}");
        assert!(table.iter().all(|line| line.matches('|').count() == COLUMNS + 1 - 2), "{page}");
        assert!(!page.contains("Not measured, or wrong"), "{page}");
        let mut bad = cell();
        bad.add(&Series::new(Column::Gloo, "Gloo", false), Err("gave up".to_owned()));
        assert!(markdown(&figures(vec![bad])).contains("\n* Gloo (gloo), AllReduce, 4 ranks"));
    }

    #[test]
    fn json_holds_every_launch() {
        let report: Value = serde_json::from_str(&json(&figures(vec![cell()]))).expect("JSON");
        let result = &report["results"][0];
        assert_eq!(result["series"][1]["launches"], json!([39.0, 30.0, 36.0]));
        assert_eq!(result["series"][1]["time"]["median"], 36.0);
        assert_eq!(result["ratios"]["alloc"]["mpi"], 4.0);
        assert_eq!(result["ratios"]["threads"]["mpi"], Value::Null);
        assert_eq!(result["limit"]["max"], 4.0);
        assert_eq!(report["load"]["before"], "0.10 0.20 0.30");
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!(
            [0.5, 9.994, 9.996, 99.96, 1234.6].map(micros),
            ["0.50", "9.99", "10.0", "100", "1235"]
        );
        assert_eq!([3, 1 << 10, 1 << 20, 1 << 30].map(size), ["3 B", "1 KB", "1 MB", "1024 MB"]);
    }
}
