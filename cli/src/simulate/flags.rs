//! The flags of `simulate`, and the machine that follows from them.

use clap::{Args, ValueEnum};
use roundelay::DType;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_simulate::{Machine, SignalCost, Streams};
use roundelay_topology::{NodeId, Routing};
use std::sync::Arc;

use super::picture::{PictureFlags, Size, size};
use crate::constants::{Constants, CostFlags};
use crate::flags::SourceFlags;
use crate::report::{Failure, Format};
use crate::values::{RankCounts, RefusedValue, count, dtype, rank_counts};
use crate::vector::{VectorForm, vector};

/// Where algorithms come from: here they may be several.
const SOURCE: &str = "A .coll file, - for standard input, or the name of an algorithm of the library; several, \
                      separated by commas, are compared";

#[derive(Args)]
#[command(mut_arg("source", |source| source.index(1).help(SOURCE)))]
pub(crate) struct SimulateFlags {
    #[command(flatten)]
    pub(super) source: SourceFlags,
    /// More sources, which are compared with the first
    #[arg(value_name = "SOURCE", index = 2)]
    pub(super) more: Vec<String>,
    /// Rank counts: 8, 2..=33, 2..9, or a list such as 2,4,8; several are compared in a table [default: all ranks of
    /// the topology]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(super) nranks: Option<RankCounts>,
    /// Size in bytes as nccl-tests counts it, such as 4096, 64K or 1MiB
    #[arg(long, default_value = "64M", value_parser = size, conflicts_with = "count")]
    pub(super) bytes: Size,
    /// Count of elements, as NCCL's calls take it, instead of a size, such as 1000, 64K, 1M or 1e6
    #[arg(long, value_parser = count)]
    pub(super) count: Option<u64>,
    /// A count for each block instead of one: a list such as 5,0,7, one for each rank (for an AllToAll one for each pair,
    /// those of sender 0 first); skew:ALPHA, counts that fall with the power ALPHA of the block's number and are together
    /// as many elements; or random:SEED, up to twice the count
    #[arg(long, value_name = "COUNTS", value_parser = vector)]
    pub(super) counts: Option<VectorForm>,
    /// Element type: i8 u8 i32 u32 i64 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2
    #[arg(long, default_value = "f32", value_parser = dtype)]
    pub(super) dtype: DType,
    #[command(flatten)]
    costs: CostFlags,
    /// The signals that streams wait for
    #[arg(long, value_enum, default_value_t = Order::ByData)]
    streams: Order,
    /// The time that signals take
    #[arg(long, value_enum, default_value_t = Signals::Free)]
    signals: Signals,
    /// Which way messages go if there are several
    #[arg(long, value_enum, default_value_t = Ways::Ecmp)]
    routing: Ways,
    /// A rank that is slower, and by which factor: 3=2.0; may be given several times
    #[arg(long = "straggler", value_name = "RANK=TIMES", value_parser = factor)]
    stragglers: Vec<(String, f64)>,
    /// A link between two ranks or switches that is slower, and the part of its bandwidth that is left: 0-1=0.5; may be
    /// given several times
    #[arg(long = "degrade", value_name = "A-B=SHARE", value_parser = factor)]
    degraded: Vec<(String, f64)>,
    /// Print every step of the critical path
    #[arg(long)]
    pub(super) path: bool,
    #[command(flatten)]
    pub(super) picture: PictureFlags,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Signals {
    /// No time
    Free,
    /// The latency of their way
    Messages,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// A move begins when the signals above it have come and what it sends is final
    ByData,
    /// One op after the other, as a contest's executor does
    InOrder,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ways {
    /// Equal parts on each
    Ecmp,
    /// One, by the destination's number
    DModK,
}

impl SimulateFlags {
    /// Returns the machine of the first `nranks` ranks of a topology, with the settings of the flags, and its constants.
    pub(super) fn machine(
        &self,
        topology: &Arc<Topology>,
        nranks: u32,
    ) -> Result<(Machine, Constants), Failure> {
        let constants = self.costs.of(Some(topology), nranks)?;
        let machine = Machine {
            streams: match self.streams {
                Order::ByData => Streams::ByData,
                Order::InOrder => Streams::InOrder,
            },
            signals: match self.signals {
                Signals::Free => SignalCost::Free,
                Signals::Messages => SignalCost::Messages,
            },
            routing: match self.routing {
                Ways::Ecmp => Routing::Ecmp,
                Ways::DModK => Routing::DModK,
            },
            stragglers: each(&self.stragglers, rank)?,
            degraded: each(&self.degraded, |ends| ends_of(ends, topology))?,
            ..Machine::of_costs(&constants.costs, topology.clone())
        };
        Ok((machine, constants))
    }
}

/// Returns the named ranks or links, with the factors.
fn each<T>(
    given: &[(String, f64)],
    named: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<(T, f64)>, Failure> {
    given.iter().map(|(name, factor)| Ok((named(name)?, *factor))).collect()
}

fn rank(text: &str) -> Result<RankId, Failure> {
    text.parse().map(RankId).map_err(|_| {
        Failure::usage(Code::BadFlag, format!("--straggler {text}: a rank is a number"))
    })
}

/// Reads two nodes, by the numbers of ranks or by names, which may have a `-` of their own.
fn ends_of(text: &str, topology: &Topology) -> Result<(NodeId, NodeId), Failure> {
    let node = |name: &str| {
        let name = name.trim();
        let rank = name.parse().ok().filter(|rank| *rank < topology.nranks());
        let named = || topology.nodes().iter().position(|node| node.name == name);
        rank.or_else(|| named().map(|at| at as u32)).map(NodeId)
    };
    let cuts = text.match_indices('-');
    let mut pairs = cuts.filter_map(|(at, _)| Some((node(&text[..at])?, node(&text[at + 1..])?)));
    pairs.next().ok_or_else(|| {
        let title = format!("--degrade {text}: not two nodes of `{}`", topology.name());
        Failure::usage(Code::BadFlag, title)
            .with_help("ranks are numbers, switches have names: 0-1=0.5, \"leaf 0-spine 1=0.5\"")
    })
}

fn factor(text: &str) -> Result<(String, f64), RefusedValue> {
    let parsed = text.rsplit_once('=').and_then(|(name, factor)| {
        let factor = factor.trim().parse().ok().filter(|f: &f64| f.is_finite())?;
        Some((name.trim().to_owned(), factor))
    });
    parsed.ok_or_else(|| {
        RefusedValue::new("names no number").help("a value is such as 3=2.0 or 0-1=0.5")
    })
}
