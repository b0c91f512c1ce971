//! The flags of `synthesize`.

use clap::Args;
use roundelay_core::collective::Collective;

use crate::flags::topology_help;
use crate::report::Format;
use crate::simulate::{Size, sized};
use crate::values::{RefusedValue, collective, rank_count, rate};

/// The trees of each root that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// As many as the optimum needs.
    Optimum,
    /// A number.
    Number(u32),
    /// Each number of a range, and the optimum.
    Range(u32, u32),
}

/// The most trees of a root that may be asked for.
const MOST: u32 = 1 << 10;

#[derive(Args)]
pub(crate) struct SynthesizeFlags {
    /// The collective: AllGather, ReduceScatter, AllReduce, Broadcast or Reduce
    #[arg(value_parser = collective)]
    pub(super) collective: Collective,
    #[arg(long, value_name = "FILE|TEXT", help = topology_help!("What the ranks run on"))]
    pub(super) topology: String,
    /// The GPUs to assume if a topology file has none: sm=80,nvlinks=12 or sm=70,cube or
    /// gfx942,xgmi=1; or links alone, such as nvlinks=18, if it lists none
    #[arg(long, value_name = "ASSUMPTION")]
    pub(super) assume: Option<String>,
    /// The rank count: the first ranks of the topology [default: all]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_count)]
    pub(super) nranks: Option<u32>,
    /// The root of Broadcast and Reduce
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub(super) root: u32,
    /// Trees for each root: a number, or a range such as 1..=4, which is compared with the optimum [default: as many as
    /// the optimum needs]
    #[arg(long, value_name = "TREES", value_parser = wanted)]
    pub(super) trees: Option<Wanted>,
    /// The size for which slices are chosen, in bytes as nccl-tests counts it, such as 64M or 1GiB
    #[arg(long, default_value = "1GiB", value_parser = sized)]
    pub(super) bytes: Size,
    /// B, the bandwidth of one link, for a topology without bandwidths, such as 25GB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(super) bandwidth: Option<f64>,
    /// How to print: the page, or its figures and the page as JSON
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

fn wanted(text: &str) -> Result<Wanted, RefusedValue> {
    let number = |text: &str| text.trim().parse().ok().filter(|n| (1..=MOST).contains(n));
    let found = match text.split_once("..") {
        None => number(text).map(Wanted::Number),
        Some((first, last)) => {
            let last = last.strip_prefix('=').unwrap_or(last);
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => Some(Wanted::Range(first, last)),
                _ => None,
            }
        }
    };
    found.ok_or_else(|| {
        RefusedValue::new("is no number of trees")
            .help(format!("a number from 1 to {MOST}, or a range such as 1..=4"))
    })
}
