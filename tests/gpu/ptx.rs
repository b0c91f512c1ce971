//! Kernels as NVRTC compiles them, executed by an interpreter of PTX.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use roundelay_export::cuda::Kernel;
use roundelay_kernels::cuda::{Arch, Target, compile};
use roundelay_kernels::interpreted::Interpreted;
use roundelay_kernels::shim::{Outcome, ShimJob};

use super::cases::Case;
use super::engine::Engine;

/// Threads of a block: two warps that move, so that barriers are those of several warps, and the one that walks.
const THREADS: u32 = 96;
/// Runs of a job, each with a seed of its own.
const SEEDS: u64 = 2;

type OfText = Arc<OnceLock<Result<Arc<Interpreted>, String>>>;

/// The engine that executes PTX.
pub(crate) struct Instructions {
    arch: Arch,
    /// Each text's program, by a digest of the text.
    programs: Mutex<HashMap<u64, OfText>>,
}

impl Instructions {
    pub(crate) fn new(arch: Arch) -> Self {
        Self { arch, programs: Mutex::default() }
    }

    fn program(&self, kernel: &Kernel) -> Result<Arc<Interpreted>, String> {
        let mut digest = DefaultHasher::new();
        kernel.text.hash(&mut digest);
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let of_text = programs.entry(digest.finish()).or_default().clone();
        drop(programs);
        of_text.get_or_init(|| interpreted(&kernel.text, &kernel.name, self.arch)).clone()
    }
}

/// Compiles a kernel's text; returns its PTX and the first place where a rule for it does not hold.
pub(crate) fn compiled(
    text: &str,
    name: &str,
    arch: Arch,
) -> Result<(String, Option<String>), String> {
    let target = Target { threads: THREADS, ..Target::new(arch) };
    let compiled = compile(text, name, &target).map_err(|error| format!("NVRTC: {error}"))?;
    let found = roundelay_ptx::lint(&compiled.ptx).map_err(|error| format!("lint: {error}"))?;
    Ok((compiled.ptx.clone(), found.first().map(|finding| format!("lint: {finding}"))))
}

/// Compiles a kernel's text; an error too where a rule for its PTX does not hold.
fn interpreted(text: &str, name: &str, arch: Arch) -> Result<Arc<Interpreted>, String> {
    let (ptx, finding) = compiled(text, name, arch)?;
    if let Some(finding) = finding {
        return Err(finding);
    }
    Interpreted::new(&ptx, name).map(Arc::new).map_err(|error| error.to_string())
}

/// Runs a job with several seeds, which must all leave the same outputs.
pub(crate) fn run(program: &Interpreted, job: &ShimJob, seeds: u64) -> Result<Outcome, String> {
    let mut first: Option<Outcome> = None;
    for seed in 0..seeds {
        let outcome = program.run(job, seed).map_err(|error| format!("seed {seed}: {error}"))?;
        if let Some(stuck) = outcome.stuck(job) {
            return Err(format!("seed {seed}: {stuck}"));
        }
        match &first {
            Some(first) if first.outputs != outcome.outputs => {
                return Err(format!("seed {seed} has other outputs than seed 0"));
            }
            Some(_) => {}
            None => first = Some(outcome),
        }
    }
    first.ok_or_else(|| "no run".to_owned())
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

    fn prepare(&self, case: &Case) -> Result<(), String> {
        self.program(&case.kernel()?).map(drop)
    }

    fn run(&self, case: &Case, in_place: bool, _: u32) -> Result<Vec<Vec<u8>>, String> {
        let kernel = case.kernel()?;
        let program = self.program(&kernel)?;
        let inputs = case.inputs();
        let mut job = ShimJob::new(&kernel, case.data.count as u64, &inputs);
        // The second launch goes on with the counters of the first.
        (job.in_place, job.repeats) = (in_place, 2);
        job.parts = if case.nranks == 3 { 2 } else { 1 };
        run(&program, &job, SEEDS).map(|outcome| outcome.outputs)
    }

    fn leaves_out(&self) -> bool {
        false
    }

    fn without_last(&self, _: &Case) -> Result<String, String> {
        Err("the interpreter launches all ranks".to_owned())
    }
}
