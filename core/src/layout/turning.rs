//! A walk that follows how the values of rank 0 change from rank to rank. Where each value of the walk is the same at
//! all ranks or is turned with the rank, the ops of every rank are those of rank 0, turned.

use std::collections::BTreeMap;

use crate::ids::SpanId;
use crate::rational::Rat;
use crate::schedule::interner::Interner;
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::turns::Turns;

/// The digits of a rank's number that a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Digits {
    /// All digits: the number is a rank among all ranks.
    All,
    /// One digit: the number is a rank among those that differ in this digit alone.
    One(usize),
}

/// The change of a value of rank 0 from rank to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The value is the same at all ranks.
    Fixed,
    /// The number is turned: at rank r it is the number that turn r takes it to. It lies below the radix.
    Turned(Digits),
    /// The number grows with a digit of the rank, and is known up to multiples of the radix.
    Near(usize),
    /// The ring of the ranks that differ in these digits, in their natural order.
    Ring(Digits),
    /// Groups of neighbors, all of one size: the first digit is a rank's group, the second its position there.
    Groups,
    /// The list of the ranks that differ from this rank in one digit, in the order of this digit.
    Members(usize),
    /// A value that changes in another way, or that is not followed; the word says the reason.
    Other(&'static str),
}

/// The number of equal parts by which a region moves on where a digit of the rank grows by one, around a span of as many
/// parts as the digit has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Axis {
    /// The digit.
    pub(crate) digit: usize,
    /// Whether the region moves from slot to slot of scratch, and not within its buffer.
    pub(crate) slots: bool,
    /// The distance, in units of the count, or in slots.
    pub(crate) stride: Rat,
    /// The position where the span begins, at rank 0.
    pub(crate) origin: Rat,
    /// Whether the position where the data of a slot begins moves too.
    pub(crate) base: bool,
}

/// The construct at which a program leaves the class of programs whose ranks do the same, turned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// The statement.
    pub at: SpanId,
    /// The exact expression, where it is known.
    pub exact: Option<Span>,
    /// The reason, in words.
    pub why: String,
}

/// The state of a walk of rank 0 that follows the changes of values.
pub(crate) struct Turning {
    pub(crate) turns: Turns,
    /// The axes that regions move along, each list once; entry 0 is empty.
    pub(crate) axes: Interner<Vec<Axis>>,
    /// The axes of each operand that was laid out.
    pub(crate) operands: Vec<u32>,
    /// The digits that the numbers of ranks count in each `within` around the statement, from the outermost on.
    pub(crate) within: Vec<Digits>,
    /// The changes of the values that a call gives to parameters.
    pub(crate) args: BTreeMap<usize, Change>,
    /// The number and the size of the groups in the program, where it has groups of neighbors of one size.
    pub(crate) groups: Option<[u32; 2]>,
    pub(crate) leaves: Option<Leaves>,
}

impl Turning {
    pub(crate) fn new(turns: Turns) -> Self {
        let mut axes = Interner::default();
        axes.intern(Vec::new());
        Self {
            turns,
            axes,
            operands: Vec::new(),
            within: Vec::new(),
            args: BTreeMap::new(),
            groups: None,
            leaves: None,
        }
    }

    /// Notes the construct that is not followed; the first one stays.
    pub(crate) fn leave(&mut self, at: u32, exact: Option<Span>, why: impl Into<String>) {
        self.leaves.get_or_insert(Leaves { at: SpanId(at), exact, why: why.into() });
    }

    /// The digits that the number of a rank among all ranks counts.
    pub(crate) fn whole(&self) -> Digits {
        if self.turns.radices().len() == 1 { Digits::One(0) } else { Digits::All }
    }

    /// The digits that the numbers of ranks count inside of `depth` blocks of `within`.
    pub(crate) fn seen(&self, depth: usize) -> Digits {
        depth.checked_sub(1).map_or(self.whole(), |inner| self.within[inner])
    }

    /// The number of values that the digits have.
    pub(crate) fn radix(&self, digits: Digits) -> u32 {
        match digits {
            Digits::All => self.turns.nranks(),
            Digits::One(digit) => self.turns.radices()[digit],
        }
    }

    /// Returns the axes of a piece of a region whose number is turned. The pieces begin at `origin`, one every
    /// `stride`.
    pub(crate) fn moved(
        &mut self,
        axes: u32,
        digits: Digits,
        (origin, stride, slots): (Rat, Rat, bool),
    ) -> Option<u32> {
        let mut list = self.axes.items[axes as usize].clone();
        let digits = match digits {
            Digits::All => 0..self.turns.radices().len(),
            Digits::One(digit) => digit..digit + 1,
        };
        let alone = digits.len() == 1;
        for digit in digits {
            let weight = if alone { 1 } else { self.turns.weight(digit) };
            let stride = stride.times(weight.into())?;
            list.push(Axis { digit, slots, stride, origin, base: false });
        }
        Some(self.axes.intern(list))
    }

    /// Returns the axes of a slot that takes the shape of data with these axes: whole units are dropped there, and the
    /// position where the data begins moves with the data. `None` where data moves by parts of units beyond one unit.
    pub(crate) fn shaped(&mut self, axes: u32, slot: u32) -> Option<u32> {
        let mut list: Vec<Axis> =
            self.axes.items[slot as usize].iter().filter(|axis| axis.slots).copied().collect();
        for axis in self.axes.items[axes as usize].clone() {
            if axis.slots || axis.stride.den() == 1 {
                continue;
            }
            let span = axis.stride.times(self.turns.radices()[axis.digit].into())?;
            if span > Rat::ONE {
                return None;
            }
            list.push(Axis { base: true, origin: axis.origin.fraction(), ..axis });
        }
        Some(self.axes.intern(list))
    }

    /// Returns the axes of scratch that has the shape of a region with these axes.
    pub(crate) fn based(&mut self, axes: u32) -> u32 {
        let list = &self.axes.items[axes as usize];
        let list = list.iter().map(|axis| Axis { base: true, ..*axis }).collect();
        self.axes.intern(list)
    }
}

/// Numbers beyond this magnitude may overflow at another rank.
const LARGE: i64 = 1 << 60;

/// The change of a value that depends on the rank in a way that is not followed.
pub(crate) const BY_RANK: Change = Change::Other("it depends on the rank");

/// Returns the change of a value that was computed from one with another change than is followed.
pub(crate) fn unlike(change: Change) -> Change {
    match change {
        Change::Other(why) => Change::Other(why),
        _ => BY_RANK,
    }
}

impl Turning {
    /// Returns the change of the result of an operator, where not both operands are fixed.
    pub(crate) fn result(&self, op: BinOp, changes: [Change; 2], values: [i64; 2]) -> Change {
        use Change::{Fixed, Near, Turned};
        let whole = self.whole();
        let last = self.turns.radices().len().saturating_sub(1);
        // The turned operand, the fixed operand, and whether the fixed one is on the left.
        let (turned, fixed, swapped) = match changes {
            [Turned(a), Turned(b)] if a == b && matches!(op, BinOp::Eq | BinOp::Ne) => {
                return Fixed;
            }
            [turned, Fixed] => (turned, values[1], false),
            [Fixed, turned] => (turned, values[0], true),
            [Change::Other(why), _] | [_, Change::Other(why)] => return Change::Other(why),
            _ => return BY_RANK,
        };
        let digit = match turned {
            Turned(Digits::One(digit)) | Near(digit) => Some(digit),
            Turned(Digits::All) => None,
            other => return unlike(other),
        };
        let radix = i64::from(self.radix(digit.map_or(Digits::All, Digits::One)));
        let below = matches!(turned, Turned(_));
        let two = self.turns.radices().len() == 2;
        match (op, swapped) {
            _ if changes_nothing(op, fixed, swapped) => turned,
            (BinOp::Mul, _) if fixed == 0 => Fixed,
            (BinOp::Rem, false) if fixed == 1 => Fixed,
            (BinOp::Add, _) | (BinOp::Sub, false) => match digit {
                Some(digit) if values.iter().all(|value| value.abs() < LARGE) => Near(digit),
                _ => BY_RANK,
            },
            (BinOp::Rem, false) if below && fixed >= radix => turned,
            (BinOp::Rem, false) if fixed == radix => {
                digit.map_or(turned, |digit| Turned(Digits::One(digit)))
            }
            (BinOp::Rem, false)
                if digit.is_none() && two && fixed == i64::from(self.radix(Digits::One(last))) =>
            {
                Turned(Digits::One(last))
            }
            (BinOp::Div, false)
                if digit.is_none() && two && fixed == i64::from(self.turns.weight(0)) =>
            {
                Turned(Digits::One(0))
            }
            (BinOp::BitAnd, _)
                if digit.is_some() && fixed == radix - 1 && (radix as u64).is_power_of_two() =>
            {
                digit.map_or(turned, |digit| Turned(Digits::One(digit)))
            }
            (BinOp::BitXor, _)
                if turned == Turned(whole)
                    && self.turns.is_xor()
                    && (0..radix).contains(&fixed) =>
            {
                turned
            }
            _ => BY_RANK,
        }
    }
}

/// Whether an operator with this operand gives the other operand; `left` says that this one stands on the left.
fn changes_nothing(op: BinOp, operand: i64, left: bool) -> bool {
    match op {
        BinOp::Add | BinOp::BitOr | BinOp::BitXor => operand == 0,
        BinOp::Sub | BinOp::Shl | BinOp::Shr => operand == 0 && !left,
        BinOp::Mul => operand == 1,
        BinOp::Div => operand == 1 && !left,
        _ => false,
    }
}
