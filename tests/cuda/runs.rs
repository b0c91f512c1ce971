//! Common parts of the tests of kernels: every algorithm of the library as a kernel, and its runs.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use roundelay::{Algorithm as _, DType, Level, Options, Plan, ReduceOp, select};
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::unless_refused;
use roundelay_core::layout::Configured;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Callers;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Kernel, Protocol, Spec};
use roundelay_kernels::reference::Reference;
use roundelay_kernels::shim::{Outcome, Shim, ShimJob};
use roundelay_tests::compile;

/// The algorithm of the library with that name.
pub(super) fn named(name: &str) -> &'static Configured {
    select::library().iter().find(|a| a.name() == name).expect("the library has it")
}

/// The first algorithm of a text.
pub(super) fn algorithm(text: &str) -> Configured {
    let source = Source::from_text("test.coll", text);
    let program = compile(&source, Frontend::File)
        .unwrap_or_else(|errors| panic!("{}", errors[0].report(&source)));
    Configured::new(program.algorithms.into_iter().next().expect("one"), &source)
}

/// Returns the spec of most tests' kernels.
pub(super) fn spec(algorithm: &Configured) -> Spec {
    Spec {
        element: DType::F32,
        op: ReduceOp::Sum,
        protocol: Protocol::for_algorithm(algorithm),
        vector: 16,
        callers: Callers::One,
    }
}

/// Returns the proof for `nranks` ranks, unless the algorithm refuses them.
pub(super) fn proved(algorithm: &Configured, nranks: u32) -> Option<Proved> {
    unless_refused(roundelay_core::prove(algorithm, nranks)).expect("the library is right")
}

/// The kernel of an algorithm's loops.
pub(super) fn loops(algorithm: &Configured, proved: &Proved, spec: Spec) -> Kernel {
    Kernel::of_loops(algorithm, proved, spec)
        .unwrap_or_else(|errors| panic!("{}: {}", algorithm.name(), errors[0].title))
}

/// The text as a program; texts that differ in their comments alone are one.
pub(super) fn program(kernel: &Kernel) -> Shim {
    static PROGRAMS: Mutex<Option<HashMap<String, Shim>>> = Mutex::new(None);
    let code = code(&kernel.text);
    let known = || PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(shim) = known().get_or_insert_default().get(&code) {
        return shim.clone();
    }
    let shim = Shim::compile(&code, &kernel.name).unwrap_or_else(|error| panic!("{error}"));
    known().get_or_insert_default().insert(code, shim.clone());
    shim
}

/// Returns a text without its head.
pub(super) fn code(text: &str) -> String {
    let lines = text.lines().skip_while(|line| line.starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Data for a kernel, as a test of the host engine would make it.
pub(super) fn inputs(kernel: &Kernel, count: u64) -> Vec<Vec<u8>> {
    reference(kernel, count).inputs(7)
}

pub(super) fn reference(kernel: &Kernel, count: u64) -> Reference {
    Reference {
        collective: kernel.schedule.collective,
        nranks: kernel.schedule.nranks,
        root: kernel.schedule.root,
        count: count as usize,
        dtype: kernel.spec.element,
        op: kernel.spec.op,
    }
}

/// The host engine's outputs, every op as the author wrote it.
pub(super) fn on_the_host(
    proved: &Proved,
    kernel: &Kernel,
    count: u64,
    inputs: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let Reference { dtype, op, .. } = reference(kernel, count);
    let options = Options::default().level(Level::O0).workers(1);
    let plan = Plan::for_options(proved, count, dtype, op, options).expect("a plan");
    let ranks = (0..kernel.schedule.nranks).map(roundelay_core::ids::RankId);
    let mut outputs: Vec<Vec<u8>> =
        ranks.map(|rank| vec![0; plan.output_len(rank) * dtype.size()]).collect();
    let reads: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut writes: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run_bytes(&reads, &mut writes).expect("a run");
    outputs
}

/// Runs a job to its end, or says why it did not come there.
pub(super) fn try_run(shim: &Shim, job: &ShimJob<'_>) -> Result<Outcome, String> {
    let outcome = shim.run(job).map_err(|error| error.to_string())?;
    if let Some(stuck) = outcome.stuck(job) {
        return Err(stuck.to_string());
    }
    if outcome.aborted { Err("it gave up and says nothing".into()) } else { Ok(outcome) }
}

/// Runs a job to its end.
pub(super) fn run(shim: &Shim, job: &ShimJob<'_>) -> Outcome {
    let Schedule { algorithm, nranks, .. } = job.schedule;
    try_run(shim, job).unwrap_or_else(|why| panic!("{algorithm} on {nranks} ranks: {why}"))
}
