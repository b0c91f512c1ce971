//! `roundelay run --device ptx`: the kernel as NVRTC compiles it, checked by its text and executed on the CPU: a short form
//! of `roundelay kernel check` for the harness of `--ours`.

use std::path::Path;
use std::time::Duration;

use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;
use roundelay_core::schedule::{Op, OpKind, Schedule};
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Protocol, WHOLE_LINES};
use roundelay_kernel_check::{CheckOptions, Harness, State};
use roundelay_kernels::cuda::{Arch, THREADS};

use super::faults::KernelPage;
use super::{Measured, RunFlags, Stopped};
use crate::interrupt;
use crate::kernel_check::compile;
use crate::kernel_check::ours::{Choices, Launches, own_kernel};
use crate::progress;
use crate::report::{Failure, took};

/// Runs a program's kernel with the choices of the seed.
pub(super) fn run(
    arch: &str,
    (algorithm, source): (&Configured, &Source),
    proved: &Proved,
    flags: &RunFlags,
) -> Result<Measured, Stopped> {
    let arch: Arch = arch.parse()?;
    let choices = Choices {
        form: flags.device.form,
        protocol: flags.device.protocol,
        kind: (flags.dtype, flags.op),
        level: flags.engine.level,
        reassociate: flags.engine.reassociate,
    };
    let kernel = own_kernel(algorithm, proved, &choices)?.map_err(Stopped::Wrong)?;
    let launches = Launches {
        arch,
        count: flags.count(),
        threads: flags.device.threads.unwrap_or(THREADS),
        parts: flags.device.ctas.unwrap_or(1),
        calls: flags.iterations(),
        in_place: flags.in_place,
    };
    let seconds = admit(&kernel.schedule, &launches)?;
    let harness = Harness::from_toml(&launches.harness(&kernel)?).expect("a harness of its schema");
    let [harness] = &harness[..] else { unreachable!("it has no cases") };

    let assuming = match kernel.spec.protocol {
        Protocol::Ll128 => format!(", assuming {}", WHOLE_LINES.0),
        _ => String::new(),
    };
    let nranks = kernel.schedule.nranks;
    let header = algorithm.program().header();
    let page = KernelPage { source, header, nranks, seed: flags.seed };
    let about = |what: &str| progress::about(format!("{}, {nranks} ranks: {what}", kernel.name));
    progress::shown(|| {
        about("NVRTC compiles");
        let unreadable = |bad: &_| Stopped::Wrong(vec![page.unreadable(bad)]);
        let compiled = |module: &_, ranks| {
            let compiled = compile::module(module, ranks, Path::new("")).map_err(Failure::from)?;
            let findings = roundelay_ptx::lint(&compiled.ptx).map_err(|bad| unreadable(&bad))?;
            if findings.is_empty() {
                return Ok(compiled);
            }
            Err(Stopped::Wrong(findings.iter().map(|found| page.finding(found)).collect()))
        };
        let cases = harness.cases(compiled, |_, bad| unreadable(bad))?;
        about(&format!("interprets, perhaps for {}", took(seconds)));
        let stop = interrupt::stop();
        let options = CheckOptions {
            seeds: Some(1),
            first: flags.seed,
            // The run itself takes the time that it takes; no time is for cures.
            budget: Duration::ZERO,
            explain: false,
            threads: 1,
            stop: &|| stop.is_some_and(|stop| stop()),
            progress: &|_| {},
        };
        let verdict = harness.check(&cases, &options);
        let verdict = verdict.map_err(|why| Failure::usage(Code::TooLarge, why))?;
        if let Some(found) = verdict.finding.as_ref().filter(|_| verdict.state != State::Relies) {
            return Err(Stopped::Wrong(vec![page.fault(found)]));
        }
        Ok(Measured {
            outputs: None,
            seconds: None,
            reduce_depth: kernel.proof.reduce_depth,
            device: Some(format!("PTX for {arch}{assuming}")),
            counters: verdict.cases.first().map(|runs| runs.counters.named().collect()),
        })
    })
}

/// The longest run that is begun, in seconds by the estimate.
const MOST_SECONDS: f64 = 600.0;
/// Seconds of an op in one block of 256 threads; a third of it is for the warp that walks. On one core of a server of
/// 2023, with the interpreter optimized.
const OP: f64 = 0.22e-3;
/// Seconds of an element that is moved.
const ELEMENT: f64 = 0.2e-6;

/// Returns the estimated seconds of a run, and refuses a run that takes too long.
fn admit(schedule: &Schedule, launches: &Launches) -> Result<f64, Failure> {
    let Launches { count, threads, parts, calls, .. } = *launches;
    let elements = |op: &Op| -> u64 {
        let written = schedule.dsts(op).iter();
        written.map(|to| schedule.extent(schedule.region(*to), count).1).sum()
    };
    let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move);
    let moved: f64 = moves.map(|op| elements(op) as f64).sum();
    let movers = f64::from(threads) / f64::from(THREADS);
    let op = OP * f64::from(parts) * (1.0 + 2.0 * movers) / 3.0;
    let seconds = f64::from(calls) * (schedule.ops.len() as f64 * op + moved * ELEMENT);
    if seconds <= MOST_SECONDS {
        return Ok(seconds);
    }
    let (takes, most) = (took(seconds), took(MOST_SECONDS));
    let title = format!("--device ptx would take about {takes}, and a run may take {most}");
    let title = format!("{title}: an interpreter executes every instruction of every thread");
    Err(Failure::usage(Code::BadCall, title)
        .with_help("take a smaller --count, fewer ranks, fewer launches (-I), or fewer --ctas"))
}
