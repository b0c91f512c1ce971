//! Fractions, lengths and integers against plain arithmetic.

use proptest::prelude::*;
use roundelay_core::layout::area::Area;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::lengths::{Lengths, compare};
use roundelay_core::schedule::{Buffer, Region};
use roundelay_core::syntax::ast::BinOp;
use roundelay_core::values::arith::{Fault, arithmetic};

fn elements(region: &Region, count: u64) -> std::ops::Range<u64> {
    region.lo.element(count)..region.hi.element(count)
}

/// Pieces follow each other without gap or overlap, from where the whole begins to where it ends.
fn partition(whole: &Area, pieces: &[Area], count: u64) {
    let mut at = elements(&whole.region, count).start;
    for piece in pieces {
        let piece = elements(&piece.region, count);
        assert_eq!(piece.start, at);
        assert!(piece.start <= piece.end);
        at = piece.end;
    }
    assert_eq!(at, elements(&whole.region, count).end);
}

/// A count of any size: small counts, and counts at which 64 bits come into play.
fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..100, any::<u32>().prop_map(u64::from), 0..1_u64 << 48]
}

fn intervals() -> impl Strategy<Value = (Rat, Rat)> {
    (0_u64..12, 0_u64..12, 1_u64..7).prop_map(|(a, b, q)| {
        let at = |p| Rat::new(p, q).unwrap();
        (at(a.min(b)), at(a.max(b)))
    })
}

proptest! {
    #[test]
    fn pieces_partition(units in 1_u32..5, n in 1_i64..40, m in 1_i64..20, which in 0_i64..40, weights in prop::collection::vec(0_i64..9, 1..6), count in counts()) {
        let whole = Area::whole(Buffer::Output, units);
        let split = whole.split(n).unwrap();
        let all: Vec<_> = (0..n).map(|i| split.piece(i).unwrap()).collect();
        partition(&whole, &all, count);
        let piece = all[(which % n) as usize];
        let inner = piece.split(m).unwrap();
        let all: Vec<_> = (0..m).map(|i| inner.piece(i).unwrap()).collect();
        partition(&piece, &all, count);
        if weights.iter().any(|w| *w > 0) {
            let inner = piece.split_weighted(&weights).unwrap();
            let all: Vec<_> = (0..inner.len()).map(|i| inner.piece(i).unwrap()).collect();
            partition(&piece, &all, count);
        }
        // A range is the union of its pieces.
        let (lo, hi) = (which % n, n);
        let range = elements(&split.range(lo, hi).unwrap().region, count);
        prop_assert_eq!(range.start, elements(&split.piece(lo).unwrap().region, count).start);
        prop_assert_eq!(range.end, elements(&whole.region, count).end);
    }

    #[test]
    fn a_boundary_is_the_floor(p in 0_u64..1000, q in 1_u64..1000, count in counts()) {
        let exact = u128::from(p) * u128::from(count);
        let (p, q) = (Rat::new(p, q).unwrap(), u128::from(q));
        prop_assert_eq!(u128::from(p.element(count)), exact / q);
        prop_assert_eq!(u128::from(p.element_ceil(count)), exact.div_ceil(q));
    }

    #[test]
    fn lengths_agree_with_all_counts(left in intervals(), right in intervals()) {
        let length = |(lo, hi): (Rat, Rat), count| hi.element(count) - lo.element(count);
        let differ = (0..300_u64).find(|c| length(left, *c) != length(right, *c));
        match compare(left, right, 1) {
            Lengths::Differ { count, left: l, right: r } => {
                prop_assert_eq!(differ, Some(count));
                prop_assert_eq!((l, r), (length(left, count), length(right, count)));
            }
            Lengths::Equal => {
                prop_assert_eq!(differ, None);
                // Any boundary within the interval lies at an equal element of both.
                for i in 0..=6 {
                    let inner = |(lo, hi): (Rat, Rat)| lo.boundary(hi, i, 6).unwrap();
                    for count in 0..60 {
                        let offset = |at: (Rat, Rat)| inner(at).element(count) - at.0.element(count);
                        prop_assert_eq!(offset(left), offset(right));
                    }
                }
            }
            Lengths::Misaligned => prop_assert_eq!(differ, None),
        }
    }

    #[test]
    fn integers_agree_with_128_bits(a in numbers(), b in numbers(), k in 0_i64..64) {
        let (x, y) = (i128::from(a), i128::from(b));
        let same = |op, b, exact: Option<i128>| {
            let exact = exact.and_then(|e| i64::try_from(e).ok());
            prop_assert_eq!(arithmetic(op, a, b).ok(), exact, "{} {:?} {}", a, op, b);
            Ok(())
        };
        same(BinOp::Add, b, Some(x + y))?;
        same(BinOp::Sub, b, Some(x - y))?;
        same(BinOp::Mul, b, Some(x * y))?;
        same(BinOp::Div, b, x.checked_div_euclid(y))?;
        same(BinOp::Rem, b, x.checked_rem_euclid(y))?;
        same(BinOp::Shl, k, Some(x << k))?;
        same(BinOp::Shr, k, Some(x >> k))?;
        if b == 0 {
            prop_assert_eq!(arithmetic(BinOp::Rem, a, b), Err(Fault::DivisionByZero { left: a }));
        }
    }
}

fn numbers() -> impl Strategy<Value = i64> {
    prop_oneof![-9_i64..9, any::<i64>(), Just(i64::MIN), Just(i64::MAX)]
}
