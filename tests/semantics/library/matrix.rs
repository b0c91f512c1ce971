//! The matrix: every algorithm x nranks 1..=33 x awkward counts x out of place and in place x values of its
//! parameters, each point proved and run on data.
//!
//! Full are rank counts x values (see [`Values::nth`]) in proofs, and for each of them counts x places in
//! runs. Dealt out in turn over the runs are dtypes and ops, of which `kinds` has the cover.

use roundelay::Algorithm;
use roundelay_core::diagnostics::Code;

use super::super::runs::{Kind, Proofs, assert_right};
use super::subjects::{Subject, family};
use super::values::{Values, rows};

/// None, one, few, as many as ranks and one off, primes: not divided by anything.
pub(super) fn counts(nranks: u32) -> Vec<u64> {
    let n = u64::from(nranks);
    let mut counts = vec![0, 1, 2, n - 1, n, n + 1, 97, 257];
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Dtypes, ops and places that there are for the collective; the places apart.
fn kinds(algorithm: &dyn Algorithm) -> Vec<Vec<Kind>> {
    let place = |in_place| Kind::all().into_iter().filter(|k| k.in_place == in_place).collect();
    let mut places = vec![place(false)];
    if algorithm.collective().has_in_place() {
        places.push(place(true));
    }
    places
}

/// All of the matrix for one algorithm.
fn run(subject: Subject) {
    let mut turn = 0;
    for nranks in 1..=33 {
        if !(subject.admits)(nranks) {
            assert_refused(&subject, nranks);
            continue;
        }
        let most = subject.params.iter().map(|param| rows(param)).max().unwrap_or(1);
        for row in 0..most.min(values_at(nranks)) {
            let algorithm = (subject.with)(&Values::nth(row, nranks));
            let mut proofs = Proofs::new(&*algorithm);
            for kinds in kinds(&*algorithm) {
                for count in counts(nranks) {
                    let kind = kinds[turn % kinds.len()];
                    assert_right(&proofs.plan(nranks, count, kind), kind, turn as u64);
                    // A step that has no divisor in common with 50 meets all of them.
                    turn += 7;
                }
            }
        }
    }
}

/// By a `require`, which says why.
fn assert_refused(subject: &Subject, nranks: u32) {
    let algorithm = (subject.with)(&Values::nth(0, nranks));
    let findings = algorithm.schedule(nranks).expect_err("the family does not promise this count");
    for finding in findings {
        assert_eq!(finding.code, Code::RankCountRefused, "{} at {nranks}", subject.name);
        let why = format!("{finding:?}");
        assert!(why.contains("power of two"), "{} at {nranks} says: {why}", subject.name);
    }
}

/// Fewer roots and orders differ on few ranks.
fn values_at(nranks: u32) -> usize {
    if nranks == 1 { 1 } else { 4 }
}

macro_rules! tests {
    ($($family:ident { $($_any:tt)* })*) => {
        $(
            #[test]
            fn $family() {
                family(stringify!($family)).into_iter().for_each(run);
            }
        )*
    };
}
super::subjects::library!(tests);
