//! The prelude's walk where the library does not lead it: nested streams, numbers of other groups, calls in calls,
//! slots of any shape, fifos inside fifos; each against its schedule and the host's bits.

use std::fmt::Write as _;

use roundelay::Algorithm as _;
use roundelay_core::check::Frontend;
use roundelay_core::layout::Configured;
use roundelay_core::syntax::Source;
use roundelay_export::cuda::{Protocol, Spec};
use roundelay_tests::{compile, takes_all};

use super::runs::{loops, proved, spec};
use super::trace::validate;

fn programs() -> Vec<Configured> {
    let source = Source::from_text("walks.coll", include_str!("walks.coll"));
    let said = |errors: Vec<roundelay_core::diagnostics::Diagnostic>| -> String {
        errors.iter().map(|error| error.report(&source)).collect()
    };
    let program =
        compile(&source, Frontend::File).unwrap_or_else(|errors| panic!("{}", said(errors)));
    let public = program.algorithms.into_iter().filter(|algorithm| algorithm.declaration.public);
    // Cuts that are too fine for a kernel are in `splits`.
    let public = public.filter(|algorithm| algorithm.name != "Fine");
    public.map(|algorithm| Configured::new(algorithm, &source)).collect()
}

/// A usual run has one rank count of each program, and `cargo xtask test --all` has all.
#[test]
fn the_corners_of_the_language_do_what_was_proved() {
    let (mut kernels, mut wrong) = (0, String::new());
    for algorithm in &programs() {
        match validated(algorithm) {
            Ok(validated) => kernels += validated,
            Err(why) => _ = writeln!(wrong, "{}, {why}", algorithm.name()),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(kernels > if takes_all() { 50 } else { 15 }, "{kernels} kernels");
}

/// Every operator inside every other, on its left and on its right, as the piece that is copied: parentheses that the
/// text needs are there.
#[test]
fn operators_nest_as_the_author_nested_them() {
    const OPS: [&str; 10] = ["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"];
    const TRUTHS: [&str; 8] = ["==", "!=", "<", "<=", ">", ">=", "&&", "||"];
    let mut nested = Vec::new();
    for outer in OPS {
        for inner in OPS {
            nested.push(format!("(a {inner} b) {outer} c"));
            // 7 >> 3 is no divisor.
            if !(matches!(outer, "/" | "%") && inner == ">>") {
                nested.push(format!("a {outer} (b {inner} c)"));
            }
        }
        nested.push(format!("-(a {outer} b) - -c"));
        nested.push(format!("!(a {outer} b) - !c"));
        nested.push(format!("(if a > 2 {{ b }} else {{ c }}) {outer} b"));
        for truth in &TRUTHS[..6] {
            nested.push(format!("if (a {outer} b) {truth} (c {outer} a) {{ 1 }} else {{ 2 }}"));
        }
    }
    for outer in &TRUTHS[6..] {
        for inner in TRUTHS {
            let (x, y) = if inner.len() == 2 && "&&||".contains(inner) {
                ("a > 1", "b < a")
            } else {
                ("a", "2")
            };
            let all = format!("!(a == 3) {outer} ({x} {inner} {y})");
            nested.push(format!("if {all} {{ 1 }} else {{ 2 }}"));
            nested.push(format!("if ({x} {inner} {y}) {outer} a != 2 {{ 1 }} else {{ 2 }}"));
        }
    }
    let copy =
        |it: String| format!("    copy(local.input.split(61)[({it}) % 61], local.sink[0]);\n");
    let mut copies = nested.into_iter().map(copy).collect::<Vec<_>>().concat();
    for end in ["a & b", "a ^ b", "a | b", "if a > 2 { b } else { c }"] {
        let copy = copy("i".to_owned());
        writeln!(copies, "    for i in 0..({end}) {{\n    {copy}    }}").expect("a string grows");
    }
    let text = format!(
        "pub algorithm Nested(b: int = 7, c: int = 3) -> AllReduce {{
    let a = rank + 1;
    scratch sink: 1 like input.split(61);
    MeshAllReduce() on (input, output);
{copies}}}
"
    );
    let source = Source::from_text("nested.coll", &text);
    let program = compile(&source, Frontend::File)
        .unwrap_or_else(|errors| panic!("{}", errors[0].report(&source)));
    let nested = Configured::new(program.algorithms.into_iter().next().expect("one"), &source);
    let proved = proved(&nested, 3).expect("three ranks will do");
    let kernel = loops(&nested, &proved, spec(&nested));
    validate(&kernel, &proved, 30_011).unwrap_or_else(|why| panic!("{why}"));
}

roundelay::collective! {
    /// The partner comes from Rust.
    algorithm PartnerOfRust() -> AllGather {
        view block = output.split(nranks);
        copy(local.input, local.block[rank]);
        for d in 1..nranks {
            let from = peer(rust { (rank.get() + d.get()) % nranks.get() });
            let to = peer((rank - d) % nranks);
            to.TxAck();
            from.RxAck();
            copy(from.input, local.block[from.rank]);
            from.TxDataSignal();
            to.RxDataSignal();
        }
    }
}

/// A value that only the compiled crate computes is in the ops of the schedule, in which the kernel's loops are found.
#[test]
fn programs_with_rust_have_kernels_with_loops() {
    use roundelay::cuda::OnDevice as _;

    let algorithm = PartnerOfRust::new();
    let proved = roundelay_core::prove(&algorithm, 4).expect("four ranks will do");
    let kernel = algorithm.kernel(4, roundelay::DType::F32, roundelay::ReduceOp::Sum);
    let kernel = kernel.unwrap_or_else(|error| panic!("{error}"));
    assert!(kernel.text.contains("for (num"), "{}", kernel.text);
    validate(&kernel, &proved, 30_011).unwrap_or_else(|why| panic!("{why}"));
}

/// Returns the number of an algorithm's kernels that do the proved ops, or the first that does not.
fn validated(algorithm: &Configured) -> Result<u32, String> {
    let fits = spec(algorithm);
    let mut kernels = 0;
    let (usual, most) = if takes_all() { (usize::MAX, 30_011 * 9) } else { (1, 30_011) };
    // No program refuses all of the first three.
    let ranks = [5, 3, 9, 1, 2, 8].into_iter();
    let admitted = ranks.filter_map(|nranks| Some((nranks, proved(algorithm, nranks)?)));
    for (nranks, proved) in admitted.take(usual) {
        for protocol in Protocol::of_loops(algorithm) {
            let kernel = loops(algorithm, &proved, Spec { protocol: *protocol, ..fits });
            for count in [1, 61, most] {
                validate(&kernel, &proved, count)
                    .map_err(|why| format!("{protocol:?}, {nranks} ranks, count {count}: {why}"))?;
            }
            kernels += 1;
        }
    }
    Ok(kernels)
}
