//! The second step: whether there is a signal too many. The first takes what serves when it is asked; what is
//! taken later may tell the same.

use super::choose::{ElisionChoice, NONE, stays, unmet};
use super::needs::{After, Needs, Stop};
use super::paths::{Paths, CrossingCost};
use crate::ids::OpId;
use crate::schedule::{OpKind, Schedule};
use crate::verify::Order;

/// Events that searches look at.
const SEARCHED: u64 = 1 << 27;
/// Entries of clocks that are written by walks over the whole schedule.
const WALKED: u64 = 1 << 29;

/// Drops every signal without which all needs are still met, and gives each of the others a need that asks for
/// it; whether all were tried.
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
        // Mostly the need that it was taken for still asks for it: then nothing else is to be looked at.
        if why[wait.index()] != NONE {
            let need = &needs.all[why[wait.index()] as usize];
            let place = match need.after {
                After::Op(op) => paths.point(op, false),
                After::Next(op) => paths.point(op, true),
                After::Exit(rank) => paths.end(needs.main[rank.index()]),
            };
            let cost = |wait: OpId| if kept[wait.index()] { CrossingCost::Free } else { CrossingCost::Closed };
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
