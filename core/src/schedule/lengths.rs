//! Whether two intervals have equal numbers of elements, cut alike, for every count.
//!
//! `floor(hi * c) - floor(lo * c)` is one function of c for two intervals when their ends lie at equal fractions of a
//! unit and they span equally many units. Where every count is a multiple of a number m, m-ths take the place of units.
//! Where the fractions differ, the comparison searches a count at which the lengths differ, because it makes the better
//! message.

use crate::rational::Rat;

/// The comparison of two lengths over all counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// Equal for every count, and cut at equal fractions: element i of one interval belongs to element i of the other.
    Equal,
    /// Equal for every count that was tried, but cut at different fractions of the count.
    Misaligned,
    /// Different lengths at `count`.
    Differ {
        /// The smallest count at which the lengths differ.
        count: u64,
        /// The number of elements of the left interval at that count.
        left: u64,
        /// The number of elements of the right interval at that count.
        right: u64,
    },
}

/// The number of counts tried before two intervals are called misaligned.
const TRIED: u64 = 4096;

/// Compares `left` and `right`, each `(lo, hi)`, over all counts that are multiples of `multiple`.
pub fn compare(left: (Rat, Rat), right: (Rat, Rat), multiple: u64) -> Lengths {
    if left == right {
        return Lengths::Equal;
    }
    let scaled = |(lo, hi): (Rat, Rat)| Some((lo.times(multiple)?, hi.times(multiple)?));
    let Some((left, right)) = scaled(left).zip(scaled(right)) else { return Lengths::Misaligned };
    let whole = |(lo, hi): (Rat, Rat)| i128::from(hi.floor()) - i128::from(lo.floor());
    let aligned = same_fraction(left.0, right.0) && same_fraction(left.1, right.1);
    if aligned && whole(left) == whole(right) {
        return Lengths::Equal;
    }
    let length = |(lo, hi): (Rat, Rat), count| hi.element(count) - lo.element(count);
    (1..=TRIED)
        .map(|count| (count, length(left, count), length(right, count)))
        .find(|(_, left, right)| left != right)
        .map_or(Lengths::Misaligned, |(parts, left, right)| {
            let count = parts.saturating_mul(multiple);
            Lengths::Differ { count, left, right }
        })
}

fn same_fraction(a: Rat, b: Rat) -> bool {
    a.den() == b.den() && a.num() % a.den() == b.num() % b.den()
}
