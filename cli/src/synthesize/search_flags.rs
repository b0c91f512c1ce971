//! The flags of `synthesize`.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use roundelay_core::collective::Collective;
use roundelay_core::topology::Topology;

use crate::constants::CostFlags;
use crate::flags::{assume_help, topology_help};
use crate::report::{Failure, Format};
use crate::simulate::{Size, sized};
use crate::topology;
use crate::values::{RefusedValue, at_least, collective, rank_count};

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

/// The machine for which something is found.
#[derive(Args)]
pub(crate) struct MachineFlags {
    #[arg(long, value_name = "FILE|TEXT", help = topology_help!("What the ranks run on"))]
    pub(crate) topology: String,
    #[arg(long, value_name = "ASSUMPTION", help = assume_help!())]
    pub(super) assume: Option<String>,
    /// The rank count: the first ranks of the topology [default: all]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_count)]
    nranks: Option<u32>,
}

impl MachineFlags {
    /// Returns the topology, and the number of ranks that take part.
    pub(crate) fn read(&self) -> Result<(Arc<Topology>, u32), Failure> {
        let given = topology::read(&self.topology, self.assume.as_deref())?.topology;
        let nranks = self.nranks.unwrap_or(given.nranks());
        Ok((given, nranks))
    }

    /// Whether the topology is a text of the language, and no file.
    pub(crate) fn is_text(&self) -> bool {
        self.topology.contains('(') && !Path::new(&self.topology).exists()
    }
}

#[derive(Args)]
pub(crate) struct SynthesizeFlags {
    /// The collective: AllGather, ReduceScatter, AllReduce, Broadcast or Reduce
    #[arg(value_parser = collective)]
    pub(super) collective: Collective,
    #[command(flatten)]
    pub(super) machine: MachineFlags,
    /// The root of Broadcast and Reduce; with --draw, the rank whose trees are drawn
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub(super) root: u32,
    /// Trees for each root: a number, or a range such as 1..=4, which is compared with the optimum [default: as many as
    /// the optimum needs]
    #[arg(long, value_name = "TREES", value_parser = wanted)]
    pub(super) trees: Option<Wanted>,
    /// For small sizes, in place of trees: links take pieces of blocks as the links get free; the value is the number of
    /// pieces of a block
    #[arg(long, value_name = "PIECES", value_parser = at_least(1_u32), conflicts_with_all = ["trees", "exact"])]
    pub(super) matching: Option<u32>,
    /// With --matching: the runs that are simulated, of which the fastest is printed
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least(1_u32), requires = "matching")]
    pub(super) seeds: u32,
    /// A schedule of exactly this size: the pieces of a block, the steps, and the rounds of links, such as 2,2,3; for up
    /// to 8 ranks
    #[arg(long, value_name = "C,S,R", value_parser = sizes, conflicts_with = "trees")]
    pub(super) exact: Option<ExactSize>,
    /// The size for which slices are chosen, in bytes as nccl-tests counts it, such as 64M or 1GiB
    #[arg(long, default_value = "1GiB", value_parser = sized)]
    pub(super) bytes: Size,
    #[command(flatten)]
    pub(super) costs: CostFlags,
    /// Write a picture of the trees over the topology, each in its color, in addition to what is printed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["matching", "exact"])]
    pub(super) draw: Option<String>,
    /// How to print: the page, or its figures and the page as JSON
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

/// The pieces, steps and rounds of an exact search.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExactSize(pub(super) [u32; 3]);

fn sizes(text: &str) -> Result<ExactSize, RefusedValue> {
    let numbers: Result<Vec<u32>, _> = text.split(',').map(|word| word.trim().parse()).collect();
    match numbers.as_deref() {
        Ok([chunks, steps, rounds]) => Ok(ExactSize([*chunks, *steps, *rounds])),
        _ => Err(RefusedValue::new("is not three numbers")
            .help("pieces of a block, steps and rounds, such as 2,2,3")),
    }
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
