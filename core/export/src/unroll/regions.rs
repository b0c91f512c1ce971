//! Buffers in chunks, and the names of their regions: the views and scratch that the text declares.

use std::cell::Cell;
use std::fmt::Write as _;

use super::unfit;
use roundelay_core::diagnostics::Finding;
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::messages::{Action, TwoSided};
use roundelay_core::rational::{Rat, lcm};
use roundelay_core::schedule::{Buffer, Operand, Region, Schedule};

/// The most chunks of a buffer.
const CHUNKS: u64 = 1 << 20;

/// A stretch of chunks of a rank's buffer; slots of scratch are one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) rank: RankId,
    buffer: Buffer,
    first: u64,
    len: u64,
}

impl Stretch {
    /// Whether two stretches have chunks in common.
    pub(super) fn meets(self, other: Self) -> bool {
        (self.rank, self.buffer) == (other.rank, other.buffer)
            && self.first < other.first + other.len
            && other.first < self.first + self.len
    }

    /// Returns both stretches as one, if `next` begins at the end of this one.
    pub(super) fn and(self, next: Self) -> Option<Self> {
        let behind = Self { first: self.first + self.len, len: next.len, ..self };
        (behind == next).then_some(Self { len: self.len + next.len, ..self })
    }

    /// Returns `len` chunks of the stretch from `at` on.
    pub(super) fn part(self, (at, len): (u64, u64)) -> Self {
        Self { first: self.first + at, len, ..self }
    }
}

/// A declared scratch buffer: the number and the size of its slots.
#[derive(Clone, Debug)]
struct NamedSlots {
    name: String,
    /// The declared slots for each slot of the schedule: more than one if it is wider than input and output.
    each: u64,
    /// Chunks of a declared slot.
    shape: u64,
    /// Declared slots.
    count: u64,
    /// Whether they keep narrow floats as f32.
    wide: bool,
    /// Whether the text names the buffer, and (`cut`) parts of it.
    used: Cell<bool>,
    cut: Cell<bool>,
}

/// The division and the names of a schedule's buffers.
pub(super) struct Regions<'a> {
    schedule: &'a Schedule,
    /// Chunks of a unit.
    unit: u64,
    /// Chunks of input and output.
    sizes: [u64; 2],
    /// Whether the text names parts of them.
    cut: [Cell<bool>; 2],
    /// Which of the two is the `like` of scratch: 0 for input, 1 for output.
    like: usize,
    scratch: Vec<NamedSlots>,
}

/// The names of input and output, and of their chunks.
const NAMES: [[&str; 2]; 2] = [["input", "src"], ["output", "dst"]];

impl<'a> Regions<'a> {
    pub(super) fn new(form: &'a TwoSided) -> Result<Self, Box<Finding>> {
        let schedule = &**form.schedule();
        let operands = used(form);
        let ends = operands.iter().flat_map(|operand| {
            let Region { base, lo, hi, .. } = *schedule.region(*operand);
            [base, lo, hi]
        });
        let widths = schedule.scratch.iter().map(|scratch| scratch.width);
        let all = ends.chain(widths).try_fold(1, |unit, at: Rat| lcm(unit, at.den()));
        let (collective, nranks) = (schedule.collective, schedule.nranks);
        let units = [collective.max_input_units(nranks), collective.max_output_units(nranks)];
        let most = CHUNKS / u64::from(units[0].max(units[1]).max(1));
        let unit = all.filter(|unit| *unit <= most).ok_or_else(|| {
            unfit(format!("its buffers are cut into more than {CHUNKS} equal chunks"))
        })?;
        // The larger buffer of those that all ranks have.
        let ranks = || (0..nranks).map(RankId);
        let least = [Buffer::Input, Buffer::Output]
            .map(|buffer| ranks().map(|rank| schedule.units(buffer, rank)).min());
        let like = usize::from(least[1] >= least[0]);
        let sizes = units.map(|units| u64::from(units) * unit);
        let mut all =
            Self { schedule, unit, sizes, cut: Default::default(), like, scratch: Vec::new() };
        for scratch in &schedule.scratch {
            let width = all.chunks(scratch.width);
            let each = width.div_ceil(sizes[like].max(1)).max(1);
            let shape = if each == 1 { width } else { sizes[like] };
            let count = u64::from(scratch.slots) * each;
            let name = all.free(&scratch.name);
            all.scratch.push(NamedSlots {
                name,
                each,
                shape,
                count,
                wide: scratch.wide,
                used: Cell::default(),
                cut: Cell::default(),
            });
        }
        Ok(all)
    }

    /// Returns a similar name that is neither another buffer's nor a word of the language.
    fn free(&self, name: &str) -> String {
        let word: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let word = match &*word {
            "scratch" | "buffer" => "work".to_owned(),
            "fifo" => "slot".to_owned(),
            _ => word,
        };
        let taken = |name: &String| self.scratch.iter().any(|slots| slots.name == *name);
        let names = std::iter::once(word.clone()).chain((2..).map(|k| format!("{word}_{k}")));
        names.into_iter().find(|name| !taken(name)).unwrap_or(word)
    }

    /// Returns the chunks in `units` units; [`Self::new`] has checked that they are whole.
    fn chunks(&self, units: Rat) -> u64 {
        units.times(self.unit).map_or(0, Rat::floor)
    }

    /// Returns the stretch of an operand.
    pub(super) fn stretch(&self, operand: Operand) -> Stretch {
        let Region { buffer, slot, base, lo, hi } = *self.schedule.region(operand);
        let [base, lo, hi] = [base, lo, hi].map(|at| self.chunks(at));
        let slot = match buffer {
            Buffer::Scratch(id) => {
                let slots = self.slots(id);
                u64::from(slot) * slots.each * slots.shape
            }
            _ => 0,
        };
        Stretch { rank: operand.rank, buffer, first: slot + lo - base, len: hi - lo }
    }

    fn slots(&self, id: ScratchId) -> &NamedSlots {
        &self.scratch[id.index()]
    }

    /// Returns the parts of operands of one length that each lie in one declared slot: the start and the length of
    /// each.
    pub(super) fn parts(&self, stretches: &[Stretch]) -> Vec<(u64, u64)> {
        let len = stretches.first().map_or(0, |stretch| stretch.len);
        let mut cuts = vec![0, len];
        for stretch in stretches {
            if let Buffer::Scratch(id) = stretch.buffer {
                let shape = self.slots(id).shape.max(1);
                let next = shape - stretch.first % shape;
                cuts.extend((next..len).step_by(usize::try_from(shape).unwrap_or(usize::MAX)));
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|ends| (ends[0], ends[1] - ends[0])).collect()
    }

    /// Records the declarations that the name of a stretch within one declared slot needs.
    fn note(&self, Stretch { buffer, len, .. }: Stretch) {
        let cuts = |cut: &Cell<bool>, whole: u64| cut.set(cut.get() || len < whole);
        match buffer {
            Buffer::Input => cuts(&self.cut[0], self.sizes[0]),
            Buffer::Output => cuts(&self.cut[1], self.sizes[1]),
            Buffer::Scratch(id) => {
                let slots = self.slots(id);
                slots.used.set(true);
                cuts(&slots.cut, slots.shape);
            }
        }
    }

    /// Returns the declarations for all names in the text.
    pub(super) fn declared(&self) -> String {
        let mut text = String::new();
        let used = || self.scratch.iter().filter(|slots| slots.used.get());
        if used().any(|slots| slots.shape != self.sizes[self.like]) {
            self.cut[self.like].set(true);
        }
        for (at, [buffer, chunks]) in NAMES.into_iter().enumerate() {
            if self.cut[at].get() {
                let _ = writeln!(text, "view {chunks} = {buffer}.split({});", self.sizes[at]);
            }
        }
        let [whole, chunks] = NAMES[self.like];
        for slots in used() {
            let like = if slots.shape == self.sizes[self.like] {
                whole.to_owned()
            } else {
                chunks.to_owned() + &index(0, slots.shape)
            };
            let NamedSlots { name, shape, count, wide, .. } = slots;
            let like = if *wide { like + " as f32" } else { like };
            if *count == 1 {
                let _ = writeln!(text, "scratch {name}: like {like};");
                if slots.cut.get() {
                    let _ = writeln!(text, "view {name}_part = {name}.split({shape});");
                }
            } else {
                let _ = writeln!(text, "scratch {name}: {count} like {like};");
            }
        }
        text
    }

    /// Returns the name of an operand for a comment, without its rank.
    pub(super) fn whole(&self, operand: Operand) -> String {
        let stretch = self.stretch(operand);
        let parts = self.parts(&[stretch]).into_iter().map(|part| self.spelled(stretch.part(part)));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Returns the name of a stretch within one declared slot, without its rank.
    pub(super) fn name(&self, stretch: Stretch) -> String {
        self.note(stretch);
        self.spelled(stretch)
    }

    fn spelled(&self, stretch: Stretch) -> String {
        let Stretch { buffer, first, len, .. } = stretch;
        let user = |at: usize| {
            let [whole, chunks] = NAMES[at];
            if len == self.sizes[at] {
                whole.to_owned()
            } else {
                chunks.to_owned() + &index(first, len)
            }
        };
        let id = match buffer {
            Buffer::Input => return user(0),
            Buffer::Output => return user(1),
            Buffer::Scratch(id) => id,
        };
        let NamedSlots { name, shape, count, .. } = self.slots(id);
        let (slot, within) = (first / shape.max(&1), first % shape.max(&1));
        match (*count == 1, len == *shape) {
            (true, true) => name.clone(),
            (true, false) => format!("{name}_part{}", index(within, len)),
            (false, true) => format!("{name}[{slot}]"),
            (false, false) => format!("{name}[{slot}].split({shape}){}", index(within, len)),
        }
    }
}

/// Returns an index for `len` pieces from `first` on, to follow the name of all pieces.
fn index(first: u64, len: u64) -> String {
    match len {
        1 => format!("[{first}]"),
        _ => format!("[{first}..{}]", first + len),
    }
}

/// Returns the operands of all messages and moves.
fn used(form: &TwoSided) -> Vec<Operand> {
    let schedule = form.schedule();
    let mut all = Vec::new();
    for message in form.messages() {
        all.push(Operand { rank: message.from, region: message.source });
        all.push(Operand { rank: message.to, region: message.target });
    }
    for rank in (0..schedule.nranks).map(RankId) {
        for action in form.actions(rank) {
            if let Action::Move(id) = action {
                let op = schedule.op(*id);
                all.extend(schedule.srcs(op));
                all.extend(schedule.dsts(op));
            }
        }
    }
    all
}
