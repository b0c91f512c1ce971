//! The recogniser of arithmetic: finds a simple number for values that differ between ranks and iterations.

use super::grids::Grid;
use super::ir::{Number, Op, binary, product, sum};
use roundelay_core::rational::gcd;
use roundelay_core::syntax::ast::BinOp;

/// The values of one number, for the iterations of the loops around it and the ranks that run it.
#[derive(Clone)]
pub(crate) struct Samples<'a> {
    /// The numbers of the iterations of all loops, the outermost first.
    pub(crate) counters: &'a [Vec<i64>],
    pub(crate) rows: Vec<Sample>,
    /// The number that stands for the iteration of each loop.
    pub(crate) loops: &'a [Number],
    /// The number that stands for the rank of a row, and the number of ranks that it counts.
    pub(crate) rank: &'a Number,
    pub(crate) nranks: (i64, &'a Number),
    /// Whether no left side of a remainder may be negative, at the cost of longer sums.
    pub(crate) whole: bool,
}

/// A value at a rank, in the iteration with a number among the counters.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) at: usize,
    pub(crate) rank: i64,
    pub(crate) value: i64,
}

/// A sum: a start, and the differences that a rank and the iterations of each loop make.
struct LinearSteps {
    start: i64,
    /// `None` where two ranks do not tell, since they are not neighbors.
    by_rank: Option<i64>,
    by_loop: Vec<i64>,
}

/// The periods that are tried besides the number of ranks.
const PERIODS: std::ops::RangeInclusive<i64> = 2..=8;

impl Samples<'_> {
    /// Returns a simple number for all values, if one is found.
    pub(crate) fn number(&self) -> Option<Number> {
        if let Some(sum) = self.sum() {
            return Some(sum);
        }
        // The common divisor of all values' differences from the least.
        let least = self.values().min()?;
        let step = self.values().fold(0, |step, value| gcd(step, (value - least) as u64)) as i64;
        let offset = if step > 1 { least % step } else { 0 };
        for (step, offset) in [(step, offset), (1, 0)] {
            let inner = self.map(|row| (row.value - offset) / step);
            let periods = std::iter::once(self.nranks.0).chain(PERIODS);
            let found = inner
                .remainder(periods)
                .or_else(|| inner.shifted())
                .or_else(|| inner.flipped())
                .or_else(|| inner.divided());
            if let Some(number) = found {
                return Some(sum(Number::int(offset), product(Number::int(step), number)));
            }
        }
        None
    }

    /// Returns a sum of the rank and the iterations, or its remainder by the number of ranks.
    pub(crate) fn linear(&self) -> Option<Number> {
        self.sum().or_else(|| self.remainder(std::iter::once(self.nranks.0)))
    }

    fn values(&self) -> impl Iterator<Item = i64> {
        self.rows.iter().map(|row| row.value)
    }

    /// Returns the samples with other values.
    fn map(&self, to: impl Fn(&Sample) -> i64) -> Self {
        let rows = self.rows.iter().map(|row| Sample { value: to(row), ..*row }).collect();
        Self { rows, ..self.clone() }
    }

    /// Returns the differences that a step of each loop and of the rank makes at the first row.
    fn steps(&self) -> LinearSteps {
        let first = self.rows[0];
        let start = &self.counters[first.at];
        let near = |rows: &mut dyn Iterator<Item = (i64, i64)>| {
            rows.filter(|(by, _)| *by != 0).min_by_key(|(by, _)| by.abs())
        };
        let beside = |row: &&Sample| row.at == first.at;
        let step = |row: &Sample| (row.rank - first.rank, row.value - first.value);
        let by_rank = match near(&mut self.rows.iter().filter(beside).map(step)) {
            Some((by, difference)) => (difference % by == 0).then_some(difference / by),
            None => Some(0),
        };
        let by_loop = (0..self.loops.len()).map(|depth| {
            let apart = |row: &&Sample| {
                let others = self.counters[row.at].iter().zip(start).enumerate();
                row.rank == first.rank && others.into_iter().all(|(k, (a, b))| k == depth || a == b)
            };
            let step = |row: &Sample| {
                (self.counters[row.at][depth] - start[depth], row.value - first.value)
            };
            near(&mut self.rows.iter().filter(apart).map(step)).map_or(0, |(by, all)| all / by)
        });
        let by_loop: Vec<_> = by_loop.collect();
        LinearSteps { start: first.value - dot(&by_loop, start), by_rank, by_loop }
    }

    /// Whether a rule holds for all values, from the sum of the loops' differences and a row.
    fn holds(&self, by_loop: &[i64], rule: impl Fn(i64, &Sample) -> bool) -> bool {
        self.rows.iter().all(|row| rule(dot(by_loop, &self.counters[row.at]), row))
    }

    /// Returns a sum of the form a + b * rank + c * i + ...
    fn sum(&self) -> Option<Number> {
        let LinearSteps { start, by_rank, by_loop } = self.steps();
        let by_rank = by_rank?;
        let start = start - by_rank * self.rows[0].rank;
        let fits =
            self.holds(&by_loop, |loops, row| row.value == start + by_rank * row.rank + loops);
        fits.then(|| self.terms(start, by_rank, &by_loop))
    }

    /// Returns a sum modulo the first period that fits.
    fn remainder(&self, mut periods: impl Iterator<Item = i64>) -> Option<Number> {
        let (least, most) = (self.values().min()?, self.values().max()?);
        if least < 0 {
            return None;
        }
        let first = self.rows[0];
        let LinearSteps { start, by_rank, by_loop } = self.steps();
        let ranks = self.rows.iter().map(|row| row.rank);
        let last = ranks.clone().max().unwrap_or(0);
        let neighbors = self.rows.get(1).is_some_and(|row| row.rank == first.rank + 1)
            || ranks.clone().min() == Some(last);
        periods.by_ref().filter(|period| most < *period).find_map(|period| {
            let by_loop: Vec<_> = by_loop.iter().map(|by| nearest_zero(*by, period)).collect();
            let by_ranks = match by_rank {
                Some(by_rank) if neighbors => {
                    let step = by_rank.rem_euclid(period);
                    step..step + 1
                }
                _ => 0..period,
            };
            by_ranks.map(|by_rank| nearest_zero(by_rank, period)).find_map(|by_rank| {
                let start = start - by_rank * first.rank;
                let fits = self.holds(&by_loop, |loops, row| {
                    row.value == (start + by_rank * row.rank + loops).rem_euclid(period)
                });
                fits.then(|| {
                    let mut start = nearest_zero(start, period);
                    if self.whole {
                        start = start.rem_euclid(period);
                        let ends = |step: i64, most: i64| (step * most).min(0);
                        let most = |depth: usize| {
                            self.counters.iter().map(|of| of[depth]).max().unwrap_or(0)
                        };
                        let loops = by_loop.iter().enumerate();
                        let lowest = ends(by_rank, last)
                            + loops.map(|(depth, step)| ends(*step, most(depth))).sum::<i64>();
                        while start + lowest < 0 {
                            start += period;
                        }
                    }
                    let right = if period == self.nranks.0 {
                        self.nranks.1.clone()
                    } else {
                        Number::int(period)
                    };
                    binary(BinOp::Rem, self.terms(start, by_rank, &by_loop), right)
                })
            })
        })
    }

    /// Returns a number that the only loop shifts.
    fn shifted(&self) -> Option<Number> {
        let [counter] = self.loops else { return None };
        let by = |row: &Sample| self.counters[row.at][0];
        let first = self.rows.iter().find(|row| by(row) == 0)?.value;
        let fits = |rule: fn(i64, i64) -> i64| {
            let is = |row: &Sample| (0..62).contains(&by(row)) && row.value == rule(first, by(row));
            self.rows.iter().all(is)
        };
        let op = match () {
            () if first > 0 && fits(|first, by| first << by) => BinOp::Shl,
            () if self.values().min() > Some(0) && fits(|first, by| first >> by) => BinOp::Shr,
            () => return None,
        };
        Some(binary(op, Number::int(first), counter.clone()))
    }

    /// Returns the rank with some bits flipped.
    fn flipped(&self) -> Option<Number> {
        let bits = self.map(|row| row.rank ^ row.value);
        let mut first: Vec<Option<i64>> = vec![None; self.counters.len()];
        let one = |row: &Sample| *first[row.at].get_or_insert(row.value) == row.value;
        let several = self.rows.iter().any(|row| row.rank != self.rows[0].rank);
        if !several || bits.values().any(|bits| bits < 0) || !bits.rows.iter().all(one) {
            return None;
        }
        let rows =
            (0..).zip(first).filter_map(|(at, value)| Some(Sample { at, rank: 0, value: value? }));
        let inner = Samples { rows: rows.collect(), ..bits };
        let bits = inner.sum().or_else(|| inner.shifted())?;
        Some(binary(BinOp::BitXor, self.rank.clone(), bits))
    }

    /// Returns a quotient of the rank, with some bits flipped, or the rank's number in a group at equal distances.
    fn divided(&self) -> Option<Number> {
        let first = self.rows[0];
        if self.rows.iter().all(|row| row.rank == first.rank) {
            return None;
        }
        let bits = (1..16).take_while(|bits| 1 << bits < self.nranks.0);
        let masked = bits.into_iter().find_map(|bits| {
            let flip = first.value ^ (first.rank >> bits);
            let row = |row: &Sample| row.value == (row.rank >> bits) ^ flip;
            (flip >= 0 && self.rows.iter().all(row)).then(|| {
                let quotient = binary(BinOp::Div, self.rank.clone(), Number::int(1 << bits));
                match flip {
                    0 => quotient,
                    _ => binary(BinOp::BitXor, quotient, Number::int(flip)),
                }
            })
        });
        masked.or_else(|| {
            let nranks = self.nranks.0 as u32;
            let row = |grid: Grid| self.rows.iter().all(|row| grid.number(row.rank) == row.value);
            let grid = Grid::all(nranks).find(|grid| row(*grid))?;
            Some(grid.text(self.rank.clone(), nranks))
        })
    }

    /// Returns the number of a sum: added terms before subtracted ones, and the start last, except a start that is the
    /// only added term.
    fn terms(&self, start: i64, by_rank: i64, by_loop: &[i64]) -> Number {
        let mut all = vec![(by_rank, self.rank)];
        all.extend(by_loop.iter().copied().zip(self.loops));
        all.retain(|(factor, _)| *factor != 0);
        let (adds, subtracts): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(factor, _)| *factor > 0);
        let term = |factor: i64, of: &Number| match factor {
            1 => of.clone(),
            factor => binary(BinOp::Mul, Number::int(factor), of.clone()),
        };
        let adds = adds.into_iter().map(|(factor, of)| term(factor, of));
        let added = adds.reduce(|a, b| binary(BinOp::Add, a, b));
        let mut number = match added {
            None => Number::int(start),
            Some(added) if start > 0 => binary(BinOp::Add, added, Number::int(start)),
            Some(added) => added,
        };
        let only = matches!(number.op, Op::Int(_));
        for (factor, of) in subtracts {
            number = binary(BinOp::Sub, number, term(-factor, of));
        }
        if start < 0 && !only {
            number = binary(BinOp::Sub, number, Number::int(-start));
        }
        number
    }
}

/// Returns the number with the same remainder that is nearest to zero.
fn nearest_zero(value: i64, period: i64) -> i64 {
    let value = value.rem_euclid(period);
    if 2 * value > period { value - period } else { value }
}

fn dot(steps: &[i64], counters: &[i64]) -> i64 {
    steps.iter().zip(counters).map(|(step, counter)| step * counter).sum()
}
