//! Kernels on CPU threads.

use std::time::Duration;

use roundelay_core::ids::RankId;
use roundelay_kernels::shim::{Shim, ShimJob};

use super::cases::Case;
use super::engine::{Engine, blames_last};

pub(crate) struct Threads;

impl Engine for Threads {
    fn about(&self) -> String {
        "kernels on CPU threads, by g++: no GPU takes part".to_owned()
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn prepare(&self, case: &Case) -> Result<(), String> {
        let kernel = case.kernel()?;
        Shim::compile(&kernel.text, &kernel.name).map(drop).map_err(|e| e.to_string())
    }

    fn run(&self, case: &Case, in_place: bool, repeats: u32) -> Result<Vec<Vec<u8>>, String> {
        let kernel = case.kernel()?;
        let shim = Shim::compile(&kernel.text, &kernel.name).map_err(|e| e.to_string())?;
        let inputs = case.inputs();
        let mut job = ShimJob::new(&kernel, case.data.count as u64, &inputs);
        (job.in_place, job.repeats) = (in_place, repeats);
        // Several CTAs a stream where that is still few threads.
        job.parts = if case.nranks <= 4 { 2 } else { 1 };
        let outcome = shim.run(&job).map_err(|e| e.to_string())?;
        match outcome.stuck(&job) {
            Some(stuck) => Err(stuck.to_string()),
            None => Ok(outcome.outputs),
        }
    }

    fn without_last(&self, case: &Case) -> Result<String, String> {
        let kernel = case.kernel()?;
        let shim = Shim::compile(&kernel.text, &kernel.name).map_err(|e| e.to_string())?;
        let inputs = case.inputs();
        let mut job = ShimJob::new(&kernel, case.data.count as u64, &inputs);
        job.stuck_rank = Some(RankId(case.nranks - 1));
        job.poll_limit = Duration::from_millis(300);
        let outcome = shim.run(&job).map_err(|e| e.to_string())?;
        blames_last(&outcome.stuck(&job).ok_or("no wait gave up")?, case.nranks)
    }
}
