//! Numbers of a statement in loops that were found in a schedule: a column has the values of each iteration and rank.

use super::ir::{Number, Piece};
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
        self.loops.push(Number::Var(var));
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
            rank: &Number::Me,
            nranks: (self.nranks.into(), &Number::Nranks),
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
            Number::Entry(table, indices)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::cpp::NumberText;
    use crate::loops::machine::LeastSides;
    use crate::loops::repeats::variable;

    /// Returns the expression for the values of a function of iteration and rank.
    fn found(nranks: u32, times: &[usize], of: impl Fn(i64, i64) -> i64) -> Option<String> {
        let ranks: Vec<u32> = (0..nranks).collect();
        let mut place = ColumnPlace::new(&ranks, nranks);
        times.iter().enumerate().for_each(|(var, times)| place.enter(*times, var));
        let row = |at| ranks.iter().map(|rank| of(at, i64::from(*rank))).collect();
        let values = (0..times.iter().product::<usize>() as i64).map(row).collect();
        let text = NumberText {
            me: "rank",
            ty: None,
            nranks: (nranks, "RANKS"),
            var: &variable,
            entry: &|_, _| unreachable!("arithmetic has no tables"),
            least: &LeastSides::new(),
        };
        place.recognised(&values, true).map(|number| text.text(&number).code)
    }

    #[test]
    fn simple_numbers_are_expressions() {
        let is = |found: Option<String>, text: &str| assert_eq!(found.as_deref(), Some(text));
        is(found(4, &[], |_, _| 7), "7");
        is(found(4, &[], |_, _| 0), "0");
        is(found(4, &[], |_, r| r), "rank");
        is(found(4, &[], |_, r| 2 * r + 1), "2 * rank + 1");
        is(found(2, &[], |_, r| 1 - r), "1 - rank");
        is(found(4, &[3], |i, _| 3 - i), "3 - i");
        is(found(4, &[3], |i, _| i), "i");
        is(found(4, &[], |_, r| (r + 3) % 4), "(rank + 3) % RANKS");
        is(found(4, &[3], |i, r| (r + 8 - i) % 4), "(rank + 4 - i) % RANKS");
        is(found(4, &[3], |i, r| 2 * ((r + i) % 4)), "2 * ((rank + i) % RANKS)");
        is(found(4, &[3], |i, r| 2 * ((r + i) % 4) + 1), "1 + 2 * ((rank + i) % RANKS)");
        is(
            found(4, &[2, 3], |at, r| (r + at / 3 + 2 * (at % 3)) % 4),
            "(rank + i + 2 * j) % RANKS",
        );
        is(found(8, &[3], |i, r| r ^ (1 << i)), "rank ^ (1 << i)");
        is(found(8, &[3], |i, r| r ^ (4 >> i)), "rank ^ (4 >> i)");
        is(found(8, &[3], |i, _| 4 >> i), "4 >> i");
        is(found(8, &[], |_, r| r ^ 2), "rank ^ 2");
        is(found(8, &[], |_, r| r / 4 * 4), "4 * (rank / 4)");
        is(found(4, &[6], |i, _| i % 2), "i % 2");
        // A loop with more iterations than a number has bits.
        let last = |i, _| i64::from(i == 0) + i64::from(i == 79);
        assert_eq!(found(4, &[80], last), None);
        assert_eq!(found(5, &[], |_, r| [3, 1, 4, 1, 5][r as usize]), None);
    }

    /// The search is fast for many ranks and rounds; to try every step between ranks on all values would take hours.
    #[test]
    fn what_is_no_expression_is_soon_known() {
        let n = 20_000;
        assert_eq!(found(n, &[20], |i, r| (r * r + i) % i64::from(n)), None);
        let last = i64::from(n) - 1;
        let sum = found(n, &[20], |i, r| (r * 7 + 3 * i) % i64::from(n));
        assert_eq!(sum.as_deref(), Some("(7 * rank + 3 * i) % RANKS"));
        assert_eq!(found(n, &[20], |i, r| if r == last { 0 } else { (r + i) % last }), None);
    }

    /// C computes the intended value, since the left side of `%` is never negative.
    #[test]
    fn no_remainder_is_of_a_negative_number() {
        for n in 2..9_i64 {
            for shift in 0..n {
                let text = found(n as u32, &[n as usize], |i, r| (r - i + shift).rem_euclid(n));
                let text = text.expect("it is a remainder");
                let inner = text.trim_start_matches('(').split(')').next().unwrap_or_default();
                let start: i64 = inner.split(' ').filter_map(|word| word.parse::<i64>().ok()).sum();
                assert!(!inner.contains("- i") || start >= n - 1, "{n} {shift}: {text}");
            }
        }
    }
}
