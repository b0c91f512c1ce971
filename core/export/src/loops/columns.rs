//! Numbers of a statement in loops that were found in a schedule: a column has the values of each iteration and rank.

use super::ir::{Number, Op, Piece, entry, executing};
use super::recognise::{Sample, Samples};
use super::repeats::Column;
use super::tables::{Row, Tables};

/// The ranks and the loops around a statement.
pub(crate) struct ColumnPlace<'a> {
    pub(crate) ranks: &'a [u32],
    /// The iterations of each loop, the outermost first, and the number of the current one.
    pub(crate) times: Vec<usize>,
    pub(crate) loops: Vec<Number>,
    /// The number of all ranks.
    nranks: u32,
    /// Whether numbers are for C: no left side of a remainder is negative, and no table has pieces.
    pub(crate) plain: bool,
}

impl<'a> ColumnPlace<'a> {
    /// Returns the place outside of all loops.
    pub(crate) const fn new(ranks: &'a [u32], nranks: u32) -> Self {
        Self { ranks, times: Vec::new(), loops: Vec::new(), nranks, plain: false }
    }

    /// Enters a loop with this variable.
    pub(crate) fn enter(&mut self, times: usize, var: usize) {
        self.loops.push(Number::var(var));
        self.times.push(times);
    }

    pub(crate) fn leave(&mut self) {
        self.loops.pop();
        self.times.pop();
    }

    /// Returns the iterations of all loops for each row of a column.
    fn counters(&self, rows: usize) -> Vec<Vec<i64>> {
        let of = |at: usize| {
            let stride = |depth: usize| self.times[depth + 1..].iter().product::<usize>();
            let counter = |(depth, times): (usize, &usize)| (at / stride(depth) % times) as i64;
            self.times.iter().enumerate().map(counter).collect()
        };
        (0..rows).map(of).collect()
    }

    /// Returns the arithmetic that gives all numbers of a column. `whole`: no left side of a remainder is negative.
    pub(crate) fn recognised(&self, column: &Column<i64>, whole: bool) -> Option<Number> {
        let rows = column.iter().enumerate().flat_map(|(at, row)| {
            let ranks = self.ranks.iter().zip(row);
            ranks.map(move |(rank, value)| Sample { at, rank: (*rank).into(), value: *value })
        });
        let samples = Samples {
            counters: &self.counters(column.len()),
            rows: rows.collect(),
            loops: &self.loops,
            rank: &executing(),
            nranks: (self.nranks.into(), &Number::leaf(Op::Nranks)),
            whole,
        };
        samples.number()
    }

    /// Returns an entry of a table of the numbers in these columns.
    pub(crate) fn table(
        &self,
        tables: &mut Tables,
        columns: &[Column<i64>],
    ) -> (usize, Vec<Number>) {
        let counters = self.counters(columns[0].len());
        let rows: Vec<Row> = counters
            .into_iter()
            .enumerate()
            .flat_map(|(at, counters)| {
                self.ranks.iter().enumerate().map(move |(member, rank)| {
                    let entry = columns.iter().map(|column| column[at][member]).collect();
                    (counters.clone(), *rank as usize, entry)
                })
            })
            .collect();
        let nothing = vec![0; columns.len()];
        let table = tables.fewest(&rows, &self.loops, &nothing);
        table.expect("each rank has one number in an iteration")
    }

    pub(crate) fn number(&self, tables: &mut Tables, column: &Column<i64>) -> Number {
        self.recognised(column, self.plain).unwrap_or_else(|| {
            let (table, indices) = self.table(tables, std::slice::from_ref(column));
            entry((table, indices))
        })
    }

    /// Returns a piece, of whose numbers the first four columns tell.
    pub(super) fn piece(&self, tables: &mut Tables, columns: &[Column<i64>]) -> Piece {
        let known = columns[..4].iter().map(|column| {
            if self.plain {
                Some(self.number(tables, column))
            } else {
                self.recognised(column, false)
            }
        });
        if let Some(numbers) = known.collect::<Option<Vec<_>>>() {
            let mut numbers = numbers.into_iter();
            let mut next = || numbers.next().expect("there are four");
            return Piece::Computed { lo: next(), width: next(), slot: next(), base: next() };
        }
        // Tables of pieces have the high end in place of the width.
        let mut ends = columns[..4].to_vec();
        for (row, lows) in ends[1].iter_mut().zip(&columns[0]) {
            for (width, lo) in row.iter_mut().zip(lows) {
                *width += lo;
            }
        }
        let (table, indices) = self.table(tables, &ends);
        Piece::Entry(table, indices)
    }
}
