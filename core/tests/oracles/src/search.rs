//! Every interleaving of two runs, state by state.
//!
//! Interleavings that differ only in the order of independent acts count as one: where a process stands before an act
//! that conflicts with nothing that the others can do without it, that act alone is taken (a persistent set of one);
//! everywhere else all acts are taken. Faults (a conflict, garbage, a deadlock, a result) depend on the order of
//! conflicting acts alone, so none is lost. States are kept whole: two are one only if they are equal.

use std::collections::HashSet;

use super::model::{Model, RUNS, What};
use super::values::{GARBAGE, Values};
use super::{Kind, Objection, Verdict};

#[derive(Clone, Hash, PartialEq, Eq)]
struct State {
    /// Begins and ends that each stream has behind it: odd in the middle of an act.
    at: Vec<usize>,
    /// Ends and begins of each caller's act: odd while the rank is in a run.
    callers: Vec<usize>,
    /// The values that a move has read and not yet written.
    read: Vec<Vec<u32>>,
    signals: Vec<u32>,
    memory: Vec<u32>,
}

struct Search<'m> {
    model: &'m Model<'m>,
    values: Values,
    /// Whether independent orders are one.
    reduce: bool,
    /// Channels for whose signals streams compete.
    contested: Vec<bool>,
}

/// Looks at `bound` states at most.
pub fn search(model: &Model<'_>, reduce: bool, bound: usize) -> Verdict {
    let mut waiters = vec![HashSet::new(); model.schedule.channels.len()];
    for (stream, acts) in model.streams.iter().enumerate() {
        for act in acts.clone() {
            if let What::Wait(channel) = model.ops[act] {
                waiters[channel].insert(stream);
            }
        }
    }
    let contested = waiters.iter().map(|streams| streams.len() > 1).collect();
    Search { model, values: Values::default(), reduce, contested }.run(bound)
}

impl Search<'_> {
    fn run(&mut self, bound: usize) -> Verdict {
        let model = self.model;
        let start = State {
            at: vec![0; model.streams.len()],
            callers: vec![0; model.ranks],
            read: vec![Vec::new(); model.streams.len()],
            signals: vec![0; model.schedule.channels.len()],
            memory: vec![GARBAGE; model.size],
        };
        let mut seen = HashSet::new();
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            if seen.contains(&state) {
                continue;
            }
            if seen.len() == bound {
                return Verdict::Undecided;
            }
            let able: Vec<usize> =
                (0..self.processes()).filter(|p| self.enabled(&state, *p)).collect();
            if able.is_empty()
                && let Err(objection) = end(&state)
            {
                return Verdict::Wrong(objection);
            }
            let alone = able.iter().find(|p| self.reduce && self.persistent(&state, **p));
            for process in alone.map_or(&able[..], std::slice::from_ref) {
                let mut next = state.clone();
                if let Err(objection) = self.take(&mut next, *process) {
                    return Verdict::Wrong(objection);
                }
                open.push(next);
            }
            seen.insert(state);
        }
        Verdict::Right
    }

    /// Streams, then callers.
    fn processes(&self) -> usize {
        self.model.streams.len() + self.model.ranks
    }

    fn caller(&self, process: usize) -> Option<usize> {
        process.checked_sub(self.model.streams.len())
    }

    fn ended(&self, state: &State, rank: usize) -> bool {
        let mut streams = self.model.streams.iter().zip(&state.at).zip(&self.model.rank_of);
        streams.all(|((acts, at), of)| *of != rank || *at == 2 * acts.len())
    }

    /// The act that a process begins or ends next.
    fn act(&self, state: &State, process: usize) -> Option<usize> {
        match self.caller(process) {
            Some(rank) => (state.callers[rank] < 2 * RUNS).then(|| self.model.caller(rank)),
            None => self.model.streams[process].clone().nth(state.at[process] / 2),
        }
    }

    fn enabled(&self, state: &State, process: usize) -> bool {
        if let Some(rank) = self.caller(process) {
            let phase = state.callers[rank];
            return phase < 2 * RUNS && (!midway(phase) || self.ended(state, rank));
        }
        let runs = midway(state.callers[self.model.rank_of[process]]);
        let Some(act) = self.act(state, process).filter(|_| runs) else { return false };
        match self.model.ops[act] {
            What::Wait(channel) => !midway(state.at[process]) || state.signals[channel] > 0,
            _ => true,
        }
    }

    /// Whether all that others can do before `process` goes on is independent of its next act.
    fn persistent(&self, state: &State, process: usize) -> bool {
        let Some(mine) = self.act(state, process) else { return false };
        let mut state = State { read: Vec::new(), memory: Vec::new(), ..state.clone() };
        loop {
            let mut gone_on = false;
            for other in (0..self.processes()).filter(|p| *p != process) {
                while self.enabled(&state, other) {
                    let act = self.act(&state, other).expect("an enabled process has an act");
                    if self.model.conflict(mine, act) {
                        return false;
                    }
                    self.advance(&mut state, other);
                    // Any stream that competes for a signal may get it.
                    if let Some(What::Wait(channel)) = self.model.ops.get(act)
                        && self.contested[*channel]
                        && !midway(state.at[other])
                    {
                        state.signals[*channel] += 1;
                    }
                    gone_on = true;
                }
            }
            if !gone_on {
                return true;
            }
        }
    }

    /// The control part of a step.
    fn advance(&self, state: &mut State, process: usize) {
        if let Some(rank) = self.caller(process) {
            state.callers[rank] += 1;
            for (at, _) in state.at.iter_mut().zip(&self.model.rank_of).filter(|(_, r)| **r == rank)
            {
                *at = 0;
            }
            return;
        }
        let act = self.model.streams[process].start + state.at[process] / 2;
        if midway(state.at[process]) {
            match self.model.ops[act] {
                What::Post(channel) => state.signals[channel] += 1,
                What::Wait(channel) => state.signals[channel] -= 1,
                _ => {}
            }
        }
        state.at[process] += 1;
    }

    fn take(&mut self, state: &mut State, process: usize) -> Result<(), Objection> {
        let model = self.model;
        let act = self.act(state, process).expect("an enabled process has an act");
        let run = |state: &State, rank: usize| state.callers[rank] / 2;
        if let Some(rank) = self.caller(process) {
            let now = run(state, rank);
            if midway(state.callers[rank]) {
                self.alone(state, process, act, now)?;
                model.exit(rank, now, &mut state.memory, &mut self.values)?;
            } else {
                model.enter(rank, now, &mut state.memory, &mut self.values);
            }
        } else if !midway(state.at[process]) {
            self.alone(state, process, act, run(state, model.rank_of[process]))?;
            let (folded, wrong) = model.fold(act, &state.memory, &mut self.values);
            if let Some(objection) = wrong {
                return Err(objection);
            }
            state.read[process] = folded;
        } else {
            model.store(act, &std::mem::take(&mut state.read[process]), &mut state.memory);
        }
        self.advance(state, process);
        Ok(())
    }

    /// Nothing with which `act` conflicts may be going on.
    fn alone(
        &self,
        state: &State,
        process: usize,
        act: usize,
        run: usize,
    ) -> Result<(), Objection> {
        for other in (0..self.processes()).filter(|p| *p != process) {
            let (going_on, other, theirs) = match self.caller(other) {
                Some(rank) => {
                    let phase = state.callers[rank];
                    (!midway(phase), self.model.caller(rank), phase / 2)
                }
                None if midway(state.at[other]) => {
                    let act = self.model.streams[other].start + state.at[other] / 2;
                    (true, act, state.callers[self.model.rank_of[other]] / 2)
                }
                None => continue,
            };
            if going_on && self.model.conflict(act, other) {
                return Err(self.model.clash((act, run), (other, theirs)));
            }
        }
        Ok(())
    }
}

/// Returns the fault of a state in which no process can go on.
fn end(state: &State) -> Result<(), Objection> {
    let wrong = |kind, why: &str| Err(Objection { kind, why: why.to_owned() });
    if state.callers.iter().any(|phase| *phase < 2 * RUNS) {
        return wrong(Kind::Deadlock, "nobody can go on");
    }
    if state.signals.iter().any(|left| *left > 0) {
        return wrong(Kind::LeftOver, "a signal is left over");
    }
    Ok(())
}

/// Whether that many begins and ends leave something begun.
fn midway(steps: usize) -> bool {
    steps % 2 == 1
}
