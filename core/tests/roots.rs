//! The roots for which a rooted collective is proved.

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::layout::roots::{Roots, WithRoot, text};
use roundelay_core::syntax::Source;

/// The roots of an algorithm with this default; its root may be set.
fn roots(default: &str, set: Option<u32>) -> Roots {
    let text = format!("algorithm A(root: Rank = {default}) -> Broadcast {{}}");
    let source = Source::from_text("test.coll", &text);
    let program = compile(&source, Frontend::File).expect("the source is valid");
    Configured::new(program.algorithms[0].clone(), &source).with_root(set).roots()
}

fn any(own: Option<u32>) -> Roots {
    roots(&own.map_or("nranks - 1".to_owned(), |own| own.to_string()), None)
}

fn proved(root: Option<u32>, ops: u64) -> WithRoot {
    WithRoot::Proved { root: RankId(root.unwrap_or(0)), ops }
}

#[test]
fn every_root_is_proved_up_to_the_limit() {
    let at = |own, nranks, most| {
        let mut tried = Vec::new();
        let at = any(own).each(nranks, most, |root| {
            tried.push(root);
            proved(root, 10)
        });
        (tried, text(&[at]))
    };
    assert_eq!(at(Some(0), 3, 30), (vec![Some(0), Some(1), Some(2)], "root 0..=2".to_owned()));
    assert_eq!(at(Some(2), 3, 29), (vec![Some(2)], "root 2 alone".to_owned()));
    assert_eq!(at(Some(2), 2, 29).0, [Some(0), Some(1)], "rank 2 is not there");
    assert_eq!(at(None, 2, 29).0, [None, Some(1)]);
    assert_eq!(at(Some(0), 1, 0), (vec![Some(0)], "root 0".to_owned()));
    let set = roots("0", Some(3)).each(4, 1, |root| proved(root.or(Some(3)), 10));
    assert_eq!(text(&[set]), "root 3");
}

#[test]
fn roots_that_are_refused_are_no_roots() {
    let only_two = |root| if root == Some(2) { proved(root, 1) } else { WithRoot::Refused };
    let at = any(Some(0)).each(4, 256, only_two);
    assert!(!at.is_partial());
    assert_eq!(text(&[at]), "root 2");
    assert!(!any(Some(0)).each(4, 255, only_two).is_proved(), "too many to be tried");
}

#[test]
fn the_words_name_the_counts_where_they_differ() {
    let with = |nranks| any(Some(0)).each(nranks, 9, |root| proved(root, 1));
    let proofs = [2, 3, 64].map(with);
    assert_eq!(text(&proofs), "root 0..=2 at nranks 2..=3 and root 0 alone at nranks 64");
    assert_eq!(text(&proofs[..2]), "root 0..=2");
    assert_eq!(text(&[]), "no root");
}
