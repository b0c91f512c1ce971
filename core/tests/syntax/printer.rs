use expect_test::expect_file;
use proptest::prelude::*;
use roundelay_core::source::Span;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::ast::{
    Algorithm, Attr, AttrArg, AttrValue, BinOp, Expr, ExprKind, File, Iter, Name, Param, Stmt,
    StmtKind, TypeName, UnOp,
};
use roundelay_core::syntax::printer::{print, print_with_trivia};

use super::{SAMPLES, parse_ok, shape};

fn comments(source: &Source) -> Vec<String> {
    let mut all: Vec<String> = source.comments().iter().map(|c| c.text.clone()).collect();
    all.sort();
    all
}

/// Formats a text, and asserts the properties of any formatting.
fn format(text: &str) -> String {
    let (source, file) = parse_ok(text);
    let formatted = print_with_trivia(&file, &source);
    let (again, same) = parse_ok(&formatted);
    assert_eq!(comments(&source), comments(&again), "{formatted}");
    assert_eq!(shape(&file), shape(&same), "{formatted}");
    assert_eq!(print_with_trivia(&same, &again), formatted, "not idempotent");
    formatted
}

#[test]
fn samples_are_canonical_but_for_one() {
    for (name, text) in SAMPLES {
        let formatted = format(text);
        if *name == "everything.coll" {
            expect_file!["../data/everything.formatted"].assert_eq(&formatted);
        } else {
            assert_eq!(formatted, *text, "{name}");
        }
    }
}

#[test]
fn comments_survive_anywhere() {
    let (source, _) = parse_ok(SAMPLES[1].1);
    let text = source.text().unwrap();
    for i in 0..=source.tokens().len() {
        let at = source.range(Span::new(i, i)).start;
        for comment in ["/* a */ /* b */", "// a\n\n// b\n", "\n\n/* a\n b */\n\n"] {
            format(&format!("{} {comment} {}", &text[..at], &text[at..]));
        }
    }
}

fn name(text: String) -> Name {
    Name { text, span: Span::default() }
}

fn expr_of(kind: ExprKind) -> Expr {
    Expr { kind: Box::new(kind), span: Span::default(), depth: 0 }
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "step", "view", "scratch", "parallel", "rank", "x_1"])
        .prop_map(str::to_owned)
}

fn any_expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        (0..=i64::MAX).prop_map(ExprKind::Int),
        any::<bool>().prop_map(ExprKind::Bool),
        word().prop_map(ExprKind::Name),
        Just(ExprKind::Rust("f(x, 1)".to_owned())),
        Just(ExprKind::List(Vec::new())),
    ]
    .prop_map(expr_of);
    leaf.prop_recursive(5, 40, 4, |inner| {
        let args = prop::collection::vec(inner.clone(), 0..3);
        let op = prop::sample::select(BinOp::ALL.to_vec());
        let e = inner.clone();
        prop_oneof![
            args.clone().prop_map(ExprKind::List),
            (any::<bool>(), e.clone()).prop_map(|(neg, a)| {
                ExprKind::Unary(if neg { UnOp::Neg } else { UnOp::Not }, a)
            }),
            (op, e.clone(), e.clone()).prop_map(|(op, a, b)| ExprKind::Binary(op, a, b)),
            (e.clone(), e.clone(), e.clone()).prop_map(|(c, a, b)| ExprKind::If(c, a, b)),
            (prop::collection::vec(word().prop_map(name), 1..3), args.clone())
                .prop_map(|(path, args)| ExprKind::Call(path, args)),
            (e.clone(), word(), args).prop_map(|(a, n, args)| ExprKind::Method(a, name(n), args)),
            (e.clone(), word()).prop_map(|(a, n)| ExprKind::Field(a, name(n))),
            (e.clone(), e.clone()).prop_map(|(a, i)| ExprKind::Index(a, i)),
            (e.clone(), e.clone(), e).prop_map(|(a, i, j)| ExprKind::Slice(a, i, j)),
        ]
        .prop_map(expr_of)
    })
}

fn any_type() -> impl Strategy<Value = TypeName> {
    (word(), any::<bool>()).prop_map(|(text, list)| TypeName { text, list, span: Span::default() })
}

fn any_param(defaults: bool) -> impl Strategy<Value = Param> {
    (word(), any_type(), prop::option::of(any_expr())).prop_map(move |(n, ty, default)| Param {
        name: name(n),
        ty,
        default: default.filter(|_| defaults),
    })
}

fn any_iter() -> impl Strategy<Value = Iter> {
    (any_expr(), prop::option::of(any_expr())).prop_map(|(a, b)| match b {
        Some(b) => Iter::Range(a, b),
        None => Iter::List(a),
    })
}

fn any_body() -> impl Strategy<Value = Vec<Stmt>> {
    let leaf = prop_oneof![
        (word(), prop::option::of(any_type()), any_expr())
            .prop_map(|(n, ty, value)| StmtKind::Let { name: name(n), ty, value }),
        (word(), any_expr()).prop_map(|(n, value)| StmtKind::View { name: name(n), value }),
        (any_expr(), any::<String>())
            .prop_map(|(condition, why)| StmtKind::Require { condition, why }),
        (word(), prop::option::of(any_expr()), any_expr(), prop::option::of(word())).prop_map(
            |(n, count, like, wide)| StmtKind::Scratch {
                name: name(n),
                count,
                like,
                wide: wide.map(name)
            }
        ),
        any_expr().prop_map(StmtKind::Expr),
    ]
    .prop_map(|kind| vec![Stmt { kind, span: Span::default() }]);
    leaf.prop_recursive(3, 20, 4, |inner| {
        let body = prop::collection::vec(inner, 0..3).prop_map(|b| b.concat());
        let arms = prop::collection::vec((any_expr(), body.clone()), 1..3);
        prop_oneof![
            (word(), any_iter(), body.clone()).prop_map(|(v, iter, body)| StmtKind::For {
                var: name(v),
                iter,
                body
            }),
            (word(), any_iter(), body.clone()).prop_map(|(v, iter, body)| StmtKind::Parallel {
                var: name(v),
                iter,
                body
            }),
            (arms, prop::option::of(body.clone()))
                .prop_map(|(arms, otherwise)| StmtKind::If { arms, otherwise }),
            (word(), prop::collection::vec(any_param(false), 0..3), body)
                .prop_map(|(n, params, body)| StmtKind::Step { name: name(n), params, body }),
        ]
        .prop_map(|kind| vec![Stmt { kind, span: Span::default() }])
    })
}

fn any_attr() -> impl Strategy<Value = Attr> {
    let value =
        prop_oneof![
            any_expr().prop_map(AttrValue::Expr),
            (any_expr(), any_expr(), any::<bool>())
                .prop_map(|(lo, hi, inclusive)| AttrValue::Range { lo, hi, inclusive }),
            "[a-z \"\\\\]{0,9}".prop_map(AttrValue::Text),
        ];
    let arg = (prop::option::of(word()), value).prop_map(|(n, value)| AttrArg {
        name: n.map(name),
        value,
        span: Span::default(),
    });
    (word(), prop::collection::vec(arg, 0..3)).prop_map(|(n, args)| Attr {
        name: name(n),
        args,
        span: Span::default(),
    })
}

fn any_algorithm() -> impl Strategy<Value = Algorithm> {
    (
        prop::collection::vec("( [a-z]{1,9}){0,3}", 0..3),
        prop::collection::vec(any_attr(), 0..2),
        any::<bool>(),
        word(),
        prop::collection::vec(any_param(true), 0..4),
        prop::collection::vec(any_body(), 0..4),
    )
        .prop_map(|(docs, attrs, public, n, params, body)| Algorithm {
            docs,
            attrs,
            public,
            name: name(n.clone()),
            params,
            collective: name(n),
            body: body.concat(),
            span: Span::default(),
        })
}

fn without_depth(shape: &str) -> String {
    let digits = |c: char| c.is_ascii_digit();
    let mut parts = shape.split("depth: ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(digits))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn print_then_parse_is_the_identity(algorithms in prop::collection::vec(any_algorithm(), 1..3)) {
        let file = File { algorithms, ..File::default() };
        let text = print(&file);
        let (source, parsed) = parse_ok(&text);
        prop_assert_eq!(without_depth(&shape(&file)), without_depth(&shape(&parsed)), "{}", text);
        prop_assert_eq!(&print(&parsed), &text);
        prop_assert_eq!(&print_with_trivia(&parsed, &source), &text);
    }
}
