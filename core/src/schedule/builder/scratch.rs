//! The builder's scratch: declared once, the same at every rank.

use super::{At, Builder, Stop};
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, ScratchId, SpanId};
use crate::schedule::Scratch;
use crate::schedule::area::{Area, Cut, Pieces};
use crate::schedule::arith::Fault;
use crate::schedule::rational::Rat;
use crate::schedule::tables::Tables;
use crate::schedule::value::{Int, Piece, Split};

impl Builder<'_> {
    /// `scratch name: like region`
    pub fn scratch(&mut self, at: At, name: &str, like: Piece) -> Result<Piece, Stop> {
        let like = self.settle(at, like.0)?;
        let id = self.declare(at, name, 1, like)?;
        Ok(Piece(Ok(Area::slot(id, like))))
    }

    /// `scratch name: count like region`
    pub fn scratch_slots(
        &mut self,
        at: At,
        name: &str,
        count: impl Into<Int>,
        like: Piece,
    ) -> Result<Split, Stop> {
        let like = self.settle(at, like.0)?;
        let count = self.settle(at, count.into().0)?;
        let id = self.declare(at, name, count, like)?;
        Ok(Split(Ok(Pieces { whole: Area::slot(id, like), cut: Cut::Slots(count) })))
    }

    /// `scratch name: count like pieces`: slots of the widest piece, each holding what it was last given.
    pub fn scratch_blocks(
        &mut self,
        at: At,
        name: &str,
        count: impl Into<Int>,
        like: &Split,
    ) -> Result<Split, Stop> {
        let pieces = self.settle(at, like.0.clone())?;
        let width = self.settle(at, pieces.widest())?;
        let count = self.settle(at, count.into().0)?;
        let mut shape = pieces.whole;
        shape.region.lo = Rat::ZERO;
        shape.region.hi = width;
        let id = self.declare(at, name, count, shape)?;
        let whole = Area::floating_slot(id, width);
        Ok(Split(Ok(Pieces { whole, cut: Cut::Slots(count) })))
    }

    fn declare(&mut self, at: At, name: &str, count: i64, like: Area) -> Result<ScratchId, Stop> {
        if like.floating {
            return Err(self.fault(at, Fault::FloatingSlot));
        }
        let slots = match u32::try_from(count) {
            Ok(slots) if u64::from(slots) <= Tables::SLOT_LIMIT => slots,
            _ => {
                let takes = "a number of slots in 0..=1048576";
                return Err(
                    self.fault(at, Fault::Argument { function: "scratch", takes, got: count })
                );
            }
        };
        let mut scratch = Scratch { name: name.to_owned(), slots, width: like.width() };
        let called = self.is_called();
        let lane = if called { self.lane.id() } else { LaneId::default() };
        let which = (self.path.clone(), lane, self.declared);
        self.declared += 1;
        let next = ScratchId(self.tables.scratch.len() as u32);
        let id = *self.tables.declared.entry(which).or_insert(next);
        match self.tables.scratch.get_mut(id.index()) {
            None => {
                // Algorithms that call each other may have chosen the same name.
                let taken = |name: &str| self.tables.scratch.iter().any(|s| s.name == name);
                let mut names = (2..).map(|k| format!("{name}_{k}"));
                while taken(&scratch.name) {
                    scratch.name = names.next().expect("there are enough numbers");
                }
                self.tables.scratch.push(scratch);
            }
            Some(first) if (first.slots, first.width) == (slots, scratch.width) => {}
            // A group's size, and with it what its ranks need, need not be the same everywhere.
            Some(first) if called => {
                first.slots = first.slots.max(slots);
                first.width = first.width.max(scratch.width);
            }
            Some(first) => {
                let title = format!("scratch `{name}` differs between ranks");
                let note = format!(
                    "{} slots of {} units here at rank {}, {} slots of {} units at rank 0",
                    scratch.slots, scratch.width, self.rank, first.slots, first.width
                );
                return Err(self.fail(
                    Finding::new(Code::ScratchPlacement, SpanId(at), title).note(note).help(
                        "every rank has the same scratch: let its size depend on `nranks` only",
                    ),
                ));
            }
        }
        Ok(id)
    }
}
