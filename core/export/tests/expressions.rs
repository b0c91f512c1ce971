//! Numbers that are given by iteration and rank, as expressions of C.

use roundelay_export::loops::expression as found;

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
    is(found(4, &[2, 3], |at, r| (r + at / 3 + 2 * (at % 3)) % 4), "(rank + i + 2 * j) % RANKS");
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
