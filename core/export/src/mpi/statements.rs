//! The statements of a rank: messages with requests, and moves of one destination.

use crate::loops::events::{EventPlace, LoopEvent, event_place};
use roundelay_core::ids::{OpId, RankId, RegionId, SpanId};
use roundelay_core::messages::{Action, FormPart, MessageId};
use roundelay_core::schedule::{Operand, Schedule};

/// The regions of a rank, in equal pieces of a unit.
#[derive(Clone, Copy)]
pub(super) struct RankPlaces<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) rank: RankId,
    pub(super) pieces: u64,
}

impl RankPlaces<'_> {
    pub(super) fn of(&self, region: RegionId) -> EventPlace {
        event_place(self.schedule, Operand { rank: self.rank, region }, self.pieces)
    }

    /// Returns the sources and the destinations of a move within the rank.
    pub(super) fn of_move(&self, id: OpId) -> [Vec<EventPlace>; 2] {
        let op = self.schedule.op(id);
        [self.schedule.srcs(op), self.schedule.dsts(op)]
            .map(|all| all.iter().map(|operand| self.of(operand.region)).collect())
    }
}

/// Returns the statements of a rank with these actions, each with its line in the source.
pub(super) fn statements(
    form: &FormPart<'_>,
    places: RankPlaces<'_>,
    actions: &[Action],
) -> Vec<(LoopEvent, u32)> {
    let line = |at: SpanId| form.schedule.location(at).line;
    // The messages that have each request, of receives and of sends.
    let mut requests: [Vec<Option<MessageId>>; 2] = [Vec::new(), Vec::new()];
    let mut own = Vec::new();
    for action in actions {
        match action {
            Action::Send(id) | Action::Receive(id) => {
                let m = &form.messages[id.index()];
                let send = matches!(action, Action::Send(_));
                let (here, peer) = if send { (m.source, m.to) } else { (m.target, m.from) };
                let held = &mut requests[usize::from(send)];
                // The first free request is taken, so that all iterations of a loop take the same requests.
                let free = held.iter().position(Option::is_none).unwrap_or(held.len());
                held.resize(held.len().max(free + 1), None);
                held[free] = Some(*id);
                let (request, tag) = (free as u64, m.lane.0);
                let begin = LoopEvent::Begin(send, request, peer.0, tag, places.of(here));
                own.push((begin, line(m.at)));
            }
            Action::Sent(id) | Action::Received(id) => {
                let send = matches!(action, Action::Sent(_));
                let held = &mut requests[usize::from(send)];
                let at = held.iter().position(|held| *held == Some(*id));
                let at = at.expect("a message is started before a wait for it");
                held[at] = None;
                let request = at as u64;
                match own.last_mut() {
                    // A wait for the next request is one with the previous wait.
                    Some((LoopEvent::Finish(of, first, many), _))
                        if *of == send && *first + *many == request =>
                    {
                        *many += 1;
                    }
                    // Waits have no line, since the author did not write them.
                    _ => own.push((LoopEvent::Finish(send, request, 1), 0)),
                }
            }
            Action::Move(id) => {
                let [srcs, dsts] = places.of_move(*id);
                let line = line(form.schedule.op(*id).at);
                own.extend(singles(&srcs, &dsts).into_iter().map(|single| (single, line)));
            }
        }
    }
    own
}

/// Returns a move as copies and reductions of one destination: copies have one source, and a reduction of two sources has
/// its destination as the first, if possible.
fn singles(srcs: &[EventPlace], dsts: &[EventPlace]) -> Vec<LoopEvent> {
    let fold = |srcs: &[EventPlace], dst| LoopEvent::Move(srcs.len() > 1, srcs.to_vec(), vec![dst]);
    // If a destination is the first source, the sources are reduced in it. A single source is copied to each.
    let place =
        if srcs.len() == 1 { srcs.first() } else { dsts.iter().find(|dst| **dst == srcs[0]) };
    let into = *place.unwrap_or(&dsts[0]);
    let mut singles: Vec<_> = match place {
        Some(_) => srcs[1..].iter().map(|src| fold(&[into, *src], into)).collect(),
        None => vec![fold(srcs, into)],
    };
    singles.extend(dsts.iter().filter(|dst| **dst != into).map(|dst| fold(&[into], *dst)));
    singles
}
