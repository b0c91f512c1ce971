//! A program as the runtime takes it, read by the runtime's rules and not by the importer.

use std::collections::BTreeMap;

/// One end of a connection: sender, receiver, channel, and whether it is the sender's end.
type End = (i64, i64, i64, bool);

#[derive(Clone)]
pub(super) struct Step {
    pub(super) kind: String,
    pub(super) src: (char, i64),
    pub(super) dst: (char, i64),
    pub(super) count: i64,
    pub(super) dep: (i64, i64),
    pub(super) posts: bool,
    /// All sources of reductions that are one operation.
    pub(super) sources: Vec<i64>,
    pub(super) waits: Vec<(i64, i64)>,
    pub(super) level: i64,
}

pub(super) struct Block {
    pub(super) gpu: usize,
    pub(super) send: i64,
    pub(super) receive: i64,
    pub(super) channel: i64,
    pub(super) steps: Vec<Step>,
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) ranks: usize,
    pub(super) chunks: usize,
    pub(super) coll: String,
    pub(super) slots: usize,
    pub(super) in_place: bool,
    pub(super) sizes: Vec<[i64; 3]>,
    pub(super) blocks: Vec<Block>,
    /// The first block of each rank.
    pub(super) first: Vec<usize>,
    pub(super) refused: bool,
}

/// The value of an attribute in a line.
pub(super) fn get<'t>(line: &'t str, name: &str) -> &'t str {
    let key = format!(" {name}=\"");
    let at = line.find(&key).unwrap_or_else(|| panic!("{name} in {line}")) + key.len();
    line[at..].split('"').next().unwrap()
}

fn int(line: &str, name: &str) -> i64 {
    get(line, name).parse().unwrap()
}

impl Model {
    /// Reads a program that has one tag per line, as it is called in place or out of place.
    pub(super) fn new(text: &str, in_place: bool) -> Self {
        let mut model = Self { in_place, ..Self::default() };
        let mut raw: Vec<Vec<Step>> = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with("<algo") {
                model.ranks = int(line, "ngpus") as usize;
                model.chunks = int(line, "nchunksperloop") as usize;
                get(line, "coll").clone_into(&mut model.coll);
                model.slots = if get(line, "proto") == "Simple" { 2 } else { 8 };
            } else if line.starts_with("<gpu") {
                model.sizes.push(["i_chunks", "o_chunks", "s_chunks"].map(|n| int(line, n)));
                model.first.push(model.blocks.len());
            } else if line.starts_with("<tb") {
                let [send, receive, channel] = ["send", "recv", "chan"].map(|n| int(line, n));
                let gpu = model.sizes.len() - 1;
                model.refused |= [send, receive].contains(&(gpu as i64));
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

    pub(super) fn size(&self, gpu: usize, letter: char) -> i64 {
        self.sizes[gpu][['i', 'o', 's'].iter().position(|l| *l == letter).unwrap()]
    }

    /// A place beyond a buffer is refused, by the parser or for its effect.
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
    pub(super) fn room(&self, gpu: usize, letter: char) -> i64 {
        let (all, part) = (self.chunks as i64, (self.chunks / self.ranks) as i64);
        match (letter, &*self.coll) {
            ('s', _) => self.size(gpu, 's'),
            ('i', "allgather") => part,
            _ => all,
        }
    }

    /// Where a chunk lies in the memory of its rank.
    pub(super) fn cell(&self, gpu: usize, (letter, at): (char, i64)) -> usize {
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
        // A block that has the peer of a connection and does not use it writes back the step at which it began.
        for (id, block) in self.blocks.iter().enumerate() {
            let me = block.gpu as i64;
            for key in
                [(me, block.send, block.channel, true), (block.receive, me, block.channel, false)]
            {
                self.refused |= passing.get(&key).is_some_and(|(busy, _)| *busy != id);
            }
        }
        for ((from, to, channel, _), (_, sent)) in passing.iter().filter(|(key, _)| key.3) {
            if let Some((_, received)) = passing.get(&(*from, *to, *channel, false)) {
                self.refused |= sent.iter().zip(received).any(|(a, b)| a != b);
            }
        }
    }
}

pub(super) fn sends(kind: &str) -> bool {
    kind.ends_with('s')
}

pub(super) fn receives(kind: &str) -> bool {
    kind.starts_with('r') && kind != "re"
}

pub(super) fn reads(kind: &str) -> bool {
    !matches!(kind, "r" | "rcs")
}

pub(super) fn writes(kind: &str) -> bool {
    matches!(kind, "r" | "rcs" | "rrc" | "rrcs" | "cpy" | "re")
}
