//! Kernels as NVRTC compiles them, executed by an interpreter of PTX.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use roundelay::DType;
use roundelay_export::cuda::{Form, Kernel};
use roundelay_kernels::cuda::{self, Arch, Target};
use roundelay_kernels::interpreter::{BINDS, DrivenMoves, Interpreted, NoOutcome, move_text};
use roundelay_kernels::shim::{Outcome, Shim, ShimJob};

use super::cases::{Case, Way};
use super::engine::{Engine, blames_last};

/// Threads of a block: two warps that move, so that barriers are those of several warps, and the one that walks.
const THREADS: u32 = 96;
/// Runs of a job, each with a seed of its own.
const SEEDS: u64 = 2;
/// The time of a wait for a rank that never runs: some checks of the clock, of which one comes after 1024 polls.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);
/// The number of the first generation with conversions of fp8.
const FP8: u32 = 89;

type OfText = Arc<OnceLock<Result<Arc<String>, String>>>;

/// The engine that executes PTX.
pub(crate) struct Instructions {
    arch: Arch,
    /// The PTX of each text, by a digest of the text and its macros.
    texts: Mutex<HashMap<u64, OfText>>,
}

/// The target of a kernel's compilation.
pub(crate) fn target(arch: Arch) -> Target {
    Target { threads: THREADS, ..Target::new(arch) }
}

/// Compiles a kernel's text; returns its PTX and the first place where a rule for it does not hold.
pub(crate) fn compiled(
    text: &str,
    name: &str,
    target: &Target,
) -> Result<(String, Option<String>), String> {
    let ptx = cuda::ptx(text, name, target).map_err(|error| format!("NVRTC: {error}"))?;
    let found = roundelay_ptx::lint(&ptx).map_err(|error| format!("lint: {error}"))?;
    let first = found.first().map(|finding| format!("lint: {finding}"));
    Ok((ptx, first))
}

impl Instructions {
    pub(crate) fn new(arch: Arch) -> Self {
        Self { arch, texts: Mutex::default() }
    }

    /// Returns the PTX of a kernel's text, for which all rules hold.
    fn ptx(
        &self,
        text: &str,
        name: &str,
        define: Option<(&str, usize)>,
    ) -> Result<Arc<String>, String> {
        let mut digest = DefaultHasher::new();
        (text, define).hash(&mut digest);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_text = texts.entry(digest.finish()).or_default().clone();
        drop(texts);
        let made = of_text.get_or_init(|| {
            let define = define.map(|(name, value)| (name.to_owned(), value.to_string()));
            let target = Target { defines: define.into_iter().collect(), ..target(self.arch) };
            match compiled(text, name, &target)? {
                (_, Some(finding)) => Err(finding),
                (ptx, None) => Ok(Arc::new(ptx)),
            }
        });
        made.clone()
    }

    /// Returns the PTX of the kernel that a way launches.
    fn kernel_ptx(&self, case: &Case, kernel: &Kernel) -> Result<Arc<String>, String> {
        match case.way {
            Way::Each { apart: true } => {
                self.ptx(&kernel.text, &kernel.name, Some(("ROUNDELAY_SCOPE_SYS", 1)))
            }
            Way::Traced => {
                let blocks =
                    kernel.facts(case.data.count as u64).groups.len() * parts(case) as usize;
                self.ptx(&kernel.text, &kernel.name, Some(("ROUNDELAY_TRACED", blocks)))
            }
            Way::Driven => {
                let (text, name) = move_text(kernel);
                self.ptx(&text, name, None)
            }
            Way::One | Way::Each { apart: false } => self.ptx(&kernel.text, &kernel.name, None),
        }
    }
}
/// Runs a job with several seeds, which must all leave the same outputs and the same record of ops.
pub(crate) fn run(
    job: &ShimJob,
    seeds: u64,
    run: impl Fn(u64) -> Result<Outcome, NoOutcome>,
) -> Result<Outcome, String> {
    let mut first: Option<Outcome> = None;
    for seed in 0..seeds {
        let outcome = run(seed).map_err(|error| format!("seed {seed}: {error}"))?;
        if let Some(stuck) = outcome.stuck(job) {
            return Err(format!("seed {seed}: {stuck}"));
        }
        match &first {
            Some(first) if first.outputs != outcome.outputs => {
                return Err(format!("seed {seed} has other outputs than seed 0"));
            }
            Some(first) if first.trace != outcome.trace => {
                return Err(format!("seed {seed} has other ops than seed 0"));
            }
            Some(_) => {}
            None => first = Some(outcome),
        }
    }
    first.ok_or_else(|| "no run".to_owned())
}

/// Blocks of a stream.
fn parts(case: &Case) -> u32 {
    let apart = case.way == (Way::Each { apart: true }) && case.form == Form::Table;
    if case.nranks == 3 || apart { 2 } else { 1 }
}

/// Whether a trace is that of the kernel on CPU threads, in which the order of each stream is that of the page.
fn is_the_shims(trace: &str, kernel: &Kernel, job: &ShimJob) -> Result<(), String> {
    let shim = Shim::compile(&kernel.text, &kernel.name).map_err(|error| error.to_string())?;
    let outcome = shim.run(job).map_err(|error| error.to_string())?;
    let mut lines = outcome.trace.lines().zip(trace.lines()).zip(1..);
    if let Some(((shims, own), line)) = lines.find(|((shims, own), _)| shims != own) {
        return Err(format!("line {line} of the trace is `{own}`, and the shim's is `{shims}`"));
    }
    let [shims, own] = [&outcome.trace[..], trace].map(|trace| trace.lines().count());
    if shims == own {
        Ok(())
    } else {
        Err(format!("{own} lines of trace, and the shim has {shims}"))
    }
}

impl Engine for Instructions {
    fn about(&self) -> String {
        let arch = self.arch;
        format!("kernels by NVRTC for {arch}, their PTX by an interpreter: no GPU takes part")
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn is_brief(&self) -> bool {
        true
    }

    fn counts(&self) -> (usize, usize) {
        (37, 521)
    }

    fn rank_counts(&self) -> Vec<u32> {
        vec![2, 3, 4]
    }

    fn other_ways(&self) -> &[Way] {
        &[Way::Each { apart: true }, Way::Traced, Way::Driven, Way::Each { apart: false }]
    }

    fn lacks(&self, dtype: DType) -> Option<String> {
        let is_fp8 = matches!(dtype, DType::F8E4M3 | DType::F8E5M2);
        let lacks = is_fp8 && self.arch.number() < FP8;
        lacks.then(|| format!("fp8 needs sm_{FP8} or later"))
    }

    fn prepare(&self, case: &Case) -> Result<(), String> {
        let (text, name) = BINDS;
        self.ptx(text, name, None)?;
        let kernel = case.kernel()?;
        if case.way == Way::Traced {
            Shim::compile(&kernel.text, &kernel.name).map_err(|error| error.to_string())?;
        }
        self.kernel_ptx(case, &kernel).map(drop)
    }

    fn run(&self, case: &Case, in_place: bool, _: u32) -> Result<Vec<Vec<u8>>, String> {
        let kernel = case.kernel()?;
        let ptx = self.kernel_ptx(case, &kernel)?;
        let inputs = case.inputs();
        let mut job = ShimJob::new(&kernel, case.data.count as u64, &inputs);
        // The second launch goes on with the counters of the first.
        (job.in_place, job.repeats, job.parts) = (in_place, 2, parts(case));
        if case.way == Way::Driven {
            let moves = DrivenMoves::new(&ptx).map_err(|error| error.to_string())?;
            let outcome = run(&job, SEEDS, |seed| moves.run(&kernel, &job, seed));
            return outcome.map(|outcome| outcome.outputs);
        }
        job.trace = case.way == Way::Traced;
        let devices = if case.way == (Way::Each { apart: true }) { case.nranks } else { 1 };
        let (text, name) = BINDS;
        let binds = self.ptx(text, name, None)?;
        let program =
            Interpreted::new(&ptx, &kernel.name).and_then(|program| program.bound_by(&binds));
        let program = program.map(|program| program.granting(kernel.spec.protocol));
        let program = program.map_err(|error| error.to_string())?.on_devices(devices as usize);
        let outcome = run(&job, SEEDS, |seed| program.run(&job, seed))?;
        if job.trace {
            is_the_shims(&outcome.trace, &kernel, &job)?;
        }
        Ok(outcome.outputs)
    }

    fn without_last(&self, case: &Case) -> Result<String, String> {
        let case = Case { way: Way::Each { apart: true }, ..*case };
        let kernel = case.kernel()?;
        let ptx = self.kernel_ptx(&case, &kernel)?;
        let inputs = case.inputs();
        let program = Interpreted::new(&ptx, &kernel.name).map_err(|error| error.to_string())?;
        let program = program.granting(kernel.spec.protocol);
        let program = program.on_devices(case.nranks as usize).without_last();
        let job = ShimJob {
            poll_limit: PATIENCE,
            ..ShimJob::new(&kernel, case.data.count as u64, &inputs)
        };
        let outcome = program.run(&job, 0).map_err(|error| error.to_string())?;
        blames_last(&outcome.stuck(&job).ok_or("no wait gave up")?, case.nranks)
    }
}
