//! Finds simple C expressions for numbers that differ between ranks and iterations.

use crate::repeats::variable;
use std::fmt::Write as _;

/// The values of one number in a program, for every iteration of the loops around it and every rank that runs it.
pub(super) struct Numbers<'a> {
    /// By iteration (the innermost loop fastest), and then by rank.
    pub(super) values: Vec<Vec<i64>>,
    /// The ranks, in ascending order.
    pub(super) ranks: &'a [u32],
    /// The number of iterations of each loop, the outermost first.
    pub(super) loops: &'a [usize],
    /// The number of ranks of the communicator.
    pub(super) nranks: u32,
}

/// The periods that are tried besides the number of ranks.
const PERIODS: std::ops::RangeInclusive<i64> = 2..=8;

impl Numbers<'_> {
    /// Returns a simple expression for all values, if one is found.
    pub(super) fn expression(&self) -> Option<String> {
        if let Some(sum) = self.sum() {
            return Some(sum);
        }
        // The common divisor of all values' differences from the least.
        let least = self.all().min()?;
        let step = self.all().fold(0, |step, value| gcd(step, value - least));
        let offset = if step > 1 { least % step } else { 0 };
        for (step, offset) in [(step, offset), (1, 0)] {
            let inner =
                Numbers { values: self.map(|_, _, value| (value - offset) / step), ..*self };
            if let Some(text) =
                inner.remainder().or_else(|| inner.shifted()).or_else(|| inner.masked())
            {
                let text = if step == 1 { text } else { format!("{step} * ({text})") };
                return Some(if offset == 0 { text } else { format!("{offset} + {text}") });
            }
        }
        None
    }

    fn all(&self) -> impl Iterator<Item = i64> {
        self.values.iter().flatten().copied()
    }

    /// Maps the values, from iteration, rank and value.
    fn map(&self, to: impl Fn(usize, i64, i64) -> i64) -> Vec<Vec<i64>> {
        let row = |(at, row): (usize, &Vec<i64>)| {
            let ranks = self.ranks.iter().map(|rank| i64::from(*rank));
            ranks.zip(row).map(|(rank, value)| to(at, rank, *value)).collect()
        };
        self.values.iter().enumerate().map(row).collect()
    }

    /// Returns the number of iterations in a step of each loop.
    fn strides(&self) -> Vec<usize> {
        (0..self.loops.len()).map(|depth| self.loops[depth + 1..].iter().product()).collect()
    }

    /// Returns the number of the iteration of each loop.
    fn counters(&self, at: usize) -> impl Iterator<Item = i64> {
        let of = move |(stride, times): (usize, &usize)| (at / stride % times) as i64;
        self.strides().into_iter().zip(self.loops).map(of)
    }

    /// Returns a sum of the form a + b * rank + c * i + ...
    fn sum(&self) -> Option<String> {
        let first = self.values[0][0];
        let by_rank = match self.ranks {
            [a, b, ..] => {
                let (difference, ranks) = (self.values[0][1] - first, i64::from(b - a));
                (difference % ranks == 0).then_some(difference / ranks)?
            }
            _ => 0,
        };
        let by_loop = self.by_loop();
        let start = first - by_rank * i64::from(self.ranks[0]);
        let fits = self
            .holds_beside(&by_loop, |loops, rank, value| value == start + by_rank * rank + loops);
        fits.then(|| terms(start, by_rank, &by_loop))
    }

    /// Returns the difference that a step of each loop makes at the first rank.
    fn by_loop(&self) -> Vec<i64> {
        let step = |(stride, times): (usize, &usize)| {
            if *times > 1 { self.values[stride][0] - self.values[0][0] } else { 0 }
        };
        self.strides().into_iter().zip(self.loops).map(step).collect()
    }

    /// Whether a rule holds for all values, from iteration, rank and value.
    fn holds(&self, rule: impl Fn(usize, i64, i64) -> bool) -> bool {
        self.values.iter().enumerate().all(|(at, row)| {
            let mut of_row = self.ranks.iter().zip(row);
            of_row.all(|(rank, value)| rule(at, i64::from(*rank), *value))
        })
    }

    /// Whether a rule holds for all values, from the sum of the loops' differences, rank and value.
    fn holds_beside(&self, by_loop: &[i64], rule: impl Fn(i64, i64, i64) -> bool) -> bool {
        self.values.iter().enumerate().all(|(at, row)| {
            let loops = dot(by_loop, self.counters(at));
            let mut of_row = self.ranks.iter().zip(row);
            of_row.all(|(rank, value)| rule(loops, i64::from(*rank), *value))
        })
    }

    /// Returns a sum modulo the number of ranks or another period.
    fn remainder(&self) -> Option<String> {
        let periods = [i64::from(self.nranks)].into_iter().chain(PERIODS);
        let (least, most) = (self.all().min()?, self.all().max()?);
        if least < 0 {
            return None;
        }
        periods.filter(|period| most < *period).find_map(|period| {
            let by_loop: Vec<_> =
                self.by_loop().iter().map(|step| nearest_zero(*step, period)).collect();
            let by_ranks = match *self.ranks {
                [_] => 0..1,
                // The first two ranks determine the step.
                [a, b, ..] if b == a + 1 => {
                    let step = (self.values[0][1] - self.values[0][0]).rem_euclid(period);
                    step..step + 1
                }
                _ => 0..period,
            };
            by_ranks.map(|by_rank| nearest_zero(by_rank, period)).find_map(|by_rank| {
                let start = self.values[0][0] - by_rank * i64::from(self.ranks[0]);
                let fits = self.holds_beside(&by_loop, |loops, rank, value| {
                    value == (start + by_rank * rank + loops).rem_euclid(period)
                });
                fits.then(|| {
                    // In C the remainder of a negative number is negative.
                    let ends = |step: i64, most: i64| (step * most).min(0);
                    let last = i64::from(*self.ranks.last().expect("there is a rank"));
                    let loops = by_loop.iter().zip(self.loops);
                    let lowest: i64 = ends(by_rank, last)
                        + loops.map(|(step, times)| ends(*step, *times as i64 - 1)).sum::<i64>();
                    let mut start = start.rem_euclid(period);
                    while start + lowest < 0 {
                        start += period;
                    }
                    let period = if period == i64::from(self.nranks) {
                        "RANKS".to_owned()
                    } else {
                        period.to_string()
                    };
                    let sum = terms(start, by_rank, &by_loop);
                    let sum = if sum.contains(' ') { format!("({sum})") } else { sum };
                    format!("{sum} % {period}")
                })
            })
        })
    }

    /// Returns a power of two that a loop shifts, or the rank with bits flipped by a power of two.
    fn shifted(&self) -> Option<String> {
        let [times] = *self.loops else { return self.flipped() };
        let first = self.values[0][0];
        let last = self.values[times - 1][0];
        let i = variable(0);
        if first > 0 && self.holds(|at, _, value| at < 62 && value == first << at) {
            return Some(format!("{first} << {i}"));
        }
        if last > 0 && self.holds(|at, _, value| at < 62 && value == first >> at) {
            return Some(format!("{first} >> {i}"));
        }
        self.flipped()
    }

    /// Returns the rank with some bits flipped.
    fn flipped(&self) -> Option<String> {
        if self.ranks.len() < 2 {
            return None;
        }
        let bits = self.map(|_, rank, value| rank ^ value);
        if bits.iter().flatten().any(|bits| *bits < 0)
            || bits.iter().any(|row| row.iter().any(|b| *b != row[0]))
        {
            return None;
        }
        let values = bits.iter().map(|row| vec![row[0]]).collect();
        let inner = Numbers { values, ranks: &self.ranks[..1], ..*self };
        let bits = inner.sum().or_else(|| inner.shifted())?;
        Some(if bits.contains(' ') { format!("rank ^ ({bits})") } else { format!("rank ^ {bits}") })
    }

    /// Returns the rank without its lowest bits, with some of the others flipped.
    fn masked(&self) -> Option<String> {
        if self.ranks.len() < 2 || self.values.len() > 1 {
            return None;
        }
        let bits = (1..16).take_while(|bits| 1 << bits < self.nranks);
        bits.into_iter().find_map(|bits| {
            let flip = self.values[0][0] ^ (i64::from(self.ranks[0]) >> bits);
            let fits = flip >= 0 && self.holds(|_, rank, value| value == (rank >> bits) ^ flip);
            fits.then(|| match flip {
                0 => format!("rank / {}", 1 << bits),
                _ => format!("(rank / {}) ^ {flip}", 1 << bits),
            })
        })
    }
}

/// Returns the number with the same remainder that is nearest to zero.
fn nearest_zero(value: i64, period: i64) -> i64 {
    let value = value.rem_euclid(period);
    if 2 * value > period { value - period } else { value }
}

fn dot(steps: &[i64], counters: impl Iterator<Item = i64>) -> i64 {
    steps.iter().zip(counters).map(|(step, counter)| step * counter).sum()
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// Returns the text of a sum: added terms before subtracted ones, and numbers last, except a number that is the only
/// added term.
fn terms(start: i64, by_rank: i64, by_loop: &[i64]) -> String {
    let mut all = vec![(by_rank, "rank".to_owned())];
    all.extend(by_loop.iter().enumerate().map(|(depth, step)| (*step, variable(depth))));
    all.retain(|(factor, _)| *factor != 0);
    let (adds, subtracts): (Vec<_>, Vec<_>) = all.into_iter().partition(|(factor, _)| *factor > 0);
    let mut text = String::new();
    let term = |text: &mut String, factor: i64, name: &str| {
        let sign = match (factor < 0, text.is_empty()) {
            (false, true) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (true, false) => " - ",
        };
        let _ = match factor.abs() {
            1 => write!(text, "{sign}{name}"),
            times => write!(text, "{sign}{times} * {name}"),
        };
    };
    for (factor, name) in &adds {
        term(&mut text, *factor, name);
    }
    if start > 0 || (text.is_empty() && subtracts.is_empty()) {
        let _ = write!(text, "{}{start}", if text.is_empty() { "" } else { " + " });
    }
    for (factor, name) in &subtracts {
        term(&mut text, *factor, name);
    }
    if start < 0 && !text.is_empty() && !(adds.is_empty() && subtracts.is_empty()) {
        let _ = write!(text, " - {}", -start);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the expression for the values of a function of iteration and rank.
    fn found(nranks: u32, loops: &[usize], of: impl Fn(i64, i64) -> i64) -> Option<String> {
        let ranks: Vec<u32> = (0..nranks).collect();
        let times = loops.iter().product::<usize>() as i64;
        let row = |at| ranks.iter().map(|rank| of(at, i64::from(*rank))).collect();
        let values = (0..times).map(row).collect();
        Numbers { values, ranks: &ranks, loops, nranks }.expression()
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
