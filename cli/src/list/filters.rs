//! The flags of `list`.

use clap::Args;
use roundelay::{Collective, Promises};

use crate::constants::{COSTS, CostFlags};
use crate::flags::{assume_help, topology_help};
use crate::report::Format;
use crate::values::{bytes, collective, collectives, promises, rank_count};

#[derive(Args)]
#[command(mut_args(|arg| if COSTS.contains(&arg.get_id().as_str()) { arg.requires("why") } else { arg }))]
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
    #[arg(help = topology_help!("With --why: what the ranks run on"))]
    pub(crate) topology: Option<String>,
    #[arg(long, requires = "topology", value_name = "ASSUMPTION", help = assume_help!())]
    pub(crate) assume: Option<String>,
    #[command(flatten)]
    pub(crate) costs: CostFlags,
    /// With --why: only algorithms that keep these promises about the order of reduction, such as
    /// `all_counts,roundings=1`
    #[arg(long, requires = "why", value_name = "PROMISES", value_parser = promises)]
    pub(crate) order: Option<Promises>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}
