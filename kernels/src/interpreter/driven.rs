//! A schedule that the host drives: a launch for each move, in the order of its streams and signals.

use roundelay_export::cuda::Kernel;
use roundelay_ptx::Assumptions;
use roundelay_ptx::machine::{Limits, RankLaunch};
use roundelay_ptx::program::Module;

use super::windows::{Ranges, Staging, bytes_of};
use super::{NoOutcome, block_of, run};
use crate::grid::Placement;
use crate::grid::fold::{self, FoldCall};
use crate::grid::steps::{BufferOffset, DrivenStep, HostSteps};
use crate::shim::{Outcome, ShimJob};

/// The kernel that performs one move, as NVRTC compiled it.
#[derive(Clone, Debug)]
pub struct DrivenMoves {
    module: Module,
}

/// The text and the name of the kernel that performs a move of a kernel's schedule.
pub fn move_text(kernel: &Kernel) -> (String, &'static str) {
    let chain = kernel.schedule.has_chains();
    (fold::text(kernel.spec.element, kernel.spec.op, chain), fold::NAME)
}

impl DrivenMoves {
    /// Reads the PTX of [`move_text`].
    ///
    /// # Errors
    /// The line that is not in the interpreter's subset.
    pub fn new(ptx: &str) -> Result<Self, roundelay_ptx::BadText> {
        Ok(Self { module: Module::parse_whole(ptx)? })
    }

    /// Runs the moves of a kernel's schedule. Each one begins when those before it in its stream have ended, and those
    /// before the signals for which the stream has waited; nothing else orders them.
    ///
    /// # Errors
    /// A job with invalid values, or the first fault of a thread.
    pub fn run(&self, kernel: &Kernel, job: &ShimJob, seed: u64) -> Result<Outcome, NoOutcome> {
        let layout = job.layout().map_err(NoOutcome::Job)?;
        let placement = Placement { devices: 1, nranks: job.schedule.nranks };
        let mut memory = Ranges::of(job, &layout, placement, (false, Staging::None));
        let HostSteps { all, events, scratch, divisor, scaled } = HostSteps::new(kernel, job.count);
        let scratch = memory.add("the scratch".into(), vec![0xa5; scratch as usize], 0);
        let scratch = memory.address(scratch);
        let io = memory.buffers(job);
        let address = |offset: &BufferOffset| match *offset {
            BufferOffset::Input(rank, at) => io[rank][0] + at,
            BufferOffset::Output(rank, at) => io[rank][1] + at,
            BufferOffset::Scratch(at) => scratch + at,
        };
        let mut launches: Vec<RankLaunch> = Vec::new();
        let mut fold = |from: &[u64], to, len, divisor, after: &mut Vec<usize>| {
            if len == 0 || from == [to] && divisor == 0 {
                return;
            }
            launches.push(RankLaunch {
                grid: [job.parts, 1, 1],
                block: block_of(&self.module, fold::NAME),
                parameters: bytes_of(FoldCall::new(from, to, len, divisor).words()),
                after: std::mem::take(after),
                ..RankLaunch::new(&self.module, fold::NAME)
            });
            after.push(launches.len() - 1);
        };
        // The launches that are before the next move of each stream, and before each event.
        let mut before = vec![Vec::new(); job.schedule.streams.len()];
        let mut at_event = vec![Vec::new(); events];
        for step in &all {
            match step {
                DrivenStep::Move { stream, sources, targets, len, finish } => {
                    let from: Vec<u64> = sources.iter().map(address).collect();
                    let after = &mut before[*stream];
                    let to: Vec<u64> = targets.iter().map(address).collect();
                    fold(&from, to[0], *len, if *finish { divisor } else { 0 }, after);
                    for &other in &to[1..] {
                        fold(&to[..1], other, *len, 0, after);
                    }
                }
                DrivenStep::Post { stream, event } => at_event[*event].clone_from(&before[*stream]),
                DrivenStep::Wait { stream, event } => {
                    before[*stream].extend(&at_event[*event]);
                    before[*stream].sort_unstable();
                    before[*stream].dedup();
                }
            }
        }
        let mut every = before.concat();
        for (len, [_, output]) in scaled.iter().zip(&io) {
            fold(&[*output], *output, *len, divisor, &mut every);
        }
        for repeat in 0..job.repeats {
            memory.fill(job);
            let choices = (seed.wrapping_add(repeat.into()), Limits::DEFAULT);
            let assumed = (Assumptions::default(), false);
            run(&mut memory, launches.clone(), choices, assumed).map_err(NoOutcome::Run)?;
        }
        let (control, outputs) = (memory.control(), memory.outputs(job));
        Ok(Outcome { aborted: false, control, outputs, trace: String::new() })
    }
}
