//! The runtime in small, written from its rules and not from the importer: blocks are processes over bounded queues,
//! values are sets of contributions, and clocks say what is ordered. Data is looked at with each step as one message,
//! and hanging also with each chunk as one.

use std::collections::{BTreeMap, VecDeque};

/// What comes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Right,
    /// Ends where each step is one message, and hangs where each chunk is.
    HangsWhenLarge,
    Wrong,
    Race,
    Hangs,
    Refused,
}

/// One end of a connection: sender, receiver, channel, and whether it is the sender's.
type End = (i64, i64, i64, bool);
type Value = BTreeMap<(usize, usize), u32>;
type Clock = Vec<u32>;

#[derive(Clone)]
struct Step {
    kind: String,
    src: (char, i64),
    dst: (char, i64),
    count: i64,
    dep: (i64, i64),
    posts: bool,
    /// All sources of reductions that are one operation.
    sources: Vec<i64>,
    waits: Vec<(i64, i64)>,
    level: i64,
}

struct Block {
    gpu: usize,
    send: i64,
    receive: i64,
    channel: i64,
    steps: Vec<Step>,
}

#[derive(Default)]
struct Cell {
    value: Option<Value>,
    write: Option<(usize, u32)>,
    reads: Vec<(usize, u32)>,
}

pub(super) struct Model {
    ranks: usize,
    chunks: usize,
    coll: String,
    slots: usize,
    in_place: bool,
    sizes: Vec<[i64; 3]>,
    blocks: Vec<Block>,
    /// The first block of each rank.
    first: Vec<usize>,
    refused: bool,
}

/// The value of an attribute in a line.
fn get<'t>(line: &'t str, name: &str) -> &'t str {
    let key = format!(" {name}=\"");
    let at = line.find(&key).unwrap_or_else(|| panic!("{name} in {line}")) + key.len();
    line[at..].split('"').next().unwrap()
}

fn int(line: &str, name: &str) -> i64 {
    get(line, name).parse().unwrap()
}

impl Model {
    /// Reads a program that has a tag a line.
    pub(super) fn new(text: &str) -> Self {
        let mut model = Self {
            ranks: 0,
            chunks: 0,
            coll: String::new(),
            slots: 0,
            in_place: false,
            sizes: Vec::new(),
            blocks: Vec::new(),
            first: Vec::new(),
            refused: false,
        };
        let mut raw: Vec<Vec<Step>> = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with("<algo") {
                model.ranks = int(line, "ngpus") as usize;
                model.chunks = int(line, "nchunksperloop") as usize;
                get(line, "coll").clone_into(&mut model.coll);
                model.slots = if get(line, "proto") == "Simple" { 2 } else { 8 };
                model.in_place = get(line, "inplace") == "1";
            } else if line.starts_with("<gpu") {
                model.sizes.push(["i_chunks", "o_chunks", "s_chunks"].map(|n| int(line, n)));
                model.first.push(model.blocks.len());
            } else if line.starts_with("<tb") {
                let [send, receive, channel] = ["send", "recv", "chan"].map(|n| int(line, n));
                let gpu = model.sizes.len() - 1;
                model.blocks.push(Block { gpu, send, receive, channel, steps: Vec::new() });
                raw.push(Vec::new());
            } else if line.starts_with("<step") {
                let place = |letter: &str, offset: &str| {
                    (get(line, letter).chars().next().unwrap(), int(line, offset))
                };
                raw.last_mut().unwrap().push(Step {
                    kind: get(line, "type").to_owned(),
                    src: place("srcbuf", "srcoff"),
                    dst: place("dstbuf", "dstoff"),
                    count: int(line, "cnt"),
                    dep: (int(line, "depid"), int(line, "deps")),
                    posts: get(line, "hasdep") == "1",
                    sources: Vec::new(),
                    waits: Vec::new(),
                    level: 0,
                });
            }
        }
        model.first.push(model.blocks.len());
        for (block, steps) in raw.into_iter().enumerate() {
            model.lower(block, steps);
        }
        model.check();
        model
    }

    /// `nop`s give their waits to the next step that acts; reductions into one place become one.
    fn lower(&mut self, block: usize, raw: Vec<Step>) {
        let (mut waits, mut level, mut reductions) = (Vec::new(), 0, 0);
        let mut chain = false;
        for mut step in raw {
            if step.dep.0 >= 0 {
                waits.push(step.dep);
            }
            if step.kind == "nop" {
                continue;
            }
            let into = self.blocks[block].steps.last_mut();
            if step.kind == "re"
                && chain
                && step.dep.0 == -1
                && let Some(last) =
                    into.filter(|last| last.dst == step.dst && last.src.0 == step.src.0)
            {
                last.sources.push(step.src.1);
                last.count = step.count;
                last.posts = step.posts;
                last.level += 1;
                level += 1;
                reductions += 1;
                chain = !step.posts && reductions != 16;
                self.place(block, &step);
                continue;
            }
            if !waits.is_empty() && step.dep.0 < 0 {
                self.refused = true;
            }
            self.place(block, &step);
            step.waits = std::mem::take(&mut waits);
            level += (step.waits.len() as i64 - 1).max(0);
            step.level = level;
            level += 1;
            step.sources = vec![step.src.1];
            chain = false;
            if step.kind == "re" {
                reductions += 1;
                chain = !step.posts && reductions != 16;
            }
            self.blocks[block].steps.push(step);
        }
    }

    fn size(&self, gpu: usize, letter: char) -> i64 {
        self.sizes[gpu][['i', 'o', 's'].iter().position(|l| *l == letter).unwrap()]
    }

    /// What is beyond a buffer is refused, by the parser or for what it would do.
    fn place(&mut self, block: usize, step: &Step) {
        let Block { gpu, send, receive, .. } = self.blocks[block];
        self.refused |= sends(&step.kind) && send < 0 || receives(&step.kind) && receive < 0;
        let used = [(step.src, reads(&step.kind)), (step.dst, writes(&step.kind))];
        for (place, _) in used.into_iter().filter(|(_, used)| *used) {
            self.refused |= place.1 < 0 || place.1 + step.count > self.room(gpu, place.0);
            self.refused |= place.1 >= self.size(gpu, place.0);
        }
        self.refused |= writes(&step.kind) && step.dst.0 == 'i' && !self.in_place;
    }

    /// Chunks of a buffer as the caller makes it.
    fn room(&self, gpu: usize, letter: char) -> i64 {
        let (all, part) = (self.chunks as i64, (self.chunks / self.ranks) as i64);
        match (letter, &*self.coll) {
            ('s', _) => self.size(gpu, 's'),
            ('i', "allgather") => part,
            _ => all,
        }
    }

    /// Where a chunk lies in the memory of its rank.
    fn cell(&self, gpu: usize, (letter, at): (char, i64)) -> usize {
        let at = at as usize;
        let all = self.chunks;
        match letter {
            's' => 2 * all + at,
            'o' => all + at,
            _ if !self.in_place => at,
            _ if self.coll == "allgather" => all + gpu * all / self.ranks + at,
            _ => all + at,
        }
    }

    fn check(&mut self) {
        let mut passing: BTreeMap<End, (usize, Vec<i64>)> = BTreeMap::new();
        for (id, block) in self.blocks.iter().enumerate() {
            let me = block.gpu as i64;
            for step in block.steps.iter().filter(|step| step.count > 0) {
                for out in [true, false] {
                    let used = if out { sends(&step.kind) } else { receives(&step.kind) };
                    if !used {
                        continue;
                    }
                    let (from, to) = if out { (me, block.send) } else { (block.receive, me) };
                    let key = (from, to, block.channel, out);
                    let known = passing.entry(key).or_insert((id, Vec::new()));
                    self.refused |= known.0 != id;
                    known.1.push(step.count);
                }
                if writes(&step.kind) && reads(&step.kind) && !self.refused {
                    for source in &step.sources {
                        let src = self.cell(block.gpu, (step.src.0, *source));
                        let dst = self.cell(block.gpu, step.dst);
                        let apart = src.abs_diff(dst) >= step.count as usize;
                        self.refused |= src != dst && !apart;
                    }
                }
            }
        }
        for ((from, to, channel, _), (_, sent)) in passing.iter().filter(|(key, _)| key.3) {
            if let Some((_, received)) = passing.get(&(*from, *to, *channel, false)) {
                self.refused |= sent.iter().zip(received).any(|(a, b)| a != b);
            }
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        if self.refused {
            return Outcome::Refused;
        }
        let mut run = Run::new(self, i64::MAX);
        if !run.ends() {
            return Outcome::Hangs;
        }
        if run.raced {
            return Outcome::Race;
        }
        if run.unwritten || !run.result() {
            return Outcome::Wrong;
        }
        if Run::new(self, 1).ends() { Outcome::Right } else { Outcome::HangsWhenLarge }
    }
}

fn sends(kind: &str) -> bool {
    kind.ends_with('s')
}

fn receives(kind: &str) -> bool {
    kind.starts_with('r') && kind != "re"
}

fn reads(kind: &str) -> bool {
    !matches!(kind, "r" | "rcs")
}

fn writes(kind: &str) -> bool {
    matches!(kind, "r" | "rcs" | "rrc" | "rrcs" | "cpy" | "re")
}

/// A message: its chunks, and what its sender knew.
type Message = (Vec<Option<Value>>, Clock);

#[derive(Default)]
struct Queue {
    messages: VecDeque<Message>,
    sent: usize,
    /// What the receiver knew when it gave a slot back.
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
                cells[cell].value = Some(Value::from([((gpu, at as usize), 1)]));
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

    fn read(&mut self, id: usize, gpu: usize, place: (char, i64)) -> Option<Value> {
        let cell = self.model.cell(gpu, place);
        let clock = &self.clocks[id];
        let cell = &mut self.memory[gpu][cell];
        self.raced |= cell.write.is_some_and(|(by, at)| by != id && clock[by] < at);
        cell.reads.push((id, clock[id]));
        self.unwritten |= cell.value.is_none();
        cell.value.clone()
    }

    fn write(&mut self, id: usize, gpu: usize, place: (char, i64), value: Option<Value>) {
        let cell = self.model.cell(gpu, place);
        let clock = &self.clocks[id];
        let cell = &mut self.memory[gpu][cell];
        let unordered = |(by, at): &(usize, u32)| *by != id && clock[*by] < *at;
        self.raced |= cell.write.iter().chain(&cell.reads).any(unordered);
        cell.write = Some((id, clock[id]));
        cell.reads.clear();
        cell.value = value;
    }

    /// Whether every output holds what the collective promises.
    fn result(&self) -> bool {
        let Model { ranks, chunks, coll, .. } = self.model;
        let part = chunks / ranks;
        (0..*ranks).all(|gpu| {
            (0..*chunks).all(|at| {
                let expected: Value = match &**coll {
                    "allreduce" => (0..*ranks).map(|rank| ((rank, at), 1)).collect(),
                    "allgather" => Value::from([((at / part, at % part), 1)]),
                    _ => Value::from([((at / part, gpu * part + at % part), 1)]),
                };
                let cell = self.model.cell(gpu, ('o', at as i64));
                self.memory[gpu][cell].value.as_ref() == Some(&expected)
            })
        })
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

fn add(left: Option<Value>, right: Option<Value>) -> Option<Value> {
    let (mut left, right) = left.zip(right)?;
    for (leaf, times) in right {
        *left.entry(leaf).or_insert(0) += times;
    }
    Some(left)
}
