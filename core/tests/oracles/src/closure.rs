//! The order of acts, in full: the transitive closure over all acts of two runs and the callers.
//!
//! Conflicting acts must be ordered, and then one order of execution stands for all. Where streams compete for a
//! channel, the matching is that of one execution; if one end turns out not to be in order, the streams share a signal,
//! and if it is in order, no other matching is possible.

use std::collections::VecDeque;

use super::model::{Bits, Model, RUNS, What};
use super::values::{GARBAGE, Values};
use super::{Kind, Objection};

/// An act in a run. A caller's act number `run` comes before run `run`.
#[derive(Clone, Copy)]
struct Event {
    act: usize,
    run: usize,
}

struct Closure<'m> {
    model: &'m Model<'m>,
    events: Vec<Event>,
    /// The events that come next, at least.
    next: Vec<Vec<usize>>,
    /// The ops of its stream before it.
    prior: Vec<usize>,
}

/// All that is wrong with two runs; nothing if they are right in every interleaving.
pub(super) fn closure(model: &Model<'_>) -> Vec<Objection> {
    let mut closure = Closure::new(model);
    let order = match closure.meet() {
        Ok(order) => order,
        Err(objection) => return vec![objection],
    };
    let mut found = closure.unordered(&order);
    closure.execute(&order, &mut found);
    found
}

impl<'m> Closure<'m> {
    fn new(model: &'m Model<'m>) -> Self {
        let acts = model.ops.len() + model.ranks;
        let events: Vec<_> =
            (0..=RUNS).flat_map(|run| (0..acts).map(move |act| Event { act, run })).collect();
        let mut closure = Self {
            model,
            next: vec![Vec::new(); events.len()],
            prior: vec![0; events.len()],
            events,
        };
        for run in 0..RUNS {
            for (stream, acts) in model.streams.iter().enumerate() {
                let caller = model.caller(model.rank_of[stream]);
                let mut last = closure.event(caller, run);
                for act in acts.clone() {
                    let event = closure.event(act, run);
                    closure.next[last].push(event);
                    closure.prior[event] = last;
                    last = event;
                }
                let after = closure.event(caller, run + 1);
                closure.next[last].push(after);
            }
        }
        closure
    }

    fn event(&self, act: usize, run: usize) -> usize {
        run * (self.model.ops.len() + self.model.ranks) + act
    }

    /// Ops have no run after the last.
    fn exists(&self, event: usize) -> bool {
        let Event { act, run } = self.events[event];
        run < RUNS || act >= self.model.ops.len()
    }

    /// Lets the k-th post of each channel meet the k-th wait; an order of all events, if there is one.
    fn meet(&mut self) -> Result<Vec<usize>, Objection> {
        let channels = self.model.schedule.channels.len();
        let mut posts = vec![VecDeque::new(); channels];
        let mut waits = vec![VecDeque::new(); channels];
        let mut before = vec![0; self.events.len()];
        self.next.iter().flatten().for_each(|event| before[*event] += 1);
        let mut ready: VecDeque<usize> =
            (0..before.len()).filter(|e| before[*e] == 0 && self.exists(*e)).collect();
        let mut order = Vec::new();
        while let Some(event) = ready.pop_front() {
            let (mut done, channel) = match self.model.ops.get(self.events[event].act) {
                Some(What::Post(channel)) => {
                    posts[*channel].push_back(event);
                    (vec![event], Some(*channel))
                }
                Some(What::Wait(channel)) => {
                    waits[*channel].push_back(event);
                    (Vec::new(), Some(*channel))
                }
                _ => (vec![event], None),
            };
            if let Some(channel) = channel
                && let (Some(&post), Some(&wait)) = (posts[channel].front(), waits[channel].front())
            {
                posts[channel].pop_front();
                waits[channel].pop_front();
                self.next[post].push(wait);
                done.push(wait);
            }
            order.extend(&done);
            for event in done {
                for next in self.next[event].clone() {
                    // A post's wait is done as soon as they meet: that edge was not counted.
                    if before[next] > 0 {
                        before[next] -= 1;
                        if before[next] == 0 {
                            ready.push_back(next);
                        }
                    }
                }
            }
        }
        let wrong = |kind, why: &str| Err(Objection { kind, why: why.to_owned() });
        if order.len() < (0..self.events.len()).filter(|e| self.exists(*e)).count() {
            return wrong(Kind::Deadlock, "a wait is never met");
        }
        if posts.iter().any(|left| !left.is_empty()) {
            return wrong(Kind::LeftOver, "a signal is left over");
        }
        Ok(order)
    }

    /// Returns conflicting acts of which neither comes before the other.
    fn unordered(&self, order: &[usize]) -> Vec<Objection> {
        let mut after = vec![Bits::new(self.events.len()); self.events.len()];
        for &event in order.iter().rev() {
            let mut mine = Bits::new(self.events.len());
            for next in &self.next[event] {
                mine.add(*next);
                mine.join(&after[*next]);
            }
            after[event] = mine;
        }
        // A wait begins where its stream stands at it, whichever post it then meets.
        let before = |a: usize, b: usize| match self.model.ops.get(self.events[b].act) {
            Some(What::Wait(_)) => a == self.prior[b] || after[a].has(self.prior[b]),
            _ => after[a].has(b),
        };
        let mut place = vec![None; self.events.len()];
        order.iter().enumerate().for_each(|(i, event)| place[*event] = Some(i));
        let mut found = Vec::new();
        for &a in order {
            let Event { act, run } = self.events[a];
            for rival in self.model.rivals(act) {
                for other in 0..=RUNS {
                    let b = self.event(rival, other);
                    if place[a] < place[b] && !before(a, b) {
                        found.push(self.model.clash((act, run), (rival, other)));
                    }
                }
            }
        }
        found
    }

    /// Runs one execution, on values. Where acts are unordered, it is one of the possible executions.
    fn execute(&self, order: &[usize], found: &mut Vec<Objection>) {
        let mut values = Values::default();
        let mut memory = vec![GARBAGE; self.model.size];
        for event in order {
            let Event { act, run } = self.events[*event];
            if let Some(rank) = act.checked_sub(self.model.ops.len()) {
                if run > 0 {
                    found.extend(self.model.exit(rank, run - 1, &mut memory, &mut values).err());
                }
                if run < RUNS {
                    self.model.enter(rank, run, &mut memory, &mut values);
                }
            } else {
                let (folded, wrong) = self.model.fold(act, &memory, &mut values);
                found.extend(wrong);
                self.model.store(act, &folded, &mut memory);
            }
        }
    }
}
