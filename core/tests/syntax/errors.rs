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
            the source holds no algorithm [E0005]
            --> test.coll:1:1
              |
            1 | // nothing
              | ^
            = help: write `algorithm NAME() -> AllReduce { … }`"#]],
    );
}

#[test]
fn missing_semicolon() {
    body(
        "copy(a, b)\nlet x = 3;",
        &expect![[r#"
            expected `;`, found `let` [E0003]
            --> test.coll:2:10
              |
            2 | copy(a, b)
              |          ^ this statement lacks its `;`
            = note: line 3, column 1: unexpected
            = help: add `;` at the end of this statement"#]],
    );
}

#[test]
fn missing_semicolon_at_the_end_of_a_block() {
    body(
        "for i in 0..2 {\n    copy(a, b)\n}",
        &expect![[r#"
            expected `;`, found `}` [E0003]
            --> test.coll:3:14
              |
            3 |     copy(a, b)
              |              ^ this statement lacks its `;`
            = note: line 4, column 1: unexpected
            = help: add `;` at the end of this statement"#]],
    );
}

#[test]
fn several_errors() {
    body(
        "let = 3;\ncopy(a b);\nlet x = 1;\nfor i inn 0..2 { f(1 2); }\nlet y = ;",
        &expect![[r#"
            expected a name, found `=` [E0003]
            --> test.coll:2:5
              |
            2 | let = 3;
              |     ^ unexpected
            expected `)`, `,` or an operator, found `b` [E0003]
            --> test.coll:3:8
              |
            3 | copy(a b);
              |        ^ unexpected
            expected `in`, found `inn` [E0003]
            --> test.coll:5:7
              |
            5 | for i inn 0..2 { f(1 2); }
              |       ^^^ unexpected
            = help: did you mean `in`?
            expected `)`, `,` or an operator, found `2` [E0003]
            --> test.coll:5:22
              |
            5 | for i inn 0..2 { f(1 2); }
              |                      ^ unexpected
            expected an expression, found `;` [E0003]
            --> test.coll:6:9
              |
            6 | let y = ;
              |         ^ unexpected"#]],
    );
}

#[test]
fn misspelt_keywords() {
    body(
        "lett x = 3;\nparalel i in 0..2 {}\nif a {} esle {}",
        &expect![[r#"
            expected `;` or an operator, found `x` [E0003]
            --> test.coll:2:6
              |
            2 | lett x = 3;
              |      ^ unexpected
            = help: did you mean `let`?
            expected `;` or an operator, found `i` [E0003]
            --> test.coll:3:9
              |
            3 | paralel i in 0..2 {}
              |         ^ unexpected
            = help: did you mean `parallel`?
            expected `;` or an operator, found `{` [E0003]
            --> test.coll:4:14
              |
            4 | if a {} esle {}
              |              ^ unexpected
            = help: did you mean `else`?"#]],
    );
    whole(
        "algoritm A() -> AllReduce {}",
        &expect![[r#"
            expected an algorithm, found `algoritm` [E0003]
            --> test.coll:1:1
              |
            1 | algoritm A() -> AllReduce {}
              | ^^^^^^^^ unexpected
            = help: did you mean `algorithm`?"#]],
    );
    body(
        "require nranks == 2;",
        &expect![[r#"
        expected `,`, found `;` [E0003]
        --> test.coll:2:20
          |
        2 | require nranks == 2;
          |                    ^ unexpected
        = help: a `require` says why it refuses other ranks: `require nranks == 2, "two ranks swap";`"#]],
    );
    whole(
        "step pull() { left.TxAck(); }",
        &expect![[r#"
        expected an algorithm, found `step` [E0003]
        --> test.coll:1:1
          |
        1 | step pull() { left.TxAck(); }
          | ^^^^ unexpected
        = help: a `step` belongs to an algorithm: write it inside its braces, before its first call"#]],
    );
}

#[test]
fn habits_of_rust() {
    body(
        "let mut x = 3;\nx = 4;\nfor i in 0..=3 {}\nlet c = a < b < c;",
        &expect![[r#"
            expected `:` or `=`, found `x` [E0003]
            --> test.coll:2:9
              |
            2 | let mut x = 3;
              |         ^ unexpected
            = help: values never change: there is no `mut`
            nothing called `x` was declared [E0003]
            --> test.coll:3:3
              |
            3 | x = 4;
              |   ^ not in this language
            = help: declare it: `let x = 4;`
            expected `{` or `..`, found `..=` [E0003]
            --> test.coll:4:11
              |
            4 | for i in 0..=3 {}
              |           ^^^ unexpected
            = help: ranges are half open: write `a..b + 1`
            expected `;`, `&&`, `||` or `|`, found `<` [E0003]
            --> test.coll:5:15
              |
            5 | let c = a < b < c;
              |               ^ unexpected
            = help: comparisons do not chain: join two with `&&`"#]],
    );
}

#[test]
fn one_slip_is_one_error() {
    body(
        "let x = a if b;\ncopy(a, b c);",
        &expect![[r#"
            expected `;` or an operator, found `if` [E0003]
            --> test.coll:2:11
              |
            2 | let x = a if b;
              |           ^^ unexpected
            expected `)`, `,` or an operator, found `c` [E0003]
            --> test.coll:3:11
              |
            3 | copy(a, b c);
              |           ^ unexpected"#]],
    );
}

#[test]
fn condition() {
    body(
        "if a b { f(); } else { g(); }\nlet x = if a b { 1 } else { 2 };",
        &expect![[r#"
            expected `{` or an operator, found `b` [E0003]
            --> test.coll:2:6
              |
            2 | if a b { f(); } else { g(); }
              |      ^ unexpected
            = help: the body of `if` stands in braces: `{ … }`
            expected `{` or an operator, found `b` [E0003]
            --> test.coll:3:14
              |
            3 | let x = if a b { 1 } else { 2 };
              |              ^ unexpected"#]],
    );
}

#[test]
fn docs_inside() {
    body(
        "/// no\nlet x = 3;",
        &expect![[r#"
            expected `}` or a statement, found a doc comment [E0003]
            --> test.coll:2:1
              |
            2 | /// no
              | ^^^^^^ unexpected
            = help: a doc comment belongs to an algorithm; use `//` here"#]],
    );
}

#[test]
fn unknown_characters() {
    body(
        "let x = @@é;\nlet y = 3 $ 4;\nlet s = 'a';",
        &expect![[r#"
            no token begins with `@@é` [E0002]
            --> test.coll:2:9
              |
            2 | let x = @@é;
              |         ^^^
            no token begins with `$` [E0002]
            --> test.coll:3:11
              |
            3 | let y = 3 $ 4;
              |           ^
            no token begins with `'` [E0002]
            --> test.coll:4:9
              |
            4 | let s = 'a';
              |         ^
            no token begins with `'` [E0002]
            --> test.coll:4:11
              |
            4 | let s = 'a';
              |           ^"#]],
    );
}

#[test]
fn literals() {
    body(
        "let a = 9223372036854775808;\nlet b = 16EiB;\nlet c = 1.5;\nrequire x, \"\\q\";",
        &expect![[r#"
            `9223372036854775808` does not fit a 64-bit integer [E0006]
            --> test.coll:2:9
              |
            2 | let a = 9223372036854775808;
              |         ^^^^^^^^^^^^^^^^^^^
            = help: the largest integer is 9223372036854775807
            `16EiB` is not an integer [E0002]
            --> test.coll:3:9
              |
            3 | let b = 16EiB;
              |         ^^^^^
            = help: integers look like `42`, `1_000`, `0xff`, `0b1010`, `4KiB`, `4MiB` or `4GiB`
            `1.5` is not an integer [E0002]
            --> test.coll:4:9
              |
            4 | let c = 1.5;
              |         ^^^
            = help: all numbers are 64-bit integers, but for those with a unit: `12.5GB/s`, `1.5us`
            unknown escape `\q` in a string [E0002]
            --> test.coll:5:12
              |
            5 | require x, "\q";
              |            ^^^^
            = help: the escapes are \n \r \t \0 \\ \" \' \x41 and \u{1f600}"#]],
    );
}

#[test]
fn unclosed() {
    whole(
        "algorithm A( -> AllReduce {\n let x = (1;\n let s = \"abc;\n]\n/* x",
        &expect![[r#"
            this `(` is not closed [E0007]
            --> test.coll:1:12
              |
            1 | algorithm A( -> AllReduce {
              |            ^
            this `{` is not closed [E0007]
            --> test.coll:1:27
              |
            1 | algorithm A( -> AllReduce {
              |                           ^
            this `(` is not closed [E0007]
            --> test.coll:2:10
              |
            2 |  let x = (1;
              |          ^
            this string is not closed on its line [E0007]
            --> test.coll:3:10
              |
            3 |  let s = "abc;
              |          ^^^^^
            this `]` closes nothing [E0007]
            --> test.coll:4:1
              |
            4 | ]
              | ^
            this comment is not closed [E0007]
            --> test.coll:5:1
              |
            5 | /* x
              | ^^"#]],
    );
}

#[test]
fn truncated() {
    whole(
        "algorithm A()",
        &expect![[r#"
            expected `->`, found the end [E0003]
            --> test.coll:1:14
              |
            1 | algorithm A()
              |              ^ unexpected"#]],
    );
}

#[test]
fn parameters() {
    whole(
        "algorithm A(ring Ring) -> AllReduce { let x = ; }",
        &expect![[r#"
            expected `:`, found `Ring` [E0003]
            --> test.coll:1:18
              |
            1 | algorithm A(ring Ring) -> AllReduce { let x = ; }
              |                  ^^^^ unexpected
            = help: a type stands after a colon: `ring: Ring`
            expected an expression, found `;` [E0003]
            --> test.coll:1:47
              |
            1 | algorithm A(ring Ring) -> AllReduce { let x = ; }
              |                                               ^ unexpected"#]],
    );
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
