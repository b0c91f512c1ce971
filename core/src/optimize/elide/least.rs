//! The second step: drops needless signals among the chosen ones. The first step keeps a signal when a need asks for
//! it; a signal kept later may meet the same need.

use super::choose::{ElisionChoice, NONE, stays, unmet};
use super::needs::{After, Needs, Stop};
use super::paths::{CrossingCost, Paths};
use crate::ids::OpId;
use crate::schedule::{OpKind, Schedule};
use crate::verify::Order;

/// The most events that searches look at.
const SEARCHED: u64 = 1 << 27;
/// The most entries of clocks that walks over the whole schedule write.
const WALKED: u64 = 1 << 29;

/// Drops every signal without which all needs are still met, and gives each of the others a need that asks for it.
/// Returns whether all were tried.
pub(super) fn least(
    schedule: &Schedule,
    order: &Order,
    needs: &Needs,
    paths: &mut Paths<'_>,
    choice: &mut ElisionChoice,
) -> Result<bool, Stop> {
    let ElisionChoice { kept, why } = choice;
    let tried = |wait: &OpId| schedule.op(*wait).kind == OpKind::Wait && !stays(schedule, *wait);
    let waits = order.sequence.iter().rev().copied().filter(tried);
    let mut left = kept.iter().filter(|kept| **kept).count() as u64;
    let (mut walked, mut all) = (0, true);
    paths.work = 0;
    for wait in waits {
        if !kept[wait.index()] {
            continue;
        }
        if paths.work > SEARCHED {
            return Ok(false);
        }
        kept[wait.index()] = false;
        // Often the need that the wait was kept for still asks for it, which a search settles without a walk.
        if why[wait.index()] != NONE {
            let need = &needs.all[why[wait.index()] as usize];
            let place = match need.after {
                After::Op(op) => paths.point(op, false),
                After::Next(op) => paths.point(op, true),
                After::Exit(rank) => paths.end(needs.main[rank.index()]),
            };
            let cost = |wait: OpId| {
                if kept[wait.index()] { CrossingCost::Free } else { CrossingCost::Closed }
            };
            if paths.find(need.before, place, cost).is_none() {
                kept[wait.index()] = true;
                continue;
            }
        }
        walked += schedule.ops.len() as u64
            + needs.all.len() as u64
            + left * schedule.streams.len() as u64;
        if walked > WALKED {
            kept[wait.index()] = true;
            all = false;
            continue;
        }
        match unmet(schedule, order, needs, kept)? {
            Some(need) => (kept[wait.index()], why[wait.index()]) = (true, need),
            None => left -= 1,
        }
    }
    Ok(all)
}
