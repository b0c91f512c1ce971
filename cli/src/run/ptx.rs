//! `roundelay run --device ptx`: the kernel as NVRTC compiles it, checked by its text and executed on the CPU.

use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;
use roundelay_core::optimize::Goal;
use roundelay_core::schedule::{Op, OpKind};
use roundelay_core::syntax::Source;
use roundelay_core::verify::{Callers, Proved};
use roundelay_export::cuda::{Kernel, Protocol, Spec};
use roundelay_kernels::cuda::{Arch, THREADS, Target, fit};
use roundelay_kernels::interpreter::{Interpreted, NoOutcome};
use roundelay_kernels::shim::ShimJob;

use super::faults::KernelPage;
use super::{Measured, RunFlags, Stopped};
use crate::kernel::{FormFlag, VECTOR, has_protocol, kernel_of};
use crate::progress;
use crate::report::{Failure, took};

/// Runs a program's kernel with the choices of the seed.
pub(super) fn run(
    arch: &str,
    (algorithm, source): (&Configured, &Source),
    proved: &Proved,
    inputs: &[Vec<u8>],
    flags: &RunFlags,
) -> Result<Measured, Stopped> {
    let arch: Arch = arch.parse()?;
    let kernel = kernel(algorithm, proved, flags)?;
    let mut job = ShimJob::new(&kernel, flags.count(), inputs);
    job.in_place = flags.in_place;
    job.repeats = flags.iterations();
    job.parts = flags.device.ctas.unwrap_or(1);
    let target = Target::new(arch);
    let target = Target { threads: flags.device.threads.unwrap_or(target.threads), ..target };
    let seconds = admit(&job, target.threads)?;

    let nranks = kernel.schedule.nranks;
    let header = algorithm.program().header();
    let page = KernelPage { source, header, nranks, seed: flags.seed };
    let about = |what: &str| progress::about(format!("{}, {nranks} ranks: {what}", kernel.name));
    progress::shown(|| {
        about("NVRTC compiles");
        let ptx = &fit(&kernel.text, &kernel.name, &target)?.compiled.ptx;
        let unreadable = |bad| Stopped::Wrong(vec![page.unreadable(&bad)]);
        let findings = roundelay_ptx::lint(ptx).map_err(unreadable)?;
        if !findings.is_empty() {
            return Err(Stopped::Wrong(findings.iter().map(|f| page.finding(f)).collect()));
        }
        let interpreted = Interpreted::new(ptx, &kernel.name).map_err(unreadable)?;
        about(&format!("interprets, perhaps for {}", took(seconds)));
        let ran = interpreted.run_counted(&job, flags.seed);
        let (outcome, counters) = ran.map_err(|why| match why {
            NoOutcome::Run(failure) => Stopped::Wrong(vec![page.failure(&failure)]),
            NoOutcome::Job(error) => Failure::usage(Code::TooLarge, error.to_string()).into(),
        })?;
        if let Some(stuck) = outcome.stuck(&job) {
            return Err(Stopped::Failure(
                roundelay_kernels::Error::Timeout(Box::new(stuck)).into(),
            ));
        }
        Ok(Measured {
            outputs: outcome.outputs,
            seconds: None,
            reduce_depth: kernel.proof.reduce_depth,
            device: Some(format!("PTX for {arch}")),
            counters: Some(counters.named().collect()),
        })
    })
}

fn kernel(algorithm: &Configured, proved: &Proved, flags: &RunFlags) -> Result<Kernel, Stopped> {
    let form = flags.device.form.unwrap_or(FormFlag::Loops);
    has_protocol(form, flags.device.protocol)?;
    let spec = Spec {
        element: flags.dtype,
        op: flags.op,
        protocol: flags.device.protocol.unwrap_or_else(|| Protocol::for_algorithm(algorithm)),
        vector: VECTOR,
        callers: Callers::One,
    };
    let (level, reassociate) = (flags.engine.level, flags.engine.reassociate);
    let goal = Goal { level, callers: spec.callers, reassociate };
    let kernel = progress::shown(|| kernel_of(algorithm, proved, (form, spec), goal));
    kernel.map_err(Stopped::Wrong)
}

/// The longest run that is begun, in seconds by the estimate.
const MOST_SECONDS: f64 = 600.0;
/// Seconds of an op in one block of 256 threads; a third of it is for the warp that walks. On one core of a server of
/// 2023, with the interpreter optimized.
const OP: f64 = 0.22e-3;
/// Seconds of an element that is moved.
const ELEMENT: f64 = 0.2e-6;

/// Returns the estimated seconds of a job, and refuses a job that takes too long.
fn admit(job: &ShimJob, threads: u32) -> Result<f64, Failure> {
    let schedule = job.schedule;
    let elements = |op: &Op| -> u64 {
        let written = schedule.dsts(op).iter();
        written.map(|to| schedule.extent(schedule.region(*to), job.count).1).sum()
    };
    let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move);
    let moved: f64 = moves.map(|op| elements(op) as f64).sum();
    let movers = f64::from(threads) / f64::from(THREADS);
    let op = OP * f64::from(job.parts) * (1.0 + 2.0 * movers) / 3.0;
    let launch = schedule.ops.len() as f64 * op + moved * ELEMENT;
    let seconds = f64::from(job.repeats) * launch;
    if seconds <= MOST_SECONDS {
        return Ok(seconds);
    }
    let (takes, most) = (took(seconds), took(MOST_SECONDS));
    let title = format!("--device ptx would take about {takes}, and a run may take {most}");
    let title = format!("{title}: an interpreter executes every instruction of every thread");
    Err(Failure::usage(Code::BadCall, title)
        .with_help("take a smaller --count, fewer ranks, fewer launches (-I), or fewer --ctas"))
}
