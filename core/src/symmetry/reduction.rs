//! The order of reduction, from the values of rank 0: the value of a cell of another rank is the value of a cell of rank
//! 0, turned. Two values are written out in the contributions of all ranks where they must be compared.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Representative;
use super::one_rank::OneRank;
use super::space::Space;
use super::values::{Shapes, Value};
use crate::collective::Expected;
use crate::ids::{OpId, RankId};
use crate::schedule::{Buffer, Region, Schedule};
use crate::turns::Turns;
use crate::values::order_class::OrderClass;
use crate::verify::replay::{ModeState, Player};
use crate::verify::values::{ValueId, Values};
use crate::verify::{Reduction, ReductionOrder, Sameness, Witness, piece_text};

/// The most pairs of values that are written out.
const PAIRS: usize = 1 << 8;

/// Values that were written out, and the comparisons of pairs.
struct Orders<'a> {
    shapes: &'a Shapes,
    turns: &'a Turns,
    all: Values,
    known: FxHashMap<(u32, u32), ValueId>,
    /// For each node, whether every turn of it is the same order up to swapped operands.
    round: FxHashMap<u32, bool>,
    /// Pairs of values, the second by its node and the turn from the first, that are the same up to swapped operands.
    swapped: FxHashMap<(u32, u32, u32), bool>,
}

/// Too many different orders to be compared.
pub(super) struct TooMany;

impl Orders<'_> {
    fn written(&mut self, value: Value) -> ValueId {
        self.shapes.written(value, &mut self.all, &mut self.known)
    }

    /// Whether two values are the same up to swapped operands, by writing both out.
    fn same_written(&mut self, a: Value, b: Value) -> Result<bool, TooMany> {
        let turn = self.turns.turn_between(a.by, b.by);
        if let Some(known) = self.swapped.get(&(a.node, b.node, turn)) {
            return Ok(*known);
        }
        if self.swapped.len() >= PAIRS {
            return Err(TooMany);
        }
        let pair = [Value { by: 0, ..a }, Value { by: turn, ..b }].map(|value| self.written(value));
        let classes = self.all.commuted().class;
        let same = classes[pair[0].expr as usize] == classes[pair[1].expr as usize];
        self.swapped.insert((a.node, b.node, turn), same);
        Ok(same)
    }

    fn compare(&mut self, a: Value, b: Value) -> Result<Sameness, TooMany> {
        if (a.node, a.by) == (b.node, b.by) {
            return Ok(Sameness::Exact);
        }
        let same = if a.node == b.node && self.is_round(a.node)? {
            true
        } else {
            self.same_written(a, b)?
        };
        Ok(if same { Sameness::Commuted } else { Sameness::Differs })
    }

    /// Whether every turn of a value is the same order up to swapped operands.
    fn is_round(&mut self, node: u32) -> Result<bool, TooMany> {
        if let Some(known) = self.round.get(&node) {
            return Ok(*known);
        }
        let value = |by| Value { node, by, cell: 0 };
        let mut round = true;
        for step in self.turns.clone().generators() {
            round = round && self.same_written(value(0), value(step))?;
        }
        self.round.insert(node, round);
        Ok(round)
    }
}

/// A result, and the place that holds it.
#[derive(Clone, Copy)]
struct ResultAt {
    rank: u32,
    cell: u64,
    value: Value,
}

/// A pair of results that breaks a promise, where it was found, and the op that does not keep the order.
type Broken = (OrderClass, [ResultAt; 2], OpId, bool);

/// The values of the outputs of all ranks in one mode.
struct Outputs<'a> {
    of: &'a Representative,
    held: &'a [Value],
}

impl Outputs<'_> {
    /// Returns the value of a cell of a rank.
    fn at(&self, rank: u32, cell: u64) -> ResultAt {
        let (space, turns) = (&self.of.space, &self.of.turns);
        let from = space.cell(1, cell, turns.back(rank));
        let value = self.held[from as usize];
        let value = Value { by: turns.turn(value.by, rank), ..value };
        ResultAt { rank, cell, value }
    }

    fn cells(&self) -> Range<u64> {
        0..self.held.len() as u64
    }
}

/// Returns the values of the output of rank 0.
fn outputs_of<'a>(of: &Representative, state: &'a ModeState<Value>) -> &'a [Value] {
    let first = state.layout.buffer(RankId(0), Buffer::Output);
    &state.values[first as usize..][..of.space.sizes[1] as usize]
}

/// Returns the order of reduction of a replay without findings.
pub(super) fn reduction(
    of: &Representative,
    player: &Player<'_, OneRank<'_>>,
    modes: usize,
) -> Result<Reduction, TooMany> {
    let shapes = &player.values;
    let mut orders = Orders {
        shapes,
        turns: &of.turns,
        all: Values::new(of.turns.nranks(), 0),
        known: FxHashMap::default(),
        round: FxHashMap::default(),
        swapped: FxHashMap::default(),
    };
    let apart = outputs_of(of, &player.states[0]);
    let mut found: Vec<ReductionOrder> = Vec::new();
    let mut broken: Vec<Broken> = Vec::new();
    let mut sameness = Sameness::Exact;
    let mut most: Option<Value> = None;
    for (mode, state) in player.states[..modes].iter().enumerate() {
        let held = outputs_of(of, state);
        let outputs = Outputs { of, held };
        found.push(in_mode(&outputs, &mut orders, mode > 0, &mut broken)?);
        for (value, apart) in held.iter().zip(apart) {
            sameness = sameness.max(orders.compare(*apart, *value)?);
            let roundings = shapes.roundings(value.node);
            if most.is_none_or(|most| roundings > shapes.roundings(most.node)) {
                most = Some(*value);
            }
        }
    }
    let rounding_ops = most.map_or_else(Vec::new, |most| {
        let written = orders.written(most);
        orders.all.rounding_ops(written)
    });
    let cuts = cuts(&of.own, &of.space);
    let witness = |(class, results, at, in_place): Broken, orders: &mut Orders<'_>| {
        let piece = |held: ResultAt| piece_text(&of.own, &whole(&of.space, &cuts, held.cell));
        let texts = results.map(|held| {
            let written = orders.written(held.value);
            orders.all.tree(written)
        });
        let ranks = results.map(|held| RankId(held.rank));
        (class, Witness { ranks, pieces: results.map(piece), orders: texts, at, in_place })
    };
    let witnesses = broken.into_iter().map(|broken| witness(broken, &mut orders)).collect();
    let mut found = found.into_iter();
    Ok(Reduction {
        apart: found.next().ok_or(TooMany)?,
        in_place: found.next(),
        modes: sameness,
        witnesses,
        rounding_ops: rounding_ops.into(),
    })
}

/// Returns the order of the results in one mode, and adds the results that break a promise first.
fn in_mode(
    outputs: &Outputs<'_>,
    orders: &mut Orders<'_>,
    in_place: bool,
    broken: &mut Vec<Broken>,
) -> Result<ReductionOrder, TooMany> {
    let of = outputs.of;
    let shared = matches!(
        of.own.collective.expected_value(RankId(0), 0, of.own.root),
        Expected::Reduced { .. }
    ) && of.own.collective.max_input_units(of.turns.nranks()) == 1;
    let first = outputs.at(0, 0);
    let mut here: Vec<(u32, u64, Broken)> = Vec::new();
    let mut order = ReductionOrder::BEST;
    let mut last = None;
    for cell in outputs.cells() {
        let now = outputs.at(0, cell);
        order.roundings = order.roundings.max(orders.shapes.roundings(now.value.node));
        order.depth = order.depth.max(orders.shapes.depth(now.value.node));
        // Neighbors mostly hold one order.
        if last.replace((now.value.node, now.value.by)) == Some((now.value.node, now.value.by)) {
            continue;
        }
        let same = if order.counts == Sameness::Differs {
            Sameness::Differs
        } else {
            orders.compare(first.value, now.value)?
        };
        if same == Sameness::Differs && order.counts != Sameness::Differs {
            let at = orders.shapes.op(now.value.node);
            for class in [OrderClass::AllElements, OrderClass::AllCounts] {
                here.push((0, cell, (class, [first, now], at, in_place)));
            }
        }
        order.counts = order.counts.max(same);
        if order.in_rank_order {
            let written = in_rank_order(orders, now.value);
            order.in_rank_order = written.is_none();
            let result = written.map(|at| (OrderClass::RankOrder, [now, now], at, in_place));
            here.extend(result.map(|result| (0, cell, result)));
        }
    }
    order.elements = order.counts;
    // The least rank that differs from rank 0, if one does, is a step of one digit.
    for rank in of.turns.clone().generators() {
        let now = outputs.at(rank, 0);
        let same = orders.compare(first.value, now.value)?;
        if same == Sameness::Differs && order.elements != Sameness::Differs {
            let at = orders.shapes.op(now.value.node);
            here.push((rank, 0, (OrderClass::AllElements, [first, now], at, in_place)));
        }
        order.elements = order.elements.max(same);
        if order.in_rank_order
            && let Some(at) = in_rank_order(orders, now.value)
        {
            order.in_rank_order = false;
            here.push((rank, 0, (OrderClass::RankOrder, [now, now], at, in_place)));
        }
        if !shared {
            continue;
        }
        for cell in outputs.cells() {
            let (mine, theirs) = (outputs.at(0, cell), outputs.at(rank, cell));
            let same = orders.compare(mine.value, theirs.value)?;
            if same == Sameness::Differs && order.ranks != Sameness::Differs {
                let at = orders.shapes.op(theirs.value.node);
                here.push((rank, cell, (OrderClass::AllRanks, [mine, theirs], at, in_place)));
            }
            order.ranks = order.ranks.max(same);
            if order.ranks == Sameness::Differs {
                break;
            }
        }
    }
    // In the order in which a walk over all ranks and cells meets them.
    here.sort_by_key(|(rank, cell, (class, ..))| (*rank, *cell, *class as u8));
    for (_, _, found) in here {
        if !broken.iter().any(|(class, ..)| *class == found.0) {
            broken.push(found);
        }
    }
    Ok(order)
}

/// Returns the innermost op that does not keep the order of the ranks; `None` where a value is in this order.
fn in_rank_order(orders: &mut Orders<'_>, value: Value) -> Option<OpId> {
    if orders.shapes.is_ascending(value) {
        return None;
    }
    let written = orders.written(value);
    let stretches = orders.all.stretches();
    let mut expr = written.expr;
    while let Some((operands, op)) = orders.all.parts(expr) {
        match operands.into_iter().find(|operand| stretches[*operand as usize].is_none()) {
            Some(inner) => expr = inner,
            None => return Some(op),
        }
    }
    Some(OpId(0))
}

/// Returns the places where any rank cuts a unit.
fn cuts(own: &Schedule, space: &Space) -> Vec<bool> {
    let grid = space.grid as usize;
    let mut cuts = vec![false; grid];
    cuts[0] = true;
    for region in &own.regions {
        for at in [region.lo, region.hi, region.base] {
            let cell = at.num() as usize * (grid / at.den() as usize);
            cuts[cell % grid] = true;
        }
    }
    // Parts of a unit that are cut alike where counts are multiples, and the steps of wheels.
    let part = grid / own.multiple as usize;
    let mut strides = vec![(part, grid)];
    for wheel in &space.wheels[1] {
        let (stride, radix) = (wheel.stride as usize, space.turns.radices()[wheel.digit] as usize);
        if stride * radix <= grid {
            strides.push((stride, stride * radix));
        }
    }
    for (stride, span) in strides {
        let mut places: Vec<(usize, usize)> =
            (0..grid).filter(|at| cuts[*at]).map(|at| (at / span * span, at % stride)).collect();
        places.sort_unstable();
        places.dedup();
        for (begin, within) in places {
            (begin + within..begin + span).step_by(stride).for_each(|at| cuts[at] = true);
        }
    }
    cuts
}

/// Returns the piece of the output between two cuts that holds a cell.
fn whole(space: &Space, cuts: &[bool], cell: u64) -> Region {
    let (unit, at) = (cell / space.grid * space.grid, (cell % space.grid) as usize);
    let lo = (0..=at).rev().find(|at| cuts[*at]).unwrap_or(0);
    let hi = (at + 1..cuts.len()).find(|at| cuts[*at]).unwrap_or(cuts.len());
    let ends = [lo, hi].map(|at| space.region(unit + at as u64).lo);
    Region { buffer: Buffer::Output, lo: ends[0], hi: ends[1], ..space.region(cell) }
}
