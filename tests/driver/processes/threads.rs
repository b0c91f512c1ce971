//! Ranks that are threads of one process and map each other's memory as processes do.

use roundelay::{Algorithm as _, DType, ReduceOp};
use roundelay_core::prove_source;
use roundelay_export::cuda::Form;
use roundelay_kernels::cuda::CudaRank;
use roundelay_tests::{kinds, taken};

use super::super::below::one_device::sums;
use super::super::rank_processes::{case, proved};
use super::{AVERAGE, Case, Data, WHY};
use crate::driver::engine::Engine as _;
use crate::driver::members::Ranks;

/// Compares the results of several launches in both modes with the host's.
fn agrees(engine: &Ranks<CudaRank>, case: &Case) {
    let name = &case.proved.schedule().algorithm;
    for in_place in [false, true] {
        let Some(expected) = case.expected(in_place) else { continue };
        let got = engine.run(case, in_place, 5);
        let got = got.unwrap_or_else(|why| panic!("{name} {}: {why}", case.name(in_place)));
        assert!(got == expected, "{name} {}", case.difference(in_place, &expected, &got));
    }
}

/// Ranks that are threads, as `gpu-check ranks` has them: what processes do takes longer to start.
#[test]
fn threads_do_as_processes_do() {
    below!(1);
    let engine = Ranks::as_processes(0, WHY).expect("a device");
    let (f16s, ints) = (DType::F16, DType::I64);
    let of = |count, dtype, op| Data { count, dtype, op };
    for (name, nranks, data, form) in [
        ("RecursiveHalvingDoublingAllReduce", 8, sums(1003), Form::Loops),
        ("DoubleBinaryTreeAllReduce", 5, of(61, f16s, ReduceOp::Max), Form::Loops),
        ("HierarchicalAllReduce", 4, of(200, ints, ReduceOp::Bxor), Form::Table),
        ("TwistedRingAllReduce", 4, AVERAGE, Form::Loops),
        ("NcclRingAllReduce", 3, sums(20_000), Form::Loops),
        ("RingReduce", 4, of(7, ints, ReduceOp::Avg), Form::Loops),
        ("MeshGather", 6, of(103, DType::I8, ReduceOp::Sum), Form::Loops),
        ("TreeBroadcast", 7, sums(1003), Form::Loops),
        ("MeshScatter", 4, sums(33), Form::Loops),
        ("MeshReduceScatter", 3, sums(3000), Form::Loops),
    ] {
        agrees(&engine, &case(&proved(name, nranks), data, form));
    }
    // A rank that leaves without a launch.
    let of = proved("RingAllReduce", 3);
    let told = engine.without_last(&case(&of, sums(100), Form::Loops)).expect("a report");
    assert!(told.contains("waits for TxAck from rank"), "{told}");
}

/// Every algorithm of the library that has a kernel, for 2 to 8 ranks, with all types and ops in turn; of these a few.
#[test]
fn every_algorithm_is_as_on_the_host() {
    below!(1);
    let engine = Ranks::as_processes(0, WHY).expect("a device");
    let (kinds, mut at, mut ran) = (kinds(), 0, 0);
    for algorithm in roundelay::select::library() {
        for nranks in 2..=8 {
            at += 1;
            if !taken(at, 100) {
                continue;
            }
            // Some are for an even number of ranks or a power of two alone.
            let Ok(proof) = prove_source(algorithm, nranks) else { continue };
            let (dtype, op) = kinds[at % kinds.len()];
            let data = Data { count: 1 + 37 * (at % 29), dtype, op };
            let of = (algorithm, proof);
            let forms = [Form::Loops, Form::Table].map(|form| case(&of, data, form));
            let Some(case) = forms.iter().cycle().skip(at % 2).take(2).find(|c| c.kernel().is_ok())
            else {
                println!("{} of {nranks} has no kernel for {op} of {dtype}", algorithm.name());
                continue;
            };
            println!("{} of {nranks} {}", algorithm.name(), case.name(false));
            agrees(&engine, case);
            ran += 1;
        }
    }
    assert!(ran > 1, "{ran} cases have run");
}
