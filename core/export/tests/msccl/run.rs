//! The runtime in small, written from its rules and not from the importer: blocks are processes over bounded queues,
//! values are sets of contributions, and clocks give the order. Data is checked with each step as one message, and
//! hanging also with each chunk as one.

use std::collections::{BTreeMap, VecDeque};

use super::model::{Block, Model, Step, get, reads, receives, sends, writes};
use super::models::{Cell, Clock, Outcome, Sum, add, join};

/// Returns the outcome of a program in the modes that it declares. An error out of place is reported without regard to
/// errors in place.
pub(super) fn outcome(text: &str) -> Outcome {
    let modes = [("outofplace", false), ("inplace", true)];
    let said = modes.into_iter().filter(|(name, _)| get(text, name) == "1");
    let all: Vec<_> = said.map(|(_, in_place)| in_mode(&Model::new(text, in_place))).collect();
    let worst = *all.iter().max().expect("it is called");
    match all[0] {
        Outcome::Right | Outcome::HangsWhenLarge => worst,
        _ if worst == Outcome::Refused => worst,
        first => first,
    }
}

fn in_mode(model: &Model) -> Outcome {
    if model.refused {
        return Outcome::Refused;
    }
    let mut run = Run::new(model, i64::MAX);
    if !run.ends() {
        return Outcome::Hangs;
    }
    if run.raced {
        return Outcome::Race;
    }
    if run.unwritten || !run.result() {
        return Outcome::Wrong;
    }
    if Run::new(model, 1).ends() { Outcome::Right } else { Outcome::HangsWhenLarge }
}

/// A message: its chunks, and its sender's clock.
type Message = (Vec<Option<Sum>>, Clock);

#[derive(Default)]
struct Queue {
    messages: VecDeque<Message>,
    sent: usize,
    /// The receiver's clock when it gave a slot back.
    taken: Vec<Clock>,
}

struct Run<'m> {
    model: &'m Model,
    /// Chunks of a message.
    most: i64,
    memory: Vec<Vec<Cell>>,
    queues: BTreeMap<(i64, i64, i64), Queue>,
    /// Of each block: its next step, the chunks of it that are done, its clock, and its posts.
    next: Vec<usize>,
    done: Vec<i64>,
    clocks: Vec<Clock>,
    posts: Vec<Vec<(i64, Clock)>>,
    raced: bool,
    unwritten: bool,
}

impl<'m> Run<'m> {
    fn new(model: &'m Model, most: i64) -> Self {
        let n = model.blocks.len();
        let mut run = Self {
            model,
            most,
            memory: Vec::new(),
            queues: BTreeMap::new(),
            next: vec![0; n],
            done: vec![0; n],
            clocks: (0..n).map(|id| (0..n).map(|at| u32::from(at == id)).collect()).collect(),
            posts: vec![Vec::new(); n],
            raced: false,
            unwritten: false,
        };
        for gpu in 0..model.ranks {
            let scratch = model.size(gpu, 's') as usize;
            let mut cells: Vec<Cell> = Vec::new();
            cells.resize_with(2 * model.chunks + scratch, Cell::default);
            for at in 0..model.room(gpu, 'i') {
                let cell = model.cell(gpu, ('i', at));
                cells[cell].value = Some(Sum::from([((gpu, at as usize), 1)]));
            }
            run.memory.push(cells);
        }
        run
    }

    /// Runs all blocks; whether they come to their end, and leave nothing behind.
    fn ends(&mut self) -> bool {
        while (0..self.next.len()).filter(|id| self.advance(*id)).count() > 0 {}
        let ended = |(id, block): (usize, &Block)| self.next[id] == block.steps.len();
        self.model.blocks.iter().enumerate().all(ended)
            && self.queues.values().all(|queue| queue.messages.is_empty())
    }

    /// One message of a block's next step; whether anything was done.
    fn advance(&mut self, id: usize) -> bool {
        let model = self.model;
        let block = &model.blocks[id];
        let Some(step) = block.steps.get(self.next[id]) else { return false };
        if self.done[id] == 0 && !self.waited(id, step) {
            return false;
        }
        let me = block.gpu as i64;
        let count = self.most.min(step.count - self.done[id]);
        if count > 0 {
            let (from, to) = ((block.receive, me, block.channel), (me, block.send, block.channel));
            if receives(&step.kind)
                && self.queues.get(&from).is_none_or(|queue| queue.messages.is_empty())
            {
                return false;
            }
            if sends(&step.kind) {
                let queue = self.queues.entry(to).or_default();
                if queue.sent - queue.taken.len() >= model.slots {
                    return false;
                }
            }
            self.act(id, step, (from, to), count);
        }
        self.done[id] += count;
        if self.done[id] == step.count {
            self.done[id] = 0;
            self.next[id] += 1;
            if step.posts {
                let clock = self.clocks[id].clone();
                self.posts[id].push((step.level, clock));
            }
            self.clocks[id][id] += 1;
        }
        true
    }

    fn waited(&mut self, id: usize, step: &Step) -> bool {
        let first = self.model.first[self.model.blocks[id].gpu];
        let mut heard = Vec::new();
        for (block, level) in &step.waits {
            let other = first + *block as usize;
            let there = other < self.model.first[self.model.blocks[id].gpu + 1];
            let posts = if there { &self.posts[other][..] } else { &[] };
            let Some((_, clock)) = posts.iter().find(|(posted, _)| posted >= level) else {
                return false;
            };
            heard.push(clock.clone());
        }
        for clock in &heard {
            join(&mut self.clocks[id], clock);
        }
        true
    }

    fn act(
        &mut self,
        id: usize,
        step: &Step,
        (from, to): ((i64, i64, i64), (i64, i64, i64)),
        count: i64,
    ) {
        let gpu = self.model.blocks[id].gpu;
        let first = self.done[id];
        // A copy onto itself changes nothing, such as the copy of a rank's own block in place.
        let cell = |place| self.model.cell(gpu, place);
        if step.kind == "cpy" && cell(step.src) == cell(step.dst) {
            return;
        }
        let mut came = None;
        if receives(&step.kind) {
            let (values, clock) = self.queues.get_mut(&from).unwrap().messages.pop_front().unwrap();
            join(&mut self.clocks[id], &clock);
            came = Some(values);
        }
        if sends(&step.kind) {
            let queue = &self.queues[&to];
            if let Some(freed) = queue.sent.checked_sub(self.model.slots) {
                let clock = queue.taken[freed].clone();
                join(&mut self.clocks[id], &clock);
            }
        }
        let mut values = Vec::new();
        for k in 0..count {
            let at = |(letter, offset): (char, i64)| (letter, offset + first + k);
            let mut value = came.as_ref().and_then(|values| values[k as usize].clone());
            if step.kind == "re" {
                value = self.read(id, gpu, at(step.dst));
            }
            if reads(&step.kind) {
                for source in &step.sources {
                    let own = self.read(id, gpu, at((step.src.0, *source)));
                    let alone = matches!(&*step.kind, "s" | "cpy");
                    value = if alone { own } else { add(value, own) };
                }
            }
            values.push(value);
        }
        if writes(&step.kind) {
            for (k, value) in (0..).zip(&values) {
                self.write(id, gpu, (step.dst.0, step.dst.1 + first + k), value.clone());
            }
        }
        if receives(&step.kind) {
            let clock = self.clocks[id].clone();
            self.queues.get_mut(&from).unwrap().taken.push(clock);
        }
        if sends(&step.kind) {
            let clock = self.clocks[id].clone();
            let queue = self.queues.get_mut(&to).unwrap();
            queue.messages.push_back((values, clock));
            queue.sent += 1;
        }
    }

    fn read(&mut self, id: usize, gpu: usize, place: (char, i64)) -> Option<Sum> {
        let cell = &mut self.memory[gpu][self.model.cell(gpu, place)];
        self.raced |= cell.read(id, &self.clocks[id]);
        self.unwritten |= cell.value.is_none();
        cell.value.clone()
    }

    fn write(&mut self, id: usize, gpu: usize, place: (char, i64), value: Option<Sum>) {
        let cell = &mut self.memory[gpu][self.model.cell(gpu, place)];
        self.raced |= cell.write(id, &self.clocks[id], value);
    }

    /// Whether every output holds the data that the collective promises.
    fn result(&self) -> bool {
        let Model { ranks, chunks, coll, .. } = self.model;
        let part = chunks / ranks;
        (0..*ranks).all(|gpu| {
            (0..*chunks).all(|at| {
                let expected: Sum = match &**coll {
                    "allreduce" => (0..*ranks).map(|rank| ((rank, at), 1)).collect(),
                    "allgather" => Sum::from([((at / part, at % part), 1)]),
                    _ => Sum::from([((at / part, gpu * part + at % part), 1)]),
                };
                let cell = self.model.cell(gpu, ('o', at as i64));
                self.memory[gpu][cell].value.as_ref() == Some(&expected)
            })
        })
    }
}
