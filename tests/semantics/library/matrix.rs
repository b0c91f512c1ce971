//! The matrix: every algorithm x nranks 1..=33 x awkward counts x out of place and in place x values of its
//! parameters, each point proved and run on data.
//!
//! `cargo xtask test --all` has the product of rank counts, roots, orders, trees, groups, flags, counts and places. A usual
//! run deals out the counts and places, each count at each rank count, and above 9 ranks the values, a third of them at a
//! rank count. Dealt out in turn are slices, and dtypes and ops, whose pairs with each other and with the rest are all
//! there in the end.

use std::collections::BTreeSet;

use roundelay::Algorithm;
use roundelay_core::diagnostics::Code;
use roundelay_tests::takes_all;

use super::super::runs::{Kind, Proofs, assert_right};
use super::kinds::{Pairs, runs_in_place};
use super::subjects::Subject;
use super::values::{Told, Values};

/// Returns zero, one, few, about the number of ranks, and primes, which no number divides.
pub(super) fn counts(nranks: u32) -> [u64; 8] {
    let n = u64::from(nranks);
    [0, 1, 2, n - 1, n, n + 1, 97, 257]
}

/// Dtypes, ops and places that there are for the collective; the places apart.
fn kinds(algorithm: &dyn Algorithm) -> Vec<Vec<Kind>> {
    let place = |in_place| Kind::all().into_iter().filter(|k| k.in_place == in_place).collect();
    let mut places = vec![place(false)];
    if runs_in_place(algorithm) {
        places.push(place(true));
    }
    places
}

/// The most ranks of which a usual run has all values.
const FEW: u32 = 9;

/// Returns the values of an algorithm at that number of ranks: in a usual run a third of them, in turn, where there are
/// many ranks.
fn dealt_values(subject: &Subject, nranks: u32) -> Vec<Values> {
    let all = Values::all(subject.params, nranks);
    if takes_all() || nranks <= FEW || all.len() < 3 {
        return all;
    }
    all.into_iter().skip(nranks as usize % 3).step_by(3).collect()
}

/// All of the matrix for one algorithm.
fn run(subject: Subject) {
    let mut turn = 0;
    let mut pairs = Pairs::new(subject);
    for nranks in 1..=33 {
        if !(subject.admits)(nranks) {
            assert_refused(&subject, nranks);
            continue;
        }
        let counts: Vec<u64> = BTreeSet::from(counts(nranks)).into_iter().collect();
        let all = dealt_values(&subject, nranks);
        // Other counts and places for a value at each rank count.
        let mut dealt = nranks as usize;
        for values in &all {
            let algorithm = (subject.with)(values);
            let _told = Told(values);
            let mut proofs = Proofs::new(&*algorithm);
            let places = kinds(&*algorithm);
            let usual = counts.len().div_ceil(all.len());
            let cases = if takes_all() { counts.len() * places.len() } else { usual };
            for case in dealt..dealt + cases {
                let (round, at) = (case / counts.len(), case % counts.len());
                let kinds = &places[(round + at) % places.len()];
                let kind = kinds[turn % kinds.len()];
                assert_right(&proofs.plan(nranks, counts[at], kind), kind, turn as u64);
                pairs.meet(nranks, counts[at], kind);
                // A step without a common divisor with 56 meets all kinds.
                turn += 9;
            }
            dealt += cases;
        }
    }
    pairs.run_rest();
}

/// Rank counts that only few rounds can reach: one count, out of place and in place.
fn run_large(subject: Subject) {
    let count = 37;
    for nranks in [48, 64, 100, 128].into_iter().filter(|n| (subject.admits)(*n)) {
        let all = Values::all(subject.params, nranks);
        // Everything first, and everything last: another root, another tree.
        for values in BTreeSet::from([0, all.len() - 1]).into_iter().map(|at| &all[at]) {
            let _told = Told(values);
            let algorithm = (subject.with)(values);
            let mut proofs = Proofs::new(&*algorithm);
            for kinds in kinds(&*algorithm) {
                let kind = kinds[nranks as usize % kinds.len()];
                assert_right(&proofs.plan(nranks, count, kind), kind, u64::from(nranks));
            }
        }
    }
}

/// By a `require`, which says why.
fn assert_refused(subject: &Subject, nranks: u32) {
    let algorithm = (subject.with)(&Values::plain(nranks));
    let findings = algorithm.schedule(nranks).expect_err("the family does not promise this count");
    for finding in findings {
        assert_eq!(finding.code, Code::RankCountRefused, "{} at {nranks}", subject.name);
        let why = format!("{finding:?}");
        assert!(why.contains("power of two"), "{} at {nranks} says: {why}", subject.name);
    }
}

/// A test an algorithm, of its name: they run side by side, and the name says which is wrong.
macro_rules! tests {
    ($($family:ident { $($name:ident $_admits:ident [$($_param:ident)*])* })*) => {
        $(
            mod $family {
                $(
                    #[test]
                    fn $name() {
                        super::run(super::super::subjects::named(stringify!($name)));
                    }
                )*
            }
        )*
    };
}
roundelay_tests::library!(tests);

mod large {
    use super::super::subjects::family;

    /// The families of about log2(nranks) rounds.
    macro_rules! tests {
        ($($family:ident)*) => {
            $(
                #[test]
                fn $family() {
                    family(stringify!($family)).into_iter().for_each(super::run_large);
                }
            )*
        };
    }
    tests!(halving_doubling nhr bruck doubling tree hierarchical);
}
