//! The builder's scratch: declared once, with equal sizes at every rank.

use super::{At, Builder, Stop};
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, ScratchId, SpanId};
use crate::layout::area::{Area, Cut, Pieces};
use crate::layout::interning::Tables;
use crate::rational::Rat;
use crate::schedule::Scratch;
use crate::values::arith::Fault;

impl Builder<'_> {
    /// `scratch name: like region`; the flag of the name is `as f32`
    pub(crate) fn scratch(&mut self, at: At, name: (&str, bool), like: Area) -> Result<Area, Stop> {
        let id = self.declare(at, name, 1, like)?;
        Ok(self.tables.like(Area::slot(id, like), like))
    }

    /// `scratch name: count like region`
    pub(crate) fn scratch_slots(
        &mut self,
        at: At,
        name: (&str, bool),
        count: i64,
        like: Area,
    ) -> Result<Pieces, Stop> {
        let id = self.declare(at, name, count, like)?;
        let whole = self.tables.like(Area::slot(id, like), like);
        Ok(Pieces { whole, cut: Cut::Slots(count) })
    }

    /// `scratch name: count like pieces`: slots of the widest piece; a slot has the shape of the data last written to
    /// it.
    pub(crate) fn scratch_blocks(
        &mut self,
        at: At,
        name: (&str, bool),
        count: i64,
        pieces: &Pieces,
    ) -> Result<Pieces, Stop> {
        let width = self.settle(at, pieces.widest())?;
        let mut shape = pieces.whole;
        shape.region.lo = Rat::ZERO;
        shape.region.hi = width;
        let id = self.declare(at, name, count, shape)?;
        let whole = Area::floating_slot(id, width);
        Ok(Pieces { whole, cut: Cut::Slots(count) })
    }

    /// Returns the buffer that the running algorithm declares next, and whether it is new. A buffer is identified by
    /// the calls that lead to the algorithm, their lane, and the number of earlier declarations; a new one is made by
    /// the first rank that declares it.
    pub(super) fn next_scratch(
        &mut self,
        (name, wide): (&str, bool),
        width: Rat,
    ) -> (ScratchId, bool) {
        let called = self.is_called();
        let lane = if called { self.lane.id() } else { LaneId::default() };
        let which = (self.path.clone(), lane, self.declared);
        self.declared += 1;
        let next = ScratchId(self.tables.scratch.len() as u32);
        let id = *self.tables.declared.entry(which).or_insert(next);
        if id != next {
            return (id, false);
        }
        // Algorithms that call each other may have chosen one name.
        let names = std::iter::once(name.to_owned()).chain((2..).map(|k| format!("{name}_{k}")));
        let mut free = names.filter(|name| self.tables.scratch.iter().all(|s| s.name != *name));
        let name = free.next().expect("there are enough numbers");
        self.tables.scratch.push(Scratch { name, slots: 0, width, wide });
        (id, true)
    }

    fn declare(
        &mut self,
        at: At,
        name: (&str, bool),
        count: i64,
        like: Area,
    ) -> Result<ScratchId, Stop> {
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
        let width = like.width();
        let (id, new) = self.next_scratch(name, width);
        let called = self.is_called();
        let first = &mut self.tables.scratch[id.index()];
        if new || called {
            // Groups may differ in size, and with it the scratch that their ranks need.
            first.slots = first.slots.max(slots);
            first.width = first.width.max(width);
        } else if (first.slots, first.width) != (slots, width) {
            let title = format!("scratch `{}` differs between ranks", name.0);
            let note = format!(
                "{slots} slots of {width} units here at rank {}, {} slots of {} units at rank 0",
                self.rank, first.slots, first.width
            );
            return Err(self.fail(
                Finding::new(Code::ScratchPlacement, SpanId(at), title)
                    .note(note)
                    .help("every rank has the same scratch: let its size depend on `nranks` only"),
            ));
        }
        Ok(id)
    }
}
