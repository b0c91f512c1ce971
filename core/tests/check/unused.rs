//! The occurrences of a name that are uses, and those that are not.

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::diagnostics::Severity;
use roundelay_core::syntax::Source;

const OTHER: &str = "pub algorithm Other(unused: int = 1) -> AllReduce { let nothing = 1; \
                     copy(local.input, local.output); }
                     #[deny(warnings)] pub algorithm Strict(unused: int = 1) -> AllReduce { \
                     copy(local.input, local.output); }";

/// Returns the warnings of a source: `W0003 name`, with `!` after a denied warning.
fn warned(text: &str) -> Vec<String> {
    let source = Source::from_text("a.coll", text);
    let load = |_: &str| Ok(Source::from_text("other.coll", OTHER));
    let library = [("library.coll", "pub algorithm Known(slices: int = 2) -> AllReduce {}")];
    let dependencies = Dependencies { prelude: &library, load: &load };
    let program = roundelay_core::compile_with(&source, Frontend::Macro, &dependencies)
        .unwrap_or_else(|errors| {
            panic!("{text}: {}", errors[0].report(&source));
        });
    let tokens = source.tokens();
    let line = |warning: &roundelay_core::diagnostics::Diagnostic| {
        let name = tokens[warning.primary.lo as usize].to_string();
        let denied = if warning.severity == Severity::Error { "!" } else { "" };
        format!("{} {name}{denied}", warning.code)
    };
    program.warnings.iter().map(line).collect()
}

/// Returns the warnings of an algorithm with these parameters and statements.
fn body(params: &str, body: &str) -> Vec<String> {
    warned(&format!("algorithm A({params}) -> AllReduce {{ {body} }}"))
}

const NONE: [&str; 0] = [];

#[test]
fn everything_that_is_declared_and_not_used() {
    let all = body(
        "p: int = 1, ring: Ring",
        "scratch s: like output; view v = output; let l = 1; fifo like output; \
         step t(to: peer, r: region) {}",
    );
    assert_eq!(
        all,
        [
            "W0002 p",
            "W0002 ring",
            "W0001 s",
            "W0004 v",
            "W0003 l",
            "W0006 fifo",
            "W0005 t",
            "W0002 to",
            "W0002 r",
        ]
    );
}

#[test]
fn a_name_that_begins_with_an_underscore_is_let_be() {
    let none = body(
        "_p: int = 1",
        "scratch _s: like output; view _v = output; let _l = 1; step _t(_to: peer) {}",
    );
    assert_eq!(none, NONE);
}

#[test]
fn what_a_rank_never_comes_to_is_a_use() {
    assert_eq!(body("", "let l = 1; if false { for i in 0..l {} }"), NONE);
    assert_eq!(body("p: int = 2", "require p > 1, \"two\";"), NONE);
    assert_eq!(body("p: int = 2, q: int = p", "require q > 1, \"two\";"), NONE);
    assert_eq!(body("p: int = 2, q: int = p", ""), ["W0002 q"]);
    assert_eq!(warned("#[budget(streams = p)] algorithm A(p: int = 2) -> AllReduce {}"), NONE);
    assert_eq!(body("p: int = 2", "fifo like output, credits = p;"), ["W0006 fifo"]);
    assert_eq!(body("p: int = 2", "scratch s: p like output;"), ["W0001 s"]);
}

#[test]
fn what_only_an_unused_name_uses_is_used() {
    assert_eq!(body("", "let a = 1; let b = a; let c = b;"), ["W0003 c"]);
    assert_eq!(body("", "view v = output; view w = v;"), ["W0004 w"]);
    assert_eq!(body("", "let a = 1; step s() { require a > 0, \"\"; }"), ["W0005 s"]);
    assert_eq!(body("", "step s() {} step t() { s(); }"), ["W0005 t"]);
    assert_eq!(body("", "step s() {} s();"), NONE);
}

#[test]
fn loops_need_not_look_at_their_variable() {
    assert_eq!(body("", "for i in 0..2 {} for i in [1, 2] {} parallel d in 0..2 {}"), NONE);
    assert_eq!(body("", "parallel d in 0..2 { let a = d; }"), ["W0003 a"]);
}

#[test]
fn one_name_in_two_blocks_is_two_things() {
    let two = "if rank == 0 { let a = 1; } else { let a = 2; require a > 0, \"\"; }";
    assert_eq!(body("", two), ["W0003 a"]);
    assert_eq!(
        body("", "for i in 0..2 { view v = output; } for i in 0..2 { view v = input; }").len(),
        2
    );
    assert_eq!(body("", "let g = [0]; within g { let a = 1; }"), ["W0003 a"]);
    assert_eq!(body("", "let a = 1; within [0] { require a > 0, \"\"; }"), NONE);
    // The parameter of a step differs in name from other things; two steps may share it.
    let steps = "step s(n: int) { require n > 0, \"\"; } step t(n: int) {} s(1); t(2);";
    assert_eq!(body("", steps), ["W0002 n"]);
}

#[test]
fn scratch_is_for_reading() {
    let with = |ops: &str| body("", &format!("scratch s: like output; {ops}"));
    assert_eq!(with("copy(local.input, local.s);"), ["W0001 s"]);
    assert_eq!(with("copy(local.input, [local.output, local.s]);"), ["W0001 s"]);
    assert_eq!(with("copy(local.input, local.s.split(2)[0]);"), ["W0001 s"]);
    assert_eq!(with("copy(local.input, local.s); copy(local.s, local.output);"), NONE);
    assert_eq!(with("copy(peer(0).s, local.output);"), NONE);
    assert_eq!(with("reduce(local.input, local.s);"), NONE);
    assert_eq!(with("reduce(local.s, local.output);"), NONE);
    assert_eq!(with("fifo like output; peer(0).recv(local.s);"), ["W0001 s"]);
    assert_eq!(with("fifo like output; peer(0).recv_reduce(local.s);"), NONE);
    assert_eq!(with("fifo like output; peer(0).send(local.s);"), NONE);
    assert_eq!(with("fifo like output; peer(0).recv_copy_send(local.s, peer(1));"), ["W0001 s"]);
    assert_eq!(with("Known() on (s);"), ["W0001 s"; 0]);
    assert_eq!(with("view v = s; copy(local.input, local.v);"), NONE);
    assert_eq!(with("scratch t: like s; copy(local.t, local.output);"), NONE);
    assert_eq!(with("step w(r: region) { copy(local.input, local.r); } w(s);"), NONE);
    // The peer that is written to, and the index of the slot, are used.
    let slots = "scratch s: 2 like output; let p = peer(0); let i = 1; copy(local.input, p.s[i]);";
    assert_eq!(body("", slots), ["W0001 s"]);
    assert_eq!(body("", "view v = output; copy(local.input, local.v);"), NONE);
}

#[test]
fn the_words_of_an_escape_are_uses() {
    let escape =
        "let a = 1; if rank == 0 { let b = rust { a.get() + 2 }; require b > 0, \"\"; } let c = 1;";
    assert_eq!(body("p: int = 1", escape), ["W0002 p", "W0003 c"]);
    assert_eq!(body("p: int = rust { 1 }", ""), ["W0002 p"]);
    assert_eq!(body("p: int = 1", "require rust { format!(\"{p:?}\").len() } > 0, \"\";"), NONE);
    let budget = "#[budget(streams = rust { p.get() })] algorithm A(p: int = 2) -> AllReduce {}";
    assert_eq!(warned(budget), NONE);
    // An escape of a called algorithm sees nothing here.
    let call = "algorithm E() -> AllReduce { require rust { 1 } > 0, \"\"; } \
                algorithm A(p: int = 1) -> AllReduce { E() on (input, output); }";
    assert_eq!(warned(call), ["W0002 p"]);
}

#[test]
fn others_are_warned_of_where_they_are_checked() {
    assert_eq!(body("", "Known() on (input, output);"), NONE);
    let used = "use \"other.coll\"; algorithm A(ring: Ring) -> AllReduce {
        Other() on (input, output); Strict() on (output); }";
    assert_eq!(warned(used), ["W0002 ring"]);
    let two = "algorithm B(x: int = 1) -> AllReduce {} algorithm A() -> AllReduce { B() on (input, output); }";
    assert_eq!(warned(two), ["W0002 x"]);
    let argument = "algorithm B(x: int = 1) -> AllReduce { require x > 0, \"\"; } \
                    algorithm A(x: int = 1) -> AllReduce { B(x) on (input, output); }";
    assert_eq!(warned(argument), NONE);
    let executor = "executor E for AllReduce { topology: full_mesh(4); otherwise => Known; }";
    assert_eq!(warned(executor), NONE);
}

#[test]
fn the_attribute_of_an_algorithm_says_what_becomes_of_its_warnings() {
    let with = |attrs: &str| {
        warned(&format!(
            "{attrs} algorithm A(p: int = 1) -> AllReduce {{ let a = 1; }} algorithm B(q: int = 1) -> AllReduce {{}}"
        ))
    };
    assert_eq!(with(""), ["W0002 p", "W0003 a", "W0002 q"]);
    assert_eq!(with("#[allow(W0002)]"), ["W0003 a", "W0002 q"]);
    assert_eq!(with("#[allow(warnings)]"), ["W0002 q"]);
    assert_eq!(with("#[deny(W0003)]"), ["W0002 p", "W0003 a!", "W0002 q"]);
    assert_eq!(with("#[deny(warnings)] #[allow(W0003)]"), ["W0002 p!", "W0002 q"]);
    assert_eq!(with("#[allow(W0002, W0003)]"), ["W0002 q"]);
}

#[test]
fn errors_come_alone() {
    let source = Source::from_text("a.coll", "algorithm A(p: int = 1) -> AllReduce { let a = b; }");
    let errors = roundelay_core::compile(&source, Frontend::File).unwrap_err();
    assert_eq!(errors.iter().map(|e| e.code.as_str()).collect::<Vec<_>>(), ["E0101"]);
}

#[test]
fn units_are_written_as_their_author_would() {
    for (declared, text) in [
        ("scratch s: like output;", "1 unit of memory"),
        ("scratch s: 3 like input;", "3 * nranks units of memory"),
        ("scratch s: like input.split(nranks)[rank];", "1 unit of memory"),
        ("scratch s: 2 like output.split(4);", "1 / 2 units of memory"),
        ("view v = output.split(nranks); scratch s: 2 like v;", "2 / nranks units of memory"),
        (
            "view v = output.split(nranks); scratch s: like v[0].split(3)[0];",
            "1 / (3 * nranks) units",
        ),
        ("scratch s: nranks like input;", "nranks * nranks units of memory"),
        ("scratch s: log2(nranks) like input;", "it takes memory on every rank"),
        ("scratch s: like output.split([1, 2])[0];", "it takes memory on every rank"),
    ] {
        let text_of = format!("algorithm A() -> ReduceScatter {{ {declared} }}");
        let source = Source::from_text("a.coll", &text_of);
        let program = roundelay_core::compile(&source, Frontend::File).unwrap();
        let notes = &program.warnings.last().unwrap().notes;
        assert!(notes.iter().any(|note| note.contains(text)), "{declared}: {notes:?}");
    }
}
