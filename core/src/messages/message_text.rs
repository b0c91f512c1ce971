//! The actions of ranks as text.

use std::fmt::Write as _;

use super::{Action, MessageId, TwoSided};
use crate::ids::{LaneId, RankId, RegionId};
use crate::schedule::{Operand, text};

/// Prints the actions of each rank, a line for each. Messages have their numbers behind `@`.
///
/// ```text
/// rank 0
///   receive 0.received0#0@0[0..1/2] from 1 @1
///   send 0.output[1/2..1] to 1 @0
/// ```
pub fn print(form: &TwoSided) -> String {
    let mut out = String::new();
    for rank in (0..form.schedule().nranks).map(RankId) {
        let _ = writeln!(out, "rank {rank}");
        for action in form.actions(rank) {
            let _ = writeln!(out, "  {}", line(form, *action));
        }
    }
    out
}

fn line(form: &TwoSided, action: Action) -> String {
    let schedule = form.schedule();
    let place = |rank, region: RegionId| text::operand(schedule, Operand { rank, region });
    let lane = |lane: LaneId| {
        let values = schedule.lanes[lane.index()].iter().map(ToString::to_string);
        let values: Vec<_> = values.collect();
        if values.is_empty() { String::new() } else { format!(" lane {}", values.join(",")) }
    };
    let with = |id: MessageId| (form.message(id), id.0);
    match action {
        Action::Move(at) => text::op(schedule, schedule.op(at)),
        Action::Send(id) => {
            let (message, id) = with(id);
            let source = place(message.from, message.source);
            format!("send {source} to {}{} @{id}", message.to, lane(message.lane))
        }
        Action::Receive(id) => {
            let (message, id) = with(id);
            let target = place(message.to, message.target);
            format!("receive {target} from {}{} @{id}", message.from, lane(message.lane))
        }
        Action::Sent(id) => format!("sent @{}", id.0),
        Action::Received(id) => format!("received @{}", id.0),
    }
}
