//! The ranks whose memory a replay follows: all of them, or one that stands for all.

use std::ops::Range;

use super::blame::Trace;
use super::layout::{MemoryLayout, Slot};
use super::memory::Past;
use super::values::{Expressions, Leaf, ValueId};
use crate::ids::{OpId, RankId, StreamId};
use crate::rational::Rat;
use crate::schedule::{Operand, Region};

/// An op of a rank. The rank is that of its stream, or where one rank stands for all, of the image that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RankOp {
    pub(crate) op: OpId,
    pub(crate) rank: RankId,
}

/// The ranks whose memory is followed, the order of their events, and the values of their cells.
///
/// Where one rank stands for all, an op of rank 0 touches the memory of other ranks, and the turned image of each such
/// access touches the memory of rank 0: the image is recorded there, by the rank that makes it.
pub(crate) trait FollowedRanks {
    type Values: Expressions;
    /// The place of an operand in memory.
    type Place: Copy;
    /// The cells of a place, as ranges of the memory.
    type Images: Iterator<Item = Range<u32>>;

    /// The most wrong cells of the results of a mode that are reported.
    const WRONG: usize;

    /// The number of ranks whose memory is followed, from rank 0 on.
    fn followed(&self) -> u32;

    /// The cells of a unit.
    fn per_unit(&self) -> u32;

    /// Returns the piece of the output that a cell is.
    fn region(&self, cell: u32) -> Region;

    /// Returns the followed rank in whose memory an operand lies.
    fn home(&self, operand: Operand) -> RankId;

    /// Returns the place of an operand; the mode is 0 out of place, and 1 in place.
    fn place(&self, layout: &MemoryLayout, mode: usize, operand: Operand) -> Self::Place;

    /// The number of cells of a place.
    fn len(place: Self::Place) -> u32;

    /// Returns the distance between the beginnings of two places in the memory of one rank.
    fn distance(a: Self::Place, b: Self::Place) -> Option<u32>;

    /// Returns the cells of a place, as ranges of the memory.
    fn images(&self, place: Self::Place) -> Self::Images;

    /// Returns the values of a place; `room` is for those that do not lie in memory as they are.
    fn load<'m>(
        &self,
        memory: &'m [ValueOf<Self>],
        place: Self::Place,
        room: &'m mut Vec<ValueOf<Self>>,
    ) -> &'m [ValueOf<Self>];

    /// Writes values to a place; those from the `good`-th on are poisoned.
    fn store(
        &self,
        memory: &mut [ValueOf<Self>],
        place: Self::Place,
        values: &[ValueOf<Self>],
        good: u32,
    );

    /// Returns the slot of an operand, where slots of its buffer may hold data of several places.
    fn slot(&self, layout: &MemoryLayout, operand: Operand) -> Option<Slot>;

    /// Returns the origin of the data in the slot of an operand, as the owner of the operand sees it.
    fn origin(&self, operand: Operand, held: Rat) -> Rat;

    /// Returns the number of the event that is the access of an op to a place.
    fn event(&mut self, at: OpId, place: Self::Place) -> u32;

    /// Returns the past of an access that is made by [`Self::event`].
    fn past(&self, at: OpId, event: u32, operand: Operand) -> impl Past;

    /// Returns the past of the end of a run at a followed rank.
    fn exit(&self, rank: RankId) -> impl Past;

    /// Returns the op of an earlier event as the rank sees it that makes `event`, and whether it was in the run before.
    fn earlier(&self, earlier: u32, event: u32) -> (RankOp, bool);

    /// Returns the op of an event, and the rank whose memory it touches, where the event is in the memory of `home`.
    fn touched(&self, event: u32, home: RankId) -> (OpId, RankId);

    /// Whether an op comes before another, which is next in its stream.
    fn is_before(&self, earlier: OpId, next: OpId) -> bool;

    /// Records a post.
    fn post(&mut self, _at: OpId, _stream: StreamId) {}

    /// Records a wait; the error is the reason why the order of events is not known any more.
    fn wait(&mut self, _at: OpId, _stream: StreamId) -> Result<(), &'static str> {
        Ok(())
    }

    /// Goes on to the next run.
    fn next_run(&mut self);

    /// Raises a one-shot flag by a post; returns the post before it, if its wait need not have come first, and whether
    /// that post was in the run before.
    fn raise(&mut self, _at: OpId, _stream: StreamId) -> Option<(OpId, bool)> {
        None
    }

    /// Whether signals are one-shot flags.
    fn has_flags(&self) -> bool {
        false
    }

    /// Checks that the order of events is known well enough; `found` is whether there are findings.
    fn sure(&self, found: bool) -> Result<(), &'static str>;

    /// The number of findings for an access that races at `cells` cells.
    fn count(cells: u32) -> u32;

    /// Returns every write of a cell, with the value after the write, where that is known.
    fn history(
        &self,
        _values: &mut Self::Values,
        _layout: &MemoryLayout,
        _cell: u32,
    ) -> Vec<(OpId, ValueId)> {
        Vec::new()
    }

    /// Returns the way of a contribution to a cell that lacks it, where that is known.
    fn trace(&self, _layout: &MemoryLayout, _of: (Leaf, u32)) -> Trace {
        Trace::default()
    }
}

/// The values of the cells that ranks have.
pub(crate) type ValueOf<R> = <<R as FollowedRanks>::Values as Expressions>::Value;
