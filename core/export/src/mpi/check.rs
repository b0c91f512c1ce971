//! The check of a file's statements: they run at every rank that is written, and each action that was proved is found in
//! them, before anything is printed.

use std::collections::BTreeMap;

use super::statements::RankPlaces;
use crate::loops::Loops;
use crate::loops::events::{EventPlace, LoopEvent};
use crate::loops::machine::{Differs, RunFacts, RunResult, run};
use roundelay_core::ids::OpId;
use roundelay_core::messages::{Action, FormPart, MessageId};

/// The facts of the runs, which the text depends on.
#[derive(Default)]
pub(super) struct MpiFacts {
    pub(super) run: RunFacts,
    /// The most requests of each way that a rank has at once.
    pub(super) sends: u64,
    pub(super) receives: u64,
    /// The pieces of the longest reduction that may need scratch of its own; 0 for none.
    pub(super) spare: u64,
}

/// Runs a form at the ranks of `form`, and compares its statements with their actions. Lines are not compared.
pub(super) fn check(loops: &Loops, form: &FormPart<'_>) -> RunResult<MpiFacts> {
    let mut facts = MpiFacts::default();
    for (rank, actions) in &form.of {
        let streams = run(loops, form.schedule, rank.0, &mut facts.run)?;
        let [events] = <[_; 1]>::try_from(streams).map_err(|_| Differs)?;
        let places = RankPlaces { schedule: form.schedule, rank: *rank, pieces: loops.pieces };
        let (events, held) =
            (events.into_iter().flat_map(|(_, event)| single(event)), BTreeMap::new());
        let mut compared = Compared { form, places, events, held, facts: &mut facts };
        actions.iter().try_for_each(|action| compared.action(*action))?;
        if compared.next().is_ok() || !compared.held.is_empty() {
            return Err(Differs);
        }
    }
    Ok(facts)
}

/// Returns a wait for several requests as waits for one, and another statement as it is.
fn single(event: LoopEvent) -> impl Iterator<Item = LoopEvent> {
    let many = if let LoopEvent::Finish(_, _, many) = event { many } else { 1 };
    (0..many).map(move |nth| match event {
        LoopEvent::Finish(send, first, _) => LoopEvent::Finish(send, first + nth, 1),
        _ => event.clone(),
    })
}

/// The statements of a rank that were not compared yet.
struct Compared<'a, I> {
    form: &'a FormPart<'a>,
    places: RankPlaces<'a>,
    events: I,
    /// The message of each request in use; requests of sends and of receives are numbered apart.
    held: BTreeMap<(bool, u64), MessageId>,
    facts: &'a mut MpiFacts,
}

impl<I: Iterator<Item = LoopEvent>> Compared<'_, I> {
    fn next(&mut self) -> RunResult<LoopEvent> {
        self.events.next().ok_or(Differs)
    }

    fn action(&mut self, action: Action) -> RunResult<()> {
        match action {
            Action::Send(id) => self.begins(true, id),
            Action::Receive(id) => self.begins(false, id),
            Action::Sent(id) => self.ends(true, id),
            Action::Received(id) => self.ends(false, id),
            Action::Move(id) => self.moves(id),
        }
    }

    /// Compares the begin of a message, whose request must be free.
    fn begins(&mut self, send: bool, id: MessageId) -> RunResult<()> {
        let m = &self.form.messages[id.index()];
        let (here, peer) = if send { (m.source, m.to) } else { (m.target, m.from) };
        let begin = self.next()?;
        let LoopEvent::Begin(_, request, ..) = begin else { return Err(Differs) };
        let proved = LoopEvent::Begin(send, request, peer.0, m.lane.0, self.places.of(here));
        let busy = self.held.insert((send, request), id).is_some();
        let most = if send { &mut self.facts.sends } else { &mut self.facts.receives };
        *most = (*most).max(request + 1);
        if begin == proved && !busy { Ok(()) } else { Err(Differs) }
    }

    /// Compares a wait, which must be for the request that the message has.
    fn ends(&mut self, send: bool, id: MessageId) -> RunResult<()> {
        let LoopEvent::Finish(of, request, _) = self.next()? else { return Err(Differs) };
        let held = self.held.remove(&(of, request));
        if of == send && held == Some(id) { Ok(()) } else { Err(Differs) }
    }

    /// Compares a move with the copies and reductions that do it: they leave the sources, reduced in their order, in every
    /// destination.
    fn moves(&mut self, id: OpId) -> RunResult<()> {
        let [srcs, dsts] = self.places.of_move(id);
        // The sources that are reduced in a place; a place that was not written holds itself.
        let mut held: Vec<(EventPlace, Vec<EventPlace>)> = Vec::new();
        let holds = |held: &Vec<(EventPlace, Vec<EventPlace>)>, place: &EventPlace| {
            let written = held.iter().rfind(|(written, _)| written == place);
            written.map_or_else(|| vec![*place], |(_, sources)| sources.clone())
        };
        for _ in 0..=srcs.len() + dsts.len() {
            if dsts.iter().all(|dst| holds(&held, dst) == srcs) {
                return Ok(());
            }
            let LoopEvent::Move(_, from, to) = self.next()? else { return Err(Differs) };
            let [to] = to[..] else { return Err(Differs) };
            if !dsts.contains(&to) {
                return Err(Differs);
            }
            let (_, _, [lo, hi, ..], _) = to;
            if from.len() > 2 || (from.len() == 2 && from[0] != to) {
                self.facts.spare = self.facts.spare.max(hi - lo).max(1);
            }
            held.push((to, from.iter().flat_map(|place| holds(&held, place)).collect()));
        }
        Err(Differs)
    }
}
