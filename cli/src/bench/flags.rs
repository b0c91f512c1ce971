//! The flags of `bench`: nccl-tests' flags by their own letters and names, and ours.

use clap::Args;
use roundelay::{Collective, DType, ReduceOp};
use roundelay_core::diagnostics::Code;
use roundelay_kernels::grid::Gpu;
use roundelay_runner::calls::CalledBy;

use crate::device::{Device, DeviceFlags};
use crate::flags::{CallerFlags, EngineFlags, TopologyFlags};
use crate::lints::LintFlags;
use crate::report::{Failure, Format};
use crate::trace::TraceFlag;
use crate::values::{
    RankCounts, RefusedValue, at_least, bytes, collective, collectives, dtype, rank_counts,
    reduce_op, setting, whole,
};
use crate::vector::{VectorForm, vector};

/// The letters that differ from nccl-tests'.
const LETTERS: &str = "\
Letters of nccl-tests: -b -e -f -i -w -o -d -r and -c mean the same here. -n does not: it is the
ranks, as in every subcommand, and the iterations are -I, or --iters as there. -g and -t are not
there: ranks are no devices, and one command runs them all.";

#[derive(Args)]
#[command(after_help = LETTERS)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct BenchFlags {
    /// Algorithms of the library, .coll files, and programs for MSCCL (.xml) or MSCCL++ (.json), separated by commas or
    /// blanks
    #[arg(value_name = "ALGORITHM|FILE", value_delimiter = ',', conflicts_with = "collective")]
    pub(super) sources: Vec<String>,
    #[arg(long, required_unless_present = "sources", value_parser = collective)]
    #[arg(help = format!("All algorithms of the library for this collective: {}", collectives()))]
    pub(super) collective: Option<Collective>,
    /// Which algorithm of a file
    #[arg(long, value_name = "NAME")]
    pub(super) algorithm: Option<String>,
    /// Value of a parameter, such as ring=1,2,3,0; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub(super) settings: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) topology: TopologyFlags,
    #[command(flatten)]
    pub(super) lints: LintFlags,
    /// Rank counts: 8, 2..=33, or a list such as 2,4,8 (nccl-tests' -n is -I here) [default: 8]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(super) nranks: Option<RankCounts>,
    /// Timed iterations (nccl-tests' -n)
    #[arg(short = 'I', long, value_name = "N", visible_alias = "iters", default_value_t = 20)]
    #[arg(value_parser = at_least(1_u32))]
    pub(super) iterations: u32,
    /// Iterations before the timed ones
    #[arg(short = 'w', long = "warmup-iters", alias = "warmup_iters", value_name = "N")]
    #[arg(default_value_t = 1, value_parser = at_least(0_u32))]
    pub(super) warmup: u32,
    /// The smallest size in bytes, such as 1K, 32M or 1G in powers of 1024 [default: 32M]
    #[arg(short = 'b', long = "minbytes", value_name = "SIZE", value_parser = bytes)]
    pub(super) smallest: Option<u64>,
    /// The largest size [default: the smallest]
    #[arg(short = 'e', long = "maxbytes", value_name = "SIZE", value_parser = bytes)]
    pub(super) largest: Option<u64>,
    /// The factor from one size to the next
    #[arg(short = 'f', long = "stepfactor", value_name = "FACTOR", conflicts_with = "step")]
    #[arg(value_parser = at_least(0_u64))]
    pub(super) factor: Option<u64>,
    /// The bytes from one size to the next [default: 1M]
    #[arg(short = 'i', long = "stepbytes", value_name = "SIZE", value_parser = bytes)]
    pub(super) step: Option<u64>,
    /// A count for each block instead of one count: skew:ALPHA, counts that fall with the power ALPHA of the block's number
    /// and are together as many elements; random:SEED, up to twice the count; or a list, for one size
    #[arg(long, value_name = "COUNTS", value_parser = vector, conflicts_with_all = ["contest", "choice"])]
    pub(super) counts: Option<VectorForm>,
    /// The sizes of the contest: 1 KB, 1 MB and 1 GB, and the mean of their bandwidths
    #[arg(long, conflicts_with_all = ["smallest", "largest", "factor", "step"])]
    pub(super) contest: bool,
    /// Reduce ops: sum prod min max avg band bor bxor land lor lxor, a list of them, or all; those from band on are
    /// for integers
    #[arg(short = 'o', long = "op", default_value = "sum", value_parser = reduce_ops)]
    pub(super) ops: Several<ReduceOp>,
    /// Element types: i8 u8 i32 u32 i64 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2 (or by nccl-tests' names), a list, or all
    #[arg(short = 'd', long = "dtype", alias = "datatype", default_value = "f32", value_parser = dtypes)]
    pub(super) dtypes: Several<DType>,
    /// The root of rooted collectives, or -1 for each rank in turn [default: the algorithm's own]
    #[arg(short = 'r', long, value_name = "RANK", allow_hyphen_values = true)]
    #[arg(value_parser = at_least(-1_i64))]
    pub(super) root: Option<i64>,
    /// Compare the result of a separate run with a simple reference (1), or do not (0)
    #[arg(short = 'c', long, default_value_t = 1, value_parser = whole(0..=1_u32))]
    pub(super) check: u32,
    #[command(flatten)]
    pub(super) engine: EngineFlags,
    #[command(flatten)]
    pub(super) device: DeviceFlags,
    /// On GPUs: also launch each kernel by a CUDA graph, which costs less
    #[arg(long)]
    pub(super) graph: bool,
    /// On GPUs: launch nothing, and tell what launches would take by a model; no GPU is needed
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run: the GPU of the model: H100 or H200 [default: H200]
    #[arg(long, value_name = "NAME", requires = "dry_run", value_parser = gpu)]
    pub(super) gpu: Option<Gpu>,
    #[command(flatten)]
    pub(super) callers: CallerFlags,
    /// Each rank writes its input again before each run, as a program does that computes it; that is not timed
    #[arg(long)]
    pub(super) rewrite: bool,
    /// Compare the algorithm that select chooses for each size with the fastest that was measured
    #[arg(long)]
    pub(super) choice: bool,
    /// Draw bandwidth by size below the table, in letters
    #[arg(long)]
    pub(super) plot: bool,
    /// Write a picture of bandwidth by size
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<String>,
    #[command(flatten)]
    pub(super) trace: TraceFlag,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

/// The values of a list.
#[derive(Clone)]
pub(super) struct Several<T> {
    pub(super) of: Vec<T>,
    /// Whether these are all that there are.
    all: bool,
}

fn several<T: Clone>(
    text: &str,
    all: &[T],
    one: impl Fn(&str) -> Result<T, RefusedValue>,
) -> Result<Several<T>, RefusedValue> {
    match text {
        "all" => Ok(Several { of: all.to_vec(), all: true }),
        _ => {
            let of = text.split(',').map(|word| one(word.trim())).collect::<Result<_, _>>()?;
            Ok(Several { of, all: false })
        }
    }
}

fn gpu(text: &str) -> Result<Gpu, RefusedValue> {
    Gpu::find(text).ok_or_else(|| {
        RefusedValue::new("is not a GPU of the model")
            .help(format!("these are {}", Gpu::NAMES.join(" and ")))
    })
}

fn dtypes(text: &str) -> Result<Several<DType>, RefusedValue> {
    several(text, DType::ALL, |name| {
        dtype(match name {
            "int8" => "i8",
            "uint8" => "u8",
            "int32" | "int" => "i32",
            "uint32" => "u32",
            "int64" => "i64",
            "uint64" => "u64",
            "half" => "f16",
            "bfloat16" => "bf16",
            "float" => "f32",
            "double" => "f64",
            other => other,
        })
    })
}

fn reduce_ops(text: &str) -> Result<Several<ReduceOp>, RefusedValue> {
    several(text, ReduceOp::ALL, reduce_op)
}

/// The GPU of the model, unless another one is named.
const GPU: &str = "H200";

impl BenchFlags {
    /// Returns the GPU of the model whose times are printed, where nothing is launched.
    pub(super) fn model(&self) -> Option<Gpu> {
        let named = || self.gpu.clone().or_else(|| Gpu::find(GPU));
        self.dry_run.then(named).flatten()
    }

    /// Refuses a drawing in letters within a document.
    pub(super) fn check_plot(&self) -> Result<(), Failure> {
        if self.plot && self.format == Format::Json {
            let title = "--plot draws below a table, and --format json prints none";
            return Err(Failure::usage(Code::BadCall, title)
                .with_help("`--svg FILE` writes a picture beside the document"));
        }
        Ok(())
    }

    /// Refuses flags that exist only for the host, or only for GPUs.
    pub(super) fn check_device(&self) -> Result<(), Failure> {
        if let Device::Ptx(_) = self.device.device {
            let title = "--device ptx measures nothing: an interpreter on the CPU takes its own time, and not a GPU's";
            return Err(Failure::usage(CODE, title).with_help(
                "`roundelay run --device ptx` checks the kernel; `bench --device cuda --dry-run` predicts its time by a model",
            ));
        }
        let on_gpus = [("--graph", self.graph), ("--dry-run", self.dry_run)];
        if let (Device::Host, Some((flag, _))) =
            (&self.device.device, on_gpus.iter().find(|(_, given)| *given))
        {
            return Err(Failure::usage(CODE, format!("{flag} is for kernels on GPUs"))
                .with_help("add --device cuda"));
        }
        let useless = match () {
            () if self.device.device == Device::Host => return Ok(()),
            () if self.callers.by() == CalledBy::Each => "--callers each",
            () if self.callers.by() == CalledBy::Processes => "--callers processes",
            () if self.svg.is_some() => "--svg",
            () if self.trace.trace.is_some() => "--trace",
            () if self.plot => "--plot",
            () if self.choice => "--choice",
            () => return Ok(()),
        };
        Err(Failure::usage(CODE, format!("{useless} is for the host's engine"))
            .with_help("leave it out, or take --device host"))
    }

    /// Refuses ops that elements do not have, unless all ops or all elements were asked for.
    pub(super) fn check_ops(&self) -> Result<(), Failure> {
        if self.ops.all || self.dtypes.all {
            return Ok(());
        }
        for &dtype in &self.dtypes.of {
            self.ops.of.iter().try_for_each(|op| op.check(dtype))?;
        }
        Ok(())
    }

    /// Refuses to let ranks write their inputs that do not call.
    pub(super) fn check_callers(&self) -> Result<(), Failure> {
        if self.rewrite && self.callers.by() == CalledBy::One {
            let title = "--rewrite is for ranks that call by themselves";
            return Err(Failure::usage(Code::BadCall, title)
                .with_help("add --callers each or --callers processes"));
        }
        self.callers.check()
    }

    /// Returns nccl-tests' sizes, in order.
    pub(super) fn sizes(&self) -> Result<Vec<u64>, (String, &'static str)> {
        const DEFAULT: u64 = 32 << 20;
        const MOST: usize = 10_000;
        if self.contest {
            return Ok(vec![1 << 10, 1 << 20, 1 << 30]);
        }
        let smallest = self.smallest.unwrap_or(DEFAULT);
        let largest = self.largest.unwrap_or(smallest);
        if smallest > largest {
            let default = if self.smallest.is_none() { ", the default," } else { "" };
            let title = format!(
                "the smallest size -b {smallest}{default} is above the largest -e {largest}"
            );
            return Err((title, "give -b and -e in bytes, such as -b 1K -e 64M"));
        }
        match (self.factor, self.step) {
            (Some(factor @ 0..=1), _) => {
                let title = format!("-f {factor} never leads from a size to a larger one");
                return Err((title, "the factor is 2 or more"));
            }
            (_, Some(0)) => {
                let title = "-i 0 never leads from a size to a larger one".to_owned();
                return Err((title, "the step is a byte or more, such as 1M"));
            }
            (Some(_), _) if smallest == 0 && largest > 0 => {
                let title = "-f never leads from a size of 0 to a larger one".to_owned();
                return Err((title, "begin with -b 1K, say, or step by -i"));
            }
            _ => {}
        }
        let next = |size: &u64| {
            let next = match self.factor {
                Some(factor) => size.checked_mul(factor),
                None => size.checked_add(self.step.unwrap_or(1 << 20)),
            };
            next.filter(|next| *next <= largest)
        };
        let sizes: Vec<u64> = std::iter::successors(Some(smallest), next).take(MOST + 1).collect();
        if sizes.len() > MOST {
            return Err((format!("these are more than {MOST} sizes"), "step by -f 2, say"));
        }
        Ok(sizes)
    }
}

/// The number of ranks where none is given.
pub(super) const NRANKS: u32 = 8;

/// The code of all that is wrong with flags.
pub(super) const CODE: Code = Code::BadFlag;
