//! The two-sided form for a vector of counts: each message and each move becomes one for each block that it is about.

use super::{Action, Message, MessageId, TwoSided};
use crate::counts::Counts;
use crate::diagnostics::Finding;
use crate::ids::{OpId, RankId};
use crate::schedule::{OpKind, Schedule, Stream};
use crate::verify::owners::parts;

impl TwoSided {
    /// Returns this form for a vector of counts: its schedule has units of one element, and runs with a count of 1.
    ///
    /// # Errors
    /// E0319 where the form is right for equal counts alone, E0432 for counts that do not fit it.
    pub fn for_counts(&self, counts: &Counts) -> Result<Self, Vec<Finding>> {
        let proved = self.proved.for_counts(counts)?;
        let schedule = proved.schedule();
        let parts = PartsOfMoves::new(self.schedule(), schedule);
        let (mut messages, mut numbers) = (Vec::new(), vec![0..0; self.messages.len()]);
        // The moves of a message are those where it is received.
        for (rank, actions) in (0..).map(RankId).zip(&self.actions) {
            for (action, moves) in parts.of(rank, actions) {
                let Action::Received(id) = action else { continue };
                let message = self.message(id);
                let first = messages.len() as u32;
                messages.extend(moves.map(|at| {
                    let operands = schedule.operands_of(schedule.op(at));
                    let [source, target] = [operands[0].region, operands[1].region];
                    Message { source, target, ..*message }
                }));
                numbers[id.index()] = first..messages.len() as u32;
            }
        }
        let actions = (0..).map(RankId).zip(&self.actions).map(|(rank, actions)| {
            let mut made = Vec::with_capacity(actions.len());
            for (action, moves) in parts.of(rank, actions) {
                let ids = |id: MessageId| numbers[id.index()].clone().map(MessageId);
                match action {
                    Action::Send(id) => made.extend(ids(id).map(Action::Send)),
                    Action::Sent(id) => made.extend(ids(id).map(Action::Sent)),
                    Action::Receive(id) => made.extend(ids(id).map(Action::Receive)),
                    Action::Received(id) => made.extend(ids(id).map(Action::Received)),
                    Action::Move(_) => made.extend(moves.map(Action::Move)),
                }
            }
            made
        });
        let actions = actions.collect();
        Ok(Self { proved, messages, actions })
    }
}

/// The moves of a schedule for a vector of counts that each move of the schedule for equal counts became.
struct PartsOfMoves {
    /// The moves of each stream, in order.
    streams: Vec<Vec<std::ops::Range<u32>>>,
}

impl PartsOfMoves {
    fn new(even: &Schedule, uneven: &Schedule) -> Self {
        let stream = |(of, made): (&Stream, &Stream)| {
            let mut next = made.first.0;
            let mut moves = Vec::new();
            for at in (of.first.0..of.first.0 + of.len).map(OpId) {
                if even.op(at).kind != OpKind::Move {
                    next += 1;
                    continue;
                }
                let region = even.region(even.operands_of(even.op(at))[0]);
                let number = parts(region.lo, region.hi).count() as u32;
                moves.push(next..next + number);
                next += number;
            }
            moves
        };
        Self { streams: even.streams.iter().zip(&uneven.streams).map(stream).collect() }
    }

    /// Returns the actions of a rank, whose stream has its number, with the moves of each: a message has moves where it
    /// is received.
    fn of<'a>(
        &'a self,
        rank: RankId,
        actions: &'a [Action],
    ) -> impl Iterator<Item = (Action, impl Iterator<Item = OpId> + use<>)> + 'a {
        let mut moves = self.streams[rank.index()].iter();
        actions.iter().map(move |action| {
            let has_moves = matches!(action, Action::Received(_) | Action::Move(_));
            let moves = if has_moves { moves.next().cloned() } else { None };
            (*action, moves.unwrap_or(0..0).map(OpId))
        })
    }
}
