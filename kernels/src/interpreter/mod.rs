//! Compiled kernels without a GPU: an interpreter executes the PTX that NVRTC makes, on the memory of a [`ShimJob`].

mod driven;
mod trace;
mod windows;

use std::fmt;

use roundelay_export::cuda::Protocol;
use roundelay_ptx::machine::{
    Counters, Failure, FaultKind, FinalState, Launch as Run, Limits, RankLaunch, Where,
};
use roundelay_ptx::program::Module;
use roundelay_ptx::{Assumption, Assumptions};

pub use driven::{DrivenMoves, move_text};

use crate::grid::bound::{BIND, BIND_TEXT, BOUND_AT_ONCE, batches};
use crate::grid::{GridLayout, Placement};
use crate::shim::{self, Outcome, ShimJob};
use windows::{Ranges, Staging, bytes_of};

/// A kernel, as NVRTC compiled it.
#[derive(Clone, Debug)]
pub struct Interpreted {
    module: Module,
    kernel: String,
    devices: usize,
    staging: Staging,
    lacks_last: bool,
    binds: Option<Module>,
    assumptions: Assumptions,
}

/// The clock of runs without the last device, in which waits for it last until they give up.
const PATIENT: Limits = Limits { idle_turns: 1 << 20, turn_ns: 1000, ..Limits::DEFAULT };

/// The text and the name of the kernel that writes the addresses of buffers into tables before a launch.
pub const BINDS: (&str, &str) = (BIND_TEXT, BIND);

/// The reason why a run of a compiled kernel has no outcome.
#[derive(Debug)]
pub enum NoOutcome {
    /// A job with invalid values.
    Job(shim::Error),
    /// A fault of the kernel, or a launch that cannot begin.
    Run(Failure),
}

impl fmt::Display for NoOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(error) => error.fmt(f),
            Self::Run(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for NoOutcome {}

impl Interpreted {
    /// Reads the PTX of the kernel of that name.
    ///
    /// # Errors
    /// The line that is not in the interpreter's subset.
    pub fn new(ptx: &str, kernel: &str) -> Result<Self, roundelay_ptx::BadText> {
        let (module, kernel) = (Module::parse_whole(ptx)?, kernel.to_owned());
        Ok(Self {
            module,
            kernel,
            devices: 1,
            staging: Staging::None,
            lacks_last: false,
            binds: None,
            assumptions: Assumptions::default(),
        })
    }

    /// Deals the ranks to that many devices, with a launch on each: for a kernel of callers each, and where there are
    /// several devices, of the scope of the system.
    #[must_use]
    pub fn on_devices(self, devices: usize) -> Self {
        Self { devices, ..self }
    }

    /// Deals one rank to each device, as ranks in processes of their own have it: each launch copies its rank's buffers
    /// into their stages and out of them, for a kernel that was compiled with `ROUNDELAY_STAGED`.
    #[must_use]
    pub fn stage(self, nranks: usize) -> Self {
        Self { devices: nranks, staging: Staging::Always, ..self }
    }

    /// Has every other rank use its buffers where they are, and the others copy them, in turns from launch to launch: for a
    /// kernel that was compiled with `ROUNDELAY_REGISTERED`, too.
    #[must_use]
    pub fn lend(self, nranks: usize) -> Self {
        Self { devices: nranks, staging: Staging::InTurns, ..self }
    }

    /// Leaves the last device out: of several devices, it never launches anything.
    #[must_use]
    pub fn without_last(self) -> Self {
        Self { lacks_last: true, ..self }
    }

    /// Grants the kernel what its protocol assumes beyond PTX: that lines arrive whole, without which LL128 is wrong.
    #[must_use]
    pub fn granting(self, protocol: Protocol) -> Self {
        match protocol {
            Protocol::Ll128 => {
                Self { assumptions: self.assumptions.include(Assumption::Line128), ..self }
            }
            Protocol::Direct | Protocol::Simple | Protocol::Ll => self,
        }
    }

    /// Has the addresses of buffers written by a kernel, the PTX of [`BINDS`], as each launch of a graph has.
    ///
    /// # Errors
    /// The line that is not in the interpreter's subset.
    pub fn bound_by(self, ptx: &str) -> Result<Self, roundelay_ptx::BadText> {
        Ok(Self { binds: Some(Module::parse_whole(ptx)?), ..self })
    }

    /// Runs the launches of a job, with the choices of a seed. The job's number of threads is that of the shim; a block
    /// has the number for which the kernel was compiled. A fault names threads by the ranks of the schedule, and by the
    /// numbers of their blocks in the grid.
    ///
    /// # Errors
    /// A job with invalid values, or the first fault of a thread.
    pub fn run(&self, job: &ShimJob, seed: u64) -> Result<Outcome, NoOutcome> {
        self.run_by(job, seed, false).map(|(outcome, _)| outcome)
    }

    /// Runs the launches of a job without a poll in vain, and returns the counts of each warp of a block, over all
    /// blocks. The last warp is the one that walks. Buffers are aligned, as those of an allocator are. The counts are the
    /// same for all seeds.
    ///
    /// # Errors
    /// A job with invalid values, or the first fault of a thread.
    pub fn count(&self, job: &ShimJob, seed: u64) -> Result<(Outcome, Vec<Counters>), NoOutcome> {
        self.run_by(job, seed, true)
    }

    fn run_by(
        &self,
        job: &ShimJob,
        seed: u64,
        counts: bool,
    ) -> Result<(Outcome, Vec<Counters>), NoOutcome> {
        let layout = self.staging.layout(job).map_err(NoOutcome::Job)?;
        let placement = Placement { devices: self.devices, nranks: job.schedule.nranks };
        let mut memory = Ranges::of(job, &layout, placement, (counts, self.staging));
        let mut counters = Vec::new();
        let mut trace = String::new();
        let buffers = memory.buffers(job);
        memory.write_tables(self.binds.is_none().then_some(&buffers));
        for repeat in 0..job.repeats {
            memory.fill(job);
            let seed = seed.wrapping_add(repeat.into());
            if let Some(binds) = &self.binds {
                let launches = bindings(binds, &memory, job, placement);
                let limits = Limits::DEFAULT;
                let assumed = (self.assumptions.clone(), counts);
                let state =
                    run(&mut memory, launches, (seed, limits), assumed).map_err(NoOutcome::Run)?;
                add_warps(&mut counters, state.counters);
            }
            if memory.control()[0] != 0 {
                break;
            }
            let mut launches = self.launches(&memory, job, &layout, placement);
            let mut limits = Limits::DEFAULT;
            if self.lacks_last {
                launches.retain(|launch| launch.device as usize + 1 < self.devices);
                limits = PATIENT;
            }
            let begins: Vec<bool> = launches.iter().map(|launch| launch.after.is_empty()).collect();
            let assumed = (self.assumptions.clone(), counts);
            let ran = run(&mut memory, launches, (seed, limits), assumed);
            let rank = |launch: u32, block: u32| {
                let device = begins[..=launch as usize].iter().filter(|first| **first).count() - 1;
                let nth = block / job.parts;
                if !begins[launch as usize] {
                    // The blocks that divide are those of ranks, and not of streams.
                    return placement.ranks(device).start + nth;
                }
                let group = placement.groups(device, &job.facts.groups).start + nth as usize;
                job.facts.groups.get(group).map_or(0, |group| group.rank.0)
            };
            let state = ran.map_err(|failure| NoOutcome::Run(of_ranks(failure, rank)))?;
            add_warps(&mut counters, state.counters);
            let record = state.variables.first().and_then(|of_launch| of_launch.get(trace::RECORD));
            if let Some(record) = record.filter(|_| job.trace && self.devices == 1) {
                trace = trace::text(record, &job.facts.groups, job.parts).ok_or_else(|| {
                    NoOutcome::Job(shim::Error::BadResult {
                        what: "a trace that ends within an op".into(),
                    })
                })?;
            }
        }
        let (control, outputs) = (memory.control(), memory.outputs(job));
        Ok((Outcome { aborted: control[0] != 0, control, outputs, trace }, counters))
    }

    /// The launches of a job: on each device the kernel, and behind it the kernel that divides, if there is one.
    fn launches<'a>(
        &'a self,
        memory: &Ranges,
        job: &ShimJob,
        layout: &GridLayout,
        placement: Placement,
    ) -> Vec<RankLaunch<'a>> {
        let mut launches = Vec::new();
        for device in 0..self.devices {
            let groups = placement.groups(device, &job.facts.groups).len();
            let first = launches.len();
            let parameters = bytes_of(memory.launch(job, device).words().into_iter());
            let mut add = |kernel: &'a str, blocks: usize, after| {
                launches.push(RankLaunch {
                    grid: [(blocks * layout.parts) as u32, 1, 1],
                    block: block_of(&self.module, kernel),
                    parameters: parameters.clone(),
                    device: device as u32,
                    after,
                    ..RankLaunch::new(&self.module, kernel)
                });
            };
            add(&self.kernel, groups, Vec::new());
            let divides = self.module.functions.iter().find(|function| {
                function.is_kernel && function.name.strip_suffix("_scale") == Some(&self.kernel)
            });
            if let Some(divides) = divides.filter(|_| job.facts.scale_outputs) {
                add(&divides.name, placement.ranks(device).len(), vec![first]);
            }
        }
        launches
    }
}

/// The launches that write the addresses of buffers into the table of each device.
fn bindings<'a>(
    binds: &'a Module,
    memory: &Ranges,
    job: &ShimJob,
    placement: Placement,
) -> Vec<RankLaunch<'a>> {
    let buffers = memory.buffers(job);
    let of = |device: usize| {
        batches(memory.launch(job, device).ranks, &buffers).map(move |call| (device, call))
    };
    let calls = (0..placement.devices).flat_map(of);
    calls
        .map(|(device, call)| RankLaunch {
            block: [BOUND_AT_ONCE as u32, 1, 1],
            parameters: bytes_of(call.words()),
            device: device as u32,
            ..RankLaunch::new(binds, BIND)
        })
        .collect()
}

/// Runs launches to their end under assumptions; without a poll in vain where they are counted.
fn run(
    memory: &mut Ranges,
    ranks: Vec<RankLaunch>,
    (seed, limits): (u64, Limits),
    (assumptions, counts): (Assumptions, bool),
) -> Result<FinalState, Failure> {
    let windows = std::mem::take(&mut memory.windows);
    let aliases = memory.aliases.clone();
    let launch = Run { seed, limits, assumptions, aliases, ..Run::new(ranks, windows) };
    let mut state = if counts { launch.run_patiently()? } else { launch.run()? };
    memory.windows = std::mem::take(&mut state.windows);
    Ok(state)
}

/// The threads of a block, for which the kernel was compiled.
fn block_of(module: &Module, kernel: &str) -> [u32; 3] {
    let function = module.function(kernel).map(|number| &module.functions[number]);
    function.and_then(|function| function.most_threads).unwrap_or([1; 3])
}

/// Adds the counts of each warp of a block to those of the warps with the same number.
fn add_warps(sums: &mut Vec<Counters>, launches: Vec<Vec<Counters>>) {
    for more in launches {
        sums.resize(sums.len().max(more.len()), Counters::default());
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
}

/// Gives the threads of a failure their ranks, which are a function of the launch and the block.
fn of_ranks(mut failure: Failure, rank: impl Fn(u32, u32) -> u32) -> Failure {
    if let Failure::Fault(fault) = &mut failure {
        let fault = &mut **fault;
        let mut threads: Vec<&mut Where> = fault.at.iter_mut().collect();
        match &mut fault.kind {
            FaultKind::Unordered { other, .. } => threads.push(other),
            FaultKind::Stuck(waiting) => threads.extend(waiting.iter_mut().map(|(at, _)| at)),
            _ => {}
        }
        for at in threads {
            at.rank = rank(at.rank, at.block);
        }
    }
    failure
}
