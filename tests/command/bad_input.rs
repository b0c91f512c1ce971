//! Bad input: each is an error with a code, soon, and never a crash. 1 is the program's fault, 2 the call's.

use super::call::{TempFile, roundelay, with_input};

const HEAD: &str = "algorithm A() -> AllReduce {\n    copy(local.input, local.output);\n";

fn check(name: &str, bytes: &[u8]) -> super::call::Call {
    let file = TempFile::new(name, bytes);
    roundelay(&["check", file.path()])
}

#[test]
fn a_missing_file() {
    for command in ["check", "run", "fmt"] {
        roundelay(&[command, "no/such/file.coll"]).refused(2, "E0001");
    }
    roundelay(&["emit", "rust", "no/such/file.coll"]).refused(2, "E0001");
    roundelay(&["check", "."]).refused(2, "E0001");
}

#[test]
fn a_source_that_is_neither_file_nor_algorithm() {
    let call = roundelay(&["check", "RingAllReduse"]).refused(2, "E0502");
    assert!(call.err.contains("did you mean `RingAllReduce`?"), "{}", call.err);
    let call = roundelay(&["check", "NothingLikeIt"]).refused(2, "E0502");
    assert!(call.err.contains("roundelay list"), "{}", call.err);
    let call = roundelay(&["executor", "check", "CustomHugeAlReduceMesh"]).refused(2, "E0506");
    assert!(call.err.contains("did you mean `CustomHugeAllReduceMesh`?"), "{}", call.err);
}

#[test]
fn an_empty_file() {
    check("empty.coll", b"").refused(1, "E0005");
    check("blank.coll", b" \n\t\n").refused(1, "E0005");
    with_input(&["check", "-"], b"").refused(1, "E0005");
}

#[test]
fn ten_megabytes_of_garbage() {
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let bytes: Vec<u8> = (0..10 << 20).map(|_| random()).collect();
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
fn no_ranks() {
    let call = roundelay(&["check", "RingAllReduce", "--nranks", "0"]).refused(2, "E0409");
    assert!(call.err.contains("1..="), "says what would be right:\n{}", call.err);
    roundelay(&["run", "RingAllReduce", "--nranks", "0..=3"]).refused(2, "E0409");
    for text in ["", "x", "-1", "3..2", "1..", "4294967296", "2..=99999999999", "1,,2"] {
        roundelay(&["check", "RingAllReduce", &format!("--nranks={text}")]).refused(2, "E0");
    }
    roundelay(&["check", "RingAllReduce", "--nranks", "1000000"]).refused(2, "E0409");
}

#[test]
fn more_than_memory_holds() {
    for count in ["1000000000000", "18446744073709551615"] {
        let call = roundelay(&["run", "RingAllReduce", "--nranks", "8", "--count", count])
            .refused(2, "E0407");
        assert!(call.err.contains("--count"), "{}", call.err);
    }
    roundelay(&["run", "RingAllReduce", "--count", "99999999999999999999"]).refused(2, "E0501");
    let scratch = "algorithm A() -> AllReduce {\n    scratch big: 1000000 like output;\n    copy(local.input, local.output);\n}\n";
    let call =
        with_input(&["run", "-", "--nranks", "1", "--count", "1000000000000"], scratch.as_bytes());
    call.refused(2, "E0407");
    let call = with_input(&["run", "-", "--nranks", "1", "--count", "1000000"], scratch.as_bytes());
    call.refused(2, "E0407");
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

#[test]
fn ops_that_elements_do_not_have() {
    for command in [
        &["run", "RingAllReduce", "--op", "band"][..],
        &["run", "RingAllReduce", "--op", "lor", "--dtype", "f64", "--callers", "processes"],
        &["bench", "RingAllReduce", "--op", "sum,land", "-d", "i32,bf16"],
        &["emit", "cuda", "RingAllReduce", "--op", "lxor"],
        &["emit", "ptx", "RingAllReduce", "--op", "bor", "--dtype", "f8e5m2", "--form", "table"],
    ] {
        let call = roundelay(command).refused(2, "E0431");
        let told = [" is for integers, and ", " avg, or elements of one of i8 u8 "];
        assert!(told.iter().all(|part| call.err.contains(part)), "{command:?}:\n{}", call.err);
    }
    let executor = ["executor", "run", "CustomHugeAllReduceMesh", "--sizes", "1K"];
    let call = roundelay(&[&executor[..], &["--dtype", "i32", "--op", "bxor"]].concat());
    let call = call.refused(2, "E0431");
    assert!(call.err.contains("executors have no op bxor"), "{}", call.err);
}

#[test]
fn flags_that_do_not_exist() {
    let call = roundelay(&["run", "RingAllReduce", "--dtype", "f31"]).refused(2, "E0501");
    assert!(call.err.contains("bf16"), "says what there is:\n{}", call.err);
    let call = roundelay(&["run", "RingAllReduce", "--op", "mean"]).refused(2, "E0501");
    assert!(call.err.contains("avg") && call.err.contains("bxor"), "{}", call.err);
    roundelay(&["run", "RingAllReduce", "--set", "ring"]).refused(2, "E0501");
    roundelay(&["run", "RingAllReduce", "--no-such-flag"]).refused(2, "E0507");
    roundelay(&["no-such-command"]).refused(2, "E0507");
    roundelay(&["run", "RingAllReduce", "--iterations", "0"]).refused(2, "E0501");
    roundelay(&["explain", "E9999"]).refused(2, "E0504");
    let call = roundelay(&["explain", "E0360"]).refused(2, "E0504");
    assert!(call.err.contains("did you mean `E0306`?"), "{}", call.err);
    for none in ["", "E", "EE0306", "E 306", "99999", "+306"] {
        roundelay(&["explain", none]).refused(2, "E0504");
    }
}

#[test]
fn parameters_and_algorithms_that_do_not_exist() {
    let call = roundelay(&["run", "RingAllReduce", "--set", "rnig=1,0"]).refused(2, "E0211");
    assert!(call.err.contains("ring: Ring"), "says what there is:\n{}", call.err);
    assert!(call.err.contains("did you mean `--set ring=1,0`?"), "{}", call.err);
    roundelay(&["run", "RingAllReduce", "--set", "ring=a,b"]).refused(2, "E0211");
    let call = roundelay(&["check", "RingReduce", "--set", "slices=foo"]).refused(2, "E0211");
    let title = "parameter `slices: int`: `foo` is not a 64-bit integer";
    assert!(call.err.contains(title), "names the parameter and its type: {}", call.err);
    let call = roundelay(&["check", "stdlib/library/ring.coll", "--algorithm", "Rnig"])
        .refused(2, "E0503");
    assert!(call.err.contains("it holds RingAllReduce"), "{}", call.err);
    let call = roundelay(&["check", "stdlib/library/ring.coll", "--algorithm", "RingAllReduse"])
        .refused(2, "E0503");
    assert!(call.err.contains("did you mean `RingAllReduce`?"), "{}", call.err);
}

#[test]
fn rings_that_are_not_of_these_ranks() {
    for ring in ["1,0", "0,1,2,2", "0,1,2,4", "0,1,2,-3", "0,1,2,3,4", ""] {
        let set = format!("ring={ring}");
        let call = roundelay(&["check", "RingAllReduce", "--nranks", "4", "--set", &set]);
        call.refused(1, "E0211");
    }
    roundelay(&["run", "TwistedRingAllReduce", "--nranks", "7", "--set", "ring=twisted"])
        .refused(1, "E0211");
}
