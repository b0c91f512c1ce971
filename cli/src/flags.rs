//! What the command takes. Values are read here, so that a wrong one is refused before any work is done.

use std::ops::RangeInclusive;

use clap::{Args, Parser, Subcommand, ValueEnum};
use roundelay::{DType, Level, Options, ReduceOp};
use roundelay_core::diagnostics::Code;
use roundelay_core::optimize;
use roundelay_core::schedule::demands::Resource;
use roundelay_core::verify::Signals;

use crate::bench::BenchFlags;
use crate::device::DeviceFlags;
use crate::executor::ExecutorFlags;
use crate::kernel::KernelFlags;
use crate::lints::LintFlags;
use crate::simulate::SimulateFlags;

/// Collective algorithms as pages of step loops: proved, then run.
#[derive(Parser)]
#[command(name = "roundelay", version, about, max_term_width = 100)]
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
    /// Time algorithms as nccl-tests does, beside the least that memory lets any take
    Bench(BenchFlags),
    /// Say what a run would take on a topology that is not here: time, links, and what was waited for
    Simulate(SimulateFlags),
    /// Print a source in canonical form, every comment kept
    Fmt(FmtFlags),
    /// Print an algorithm's source, or what it becomes: coll, rust, schedule, steps, cuda, ptx, hccl-cpp or ast
    Emit(EmitFlags),
    /// Contest-style executors: list, check, run, bench and score them
    Executor(ExecutorFlags),
    /// Say which signals of an algorithm are needed, and for what; others imply the rest
    Signals(SignalsFlags),
    /// List the algorithms of a source, or of the library; with --why, by how long they would take
    List(ListFlags),
    /// Describe a topology: links, paths, rings, trees, and how fast any algorithm could be on it
    Topo(TopoFlags),
    /// Measure the constants of `list --why` on this machine
    Calibrate(CalibrateFlags),
    /// Explain the code of an error or a warning: an example, the message, the fix
    Explain(ExplainFlags),
}

/// Where algorithms come from.
#[derive(Args)]
pub(crate) struct SourceFlags {
    /// A `.coll` file, `-` for standard input, or the name of an algorithm of the library
    pub(crate) source: String,
    /// Which algorithm of the source (all of them, unless the command needs one)
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
    /// What the ranks run on: a text such as "`full_mesh(8, 25GB/s, 2us) without (0, 1)`", or a topology
    /// file of NCCL's (.xml)
    #[arg(long, value_name = "FILE|TEXT")]
    pub(crate) topology: Option<String>,
    /// What to take a topology file without GPUs for, such as sm=80,nvlinks=12
    #[arg(long, value_name = "ASSUMPTION")]
    pub(crate) assume: Option<String>,
}

#[derive(Args)]
pub(crate) struct CheckFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Rank counts: `8`, `2..=33`, `2..9`, or a list such as `2,4,8`; by default those of `#[verify]`, or all
    /// ranks of the topology, or 1..=9
    #[arg(long, value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    /// How the runtime's signals behave: counting, binary (a flag: a second post before the wait is lost),
    /// link-shared (all streams of a rank share a link's), or binary,link-shared
    #[arg(long, default_value = "counting", value_parser = signals)]
    pub(crate) signals: Signals,
    /// What there is of a resource: scratch (units of the count a rank), streams (a rank), notifies (a link),
    /// ports (peers a rank and step) or fifo (credits a link that are needed), such as streams=2,notifies=2
    #[arg(long = "budget", value_name = "RESOURCE=MOST", value_delimiter = ',', value_parser = budget)]
    pub(crate) budgets: Vec<(Resource, u64)>,
    /// Demand the same order of reduction on every rank
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// Say what the proof cost: time of each stage, ops a second, peak memory
    #[arg(long)]
    pub(crate) stats: bool,
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Rank counts: `8`, `2..=33`, or a list such as `2,4,8`
    #[arg(long, default_value = "8", value_parser = rank_counts)]
    pub(crate) nranks: RankCounts,
    /// Elements a unit, as NCCL counts (for an `AllReduce`, elements a rank)
    #[arg(long, default_value_t = 1 << 20)]
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
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Timed runs, after one to warm up
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iterations: u32,
    #[command(flatten)]
    pub(crate) engine: EngineFlags,
    #[command(flatten)]
    pub(crate) device: DeviceFlags,
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

/// How plans are run.
#[derive(Args)]
pub(crate) struct EngineFlags {
    /// Worker threads; the default is one a core
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(Options::MOST_WORKERS)))]
    pub(crate) workers: Option<u32>,
    /// How much of the schedules may be written otherwise: 0 nothing, 1 drops signals, 2 fuses moves too
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = Level::O2)]
    pub(crate) level: Level,
    /// Let the optimizer change how reductions nest; results may differ in the last bits
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
    /// A text such as "`full_mesh(8, 25GB/s, 2us) without (0, 1)`", or a topology file of NCCL's (.xml)
    #[arg(value_name = "FILE|TEXT")]
    pub(crate) topology: String,
    /// What to take a topology file without GPUs for, such as sm=80,nvlinks=12
    #[arg(long, value_name = "ASSUMPTION")]
    pub(crate) assume: Option<String>,
    /// The root of rooted collectives and of the tree
    #[arg(long, default_value_t = 0)]
    pub(crate) root: u32,
    /// What to print: tables, one JSON document, a picture, or a topology file for NCCL
    #[arg(long, value_enum, default_value_t = TopoFormat::Human)]
    pub(crate) format: TopoFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopoFormat {
    Human,
    Json,
    Svg,
    Xml,
}

#[derive(Args)]
pub(crate) struct FmtFlags {
    /// `.coll` files, or `-` for standard input
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
    /// Rank count, for `schedule`, `steps`, `cuda` and `ptx`
    #[arg(long, default_value = "4", value_parser = rank_counts)]
    pub(crate) nranks: RankCounts,
    #[command(flatten)]
    pub(crate) kernel: KernelFlags,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Emit {
    /// An algorithm in canonical form, comments and all: a file of its own
    Coll,
    /// The Rust that the macro expands to
    Rust,
    /// The flat schedule of one rank count
    Schedule,
    /// What goes between ranks, a line a step
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
    /// Rank counts: `8`, `2..=33`, or a list such as `2,4,8`
    #[arg(long, default_value = "8", value_parser = rank_counts)]
    pub(crate) nranks: RankCounts,
    /// Who brings the ranks in: a call for each of them, or one for all, which orders a run's ends by itself
    #[arg(long, value_enum, default_value_t = Callers::Each)]
    pub(crate) callers: Callers,
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Callers {
    Each,
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

impl From<Callers> for optimize::Callers {
    fn from(callers: Callers) -> Self {
        match callers {
            Callers::Each => Self::Each,
            Callers::One => Self::One,
        }
    }
}

#[derive(Args)]
pub(crate) struct ListFlags {
    /// A `.coll` file, `-`, or the name of an algorithm or a collective; the whole library if not given
    #[arg(value_name = "SOURCE|COLLECTIVE")]
    pub(crate) source: Option<String>,
    /// Only algorithms for this collective, such as `AllReduce`
    #[arg(long)]
    pub(crate) collective: Option<String>,
    /// The rank count to show numbers for; 8, or all ranks of the topology
    #[arg(long, value_parser = rank_count)]
    pub(crate) nranks: Option<u32>,
    /// Rank the library's algorithms for a collective by their predicted time
    #[arg(long)]
    pub(crate) why: bool,
    /// With --why: size in bytes as nccl-tests counts it, such as 4096, 64K or 1MiB; 1MiB if not given
    #[arg(long, requires = "why", value_parser = bytes)]
    pub(crate) bytes: Option<u64>,
    /// With --why: what the ranks run on, a text such as "`full_mesh(8, 25GB/s, 2us)`" or a topology file of
    /// NCCL's (.xml)
    #[arg(long, requires = "why", value_name = "FILE|TEXT")]
    pub(crate) topology: Option<String>,
    /// With --topology: what to take a topology file without GPUs for, such as sm=80,nvlinks=12
    #[arg(long, requires = "topology", value_name = "ASSUMPTION")]
    pub(crate) assume: Option<String>,
    /// With --why: a file of constants, instead of those measured of the host engine
    #[arg(long, requires = "why", value_name = "FILE")]
    pub(crate) costs: Option<String>,
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct CalibrateFlags {
    /// Write the constants to a file, for `list --why --costs FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<String>,
    /// Worker threads; the default is one a core
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(Options::MOST_WORKERS)))]
    pub(crate) workers: Option<u32>,
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct ExplainFlags {
    /// A code such as E0301 or W0002; all of them if not given
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

/// Rank counts as written, and whether one was named (then a refusal is an error).
#[derive(Clone, Debug)]
pub(crate) struct RankCounts {
    pub(crate) counts: Vec<u32>,
    pub(crate) named: bool,
}

impl RankCounts {
    /// One count, as if named.
    pub(crate) fn one(nranks: u32) -> Self {
        Self { counts: vec![nranks], named: true }
    }

    /// A range, in which counts may be refused.
    pub(crate) fn range(counts: RangeInclusive<u32>) -> Self {
        Self { counts: counts.collect(), named: false }
    }
}

const MOST_RANKS: u32 = 1 << 16;

pub(crate) fn rank_counts(text: &str) -> Result<RankCounts, String> {
    let bad = |why: &str| format!("[{}] {why}", Code::BadFlag);
    let count = |text: &str| {
        text.trim()
            .parse::<u32>()
            .map_err(|_| bad("rank counts are such as `8`, `2..=33`, `2..9` or `2,4,8`"))
    };
    let (counts, named) = match text.split_once("..") {
        Some((lo, hi)) => {
            let range: RangeInclusive<u32> = match hi.strip_prefix('=') {
                Some(hi) => count(lo)?..=count(hi)?,
                None => count(lo)?..=count(hi)?.saturating_sub(1),
            };
            if range.end().saturating_sub(*range.start()) > MOST_RANKS {
                return Err(format!("[{}] at most {MOST_RANKS} ranks", Code::NoRanks));
            }
            (range.collect::<Vec<_>>(), false)
        }
        None => (text.split(',').map(count).collect::<Result<Vec<_>, _>>()?, true),
    };
    if counts.is_empty() {
        return Err(bad("the range of rank counts is empty"));
    }
    if counts.iter().any(|n| *n == 0 || *n > MOST_RANKS) {
        return Err(format!("[{}] a rank count is in 1..={MOST_RANKS}", Code::NoRanks));
    }
    Ok(RankCounts { counts, named })
}

pub(crate) fn rank_count(text: &str) -> Result<u32, String> {
    match rank_counts(text)?.counts[..] {
        [nranks] => Ok(nranks),
        _ => Err(format!("[{}] one rank count, such as 8", Code::BadFlag)),
    }
}

/// A size as nccl-tests reads it: K, M and G are powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let bad = || {
        format!("[{}] a size is a number of bytes such as 4096, 64K, 1MiB or 1.5GB", Code::BadFlag)
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u64 = match unit.trim() {
        "" | "B" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "m" | "MiB" => 1 << 20,
        "G" | "g" | "GiB" => 1 << 30,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(bad()),
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let (whole, part): (u64, u64) =
        (whole.parse().map_err(|_| bad())?, decimals.parse().map_err(|_| bad())?);
    let scale = u32::try_from(decimals.len()).ok().and_then(|n| 10_u64.checked_pow(n));
    let part = scale.and_then(|scale| {
        let part = part.checked_mul(unit)?;
        part.is_multiple_of(scale).then(|| part / scale)
    });
    whole.checked_mul(unit).zip(part).and_then(|(a, b)| a.checked_add(b)).ok_or_else(bad)
}

pub(crate) fn signals(text: &str) -> Result<Signals, String> {
    text.parse().map_err(|why| format!("[{}] {why}", Code::BadFlag))
}

fn budget(text: &str) -> Result<(Resource, u64), String> {
    let budget = text.split_once('=').and_then(|(name, most)| {
        Some((Resource::from_name(name.trim())?, most.trim().parse().ok()?))
    });
    budget.ok_or_else(|| {
        let names = Resource::ALL.map(Resource::name).join(", ");
        format!("[{}] a budget is RESOURCE=MOST, and the resources are {names}", Code::BadFlag)
    })
}

pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err(format!("[{}] a setting is NAME=VALUE, such as ring=1,2,3,0", Code::BadFlag)),
    }
}

pub(crate) fn dtype(text: &str) -> Result<DType, String> {
    DType::from_name(text).ok_or_else(|| {
        let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
        format!("[{}] the dtypes are {}", Code::BadFlag, names.join(" "))
    })
}

pub(crate) fn reduce_op(text: &str) -> Result<ReduceOp, String> {
    ReduceOp::from_name(text).ok_or_else(|| {
        let names: Vec<_> = ReduceOp::ALL.iter().map(|op| op.name()).collect();
        format!("[{}] the reduce ops are {}", Code::BadFlag, names.join(" "))
    })
}
