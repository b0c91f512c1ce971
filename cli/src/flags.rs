//! Flags that several subcommands take. Values are read here, so that a wrong one is refused before any work is done.

use clap::{Args, ValueEnum};
use roundelay::{Level, Options};
use roundelay_core::diagnostics::Code;
use roundelay_core::verify;
use roundelay_runner::calls::CalledBy;

use crate::lints::LintFlags;
use crate::report::Failure;
use crate::self_call;
use crate::values::{level, setting, whole};

/// Help for flags that take a topology. It is a macro apart from the flags, because the text is pasted into a shell as
/// it is: without backticks, and on a line of its own.
macro_rules! topology_help {
    ($what:literal) => {
        concat!(
            $what,
            ": here for this machine, a topology file of NCCL's (.xml), links for ns-3,\n",
            "the table of nvidia-smi topo -m, a list of links, or a text such as\n",
            "\"full_mesh(8, 25GB/s, 2us) without (0, 1)\" or 'machine(\"dgx-h100\", 2)'"
        )
    };
}
pub(crate) use topology_help;

/// Help for flags that take an assumption about the GPUs of a topology.
macro_rules! assume_help {
    () => {
        concat!(
            "What the ranks of --topology are, where it does not say so: sm=90 or gfx942.\n",
            "For a file of NCCL's also how they are joined: sm=80,nvlinks=12 or sm=70,cube or\n",
            "gfx942,xgmi=1; or links alone, such as nvlinks=18, if it lists none"
        )
    };
}
pub(crate) use assume_help;

/// Where algorithms come from.
#[derive(Args, Clone)]
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

/// The topology that joins the ranks.
#[derive(Args, Clone)]
pub(crate) struct TopologyFlags {
    #[arg(long, value_name = "FILE|TEXT", help = topology_help!("What the ranks run on"))]
    pub(crate) topology: Option<String>,
    #[arg(long, value_name = "ASSUMPTION", help = assume_help!())]
    pub(crate) assume: Option<String>,
}

/// How plans are run.
#[derive(Args)]
pub(crate) struct EngineFlags {
    /// Worker threads, up to 1024 [default: one a core]
    #[arg(long, value_name = "N", value_parser = whole(1..=Options::MOST_WORKERS))]
    pub(crate) workers: Option<u32>,
    /// How much the optimizer may change: 0 nothing, 1 drops signals and joins moves, 2 fuses moves
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

/// The callers of the ranks of a run.
#[derive(Args)]
pub(crate) struct CallerFlags {
    /// How the ranks are called; with a call for each, every rank has a thread or a process of its own, as in MPI
    #[arg(long, value_enum, default_value_t = CallerFlag::One)]
    pub(crate) callers: CallerFlag,
    /// Buffers in memory that all processes share, with --callers processes
    #[arg(long)]
    pub(crate) alloc: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallerFlag {
    /// A call for each rank, from a thread
    Each,
    /// One call for all ranks
    One,
    /// A call for each rank, from a process (on Linux)
    Processes,
}

impl CallerFlag {
    /// Returns the value as it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::One => "one",
            Self::Processes => "processes",
        }
    }
}

impl CallerFlags {
    /// Returns the callers.
    pub(crate) fn by(&self) -> CalledBy {
        match self.callers {
            CallerFlag::Each => CalledBy::Each,
            CallerFlag::One => CalledBy::One,
            CallerFlag::Processes => CalledBy::Processes,
        }
    }

    /// Refuses shared buffers for ranks that are not processes, and processes where the command may start none.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.alloc && self.by() != CalledBy::Processes {
            let title = "--alloc is for ranks that are processes";
            return Err(Failure::usage(Code::BadCall, title).with_help("add --callers processes"));
        }
        if self.by() == CalledBy::Processes { self_call::alone() } else { Ok(()) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Callers {
    /// A call for each rank
    Each,
    /// One call for all ranks
    One,
}

impl From<Callers> for verify::Callers {
    fn from(callers: Callers) -> Self {
        match callers {
            Callers::Each => Self::Each,
            Callers::One => Self::One,
        }
    }
}
