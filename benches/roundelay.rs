//! What the project promises to be fast: proving, expanding, and running on few cores. `cargo bench`.

use divan::{Bencher, black_box};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use roundelay::library::{self, HalvingDoublingAllReduce, RingAllReduce};
use roundelay::{Algorithm, DType, ReduceOp, ToPlan as _, Topology};
use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::expansion::rust::{Origin, expand};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::optimize::elide::elide;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Callers;
use roundelay_core::verify::verify;
use roundelay_core::{compile, compile_with, expansion};
use roundelay_topology::bounds::Bounds;
use roundelay_topology::search;

fn main() {
    divan::main();
}

/// Build and verify, without the cache of proofs.
fn check(algorithm: &dyn Algorithm, nranks: u32) {
    let schedule = algorithm.schedule(nranks).expect("it can be laid out");
    black_box(verify(&schedule).expect("it is right"));
}

#[divan::bench(args = [8, 64, 256])]
fn check_ring(nranks: u32) {
    check(&RingAllReduce::new(), nranks);
}

#[divan::bench(sample_count = 5)]
fn check_ring_1024() {
    check(&RingAllReduce::new(), 1024);
}

#[divan::bench]
fn check_halving_doubling_1024() {
    check(&HalvingDoublingAllReduce::new(), 1024);
}

/// Every rank signals with every other.
#[divan::bench(sample_count = 10)]
fn check_mesh_256(bencher: Bencher<'_, '_>) {
    let source = Source::from_text("mesh.coll", include_str!("../stdlib/library/mesh.coll"));
    let mut program = compile(&source, Frontend::File).expect("the mesh is right");
    let mesh = Configured::new(program.algorithms.remove(0), &source);
    bencher.bench_local(|| check(&mesh, 256));
}

/// Every algorithm of the library for every rank count that it does not refuse.
#[divan::bench(sample_count = 3)]
fn check_library_2_to_64() {
    for (file, text) in library::SOURCES {
        let source = Source::from_text(*file, text);
        let dependencies = Dependencies::library(library::SOURCES);
        let program =
            compile_with(&source, Frontend::File, &dependencies).expect("the library is right");
        for algorithm in program.algorithms {
            let algorithm = Configured::new(algorithm, &source);
            for schedule in (2..=64).filter_map(|nranks| algorithm.schedule(nranks).ok()) {
                black_box(verify(&schedule).expect("it is right"));
            }
        }
    }
}

/// Which signals are needed, of a schedule that was proved.
#[divan::bench(args = [8, 64, 256])]
fn elide_ring(bencher: Bencher<'_, '_>, nranks: u32) {
    let schedule = RingAllReduce::new().schedule(nranks).expect("it can be laid out");
    bencher.bench_local(|| {
        let few = elide(&schedule, Callers::Each).expect("it is right");
        assert_eq!(few.between_ranks().0, (nranks * (2 * nranks - 1)) as usize);
    });
}

/// What `collective!` does with the ring, between its tokens and the expansion.
#[divan::bench]
fn expand_ring(bencher: Bencher<'_, '_>) {
    let (_, text) = library::SOURCES[0];
    let tokens: TokenStream = text.parse().expect("the ring is Rust tokens");
    bencher.with_inputs(|| tokens.clone()).bench_local_values(|tokens| {
        let (source, _) = Source::from_macro("the macro's body", tokens);
        let program = compile(&source, Frontend::Macro).expect("the ring is right");
        assert!(expansion::prove(&program, &source).errors.is_empty());
        let origin = Origin {
            file: quote!(::core::file!()),
            locate: &|span| source.location(span),
            span: &|_| Span::call_site(),
        };
        black_box(expand(&program, &origin));
    });
}

/// Every bound, and the rounds.
#[divan::bench(args = [
    "full_mesh(8) without (0, 1)",
    "spine_leaf(8, 8, 4, 4)",
    "spine_leaf(32, 32, 8, 2)",
    "full_mesh(256)",
    "torus([32, 32])",
])]
fn bounds(bencher: Bencher<'_, '_>, topology: &str) {
    let topology: Topology = topology.parse().expect("a topology");
    bencher.bench_local(|| Bounds::new(&topology, topology.nranks(), RankId(0)).expect("it fits"));
}

/// A ring around what is missing: two dozen ranks of which two can hardly be left, a large mesh, a torus.
#[divan::bench(args = [
    "groups([12, 12]) without (0, 1) without (5, 7)",
    "full_mesh(1024) without (0, 1) without (3, 4) without (7, 9)",
    "torus([32, 32])",
])]
fn ring_around(bencher: Bencher<'_, '_>, topology: &str) {
    let topology: Topology = topology.parse().expect("a topology");
    bencher
        .bench_local(|| search::ring_around(&topology, topology.nranks()).expect("there is one"));
}

/// Laying out the widest tree of switches that a topology may be.
#[divan::bench]
fn lay_out_spine_leaf() -> Topology {
    "spine_leaf(64, 64, 32)".parse().expect("a topology")
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Ranks, and bytes a rank.
#[divan::bench(args = [(8, MIB), (64, 64 * KIB)])]
fn run_ring(bencher: Bencher<'_, '_>, (nranks, bytes): (usize, usize)) {
    let count = bytes / size_of::<f32>();
    let plan = RingAllReduce::new()
        .plan(nranks as u32, count as u64, DType::F32, ReduceOp::Sum)
        .expect("the ring is right");
    let inputs = vec![vec![1.0_f32; count]; nranks];
    let mut outputs = vec![vec![0.0_f32; count]; nranks];
    let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    let mut outputs: Vec<&mut [f32]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    bencher
        .counter(divan::counter::BytesCount::new(bytes))
        .bench_local(|| plan.run(&inputs, &mut outputs).expect("the run ends"));
}
