//! The order of reduction, and its roundings: which elements are added up in one order, so that their results have
//! equal bits, and how far a result may be from the exact one.

use std::fmt;
use std::sync::Arc;

use super::orders::Results;
use super::piece::piece_text;
use super::values::orders::Commuted;
use super::values::{ValueId, Values};
use crate::collective::Expected;
use crate::dtype::DType;
use crate::ids::{OpId, RankId};
use crate::schedule::Buffer;
use crate::values::order_class::OrderClass;

/// The agreement of two orders of reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sameness {
    /// The orders agree operand by operand.
    Exact,
    /// The orders agree except for the order of two operands, which changes no result of the built-in ops.
    Commuted,
    /// The orders differ, and so may the rounding of floats.
    Differs,
}

/// The order in which the results of a schedule are reduced, in one mode or in the weaker of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReductionOrder {
    /// The agreement of the ranks that hold an element.
    pub ranks: Sameness,
    /// The agreement of all elements of all outputs.
    pub elements: Sameness,
    /// The agreement of the elements of each rank's output, which is one block. Where they agree, an element's result depends
    /// neither on its place in the block, nor on the count, nor on how a message is cut into chunks.
    pub counts: Sameness,
    /// Whether each result is the reduction of all ranks' contributions in the order of the ranks, so that an op need
    /// not commute.
    pub in_rank_order: bool,
    /// Whether results have the same bits in every run: no switch folds them in an order of its own.
    pub every_run: bool,
    /// The most roundings to a type narrower than f32 that a contribution goes through. The division of an average is one
    /// of them where it comes after the sum is rounded.
    pub roundings: u32,
    /// The most reduces that a contribution goes through: the roundings of f32 and f64.
    pub depth: u32,
}

/// The order in which the results of a schedule are reduced, in every mode in which it may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// The order of a run out of place.
    pub apart: ReductionOrder,
    /// The order of a run in place, where it may differ.
    pub in_place: Option<ReductionOrder>,
    /// The agreement of a run in place and a run out of place, element by element of each rank's output.
    pub modes: Sameness,
    /// For each promise that does not hold, two results that show it.
    pub witnesses: Vec<(OrderClass, Witness)>,
    /// The ops that round a contribution with the most roundings, the first rounding first. A division at the end is no op.
    pub rounding_ops: Arc<[OpId]>,
}

/// Two results that are reduced in different orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The ranks that hold the two results.
    pub ranks: [RankId; 2],
    /// The pieces of the outputs that hold the results, in words.
    pub pieces: [String; 2],
    /// The order of each of the two results, such as `((0 1) 2)`: the outermost reduce comes last.
    pub orders: [String; 2],
    /// The op that does not keep the order of the first result, or the order of the ranks.
    pub at: OpId,
    /// Whether the promise is broken in place only.
    pub in_place: bool,
}

impl ReductionOrder {
    /// The order of a reduction before anything is known of it.
    pub(crate) const BEST: Self = Self {
        ranks: Sameness::Exact,
        elements: Sameness::Exact,
        counts: Sameness::Exact,
        in_rank_order: true,
        every_run: true,
        roundings: 0,
        depth: 0,
    };

    /// Whether a promise holds.
    pub fn keeps(&self, class: OrderClass) -> bool {
        match class {
            OrderClass::AllRanks => self.ranks < Sameness::Differs,
            OrderClass::AllElements => self.elements < Sameness::Differs,
            OrderClass::AllCounts => self.counts < Sameness::Differs,
            OrderClass::RankOrder => self.in_rank_order,
            OrderClass::EveryRun => self.every_run,
        }
    }

    fn weaker(self, other: Self) -> Self {
        Self {
            ranks: self.ranks.max(other.ranks),
            elements: self.elements.max(other.elements),
            counts: self.counts.max(other.counts),
            in_rank_order: self.in_rank_order && other.in_rank_order,
            every_run: self.every_run && other.every_run,
            roundings: self.roundings.max(other.roundings),
            depth: self.depth.max(other.depth),
        }
    }

    /// Returns the most roundings to `dtype` that a contribution to a sum goes through; integers do not round.
    pub fn roundings_of(&self, dtype: DType) -> u32 {
        match dtype {
            _ if !dtype.is_float() => 0,
            _ if dtype.is_narrow_float() => self.roundings,
            _ => self.depth,
        }
    }

    /// Returns the largest distance of a sum from the exact sum, as a share of the sum of the contributions' absolute
    /// values, where no sum is too large for `dtype`: (1 + u)^r (1 + v)^d - 1 with r roundings to a type of unit
    /// roundoff u. Where fewer than d reduces round, the others compute in f32, of unit roundoff v.
    ///
    /// The source is N. J. Higham, Accuracy and Stability of Numerical Algorithms, chapter 4: each rounding multiplies
    /// by 1 + e with |e| <= u, and a contribution meets r of them.
    pub fn error_bound(&self, dtype: DType) -> f64 {
        let roundings = f64::from(self.roundings_of(dtype));
        let in_f32 =
            if self.roundings_of(dtype) < self.depth { f64::from(self.depth) } else { 0.0 };
        let logarithm =
            roundings * unit_roundoff(dtype).ln_1p() + in_f32 * unit_roundoff(DType::F32).ln_1p();
        if dtype.is_float() { logarithm.exp_m1() } else { 0.0 }
    }
}

/// The promises that hold, and then the promises that do not: `one order of reduction on all ranks; not: for all
/// elements, for every count, in rank order`.
impl fmt::Display for ReductionOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |class| match class {
            OrderClass::AllRanks => Some("on all ranks"),
            OrderClass::AllElements => Some("for all elements"),
            OrderClass::AllCounts => Some("for every count"),
            OrderClass::RankOrder => Some("in rank order"),
            OrderClass::EveryRun => None,
        };
        let list = |kept: bool| -> Vec<&str> {
            let all = OrderClass::ALL.into_iter().filter(|class| self.keeps(*class) == kept);
            all.filter_map(words).collect()
        };
        let (kept, broken) = (list(true).join(", "), list(false).join(", "));
        let commuted = [self.ranks, self.elements, self.counts].contains(&Sameness::Commuted);
        let swapped = if commuted { ", up to swapped operands" } else { "" };
        match (&*kept, &*broken) {
            ("", _) => write!(f, "no one order of reduction {broken}")?,
            (_, "") => write!(f, "one order of reduction {kept}{swapped}")?,
            _ => write!(f, "one order of reduction {kept}{swapped}; not: {broken}")?,
        }
        if self.every_run {
            Ok(())
        } else {
            f.write_str("; not the same in every run: a switch orders the sums")
        }
    }
}

/// Returns the largest relative error of one rounding to a type; 0 for integers, which do not round.
pub fn unit_roundoff(dtype: DType) -> f64 {
    let digits = match dtype {
        DType::F16 => 11,
        DType::Bf16 => 8,
        DType::F8E4M3 => 4,
        DType::F8E5M2 => 3,
        DType::F32 => 24,
        DType::F64 => 53,
        _ => return 0.0,
    };
    2.0_f64.powi(-digits)
}

impl Reduction {
    /// Returns the order that holds in every mode.
    pub fn in_every_mode(&self) -> ReductionOrder {
        self.in_place.map_or(self.apart, |in_place| in_place.weaker(self.apart))
    }

    /// Returns the order where averages are rounded once more, because they are divided at the end.
    pub(super) fn rounded_again(mut self) -> Self {
        for order in std::iter::once(&mut self.apart).chain(&mut self.in_place) {
            order.roundings += 1;
        }
        self
    }

    /// Returns two results that break a promise, if any do.
    pub fn witness(&self, class: OrderClass) -> Option<&Witness> {
        self.witnesses.iter().find(|(of, _)| *of == class).map(|(_, witness)| witness)
    }
}

/// A result, and the place that holds it.
#[derive(Clone, Copy)]
struct Held {
    rank: RankId,
    cell: u32,
    value: ValueId,
}

/// Returns the orders of the outputs of a replay without findings.
pub(super) fn reduction(modes: &[Results<'_>], values: &Values, commuted: &Commuted) -> Reduction {
    let mut seen = Reader {
        values,
        commuted,
        stretches: values.stretches(),
        open: values.open_orders(),
        witnesses: Vec::new(),
    };
    let mut orders = Vec::new();
    let mut sameness = Sameness::Exact;
    let mut most: Option<ValueId> = None;
    for (mode, results) in modes.iter().enumerate() {
        let schedule = results.schedule;
        let per_unit = results.cells.per_unit;
        let mut all = ReductionOrder::BEST;
        let input_cells = schedule.collective.max_input_units(schedule.nranks) * per_unit;
        // The first rank that holds each piece, with its value.
        let mut held: Vec<Option<Held>> = vec![None; input_cells as usize];
        let mut any: Option<Held> = None;
        for rank in (0..schedule.nranks).map(RankId) {
            let apart = modes[0].of(rank);
            let mut block: Option<Held> = None;
            for ((cell, value), apart) in (0..).zip(results.of(rank)).zip(apart) {
                let (unit, cut) = (cell / per_unit, cell % per_unit);
                let expected = schedule.collective.expected_value(rank, unit, schedule.root);
                let Expected::Reduced { unit } = expected else { continue };
                let now = Held { rank, cell, value: *value };
                let piece = held[(unit * per_unit + cut) as usize].get_or_insert(now);
                let block = *block.get_or_insert(now);
                let piece = *piece;
                let mut compare = |class, with| seen.compare(class, [with, now], results, mode > 0);
                all.ranks = all.ranks.max(compare(OrderClass::AllRanks, piece));
                let first = *any.get_or_insert(now);
                all.elements = all.elements.max(compare(OrderClass::AllElements, first));
                all.counts = all.counts.max(compare(OrderClass::AllCounts, block));
                all.every_run &= seen.in_every_run(now, results, mode > 0);
                all.in_rank_order &= seen.in_rank_order(now, results, mode > 0);
                sameness = sameness.max(commuted.compare(*apart, *value));
                all.roundings = all.roundings.max(values.roundings(*value));
                all.depth = all.depth.max(values.depth(*value));
                if most.is_none_or(|most| values.roundings(*value) > values.roundings(most)) {
                    most = Some(*value);
                }
            }
        }
        orders.push(all);
    }
    let rounding_ops = most.map_or_else(Vec::new, |most| values.rounding_ops(most));
    let mut orders = orders.into_iter();
    Reduction {
        apart: orders.next().unwrap_or(ReductionOrder::BEST),
        in_place: orders.next(),
        modes: sameness,
        witnesses: seen.witnesses,
        rounding_ops: rounding_ops.into(),
    }
}

/// The values of outputs, and the pairs that show a broken promise.
struct Reader<'v> {
    values: &'v Values,
    commuted: &'v Commuted,
    stretches: Vec<Option<(u32, u32)>>,
    /// The op whose open order each expression depends on.
    open: Vec<Option<OpId>>,
    witnesses: Vec<(OrderClass, Witness)>,
}

impl Reader<'_> {
    fn compare(
        &mut self,
        class: OrderClass,
        [first, second]: [Held; 2],
        results: &Results<'_>,
        in_place: bool,
    ) -> Sameness {
        // A switch may take the elements of one op in different orders.
        let open = self.open[second.value.expr as usize].filter(|_| class != OrderClass::AllRanks);
        let sameness = match open {
            Some(_) => Sameness::Differs,
            None => self.commuted.compare(first.value, second.value),
        };
        if sameness == Sameness::Differs {
            let at = open.or_else(|| self.values.parts(second.value.expr).map(|(_, op)| op));
            self.witness(class, [first, second], at.unwrap_or(OpId(0)), results, in_place);
        }
        sameness
    }

    fn in_rank_order(&mut self, held: Held, results: &Results<'_>, in_place: bool) -> bool {
        if self.stretches[held.value.expr as usize].is_some() {
            return true;
        }
        // The way down is as long as the expression is deep: it is not gone for each result.
        if self.has_witness(OrderClass::RankOrder) {
            return false;
        }
        // The innermost fold whose operands are in order and which is not.
        let mut expr = held.value.expr;
        while let Some((operands, op)) = self.values.parts(expr) {
            match operands.into_iter().find(|operand| self.stretches[*operand as usize].is_none()) {
                Some(inner) => expr = inner,
                None => {
                    self.witness(OrderClass::RankOrder, [held; 2], op, results, in_place);
                    break;
                }
            }
        }
        false
    }

    fn in_every_run(&mut self, held: Held, results: &Results<'_>, in_place: bool) -> bool {
        let Some(at) = self.open[held.value.expr as usize] else { return true };
        self.witness(OrderClass::EveryRun, [held; 2], at, results, in_place);
        false
    }

    fn has_witness(&self, class: OrderClass) -> bool {
        self.witnesses.iter().any(|(known, _)| *known == class)
    }

    /// Keeps the first two results that break a promise.
    fn witness(
        &mut self,
        class: OrderClass,
        results: [Held; 2],
        at: OpId,
        of: &Results<'_>,
        in_place: bool,
    ) {
        if self.has_witness(class) {
            return;
        }
        let piece = |held: Held| {
            let region = of.cells.region(held.cell, Buffer::Output);
            piece_text(of.schedule, &region)
        };
        let witness = Witness {
            ranks: results.map(|held| held.rank),
            pieces: results.map(piece),
            orders: results.map(|held| self.values.tree(held.value)),
            at,
            in_place,
        };
        self.witnesses.push((class, witness));
    }
}

impl Commuted {
    /// Compares the orders of two results. Equal expressions are reduced in one order, wherever they are.
    fn compare(&self, a: ValueId, b: ValueId) -> Sameness {
        if a.expr == b.expr {
            Sameness::Exact
        } else if self.class[a.expr as usize] == self.class[b.expr as usize] {
            Sameness::Commuted
        } else {
            Sameness::Differs
        }
    }
}
