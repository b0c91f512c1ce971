//! The replay of rank 0: every access of any rank to the memory of rank 0 is the image of an access of rank 0 to the
//! memory of the rank that it is turned from.

use std::iter::Chain;
use std::ops::Range;
use std::{option, vec};

use super::Representative;
use super::order::{Before, Event};
use super::space::{CellRange, Space};
use super::values::{Shapes, Value};
use crate::ids::{OpId, RankId, StreamId};
use crate::rational::Rat;
use crate::schedule::{Operand, Region, Schedule};
use crate::verify::Order;
use crate::verify::layout::{BufferMode, MemoryLayout, Slot};
use crate::verify::memory::{CALLER, NOBODY, Past};
use crate::verify::ranks::{FollowedRanks, RankOp};
use crate::verify::values::CellValue;

/// The main stream of rank 0.
const MAIN: StreamId = StreamId(0);

/// The place of an operand of rank 0's op.
#[derive(Clone, Copy)]
pub(super) struct OperandPlace {
    /// The cells at the owner.
    piece: CellRange,
    /// The turn that takes the owner to rank 0.
    back: u32,
    owner: RankId,
    /// The first cell of the buffer at rank 0.
    first: u32,
    /// The first cell of the piece in the memory of the owner.
    at: u32,
}

/// Rank 0, which stands for all ranks.
pub(super) struct OneRank<'a> {
    of: &'a Representative,
    before: Before<'a>,
    /// The accesses to the memory of rank 0, each with the rank that makes it.
    accesses: Vec<Event>,
    run: u32,
}

impl<'a> OneRank<'a> {
    pub(super) fn new(of: &'a Representative, order: &'a Order) -> Self {
        let before = Before::new(&of.own, &of.turns, order);
        Self { of, before, accesses: Vec::new(), run: 0 }
    }

    /// Lays out the memory of rank 0.
    pub(super) fn layout(of: &Representative, mode: BufferMode) -> MemoryLayout {
        let (first, size) = of.space.layout(&of.own, mode);
        MemoryLayout::one(&first, size)
    }

    fn own(&self) -> &'a Schedule {
        &self.of.own
    }

    fn space(&self) -> &'a Space {
        &self.of.space
    }
}

/// The past of an access to the memory of rank 0.
struct AccessPast<'a> {
    before: &'a Before<'a>,
    accesses: &'a [Event],
    event: Event,
}

impl Past for AccessPast<'_> {
    fn after(&self, event: u32) -> bool {
        // Most readers of a cell have no order among themselves, which only a long search would show.
        self.before.is_near(self.accesses[event as usize], self.event)
    }

    fn after_write(&self, write: u32) -> bool {
        match write {
            NOBODY => true,
            CALLER => self.before.begun(MAIN, 0, self.event),
            event => self.before.holds(self.accesses[event as usize], self.event),
        }
    }

    fn races(&self, reads: &[u32], write: u32) -> Option<(u32, bool)> {
        let comes = |read: &u32| self.before.holds(self.accesses[*read as usize], self.event);
        let read = reads.iter().find(|read| !comes(read)).map(|read| (*read, true));
        read.or_else(|| (!self.after_write(write)).then_some((write, false)))
    }
}

/// The past of the end of the run at rank 0.
struct ExitPast<'a> {
    before: &'a Before<'a>,
    accesses: &'a [Event],
}

impl Past for ExitPast<'_> {
    fn after(&self, event: u32) -> bool {
        self.before.ended(self.accesses[event as usize], MAIN)
    }

    fn after_write(&self, write: u32) -> bool {
        write >= CALLER || self.after(write)
    }
}

/// Returns the value to which a turn takes a value.
fn turned(space: &Space, value: Value, by: u32) -> Value {
    if by == 0 || !value.is_value() {
        return value;
    }
    let cell = space.cell(0, value.cell.into(), by) as u32;
    Value { by: space.turns.turn(value.by, by), cell, ..value }
}

impl FollowedRanks for OneRank<'_> {
    type Values = Shapes;
    type Place = OperandPlace;
    type Images = Chain<option::IntoIter<Range<u32>>, vec::IntoIter<Range<u32>>>;

    // Each is written out in the contributions of all ranks.
    const WRONG: usize = 1;

    fn followed(&self) -> u32 {
        1
    }

    fn per_unit(&self) -> u32 {
        self.space().grid as u32
    }

    fn region(&self, cell: u32) -> Region {
        self.space().region(cell.into())
    }

    fn home(&self, _operand: Operand) -> RankId {
        RankId(0)
    }

    fn place(&self, layout: &MemoryLayout, mode: usize, operand: Operand) -> OperandPlace {
        let (own, space, owner) = (self.own(), self.space(), operand.rank);
        let piece = space.piece(own, operand);
        let first = layout.buffer(RankId(0), own.region(operand).buffer);
        let begin = if piece.buffer < 2 && mode > 0 {
            let (input, output) = own.collective.alias(owner, own.root).starts();
            [input, output][piece.buffer] * space.grid as u32
        } else {
            first
        };
        let at = begin + piece.first as u32;
        OperandPlace { piece, back: space.turns.back(owner.0), owner, first, at }
    }

    fn len(place: OperandPlace) -> u32 {
        place.piece.len as u32
    }

    fn distance(a: OperandPlace, b: OperandPlace) -> Option<u32> {
        (a.owner == b.owner).then(|| a.at.abs_diff(b.at))
    }

    fn images(&self, OperandPlace { piece, back, first, .. }: OperandPlace) -> Self::Images {
        let range = move |image: CellRange| {
            let from = first + image.first as u32;
            from..from + image.len as u32
        };
        let space = self.space();
        let (one, many) = if piece.len == 0 || space.is_cut(piece) {
            (None, space.images(piece, back).into_iter().map(range).collect())
        } else {
            (Some(range(space.image(piece, back))), Vec::new())
        };
        one.into_iter().chain(many)
    }

    fn load<'m>(
        &self,
        memory: &'m [Value],
        OperandPlace { piece, back, owner, first, .. }: OperandPlace,
        room: &'m mut Vec<Value>,
    ) -> &'m [Value] {
        let space = self.space();
        let turned = |value| turned(space, value, owner.0);
        room.clear();
        if space.turns_inside(piece) || space.is_cut(piece) {
            let cells = piece.first..piece.first + piece.len;
            let at = |cell| first as usize + space.cell(piece.buffer, cell, back) as usize;
            room.extend(cells.map(|cell| turned(memory[at(cell)])));
        } else {
            let image = first as usize + space.turned(piece, back).first as usize;
            room.extend(memory[image..][..piece.len as usize].iter().copied().map(turned));
        }
        room
    }

    /// The images are values of rank 0. They lie in another order than the values: one bad value makes all of them bad.
    fn store(&self, memory: &mut [Value], place: OperandPlace, values: &[Value], good: u32) {
        let OperandPlace { piece, back, first, .. } = place;
        let space = self.space();
        let inside = space.turns_inside(piece) || space.is_cut(piece);
        let image = space.turned(piece, back).first;
        let bad = u64::from(good) < piece.len;
        for (number, value) in (0..).zip(values) {
            let to = if inside {
                space.cell(piece.buffer, piece.first + number, back)
            } else {
                image + number
            };
            let value = if bad { Value::POISON } else { turned(space, *value, back) };
            memory[first as usize + to as usize] = value;
        }
    }

    fn slot(&self, layout: &MemoryLayout, operand: Operand) -> Option<Slot> {
        let (own, space) = (self.own(), self.space());
        let region = own.region(operand);
        let back = space.turns.back(operand.rank.0);
        let slot = space.turned(space.slot(region)?, back);
        let nth = (slot.first / slot.len.max(1)) as u32;
        let base = space.base(own, operand, back);
        let first = layout.buffer(RankId(0), region.buffer) + slot.first as u32;
        Some(Slot {
            key: (RankId(0), region.buffer, nth),
            // In cells: there is no need of a fraction in lowest terms.
            base: Rat::whole(base),
            cells: first..first + slot.len as u32,
        })
    }

    fn origin(&self, operand: Operand, held: Rat) -> Rat {
        let (own, space) = (self.own(), self.space());
        let cell = space.moved_base(own, operand, held.num(), operand.rank.0);
        Rat::new(cell, space.grid).unwrap_or(Rat::ZERO)
    }

    fn event(&mut self, at: OpId, place: OperandPlace) -> u32 {
        self.accesses.push(Event { op: at, rank: place.back, run: self.run });
        self.accesses.len() as u32 - 1
    }

    fn past(&self, _at: OpId, event: u32, _operand: Operand) -> impl Past {
        let event = self.accesses[event as usize];
        AccessPast { before: &self.before, accesses: &self.accesses, event }
    }

    fn exit(&self, _rank: RankId) -> impl Past {
        ExitPast { before: &self.before, accesses: &self.accesses }
    }

    fn earlier(&self, earlier: u32, event: u32) -> (RankOp, bool) {
        let [first, second] = [earlier, event].map(|event| self.accesses[event as usize]);
        let rank = RankId(self.space().turns.turn_between(second.rank, first.rank));
        (RankOp { op: first.op, rank }, first.run != second.run)
    }

    fn touched(&self, event: u32, _home: RankId) -> (OpId, RankId) {
        let Event { op, rank, .. } = self.accesses[event as usize];
        (op, RankId(self.space().turns.back(rank)))
    }

    fn is_before(&self, earlier: OpId, next: OpId) -> bool {
        let [earlier, next] = [earlier, next].map(|op| Event { op, rank: 0, run: 0 });
        self.before.holds(earlier, next)
    }

    fn next_run(&mut self) {
        self.run += 1;
    }

    fn sure(&self, _found: bool) -> Result<(), &'static str> {
        let why = "the order of its events takes too long to find";
        if self.before.full.get() { Err(why) } else { Ok(()) }
    }

    /// A cell here is as fine as a cell of any piece.
    fn count(_cells: u32) -> u32 {
        1
    }
}
