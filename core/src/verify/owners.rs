//! The owners of blocks: whether a proof for equal counts holds for every vector of counts, one for each block.
//!
//! With a count for each block, a boundary at the fraction f of block i lies at element floor(f * c\[i\]) of the block.
//! The order of boundaries is the same for every vector, so races, deadlock, reads before writes and contributions
//! carry over from the proof for equal counts. Lengths do not: the operands of a move are equally long for every vector
//! only if they hold parts of the same blocks, cut at the same fractions. This module follows the blocks through the
//! run, move by move, one whole block or a part of one at a time.
//!
//! A slot of scratch has room for the largest block, and takes one block after the other. Blocks of different lengths
//! lie at different bytes of it, so a write of another block must cover all that the one before covered there: then the
//! race check, for which both lie at the same fractions, orders it behind every access to the one before.

use rustc_hash::FxHashMap;

use super::order::Order;
use super::piece::piece_text;
use crate::counts::{ONE_COUNT, block_name, has_one_count};
use crate::diagnostics::{Code, Finding};
use crate::ids::{OpId, RankId, SpanId};
use crate::rational::Rat;
use crate::schedule::{Buffer, OpKind, Operand, Region, Schedule};

/// The number of a block in the vector of counts: of an AllToAll the block from rank i to rank j has the number
/// `i * nranks + j`, of any other collective the block of rank i has the number i.
pub type Block = u64;

/// The block of each part of each move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners {
    /// The parts of each op in `blocks`, the first and the one behind the last; ops that are no moves have none.
    parts: Vec<[u32; 2]>,
    blocks: Vec<Block>,
}

impl Owners {
    /// Returns the blocks that a move is about, in the order of its regions, each a part or a whole.
    pub fn blocks(&self, op: OpId) -> &[Block] {
        let [first, after] = self.parts[op.index()];
        &self.blocks[first as usize..after as usize]
    }
}

/// Returns the parts of an interval, each within one block, as the fractions of the block at which it begins and ends: it
/// is cut where units begin.
pub fn parts(lo: Rat, hi: Rat) -> impl Iterator<Item = (Rat, Rat)> {
    let first = lo.floor();
    (first..hi.element_ceil(1)).filter(move |_| lo < hi).map(move |unit| {
        let begin = if unit == first { lo.fraction() } else { Rat::ZERO };
        let end = if unit == hi.floor() { hi.fraction() } else { Rat::whole(1) };
        (begin, end)
    })
}

/// Returns the block that a unit of a user's buffer is, in a collective whose ranks own blocks.
pub fn block(schedule: &Schedule, buffer: Buffer, rank: RankId, unit: u64) -> Block {
    let (collective, unit, nranks) = (schedule.collective, unit as u32, schedule.nranks);
    let block = match buffer {
        Buffer::Input => collective.input_block(rank, unit, nranks),
        _ => collective.output_block(rank, unit, nranks),
    };
    block.expect("the collective has blocks")
}

/// The block that a unit of a slot holds.
struct Held {
    block: Block,
    /// The fraction of the block at which the slot begins.
    from: Rat,
    /// The parts of the block that were written, in order and apart.
    parts: Vec<(Rat, Rat)>,
}

impl Held {
    /// Returns the stretch of the slot from the first to the last part, as fractions of a block behind the slot's begin.
    fn stretch(&self) -> (Rat, Rat) {
        let behind = |at: Rat| at.minus(self.from).unwrap_or(Rat::ZERO);
        let last = self.parts.len() - 1;
        (behind(self.parts[0].0), behind(self.parts[last].1))
    }

    /// Adds a part of the same block.
    fn add(&mut self, (mut begin, mut end): (Rat, Rat)) {
        self.parts.retain(|(from, to)| {
            let apart = *to < begin || end < *from;
            if !apart {
                (begin, end) = (begin.min(*from), end.max(*to));
            }
            apart
        });
        let at = self.parts.partition_point(|(from, _)| *from < begin);
        self.parts.insert(at, (begin, end));
    }
}

/// A unit of a slot: rank, scratch buffer, slot, and the number of the unit in the slot.
pub(crate) type SlotUnit = (RankId, Buffer, u32, u64);

/// The slots that a walk follows: those of all ranks, or those of a rank that stands for all.
pub(crate) trait Slots {
    /// Returns the followed unit of a slot that stands for a unit, and the turn that takes its rank to the unit's rank.
    fn home(&self, unit: SlotUnit) -> (SlotUnit, u32);

    /// Returns the block to which a turn takes a block.
    fn turned(&self, block: Block, by: u32) -> Block;

    /// Returns the block that a turn takes to a block.
    fn turned_back(&self, block: Block, by: u32) -> Block;
}

/// The slots of all ranks.
struct All;

impl Slots for All {
    fn home(&self, unit: SlotUnit) -> (SlotUnit, u32) {
        (unit, 0)
    }

    fn turned(&self, block: Block, _: u32) -> Block {
        block
    }

    fn turned_back(&self, block: Block, _: u32) -> Block {
        block
    }
}

/// Follows the blocks of a proved schedule through two runs in `order`.
///
/// # Errors
/// E0319 at the first move that is right for equal counts alone.
pub fn owners(schedule: &Schedule, order: &Order) -> Result<Owners, Box<Finding>> {
    followed(schedule, order, &All)
}

/// [`owners`] of the ops of a schedule that are followed in these slots.
pub(crate) fn followed(
    schedule: &Schedule,
    order: &Order,
    slots: &impl Slots,
) -> Result<Owners, Box<Finding>> {
    let header = SpanId(0);
    if let Some(one) = one_count(schedule, header) {
        return Err(Box::new(one));
    }
    let mut walk = OwnerWalk { schedule, slots, held: FxHashMap::default() };
    let mut owners = Owners { parts: vec![[0; 2]; schedule.ops.len()], blocks: Vec::new() };
    let moves = order.sequence.iter().filter(|at| schedule.op(**at).kind == OpKind::Move);
    for &at in moves.clone() {
        let first = owners.blocks.len() as u32;
        walk.play(at, &mut owners.blocks)?;
        owners.parts[at.index()] = [first, owners.blocks.len() as u32];
    }
    // The second run meets the slots as the first one leaves them, and the buffers of the user as the first one did.
    let in_slots = |at: &&OpId| {
        let mut operands = schedule.operands_of(schedule.op(**at)).iter();
        operands.any(|operand| matches!(schedule.region(*operand).buffer, Buffer::Scratch(_)))
    };
    let mut again = Vec::new();
    for &at in moves.filter(in_slots) {
        again.clear();
        walk.play(at, &mut again)?;
        let [first, after] = owners.parts[at.index()];
        owners.blocks[first as usize..after as usize].copy_from_slice(&again);
    }
    Ok(owners)
}

struct OwnerWalk<'s, S> {
    schedule: &'s Schedule,
    slots: &'s S,
    held: FxHashMap<SlotUnit, Held>,
}

impl<S: Slots> OwnerWalk<'_, S> {
    /// Adds the block of each part of a move, and notes the blocks that it leaves in slots.
    fn play(&mut self, at: OpId, blocks: &mut Vec<Block>) -> Result<(), Box<Finding>> {
        let schedule = self.schedule;
        let op = schedule.op(at);
        let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
        let first = schedule.region(srcs[0]);
        if schedule.operands_of(op).iter().any(|o| {
            let region = schedule.region(*o);
            (region.lo.fraction(), region.hi.fraction())
                != (first.lo.fraction(), first.hi.fraction())
        }) {
            let why = "its operands are cut at different fractions of a block";
            return Err(Box::new(refused(schedule, at, why.to_owned())));
        }
        for (nth, part) in parts(first.lo, first.hi).enumerate() {
            let mut from: Option<(Block, Operand)> = None;
            for src in srcs {
                let block = self.read(at, *src, nth, part)?;
                match from {
                    Some((known, other)) if known != block => {
                        let also = format!("is {}", self.named(block));
                        return Err(Box::new(self.differ(at, (other, known), (*src, also))));
                    }
                    _ => from = Some((block, *src)),
                }
            }
            let (block, src) = from.expect("a move has a source");
            for dst in dsts {
                self.write(at, (*dst, src), (nth, part), block)?;
            }
            blocks.push(block);
        }
        Ok(())
    }

    /// Returns the unit of a slot, or of a user's buffer, that the `nth` part of an operand lies in.
    fn unit(schedule: &Schedule, operand: Operand, nth: usize) -> (u64, &Region) {
        let region = schedule.region(operand);
        let unit = region.lo.floor() + nth as u64;
        match region.buffer {
            Buffer::Scratch(_) => (unit - region.base.floor(), region),
            _ => (unit, region),
        }
    }

    fn read(
        &self,
        at: OpId,
        operand: Operand,
        nth: usize,
        part: (Rat, Rat),
    ) -> Result<Block, Box<Finding>> {
        let (unit, region) = Self::unit(self.schedule, operand, nth);
        let Buffer::Scratch(_) = region.buffer else {
            return Ok(block(self.schedule, region.buffer, operand.rank, unit));
        };
        let (home, by) = self.slots.home((operand.rank, region.buffer, region.slot, unit));
        let held = self.held.get(&home);
        let (begin, end) = part;
        let whole = |held: &&Held| {
            held.parts.iter().any(|(from, to)| *from <= begin && end <= *to)
                && held.from == beginning(region, unit)
        };
        held.filter(whole).map(|held| self.slots.turned(held.block, by)).ok_or_else(|| {
            let text = piece_text(self.schedule, region);
            let why = format!("rank {} {text} holds parts of several blocks", operand.rank);
            Box::new(refused(self.schedule, at, why))
        })
    }

    fn write(
        &mut self,
        at: OpId,
        (operand, src): (Operand, Operand),
        (nth, part): (usize, (Rat, Rat)),
        given: Block,
    ) -> Result<(), Box<Finding>> {
        let (unit, region) = Self::unit(self.schedule, operand, nth);
        let Buffer::Scratch(_) = region.buffer else {
            let own = block(self.schedule, region.buffer, operand.rank, unit);
            if own != given {
                let place = format!("is the place of {}", self.named(own));
                return Err(Box::new(self.differ(at, (src, given), (operand, place))));
            }
            return Ok(());
        };
        let from = beginning(region, unit);
        let (key, by) = self.slots.home((operand.rank, region.buffer, region.slot, unit));
        let block = self.slots.turned_back(given, by);
        let new = Held { block, from, parts: vec![part] };
        match self.held.get_mut(&key) {
            // More of the same block.
            Some(held) if held.block == block && held.from == from => held.add(part),
            Some(held) => {
                let (old, now) = (held.stretch(), new.stretch());
                if now.0 > old.0 || now.1 < old.1 {
                    let text = piece_text(self.schedule, region);
                    let rank = operand.rank;
                    let why = format!(
                        "rank {rank} {text} takes a part of a block while it holds another"
                    );
                    return Err(Box::new(refused(self.schedule, at, why)));
                }
                *held = new;
            }
            None => {
                self.held.insert(key, new);
            }
        }
        Ok(())
    }

    fn differ(
        &self,
        at: OpId,
        (one, of_one): (Operand, Block),
        (other, meaning): (Operand, String),
    ) -> Finding {
        let text = |operand: Operand| {
            let region = piece_text(self.schedule, self.schedule.region(operand));
            format!("rank {} {region}", operand.rank)
        };
        let named = self.named(of_one);
        let why = format!("{} is {named}, and {} {meaning}", text(one), text(other));
        refused(self.schedule, at, why)
    }

    fn named(&self, block: Block) -> String {
        block_name(self.schedule.collective, self.schedule.nranks, block)
    }
}

/// Returns the fraction of its block at which a unit of a slot begins.
fn beginning(region: &Region, unit: u64) -> Rat {
    if unit == 0 { region.base.fraction() } else { Rat::ZERO }
}

fn refused(schedule: &Schedule, at: OpId, why: String) -> Finding {
    Finding::new(Code::EqualCounts, schedule.op(at).at, why)
        .label("right for equal counts alone")
        .note("with a count for each block, the operands of a move hold parts of the same blocks")
        .help("move each block to its own place, or to a slot that takes one block at a time")
}

/// Returns the finding of a collective that has one count by its definition.
pub(super) fn one_count(schedule: &Schedule, at: SpanId) -> Option<Finding> {
    let collective = schedule.collective;
    collective
        .blocks(schedule.nranks)
        .is_none()
        .then(|| Finding::new(Code::EqualCounts, at, has_one_count(collective)).help(ONE_COUNT))
}
