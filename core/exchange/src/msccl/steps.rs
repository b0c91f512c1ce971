//! Lowers the steps of a block as the runtime's parser does: a `nop` passes its wait to the next step, reductions into
//! one place become one operation, and a block's level counts operations, waits and reductions.

use super::Gpu;
use super::program::{Await, Block, Operation, OperationKind};
use super::reader::MscclReader;
use super::report::shown;
use super::runtime::{COUNT, FUSED, LAST_AWAITED, Runtime};
use super::xml::{self, Element};
use crate::program::StepName;
use crate::terms::{Memory, Place, Protocol};
use roundelay_core::ids::SpanId;

/// Any number that the runtime can read.
const ANY: std::ops::RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;

/// The lowering of one block's steps to operations.
pub(super) struct Steps<'a, 't, 'r> {
    reader: &'a mut MscclReader<'t, 'r>,
    gpu: &'a Gpu,
    protocol: Protocol,
    block: Block,
    name: (u32, u32),
    /// Waits of `nop`s that no operation has taken so far.
    pending: Vec<Await>,
    /// The block's numbers of waits and of reductions.
    waits: usize,
    reductions: usize,
    /// Whether the last operation is a reduction that another may join.
    open: bool,
    /// The kernel's level before the next operation.
    level: u64,
}

/// A step as the program writes it.
struct WrittenStep {
    kind: Option<OperationKind>,
    src: Place,
    dst: Place,
    count: u32,
    wait: Option<(i64, i64)>,
    /// Whether `depid` is -1, and not another negative number.
    plain: bool,
    posts: i64,
    number: i64,
}

impl<'a, 't, 'r> Steps<'a, 't, 'r> {
    pub(super) fn new(
        reader: &'a mut MscclReader<'t, 'r>,
        gpu: &'a Gpu,
        protocol: Protocol,
        name: (u32, u32),
        block: Block,
    ) -> Self {
        Self {
            reader,
            gpu,
            protocol,
            block,
            name,
            pending: Vec::new(),
            waits: 0,
            reductions: 0,
            open: false,
            level: 0,
        }
    }

    /// Returns the block with its operations.
    pub(super) fn read(mut self, tb: &Element<'t>) -> Option<Block> {
        let mut good = true;
        for (position, element) in tb.inner.iter().enumerate() {
            let Some(step) = self.step(element) else {
                good = false;
                continue;
            };
            let ((gpu, block), words) = (self.name, ["tb", "step"]);
            let name = StepName { gpu, block, step: step.number as u32, inner: None, words };
            let at = self.reader.report.step(element.at.clone(), name);
            if step.number != position as i64 {
                let title = format!("step {} stands in place {position}", step.number);
                let warning = self.reader.report.warn("order", element.at.clone(), title);
                warning.note("the runtime goes by the order in the file, and not by `s`");
            }
            good &= self.lower(element, &step, at);
        }
        self.limits(tb);
        if !self.pending.is_empty() {
            let at = tb.inner.last().map_or(tb.at.clone(), |step| step.at.clone());
            let title =
                format!("the wait of the `nop` at the end of tb {} is dropped", self.name.1);
            self.reader.report.warn("last nop", at, title);
        }
        good.then_some(self.block)
    }

    fn step(&mut self, element: &Element<'t>) -> Option<WrittenStep> {
        let reader = &mut *self.reader;
        let number = reader.number(element, "s", 0..=i64::from(i32::MAX))?;
        let word = reader.value(element, "type")?;
        let kind = OperationKind::from_name(word);
        if kind.is_none() && word != "nop" {
            let title = format!("no step is of the type `{}`", shown(word));
            reader.report.refuse(xml::range(reader.text, word), title);
            return None;
        }
        let mut places = [None; 2];
        for (place, (letter, offset)) in
            places.iter_mut().zip([("srcbuf", "srcoff"), ("dstbuf", "dstoff")])
        {
            let letter = reader.value(element, letter)?;
            let offset = reader.number(element, offset, ANY)?;
            let Some(memory) = Memory::parse(letter) else {
                let title = format!("no buffer is called `{}`", shown(letter));
                let at = xml::range(reader.text, letter);
                reader.report.refuse(at, title).help("the buffers are i, o and s");
                return None;
            };
            *place = Some(Place { memory, offset });
        }
        let [src, dst] = places;
        // The runtime reads the count of a `nop` and ignores it.
        let range = if kind.is_some() { 0..=i64::from(COUNT) } else { ANY };
        let count = reader.number(element, "cnt", range)?;
        let block = reader.number(element, "depid", ANY.start().to_owned()..=LAST_AWAITED)?;
        let level = reader.number(element, "deps", ANY)?;
        let range = if kind.is_some() { 0..=1 } else { ANY };
        let posts = reader.number(element, "hasdep", range)?;
        let wait = (block >= 0).then_some((block, level));
        Some(WrittenStep {
            kind,
            src: src?,
            dst: dst?,
            count: u32::try_from(count).unwrap_or(0),
            wait,
            plain: block == -1,
            posts,
            number,
        })
    }

    /// Lowers one step, and returns whether the runtime takes it.
    fn lower(&mut self, element: &Element<'t>, step: &WrittenStep, at: SpanId) -> bool {
        if let Some((block, level)) = step.wait {
            let level = u64::try_from(level).unwrap_or_else(|_| {
                let title =
                    format!("a wait for step {level}, which the first word of the block ends");
                self.reader.report.warn("deps", element.at.clone(), title);
                0
            });
            self.pending.push(Await { block: block as u32, level, at });
            self.waits += 1;
        }
        let Some(kind) = step.kind else {
            if step.posts != 0 {
                let title = "a `nop` with `hasdep`, which is never posted";
                let warning = self.reader.report.warn("nop", element.at.clone(), title);
                warning.note("a `nop` is no operation of its own: only its wait is kept");
            }
            return true;
        };
        let good = self.peers(element, kind) & self.places(element, kind, step);
        let joins = kind == OperationKind::Reduce && step.plain && self.joins(step);
        if joins {
            self.join(element, step, at);
            return good;
        }
        if !self.pending.is_empty() && step.wait.is_none() {
            let title = "a step without a wait of its own, behind a `nop` that waits";
            let error = self.reader.report.refuse(element.at.clone(), title);
            error.note("the last wait of a chain must be that of the step itself");
            // The meaning is clear nevertheless.
            self.reader.report.was_mild();
        }
        let waits = std::mem::take(&mut self.pending);
        self.level += (waits.len() as u64).saturating_sub(1);
        let posts = step.posts == 1;
        let rccl = self.reader.runtime == Some(Runtime::Rccl);
        if posts && kind == OperationKind::Send && rccl && self.protocol == Protocol::Ll {
            let title = "a `s` with `hasdep`, by the protocol LL";
            let warning = self.reader.report.warn("fence", element.at.clone(), title);
            warning.note("with LL, RCCL may say so before all threads have read what is sent");
        }
        if posts && self.level != step.number as u64 {
            let title = format!("step {} tells others that {} is done", step.number, self.level);
            let warning = self.reader.report.warn("level", element.at.clone(), title);
            warning.note("the kernel counts operations, waits and reductions, and not `s`");
        }
        self.block.operations.push(Operation {
            kind,
            src: step.src,
            dst: step.dst,
            count: step.count,
            waits,
            posts,
            level: self.level,
            at,
            more: Vec::new(),
        });
        self.level += 1;
        self.open = false;
        if kind == OperationKind::Reduce {
            self.reduced(posts);
        }
        good
    }

    /// Whether a reduction joins the last operation: it reduces into the same place, from the same buffer.
    fn joins(&self, step: &WrittenStep) -> bool {
        let same = |last: &Operation| last.dst == step.dst && last.src.memory == step.src.memory;
        self.open && self.block.operations.last().is_some_and(same)
    }

    fn join(&mut self, element: &Element<'t>, step: &WrittenStep, at: SpanId) {
        let posts = step.posts == 1;
        if let Some(last) = self.block.operations.last_mut() {
            last.more.push((step.src.offset, at));
            last.posts = posts;
            last.level += 1;
            let (count, fused) = (last.count, last.more.len() + 1);
            last.count = step.count;
            if count != step.count {
                let title = format!(
                    "reductions of {count} and of {} chunks become one of {}",
                    step.count, step.count
                );
                self.reader.report.warn("fused", element.at.clone(), title).note(
                    "reductions into one place are one operation, with the count of the last",
                );
            }
            if fused == FUSED + 1 {
                let title = format!("more than {FUSED} reductions become one operation");
                let warning = self.reader.report.warn("chain", element.at.clone(), title);
                warning.note(format!("the kernel for CUDA has room for {FUSED} of them"));
            }
        }
        self.level += 1;
        self.reduced(posts);
    }

    /// Counts a reduction. A chain ends at a reduction that posts, and at the block's reduction number [`FUSED`], which
    /// the runtime counts in the block and not in the chain.
    fn reduced(&mut self, posts: bool) {
        self.reductions += 1;
        self.open = !posts && self.reductions != FUSED;
    }

    fn peers(&mut self, element: &Element<'t>, kind: OperationKind) -> bool {
        let word = kind.name();
        let mut good = true;
        for (needs, has, name) in
            [(kind.sends(), self.block.send, "send"), (kind.receives(), self.block.receive, "recv")]
        {
            if needs && has.is_none() {
                let title = format!("`{word}` in a block whose `{name}` is -1");
                self.reader.report.refuse(element.at.clone(), title);
                good = false;
            }
        }
        good
    }

    /// Checks the first chunks of both places against the rank's declared sizes.
    fn places(&mut self, element: &Element<'t>, kind: OperationKind, step: &WrittenStep) -> bool {
        let mut good = true;
        let all = [(step.src, "srcoff"), (step.dst, "dstoff")];
        for ((place, name), compared) in all.into_iter().zip(kind.compared()) {
            let chunks = self.gpu.chunks_of(place.memory);
            if compared && !(NEGATIVE..i64::from(chunks)).contains(&place.offset) {
                let value = element.get(name).unwrap_or_default();
                let title = format!(
                    "chunk {} of `{}`, which has {chunks} here",
                    place.offset,
                    place.memory.letter()
                );
                self.reader.report.refuse(xml::range(self.reader.text, value), title);
                good = false;
            }
        }
        good
    }

    fn limits(&mut self, tb: &Element<'t>) {
        let highest = tb.inner.iter().filter_map(|step| step.get("s")?.parse::<i64>().ok()).max();
        let most = [highest.map_or(0, |s| s.saturating_add(1) as usize), self.waits]
            .into_iter()
            .chain([self.block.operations.len(), self.reductions])
            .max()
            .unwrap_or(0);
        let many = |runtime: Runtime| most > runtime.steps() as usize;
        let (gpu, block) = self.name;
        let title = format!("tb {block} of gpu {gpu} has {most} steps");
        self.reader.refused_by(many, "steps", tb.at.clone(), title, None);
    }
}

/// The least number of a chunk that the runtime's parser takes.
const NEGATIVE: i64 = -1;
