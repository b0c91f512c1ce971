//! The ops and the messages of single ranks, made from those of rank 0: put together, they are a schedule of all ranks,
//! which is proved as any other.

use std::collections::BTreeMap;

use roundelay_core::ids::{OpId, RankId, RegionId};
use roundelay_core::layout::{Algorithm, Configured};
use roundelay_core::messages::{Action, FormPart, Message, RankForm, Unformed};
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_core::symmetry;
use roundelay_core::verify::verify;

use super::read;
use crate::proof::suite::sources;

/// Returns the schedule with the ops of all ranks, each of which has a schedule of its own.
fn together(ranks: &[Schedule]) -> Schedule {
    let mut all = ranks[0].clone();
    for of in &ranks[1..] {
        let first = all.ops.len() as u32;
        let (operands, channels) = (all.operands.len() as u32, all.channels.len() as u32);
        let regions = all.regions.len() as u32;
        all.regions.extend_from_slice(&of.regions);
        all.channels.extend_from_slice(&of.channels);
        all.operands.extend(of.operands.iter().map(|operand| {
            let mut operand = *operand;
            operand.region = RegionId(operand.region.0 + regions);
            operand
        }));
        all.ops.extend(of.ops.iter().map(|op| {
            let mut op = *op;
            op.arg += if op.kind == OpKind::Move { operands } else { channels };
            op
        }));
        all.streams.extend(of.streams.iter().map(|stream| {
            let mut stream = *stream;
            stream.first = OpId(stream.first.0 + first);
            stream
        }));
    }
    // A channel has one number.
    let mut numbers = BTreeMap::new();
    let mut channels = Vec::new();
    for op in all.ops.iter_mut().filter(|op| op.kind != OpKind::Move) {
        let channel = all.channels[op.arg as usize];
        op.arg = *numbers.entry(format!("{channel:?}")).or_insert_with(|| {
            channels.push(channel);
            channels.len() as u32 - 1
        });
    }
    all.channels = channels;
    all
}

/// A message as both of its ends know it: its ranks, and its lane.
type Ends = (u32, u32, u32);

/// Returns the messages of each pair of ranks, in the order in which one end begins them.
fn begun(parts: &[FormPart<'_>], sends: bool) -> BTreeMap<(u32, u32), Vec<Ends>> {
    let mut all: BTreeMap<_, Vec<Ends>> = BTreeMap::new();
    for part in parts {
        for (_, actions) in &part.of {
            for action in *actions {
                let id = match action {
                    Action::Send(id) if sends => id,
                    Action::Receive(id) if !sends => id,
                    _ => continue,
                };
                let Message { from, to, lane, .. } = part.messages[id.index()];
                all.entry((from.0, to.0)).or_default().push((from.0, to.0, lane.0));
            }
        }
    }
    all
}

/// Makes the forms of all ranks, one by one; returns whether there are any.
fn formed(algorithm: &Configured, nranks: u32) -> Result<bool, String> {
    let Ok(proof) = symmetry::prove(algorithm, nranks) else { return Ok(false) };
    let name = format!("{} at {nranks}", algorithm.name());
    let ranks = || (0..nranks).map(RankId);
    let own: Option<Vec<Schedule>> = ranks().map(|rank| proof.of.of_rank(rank)).collect();
    let own = together(&own.ok_or_else(|| format!("{name} has too many parts"))?);
    verify(&own).map_err(|found| format!("{name}, ops: {}", found[0].title))?;
    let made: Result<Vec<RankForm>, Unformed> =
        ranks().map(|rank| RankForm::new(&proof, rank)).collect();
    let forms = match made {
        Ok(forms) => forms,
        Err(Unformed::Unlike(why)) => return Err(format!("{name}: {why}")),
        Err(Unformed::Wrong(found)) => return Err(format!("{name}: {}", found[0].title)),
    };
    let parts: Vec<FormPart<'_>> = forms.iter().map(RankForm::part).collect();
    let schedules: Vec<Schedule> = parts.iter().map(|part| part.schedule.clone()).collect();
    verify(&together(&schedules)).map_err(|found| format!("{name}: {:?}", found[0]))?;
    if begun(&parts, true) != begun(&parts, false) {
        return Err(format!("{name}: messages begin in another order at their other end"));
    }
    Ok(true)
}

#[test]
fn the_messages_of_single_ranks_are_a_form_of_all() {
    let mut made = 0;
    for (name, text) in sources() {
        for algorithm in read(&name, &text) {
            for nranks in [2, 3, 4, 6, 8, 12, 16] {
                made += u32::from(formed(&algorithm, nranks).unwrap());
            }
        }
    }
    println!("{made} forms of single ranks");
    assert!(made > 100, "{made}");
}
