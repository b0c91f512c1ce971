//! The proof when a macro expands: its rank counts, its budget, and the report about other counts.

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::expansion::{Outcome, prove, ranges, test_counts};
use roundelay_core::syntax::Source;

const RING: &str = "
    view block = output.split(nranks);
    copy(local.input, local.output);
    for round in 0..2 * (nranks - 1) {
        let b = (ring.position - round - 1) % nranks;
        ring.right.TxAck();
        ring.left.RxAck();
        if round < nranks - 1 {
            reduce(ring.left.block[b], local.block[b]);
        } else {
            copy(ring.left.block[b], local.block[b]);
        }
        ring.left.TxDataSignal();
        ring.right.RxDataSignal();
    }
";

/// A ring with these attributes, and this before its body.
fn ring(attributes: &str, before: &str) -> String {
    format!("{attributes} algorithm A(ring: Ring) -> AllReduce {{ {before} {RING} }}")
}

fn outcome(text: &str) -> Outcome {
    let source = Source::from_text("test.coll", text);
    let program = compile(&source, Frontend::Macro).unwrap_or_else(|errors| panic!("{errors:#?}"));
    prove(&program, &source)
}

fn codes(errors: &[Diagnostic]) -> Vec<(Code, Option<u32>)> {
    errors.iter().map(|e| (e.code, e.nranks)).collect()
}

/// Refuses counts outside of `counts`, and is wrong at each of them: so the errors show the tried counts.
fn tried(attributes: &str, counts: &str) -> Vec<u32> {
    let text = format!(
        "{attributes} algorithm A() -> AllGather {{ require {counts}, \"why\"; if nranks > 1 {{ peer((rank + 1) % nranks).TxAck(); }} else {{ copy(local.input, local.output); }} }}"
    );
    // A repeated mistake is reported once: refusing smaller counts shows it count by count.
    let mut found = Vec::new();
    let mut least = 0;
    loop {
        let text = text.replace("require ", &format!("require nranks > {least} && "));
        match outcome(&text).errors.iter().find(|e| e.code == Code::LeftOverSignal) {
            Some(error) => least = error.nranks.unwrap(),
            None => return found,
        }
        found.push(least);
    }
}

#[test]
fn small_counts_unless_asked() {
    assert_eq!(tried("", "nranks < 5"), [2, 3, 4]);
    assert_eq!(tried("#[verify(nranks = 2..=6)]", "nranks < 9"), [2, 3, 4, 5, 6]);
    assert_eq!(tried("#[verify(nranks = 2..6)]", "nranks < 9"), [2, 3, 4, 5]);
    assert_eq!(tried("#[verify(off, reason = \"slow\")]", "nranks < 9"), [0_u32; 0]);
    assert_eq!(tried("#[topology(full_mesh(7))]", "nranks < 9"), [7]);
}

#[test]
fn where_small_counts_are_refused_the_first_that_is_not() {
    assert_eq!(codes(&outcome(&ring("", "require nranks > 6, \"many\";")).errors), []);
    let wrong = "algorithm A() -> AllGather { require nranks == 8, \"cards\"; peer((rank + 1) % nranks).TxAck(); }";
    assert_eq!(codes(&outcome(wrong).errors)[0], (Code::LeftOverSignal, Some(8)));
    let never = "algorithm A() -> AllGather { require nranks > 99, \"many\"; }";
    assert_eq!(codes(&outcome(never).errors), []);
}

#[test]
fn a_count_that_was_named_must_not_be_refused() {
    let even = "require nranks % 2 == 0, \"pairs\";";
    let range = ring("#[verify(nranks = 2..=5)]", even);
    assert_eq!(codes(&outcome(&range).errors), []);
    let named = ring("#[verify(nranks = [2, 3, 4])]", even);
    assert_eq!(codes(&outcome(&named).errors), [(Code::RankCountRefused, Some(3))]);
    let none = ring("#[verify(nranks = 3..=3)]", even);
    assert_eq!(codes(&outcome(&none).errors), [(Code::NothingAdmitted, None)]);
}

#[test]
fn what_is_beyond_the_budget_is_left_to_the_test() {
    let Outcome { errors, left } = outcome(&ring("#[verify(nranks = 2..=64)]", ""));
    assert_eq!(codes(&errors), []);
    assert_eq!(codes(&left), [(Code::StepLimit, None)]);
    let title = &left[0].title;
    assert!(title.starts_with("proved at expansion for nranks 2..="), "{title}");
    assert!(left[0].notes[0].contains("the generated test proves 2..=64"), "{:?}", left[0].notes);
    let Outcome { left, .. } = outcome(&ring("#[verify(nranks = 4000)]", ""));
    assert!(left[0].title.starts_with("nothing was proved at expansion"), "{}", left[0].title);
    // Unrequested counts that are left out are not reported.
    let long = "algorithm A() -> AllGather { for i in 0..1000000 { let x = i; } copy(local.input, local.output.block(rank)); }";
    let Outcome { errors, left } = outcome(long);
    assert_eq!((codes(&errors), codes(&left)), (vec![], vec![]));
}

#[test]
fn an_error_beyond_what_was_proved_is_found_by_asking() {
    // Wrong from five ranks on.
    let text = |attributes: &str| ring(attributes, "if nranks > 4 { ring.right.TxAck(); }");
    assert_eq!(codes(&outcome(&text("")).errors), []);
    let asked = outcome(&text("#[verify(nranks = 4..=6)]")).errors;
    assert_eq!(codes(&asked), [(Code::LeftOverSignal, Some(5))]);
}

#[test]
fn what_the_generated_test_proves() {
    let of = |attributes: &str, params: &str| {
        let text = format!("{attributes} algorithm A({params}) -> AllGather {{}}");
        let source = Source::from_text("test.coll", &text);
        let program =
            compile(&source, Frontend::Macro).unwrap_or_else(|errors| panic!("{errors:#?}"));
        test_counts(&program.algorithms[0]).map(|(counts, named)| (ranges(&counts), named))
    };
    let some = |text: &str, named| Some((text.to_owned(), named));
    assert_eq!(of("", ""), some("2..=33", false));
    assert_eq!(of("", "k: int"), None);
    assert_eq!(of("", "k: int = 2, ring: Ring, topology: Topology"), some("2..=33", false));
    assert_eq!(of("#[verify(nranks = 2..=40)]", ""), some("2..=40", false));
    assert_eq!(of("#[verify(nranks = [2, 4])]", ""), some("2, 4", true));
    assert_eq!(of("#[verify(off, reason = \"slow\")]", ""), None);
    assert_eq!(of("#[topology(full_mesh(8))]", ""), some("2..=8", false));
    assert_eq!(of("#[topology(full_mesh(1))]", ""), some("1", false));
    assert_eq!(of("#[topology(full_mesh(nranks))]", ""), some("2..=33", false));
}

/// A caller of a rooted collective may name any root: an algorithm that is right for the default root alone is refused.
#[test]
fn counts_are_proved_for_every_root() {
    let text = |attributes: &str, param: &str, root: &str| {
        format!(
            "{attributes} algorithm B({param}) -> Broadcast {{
                if rank == root {{
                    copy(local.input, local.output);
                    if {root} {{
                        for d in 1..nranks {{ peer((root + d) % nranks).TxAck(); }}
                        for d in 1..nranks {{ peer((root + d) % nranks).RxDataSignal(); }}
                    }}
                }} else if {root} {{
                    peer(root).RxAck();
                    copy(peer(root).output, local.output);
                    peer(root).TxDataSignal();
                }}
            }}"
        )
    };
    let with_default = "root: Rank = 0";
    assert_eq!(outcome(&text("", with_default, "root < nranks")).errors, []);
    for (root, first) in [("root == 0", 1), ("root < 2", 2)] {
        // However the counts are named, and also where the root has no default.
        for attributes in ["", "#[verify(nranks = 2..=5)]", "#[verify(nranks = [2, 3])]"] {
            for param in [with_default, "root: Rank"] {
                let errors = outcome(&text(attributes, param, root)).errors;
                assert_eq!(codes(&errors), [(Code::WrongResult, Some(first + 1))], "{attributes}");
                assert!(errors[0].notes.contains(&format!("with root {first}")), "{errors:?}");
            }
        }
    }
    // And where small counts are refused.
    let seven = "Broadcast { require nranks == 7, \"seven\";";
    let seven = text("", with_default, "root == 0").replacen("Broadcast {", seven, 1);
    assert_eq!(codes(&outcome(&seven).errors), [(Code::WrongResult, Some(7))]);
}

/// One root may take more steps than another: then a warning names the roots that were proved.
#[test]
fn roots_beyond_the_budget_are_named() {
    let text = "algorithm B(root: Rank = 0, k: int = 3) -> Broadcast {
        if root == 2 { for i in 0..1000000 { let x = i * k; } }
        let other = peer(root);
        if rank == root {
            copy(local.input, local.output);
            for far in 1..nranks { peer((root + far) % nranks).TxDataSignal(); }
            for far in 1..nranks { peer((root + far) % nranks).RxAck(); }
        } else {
            other.RxDataSignal();
            copy(other.input, local.output);
            other.TxAck();
        }
    }";
    let Outcome { errors, left } = outcome(text);
    assert_eq!(errors, []);
    let titles: Vec<&str> = left.iter().map(|warning| &*warning.title).collect();
    assert_eq!(
        titles,
        [
            "proved at expansion for nranks 3 with root 0..=1 alone, k = 3: all roots take more steps than it may",
            "proved at expansion for nranks 4 with root 0..=1 alone, k = 3: all roots take more steps than it may",
        ]
    );
    let asked = text
        .replace("algorithm B", "#[verify(nranks = [2, 4, 200])] algorithm B")
        .replace("root == 2", "root == nranks");
    let Outcome { errors, left } = outcome(&asked);
    assert_eq!(errors, []);
    assert_eq!(
        left[0].title,
        "proved at expansion for nranks 2, 4, 200 with root 0..=3 at nranks 2, 4 and root 0 alone at nranks 200, k = 3: all roots take more steps than it may"
    );
    let asked = text
        .replace("algorithm B", "#[verify(nranks = [2, 3])] algorithm B")
        .replace("root == 2", "nranks == 3");
    let Outcome { left, .. } = outcome(&asked);
    assert_eq!(
        left[0].title,
        "proved at expansion for nranks 2, root 0..=1, k = 3 only: 3 ranks take more steps than it may"
    );
}
