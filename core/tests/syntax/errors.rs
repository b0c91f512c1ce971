//! One mistake, one message.

use expect_test::expect;

use super::parse;
use crate::cases;

#[test]
fn one_mistake_is_one_message() {
    let texts = [("body", "algorithm A() -> AllReduce {\nBODY\n}\n".to_owned())];
    cases::check("syntax/errors.txt", &texts, |text| {
        let (source, _, diagnostics) = parse(text);
        let found: Vec<String> = diagnostics.iter().map(|d| d.report(&source)).collect();
        found.join("\n")
    });
}

#[test]
fn not_utf8() {
    let source = roundelay_core::syntax::Source::from_bytes("t", b"ab\n c\xff");
    let (_, diagnostics) = roundelay_core::syntax::parse(&source);
    expect![[r#"
        the source is not UTF-8: byte 5 cannot be read [E0001]
        --> t:2:3
          |
        2 |  c�
          |   ^"#]]
    .assert_eq(&diagnostics[0].report(&source));
}

#[test]
fn rendered_like_rustc() {
    let (source, _, diagnostics) =
        parse("algorithm A() -> AllReduce {\n    copy(a, b)\n    let x = 3;\n}\n");
    expect![[r#"
        error[E0003]: expected `;`, found `let`
         --> test.coll:2:14
          |
        2 |     copy(a, b)
          |              ^ this statement lacks its `;`
        3 |     let x = 3;
          |     --- unexpected
          |
          = help: add `;` at the end of this statement"#]]
    .assert_eq(&roundelay_core::render::render(&diagnostics[0], &source, false));
}
