//! Fine cuts: where the product of nested splits leaves 64 bits, kernels cut where the host does, or are refused.

use roundelay::Level;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::optimize::Goal;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Callers;
use roundelay_export::cuda::{Kernel, Protocol, Spec};
use roundelay_kernels::shim::ShimJob;

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

/// An AllReduce, then an AllGather of its result on a region of 2^30 - 1 parts in 2^30, each rank's block in two pieces.
fn called(parts: &str, first: &str) -> String {
    format!(
        "algorithm Again() -> AllReduce {{
    view most = output.split(1 << 30)[1..1 << 30];
    MeshAllReduce() on (input, output);
    Blocks() on (most, most);
}}

algorithm Blocks() -> AllGather {{
    view block = output.split(nranks);
    view low = input.split({parts})[0..{first}];
    view high = input.split({parts})[{first}..{parts}];

    copy(local.input, local.block[rank]);
    for d in 1..nranks {{
        let from = peer((rank + d) % nranks);
        let to = peer((rank - d) % nranks);
        to.TxAck();
        from.RxAck();
        copy(from.low, local.block[from.rank].split({parts})[0..{first}]);
        copy(from.high, local.block[from.rank].split({parts})[{first}..{parts}]);
        from.TxDataSignal();
        to.RxDataSignal();
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
fn too_fine(text: &str, what: &str) -> Diagnostic {
    let algorithm = &algorithm(text);
    let proved = proved(algorithm, 3).expect("three ranks will do");
    let spec = Spec { protocol: Protocol::Direct, ..spec(algorithm) };
    let goal = Goal { level: Level::O0, callers: Callers::One, reassociate: false };
    let made = proved.optimized(goal).expect("what is made is proved");
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
    fits(&called("1 << 20", "524289"), "blocks of a call");
}

/// Ends of a region are counted in one fraction, to 2^62.
#[test]
fn cuts_finer_than_a_kernel_can_count_are_refused() {
    let most = ".split(1 << 31)[1..1 << 31]";
    for (at_the_border, beyond) in [
        (".split(1 << 31)", ".split((1 << 31) + 1)"),
        (".split([1 << 30, (1 << 30) - 7, 7])", ".split([1 << 30, (1 << 30) - 7, 8])"),
    ] {
        let last = if at_the_border.contains('[') { "2" } else { "1 << 30" };
        let program = |cut: &str| {
            let whole = format!("{most}{cut}");
            let all = if cut.contains('[') { "3" } else { &cut[7..cut.len() - 1] };
            let (low, high) = (format!("{whole}[0..{last}]"), format!("{whole}[{last}..{all}]"));
            pulled(&[".split(1 << 31)[0]", &low, &high])
        };
        fits(&program(at_the_border), at_the_border);
        let refused = too_fine(&program(beyond), beyond);
        assert!(refused.title.contains("too fine"), "{}", refused.title);
        let text = program(beyond);
        let shown = &text[Source::from_text("splits.coll", &text).range(refused.primary)];
        assert_eq!(shown, format!("hub.input{most}{beyond}"));
        assert!(refused.help.is_some_and(|help| help.contains("table")), "{beyond}");
    }
    let refused = too_fine(&called("1 << 40", "1 << 39"), "blocks of a call");
    assert!(refused.label.contains("Blocks runs here"), "{refused:?}");
}
