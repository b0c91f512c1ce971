//! One mistake, one message.

use expect_test::{Expect, expect};

use super::parse;

/// The diagnostics of a statement inside an algorithm.
fn body(text: &str, expected: &Expect) {
    whole(&format!("algorithm A() -> AllReduce {{\n{text}\n}}\n"), expected);
}

fn whole(text: &str, expected: &Expect) {
    let (source, _, diagnostics) = parse(text);
    let found: Vec<String> = diagnostics.iter().map(|d| d.report(&source)).collect();
    expected.assert_eq(&found.join("\n"));
}

#[test]
fn empty() {
    whole(
        "// nothing",
        &expect![[r#"
        [E0005] the source holds no algorithm
          --> test.coll:1:1
           = help: write `algorithm NAME() -> AllReduce { … }`"#]],
    );
}

#[test]
fn missing_semicolon() {
    body(
        "copy(a, b)\nlet x = 3;",
        &expect![[r#"
        [E0003] expected `;`, found `let`
          --> test.coll:3:1
              unexpected
           = help: add `;` at the end of the statement before"#]],
    );
}

#[test]
fn missing_semicolon_at_the_end_of_a_block() {
    body(
        "for i in 0..2 {\n    copy(a, b)\n}",
        &expect![[r#"
        [E0003] expected `;`, found `}`
          --> test.coll:4:1
              unexpected
           = help: add `;` at the end of the statement before"#]],
    );
}

#[test]
fn several_errors() {
    body(
        "let = 3;\ncopy(a b);\nlet x = 1;\nfor i inn 0..2 { f(1 2); }\nlet y = ;",
        &expect![[r#"
        [E0003] expected a name, found `=`
          --> test.coll:2:5
              unexpected
        [E0003] expected `)`, `,` or an operator, found `b`
          --> test.coll:3:8
              unexpected
        [E0003] expected `in`, found `inn`
          --> test.coll:5:7
              unexpected
           = help: did you mean `in`?
        [E0003] expected `)`, `,` or an operator, found `2`
          --> test.coll:5:22
              unexpected
        [E0003] expected an expression, found `;`
          --> test.coll:6:9
              unexpected"#]],
    );
}

#[test]
fn misspelt_keywords() {
    body(
        "lett x = 3;\nparalel i in 0..2 {}\nif a {} esle {}",
        &expect![[r#"
        [E0003] expected `;` or an operator, found `x`
          --> test.coll:2:6
              unexpected
           = help: did you mean `let`?
        [E0003] expected `;` or an operator, found `i`
          --> test.coll:3:9
              unexpected
           = help: did you mean `parallel`?
        [E0003] expected `;` or an operator, found `{`
          --> test.coll:4:14
              unexpected
           = help: did you mean `else`?"#]],
    );
    whole(
        "algoritm A() -> AllReduce {}",
        &expect![[r#"
        [E0003] expected an algorithm, found `algoritm`
          --> test.coll:1:1
              unexpected
           = help: did you mean `algorithm`?"#]],
    );
}

#[test]
fn habits_of_rust() {
    body(
        "let mut x = 3;\nx = 4;\nfor i in 0..=3 {}\nlet c = a < b < c;",
        &expect![[r#"
        [E0003] expected `:` or `=`, found `x`
          --> test.coll:2:9
              unexpected
           = help: values never change: there is no `mut`
        [E0003] expected `;` or an operator, found `=`
          --> test.coll:3:3
              unexpected
           = help: values never change; declare one with `let x = …;`
        [E0003] expected an expression, found `=`
          --> test.coll:4:13
              unexpected
           = help: ranges are half open: write `a..b + 1`
        [E0003] expected `;`, `&&`, `||` or `|`, found `<`
          --> test.coll:5:15
              unexpected
           = help: comparisons do not chain: join two with `&&`"#]],
    );
}

#[test]
fn one_slip_is_one_error() {
    body("let x = a if b;\ncopy(a, b c);", &expect![[r#"
        [E0003] expected `;` or an operator, found `if`
          --> test.coll:2:11
              unexpected
        [E0003] expected `)`, `,` or an operator, found `c`
          --> test.coll:3:11
              unexpected"#]]);
}

#[test]
fn condition() {
    body(
        "if a b { f(); } else { g(); }\nlet x = if a b { 1 } else { 2 };",
        &expect![[r#"
        [E0003] expected `{` or an operator, found `b`
          --> test.coll:2:6
              unexpected
        [E0003] expected `{` or an operator, found `b`
          --> test.coll:3:14
              unexpected"#]],
    );
}

#[test]
fn docs_inside() {
    body(
        "/// no\nlet x = 3;",
        &expect![[r#"
        [E0003] expected `}` or a statement, found a doc comment
          --> test.coll:2:1
              unexpected
           = help: a doc comment belongs to an algorithm; use `//` here"#]],
    );
}

#[test]
fn unknown_characters() {
    body(
        "let x = @@é;\nlet y = 3 $ 4;\nlet s = 'a';",
        &expect![[r#"
        [E0002] no token begins with `@@é`
          --> test.coll:2:9
        [E0002] no token begins with `$`
          --> test.coll:3:11
        [E0002] no token begins with `'`
          --> test.coll:4:9
        [E0002] no token begins with `'`
          --> test.coll:4:11"#]],
    );
}

#[test]
fn literals() {
    body(
        "let a = 9223372036854775808;\nlet b = 16EiB;\nlet c = 1.5;\nrequire x, \"\\q\";",
        &expect![[r#"
            [E0006] `9223372036854775808` does not fit a 64-bit integer
              --> test.coll:2:9
               = help: the largest integer is 9223372036854775807
            [E0002] `16EiB` is not an integer
              --> test.coll:3:9
               = help: integers look like `42`, `1_000`, `0xff`, `0b1010`, `4KiB`, `4MiB` or `4GiB`
            [E0002] `1.5` is not an integer
              --> test.coll:4:9
               = help: all numbers are 64-bit integers
            [E0002] unknown escape `\q` in a string
              --> test.coll:5:12
               = help: the escapes are \n \r \t \0 \\ \" \' \x41 and \u{1f600}"#]],
    );
}

#[test]
fn unclosed() {
    whole(
        "algorithm A( -> AllReduce {\n let x = (1;\n let s = \"abc;\n]\n/* x",
        &expect![[r#"
        [E0007] this `(` is not closed
          --> test.coll:1:12
        [E0007] this `{` is not closed
          --> test.coll:1:27
        [E0007] this `(` is not closed
          --> test.coll:2:10
        [E0007] this string is not closed on its line
          --> test.coll:3:10
        [E0007] this `]` closes nothing
          --> test.coll:4:1
        [E0007] this comment is not closed
          --> test.coll:5:1"#]],
    );
}

#[test]
fn truncated() {
    whole(
        "algorithm A()",
        &expect![[r#"
        [E0003] expected `->`, found the end
          --> test.coll:1:14
              unexpected"#]],
    );
}

#[test]
fn parameters() {
    whole(
        "algorithm A(ring Ring) -> AllReduce { let x = ; }",
        &expect![[r#"
        [E0003] expected `:`, found `Ring`
          --> test.coll:1:18
              unexpected
        [E0003] expected an expression, found `;`
          --> test.coll:1:47
              unexpected"#]],
    );
}

#[test]
fn not_utf8() {
    let source = roundelay_core::source::Source::from_bytes("t", b"ab\n c\xff");
    let (_, diagnostics) = roundelay_core::syntax::parse(&source);
    expect![[r#"
        [E0001] the source is not UTF-8: byte 5 cannot be read
          --> t:2:3"#]]
    .assert_eq(&diagnostics[0].report(&source));
}

#[cfg(feature = "render")]
#[test]
fn rendered_like_rustc() {
    let (source, _, diagnostics) =
        parse("algorithm A() -> AllReduce {\n    copy(a, b)\n    let x = 3;\n}\n");
    expect![[r#"
        error[E0003]: expected `;`, found `let`
         --> test.coll:3:5
          |
        3 |     let x = 3;
          |     ^^^ unexpected
          |
          = help: add `;` at the end of the statement before"#]]
    .assert_eq(&roundelay_core::render::render(&diagnostics[0], &source, false));
}
