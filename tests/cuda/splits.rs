//! Fine cuts: where the product of nested splits leaves 64 bits, kernels cut where the host does. Boundaries that no 2^24
//! equal pieces have are refused.

use roundelay::Level;
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::layout::Configured;
use roundelay_core::optimize::Goal;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Callers;
use roundelay_export::cuda::{Kernel, Protocol, Spec};
use roundelay_kernels::shim::ShimJob;
use roundelay_tests::compile;

use super::runs::{algorithm, inputs, on_the_host, program, proved, spec, try_run};
use super::trace::validate;

/// Returns a program in which every rank pulls the root's input, in the pieces of a cut.
fn pulled(pieces: &[&str]) -> String {
    let pull = |piece: &&str| format!("        copy(hub.input{piece}, local.output{piece});\n");
    let pulls: String = pieces.iter().map(pull).collect();
    format!(
        "algorithm Pulled(root: Rank = 0) -> Broadcast {{
    let hub = peer(root);
    if rank == root {{
        copy(local.input, local.output);
        for d in 1..nranks {{ peer((root + d) % nranks).TxAck(); }}
        for d in 1..nranks {{ peer((root + d) % nranks).RxDataSignal(); }}
    }} else {{
        hub.RxAck();
{pulls}        hub.TxDataSignal();
    }}
}}
"
    )
}

/// Checks that the kernel's loops do the proved ops, at counts that no number divides.
fn fits(text: &str, what: &str) {
    let algorithm = &algorithm(text);
    let proved = proved(algorithm, 3).expect("three ranks will do");
    let kernel = Kernel::of_loops(algorithm, &proved, spec(algorithm))
        .unwrap_or_else(|errors| panic!("{what}: {}", errors[0].title));
    for count in [1, 61, 30_011] {
        validate(&kernel, &proved, count).unwrap_or_else(|why| panic!("{what}, {count}: {why}"));
    }
}

/// Its loops are refused, and its table is right.
fn too_fine(algorithm: &Configured, nranks: u32, what: &str) -> Diagnostic {
    let proved = proved(algorithm, nranks).expect("these ranks will do");
    let spec = Spec { protocol: Protocol::Direct, ..spec(algorithm) };
    let goal = Goal { level: Level::O0, callers: Callers::One, reassociate: false };
    let made = proved.optimize(goal).expect("what is made is proved");
    let table = Kernel::of_table(&made, spec).expect("floats have sums");
    let data = inputs(&table, 61);
    let ran = try_run(&program(&table), &ShimJob::new(&table, 61, &data));
    let outputs = ran.unwrap_or_else(|why| panic!("{what}: {why}")).outputs;
    assert!(outputs == on_the_host(&proved, &table, 61, &data), "{what}: the table's bits");
    let mut errors = Kernel::of_loops(algorithm, &proved, spec).expect_err(what);
    assert_eq!(errors[0].code, Code::NoSuchKernel, "{what}");
    errors.swap_remove(0)
}

/// In lowest terms these are coarse, and unreduced their denominators come to 2^90.
#[test]
fn nested_splits_are_cut_in_lowest_terms() {
    let half = ".split(1 << 30)[0..1 << 29]";
    let low = [half; 3].concat();
    fits(&pulled(&[&low, ".split(8)[1..8]"]), "halves of halves of halves");
    let most = ".split(1 << 40)[1 << 39..1 << 40]";
    let high = [most; 2].concat();
    fits(&pulled(&[".split(4)[0..3]", &high]), "the last quarter");
}

/// Loops count the boundaries of all regions in equal pieces of a unit.
#[test]
fn cuts_finer_than_a_kernel_can_count_are_refused() {
    let program = |parts: u32| {
        let cut = format!(".split({parts})");
        pulled(&[&format!("{cut}[0]"), &format!("{cut}[1..{parts}]")])
    };
    fits(&program(1 << 24), "2^24 pieces");
    let refused = too_fine(&algorithm(&program((1 << 24) + 1)), 3, "more than 2^24 pieces");
    assert!(refused.title.contains("no few equal pieces"), "{}", refused.title);
    assert!(refused.help.is_some_and(|help| help.contains("table")));
    let source = Source::from_text("walks.coll", include_str!("walks.coll"));
    let walks = compile(&source, Frontend::File).expect("it is right").algorithms;
    let finest = walks.into_iter().find(|algorithm| algorithm.name == "Fine").expect("it is there");
    too_fine(&Configured::new(finest, &source), 3, "cuts of cuts");
}
