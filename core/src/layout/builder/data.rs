//! The builder's data ops: copies and reduces, with the ranks of their operands, and the check that lengths agree for
//! every count.

use super::{At, Builder, Place, Stop};
use crate::diagnostics::{self, Code, Finding, INPUT_KEPT};
use crate::ids::{RankId, SpanId};
use crate::layout::area::Area;
use crate::layout::interning::Tables;
use crate::rational::{Rat, lcm};
use crate::schedule::lengths::{self, Lengths};
use crate::schedule::{Buffer, MOVE_LIMIT, Op, OpKind, Operand, SWITCH_LIMIT};

/// The most sources of one move; longer folds become several moves.
pub(super) const MAX_SOURCES: usize = MOVE_LIMIT as usize;
/// The most destinations of one move.
const MAX_DESTINATIONS: usize = MOVE_LIMIT as usize;

/// The source or the destination of a move by a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SwitchEnd {
    /// A place of one rank.
    One(Place),
    /// A region of every rank that the program sees.
    All(Area),
}

impl Builder<'_> {
    /// `copy(src, [dst, …])`
    pub(crate) fn copy(&mut self, at: At, src: Place, dsts: &[Place]) -> Result<(), Stop> {
        if dsts.is_empty() || dsts.len() > MAX_DESTINATIONS {
            return Err(self.operand_count(
                at,
                "copy",
                "destinations",
                dsts.len(),
                MAX_DESTINATIONS,
            ));
        }
        self.data(at, 1, std::iter::once(&src).chain(dsts))
    }

    /// `reduce([src, …], dst)`: each source in turn, `dst = src op dst`.
    pub(crate) fn reduce(&mut self, at: At, srcs: &[Place], dst: Place) -> Result<(), Stop> {
        if srcs.is_empty() {
            return Err(self.operand_count(at, "reduce", "sources", 0, usize::MAX));
        }
        let dst = std::iter::once(&dst);
        for part in srcs.chunks(MAX_SOURCES - 1) {
            self.data(at, 1 + part.len(), dst.clone().chain(part).chain(dst.clone()))?;
        }
        Ok(())
    }

    /// A move by a switch: an end is a place of one rank, or one region of every rank.
    pub(crate) fn switch(&mut self, at: At, src: SwitchEnd, dst: SwitchEnd) -> Result<(), Stop> {
        let (ranks, most) = (self.size() as usize, usize::from(SWITCH_LIMIT));
        if ranks > most {
            return Err(self.operand_count(at, "fold", "ranks", ranks, most));
        }
        let (srcs, dsts) = (self.ends(at, src)?, self.ends(at, dst)?);
        self.operands_of(at, (srcs.len(), true), srcs.iter().chain(&dsts))
    }

    fn ends(&mut self, at: At, end: SwitchEnd) -> Result<Vec<Place>, Stop> {
        match end {
            SwitchEnd::One(place) => Ok(vec![place]),
            SwitchEnd::All(area) => {
                let ranks = (0..i64::from(self.size())).map(|rank| self.find_rank(rank));
                let ranks = ranks.collect::<Result<Vec<_>, _>>();
                Ok(self.settle(at, ranks)?.into_iter().map(|rank| (rank, area)).collect())
            }
        }
    }

    fn operand_count(&mut self, at: At, op: &str, what: &str, got: usize, most: usize) -> Stop {
        let title = match got {
            0 => format!("`{op}` has no {what}"),
            _ => format!("`{op}` has {got} {what}, and takes at most {most}"),
        };
        self.fail(Finding::new(Code::TooManyOperands, SpanId(at), title))
    }

    /// Writes one move of `nsrcs` sources, and destinations; for a reduce, the first source is the destination.
    pub(super) fn data<'p>(
        &mut self,
        at: At,
        nsrcs: usize,
        places: impl Iterator<Item = &'p Place>,
    ) -> Result<(), Stop> {
        self.operands_of(at, (nsrcs, false), places)
    }

    /// Writes a move by this rank, or by a switch.
    fn operands_of<'p>(
        &mut self,
        at: At,
        (nsrcs, switch): (usize, bool),
        places: impl Iterator<Item = &'p Place>,
    ) -> Result<(), Stop> {
        // One list is reused for all ops of the rank, without new allocations.
        let mut operands = std::mem::take(&mut self.operands);
        operands.clear();
        for place in places {
            let (rank, area) = *place;
            let there = if area.frame == 0 { Ok(area) } else { self.locate(rank, area) };
            operands.push((rank, self.settle(at, there)?));
        }
        // Where a caller gave one region for both buffers, a copy of it onto itself is left out.
        if nsrcs == 1 && self.is_called() {
            let src = operands[0];
            let mut first = true;
            operands.retain(|operand| std::mem::take(&mut first) || *operand != src);
            if operands.len() == 1 {
                self.operands = operands;
                return Ok(());
            }
        }
        self.settle_operands(at, (nsrcs, switch), &mut operands)?;
        let op = Op {
            srcs: nsrcs as u8,
            dsts: (operands.len() - nsrcs) as u8,
            switch,
            ..Op::new(OpKind::Move, SpanId(at), self.tables.operands.len() as u32)
        };
        for (rank, area) in &operands {
            let region = self.tables.region(area.region);
            self.tables.operands.push(Operand { rank: *rank, region });
            if let Some(turning) = &mut self.tables.turning {
                turning.operands.push(area.axes);
            }
        }
        self.operands = operands;
        self.push(at, op)
    }

    /// Gives floating slots the shape of the op, and checks the rules for operands.
    fn settle_operands(
        &mut self,
        at: At,
        (nsrcs, switch): (usize, bool),
        operands: &mut [(RankId, Area)],
    ) -> Result<(), Stop> {
        let own = usize::from(nsrcs > 1 && !switch);
        if operands[own..].iter().all(|(rank, _)| *rank != self.rank) {
            let title = format!("no operand of this op is local to rank {}", self.rank);
            return Err(self.fail(
                Finding::new(Code::NoLocalOperand, SpanId(at), title)
                    .help("pull into `local.…` or push from it; a third rank cannot move data"),
            ));
        }
        let shape = self.shape(at, operands)?;
        let of = operands.len();
        for (index, (rank, area)) in operands.iter_mut().enumerate() {
            if area.floating {
                let room = area.width();
                *area = self.tables.settle_slot(*area, shape, at);
                // The first source of a reduction is its destination, too, and is reported there.
                if index >= own && room < shape.width() {
                    return Err(self.too_narrow(at, *rank, (area, room), (index, of)));
                }
            }
            self.has_buffer(at, *rank, *area)?;
            let equal = lengths::compare(
                (shape.region.lo, shape.region.hi),
                (area.region.lo, area.region.hi),
                self.tables.multiple,
            );
            if equal != Lengths::Equal {
                return Err(self.unequal(at, equal, &shape, area));
            }
        }
        for (i, (rank, area)) in operands.iter().enumerate().skip(nsrcs) {
            if area.region.buffer == Buffer::Input {
                return Err(self.input_written(at, *rank, area, (i, operands.len())));
            }
            let itself = |other: &Area| switch && other.region == area.region;
            let hit =
                |(r, other): &(RankId, Area)| r == rank && overlap(other, area) && !itself(other);
            if operands[own..i].iter().any(hit) {
                return Err(self.overlapping(at, *rank, area));
            }
            if *rank == self.rank
                && let Buffer::Scratch(id) = area.region.buffer
            {
                self.slots.insert((id, area.region.slot), *area);
            }
        }
        Ok(())
    }

    /// Reports data that is wider than a slot. `index` is the number of the slot among the `of` operands of the op.
    fn too_narrow(
        &mut self,
        at: At,
        rank: RankId,
        (slot, room): (&Area, Rat),
        (index, of): (usize, usize),
    ) -> Stop {
        let at = SpanId(at);
        let region = self.tables.describe(rank, &slot.region);
        let (name, width) = (self.tables.describe_area(&slot.region), slot.width());
        let title = format!("{name} does not fit a slot of its scratch");
        let mut finding = Finding::new(Code::LengthMismatch, at, title)
            .note(format!("a slot has room for {room} units, and this needs {width}"))
            .help("let the scratch be `like` the largest region that one of its slots holds");
        finding.operands.push(diagnostics::Operand { region, at, index, of, part: false });
        self.fail(finding)
    }

    /// Reports a write to an input. `index` is the number of the destination among the `of` operands of the op.
    fn input_written(
        &mut self,
        at: At,
        rank: RankId,
        area: &Area,
        (index, of): (usize, usize),
    ) -> Stop {
        let at = SpanId(at);
        let region = self.tables.describe(rank, &area.region);
        let title = format!("the input of rank {rank} is written");
        let mut finding = Finding::new(Code::InputWritten, at, title)
            .label("written here")
            .note(INPUT_KEPT.0)
            .help(INPUT_KEPT.1);
        finding.operands.push(diagnostics::Operand { region, at, index, of, part: false });
        self.fail(finding)
    }

    /// Returns the shape of an op: the shape of its first operand that is not a floating slot, else that of the data
    /// in a local slot.
    pub(super) fn shape(&mut self, at: At, operands: &[(RankId, Area)]) -> Result<Area, Stop> {
        if let Some((_, area)) = operands.iter().find(|(_, area)| !area.floating) {
            return Ok(*area);
        }
        let held = operands.iter().find_map(|(rank, area)| match area.region.buffer {
            Buffer::Scratch(id) if *rank == self.rank => {
                self.slots.get(&(id, area.region.slot)).copied()
            }
            _ => None,
        });
        held.ok_or_else(|| {
            self.fail(
                Finding::new(
                    Code::UnknownSlotLength,
                    SpanId(at),
                    "all operands are slots, and no length is known",
                )
                .note("a slot has the length of what was last written to it by its own rank")
                .help(
                    "let one operand be a region of `input` or `output`, or let the scratch be `like` one piece, not like pieces",
                ),
            )
        })
    }

    pub(super) fn overlapping(&mut self, at: At, rank: RankId, area: &Area) -> Stop {
        let name = self.tables.describe(rank, &area.region);
        let title = format!("two operands of this op overlap at {name}");
        self.fail(
            Finding::new(Code::RepeatedDestination, SpanId(at), title)
                .note("only the source that a `reduce` folds into may be its destination")
                .help("a copy onto itself does nothing: leave it out, or choose another piece"),
        )
    }

    fn has_buffer(&mut self, at: At, rank: RankId, area: Area) -> Result<(), Stop> {
        let (units, name) = match area.region.buffer {
            Buffer::Input => (self.tables.input_units(rank), "input"),
            Buffer::Output => (self.tables.output_units(rank), "output"),
            Buffer::Scratch(_) => return Ok(()),
        };
        if units > 0 {
            return Ok(());
        }
        let collective = self.tables.collective;
        let title = format!("rank {rank} has no {name} in a {collective}");
        let root = self.tables.root;
        Err(self.fail(
            Finding::new(Code::BufferAbsent, SpanId(at), title)
                .note(format!("only the root, rank {root}, has an {name}"))
                .help("guard the op with `if rank == root { … }`"),
        ))
    }

    pub(super) fn unequal(&mut self, at: At, lengths: Lengths, left: &Area, right: &Area) -> Stop {
        let name = |t: &Tables, a: &Area| t.describe_area(&a.region);
        let (l, r) = (name(self.tables, left), name(self.tables, right));
        let at = SpanId(at);
        let finding = match lengths {
            Lengths::Differ { count, left, right } => {
                Finding::new(Code::LengthMismatch, at, format!("{l} and {r} differ in length"))
                    .note(format!("number of elements at count {count}: {left} and {right}"))
            }
            _ => Finding::new(
                Code::MisalignedRegions,
                at,
                format!("{l} and {r} are cut at different fractions of the count"),
            ),
        };
        // Lengths that differ only by the rounding of pieces are equal where every count is a multiple of some
        // number.
        let ends = |area: &Area| (area.region.lo, area.region.hi);
        let [left, right] = [ends(left), ends(right)];
        let dens = [left.0, left.1, right.0, right.1].map(Rat::den);
        let multiple = dens.into_iter().try_fold(self.tables.multiple, lcm);
        let rounded = multiple.filter(|of| lengths::compare(left, right, *of) == Lengths::Equal);
        self.fail(finding.help(match rounded {
            Some(of) => format!(
                "operands of one op are pieces of the same split; or, where every count is a multiple of {of}, say so \
                 by `require count % {of} == 0, \"a multiple of {of}\";`"
            ),
            None => "operands of one op are pieces of the same split".to_owned(),
        }))
    }
}

impl Tables {
    /// Gives a floating slot the shape of the data that meets it. Whole units before the data change no length for any
    /// count, so they are dropped: block 3 of an input is read into an output of one block.
    pub(super) fn settle_slot(&mut self, slot: Area, shape: Area, at: At) -> Area {
        let mut region = shape.region;
        region.buffer = slot.region.buffer;
        region.slot = slot.region.slot;
        let units = Rat::whole(region.lo.floor());
        let less = |x: Rat| x.minus(units).expect("it begins behind them");
        (region.lo, region.hi) = (less(region.lo), less(region.hi));
        region.base = region.lo;
        let axes = self.turning.as_mut().map_or(0, |turning| {
            turning.shaped(shape.axes, slot.axes).unwrap_or_else(|| {
                turning.leave(at, None, "data that moves by parts of units is kept in slots");
                0
            })
        });
        Area { region, floating: false, frame: 0, axes }
    }
}

pub(super) fn overlap(a: &Area, b: &Area) -> bool {
    let (a, b) = (&a.region, &b.region);
    a.buffer == b.buffer && a.slot == b.slot && a.lo < b.hi && b.lo < a.hi
}
