//! Compiled kernels, executed by the interpreter of PTX: the bits are those of the host engine.

use roundelay::DType;
use roundelay_export::cuda::{Kernel, Spec};
use roundelay_kernels::cuda::{Target, fit};
use roundelay_kernels::interpreted::Interpreted;
use roundelay_kernels::shim::ShimJob;

use super::runs::{code, inputs, loops, named, on_the_host, proved, spec};

/// The program that NVRTC makes of a kernel, for the most common GPU.
fn compiled(kernel: &Kernel) -> Interpreted {
    let target = Target::new("sm_90".parse().expect("an architecture"));
    let fitted = fit(&code(&kernel.text), &kernel.name, &target).expect("it compiles");
    Interpreted::new(&fitted.compiled.ptx, &kernel.name).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs an algorithm with several seeds, and compares the outputs with the host engine's.
fn leaves_the_hosts_bits(name: &str, nranks: u32, counts: &[u64], element: DType) {
    let algorithm = named(name);
    let proved = proved(algorithm, nranks).expect("it takes the ranks");
    let kernel = loops(algorithm, &proved, Spec { element, ..spec(algorithm) });
    let interpreted = compiled(&kernel);
    for count in counts {
        let inputs = inputs(&kernel, *count);
        let expected = on_the_host(&proved, &kernel, *count, &inputs);
        for seed in 0..3 {
            let job = ShimJob { repeats: 2, ..ShimJob::new(&kernel, *count, &inputs) };
            let outcome = interpreted.run(&job, seed).unwrap_or_else(|error| {
                panic!("{name}, {nranks} ranks, count {count}, seed {seed}: {error}")
            });
            assert!(!outcome.aborted, "{name}, count {count}, seed {seed}: a wait gave up");
            assert_eq!(outcome.outputs, expected, "{name}, count {count}, seed {seed}");
        }
    }
}

#[test]
fn a_ring_of_two_ranks_leaves_the_host_engines_bits() {
    leaves_the_hosts_bits("RingAllReduce", 2, &[17], DType::F32);
}
