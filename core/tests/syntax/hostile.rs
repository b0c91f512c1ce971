//! Input that no one would write: errors, never a crash, and soon.

use proptest::prelude::*;
use roundelay_core::diagnostics::Code;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::{self, MAX_DIAGNOSTICS, token};

use super::{SAMPLES, parse};

fn codes(text: &str) -> Vec<Code> {
    let (source, _, diagnostics) = parse(text);
    for d in &diagnostics {
        assert!(d.report(&source).len() < 2000, "a diagnostic repeats the input");
        assert!(roundelay_core::render::render(d, &source, false).len() < 5000);
    }
    diagnostics.into_iter().map(|d| d.code).collect()
}

fn let_x(expr: &str) -> String {
    format!("algorithm A() -> B {{ let x = {expr}; }}")
}

#[test]
fn nesting_is_bounded() {
    let n = 10_000;
    for (open, close) in [("(", ")"), ("[", "]"), ("f(", ")"), ("if a { 1 } else { ", " }")] {
        let text = let_x(&(open.repeat(n) + "1" + &close.repeat(n)));
        assert_eq!(codes(&text), [Code::NestedTooDeep], "{open}");
    }
    let blocks = "if a { ".repeat(n) + &"}".repeat(n);
    assert_eq!(codes(&format!("algorithm A() -> B {{ {blocks} }}")), [Code::NestedTooDeep]);
}

#[test]
fn depth_without_brackets_is_bounded() {
    let n = 100_000;
    let chains = [
        "1+".repeat(n) + "1",
        "!".repeat(n) + "a",
        "-".repeat(n) + "1",
        "a".to_owned() + &".b".repeat(n),
        "a".to_owned() + &".b()".repeat(n),
        "a".to_owned() + &"[0]".repeat(n),
        "if a { 1 } else ".repeat(n) + "{ 2 }",
    ];
    for chain in chains {
        assert_eq!(codes(&let_x(&chain)), [Code::NestedTooDeep], "{}", &chain[..8]);
    }
    assert_eq!(codes(&let_x(&("(".repeat(100) + "1" + &")".repeat(100)))), []);
}

#[test]
fn long_else_chains_are_flat() {
    let chain = "if a {} else ".repeat(50_000) + "{}";
    assert_eq!(codes(&format!("algorithm A() -> B {{ {chain} }}")), []);
}

#[test]
fn errors_are_capped() {
    let text = "algorithm A() -> B { ".to_owned() + &"let = 3; ".repeat(100_000) + "}";
    let (_, _, diagnostics) = parse(&text);
    assert_eq!(diagnostics.len(), MAX_DIAGNOSTICS);
    assert!(diagnostics[MAX_DIAGNOSTICS - 1].notes[0].contains("too many errors"));
}

#[test]
fn megabytes_of_garbage_are_answered() {
    let size = 10_000_000;
    for piece in ["1+", "@", "\u{7}é", "x", "x ", "{", "}", "\"", "/*", "// \n", "9", "::", "\n"] {
        let text = piece.repeat(size / piece.len());
        let found = codes(&text);
        assert!(!found.is_empty() && found.len() <= MAX_DIAGNOSTICS, "{piece:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let source = Source::from_bytes("t", &bytes);
        let (_, diagnostics) = syntax::parse(&source);
        for d in diagnostics {
            d.report(&source);
            roundelay_core::render::render(&d, &source, true);
        }
    }

    #[test]
    fn random_tokens_never_panic_and_frontends_agree(words in proptest::collection::vec(word(), 0..80)) {
        let text = words.join(" ");
        let source = Source::from_text("t", &text);
        let parsed = syntax::parse(&source);
        if let Ok(stream) = text.parse() {
            let (by_macro, spans) = Source::from_macro("t", stream);
            prop_assert_eq!(source.tokens(), by_macro.tokens());
            prop_assert_eq!(source.places(), by_macro.places());
            prop_assert_eq!(spans.len(), source.tokens().len());
            prop_assert_eq!(parsed, syntax::parse(&by_macro));
        }
    }

    #[test]
    fn damaged_samples_never_panic(which in 0..SAMPLES.len(), cut in 0..1000_usize, len in 0..30_usize) {
        let chars: Vec<char> = SAMPLES[which].1.chars().collect();
        let cut = cut.min(chars.len());
        let end = (cut + len).min(chars.len());
        let text: String = chars[..cut].iter().chain(&chars[end..]).collect();
        let (source, _, diagnostics) = parse(&text);
        for d in diagnostics {
            d.report(&source);
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    let table: Vec<String> = [token::KEYWORDS, token::CONTEXTUAL, token::PUNCTUATION]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .chain(["a", "rust { x }", "7", "4KiB", "\"s\"", "()", "{}", "// c\n"].map(str::to_owned))
        .collect();
    proptest::sample::select(table)
}
