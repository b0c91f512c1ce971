//! The limits of a runtime, and their use by a program.

use std::collections::BTreeMap;

use super::super::runtime::{CHANNELS, LAST_AWAITED};
use super::global_ops::PlannedLink;
use super::thread_blocks::{Plan, ThreadBlock};
use super::{Options, unfit};
use roundelay_core::diagnostics::Finding;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Op, OpKind, Schedule};

/// The most blocks of a rank in one channel.
const OF_CHANNEL: usize = 32;

const SMALLER: &str = "use fewer ranks or larger pieces, or another runtime with --runtime";
const FEWER: &str = "write fewer instances, use fewer ranks, or another runtime with --runtime";

/// Refuses an algorithm whose rank alone exceeds a limit, by the rank's schedule with adjacent moves joined. Messages
/// that other ranks start are not counted, so a program may need more.
pub(super) fn of_rank(own: &Schedule, rank: RankId, options: Options) -> Result<(), Box<Finding>> {
    // Each message is a step of the block at its end of the connection.
    let mut ends: BTreeMap<(bool, RankId), usize> = BTreeMap::new();
    let ops = own.streams.iter().flat_map(|s| &own.ops[s.first.index()..][..s.len as usize]);
    for op in ops.filter(|op| op.kind == OpKind::Move) {
        for end in messages(own, rank, op) {
            *ends.entry(end).or_default() += 1;
        }
    }
    let instances = options.instances;
    let channels = own.lanes.len().clamp(1, (CHANNELS / instances.max(1)).max(1) as usize);
    let steps = ends.values().max().map_or(0, |most| most.div_ceil(channels));
    let peers = |sends| ends.keys().filter(|(way, _)| *way == sends).count();
    let blocks = peers(true).max(peers(false)) * instances as usize;
    at_least(steps, blocks, options)
}

/// Refuses connections that alone exceed a limit: their blocks have a step or more for each message. `links` has the
/// connection of each message.
pub(super) fn of_links(links: &[PlannedLink], options: Options) -> Result<(), Box<Finding>> {
    let mut messages: BTreeMap<PlannedLink, usize> = BTreeMap::new();
    for link in links {
        *messages.entry(*link).or_default() += 1;
    }
    // A block sends on one connection, and receives from one.
    let mut ends: BTreeMap<(bool, u32), usize> = BTreeMap::new();
    for link in messages.keys() {
        *ends.entry((true, link.from)).or_default() += 1;
        *ends.entry((false, link.to)).or_default() += 1;
    }
    let steps = messages.into_values().max().unwrap_or(0);
    let blocks = ends.into_values().max().unwrap_or(0) * options.instances as usize;
    at_least(steps, blocks, options)
}

/// Refuses steps of a block and blocks of a rank, of which there may be more.
fn at_least(steps: usize, blocks: usize, options: Options) -> Result<(), Box<Finding>> {
    let runtime = options.runtime;
    let all = [
        ("steps of a block or more", steps, runtime.steps(), SMALLER),
        ("thread blocks of a rank or more", blocks, runtime.blocks(), FEWER),
    ];
    all.into_iter().try_for_each(|(what, needs, holds, help)| {
        refuse(what, needs, holds as usize, help, options)
    })
}

/// Returns the ends of messages that a move surely has at its rank: whether the rank sends, and the peer.
fn messages(own: &Schedule, rank: RankId, op: &Op) -> Vec<(bool, RankId)> {
    let (srcs, dsts) = (own.srcs(op), own.dsts(op));
    let region = own.region(srcs[0]);
    if region.lo == region.hi {
        return Vec::new();
    }
    let here =
        |operands: &[roundelay_core::schedule::Operand]| operands.iter().any(|o| o.rank == rank);
    let mut ends: Vec<_> = match srcs {
        [src] if src.rank != rank => here(dsts).then_some((false, src.rank)).into_iter().collect(),
        [_] => dsts.iter().filter(|dst| dst.rank != rank).map(|dst| (true, dst.rank)).collect(),
        // If the result goes to one rank that holds an operand, that rank reduces.
        _ if !here(dsts) => Vec::new(),
        _ => {
            let mut far: Vec<_> = srcs.iter().filter(|src| src.rank != rank).collect();
            far.sort_unstable_by_key(|src| (src.rank, src.region));
            far.dedup();
            return far.into_iter().map(|src| (false, src.rank)).collect();
        }
    };
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Refuses connections whose ends need more blocks than the runtime has.
pub(super) fn of_blocks(blocks: &[Vec<ThreadBlock>], options: Options) -> Result<(), Box<Finding>> {
    let most = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let needs = most * options.instances as usize;
    refuse("thread blocks of a rank", needs, options.runtime.blocks() as usize, FEWER, options)
}

/// Refuses what needs more than the runtime holds.
fn refuse(
    what: &str,
    needs: usize,
    holds: usize,
    help: &str,
    options: Options,
) -> Result<(), Box<Finding>> {
    if needs <= holds {
        return Ok(());
    }
    let title = format!("it needs {needs} {what}, and {} has {holds}", options.runtime.name());
    Err(Box::new(unfit(title).help(help)))
}

/// Refuses a program that the runtime would refuse.
pub(super) fn check(plan: &Plan, channels: u32, options: Options) -> Result<(), Box<Finding>> {
    let Options { runtime, instances, .. } = options;
    let times = instances as usize;
    let most = |of: &dyn Fn(&ThreadBlock) -> usize| {
        plan.blocks.iter().flatten().map(of).max().unwrap_or(0)
    };
    let per_rank = |of: &dyn Fn(&[ThreadBlock]) -> usize| {
        plan.blocks.iter().map(|blocks| of(blocks)).max().unwrap_or(0)
    };
    of_blocks(&plan.blocks, options)?;
    let steps = most(&|block| block.steps.len());
    let nodes =
        per_rank(&|blocks| blocks.iter().map(|block| 1 + block.steps.len()).sum::<usize>() * times);
    let of_channel = per_rank(&|blocks| {
        let on = |channel| blocks.iter().filter(|block| block.channel == channel).count();
        (0..channels).map(on).max().unwrap_or(0)
    });
    let awaited = per_rank(&|blocks| {
        let waits = blocks.iter().flat_map(|block| &block.steps).filter_map(|step| step.wait);
        waits.map(|(block, _)| block + 1 + (times - 1) * blocks.len()).max().unwrap_or(0)
    });
    let all = [
        ("steps of a block", steps, runtime.steps() as usize, SMALLER),
        (
            "blocks of a rank in one channel",
            of_channel,
            OF_CHANNEL,
            "use fewer ranks, or an algorithm with fewer peers",
        ),
        ("channels", channels as usize * times, CHANNELS as usize, FEWER),
        ("blocks up to one that others wait for", awaited, LAST_AWAITED as usize + 1, FEWER),
        (
            "blocks and steps of a rank",
            nodes,
            runtime.nodes().map_or(usize::MAX, |n| n as usize),
            FEWER,
        ),
    ];
    for (what, needs, holds, help) in all {
        refuse(what, needs, holds, help, options)?;
    }
    Ok(())
}
