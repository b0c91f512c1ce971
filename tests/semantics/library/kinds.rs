//! Dtypes and reduce ops: in full on one algorithm of each family; and all pairs of dtype, op, rank count, count and
//! place, which the matrix has of every algorithm.

use std::collections::BTreeSet;

use roundelay::{DType, ReduceOp};

use super::super::runs::{Kind, Proofs, assert_right};
use super::matrix;
use super::subjects::{self, Subject};
use super::values::{Told, Values};

/// Kinds of rank counts: powers of two, odd, prime, even, with many divisors. Not 1, and no count is 0: there the rest
/// of a pair would make no difference, and the matrix has them in full.
const NRANKS: [u32; 10] = [2, 3, 4, 6, 8, 12, 13, 16, 32, 33];

/// Returns the counts of the matrix, and a buffer of many tiles.
fn counts(nranks: u32) -> [u64; COUNTS] {
    let [_none, a, b, c, d, e, f, g] = matrix::counts(nranks);
    [a, b, c, d, e, f, g, if nranks <= 4 { 30_011 } else { 2003 }]
}

const COUNTS: usize = 8;

/// Rows of a value for each factor, of which each pair of values is in some row.
struct Cover {
    /// The number of values of each factor.
    factors: Vec<usize>,
    /// Whether the first factor may have a value beside one of the second.
    fits: fn(usize, usize) -> bool,
    /// The pairs that are in no row so far: factors and values, the first factor first.
    missing: BTreeSet<[(usize, usize); 2]>,
}

impl Cover {
    fn new(factors: Vec<usize>, fits: fn(usize, usize) -> bool) -> Self {
        let mut missing = BTreeSet::new();
        for (a, &values_a) in factors.iter().enumerate() {
            for (b, &values_b) in factors.iter().enumerate().skip(a + 1) {
                let pairs = (0..values_a).flat_map(|i| (0..values_b).map(move |j| (i, j)));
                let pairs = pairs.filter(|(i, j)| (a, b) != (0, 1) || fits(*i, *j));
                missing.extend(pairs.map(|(i, j)| [(a, i), (b, j)]));
            }
        }
        Self { factors, fits, missing }
    }

    /// Takes down the pairs of a row.
    fn meet(&mut self, row: &[usize]) {
        for a in 0..row.len() {
            for b in a + 1..row.len() {
                self.missing.remove(&[(a, row[a]), (b, row[b])]);
            }
        }
    }

    /// A row with a missing pair, if there is one, and of the other factors the values that add most.
    fn next_row(&self) -> Option<Vec<usize>> {
        let [first, second] = *self.missing.first()?;
        let mut row = vec![None; self.factors.len()];
        row[first.0] = Some(first.1);
        row[second.0] = Some(second.1);
        for (factor, &values) in self.factors.iter().enumerate() {
            let met = || row.iter().enumerate().filter_map(|(other, at)| Some((other, (*at)?)));
            let adds = |value: usize| {
                let pair = |other| {
                    if other < (factor, value) {
                        [other, (factor, value)]
                    } else {
                        [(factor, value), other]
                    }
                };
                met().filter(|other| self.missing.contains(&pair(*other))).count()
            };
            let fits = |value: &usize| match (factor, row[0], row[1]) {
                (0, _, Some(other)) => (self.fits)(*value, other),
                (1, Some(other), _) => (self.fits)(other, *value),
                _ => true,
            };
            let best = (0..values).rev().filter(fits).max_by_key(|value| adds(*value));
            row[factor] = row[factor].or(best);
        }
        row.into_iter().collect()
    }
}

#[test]
fn the_cover_has_all_pairs_and_few_rows() {
    for sizes in [vec![12, 11, 10, 8, 2], vec![12, 11, 5, 8, 2], vec![12, 11, 10, 8, 1], vec![2, 2]]
    {
        for fits in [(|_, _| true) as fn(usize, usize) -> bool, |a, b| b < 5 || a > 5] {
            let mut cover = Cover::new(sizes.clone(), fits);
            let mut rows = Vec::new();
            while let Some(row) = cover.next_row() {
                cover.meet(&row);
                rows.push(row);
            }
            for a in 0..sizes.len() {
                for b in a + 1..sizes.len() {
                    let met: BTreeSet<_> = rows.iter().map(|row| (row[a], row[b])).collect();
                    let all = (0..sizes[a]).flat_map(|i| (0..sizes[b]).map(move |j| (i, j)));
                    let fit = all.filter(|(i, j)| (a, b) != (0, 1) || fits(*i, *j));
                    assert_eq!(met, fit.collect(), "{sizes:?}: {a} and {b}");
                }
            }
            let mut sorted = sizes.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            assert!(rows.len() * 3 <= sorted[0] * sorted[1] * 4, "{sizes:?}: {} rows", rows.len());
        }
    }
}

/// The pairs of dtype, op, rank count, count and place of an algorithm that its runs did not meet so far.
pub(super) struct Pairs {
    subject: Subject,
    admitted: Vec<u32>,
    cover: Cover,
}

impl Pairs {
    pub(super) fn new(subject: Subject) -> Self {
        let admitted: Vec<u32> = NRANKS.into_iter().filter(|n| (subject.admits)(*n)).collect();
        let has_in_place = (subject.with)(&Values::plain(1)).collective().has_in_place();
        let places = 1 + usize::from(has_in_place);
        let factors = vec![DType::ALL.len(), ReduceOp::ALL.len(), admitted.len(), COUNTS, places];
        let fits = |dtype: usize, op: usize| ReduceOp::ALL[op].takes(DType::ALL[dtype]);
        Self { subject, admitted, cover: Cover::new(factors, fits) }
    }

    /// Takes down a run.
    pub(super) fn meet(&mut self, nranks: u32, count: u64, kind: Kind) {
        let Some(ranks) = self.admitted.iter().position(|n| *n == nranks) else { return };
        let dtype = DType::ALL.iter().position(|dtype| *dtype == kind.dtype).expect("a dtype");
        let op = ReduceOp::ALL.iter().position(|op| *op == kind.op).expect("an op");
        // Few ranks have a count by several names.
        for (at, _) in counts(nranks).into_iter().enumerate().filter(|(_, other)| *other == count) {
            self.cover.meet(&[dtype, op, ranks, at, kind.in_place.into()]);
        }
    }

    /// Makes the runs with the pairs that are left; values turn.
    pub(super) fn run_rest(mut self) {
        let mut seed = 0;
        while let Some(row) = self.cover.next_row() {
            let (dtype, op) = (DType::ALL[row[0]], ReduceOp::ALL[row[1]]);
            let kind = Kind { dtype, op, in_place: row[4] == 1 };
            let nranks = self.admitted[row[2]];
            let count = counts(nranks)[row[3]];
            let all = Values::all(self.subject.params, nranks);
            let values = &all[seed % all.len()];
            let _told = Told(values);
            let algorithm = (self.subject.with)(values);
            let plan = Proofs::new(&*algorithm).plan(nranks, count, kind);
            assert_right(&plan, kind, seed as u64);
            self.meet(nranks, count, kind);
            seed += 1;
        }
    }
}

/// Runs all kinds, on few rank counts: an error of a kind shows there too.
fn run_full(subject: Subject) {
    for nranks in [1, 2, 4, 5, 8, 13].into_iter().filter(|n| (subject.admits)(*n)) {
        let algorithm = (subject.with)(&Values::plain(nranks));
        let has_in_place = algorithm.collective().has_in_place();
        let mut proofs = Proofs::new(&*algorithm);
        for count in [u64::from(nranks) + 1, 257] {
            for kind in Kind::all().into_iter().filter(|kind| has_in_place || !kind.in_place) {
                assert_right(&proofs.plan(nranks, count, kind), kind, count);
            }
        }
    }
}

/// The first of a family that reduces, or the first.
fn one_of(family: &str) -> Subject {
    let all = subjects::family(family);
    let reduces = |subject: &&Subject| (subject.with)(&Values::plain(1)).collective().reduces();
    *all.iter().find(reduces).unwrap_or(&all[0])
}

macro_rules! tests {
    ($($family:ident { $($_any:tt)* })*) => {
        $(
            #[test]
            fn $family() {
                run_full(one_of(stringify!($family)));
            }
        )*
    };
}
roundelay_tests::library!(tests);
