//! `roundelay kernel check --ours`: the harness of the kernel of a page.

use clap::Args;
use roundelay::{DType, ReduceOp};
use roundelay_core::diagnostics::Code;
#[cfg(feature = "cuda")]
use roundelay_core::prove_source;
use roundelay_export::cuda::Protocol;

use crate::flags::TopologyFlags;
use crate::kernel::{FormFlag, protocol, threads};
use crate::report::Failure;
use crate::values::{RankCounts, at_least, count, dtype, reduce_op, setting};

/// The page, and the choices of its kernel.
#[derive(Args)]
pub(super) struct OwnKernelFlags {
    /// Print the harness of the kernel of a page, which checks nothing yet: a .coll file, - for standard input, or the name
    /// of an algorithm of the library
    #[arg(long, value_name = "SOURCE", conflicts_with_all = ["files", "case", "list", "elements", "seeds"])]
    pub(super) ours: Option<String>,
    /// With --ours: which algorithm of the source
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// With --ours: value of a parameter, such as ring=1,2,3,0 or root=2; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    #[command(flatten)]
    topology: TopologyFlags,
    /// With --ours: elements of a unit, as NCCL's calls count [default: 1000]
    #[arg(long, value_parser = count)]
    count: Option<u64>,
    /// With --ours: element type: i8 u8 i32 u32 i64 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2 [default: f32]
    #[arg(long, value_parser = dtype)]
    dtype: Option<DType>,
    /// With --ours: reduce op [default: sum]
    #[arg(long, value_parser = reduce_op)]
    op: Option<ReduceOp>,
    /// With --ours: input and output share memory, by NCCL's rules
    #[arg(long)]
    in_place: bool,
    /// With --ours: how data travels: direct, simple, ll or ll128 [default: simple for a program that sends and receives,
    /// else direct]
    #[arg(long, value_parser = protocol)]
    protocol: Option<Protocol>,
    /// With --ours: how the kernel holds the algorithm [default: loops]
    #[arg(long, value_enum)]
    form: Option<FormFlag>,
    /// With --ours: threads of a thread block (CTA), in whole warps of 32, up to 1024 [default: 256]
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<u32>,
    /// With --ours: thread blocks (CTAs) that share a stream [default: 1]
    #[arg(long, value_name = "N", value_parser = at_least(1_u32))]
    ctas: Option<u32>,
    /// With --ours: write to a file instead; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
}

impl OwnKernelFlags {
    /// Refuses flags of a page where there is none.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let given = [
            ("--algorithm", self.algorithm.is_some()),
            ("--set", !self.settings.is_empty()),
            ("--topology", self.topology.topology.is_some()),
            ("--assume", self.topology.assume.is_some()),
            ("--count", self.count.is_some()),
            ("--dtype", self.dtype.is_some()),
            ("--op", self.op.is_some()),
            ("--in-place", self.in_place),
            ("--protocol", self.protocol.is_some()),
            ("--form", self.form.is_some()),
            ("--threads", self.threads.is_some()),
            ("--ctas", self.ctas.is_some()),
            ("--output", self.output.is_some()),
        ];
        let useless = given.iter().find(|(_, given)| *given && self.ours.is_none());
        let Some((flag, _)) = useless else { return Ok(()) };
        let title = format!("{flag} is for the kernel of a page");
        Err(Failure::usage(Code::BadFlag, title).with_help("add --ours SOURCE, or leave it out"))
    }

    /// Prints the harness of the kernel for a number of ranks, or writes it.
    #[cfg(feature = "cuda")]
    pub(super) fn print(&self, source: &str, ranks: Option<&RankCounts>) -> Result<(), Failure> {
        use roundelay::Level;
        use roundelay_core::diagnostics::Diagnostic;

        use super::ours::{Choices, Launches, own_kernel};
        use crate::flags::SourceFlags;
        use crate::lints::LintFlags;
        use crate::program::{Loaded, load, one, read};
        use crate::report::{Format, refuse, wrong};
        use crate::{output, progress};

        let flags = SourceFlags {
            source: source.to_owned(),
            algorithm: self.algorithm.clone(),
            settings: self.settings.clone(),
            topology: self.topology.clone(),
            lints: LintFlags::default(),
        };
        let nranks = match ranks.map(|ranks| &ranks.counts[..]) {
            None => DEFAULT,
            Some([one]) => *one,
            Some(_) => {
                let title = "a kernel of a page has one number of ranks";
                return Err(Failure::usage(Code::BadCall, title).with_help("such as -n 8"));
            }
        };
        let source = read(source)?;
        let failed = |all: &[Diagnostic]| refuse(Format::Human, all, &source, wrong);
        let algorithm = match load(&source, &flags)? {
            Loaded::Ready(algorithms) => one(algorithms, &source)?,
            Loaded::Wrong(errors) => return Err(failed(&errors)),
        };
        let proved = progress::shown(|| prove_source(&algorithm, nranks));
        let proved = proved.map_err(|errors| failed(&errors))?;
        let choices = Choices {
            form: self.form,
            protocol: self.protocol,
            kind: (self.dtype.unwrap_or(DType::F32), self.op.unwrap_or(ReduceOp::Sum)),
            level: Level::O2,
            reassociate: false,
        };
        choices.kind.1.check(choices.kind.0)?;
        let kernel = own_kernel(&algorithm, &proved, &choices)?.map_err(|all| failed(&all))?;
        let launches = Launches {
            arch: "sm_90".parse()?,
            count: self.count.unwrap_or(1000),
            threads: self.threads.unwrap_or(roundelay_kernels::cuda::THREADS),
            parts: self.ctas.unwrap_or(1),
            calls: 2,
            in_place: self.in_place,
        };
        output::write(self.output.as_deref().unwrap_or("-"), &launches.harness(&kernel)?)
    }

    #[cfg(not(feature = "cuda"))]
    pub(super) fn print(&self, _: &str, _: Option<&RankCounts>) -> Result<(), Failure> {
        Err(crate::device::absent())
    }
}

/// The number of ranks where none is given.
#[cfg(feature = "cuda")]
const DEFAULT: u32 = 8;
