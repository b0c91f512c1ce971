//! The expansions of the tests' wrong programs: what a check of the text says, at the same tokens.

use std::path::Path;

use proc_macro2::{Group, LineColumn, Span, TokenStream, TokenTree};
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::Severity;
use roundelay_core::syntax::Source;

use super::{BLOCK, Used, block, proved, serves_editor};

/// The mistakes that are none of Rust's tokens, so that rustc reports them before it asks a macro.
const NO_TOKENS: [&str; 2] = ["E0002_unknown_token", "E0007_unclosed"];

/// The mistakes that show neither at the rank counts that the macro proves nor in its settings.
const ELSEWHERE: [&str; 18] = [
    "E0115_escape_in_file",
    "E0205_refused",
    "E0205_refused_by_a_callee",
    "E0206_loops_in_loops",
    "E0206_step_limit",
    "E0206_steps_in_steps",
    "E0210_too_few_slices",
    "E0211_parameter_without_value",
    "E0302_wrong_way",
    "E0304_twice_for_left_out",
    "E0307_uninitialized",
    "E0310_shared_fifo",
    "E0310_shared_link",
    "E0313_dead_link",
    "E0313_no_ring",
    "E0313_without_a_ring",
    "E0314_lost_signal",
    "W0002_unused_root",
];

/// An error or a warning: the words, the first place, and the last one of an error.
type Told = (String, (usize, usize), Option<(usize, usize)>);

/// Reads the errors and the warnings of an expansion.
fn told(expansion: TokenStream, found: &mut Vec<Told>) {
    let tokens: Vec<TokenTree> = expansion.into_iter().collect();
    let place = |at: LineColumn| (at.line, at.column + 1);
    for (at, token) in tokens.iter().enumerate() {
        match (token, tokens.get(at + 2)) {
            (TokenTree::Ident(name), Some(TokenTree::Group(text))) if name == "compile_error" => {
                let (start, end) = (name.span().start(), text.span().end());
                found.push((words(text), place(start), Some(place(end))));
            }
            (TokenTree::Group(attribute), Some(TokenTree::Ident(name)))
                if attribute.to_string().starts_with("[deprecated") =>
            {
                found.push((words(attribute), place(name.span().start()), None));
            }
            (TokenTree::Group(group), _) => told(group.stream(), found),
            _ => {}
        }
    }
}

/// Returns the text in a group.
fn words(group: &Group) -> String {
    let last = group.stream().into_iter().last();
    match last.expect("it holds a text") {
        TokenTree::Group(inner) => words(&inner),
        text => syn::parse2::<syn::LitStr>(text.into()).expect("a text").value(),
    }
}

#[test]
fn every_mistake_is_told_at_its_tokens() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/wrong");
    let entries = std::fs::read_dir(folder).expect("the wrong programs");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "coll"));
    paths.sort();
    let (mut no_tokens, mut elsewhere) = (Vec::new(), Vec::new());
    for path in &paths {
        let name = path.file_stem().expect("a name").to_str().expect("an ASCII name");
        let text = std::fs::read_to_string(path).expect("a source");
        let Ok(tokens) = text.parse::<TokenStream>() else {
            no_tokens.push(name);
            continue;
        };
        let source = Source::from_text(BLOCK, &text);
        let used = Used::beside(Span::call_site(), BLOCK);
        let checked = used.compile(&source, Frontend::Macro);
        let (Ok((_, all)) | Err(all)) = checked.and_then(|checked| proved(checked, &source));
        let expected = all.iter().map(|diagnostic| {
            let place = source.location(diagnostic.primary);
            let end = (diagnostic.severity == Severity::Error)
                .then_some((place.end_line as usize, place.end_column as usize));
            (diagnostic.message(&source), (place.line as usize, place.column as usize), end)
        });
        let mut found = Vec::new();
        told(block(tokens), &mut found);
        assert_eq!(found, expected.collect::<Vec<_>>(), "{name}");
        if all.iter().all(|diagnostic| diagnostic.code.as_str() != &name[..5]) {
            elsewhere.push(name);
        }
    }
    assert_eq!((&no_tokens[..], &elsewhere[..]), (&NO_TOKENS[..], &ELSEWHERE[..]));
    assert!(paths.len() > 180, "{} programs", paths.len());
}

#[test]
fn the_servers_of_editors_are_known() {
    let is = |program: &str| serves_editor(Path::new(program));
    assert!(is("toolchain/libexec/rust-analyzer-proc-macro-srv") && is("rust-analyzer.exe"));
    assert!(is("intellij-rust-native-helper"));
    assert!(!is("toolchain/bin/rustc") && !is("clippy-driver.exe") && !is(""));
}
