//! What a runtime holds, and what a program needs of it.

use super::super::runtime::{CHANNELS, LAST_AWAITED};
use super::blocks::{Block, Plan};
use super::{Options, unfit};
use crate::diagnostics::Finding;

/// Blocks of a rank in one channel.
const OF_CHANNEL: usize = 32;

/// Refuses a program that the runtime would refuse.
pub(super) fn check(plan: &Plan, channels: u32, options: Options) -> Result<(), Box<Finding>> {
    let Options { runtime, instances, .. } = options;
    let times = instances as usize;
    let most =
        |of: &dyn Fn(&Block) -> usize| plan.blocks.iter().flatten().map(of).max().unwrap_or(0);
    let per_rank = |of: &dyn Fn(&[Block]) -> usize| {
        plan.blocks.iter().map(|blocks| of(blocks)).max().unwrap_or(0)
    };
    let blocks = per_rank(&|blocks| blocks.len() * times);
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
    let fewer = "write fewer instances, use fewer ranks, or another runtime with --runtime";
    let all = [
        (
            "steps of a block",
            steps,
            runtime.steps() as usize,
            "use fewer ranks or larger pieces, or another runtime with --runtime",
        ),
        ("thread blocks of a rank", blocks, runtime.blocks() as usize, fewer),
        (
            "blocks of a rank in one channel",
            of_channel,
            OF_CHANNEL,
            "use fewer ranks, or an algorithm with fewer peers",
        ),
        ("channels", channels as usize * times, CHANNELS as usize, fewer),
        ("blocks up to one that others wait for", awaited, LAST_AWAITED as usize + 1, fewer),
        (
            "blocks and steps of a rank",
            nodes,
            runtime.nodes().map_or(usize::MAX, |n| n as usize),
            fewer,
        ),
    ];
    for (what, needs, holds, help) in all {
        if needs > holds {
            let title = format!("it needs {needs} {what}, and {} has {holds}", runtime.name());
            return Err(Box::new(unfit(title).help(help)));
        }
    }
    Ok(())
}
