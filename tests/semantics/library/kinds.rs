//! Dtypes and reduce ops: in full on one algorithm of each family, on every algorithm a cover of all pairs of
//! dtype, op, rank count, count and place.

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

/// The ops of floats and integers, which come first.
const OF_ALL: usize = 5;

/// Returns rows of one value per factor, given by the number of values of each, in which every pair of values of two
/// factors occurs. Greedy: a row begins with a missing pair and takes the values that add most.
fn cover(factors: &[usize]) -> Vec<Vec<usize>> {
    let mut missing = BTreeSet::new();
    for (a, &values_a) in factors.iter().enumerate() {
        for (b, &values_b) in factors.iter().enumerate().skip(a + 1) {
            let pairs = (0..values_a).flat_map(|i| (0..values_b).map(move |j| ((a, i), (b, j))));
            missing.extend(pairs);
        }
    }
    let mut rows = Vec::new();
    while let Some(&(first, second)) = missing.first() {
        let mut row = vec![None; factors.len()];
        row[first.0] = Some(first.1);
        row[second.0] = Some(second.1);
        for (factor, &values) in factors.iter().enumerate() {
            let adds = |value: usize| {
                let met = row.iter().enumerate().filter_map(|(other, at)| Some((other, (*at)?)));
                met.filter(|other| missing.contains(&pair((factor, value), *other))).count()
            };
            let best = (0..values).rev().max_by_key(|value| adds(*value));
            row[factor] = row[factor].or(best);
        }
        let row: Vec<usize> = row.into_iter().map(Option::unwrap_or_default).collect();
        for a in 0..row.len() {
            for b in a + 1..row.len() {
                missing.remove(&((a, row[a]), (b, row[b])));
            }
        }
        rows.push(row);
    }
    rows
}

fn pair<T: Ord>(a: T, b: T) -> (T, T) {
    if a < b { (a, b) } else { (b, a) }
}

#[test]
fn the_cover_has_all_pairs_and_few_rows() {
    for factors in
        [vec![12, 11, 10, 8, 2], vec![12, 11, 5, 8, 2], vec![12, 11, 10, 8, 1], vec![2, 2]]
    {
        let rows = cover(&factors);
        for a in 0..factors.len() {
            for b in a + 1..factors.len() {
                let met: BTreeSet<_> = rows.iter().map(|row| (row[a], row[b])).collect();
                assert_eq!(met.len(), factors[a] * factors[b], "{factors:?}: {a} and {b}");
            }
        }
        let mut sorted = factors.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        assert!(rows.len() * 3 <= sorted[0] * sorted[1] * 4, "{factors:?}: {} rows", rows.len());
    }
}

/// The cover on every algorithm; its own values turn.
fn run_cover(subject: Subject) {
    let admitted: Vec<u32> = NRANKS.into_iter().filter(|n| (subject.admits)(*n)).collect();
    let has_in_place = (subject.with)(&Values::plain(1)).collective().has_in_place();
    let places = 1 + usize::from(has_in_place);
    let factors = [DType::ALL.len(), ReduceOp::ALL.len(), admitted.len(), COUNTS, places];
    for (seed, row) in cover(&factors).into_iter().enumerate() {
        let (dtype, op) = (DType::ALL[row[0]], ReduceOp::ALL[row[1]]);
        // Where floats do not have the op, the row's other pairs are met with one that they have.
        let op = if op.takes(dtype) { op } else { ReduceOp::ALL[row[1] % OF_ALL] };
        let kind = Kind { dtype, op, in_place: row[4] == 1 };
        let nranks = admitted[row[2]];
        let all = Values::all(subject.params, nranks);
        let values = &all[seed % all.len()];
        let _told = Told(values);
        let algorithm = (subject.with)(values);
        let plan = Proofs::new(&*algorithm).plan(nranks, counts(nranks)[row[3]], kind);
        assert_right(&plan, kind, seed as u64);
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
        mod full {
            $(
                #[test]
                fn $family() {
                    super::run_full(super::one_of(stringify!($family)));
                }
            )*
        }

        mod pairs {
            $(
                #[test]
                fn $family() {
                    super::subjects::family(stringify!($family)).into_iter().for_each(super::run_cover);
                }
            )*
        }
    };
}
roundelay_tests::library!(tests);
