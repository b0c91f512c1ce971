//! Compiled kernels, executed by the interpreter of PTX: the bits are those of the host engine. `cargo xtask ptx` runs all
//! kernels of the library so.

use roundelay::{DType, ReduceOp};
use roundelay_core::optimize::{Goal, Level};
use roundelay_core::verify::Callers;
use roundelay_export::cuda::{Form, Kernel, Protocol, Spec};
use roundelay_kernels::cuda::{Target, compile};
use roundelay_kernels::interpreted::Interpreted;
use roundelay_kernels::shim::ShimJob;

use super::runs::{code, inputs, loops, named, on_the_host, proved, spec};

/// Threads of a block: two warps that move, so that barriers are those of several warps, and the one that walks.
const THREADS: u32 = 96;

/// The program that NVRTC makes of a kernel, for the most common GPU.
fn compiled(kernel: &Kernel) -> Interpreted {
    let target = Target::new("sm_90".parse().expect("an architecture"));
    let target = Target { threads: THREADS, ..target };
    let compiled = compile(&code(&kernel.text), &kernel.name, &target).expect("it compiles");
    Interpreted::new(&compiled.ptx, &kernel.name).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs an algorithm's kernel with several seeds, two launches each, and compares the outputs with the host engine's.
fn leaves_the_hosts_bits(
    (name, nranks): (&str, u32),
    (form, protocol): (Form, Protocol),
    (element, op): (DType, ReduceOp),
    counts: &[(u64, u32)],
) {
    let algorithm = named(name);
    let proved = proved(algorithm, nranks).expect("it takes the ranks");
    let spec = Spec { element, op, protocol, ..spec(algorithm) };
    let kernel = match form {
        Form::Loops => loops(algorithm, &proved, spec),
        Form::Table => {
            let goal = Goal { level: Level::O2, callers: Callers::One, reassociate: false };
            let made = proved.optimized(goal).expect("it is proved again");
            Kernel::of_table(&made, spec).unwrap_or_else(|refused| panic!("{}", refused.title))
        }
    };
    let interpreted = compiled(&kernel);
    for &(count, parts) in counts {
        let inputs = inputs(&kernel, count);
        let expected = on_the_host(&proved, &kernel, count, &inputs);
        for seed in 0..2 {
            let job = ShimJob { repeats: 2, parts, ..ShimJob::new(&kernel, count, &inputs) };
            let case = format!("{name}, {nranks} ranks, {form}, count {count}, seed {seed}");
            let run = interpreted.run(&job, seed);
            let outcome = run.unwrap_or_else(|error| panic!("{case}: {error}"));
            assert!(!outcome.aborted, "{case}: a wait gave up");
            assert_eq!(outcome.outputs, expected, "{case}");
        }
    }
}

const LOOPS: (Form, Protocol) = (Form::Loops, Protocol::Direct);
const SUMS: (DType, ReduceOp) = (DType::F32, ReduceOp::Sum);

#[test]
fn rings() {
    leaves_the_hosts_bits(("RingAllReduce", 2), LOOPS, SUMS, &[(17, 1)]);
    leaves_the_hosts_bits(("RingAllReduce", 3), LOOPS, SUMS, &[(261, 2)]);
    let averages = (DType::Bf16, ReduceOp::Avg);
    leaves_the_hosts_bits(
        ("RingAllReduce", 3),
        (Form::Table, Protocol::Direct),
        averages,
        &[(161, 2)],
    );
}

#[test]
fn slots() {
    let ring = ("NcclRingAllReduce", 3);
    let simple = (Form::Loops, Protocol::Simple);
    leaves_the_hosts_bits(ring, simple, SUMS, &[(161, 2)]);
    let lines = (Form::Loops, Protocol::Ll);
    leaves_the_hosts_bits(ring, lines, (DType::U8, ReduceOp::Max), &[(161, 2)]);
}

#[test]
fn trees_and_meshes() {
    leaves_the_hosts_bits(("DoubleBinaryTreeAllReduce", 4), LOOPS, SUMS, &[(61, 1)]);
    leaves_the_hosts_bits(("MeshAllReduce", 4), LOOPS, (DType::F16, ReduceOp::Prod), &[(61, 1)]);
    leaves_the_hosts_bits(("PairwiseAllToAll", 3), LOOPS, (DType::I64, ReduceOp::Sum), &[(7, 1)]);
}
