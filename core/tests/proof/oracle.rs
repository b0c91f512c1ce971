//! Runs a schedule in many interleavings on actual multisets of contributions. It shares no idea with the
//! verifier: no clocks, no cells, no matching of signals ahead of time.
//!
//! A move reads all its sources, and later writes all its destinations; the caller's buffers hold garbage
//! before a rank enters and from the moment in which its streams have ended; a wait takes what is there.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use roundelay_core::collective::{Alias, Expected};
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::schedule::{Buffer, OpKind, Operand, Schedule};

/// States looked at before the search goes on at random.
const STATES: usize = 1000;
/// Random interleavings after that.
const TRIES: u64 = 30;
/// Runs of the schedule, one after the other.
const RUNS: u8 = 2;
/// What nobody may rely on; a fold with it is garbage too.
const GARBAGE: u16 = 0;

/// One op with its elements at addresses.
enum Step {
    Move { srcs: Vec<Stretch>, dsts: Vec<Stretch>, private: bool },
    Post(usize),
    Wait { channel: usize, alone: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stretch {
    first: usize,
    len: usize,
    /// The rank whose caller lends this memory.
    lender: Option<usize>,
}

pub(crate) struct Oracle<'s> {
    schedule: &'s Schedule,
    count: u64,
    steps: Vec<Vec<Step>>,
    rank_of: Vec<usize>,
    size: usize,
    input: Vec<Stretch>,
    output: Vec<Stretch>,
    values: Values,
}

#[derive(Clone, Hash)]
struct State {
    at: Vec<u32>,
    /// What a move has read and not yet written.
    read: Vec<Option<Vec<u16>>>,
    entered: Vec<u8>,
    left: Vec<u8>,
    signals: Vec<i32>,
    memory: Vec<u16>,
}

/// Distinct multisets of contributions, numbered.
#[derive(Default)]
struct Values {
    all: Vec<BTreeMap<u32, u32>>,
    ids: BTreeMap<BTreeMap<u32, u32>, u16>,
}

impl Values {
    fn id(&mut self, value: BTreeMap<u32, u32>) -> u16 {
        let next = self.all.len() as u16 + 1;
        *self.ids.entry(value).or_insert_with_key(|value| {
            self.all.push(value.clone());
            next
        })
    }

    fn sum(&mut self, a: u16, b: u16) -> u16 {
        if a == GARBAGE || b == GARBAGE {
            return GARBAGE;
        }
        let mut sum = self.all[usize::from(a) - 1].clone();
        for (leaf, times) in &self.all[usize::from(b) - 1] {
            *sum.entry(*leaf).or_insert(0) += times;
        }
        self.id(sum)
    }
}

/// What stands in the way of the result in some interleaving of two runs of `schedule`.
pub(crate) fn wrong(schedule: &Schedule, count: u64, in_place: bool) -> Option<String> {
    Oracle::new(schedule, count, in_place).search()
}

impl<'s> Oracle<'s> {
    fn new(schedule: &'s Schedule, count: u64, in_place: bool) -> Self {
        let mut size = 0;
        let (mut input, mut output, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
        for rank in (0..schedule.nranks).map(RankId) {
            let elements = |buffer| schedule.elements(buffer, rank, count) as usize;
            let (ins, outs) = (elements(Buffer::Input), elements(Buffer::Output));
            let alias = if in_place {
                schedule.collective.alias(rank, schedule.root)
            } else {
                Alias::Apart
            };
            let unit = |unit: u32| size + unit as usize * count as usize;
            let (i, o, both) = match alias {
                Alias::Apart => (size, size + ins, ins + outs),
                Alias::InputInOutput(at) => (unit(at), size, outs),
                Alias::OutputInInput(at) => (size, unit(at), ins),
            };
            let lender = Some(rank.index());
            input.push(Stretch { first: i, len: ins, lender });
            output.push(Stretch { first: o, len: outs, lender });
            size += both;
            for id in 0..schedule.scratch.len() {
                scratch.push(size);
                size += elements(Buffer::Scratch(ScratchId(id as u32)));
            }
        }
        let place = |o: &Operand| {
            let region = schedule.region(*o);
            let (first, len) = schedule.extent(region, count);
            let (base, lender) = match region.buffer {
                Buffer::Input => (input[o.rank.index()].first, Some(o.rank.index())),
                Buffer::Output => (output[o.rank.index()].first, Some(o.rank.index())),
                Buffer::Scratch(id) => {
                    (scratch[o.rank.index() * schedule.scratch.len() + id.index()], None)
                }
            };
            Stretch { first: base + first as usize, len: len as usize, lender }
        };
        let mut touched = vec![HashSet::new(); size];
        let mut waiters = vec![HashSet::new(); schedule.channels.len()];
        let mut steps = Vec::new();
        for (id, stream) in schedule.streams.iter().enumerate() {
            let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
            let list = ops.iter().map(|op| match op.kind {
                OpKind::Post => Step::Post(op.arg as usize),
                OpKind::Wait => {
                    waiters[op.arg as usize].insert(id);
                    Step::Wait { channel: op.arg as usize, alone: false }
                }
                OpKind::Move => {
                    let places = |all: &[Operand]| all.iter().map(place).collect::<Vec<_>>();
                    let (srcs, dsts) = (places(schedule.srcs(op)), places(schedule.dsts(op)));
                    for at in srcs.iter().chain(&dsts).flat_map(|s| s.first..s.first + s.len) {
                        touched[at].insert(id);
                    }
                    Step::Move { srcs, dsts, private: false }
                }
            });
            steps.push(list.collect::<Vec<_>>());
        }
        for (id, step) in steps
            .iter_mut()
            .enumerate()
            .flat_map(|(id, list)| list.iter_mut().map(move |s| (id, s)))
        {
            match step {
                Step::Wait { channel, alone } => *alone = waiters[*channel].len() == 1,
                Step::Move { srcs, dsts, private } => {
                    let rank = schedule.streams[id].rank.index();
                    *private = srcs.iter().chain(&*dsts).all(|s| {
                        s.lender.is_none_or(|lender| lender == rank)
                            && touched[s.first..s.first + s.len].iter().all(|t| t.len() == 1)
                    });
                }
                Step::Post(_) => {}
            }
        }
        let rank_of = schedule.streams.iter().map(|s| s.rank.index()).collect();
        Self { schedule, count, steps, rank_of, size, input, output, values: Values::default() }
    }

    fn start(&self) -> State {
        let ranks = self.schedule.nranks as usize;
        State {
            at: vec![0; self.steps.len()],
            read: vec![None; self.steps.len()],
            entered: vec![0; ranks],
            left: vec![0; ranks],
            signals: vec![0; self.schedule.channels.len()],
            memory: vec![GARBAGE; self.size],
        }
    }

    fn search(&mut self) -> Option<String> {
        let mut seen = HashSet::new();
        let mut open = vec![self.start()];
        while let Some(mut state) = open.pop() {
            if let Err(why) = self.settle(&mut state) {
                return Some(why);
            }
            let mut hasher = DefaultHasher::new();
            state.hash(&mut hasher);
            if !seen.insert(hasher.finish()) {
                continue;
            }
            if seen.len() > STATES {
                return (0..TRIES).find_map(|seed| self.random(seed));
            }
            let choices = self.choices(&state);
            if choices.is_empty()
                && let Some(why) = end(&state)
            {
                return Some(why);
            }
            for choice in choices {
                let mut next = state.clone();
                if let Err(why) = self.take(&mut next, choice) {
                    return Some(why);
                }
                open.push(next);
            }
        }
        None
    }

    /// One interleaving in which streams have priorities that change now and then.
    fn random(&mut self, seed: u64) -> Option<String> {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let mut priority: Vec<u64> =
            (0..self.steps.len() + self.input.len()).map(|_| next()).collect();
        let mut state = self.start();
        loop {
            if let Err(why) = self.settle(&mut state) {
                return Some(why);
            }
            let choices = self.choices(&state);
            let Some(&choice) = choices.iter().max_by_key(|c| priority[**c]) else {
                return end(&state);
            };
            if next() % 8 == 0 {
                priority[choice] = next();
            }
            if let Err(why) = self.take(&mut state, choice) {
                return Some(why);
            }
        }
    }

    /// Takes all steps that commute with whatever others may do.
    fn settle(&mut self, state: &mut State) -> Result<(), String> {
        loop {
            let mut moved = false;
            for stream in 0..self.steps.len() {
                while let Some(step) = self.next(state, stream) {
                    match *step {
                        Step::Post(channel) => state.signals[channel] += 1,
                        Step::Wait { channel, alone: true } if state.signals[channel] > 0 => {
                            state.signals[channel] -= 1;
                        }
                        Step::Move { private: true, .. } => {
                            self.take(state, stream)?;
                            self.take(state, stream)?;
                            moved = true;
                            continue;
                        }
                        _ => break,
                    }
                    state.at[stream] += 1;
                    moved = true;
                }
            }
            for rank in 0..self.input.len() {
                moved |= self.leave(state, rank)?;
            }
            if !moved {
                return Ok(());
            }
        }
    }

    fn next(&self, state: &State, stream: usize) -> Option<&Step> {
        let rank = self.rank_of[stream];
        let runs = state.entered[rank] > state.left[rank];
        self.steps[stream].get(state.at[stream] as usize).filter(|_| runs)
    }

    /// Streams that can go on, then (as numbers beyond those) ranks that can enter.
    fn choices(&self, state: &State) -> Vec<usize> {
        let streams = (0..self.steps.len()).filter(|stream| match self.next(state, *stream) {
            Some(Step::Wait { channel, .. }) => state.signals[*channel] > 0,
            step => step.is_some(),
        });
        let ranks = (0..self.input.len())
            .filter(|r| state.entered[*r] == state.left[*r] && state.entered[*r] < RUNS)
            .map(|rank| self.steps.len() + rank);
        streams.chain(ranks).collect()
    }

    fn take(&mut self, state: &mut State, choice: usize) -> Result<(), String> {
        if let Some(rank) = choice.checked_sub(self.steps.len()) {
            for i in 0..self.input[rank].len {
                let leaf = self.leaf(state.entered[rank], rank, i);
                state.memory[self.input[rank].first + i] =
                    self.values.id(BTreeMap::from([(leaf, 1)]));
            }
            state.entered[rank] += 1;
            return Ok(());
        }
        let Self { steps, values, .. } = self;
        match &steps[choice][state.at[choice] as usize] {
            Step::Post(_) => unreachable!("posts are never put off"),
            Step::Wait { channel, .. } => state.signals[*channel] -= 1,
            Step::Move { srcs, dsts, .. } if srcs[..] == dsts[..] => {
                // A copy onto itself is no op; the second call finds the stream gone on.
                if state.read[choice].take().is_none() {
                    state.read[choice] = Some(Vec::new());
                    return Ok(());
                }
            }
            Step::Move { srcs, dsts, .. } => {
                let Some(read) = state.read[choice].take() else {
                    let at = |s: &Stretch, i| state.memory[s.first + i];
                    let fold = |i: usize| {
                        let first = at(&srcs[0], i);
                        srcs[1..].iter().fold(first, |acc, s| values.sum(at(s, i), acc))
                    };
                    state.read[choice] = Some((0..srcs[0].len).map(fold).collect());
                    return Ok(());
                };
                for dst in dsts {
                    if let Some(rank) = dst.lender.filter(|r| state.entered[*r] == state.left[*r]) {
                        return Err(format!("rank {rank}'s memory is written outside its run"));
                    }
                    state.memory[dst.first..][..dst.len].copy_from_slice(&read);
                }
            }
        }
        state.at[choice] += 1;
        Ok(())
    }

    /// Ends a rank's run as soon as it may end: its result must stand, and its memory is the caller's again.
    fn leave(&mut self, state: &mut State, rank: usize) -> Result<bool, String> {
        let mine = || (0..self.steps.len()).filter(|s| self.rank_of[*s] == rank);
        if state.entered[rank] == state.left[rank]
            || mine().any(|s| (state.at[s] as usize) < self.steps[s].len())
        {
            return Ok(false);
        }
        mine().for_each(|stream| state.at[stream] = 0);
        let (run, count) = (state.left[rank], self.count as usize);
        for i in 0..self.output[rank].len {
            let (unit, element) = ((i / count) as u32, i % count);
            let me = RankId(rank as u32);
            let leaves: Vec<u32> =
                match self.schedule.collective.expected(me, unit, self.schedule.root) {
                    Expected::Reduced { unit } => (0..self.input.len())
                        .map(|r| self.leaf(run, r, unit as usize * count + element))
                        .collect(),
                    Expected::Copied { rank, unit } => {
                        vec![self.leaf(run, rank.index(), unit as usize * count + element)]
                    }
                };
            let right = self.values.id(leaves.into_iter().map(|leaf| (leaf, 1)).collect());
            if state.memory[self.output[rank].first + i] != right {
                return Err(format!("element {i} of rank {rank} is wrong after run {run}"));
            }
        }
        for lent in [self.input[rank], self.output[rank]] {
            state.memory[lent.first..][..lent.len].fill(GARBAGE);
        }
        state.left[rank] += 1;
        Ok(true)
    }

    fn leaf(&self, run: u8, rank: usize, element: usize) -> u32 {
        ((usize::from(run) * self.input.len() + rank) << 16 | element) as u32
    }
}

fn end(state: &State) -> Option<String> {
    if state.left.iter().any(|runs| *runs < RUNS) {
        return Some("deadlock".into());
    }
    state.signals.iter().any(|left| *left > 0).then(|| "a signal is left over".into())
}
