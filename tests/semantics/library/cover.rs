//! Samples of products: each pair of values of two factors is in some row.

use std::collections::BTreeSet;

use roundelay_tests::takes_all;

/// Returns the rows of a sweep, sorted. In a usual run each pair of values of two factors is in some row, and `cargo xtask
/// test --all` has the product of all factors.
pub(super) fn rows<const N: usize>(factors: [usize; N]) -> Vec<[usize; N]> {
    if takes_all() { product(factors) } else { pairs(factors) }
}

fn product<const N: usize>(factors: [usize; N]) -> Vec<[usize; N]> {
    let mut rows = vec![[0; N]];
    for (factor, values) in factors.into_iter().enumerate() {
        let with = |mut row: [usize; N], value| {
            row[factor] = value;
            row
        };
        rows = rows.iter().flat_map(|row| (0..values).map(move |at| with(*row, at))).collect();
    }
    rows
}

fn pairs<const N: usize>(factors: [usize; N]) -> Vec<[usize; N]> {
    let mut cover = Cover::new(factors.to_vec(), |_, _| true);
    let mut rows = Vec::new();
    while let Some(row) = cover.next_row() {
        cover.meet(&row);
        rows.push(row.try_into().expect("a value for each factor"));
    }
    rows.sort_unstable();
    rows
}

#[test]
fn a_sweep_is_the_product_or_has_its_pairs() {
    let (all, some) = (product([5, 7, 3, 4]), pairs([5, 7, 3, 4]));
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 5 * 7 * 3 * 4);
    let of = |rows: &[[usize; 4]], a, b| -> BTreeSet<_> {
        rows.iter().map(|row| (row[a], row[b])).collect()
    };
    for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        assert_eq!(of(&some, a, b), of(&all, a, b), "{a} and {b}");
    }
    assert!(some.len() < 50, "{} rows", some.len());
}

/// Rows of a value for each factor, of which each pair of values is in some row.
pub(super) struct Cover {
    /// The number of values of each factor.
    factors: Vec<usize>,
    /// Whether the first factor may have a value beside one of the second.
    fits: fn(usize, usize) -> bool,
    /// The pairs that are in no row so far: factors and values, the first factor first.
    missing: BTreeSet<[(usize, usize); 2]>,
}

impl Cover {
    pub(super) fn new(factors: Vec<usize>, fits: fn(usize, usize) -> bool) -> Self {
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
    pub(super) fn meet(&mut self, row: &[usize]) {
        for a in 0..row.len() {
            for b in a + 1..row.len() {
                self.missing.remove(&[(a, row[a]), (b, row[b])]);
            }
        }
    }

    /// A row with a missing pair, if there is one, and of the other factors the values that add most.
    pub(super) fn next_row(&self) -> Option<Vec<usize>> {
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
