//! The machines on which the threads of a warp move 128 bytes at once, as the protocol LL128 assumes.

use std::collections::BTreeMap;

use roundelay_core::schedule::{Schedule, SignalKind};
use roundelay_topology::paths::{self, PathType};
use roundelay_topology::{Fabric, GpuModel};

/// The oldest compute capability with these links.
const VOLTA: u32 = 70;

/// The property on which [`Protocol::Ll128`](super::Protocol::Ll128) relies beyond the memory model of PTX, as the name of
/// an assumption of the interpreter, and the reason why a GPU has it.
pub const WHOLE_LINES: (&str, &str) = (
    "line128",
    "a warp stores and loads 128 bytes at once by NVLink of sm_70 and newer, and within a device",
);

/// Returns why a machine does not keep the lines together that ranks send each other; `None` where it does.
pub(super) fn reason_against(topology: &Fabric, schedule: &Schedule) -> Option<String> {
    let model = topology.gpus().map(|gpus| gpus.model);
    if let Some(model) = model.filter(|model| !matches!(model, GpuModel::Cuda(VOLTA..))) {
        return Some(format!("the ranks of {} are {model}", topology.name()));
    }
    let mut ways = BTreeMap::new();
    let tails = schedule.channels.iter().filter(|channel| channel.kind == SignalKind::Tail);
    tails.filter(|channel| channel.from != channel.to).find_map(|channel| {
        let (from, to) = (channel.from, channel.to);
        let ways = ways.entry(from).or_insert_with(|| paths::to_ranks(topology, from.into()));
        let kind = ways.get(to.index()).map_or(PathType::Dis, |path| path.kind);
        let by = match kind {
            PathType::Loc | PathType::Nvl | PathType::Nvb => return None,
            PathType::C2c | PathType::P2c => "the link of a CPU",
            PathType::Net | PathType::Pxn => "the network",
            PathType::Dis => "no path",
            PathType::Pix | PathType::Pxb | PathType::Phb | PathType::Sys => "PCIe",
        };
        Some(format!("rank {from} reaches rank {to} of {} by {by} ({kind})", topology.name()))
    })
}
