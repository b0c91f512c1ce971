//! The partition lemma, by trial: pieces of a split cover the elements once, at every count and depth.

use proptest::prelude::*;
use roundelay_core::schedule::area::{Area, Pieces};
use roundelay_core::schedule::lengths::{Lengths, compare};
use roundelay_core::schedule::rational::Rat;
use roundelay_core::schedule::{Buffer, arith};
use roundelay_core::syntax::ast::BinOp;

fn elements(area: &Area, count: u64) -> (u64, u64) {
    (area.region.lo.element(count), area.region.hi.element(count))
}

/// The pieces lie end to end from the first element of `whole` to its last.
fn covers(pieces: &Pieces, whole: &Area, count: u64) {
    let (mut next, last) = elements(whole, count);
    for i in 0..pieces.len() {
        let (lo, hi) = elements(&pieces.at(i).unwrap(), count);
        assert_eq!(lo, next);
        assert!(hi >= lo);
        next = hi;
    }
    assert_eq!(next, last);
}

proptest! {
    #[test]
    fn pieces_cover_the_whole(
        units in 1..5_u32,
        n in 1..70_i64,
        m in 1..70_i64,
        weights in prop::collection::vec(0..9_i64, 1..6),
        count in prop_oneof![0..200_u64, any::<u32>().prop_map(u64::from)],
        pick in any::<prop::sample::Index>(),
    ) {
        let whole = Area::whole(Buffer::Output, units);
        let pieces = whole.split(n).unwrap();
        covers(&pieces, &whole, count);
        let piece = pieces.at(pick.index(n as usize) as i64).unwrap();
        covers(&piece.split(m).unwrap(), &piece, count);
        if weights.iter().any(|w| *w > 0) {
            covers(&piece.split_weighted(&weights).unwrap(), &piece, count);
        }
        let range = pieces.range(0, n).unwrap();
        prop_assert_eq!(elements(&range, count), elements(&whole, count));
        let nearly = elements(&pieces.at(0).unwrap(), count);
        prop_assert!((nearly.1 - nearly.0).abs_diff(u64::from(units) * count / n as u64) <= 1);
    }

    #[test]
    fn lengths_agree_with_counting(
        a in (0..12_u64, 0..12_u64, 1..7_u64),
        b in (0..12_u64, 0..12_u64, 1..7_u64),
    ) {
        let interval = |(x, y, den): (u64, u64, u64)| {
            (Rat::new(x.min(y), den).unwrap(), Rat::new(x.max(y), den).unwrap())
        };
        let (left, right) = (interval(a), interval(b));
        let length = |(lo, hi): (Rat, Rat), c| hi.element(c) - lo.element(c);
        // All denominators divide 60, so lengths repeat with that period.
        let differs = (1..=60).find(|c| length(left, *c) != length(right, *c));
        match compare(left, right) {
            Lengths::Equal | Lengths::Misaligned => prop_assert_eq!(differs, None),
            Lengths::Differ { count, left: l, right: r } => {
                prop_assert_eq!(Some(count), differs);
                prop_assert_eq!((l, r), (length(left, count), length(right, count)));
            }
        }
    }

    #[test]
    fn arithmetic_is_that_of_the_integers(a in any::<i64>(), b in prop_oneof![any::<i64>(), -70..70_i64]) {
        let (x, y) = (i128::from(a), i128::from(b));
        let exact = |op| Some(match op {
            BinOp::Add => x + y,
            BinOp::Sub => x - y,
            BinOp::Mul => x * y,
            BinOp::Div if y != 0 => x.div_euclid(y),
            BinOp::Rem if y != 0 => x.rem_euclid(y),
            BinOp::Shl if (0..64).contains(&y) => x << y,
            BinOp::Shr if (0..64).contains(&y) => x >> y,
            _ => return None,
        });
        use BinOp::{Add, Div, Mul, Rem, Shl, Shr, Sub};
        for op in [Add, Sub, Mul, Div, Rem, Shl, Shr] {
            let exact = exact(op).and_then(|v| i64::try_from(v).ok());
            prop_assert_eq!(arith::arithmetic(op, a, b).ok(), exact, "{} {} {}", a, op.text(), b);
        }
    }
}
