//! Dtypes and reduce ops: in full on one algorithm of each family; and all pairs of dtype, op, rank count, count and
//! place, which the matrix has of every algorithm.

use roundelay::{Algorithm, DType, ReduceOp};

use super::super::runs::{Kind, Proofs, assert_right};
use super::cover::Cover;
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

/// The pairs of dtype, op, rank count, count and place of an algorithm that its runs did not meet so far.
pub(super) struct Pairs {
    subject: Subject,
    admitted: Vec<u32>,
    cover: Cover,
}

impl Pairs {
    pub(super) fn new(subject: Subject) -> Self {
        let admitted: Vec<u32> = NRANKS.into_iter().filter(|n| (subject.admits)(*n)).collect();
        let has_in_place = runs_in_place(&*(subject.with)(&Values::plain(1)));
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

/// Whether an algorithm runs in place.
pub(super) fn runs_in_place(algorithm: &dyn Algorithm) -> bool {
    let apart = algorithm.schedule(2).is_ok_and(|schedule| schedule.out_of_place);
    algorithm.collective().has_in_place() && !apart
}

/// Runs all kinds, on few rank counts: an error of a kind shows there too.
fn run_full(subject: Subject) {
    for nranks in [1, 2, 4, 5, 8, 13].into_iter().filter(|n| (subject.admits)(*n)) {
        let algorithm = (subject.with)(&Values::plain(nranks));
        let has_in_place = runs_in_place(&*algorithm);
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
