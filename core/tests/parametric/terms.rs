//! Consequences of inequalities between linear terms.

#[allow(dead_code)]
#[path = "../../src/verify/parametric/terms.rs"]
mod part;

use part::{Affine, Facts, LinearVerdict, N, S, T};

fn int(value: i64) -> Affine {
    Affine::int(value)
}

#[test]
fn what_follows_is_proved_and_nothing_else() {
    let facts = Facts::ranks(3).within(S, int(0), N - int(2));
    assert!(facts.prove(N - S - int(2)));
    assert!(!facts.prove(N - S - int(3)));
    assert!(facts.and(T - S - int(1)).and(S - T).is_empty());
    assert!(!facts.and(T - S).and(S - T).is_empty());
    // 2s = 2t + 1 has no solution in integers.
    let odd = (S - T) * 2 - int(1);
    assert!(facts.and(odd).and(-odd).is_empty());
}

#[test]
fn residues_are_found_at_their_multiples() {
    let facts = Facts::ranks(2).within(S, int(0), N - int(1)).within(T, int(1), N - int(1));
    assert_eq!(facts.multiples(S - T), Some(vec![0]));
    assert_eq!(facts.multiples(S + T), Some(vec![1]));
    assert_eq!(facts.multiples(S - T - N), Some(vec![-1]));
    assert_eq!(facts.multiples(S * 9), None);
    assert!(!facts.prove_congruent(S));
    assert!(facts.and(-S).prove_congruent(S - N));
}

#[test]
fn cases_are_split_until_each_has_an_answer() {
    let facts = Facts::ranks(2).within(S, int(0), N - int(1));
    let (low, high) = (vec![int(3) - S], vec![S - int(4)]);
    assert!(facts.prove_any(&[low.clone(), high.clone()]));
    assert!(!facts.prove_any(&[low, vec![S - int(5)]]));
    assert!(matches!(facts.judge(&high), LinearVerdict::Depends(_)));
    assert!(matches!(facts.judge(&[-S - int(1)]), LinearVerdict::Fails));
}
