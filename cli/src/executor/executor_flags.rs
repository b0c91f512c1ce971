//! The flags of `roundelay executor`.

use clap::{Args, Subcommand, ValueEnum};
use roundelay::{DType, ReduceOp};
use roundelay_core::executor::Executor;
use roundelay_core::verify::Signals;
use roundelay_export::contest::operator::Profile;
use roundelay_runner::executor::ExecutorData;
use roundelay_synthesis::executor::Links;

use crate::flags::EngineFlags;
use crate::lints::LintFlags;
use crate::report::Format;
use crate::synthesize::MachineFlags;
use crate::values::{
    RefusedValue, at_least, bytes, dtype, profile, rate, reduce_op, signals, time,
};

#[derive(Args)]
pub(crate) struct ExecutorFlags {
    #[command(subcommand)]
    pub(super) command: ExecutorCommand,
}

#[derive(Subcommand)]
pub(super) enum ExecutorCommand {
    /// List the executors of a file, or of the library
    List(ListFlags),
    /// Compile an executor: prove every size class and say what it takes
    Check(CheckFlags),
    /// Run an executor on seeded random data and compare every element with a plain reference
    Run(RunFlags),
    /// Time an executor over sizes
    Bench(BenchFlags),
    /// Judge an executor as the contest does: the analyser's verdict, then bandwidths and their mean
    Score(ScoreFlags),
    /// Find an executor for a mesh with dead links: a page with an algorithm for each range of sizes
    Synthesize(SynthesisFlags),
}

#[derive(Args)]
pub(super) struct ListFlags {
    /// A .coll file [default: the library]
    #[arg(value_name = "FILE")]
    pub(super) source: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

/// Which executor.
#[derive(Args)]
pub(crate) struct Which {
    /// A registered executor, or a .coll file
    #[arg(value_name = "NAME|FILE")]
    pub(super) source: String,
    /// Which executor of the file, if the file holds several
    #[arg(long, value_name = "NAME")]
    pub(super) executor: Option<String>,
    #[command(flatten)]
    pub(super) lints: LintFlags,
}

impl Which {
    /// Names the executor of a page for another command.
    pub(crate) fn new(source: &str, executor: Option<&str>, lints: LintFlags) -> Self {
        Self { source: source.to_owned(), executor: executor.map(str::to_owned), lints }
    }

    /// Returns the name or the file, as it is written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }
}

/// Which executor, and how its answer is printed.
#[derive(Args)]
pub(super) struct AskedExecutor {
    #[command(flatten)]
    pub(super) which: Which,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Args)]
pub(super) struct CheckFlags {
    #[command(flatten)]
    pub(super) asked: AskedExecutor,
    /// How the runtime's signals behave: counting, binary, link-shared, or binary,link-shared
    #[arg(long, default_value = "counting", value_parser = signals)]
    pub(super) signals: Signals,
    #[command(flatten)]
    pub(super) interface: InterfaceFlags,
}

/// The calls that an executor is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Interface {
    /// The class of the contest, whose links have two flags each way
    #[default]
    Contest,
    /// Operators of one's own, whose channels have up to 64 notifies
    Hcomm,
}

#[derive(Args)]
pub(super) struct InterfaceFlags {
    /// The calls that the executor is written for
    #[arg(long, value_enum, default_value_t)]
    pub(super) interface: Interface,
    #[command(flatten)]
    pub(super) profile: ProfileFlags,
}

#[derive(Args)]
pub(crate) struct ProfileFlags {
    /// The products that an operator is for: a2, a3 or 350
    #[arg(long, default_value = "a2", value_parser = profile)]
    pub(crate) profile: Profile,
}

/// The data of a run, and how the run checks it.
#[derive(Args)]
pub(super) struct DataFlags {
    /// Element type: i8 u8 i32 u32 i64 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2
    #[arg(long, default_value = "f32", value_parser = dtype)]
    pub(super) dtype: DType,
    /// Reduce op: sum prod min max avg
    #[arg(long, default_value = "sum", value_parser = reduce_op)]
    pub(super) op: ReduceOp,
    /// Seed of the random inputs
    #[arg(long, default_value_t = 1, value_parser = at_least(0_u64))]
    pub(super) seed: u64,
    /// Size of a CCL buffer, such as 1MiB, instead of the executor's
    #[arg(long, value_name = "SIZE", value_parser = ccl_buffer)]
    pub(super) ccl_buffer: Option<u64>,
    #[command(flatten)]
    pub(super) engine: EngineFlags,
}

#[derive(Args)]
pub(super) struct RunFlags {
    #[command(flatten)]
    pub(super) asked: AskedExecutor,
    /// Sizes in bytes as nccl-tests counts them, such as 1K,1M,400MB+4 [default: for each size class its smallest size,
    /// one between, and the largest that can be tested]
    #[arg(long, value_delimiter = ',', value_parser = size)]
    pub(super) sizes: Vec<u64>,
    /// Input and output share memory, by NCCL's rules
    #[arg(long)]
    pub(super) in_place: bool,
    #[command(flatten)]
    pub(super) data: DataFlags,
}

#[derive(Args)]
pub(super) struct BenchFlags {
    #[command(flatten)]
    pub(super) asked: AskedExecutor,
    /// Sizes in bytes as nccl-tests counts them
    #[arg(long, value_delimiter = ',', value_parser = size, default_value = "1K,16K,256K,4M,64M")]
    pub(super) sizes: Vec<u64>,
    /// Timed runs, after one to warm up
    #[arg(short = 'I', long, value_name = "N", visible_alias = "iters", default_value_t = 20, value_parser = at_least(1_u32))]
    pub(super) iterations: u32,
    #[command(flatten)]
    pub(super) data: DataFlags,
}

/// The links of a simulation.
#[derive(Args, Clone, Copy)]
pub(super) struct LinkFlags {
    /// Bandwidth of a link in one direction, if the topology has none
    #[arg(long, value_name = "RATE", default_value = "25GB/s", value_parser = rate)]
    pub(super) bandwidth: f64,
    /// Latency of a link, if the topology has none
    #[arg(long, value_name = "TIME", default_value = "2us", value_parser = time)]
    pub(super) latency: f64,
}

#[derive(Args)]
pub(super) struct ScoreFlags {
    #[command(flatten)]
    pub(super) asked: AskedExecutor,
    /// Sizes in bytes as nccl-tests counts them, such as 512K,512M,400MB+4
    #[arg(long, value_delimiter = ',', value_parser = size, default_value = "1K,1M,1G")]
    pub(super) sizes: Vec<u64>,
    #[command(flatten)]
    pub(super) links: LinkFlags,
    #[command(flatten)]
    pub(super) interface: InterfaceFlags,
    /// Only simulate: run nothing on this machine
    #[arg(long)]
    pub(super) simulate_only: bool,
    /// Timed runs, after one to warm up
    #[arg(short = 'I', long, value_name = "N", visible_alias = "iters", default_value_t = 5, value_parser = at_least(1_u32))]
    pub(super) iterations: u32,
    #[command(flatten)]
    pub(super) data: DataFlags,
}

#[derive(Args)]
pub(super) struct SynthesisFlags {
    #[command(flatten)]
    pub(super) machine: MachineFlags,
    /// Sizes in bytes as nccl-tests counts them, at which executors are compared, such as 512K,512M,400MB+4
    #[arg(long, value_delimiter = ',', value_parser = size, default_value = "1K,1M,1G")]
    pub(super) sizes: Vec<u64>,
    #[command(flatten)]
    pub(super) links: LinkFlags,
    /// How to print: the page, or its figures and the page as JSON
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

impl LinkFlags {
    pub(super) fn links(self) -> Links {
        Links { bandwidth: self.bandwidth, latency: self.latency }
    }
}

impl DataFlags {
    /// Returns the data of a run.
    pub(super) fn data(&self) -> ExecutorData {
        let Self { dtype, op, seed, ccl_buffer, ref engine } = *self;
        ExecutorData { dtype, op, seed, ccl_buffer, options: engine.options() }
    }

    /// Returns the bytes of a CCL buffer.
    pub(super) fn of_ccl(&self, executor: &Executor) -> u64 {
        self.ccl_buffer.unwrap_or(executor.ccl_buffer)
    }
}

/// Reads a size, or a sum of sizes such as `400MB+4`.
fn size(text: &str) -> Result<u64, RefusedValue> {
    let add = |sum: u64, part: &str| {
        let sum = sum.checked_add(bytes(part.trim())?);
        sum.ok_or_else(|| RefusedValue::new("bytes are beyond 64 bits"))
    };
    text.split('+').try_fold(0, add)
}

fn ccl_buffer(text: &str) -> Result<u64, RefusedValue> {
    match bytes(text)? {
        0 => {
            Err(RefusedValue::new("bytes are no buffer").help("give a byte or more, such as 1MiB"))
        }
        size => Ok(size),
    }
}
