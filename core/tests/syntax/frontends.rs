use proc_macro2::TokenStream;
use roundelay_core::source::Span;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::{self, token::Tok};

use super::{SAMPLES, parse_ok};

fn agree(text: &str) {
    let (by_text, file) = parse_ok(text);
    let (by_macro, spans) = Source::from_macro("test.coll", text.parse().unwrap());
    assert_eq!(by_text.tokens(), by_macro.tokens());
    assert_eq!(by_text.places(), by_macro.places());
    assert_eq!(spans.len(), by_macro.tokens().len());
    assert_eq!(syntax::parse(&by_macro), (file, Vec::new()));
}

#[test]
fn frontends_agree_on_the_samples() {
    for (_, text) in SAMPLES {
        agree(text);
    }
}

#[test]
fn line_ends_do_not_matter() {
    for (_, text) in SAMPLES {
        let (unix, file) = parse_ok(text);
        let (dos, same) = parse_ok(&text.replace('\n', "\r\n"));
        assert_eq!((unix.tokens(), unix.places()), (dos.tokens(), dos.places()));
        assert_eq!(unix.comments(), dos.comments());
        assert_eq!(file, same);
    }
}

#[test]
fn frontends_agree_on_operators_without_blanks() {
    agree("algorithm A() -> B { let a = b<-1&&!c||d<<-2>>3!=-4; for i in-1..-x{f();} }");
}

#[test]
fn block_docs_are_docs_in_both_frontends() {
    agree("/** one\n two */ algorithm A() -> B {}");
    let (_, file) = parse_ok("/** one\n two */ algorithm A() -> B {}");
    assert_eq!(file.algorithms[0].docs, [" one", " two"]);
}

#[test]
fn invisible_groups_and_compiler_literals_are_flattened() {
    use proc_macro2::{Delimiter, Group, Literal, TokenTree};
    let inner = TokenStream::from(TokenTree::Literal(Literal::i64_unsuffixed(-3)));
    let group = TokenTree::Group(Group::new(Delimiter::None, inner));
    let (source, _) = Source::from_macro("m", TokenStream::from(group));
    assert_eq!(source.tokens(), [Tok::Minus, Tok::Int(3)]);
    let (source, _) = Source::from_macro("m", "r#for".parse().unwrap());
    assert_eq!(source.diagnostics().len(), 1);
}

#[test]
fn spacing_inside_an_escape_does_not_matter() {
    let tokens = |text| Source::from_text("t", text).tokens().to_vec();
    assert_eq!(tokens("rust{a . b ( 1 ,2 )}"), tokens("rust { a.b(1, 2) }"));
    assert_eq!(tokens("rust { a.b(1, 2) }"), [Tok::Rust("a.b(1, 2)".into())]);
}

#[test]
fn words_are_keywords_only_in_their_places() {
    let (source, _) = parse_ok(
        "algorithm A() -> B { view view = view.split(2); step step(like: int) {} step(like);
         scratch like: like like like; for require in scratch { require.TxAck(); }
         require require, \"x\"; parallel parallel in 0..view { step(view); } }",
    );
    let count = |tok| source.tokens().iter().filter(|t| **t == tok).count();
    let counts = [Tok::View, Tok::Step, Tok::Like, Tok::Scratch, Tok::Require, Tok::Parallel];
    assert_eq!(counts.map(count), [1; 6]);
}

#[test]
fn locations_join_first_and_last_token() {
    let source = Source::from_text("t", "let é = 1;\n  x");
    let at = |lo, hi| {
        let l = source.location(Span::new(lo, hi));
        (l.line, l.column, l.end_line, l.end_column)
    };
    assert_eq!(at(0, 2), (1, 1, 1, 6));
    assert_eq!(at(2, 6), (1, 7, 2, 4));
    assert_eq!(at(5, 5), (2, 3, 2, 3));
    assert_eq!(at(6, 6), (2, 4, 2, 4));
    assert_eq!(source.range(Span::new(6, 6)), 15..15);
}

#[test]
fn both_frontends_give_a_statement_as_its_author_wrote_it() {
    let text = "algorithm A() -> AllReduce {\n    copy(left.block[rank-1], // from there\n        local.block [ 0 ],\n    );\n}";
    let (by_macro, _) = Source::from_macro("m", text.parse().unwrap());
    for source in [Source::from_text("t", text), by_macro] {
        let copy =
            source.tokens().iter().position(|tok| *tok == Tok::Ident("copy".into())).unwrap();
        let end = source.tokens().iter().position(|tok| *tok == Tok::Semi).unwrap();
        assert_eq!(
            source.text_at(Span::new(copy, end)),
            "copy(left.block[rank-1], local.block [ 0 ],)"
        );
    }
}
