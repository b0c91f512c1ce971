//! Input that is large, nested or no text: each is an error with a code, soon, and never a crash.

use super::call::{Call, TempFile, roundelay, with_input};

const HEAD: &str = "algorithm A() -> AllReduce {\n    copy(local.input, local.output);\n";

fn check(name: &str, bytes: &[u8]) -> Call {
    let file = TempFile::new(name, bytes);
    roundelay(&["check", file.path()])
}

#[test]
fn ten_megabytes_of_garbage() {
    let mut bytes = vec![0; 10 << 20];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    check("bytes.coll", &bytes).refused(1, "E0001");
    let text: Vec<u8> = bytes.iter().map(|b| 32 + b % 95).collect();
    check("text.coll", &text).refused(1, "E000");
    let lines: Vec<u8> =
        text.iter().enumerate().map(|(i, b)| if i % 80 == 79 { b'\n' } else { *b }).collect();
    check("lines.coll", &lines).refused(1, "E000");
}

#[test]
fn ten_thousand_nested_parentheses() {
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(10_000), close.repeat(10_000));
        format!("{HEAD}    let a = {open}1{close};\n}}\n")
    };
    check("parentheses.coll", deep("(", ")").as_bytes()).refused(1, "E0004");
    check("brackets.coll", deep("[", "]").as_bytes()).refused(1, "E0004");
    check("signs.coll", deep("-", "").as_bytes()).refused(1, "E0004");
    check("ifs.coll", deep("if true { ", " } else { 1 }").as_bytes()).refused(1, "E0004");
    check("open.coll", format!("{HEAD}{}", "(".repeat(10_000)).as_bytes()).refused(1, "E000");
    let blocks = format!("{HEAD}{}{}}}", "if true { ".repeat(10_000), "}".repeat(10_000));
    check("blocks.coll", blocks.as_bytes()).refused(1, "E0004");
}

#[test]
fn text_that_is_not_utf_8() {
    check("latin1.coll", b"algorithm A\xe9() -> AllReduce { }").refused(1, "E0001");
    with_input(&["fmt", "-"], b"\xff\xfe").refused(1, "E0001");
}

#[test]
fn arithmetic_that_overflows() {
    for (value, code) in [
        ("9223372036854775807 + nranks", "E0201"),
        ("-9223372036854775807 - 1 - nranks", "E0201"),
        ("nranks * 9223372036854775807 * 2", "E0201"),
        ("pow2(63 + nranks)", "E0210"),
        ("1 << 63 + nranks", "E02"),
        ("1 / (nranks - nranks)", "E0202"),
        ("99999999999999999999", "E0006"),
    ] {
        let text = format!("{HEAD}    let a = {value};\n    if a == 0 {{ }}\n}}\n");
        with_input(&["check", "-", "--nranks", "2"], text.as_bytes()).refused(1, code);
    }
}

#[test]
fn loops_that_do_not_end_soon() {
    for body in [
        "for i in 0..1000000000000 { }",
        "for i in 0..1000000 { for j in 0..1000000 { } }",
        "for i in -9223372036854775807..9223372036854775807 { }",
        "parallel i in 0..1000000000000 { }",
        "for i in 0..1000000000000 { copy(local.input, local.output); }",
        "step a() { for i in 0..100000 { } } step b() { for i in 0..100000 { a(); } } b();",
    ] {
        let text = format!("{HEAD}    {body}\n}}\n");
        with_input(&["check", "-", "--nranks", "2"], text.as_bytes()).refused(1, "E0206");
    }
}
