//! What the command takes. Values are read here, so that a wrong one is refused before any work is done.

use clap::{Args, Parser, Subcommand, ValueEnum};
use roundelay::{Collective, DType, Level, Options, ReduceOp};
use roundelay_core::schedule::demands::Resource;
use roundelay_core::verify;
use roundelay_core::verify::Signals;

use crate::bench::BenchFlags;
use crate::device::DeviceFlags;
use crate::executor::ExecutorFlags;
use crate::kernel::KernelFlags;
use crate::lints::LintFlags;
use crate::shell::{CompletionsFlags, ManFlags};
use crate::simulate::SimulateFlags;
pub(crate) use crate::values::{
    RankCounts, bytes, dtype, rank_count, rank_counts, reduce_op, setting, signals,
};
use crate::values::{at_least, budget, collective, collectives, count, level, whole};

/// Lines that can be pasted, and where to read on.
const EXAMPLES: &str = "\
Examples:
  roundelay list                                      what the library holds
  roundelay check RingAllReduce -n 2..=9              prove an algorithm of it
  roundelay check mine.coll                           prove your own, or hear what is wrong
  roundelay run mine.coll -n 8 --count 1M             run it, and compare every element
  roundelay bench RingAllReduce -n 8 -b 1K -e 64M -f 4
  roundelay simulate RingAllReduce --topology \"full_mesh(8, 25GB/s, 2us)\" --svg run.svg
  roundelay emit steps RingAllReduce -n 4             what goes between the ranks
  roundelay explain E0301                             what an error means, and what to do

roundelay help SUBCOMMAND lists the flags of one, with the values that they take.
The book is the folder book/ of the repository; book/src/tutorial/one_ring.md begins it.";

/// What is said of a topology. Apart from the flags, because the text is to be pasted into a shell as it is: without
/// backticks, and on a line of its own.
macro_rules! topology {
    ($what:literal) => {
        concat!(
            $what,
            ": a topology file of NCCL's (.xml), or a text such as\n",
            "\"full_mesh(8, 25GB/s, 2us) without (0, 1)\""
        )
    };
}

/// Collective algorithms as pages of step loops: proved, then run.
#[derive(Parser)]
#[command(name = "roundelay", version, max_term_width = 100)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Prove algorithms for some rank counts, or say what is wrong and where
    Check(CheckFlags),
    /// Run an algorithm on seeded random data and compare every element with a plain reference
    Run(RunFlags),
    /// Time algorithms as nccl-tests does, and compare them with the limit of the memory
    Bench(BenchFlags),
    /// Predict a run on a topology: its time, the load of the links, and what the ranks wait for
    Simulate(SimulateFlags),
    /// Print a source in canonical form, every comment kept
    Fmt(FmtFlags),
    /// Print an algorithm's source, or what it becomes: coll, rust, schedule, steps, cuda, ptx, hccl-cpp or ast
    Emit(EmitFlags),
    /// Contest-style executors: list, check, run, bench and score them
    Executor(ExecutorFlags),
    /// Say which signals of an algorithm are needed, and for what
    Signals(SignalsFlags),
    /// List the algorithms of a source, or of the library; with --why, by how long they would take
    List(ListFlags),
    /// Describe a topology: links, paths, rings, trees, and how fast any algorithm could be on it
    Topo(TopoFlags),
    /// Measure the constants of list --why on this machine
    Calibrate(CalibrateFlags),
    /// Explain the code of an error or a warning: an example, the message, the fix
    Explain(ExplainFlags),
    /// Print what a shell needs to complete subcommands and flags
    Completions(CompletionsFlags),
    /// Print the page of man for the command, or write those of all subcommands
    Man(ManFlags),
}

/// Where algorithms come from.
#[derive(Args)]
pub(crate) struct SourceFlags {
    /// A .coll file, - for standard input, or the name of an algorithm of the library
    pub(crate) source: String,
    /// Which algorithm of the source [default: all, or the only one where the subcommand takes one]
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,
    /// Value of a parameter, such as ring=1,2,3,0 or root=2; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) topology: TopologyFlags,
    #[command(flatten)]
    pub(crate) lints: LintFlags,
}

/// What the ranks are joined by.
#[derive(Args)]
pub(crate) struct TopologyFlags {
    #[arg(long, value_name = "FILE|TEXT", help = topology!("What the ranks run on"))]
    pub(crate) topology: Option<String>,
    /// The GPUs to assume if a topology file has none, such as sm=80,nvlinks=12
    #[arg(long, value_name = "ASSUMPTION")]
    pub(crate) assume: Option<String>,
}

#[derive(Args)]
pub(crate) struct CheckFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Rank counts: 8, 2..=33, 2..9, or a list such as 2,4,8 [default: those that the source names, or all ranks of the
    /// topology, or 1..=9]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    /// How the runtime's signals behave: counting, binary (a flag: a second post before the wait is lost), link-shared
    /// (all streams of a rank share the signals of a link), or binary,link-shared
    #[arg(long, default_value = "counting", value_parser = signals)]
    pub(crate) signals: Signals,
    /// The most of a resource that an algorithm may use: scratch (units of the count, of a rank), streams (of a rank),
    /// notifies (of a link), ports (peers of a rank in one step) or fifo (credits that a link needs), such as
    /// streams=2,notifies=2
    #[arg(long = "budget", value_name = "RESOURCE=MOST", value_delimiter = ',', value_parser = budget)]
    pub(crate) budgets: Vec<(Resource, u64)>,
    /// Require the same order of reduction on every rank
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// Print the time of each stage of the proof, the ops per second and the peak memory
    #[arg(long)]
    pub(crate) stats: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Rank counts: 8, 2..=33, 2..9, or a list such as 2,4,8 [default: 8]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    /// Count of elements, as NCCL's calls take it (for an AllReduce, the elements of each rank), such as 1000, 64K, 1M
    /// or 1e6; K, M and G are powers of 1024, as in sizes
    #[arg(long, default_value = "1M", value_parser = count)]
    pub(crate) count: u64,
    /// Element type: i8 u8 i32 u32 i64 u64 f16 bf16 f32 f64
    #[arg(long, default_value = "f32", value_parser = dtype)]
    pub(crate) dtype: DType,
    /// Reduce op: sum prod min max avg
    #[arg(long, default_value = "sum", value_parser = reduce_op)]
    pub(crate) op: ReduceOp,
    /// Input and output share memory, by NCCL's rules
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Seed of the random inputs
    #[arg(long, default_value_t = 1, value_parser = at_least(0_u64))]
    pub(crate) seed: u64,
    /// Timed runs, after one to warm up
    #[arg(short = 'I', long, value_name = "N", visible_alias = "iters", default_value_t = 5, value_parser = at_least(1_u32))]
    pub(crate) iterations: u32,
    #[command(flatten)]
    pub(crate) engine: EngineFlags,
    #[command(flatten)]
    pub(crate) device: DeviceFlags,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

/// How plans are run.
#[derive(Args)]
pub(crate) struct EngineFlags {
    /// Worker threads, up to 1024 [default: one a core]
    #[arg(long, value_name = "N", value_parser = whole(1..=Options::MOST_WORKERS))]
    pub(crate) workers: Option<u32>,
    /// How much the optimizer may change: 0 nothing, 1 drops signals, 2 also fuses moves
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = Level::O2, value_parser = level)]
    pub(crate) level: Level,
    /// Let the optimizer change the order of reductions; results may differ in the last bits
    #[arg(long)]
    pub(crate) reassociate: bool,
}

impl EngineFlags {
    pub(crate) fn options(&self) -> Options {
        let options = Options::new().workers(self.workers.unwrap_or(0));
        options.level(self.level).reassociate(self.reassociate)
    }
}

#[derive(Args)]
pub(crate) struct TopoFlags {
    #[arg(value_name = "FILE|TEXT", help = topology!("What to describe"))]
    pub(crate) topology: String,
    /// The GPUs to assume if a topology file has none, such as sm=80,nvlinks=12
    #[arg(long, value_name = "ASSUMPTION")]
    pub(crate) assume: Option<String>,
    /// The root of rooted collectives and of the tree
    #[arg(long, value_name = "RANK", default_value_t = 0, value_parser = at_least(0_u32))]
    pub(crate) root: u32,
    /// Write a picture, in addition to what is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value_t = TopoFormat::Human)]
    pub(crate) format: TopoFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopoFormat {
    /// Tables, for people
    Human,
    /// One document, for programs
    Json,
    /// A picture
    Svg,
    /// A topology file for NCCL
    Xml,
}

#[derive(Args)]
pub(crate) struct FmtFlags {
    /// .coll files, or - for standard input
    #[arg(required = true)]
    pub(crate) sources: Vec<String>,
    /// Write the files instead of printing
    #[arg(long, conflicts_with = "check")]
    pub(crate) write: bool,
    /// Say which files are not in canonical form, and exit with 1 if there are any
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Args)]
pub(crate) struct EmitFlags {
    /// What to print
    #[arg(value_enum)]
    pub(crate) what: Emit,
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Rank counts, for schedule, steps, cuda and ptx: 4, 2..=9, or a list such as 2,4,8 [default: 4]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    #[command(flatten)]
    pub(crate) kernel: KernelFlags,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Emit {
    /// An algorithm in canonical form, with its comments, as a file of its own
    Coll,
    /// The Rust that the macro expands to
    Rust,
    /// The flat schedule of one rank count
    Schedule,
    /// What goes between the ranks, one line for each step
    Steps,
    /// The syntax tree
    Ast,
    /// A GPU's kernel
    Cuda,
    /// The same, compiled
    Ptx,
    /// An executor as C++ in the form of the contest
    HcclCpp,
}

#[derive(Args)]
pub(crate) struct SignalsFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Rank counts: 8, 2..=33, 2..9, or a list such as 2,4,8 [default: 8]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    /// How the ranks are called; if one call runs all ranks, it waits for the last one by itself
    #[arg(long, value_enum, default_value_t = Callers::Each)]
    pub(crate) callers: Callers,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Callers {
    /// A call for each rank
    Each,
    /// One call for all ranks
    One,
}

impl Callers {
    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::One => "one",
        }
    }
}

impl From<Callers> for verify::Callers {
    fn from(callers: Callers) -> Self {
        match callers {
            Callers::Each => Self::Each,
            Callers::One => Self::One,
        }
    }
}

#[derive(Args)]
pub(crate) struct ListFlags {
    /// A .coll file, - for standard input, or the name of an algorithm or of a collective [default: the library]
    #[arg(value_name = "SOURCE|COLLECTIVE")]
    pub(crate) source: Option<String>,
    #[arg(long, value_parser = collective, help = format!("Only algorithms for this collective: {}", collectives()))]
    pub(crate) collective: Option<Collective>,
    /// The rank count to show numbers for [default: 8, or all ranks of the topology]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_count)]
    pub(crate) nranks: Option<u32>,
    /// Rank the library's algorithms for a collective by their predicted time, and those of SOURCE beside them
    #[arg(long)]
    pub(crate) why: bool,
    /// With --why: size in bytes as nccl-tests counts it, such as 4096, 64K or 1MiB [default: 1MiB]
    #[arg(long, requires = "why", value_parser = bytes)]
    pub(crate) bytes: Option<u64>,
    #[arg(long, requires = "why", value_name = "FILE|TEXT")]
    #[arg(help = topology!("With --why: what the ranks run on"))]
    pub(crate) topology: Option<String>,
    /// With --topology: the GPUs to assume if a topology file has none, such as sm=80,nvlinks=12
    #[arg(long, requires = "topology", value_name = "ASSUMPTION")]
    pub(crate) assume: Option<String>,
    /// With --why: a file of constants that calibrate wrote [default: those measured of the host engine]
    #[arg(long, requires = "why", value_name = "FILE")]
    pub(crate) costs: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct CalibrateFlags {
    /// Write the constants to a file, for list --why --costs FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<String>,
    /// Worker threads, up to 1024 [default: one a core]
    #[arg(long, value_name = "N", value_parser = whole(1..=Options::MOST_WORKERS))]
    pub(crate) workers: Option<u32>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct ExplainFlags {
    /// A code such as E0301 or W0002 [default: a list of all]
    pub(crate) code: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[value(alias = "text")]
    Human,
    /// For programs
    Json,
}
