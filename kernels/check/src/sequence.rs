//! The launches of a run: each rank's steps in the order of its streams, and the values that they begin with.

use roundelay_core::random::SplitMix64;
use roundelay_ptx::machine::RankLaunch;
use roundelay_ptx::program::Module;

use crate::addresses::Layout;
use crate::arguments::At;
use crate::case::Case;
use crate::elements::random;
use crate::expression::{Expression, Numbers};
use crate::fill::each;
use crate::harness::{Fill, Harness, KernelCall, Step, StepWork};
use crate::own;

/// The most launches of a run.
const MOST: usize = 1 << 16;

/// The way in which a run differs from the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variation {
    /// None.
    Plain,
    /// A rank starts late.
    Late(u32),
    /// A rank launches nothing.
    Absent(u32),
}

/// A launch, with its place in the harness.
#[derive(Clone, Debug)]
pub(crate) struct Launched {
    /// The number of its module in the case; none for a kernel of the harness itself.
    pub(crate) module: Option<usize>,
    pub(crate) kernel: String,
    pub(crate) rank: u32,
    pub(crate) call: u32,
    pub(crate) step: String,
    shape: [[u32; 3]; 3],
    parameters: Vec<u8>,
    shared: u32,
    early: bool,
    after: Vec<usize>,
}

/// A run before it begins.
#[derive(Debug)]
pub(crate) struct Sequence<'a> {
    pub(crate) harness: &'a Harness,
    pub(crate) case: &'a Case,
    pub(crate) variation: Variation,
    pub(crate) layout: Layout,
    pub(crate) launches: Vec<Launched>,
    /// By buffer and rank: its values at the start, and those that are written in each call, if any are.
    pub(crate) values: Vec<Vec<BufferValues>>,
    /// By the number of the result and the rank: the room of the copies of all calls, one after another.
    pub(crate) copies: Vec<Vec<usize>>,
    /// Instructions of the harness's own module.
    pub(crate) own_instructions: usize,
    random: SplitMix64,
}

/// The values of a buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferValues {
    pub(crate) first: Vec<u8>,
    pub(crate) written: Vec<Option<Vec<u8>>>,
}

/// The ways in which the runs of a case differ, in turn.
fn variations(case: &Case, harness: &Harness) -> Result<Vec<Variation>, String> {
    let numbers = case.numbers(harness, 0, 0);
    let rank = |expression: &Expression| {
        let value = expression.value(&numbers)?;
        let rank = u32::try_from(value).ok().filter(|rank| *rank < case.ranks);
        rank.ok_or_else(|| format!("of {} ranks, rank {value} is to be late or absent", case.ranks))
    };
    let mut all = vec![Variation::Plain];
    for late in &harness.run.late {
        all.push(Variation::Late(rank(late)?));
    }
    for absent in &harness.run.absent {
        all.push(Variation::Absent(rank(absent)?));
    }
    Ok(all)
}

impl<'a> Sequence<'a> {
    /// Lays out the run of a seed. With `one_order` every rank launches its streams in the same order; `special` values
    /// are among the inputs.
    pub(crate) fn new(
        harness: &'a Harness,
        case: &'a Case,
        seed: u64,
        (one_order, sentinels): (bool, bool),
    ) -> Result<Self, String> {
        let ranks = 0..case.ranks;
        let calls = 0..harness.run.calls;
        let variations = variations(case, harness)?;
        let variation = variations[(seed % variations.len() as u64) as usize];
        let mut sizes = Vec::new();
        for buffer in 0..harness.memory.len() {
            let most = |rank| {
                let all = calls.clone().map(|call| case.bytes(harness, buffer, (rank, call)));
                all.collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().max().unwrap_or(0))
            };
            sizes.push(ranks.clone().map(most).collect::<Result<Vec<_>, _>>()?);
        }
        let layout = Layout::new(harness, case.ranks, &sizes)?;
        let random = SplitMix64(seed ^ 0x6b65_726e_656c);
        let mut sequence = Self {
            harness,
            case,
            variation,
            layout,
            launches: Vec::new(),
            values: Vec::new(),
            copies: Vec::new(),
            own_instructions: 0,
            random,
        };
        sequence.fill(sentinels)?;
        for (number, expect) in harness.expect.iter().enumerate() {
            let buffer = harness.buffer(&expect.buffer).unwrap_or(0);
            let mut rooms = Vec::new();
            for (rank, bytes) in sizes[buffer].iter().enumerate() {
                let name = format!("copies {number} of {}, rank {rank}", expect.buffer);
                let bytes = bytes * u64::from(harness.run.calls);
                rooms.push(sequence.layout.hidden(name, bytes)?);
            }
            sequence.copies.push(rooms);
        }
        let mut order = SplitMix64(seed);
        for rank in ranks {
            if one_order {
                order = SplitMix64(seed);
            }
            if variation != Variation::Absent(rank) {
                sequence.launch(rank, &mut order)?;
            }
        }
        Ok(sequence)
    }

    /// Gives all buffers their first values, and makes those that are written later.
    fn fill(&mut self, sentinels: bool) -> Result<(), String> {
        let (harness, case) = (self.harness, self.case);
        let sentinel = harness.memory.iter().find(|buffer| buffer.is_sentinel);
        let sentinel =
            sentinel.map(|buffer| if let Fill::Word(word) = buffer.fill { word } else { 0 });
        let special = harness.run.special.iter().copied();
        let special: Vec<_> = special
            .into_iter()
            .filter(|one| sentinels || !matches!(one, crate::harness::Special::Sentinel))
            .collect();
        for (number, buffer) in harness.memory.iter().enumerate() {
            let mut of_ranks = Vec::new();
            for rank in 0..case.ranks {
                let room = self.layout.room(number, rank);
                let bytes = self.layout.rooms[room].bytes as usize;
                let len = bytes / buffer.dtype.size();
                let drawn = |random: &mut SplitMix64, len| {
                    self::random(buffer.dtype, len, random, &special, sentinel)
                };
                let numbers = case.numbers(harness, rank, 0);
                let first = match &buffer.fill {
                    Fill::Random => drawn(&mut self.random, len),
                    fill => fill
                        .bytes((buffer.dtype, bytes), numbers)
                        .map_err(|why| format!("`{}` of rank {rank}: {why}", buffer.name))?,
                };
                self.layout.windows[room].bytes.clone_from(&first);
                let mut written = vec![None; harness.run.calls as usize];
                for step in &harness.calls {
                    if !matches!(&step.work, StepWork::Write(name) if *name == buffer.name) {
                        continue;
                    }
                    for call in 0..harness.run.calls {
                        let len = case.bytes(harness, number, (rank, call))? as usize
                            / buffer.dtype.size();
                        if !taken(step, &case.numbers(harness, rank, call))? {
                            continue;
                        }
                        written[call as usize] = Some(match &buffer.fill {
                            Fill::Each(value) => {
                                each(value, buffer.dtype, len, case.numbers(harness, rank, call))?
                            }
                            _ => drawn(&mut self.random, len),
                        });
                    }
                }
                of_ranks.push(BufferValues { first, written });
            }
            self.values.push(of_ranks);
        }
        self.layout.write_tables(harness, |rank| case.numbers(harness, rank, 0))
    }

    /// Adds the launches of a rank.
    fn launch(&mut self, rank: u32, order: &mut SplitMix64) -> Result<(), String> {
        let harness = self.harness;
        let all: Vec<&Step> = harness.calls.iter().collect();
        let mut streams: Vec<Vec<&Step>> = Vec::new();
        for (_, names) in &harness.streams {
            let steps =
                names.iter().flat_map(|name| all.iter().filter(move |step| step.name == *name));
            streams.push(steps.copied().collect());
        }
        if streams.is_empty() {
            streams.push(all);
        }
        let one_stream = streams.len() == 1;
        // In half of the runs a rank has no room for two streams at once, and takes them in an order of its own.
        let serial = !one_stream && order.draw().is_multiple_of(2);
        let mut left: Vec<(u32, usize)> = vec![(0, 0); streams.len()];
        let mut last: Vec<Option<usize>> = vec![None; streams.len()];
        if self.variation == Variation::Late(rank) {
            let number = self.wait(rank)?;
            last.fill(Some(number));
        }
        let mut named: Vec<(u32, &str, usize)> = Vec::new();
        loop {
            let open =
                |(stream, at): (usize, &(u32, usize))| (at.0 < harness.run.calls).then_some(stream);
            let open: Vec<usize> = left.iter().enumerate().filter_map(open).collect();
            if open.is_empty() {
                return Ok(());
            }
            let stream = open[order.below(open.len())];
            let (call, at) = left[stream];
            if let Some(step) = streams[stream].get(at) {
                left[stream].1 += 1;
                let mut after: Vec<usize> = last[stream].into_iter().collect();
                for name in &step.after {
                    after.extend(
                        named.iter().filter(|(c, n, _)| (*c, *n) == (call, name)).map(|(.., n)| *n),
                    );
                }
                if let Some(number) = self.step(step, (rank, call), &after)? {
                    named.push((call, &step.name, number));
                    if serial { last.fill(Some(number)) } else { last[stream] = Some(number) }
                }
                continue;
            }
            left[stream] = (call + 1, 0);
            if one_stream {
                for expect in 0..harness.expect.len() {
                    let after: Vec<usize> = last[0].into_iter().collect();
                    last[0] = self.consume(expect, (rank, call), &after)?.or(last[0]);
                }
            }
        }
    }

    /// Adds a step, and returns the number of its last launch; none where the rank does not take it.
    fn step(
        &mut self,
        step: &Step,
        (rank, call): (u32, u32),
        after: &[usize],
    ) -> Result<Option<usize>, String> {
        let (harness, case) = (self.harness, self.case);
        if !taken(step, &case.numbers(harness, rank, call))? {
            return Ok(None);
        }
        // A graph has the arguments of its first call.
        let numbers = case.numbers(harness, rank, if harness.run.graph { 0 } else { call });
        let at = At { harness, layout: &self.layout, numbers };
        let within = |why: String| format!("{} of rank {rank}, call {call}: {why}", step.name);
        match &step.work {
            StepWork::Kernel(kernel) => {
                let launched = self.kernel(kernel, &at, after).map_err(within)?;
                let launched = Launched { call, step: step.name.clone(), ..launched };
                self.push(launched).map(Some)
            }
            StepWork::Write(name) => {
                let buffer = harness.buffer(name).unwrap_or(0);
                let values = self.values[buffer][rank as usize].written[call as usize].clone();
                let values = values.unwrap_or_default();
                let to = self.layout.room(buffer, rank);
                self.copied(values, (to, 0), (rank, call), (&step.name, after)).map(Some)
            }
            StepWork::Set { to, byte, bytes } => {
                let (room, offset, most) = at.place(to).map_err(within)?;
                let bytes = bytes.as_ref().map_or(Ok(most), |bytes| bytes.value(&numbers));
                let bytes = bytes.map_err(within)?;
                if offset < 0 || bytes < 0 || bytes > most {
                    return Err(within(format!(
                        "{bytes} bytes from byte {offset} on are not in `{}`",
                        to.buffer
                    )));
                }
                let values = vec![*byte; bytes as usize];
                self.copied(values, (room, offset as u64), (rank, call), (&step.name, after))
                    .map(Some)
            }
            StepWork::Copy { to, from, bytes } => {
                let (to_room, to_at, to_most) = at.place(to).map_err(within)?;
                let (from_room, from_at, from_most) = at.place(from).map_err(within)?;
                let (rooms, most) = (&self.layout.rooms, to_most.min(from_most));
                let bytes = bytes.as_ref().map_or(Ok(most), |bytes| bytes.value(&numbers));
                let bytes = bytes.map_err(within)?;
                if to_at < 0 || from_at < 0 || bytes < 0 || bytes > most {
                    return Err(within(format!("{bytes} bytes are not in both buffers")));
                }
                let addresses = [
                    rooms[to_room].address + to_at as u64,
                    rooms[from_room].address + from_at as u64,
                ];
                self.copy(addresses, bytes as u64, false, (rank, call), (&step.name, after))
                    .map(Some)
            }
        }
    }

    fn kernel(&self, call: &KernelCall, at: &At, after: &[usize]) -> Result<Launched, String> {
        let module =
            self.case.loaded.iter().position(|loaded| loaded.name == call.module).unwrap_or(0);
        let loaded = &self.case.loaded[module];
        let function = loaded.kernel(&call.kernel)?;
        let shape = |what: &str, all: &[Expression]| -> Result<[u32; 3], String> {
            let mut shape = [1; 3];
            for (size, expression) in shape.iter_mut().zip(all) {
                let value = expression.value(&at.numbers)?;
                *size = u32::try_from(value)
                    .ok()
                    .filter(|size| (1..1 << 16).contains(size))
                    .ok_or_else(|| format!("its {what} would have {value} in one direction"))?;
            }
            Ok(shape)
        };
        let (grid, block) = (shape("grid", &call.grid)?, shape("block", &call.block)?);
        let shared =
            u32::try_from(call.shared.value(&at.numbers)?).ok().filter(|bytes| *bytes <= 1 << 20);
        Ok(Launched {
            module: Some(module),
            kernel: function.name.clone(),
            rank: at.rank(),
            call: 0,
            step: String::new(),
            shape: [grid, block, shape("cluster", &call.cluster)?],
            parameters: at.parameters(call, function)?,
            shared: shared.ok_or("it asks for too much shared memory")?,
            early: call.pdl,
            after: after.to_vec(),
        })
    }

    fn push(&mut self, launched: Launched) -> Result<usize, String> {
        let threads = |launched: &Launched| -> u64 {
            launched.shape[..2].iter().flatten().map(|size| u64::from(*size)).product()
        };
        self.launches.push(launched);
        let total: u64 = self.launches.iter().map(threads).sum();
        if self.launches.len() > MOST || total > self.harness.run.limits.threads {
            return Err("a run has more launches or threads than the machine holds".to_owned());
        }
        Ok(self.launches.len() - 1)
    }

    /// Adds the copy of a result to a place of the harness, which leaves poison behind where no peer may write yet.
    fn consume(
        &mut self,
        number: usize,
        (rank, call): (u32, u32),
        after: &[usize],
    ) -> Result<Option<usize>, String> {
        let harness = self.harness;
        let buffer = harness.buffer(&harness.expect[number].buffer).unwrap_or(0);
        let room = &self.layout.rooms[self.layout.room(buffer, rank)];
        let copies = &self.layout.rooms[self.copies[number][rank as usize]];
        let addresses = [copies.address + u64::from(call) * room.bytes, room.address];
        let bytes = room.bytes;
        let stays = harness.memory[buffer].peers || harness.memory[buffer].fill != Fill::Poison;
        if bytes == 0 {
            return Ok(None);
        }
        self.copy(addresses, bytes, !stays, (rank, call), ("the reader of the result", after))
            .map(Some)
    }

    /// Adds a copy of given values to a place.
    fn copied(
        &mut self,
        values: Vec<u8>,
        (to, offset): (usize, u64),
        (rank, call): (u32, u32),
        (step, after): (&str, &[usize]),
    ) -> Result<usize, String> {
        let bytes = values.len() as u64;
        let room =
            self.layout.hidden(format!("the values of {step}, rank {rank}, call {call}"), bytes)?;
        self.layout.windows[room].bytes = values;
        let addresses = [self.layout.rooms[to].address + offset, self.layout.rooms[room].address];
        self.copy(addresses, bytes, false, (rank, call), (step, after))
    }

    fn copy(
        &mut self,
        [to, from]: [u64; 2],
        bytes: u64,
        takes: bool,
        (rank, call): (u32, u32),
        (step, after): (&str, &[usize]),
    ) -> Result<usize, String> {
        let words = (to | from | bytes).is_multiple_of(4);
        let units = if words { bytes / 4 } else { bytes };
        self.own(
            own::copy_name(words, takes),
            &[to, from, units],
            own::THREADS,
            (rank, call),
            (step, after),
        )
    }

    fn wait(&mut self, rank: u32) -> Result<usize, String> {
        let room = self.layout.hidden(format!("clock, rank {rank}"), 8)?;
        let address = self.layout.rooms[room].address;
        self.own(own::WAIT, &[address, own::DELAY], 1, (rank, 0), ("the late start", &[]))
    }

    fn own(
        &mut self,
        kernel: &str,
        words: &[u64],
        threads: u32,
        (rank, call): (u32, u32),
        (step, after): (&str, &[usize]),
    ) -> Result<usize, String> {
        self.push(Launched {
            module: None,
            kernel: kernel.to_owned(),
            rank,
            call,
            step: step.to_owned(),
            shape: [[1; 3], [threads, 1, 1], [1; 3]],
            parameters: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            shared: 0,
            early: false,
            after: after.to_vec(),
        })
    }

    /// The launches as the machine takes them.
    pub(crate) fn rank_launches<'b>(&'b self, own: &'b Module) -> Vec<RankLaunch<'b>> {
        let launch = |launched: &'b Launched| {
            let module = launched.module.map_or(own, |module| &self.case.loaded[module].module);
            RankLaunch {
                grid: launched.shape[0],
                block: launched.shape[1],
                cluster: launched.shape[2],
                parameters: launched.parameters.clone(),
                dynamic_shared: launched.shared,
                device: launched.rank,
                after: launched.after.clone(),
                early: launched.early,
                ..RankLaunch::new(module, &launched.kernel)
            }
        };
        self.launches.iter().map(launch).collect()
    }
}

/// Whether a rank takes a step.
fn taken(step: &Step, numbers: &Numbers) -> Result<bool, String> {
    if let Some(when) = &step.when
        && when.value(numbers)? == 0
    {
        return Ok(false);
    }
    for rank in &step.ranks {
        if rank.value(numbers)? == numbers[0] {
            return Ok(true);
        }
    }
    Ok(step.ranks.is_empty())
}
