//! The expansions and schedules of sources, kept as files: a change of the expansion or of a schedule shows in review.
//!
//! `UPDATE_EXPECT=1 cargo test -p roundelay-tests golden::` writes them anew.

use expect_test::expect_file;
use proc_macro2::Span;
use quote::quote;
use roundelay::{Algorithm as _, DType, Level, ReduceOp};
use roundelay_core::check::Frontend;
use roundelay_core::expansion::rust::{Origin, expand};
use roundelay_core::layout::Configured;
use roundelay_core::optimize::Goal;
use roundelay_core::prove;
use roundelay_core::schedule::text;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Callers;
use roundelay_export::cuda::{Kernel, Protocol, Spec};
use roundelay_tests::compile;
use roundelay_tests::{name, named, root, sources};

/// A source in the tests' folder.
fn source(path: &str) -> Source {
    let text = std::fs::read_to_string(root().join("tests").join(path)).expect("the source exists");
    Source::from_text(path, &text)
}

fn expansion(source: &Source) -> String {
    let program = compile(source, Frontend::File).expect("the source is right");
    let file = source.name();
    let origin = Origin {
        file: quote!(#file),
        locate: &|span| source.location(span),
        span: &|_| Span::call_site(),
    };
    let file = syn::parse2(expand(&program, &origin)).expect("the expansion is Rust");
    prettyplease::unparse(&file)
}

/// Parameters of every type, attributes, and algorithms that call others.
#[test]
fn expansions() {
    for name in ["constructs", "attributes", "composed"] {
        let golden = root().join(format!("tests/golden/{name}.rs"));
        expect_file![golden].assert_eq(&expansion(&source(&format!("data/{name}.coll"))));
    }
}

#[test]
fn the_ring_of_three() {
    // As the library names it.
    let text = std::fs::read_to_string(root().join("stdlib/library/ring.coll"))
        .expect("the source exists");
    let source = Source::from_text("ring.coll", &text);
    let mut program = compile(&source, Frontend::File).expect("the ring is right");
    let ring = Configured::new(program.algorithms.remove(0), &source);
    let schedule = ring.schedule(3).expect("three ranks make a ring");
    let printed = text::print(&schedule);
    expect_file![root().join("tests/golden/ring_of_3.schedule")].assert_eq(&printed);
    assert!(text::parse(&printed).expect("the golden reads") == schedule);
}

/// Kernels as NVRTC gets them: the author's loops, and one of them as a table.
#[test]
fn kernels() {
    for (name, golden) in [
        ("RingAllReduce", "ring"),
        ("TwistedRingAllReduce", "twisted_ring"),
        ("NcclRingAllReduce", "nccl_ring"),
        ("HierarchicalAllReduce", "hierarchical"),
    ] {
        let algorithm = named(name);
        let proved = prove(algorithm, 8).expect("8 ranks will do");
        let spec = Spec {
            element: DType::F32,
            op: ReduceOp::Sum,
            protocol: Protocol::for_algorithm(algorithm),
            vector: 16,
            callers: Callers::One,
        };
        let loops = Kernel::of_loops(algorithm, &proved, spec).expect("its loops fit a kernel");
        expect_file![kernel(golden)].assert_eq(&loops.text);
        if golden == "ring" {
            let goal = Goal { level: Level::O1, callers: Callers::One, reassociate: false };
            let ops = proved.optimize(goal).expect("what is made is proved");
            let table = Kernel::of_table(&ops, spec).expect("floats have sums");
            expect_file![kernel("ring_table")].assert_eq(&table.text);
        }
    }
}

fn kernel(golden: &str) -> std::path::PathBuf {
    root().join(format!("tests/golden/{golden}.cu"))
}

/// A wrong program expands to its items' signatures alone, beside its errors.
#[test]
fn every_source_of_the_library_has_one_struct_an_algorithm() {
    for (path, text) in sources("stdlib/library") {
        let source = Source::from_text(name(&path), &text);
        let program = compile(&source, Frontend::File).expect("the library is right");
        let rust: syn::File = syn::parse_str(&expansion(&source)).expect("printed Rust reads");
        let structs: Vec<String> = rust
            .items
            .iter()
            .filter_map(|item| match item {
                syn::Item::Struct(item) => Some(item.ident.to_string()),
                _ => None,
            })
            .collect();
        let algorithms = program.algorithms.iter().map(|a| a.name.clone());
        let executors = program.executors.iter().map(|e| e.name.clone());
        assert_eq!(structs, algorithms.chain(executors).collect::<Vec<_>>());
    }
}
