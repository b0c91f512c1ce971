//! Random input: right programs stay equal through print and parse, wrong ones give an error, and no input causes a
//! panic.

use proptest::prelude::*;
use roundelay::Algorithm as _;
use roundelay_core::check::Frontend;
use roundelay_core::layout::{Configured, Limits};
use roundelay_core::prove_source;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::{parse, printer};
use roundelay_tests::{compile, takes_all};

/// Names that a random program may use where it stands: how many of each kind are declared.
#[derive(Clone, Copy, Default)]
struct Scope {
    ints: usize,
    peers: usize,
}

/// An `int`, seldom out of range for its use.
fn int(scope: Scope, depth: u32) -> BoxedStrategy<String> {
    let mut leaves = vec![
        (0..6_i64).prop_map(|i| i.to_string()).boxed(),
        Just("rank".to_owned()).boxed(),
        Just("nranks".to_owned()).boxed(),
        Just("ring.position".to_owned()).boxed(),
        Just("ring.position_of(nranks - 1)".to_owned()).boxed(),
        Just("len(block)".to_owned()).boxed(),
    ];
    if scope.ints > 0 {
        leaves.push((0..scope.ints).prop_map(|i| format!("i{i}")).boxed());
    }
    if scope.peers > 0 {
        leaves.push((0..scope.peers).prop_map(|i| format!("p{i}.rank")).boxed());
    }
    let leaf = proptest::strategy::Union::new(leaves).boxed();
    if depth == 0 {
        return leaf;
    }
    let sub = || int(scope, depth - 1);
    let operator = prop::sample::select(&["+", "-", "*", "&", "|", "^"][..]);
    prop_oneof![
        3 => leaf,
        3 => (sub(), operator, sub()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (sub(), sub()).prop_map(|(a, b)| format!("({a}) * ({b})")),
        1 => (sub(), 1..7_i64).prop_map(|(a, n)| format!("({a}) % {n}")),
        1 => sub().prop_map(|a| format!("-({a})")),
        1 => (sub(), sub()).prop_map(|(a, b)| format!("max({a}, abs({b}))")),
        1 => (boolean(scope, depth - 1), sub(), sub())
            .prop_map(|(c, a, b)| format!("(if {c} {{ {a} }} else {{ {b} }})")),
        1 => (sub(), sub(), sub()).prop_map(|(a, b, c)| format!("[{a}, {b}, {c}][(rank + 1) % 3]")),
    ]
    .boxed()
}

fn boolean(scope: Scope, depth: u32) -> BoxedStrategy<String> {
    let comparison = prop::sample::select(&["==", "!=", "<", "<=", ">", ">="][..]);
    let leaf = (int(scope, depth), comparison, int(scope, 0))
        .prop_map(|(a, op, b)| format!("({a}) {op} ({b})"));
    let pair = (leaf.clone(), prop::sample::select(&["&&", "||"][..]), leaf.clone())
        .prop_map(|(a, op, b)| format!("({a} {op} !({b}))"));
    prop_oneof![3 => leaf, 1 => pair].boxed()
}

fn peer(scope: Scope) -> BoxedStrategy<String> {
    let made = int(scope, 1).prop_map(|i| format!("peer(({i}) % nranks)"));
    let mut all = vec![
        made.boxed(),
        Just("ring.left".to_owned()).boxed(),
        Just("ring.right".to_owned()).boxed(),
    ];
    if scope.peers > 0 {
        all.push((0..scope.peers).prop_map(|i| format!("p{i}")).boxed());
    }
    proptest::strategy::Union::new(all).boxed()
}

/// Two regions of one length, without their ranks.
fn regions(scope: Scope) -> BoxedStrategy<(String, String)> {
    (int(scope, 1), int(scope, 1), 0..5)
        .prop_map(|(i, j, form)| match form {
            0 => ("output".to_owned(), "inbox".to_owned()),
            1 => (format!("block[({i}) % nranks]"), format!("block[({j}) % nranks]")),
            2 => (format!("block[({i}) % nranks]"), format!("slot[({j}) % 2]")),
            3 => ("output.split(4)[1..3]".to_owned(), "inbox.split([1, 2, 1])[1]".to_owned()),
            _ => (
                format!("inbox.block(({i}) % nranks).split(2)[1]"),
                format!("output.block(({i}) % nranks).split(2)[1]"),
            ),
        })
        .boxed()
}

/// Some statements; the numbers of their declarations go on from `scope`.
fn statements(scope: Scope, depth: u32) -> BoxedStrategy<String> {
    (0..4_usize).prop_flat_map(move |left| sequence(scope, depth, left)).boxed()
}

fn sequence(scope: Scope, depth: u32, left: usize) -> BoxedStrategy<String> {
    if left == 0 {
        return Just(String::new()).boxed();
    }
    let then = move |scope: Scope| sequence(scope, depth, left - 1);
    let Scope { ints, peers } = scope;
    let inner = Scope { ints: ints + 1, peers };
    let nested = depth.saturating_sub(1);
    let mut all = vec![
        (
            2,
            (int(scope, 2), then(inner))
                .prop_map(move |(e, rest)| format!("let i{ints} = {e}; {rest}"))
                .boxed(),
        ),
        (
            2,
            (peer(scope), then(Scope { ints, peers: peers + 1 }))
                .prop_map(move |(p, rest)| format!("let p{peers} = {p}; {rest}"))
                .boxed(),
        ),
        (
            2,
            (regions(scope), peer(scope), 0..3, then(scope))
                .prop_map(|((a, b), p, form, rest)| match form {
                    0 => format!("copy({p}.{a}, local.{b}); {rest}"),
                    1 => format!("copy(local.{a}, {p}.{b}); {rest}"),
                    _ => format!("reduce({p}.{a}, local.{b}); {rest}"),
                })
                .boxed(),
        ),
        (
            2,
            (peer(scope), peer(scope), any::<bool>(), then(scope))
                .prop_map(|(to, from, ack, rest)| {
                    if ack {
                        format!("{to}.TxAck(); {from}.RxAck(); {rest}")
                    } else {
                        format!("{to}.TxDataSignal(); {from}.RxDataSignal(); {rest}")
                    }
                })
                .boxed(),
        ),
    ];
    if depth > 0 {
        all.push((
            2,
            (boolean(scope, 1), statements(scope, nested), statements(scope, nested), then(scope))
                .prop_map(|(c, a, b, rest)| format!("if {c} {{ {a} }} else {{ {b} }} {rest}"))
                .boxed(),
        ));
        all.push((
            2,
            (0..3, 0..4, statements(inner, nested), then(inner))
                .prop_map(move |(lo, hi, body, rest)| {
                    format!("for i{ints} in {lo}..{hi} {{ {body} }} let i{ints} = {lo}; {rest}")
                })
                .boxed(),
        ));
        all.push((
            1,
            (1..3, statements(inner, nested), then(inner))
                .prop_map(move |(hi, body, rest)| {
                    format!("parallel i{ints} in 0..{hi} {{ {body} }} let i{ints} = {hi}; {rest}")
                })
                .boxed(),
        ));
    }
    proptest::strategy::Union::new_weighted(all).boxed()
}

/// A program that passes the checks, without a meaning.
fn program() -> impl Strategy<Value = String> {
    statements(Scope::default(), 2).prop_map(|body| {
        format!(
            "algorithm Random(ring: Ring) -> AllReduce {{
                view block = output.split(nranks);
                scratch inbox: like output;
                scratch slot: 2 like block;
                copy(local.input, local.output);
                {body}
            }}"
        )
    })
}

fn compiled(text: &str) -> Configured {
    let source = Source::from_text("random", text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|errors| {
        let reports: Vec<_> = errors.iter().map(|e| e.report(&source)).collect();
        panic!("{}\n{text}", reports.join("\n"))
    });
    Configured::new(program.algorithms.into_iter().next().expect("one algorithm"), &source)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if takes_all() { 200 } else { 50 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// A program and its printed form give equal schedules, or equal problems; proofs end.
    #[test]
    fn programs_mean_the_same_after_printing(text in program(), nranks in 1..6_u32) {
        let source = Source::from_text("random", &text);
        let printed = printer::print(&parse(&source).0);
        let (first, second) = (compiled(&text), compiled(&printed));
        let limits = Limits::EXPANSION;
        let codes = |r: Result<_, Vec<roundelay_core::diagnostics::Finding>>| {
            r.map_err(|all| all.into_iter().map(|f| (f.code, f.at, f.title)).collect::<Vec<_>>())
        };
        let mut left = codes(first.schedule_within(nranks, limits));
        let mut right = codes(second.schedule_within(nranks, limits));
        for schedule in [&mut left, &mut right].into_iter().flatten() {
            schedule.locations.clear(); // places move when a text is printed
        }
        prop_assert!(left == right, "{text}\n{printed}");
        // The proof returns, with any result.
        if let Err(errors) = prove_source(&first, nranks) {
            prop_assert!(!errors.is_empty());
            for error in errors {
                let shown = roundelay_core::render::render(&error, &source, false);
                prop_assert!(shown.contains(error.code.as_str()));
            }
        }
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survives(&Source::from_bytes("bytes", &bytes));
    }

    #[test]
    fn token_soup_never_panics(words in prop::collection::vec(word(), 0..120)) {
        survives(&Source::from_text("soup", &words.join(" ")));
        let body = format!("algorithm A(ring: Ring) -> AllReduce {{ {} }}", words.join(" "));
        survives(&Source::from_text("soup", &body));
    }

    /// One word of a right program replaced, dropped or doubled: most of these get through the parser.
    #[test]
    fn damaged_programs_never_panic(text in program(), at in any::<prop::sample::Index>(), by in word(), form in 0..3) {
        let source = Source::from_text("whole", &text);
        let places: Vec<_> = (0..source.tokens().len() as u32)
            .map(|i| source.range(roundelay_core::source::Span { lo: i, hi: i + 1 }))
            .collect();
        let place = places[at.index(places.len())].clone();
        let old = &text[place.clone()];
        let new = match form { 0 => by, 1 => String::new(), _ => format!("{old} {old}") };
        let damaged = format!("{}{new}{}", &text[..place.start], &text[place.end..]);
        survives(&Source::from_text("damaged", &damaged));
    }
}

/// Compiles, lays out and proves as far as it goes.
fn survives(source: &Source) {
    let Ok(program) = compile(source, Frontend::File) else { return };
    for algorithm in program.algorithms {
        let algorithm = Configured::new(algorithm, source);
        for nranks in [1, 2, 3] {
            if algorithm.schedule_within(nranks, Limits::EXPANSION).is_ok() {
                let _ = prove_source(&algorithm, nranks);
            }
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "algorithm",
        "pub",
        "let",
        "view",
        "for",
        "in",
        "if",
        "else",
        "require",
        "copy",
        "reduce",
        "parallel",
        "scratch",
        "step",
        "like",
        "rust",
        "true",
        "false",
        "rank",
        "nranks",
        "local",
        "input",
        "output",
        "ring",
        "left",
        "right",
        "position",
        "split",
        "block",
        "peer",
        "TxAck",
        "RxAck",
        "TxDataSignal",
        "RxDataSignal",
        "i0",
        "p0",
        "int",
        "bool",
        "Rank",
        "Ring",
        "region",
        "AllReduce",
        "Broadcast",
        "0",
        "1",
        "2",
        "4KiB",
        "9223372036854775807",
        "\"why\"",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        ":",
        "::",
        ".",
        "..",
        "->",
        "=",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "&&",
        "||",
        "!",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<<",
        ">>",
        "&",
        "|",
        "^",
        "#",
        "'",
        "\"",
        "//",
        "/*",
        "\n",
        "é",
    ];
    prop::sample::select(WORDS).prop_map(str::to_owned)
}
