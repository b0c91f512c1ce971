//! Compiled kernels without a GPU: an interpreter executes the PTX that NVRTC makes, on the memory of a [`ShimJob`].

use std::fmt;

use roundelay_ptx::machine::{
    Counters, Failure, FaultKind, Launch as Run, Limits, RankLaunch, Where, Window,
};
use roundelay_ptx::program::Module;

use crate::grid::{GridLayout, Launch, RankMemory};
use crate::shim::{self, Outcome, ShimJob};

/// The address of the first range of memory.
const FIRST: u64 = 1 << 20;
/// The bytes at least between two ranges, and the alignment of each.
const APART: u64 = 256;
/// The byte that memory holds before it is written.
const FILL: u8 = 0xa5;

/// A kernel for one launch for all ranks, as NVRTC compiled it.
#[derive(Clone, Debug)]
pub struct Interpreted {
    module: Module,
    kernel: String,
}

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
        Ok(Self { module: Module::parse(ptx)?, kernel: kernel.to_owned() })
    }

    /// Runs the launches of a job, with the choices of a seed. The job's number of threads is that of the shim; a block
    /// has the number for which the kernel was compiled.
    ///
    /// # Errors
    /// A job with invalid values, or the first fault of a thread.
    pub fn run(&self, job: &ShimJob, seed: u64) -> Result<Outcome, NoOutcome> {
        self.run_counted(job, seed).map(|(outcome, _)| outcome)
    }

    /// Runs the launches of a job as [`Self::run`] does, and returns the counts of the machine, too. A fault names
    /// threads by the ranks of the schedule, and by the numbers of their blocks in the grid.
    ///
    /// # Errors
    /// A job with invalid values, or the first fault of a thread.
    pub fn run_counted(&self, job: &ShimJob, seed: u64) -> Result<(Outcome, Counters), NoOutcome> {
        let layout = job.layout().map_err(NoOutcome::Job)?;
        let mut memory = Ranges::of(job, &layout);
        let mut counters = Counters::default();
        let scale = format!("{}_scale", self.kernel);
        let kernels = [Some(&self.kernel), job.facts.scale_outputs.then_some(&scale)];
        for repeat in 0..job.repeats {
            memory.fill(job);
            let launch = memory.launch(job);
            for kernel in kernels.into_iter().flatten() {
                let seed = seed.wrapping_add(repeat.into());
                if memory.control()[0] == 0 {
                    let ran = memory.run(self, kernel, launch, &layout, seed);
                    let rank = |block: u32| match block / job.parts {
                        // The blocks that divide are those of ranks, and not of streams.
                        rank if *kernel == scale => rank,
                        group => job.facts.groups.get(group as usize).map_or(0, |g| g.rank.0),
                    };
                    counters += ran.map_err(|failure| NoOutcome::Run(of_ranks(failure, rank)))?;
                }
            }
        }
        let (control, outputs) = (memory.control(), memory.outputs(job));
        let outcome = Outcome { aborted: control[0] != 0, control, outputs, trace: String::new() };
        Ok((outcome, counters))
    }
}

/// Gives the threads of a failure their ranks: the machine runs one launch for all of them.
fn of_ranks(mut failure: Failure, rank: impl Fn(u32) -> u32) -> Failure {
    if let Failure::Fault(fault) = &mut failure {
        let fault = &mut **fault;
        let mut threads: Vec<&mut Where> = fault.at.iter_mut().collect();
        match &mut fault.kind {
            FaultKind::Unordered { other, .. } => threads.push(other),
            FaultKind::Stuck(waiting) => threads.extend(waiting.iter_mut().map(|(at, _)| at)),
            _ => {}
        }
        for at in threads {
            at.rank = rank(at.block);
        }
    }
    failure
}

/// The memory of a launch, as ranges of addresses.
struct Ranges {
    windows: Vec<Window>,
    facts: usize,
    table: usize,
    control: usize,
    work: usize,
    steps: usize,
    ranks: Vec<RankRanges>,
}

/// The ranges of a rank: of its buffers, of which the input's is the output's in place, and of its own memory.
struct RankRanges {
    input: usize,
    output: usize,
    scratch: usize,
    posted: usize,
    waited: usize,
}

impl Ranges {
    fn of(job: &ShimJob, layout: &GridLayout) -> Self {
        let mut windows = Vec::new();
        let mut next = FIRST;
        let mut add = |name: String, bytes: Vec<u8>, shift: usize| {
            let address = next + shift as u64;
            next = (address + bytes.len() as u64 + APART).next_multiple_of(APART);
            windows.push(Window { name, address, bytes });
            windows.len() - 1
        };
        let words = |words: usize| vec![0; 8 * words];
        let facts = add("the facts".into(), bytes_of(job.facts.words.iter().map(|w| *w as u64)), 0);
        let nranks = job.schedule.nranks as usize;
        let table = add("the table of ranks".into(), words(5 * nranks), 0);
        let control = add("the control block".into(), words(layout.control_words), 0);
        let ctas = layout.groups * layout.parts;
        let work = add("the work of blocks".into(), words(ctas * layout.work_words), 0);
        let steps = add("the steps of links".into(), words(layout.steps_words), 0);
        let mut ranks = Vec::new();
        for (rank, buffers) in job.buffers().enumerate() {
            // No kernel may rely on more than the alignment of an element.
            let shift = rank % 2 * job.element_size;
            let mut named =
                |what: &str, bytes, shift| add(format!("rank {rank}'s {what}"), bytes, shift);
            let (input, output) = if job.in_place {
                let both = named("buffer", vec![FILL; buffers.shared], shift);
                (both, both)
            } else {
                (
                    named("input", vec![FILL; buffers.input], shift),
                    named("output", vec![FILL; buffers.output], shift),
                )
            };
            ranks.push(RankRanges {
                input,
                output,
                scratch: named("scratch", vec![FILL; layout.scratch_bytes], 0),
                posted: named("counters of posts", words(layout.posted_words), 0),
                waited: named("counters of waits", words(layout.waited_words), 0),
            });
        }
        let mut ranges = Self { windows, facts, table, control, work, steps, ranks };
        let table = ranges.memories(job).into_iter().flat_map(RankMemory::words);
        ranges.windows[ranges.table].bytes = bytes_of(table);
        ranges
    }

    fn address(&self, window: usize) -> u64 {
        self.windows[window].address
    }

    fn memories(&self, job: &ShimJob) -> Vec<RankMemory> {
        let offsets = job.buffers().map(|buffers| {
            if job.in_place { (buffers.input_at, buffers.output_at) } else { (0, 0) }
        });
        let ranks = self.ranks.iter().zip(offsets);
        ranks
            .map(|(rank, (input_at, output_at))| RankMemory {
                input: self.address(rank.input) + input_at as u64,
                output: self.address(rank.output) + output_at as u64,
                scratch: self.address(rank.scratch),
                posted: self.address(rank.posted),
                waited: self.address(rank.waited),
            })
            .collect()
    }

    /// Sets the memory that each launch finds anew: inputs, outputs, and the words of blocks.
    fn fill(&mut self, job: &ShimJob) {
        self.windows[self.work].bytes.fill(FILL);
        for ((rank, buffers), input) in self.ranks.iter().zip(job.buffers()).zip(job.inputs) {
            self.windows[rank.output].bytes.fill(FILL);
            let at = if job.in_place { buffers.input_at } else { 0 };
            self.windows[rank.input].bytes[at..at + input.len()].copy_from_slice(input);
        }
    }

    fn launch(&self, job: &ShimJob) -> Launch {
        Launch {
            facts: self.address(self.facts),
            ranks: self.address(self.table),
            control: self.address(self.control),
            work: self.address(self.work),
            steps: self.address(self.steps),
            count: job.count,
            parts: job.parts.into(),
            first_group: 0,
            poll_limit_ns: u64::try_from(job.poll_limit.as_nanos()).unwrap_or(u64::MAX),
            finish_scale: job.facts.scale_outputs.into(),
        }
    }

    /// Runs one kernel to its end.
    fn run(
        &mut self,
        interpreted: &Interpreted,
        kernel: &str,
        launch: Launch,
        layout: &GridLayout,
        seed: u64,
    ) -> Result<Counters, Failure> {
        let module = &interpreted.module;
        let function = module.function(kernel).map(|number| &module.functions[number]);
        let block = function.and_then(|function| function.most_threads).unwrap_or([1; 3]);
        let rank = RankLaunch {
            module,
            kernel,
            grid: [(layout.groups * layout.parts) as u32, 1, 1],
            block,
            parameters: bytes_of(launch.words().into_iter()),
            dynamic_shared: 0,
        };
        let windows = std::mem::take(&mut self.windows);
        let run = Run { ranks: vec![rank], windows, seed, limits: Limits::default() };
        let outcome = run.run()?;
        self.windows = outcome.windows;
        Ok(outcome.counters.into_iter().fold(Counters::default(), |sum, of_rank| sum + of_rank))
    }

    fn control(&self) -> Vec<u64> {
        let words = self.windows[self.control].bytes.chunks_exact(8);
        words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()
    }

    fn outputs(&self, job: &ShimJob) -> Vec<Vec<u8>> {
        let ranks = self.ranks.iter().zip(job.buffers());
        ranks
            .map(|(rank, buffers)| {
                let at = if job.in_place { buffers.output_at } else { 0 };
                self.windows[rank.output].bytes[at..at + buffers.output].to_vec()
            })
            .collect()
    }
}

fn bytes_of(words: impl Iterator<Item = u64>) -> Vec<u8> {
    words.flat_map(u64::to_le_bytes).collect()
}
