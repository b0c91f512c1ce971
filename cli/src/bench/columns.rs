//! Columns of the bench's tables. A table keeps to the width of a page: it has the columns whose values differ, and of the
//! others as many as there is room for. A verbose command prints all columns, as wide as they are.

use super::Case;
use crate::report::{WIDEST, within_a_page};
use crate::streams::is_verbose;

/// A column of rows `R`.
pub(super) struct TableColumn<R> {
    /// The heading over neighbouring columns.
    pub(super) over: &'static str,
    /// The two lines of the column's own heading.
    pub(super) head: [&'static str; 2],
    pub(super) kept: InTable,
    /// The width in the table that has all columns, and in the other one.
    pub(super) widths: [usize; 2],
    pub(super) cell: fn(&R) -> String,
}

/// The tables that have a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InTable {
    Always,
    /// The wide one, and another where its values differ.
    Differs,
    /// The wide one, and another with enough room; the column with the least number goes first.
    Room(u8),
    /// The wide one alone.
    Wide,
    /// The narrow one alone.
    Narrow,
    /// None.
    Never,
}

/// A table whose last column, without a limit of its width, names the subject of a row.
pub(super) struct Table<R: 'static> {
    columns: Vec<&'static TableColumn<R>>,
    wide: bool,
}

/// Blanks before the subject of a row.
const GAP: usize = 2;

impl<R> Table<R> {
    /// Chooses from all columns those for rows of `cases`, whose last column is up to `longest` wide.
    pub(super) fn new(all: &'static [TableColumn<R>], cases: &[Case], longest: usize) -> Self {
        let wide = is_verbose();
        let differs = |column: &TableColumn<R>| {
            let of = |case: &Case| of_case(column.head[0], case);
            cases.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
        };
        let kept = |column: &&TableColumn<R>| match column.kept {
            InTable::Always | InTable::Room(_) => true,
            InTable::Differs => wide || differs(column),
            InTable::Wide => wide,
            InTable::Narrow => !wide,
            InTable::Never => false,
        };
        let mut table = Self { columns: all.iter().filter(kept).collect(), wide };
        while !wide && table.width() + GAP + longest > WIDEST {
            let room = |column: &&&TableColumn<R>| match column.kept {
                InTable::Room(rank) => Some(rank),
                _ => None,
            };
            let columns = table.columns.iter().enumerate();
            let droppable = columns.filter_map(|(at, column)| Some((room(&column)?, at)));
            let Some((_, at)) = droppable.min() else { break };
            table.columns.remove(at);
        }
        table
    }

    fn widths(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|column| column.widths[usize::from(!self.wide)])
    }

    /// Returns the width without the last column.
    fn width(&self) -> usize {
        1 + self.widths().sum::<usize>()
    }

    /// Returns the heading, in comment lines; `last` is the heading of the last column.
    pub(super) fn head(&self, last: &str) -> Vec<String> {
        let columns: Vec<_> = self.columns.iter().zip(self.widths()).collect();
        let over = columns.chunk_by(|(a, _), (b, _)| a.over == b.over).map(|group| {
            let width = group.iter().map(|(_, width)| width).sum();
            format!("{:^width$}", group[0].0.over)
        });
        let over = over.collect::<Vec<_>>().concat();
        let line = |nth: usize| -> String {
            let cells =
                columns.iter().map(|(column, width)| format!("{:>width$}", column.head[nth]));
            cells.collect::<Vec<_>>().concat()
        };
        let lines = [over, format!("{}{:GAP$}{last}", line(0), ""), line(1)];
        let lines = lines.iter().map(|line| format!("#{}", line.trim_end()));
        lines.filter(|line| line.len() > 1).collect()
    }

    /// Returns the line of a row, which ends with `last`.
    pub(super) fn line(&self, row: &R, last: &str) -> String {
        let cells = self.columns.iter().zip(self.widths()).map(|(column, width)| {
            let cell = format!("{:>width$}", (column.cell)(row));
            // A wrong element is an error.
            match cell.trim().parse() {
                Ok(1_u64..) if column.head[0] == WRONG => format!("\x1b[1;91m{cell}\x1b[0m"),
                _ => cell,
            }
        });
        format!(" {}{:GAP$}{last}", cells.collect::<String>(), "")
    }
}

/// The heading of a column with numbers of wrong elements.
pub(super) const WRONG: &str = "#wrong";

/// Returns the value of a column of that heading, for a column that all rows of a case have equal.
fn of_case(head: &str, case: &Case) -> String {
    let of = &case.reference;
    match head {
        "type" => of.dtype.name().to_owned(),
        "redop" => op(case).to_owned(),
        "root" => of.root.0.to_string(),
        "nranks" => of.nranks.to_string(),
        _ => String::new(),
    }
}

fn op(case: &Case) -> &'static str {
    let of = &case.reference;
    if of.collective.reduces() { of.op.name() } else { "none" }
}

/// Returns a comment line with what the rows of all cases are of, each property with all its values.
pub(super) fn common(cases: &[Case]) -> Option<String> {
    let all = |value: fn(&Case) -> String| {
        let mut values: Vec<String> = cases.iter().map(value).collect();
        values.sort_unstable();
        values.dedup();
        values.join(", ")
    };
    let ops = all(|case| op(case).to_owned());
    let ops = if ops == "none" { String::new() } else { format!(" {ops}") };
    let rooted = cases.iter().any(|case| case.reference.collective.is_rooted());
    let mut ranks: Vec<u32> = cases.iter().map(|case| case.reference.nranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let ranks: Vec<_> = ranks.iter().map(u32::to_string).collect();
    let root = if rooted {
        format!(", root {}", all(|case| of_case("root", case)))
    } else {
        String::new()
    };
    (!cases.is_empty()).then(|| {
        format!(
            "# {} on {} ranks, {}{ops}{root}",
            all(|case| case.reference.collective.name().to_owned()),
            ranks.join(", "),
            all(|case| case.reference.dtype.name().to_owned()),
        )
    })
}

/// Breaks a comment line into lines of at most the width of a page, but in a wide table.
pub(super) fn comment(line: &str) -> String {
    if is_verbose() {
        return line.to_owned();
    }
    within_a_page(line, 4).replace("\n    ", "\n#   ")
}
