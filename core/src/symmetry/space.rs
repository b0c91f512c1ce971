//! The memory of rank 0 as a grid of equal cells, and the action of turns on it: a turn that takes rank p to rank q
//! takes each cell of p to a cell of q.

use crate::collective::Alias;
use crate::ids::{RankId, RegionId};
use crate::layout::turning::Axis;
use crate::rational::{Rat, lcm};
use crate::schedule::{Buffer, Operand, Region, Schedule, Scratch};
use crate::turns::Turns;
use crate::verify::layout::BufferMode;

/// The most cells of a rank's memory.
const CELLS: u64 = 1 << 24;

/// A digit of a cell's number that a digit of the rank turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wheel {
    /// The number of cells by which the digit counts.
    pub(crate) stride: u64,
    /// The digit of the rank.
    pub(crate) digit: usize,
}

/// A region of a buffer as cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellRange {
    /// The buffer: 0 for the input, 1 for the output, then scratch.
    pub(crate) buffer: usize,
    /// The first cell within the buffer.
    pub(crate) first: u64,
    pub(crate) len: u64,
}

/// A turn takes a part of a piece out of the piece.
#[derive(Debug)]
pub(crate) struct Elsewhere;

/// The cells of one rank's buffers, and the wheels that turn them.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) turns: Turns,
    /// The cells of a unit.
    pub(crate) grid: u64,
    /// The wheels of each buffer, the largest stride first.
    pub(crate) wheels: Vec<Vec<Wheel>>,
    /// The cells of each buffer.
    pub(crate) sizes: Vec<u64>,
    /// The cells of a slot of each scratch buffer.
    slots: Vec<u64>,
    /// For each region, whether the position where the data of its slot begins moves with the rank.
    bases: Vec<bool>,
}

/// The number of a buffer in a [`Space`].
pub(crate) fn number(buffer: Buffer) -> usize {
    match buffer {
        Buffer::Input => 0,
        Buffer::Output => 1,
        Buffer::Scratch(id) => 2 + id.index(),
    }
}

impl Space {
    /// Cuts the memory of a schedule of rank 0, and finds the wheels from the axes of its operands; the error is the
    /// reason why there is no such action.
    pub(crate) fn new<'a>(
        own: &Schedule,
        turns: &Turns,
        axes: impl Iterator<Item = (Operand, &'a [Axis])> + Clone,
    ) -> Result<Self, String> {
        let grid = grid(own, axes.clone()).ok_or("its pieces are too fine to be numbered")?;
        let cells = |at: Rat| at.num() * (grid / at.den());
        let n = own.nranks;
        let units = [own.collective.max_input_units(n), own.collective.max_output_units(n)];
        let mut sizes = units.map(|units| u64::from(units) * grid).to_vec();
        let mut slots = Vec::new();
        for scratch in &own.scratch {
            slots.push(cells(scratch.width));
            sizes.push(cells(scratch.width).saturating_mul(scratch.slots.into()));
        }
        if sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size)) > CELLS {
            return Err(format!("a rank's memory has more than {CELLS} pieces"));
        }
        let mut space = Self {
            turns: turns.clone(),
            grid,
            wheels: vec![Vec::new(); sizes.len()],
            sizes,
            slots,
            bases: vec![false; own.regions.len()],
        };
        let mut known = vec![None; own.regions.len()];
        // Block r of a buffer with a block for each rank belongs to rank r.
        for (buffer, units) in units.into_iter().enumerate() {
            for digit in 0..if units > 1 { turns.radices().len() } else { 0 } {
                space.add(buffer, Wheel { stride: grid * u64::from(turns.weight(digit)), digit });
            }
        }
        for (operand, list) in axes {
            let region = own.region(operand);
            let buffer = number(region.buffer);
            let moves = list.iter().any(|axis| axis.base && axis.stride.den() > 1);
            if known[operand.region.index()].replace(moves).is_some_and(|before| before != moves) {
                return Err(
                    "a slot holds data that moves with the rank, and data that does not".to_owned()
                );
            }
            space.bases[operand.region.index()] = moves;
            for axis in list {
                let (stride, from) = if axis.slots {
                    let slot = space.slots[buffer - 2];
                    (axis.stride.num() * slot, axis.origin.num() * slot)
                } else if axis.base {
                    continue;
                } else {
                    let origin =
                        axis.origin.minus(region.base).ok_or("data begins before its slot")?;
                    (cells(axis.stride), cells(origin))
                };
                let span = stride * u64::from(turns.radices()[axis.digit]);
                if from % span != 0 {
                    return Err(
                        "pieces that move with the rank begin at different places".to_owned()
                    );
                }
                space.add(buffer, Wheel { stride, digit: axis.digit });
                // Contributions are of input cells, and outputs are compared with them.
                if buffer < 2 && span <= grid {
                    space.add(1 - buffer, Wheel { stride, digit: axis.digit });
                }
            }
        }
        for buffer in 0..space.wheels.len() {
            space.nested(buffer)?;
        }
        Ok(space)
    }

    /// Cuts the memory of a schedule of rank 0, with the wheels that it has if pieces have the numbers of their ranks.
    pub(crate) fn guessed(own: &Schedule, turns: &Turns) -> Result<Self, String> {
        let mut space = Self::new(own, turns, std::iter::empty())?;
        let n = u64::from(turns.nranks());
        for buffer in 0..space.sizes.len() {
            let span = if buffer < 2 { space.grid } else { space.slots[buffer - 2] };
            let blocks = buffer > 1 && span == space.grid * n;
            let stride = if blocks { space.grid } else { space.grid / n };
            let even = blocks || space.grid % n == 0 && span == space.grid;
            for digit in 0..if even { turns.radices().len() } else { 0 } {
                space.add(buffer, Wheel { stride: stride * u64::from(turns.weight(digit)), digit });
            }
            space.nested(buffer)?;
        }
        Ok(space)
    }

    /// Whether the boundaries of a region lie between cells.
    pub(crate) fn holds(&self, region: &Region) -> bool {
        [region.lo, region.hi, region.base].iter().all(|at| self.grid.is_multiple_of(at.den()))
    }

    /// Gives slots of scratch the wheels that turn pieces of a unit, as far as the slots hold whole spans of them: data
    /// that is turned inside where it comes from is turned alike in a slot.
    pub(crate) fn spread(&mut self) -> Result<(), String> {
        let grid = self.grid;
        let wheels: Vec<Wheel> = self.wheels[0].clone();
        for buffer in 2..self.sizes.len() {
            let slot = self.slots[buffer - 2];
            for wheel in &wheels {
                let span = wheel.stride * self.radix(wheel);
                if span <= grid && slot.is_multiple_of(span) {
                    self.add(buffer, *wheel);
                }
            }
            self.nested(buffer)?;
        }
        Ok(())
    }

    fn add(&mut self, buffer: usize, wheel: Wheel) {
        if !self.wheels[buffer].contains(&wheel) {
            self.wheels[buffer].push(wheel);
        }
    }

    pub(crate) fn radix(&self, wheel: &Wheel) -> u64 {
        self.turns.radices()[wheel.digit].into()
    }

    /// For each region, whether the position where the data of its slot begins moves with the rank.
    pub(crate) fn moving_bases(&self) -> &[bool] {
        &self.bases
    }

    /// Adds the flag of a new region, which is an image of a known one.
    pub(crate) fn add_region(&mut self, of: RegionId) {
        self.bases.push(self.bases[of.index()]);
    }

    /// Sets for each region whether the position where the data of its slot begins moves with the rank.
    pub(crate) fn set_bases(&mut self, bases: Vec<bool>) {
        self.bases = bases;
    }

    /// Whether wheels turn pieces of a unit of a buffer.
    pub(crate) fn turns_in_units(&self, buffer: usize) -> bool {
        self.wheels[buffer].iter().any(|wheel| wheel.stride * self.radix(wheel) <= self.grid)
    }

    /// Adds a scratch buffer whose slots take data of other buffers; the error is the reason why there is no action on
    /// it.
    pub(crate) fn add_buffer(&mut self, scratch: &Scratch) -> Result<(), String> {
        let slot = self.cells(scratch.width);
        let size = slot.saturating_mul(scratch.slots.into());
        if self.sizes.iter().fold(size, |sum, size| sum.saturating_add(*size)) > CELLS {
            return Err(format!("a rank's memory has more than {CELLS} pieces"));
        }
        self.slots.push(slot);
        self.sizes.push(size);
        self.wheels.push(Vec::new());
        Ok(())
    }

    /// Gives the slots of a buffer the wheels of the buffer that their data comes from, as far as a slot holds whole spans
    /// of them.
    pub(crate) fn take_wheels(&mut self, buffer: usize, from: usize) -> Result<(), String> {
        for wheel in self.wheels[from].clone() {
            let span = wheel.stride * self.radix(&wheel);
            if self.slots[buffer - 2].is_multiple_of(span) {
                self.add(buffer, wheel);
            }
        }
        self.nested(buffer)
    }

    /// Puts the wheels of a buffer in order, and checks that they are digits of one number.
    fn nested(&mut self, buffer: usize) -> Result<(), String> {
        let mut wheels = std::mem::take(&mut self.wheels[buffer]);
        wheels.sort_unstable_by(|a, b| b.cmp(a));
        let mut around = self.sizes[buffer];
        for wheel in &wheels {
            let span = wheel.stride * self.radix(wheel);
            if !around.is_multiple_of(span) {
                return Err("its pieces move with the rank in several ways".to_owned());
            }
            around = wheel.stride;
        }
        self.wheels[buffer] = wheels;
        Ok(())
    }

    /// Returns the number of cells before a position.
    fn cells(&self, at: Rat) -> u64 {
        at.num() * (self.grid / at.den())
    }

    /// Returns the cells of an operand.
    pub(crate) fn piece(&self, own: &Schedule, operand: Operand) -> CellRange {
        let region = own.region(operand);
        let buffer = number(region.buffer);
        let slot = if buffer < 2 { 0 } else { self.slots[buffer - 2] * u64::from(region.slot) };
        let first = slot + self.cells(region.lo) - self.cells(region.base);
        CellRange { buffer, first, len: self.cells(region.hi) - self.cells(region.lo) }
    }

    /// Returns the slot of a region of scratch as cells of its buffer.
    pub(crate) fn slot(&self, region: &Region) -> Option<CellRange> {
        let buffer = number(region.buffer);
        let len = *self.slots.get(buffer.checked_sub(2)?)?;
        Some(CellRange { buffer, first: len * u64::from(region.slot), len })
    }

    /// Returns the cell of a unit where the data of an operand's slot begins, at the rank to which a turn takes rank 0.
    pub(crate) fn base(&self, own: &Schedule, operand: Operand, by: u32) -> u64 {
        self.moved_base(own, operand, self.cells(own.region(operand).base), by)
    }

    /// Returns the cell where data in an operand's slot begins at the rank to which a turn takes a rank, where the data
    /// begins at `cell`.
    pub(crate) fn moved_base(&self, own: &Schedule, operand: Operand, cell: u64, by: u32) -> u64 {
        if !self.bases[operand.region.index()] {
            return cell;
        }
        // Wheels that turn data inside of slots do not move the place where the data begins.
        let inside = &self.wheels[number(own.region(operand).buffer)];
        let moves = |wheel: &&Wheel| {
            wheel.stride * self.radix(wheel) <= self.grid && !inside.contains(wheel)
        };
        self.turned_by(self.wheels[0].iter().filter(moves), cell, by)
    }

    /// Returns a cell of the output as a region.
    pub(crate) fn region(&self, cell: u64) -> Region {
        let at = |cell| Rat::new(cell, self.grid).unwrap_or(Rat::ZERO);
        let (lo, hi) = (at(cell), at(cell + 1));
        Region { buffer: Buffer::Output, slot: 0, base: Rat::ZERO, lo, hi }
    }

    /// Returns the cell to which a turn takes a cell of a buffer, by the wheels of at least `stride` cells.
    pub(crate) fn moved(&self, buffer: usize, cell: u64, by: u32, stride: u64) -> u64 {
        if by == 0 {
            return cell;
        }
        let large = self.wheels[buffer].iter().take_while(|wheel| wheel.stride >= stride);
        self.turned_by(large, cell, by)
    }

    /// Returns the cell to which wheels take a cell.
    fn turned_by<'w>(&self, wheels: impl Iterator<Item = &'w Wheel>, cell: u64, by: u32) -> u64 {
        let mut to = cell;
        for wheel in wheels {
            let radix = self.radix(wheel);
            let step = u64::from(self.turns.digit(by, wheel.digit));
            let now = cell / wheel.stride % radix;
            let next = if now + step < radix { now + step } else { now + step - radix };
            to = to + next * wheel.stride - now * wheel.stride;
        }
        to
    }

    /// Returns the cell to which a turn takes a cell of a buffer.
    pub(crate) fn cell(&self, buffer: usize, cell: u64, by: u32) -> u64 {
        self.moved(buffer, cell, by, 1)
    }

    /// Returns the piece to which a turn takes a piece that it does not cut: wheels inside the piece turn its cells alone.
    pub(crate) fn turned(&self, piece: CellRange, by: u32) -> CellRange {
        let first = self.moved(piece.buffer, piece.first, by, piece.len.max(1));
        CellRange { first, ..piece }
    }

    /// Returns the wheels that are not among the axes of an operand and turn cells of a piece among themselves.
    ///
    /// # Errors
    /// A wheel takes a part of the piece elsewhere.
    pub(crate) fn inside(&self, piece: CellRange, axes: &[Axis]) -> Result<Vec<Wheel>, Elsewhere> {
        let followed = |wheel: &Wheel| {
            axes.iter().any(|axis| {
                let stride = match (axis.slots, piece.buffer) {
                    (true, buffer) => axis.stride.num() * self.slots[buffer - 2],
                    (false, _) if axis.base => return false,
                    (false, _) => self.cells(axis.stride),
                };
                (stride, axis.digit) == (wheel.stride, wheel.digit)
            })
        };
        let mut inside = Vec::new();
        for wheel in &self.wheels[piece.buffer] {
            if followed(wheel) {
                // A piece that moves must lie within one step of its wheel.
                if piece.first % wheel.stride + piece.len > wheel.stride {
                    return Err(Elsewhere);
                }
                continue;
            }
            let span = wheel.stride * self.radix(wheel);
            if piece.len > 0
                && !(piece.first.is_multiple_of(span) && piece.len.is_multiple_of(span))
            {
                return Err(Elsewhere);
            }
            inside.push(*wheel);
        }
        Ok(inside)
    }

    /// Returns the axes that change the fraction of a unit where an operand begins: operands of one op must have equal
    /// ones, or their lengths differ at some rank.
    pub(crate) fn fractions(&self, axes: &[Axis], multiple: u64) -> Vec<Wheel> {
        let moves = axes.iter().filter(|axis| !axis.slots);
        let wheels = moves.map(|axis| Wheel { stride: self.cells(axis.stride), digit: axis.digit });
        let mut wheels: Vec<_> =
            wheels.filter(|wheel| wheel.stride % (self.grid / multiple) != 0).collect();
        wheels.sort_unstable();
        wheels
    }

    /// Returns the cells of each buffer before it in the memory of rank 0, and the number of all cells.
    pub(crate) fn layout(&self, own: &Schedule, mode: BufferMode) -> (Vec<u64>, u64) {
        let alias = match mode {
            BufferMode::OutOfPlace => Alias::Apart,
            BufferMode::InPlace => own.collective.alias(RankId(0), own.root),
        };
        let (input, output) = (self.sizes[0], self.sizes[1]);
        let (mut first, mut size) = match alias {
            Alias::Apart => (vec![0, input], input + output),
            Alias::InputInOutput(unit) => (vec![u64::from(unit) * self.grid, 0], output),
            Alias::OutputInInput(unit) => (vec![0, u64::from(unit) * self.grid], input),
        };
        for scratch in &self.sizes[2..] {
            first.push(size);
            size += scratch;
        }
        (first, size)
    }
}

/// Returns the number of cells of a unit with which every boundary lies between cells; `None` where they are too many.
fn grid<'a>(own: &Schedule, axes: impl Iterator<Item = (Operand, &'a [Axis])>) -> Option<u64> {
    let regions = own.regions.iter().flat_map(|region| [region.lo, region.hi, region.base]);
    let widths = own.scratch.iter().map(|scratch| scratch.width);
    let mut all = own.multiple;
    for at in regions.chain(widths) {
        all = lcm(all, at.den()).filter(|all| *all <= CELLS)?;
    }
    for (_, list) in axes {
        for axis in list.iter().filter(|axis| !axis.slots) {
            all = lcm(all, axis.stride.den()).filter(|all| *all <= CELLS)?;
        }
    }
    Some(all)
}
