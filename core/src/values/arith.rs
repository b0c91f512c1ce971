//! Integer arithmetic of the language: 64 bits, checked, Euclidean. An overflow gives one error at expansion and when a
//! plan is made, in debug and release builds.

use std::fmt;

use crate::diagnostics::{Code, Finding};
use crate::ids::{RankId, SpanId};
use crate::syntax::ast::BinOp;
use roundelay_base::named_enum;

/// The reason why a value could not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `left OP right` does not fit 64 bits.
    Overflow {
        /// Left operand.
        left: i64,
        /// The operator as written.
        op: &'static str,
        /// Right operand.
        right: i64,
    },
    /// Division or remainder by zero.
    DivisionByZero {
        /// The dividend.
        left: i64,
    },
    /// An index, or the end of a range, that is not within `0..len`.
    Index {
        /// The index.
        index: i64,
        /// The number of items.
        len: i64,
    },
    /// A range whose end lies before its start.
    EmptyRange {
        /// Start.
        lo: i64,
        /// End.
        hi: i64,
    },
    /// A rank that does not exist.
    Rank {
        /// The rank.
        rank: i64,
        /// The number of ranks.
        nranks: u32,
    },
    /// The parent of a tree's root.
    RootsParent {
        /// The root.
        root: RankId,
    },
    /// An argument that the function does not take.
    Argument {
        /// The function.
        function: &'static str,
        /// The arguments that the function takes, in words.
        takes: &'static str,
        /// The value that it got.
        got: i64,
    },
    /// A boundary that needs a fraction of more than 64 bits.
    Fraction,
    /// A range of slots: slots are not adjacent.
    SlotRange,
    /// A rank that the group does not have.
    Outside {
        /// The number of the rank among all ranks.
        rank: u32,
    },
    /// A split of a slot whose shape is that of its data.
    FloatingSlot,
}

impl Fault {
    /// Returns the code that the fault is reported under.
    pub const fn code(self) -> Code {
        match self {
            Self::Overflow { .. } | Self::Fraction => Code::ArithmeticOverflow,
            Self::DivisionByZero { .. } => Code::DivisionByZero,
            Self::Index { .. } | Self::EmptyRange { .. } => Code::IndexOutOfRange,
            Self::Rank { .. } | Self::Outside { .. } | Self::RootsParent { .. } => {
                Code::RankOutOfRange
            }
            Self::Argument { .. } => Code::BadArgument,
            Self::SlotRange | Self::FloatingSlot => Code::UnknownSlotLength,
        }
    }

    /// Returns the finding of the fault at a statement.
    pub(crate) fn finding(self, at: SpanId) -> Finding {
        let finding = Finding::new(self.code(), at, self.to_string());
        match self {
            Self::SlotRange => finding.help("let the scratch be one region, and cut it: of `scratch inbox: like input;` and `view part = inbox.split(nranks);` a range is a region"),
            Self::FloatingSlot => finding.help("let the scratch be `like` one piece, such as `like block[0]` in place of `like block`: then its slots have that length"),
            Self::RootsParent { .. } => finding.help("ask only below the root: `if local != tree.root { let up = tree.parent; … }`"),
            _ => finding,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow { left, op, right } => {
                write!(f, "`{left} {op} {right}` does not fit a 64-bit integer")
            }
            Self::DivisionByZero { left } => write!(f, "`{left}` is divided by zero"),
            Self::Index { index, len } => write!(f, "index {index} is not in 0..{len}"),
            Self::EmptyRange { lo, hi } => write!(f, "the range {lo}..{hi} ends before it begins"),
            Self::Rank { rank, nranks } => write!(f, "rank {rank} is not in 0..{nranks}"),
            Self::Outside { rank } => {
                write!(f, "rank {rank} of all ranks is not in this group, and has no number here")
            }
            Self::RootsParent { root } => {
                write!(f, "rank {root} is the root, and the root of a tree has no parent")
            }
            Self::Argument { function, takes, got } => {
                write!(f, "`{function}` takes {takes}, and got {got}")
            }
            Self::Fraction => {
                f.write_str("the pieces are too fine: a boundary needs more than 64 bits")
            }
            Self::SlotRange => f.write_str("a range of slots is not a region: slots do not adjoin"),
            Self::FloatingSlot => {
                f.write_str("a slot has the length of what it holds, so it cannot be split")
            }
        }
    }
}

/// Computes `a OP b` for the arithmetic operators.
pub fn arithmetic(op: BinOp, a: i64, b: i64) -> Result<i64, Fault> {
    let value = match op {
        BinOp::Add => a.checked_add(b),
        BinOp::Sub => a.checked_sub(b),
        BinOp::Mul => a.checked_mul(b),
        BinOp::Div | BinOp::Rem if b == 0 => return Err(Fault::DivisionByZero { left: a }),
        BinOp::Div => a.checked_div_euclid(b),
        // i64::MIN % -1 is 0, though its division overflows.
        BinOp::Rem => Some(a.wrapping_rem_euclid(b)),
        BinOp::Shl => shift(b, ">>").ok().and_then(|k| {
            let shifted = a.wrapping_shl(k);
            (shifted.wrapping_shr(k) == a).then_some(shifted)
        }),
        BinOp::Shr => Some(a >> shift(b, ">>")?),
        BinOp::BitAnd => Some(a & b),
        BinOp::BitXor => Some(a ^ b),
        BinOp::BitOr => Some(a | b),
        _ => unreachable!("{op:?} does not give an integer"),
    };
    value.ok_or_else(|| Fault::Overflow { left: a, op: op.text(), right: b })
}

fn shift(by: i64, function: &'static str) -> Result<u32, Fault> {
    u32::try_from(by).ok().filter(|k| *k < 64).ok_or(Fault::Argument {
        function,
        takes: "a shift of 0..64",
        got: by,
    })
}

/// Computes `a OP b` for the comparisons.
pub fn compare(op: BinOp, a: i64, b: i64) -> bool {
    match op {
        BinOp::Eq => a == b,
        BinOp::Ne => a != b,
        BinOp::Lt => a < b,
        BinOp::Le => a <= b,
        BinOp::Gt => a > b,
        BinOp::Ge => a >= b,
        _ => unreachable!("{op:?} is not a comparison"),
    }
}

named_enum! {
    /// The built-in functions from integers to integers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum IntFn {
        /// `floor(log2(x))`, x >= 1
        Log2 = "log2",
        /// `ceil(log2(x))`, x >= 1
        CeilLog2 = "ceil_log2",
        /// `2^x`, 0 <= x < 63
        Pow2 = "pow2",
        /// The smaller of two numbers.
        Min = "min",
        /// The larger of two numbers.
        Max = "max",
        /// The magnitude.
        Abs = "abs",
        /// Number of one bits, x >= 0
        Popcount = "popcount",
        /// Number of zero bits below the lowest one bit, x >= 1
        TrailingZeros = "trailing_zeros",
        /// `bit_reverse(x, bits)`: the lowest `bits` bits of x in reverse order
        BitReverse = "bit_reverse",
    }
}

impl IntFn {
    /// Returns the number of arguments.
    pub const fn arity(self) -> usize {
        match self {
            Self::Min | Self::Max | Self::BitReverse => 2,
            _ => 1,
        }
    }

    /// Returns the function's value; `b` is ignored by functions of one argument.
    pub fn apply(self, a: i64, b: i64) -> Result<i64, Fault> {
        let takes = |takes, got| Fault::Argument { function: self.name(), takes, got };
        Ok(match self {
            Self::Log2 if a >= 1 => i64::from(a.ilog2()),
            Self::CeilLog2 if a >= 1 => i64::from(64 - (a - 1).leading_zeros()),
            Self::Pow2 if (0..63).contains(&a) => 1 << a,
            Self::Pow2 => return Err(takes("an exponent in 0..63", a)),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::Abs => a.checked_abs().ok_or_else(|| takes("an integer above -2^63", a))?,
            Self::Popcount if a >= 0 => i64::from(a.count_ones()),
            Self::Popcount => return Err(takes("an integer from 0", a)),
            Self::TrailingZeros if a >= 1 => i64::from(a.trailing_zeros()),
            Self::Log2 | Self::CeilLog2 | Self::TrailingZeros => {
                return Err(takes("an integer from 1", a));
            }
            Self::BitReverse => {
                if !(0..63).contains(&b) {
                    return Err(takes("a number of bits in 0..63", b));
                }
                if a < 0 || a >> b != 0 {
                    return Err(takes("an integer of that many bits", a));
                }
                if b == 0 { 0 } else { ((a as u64).reverse_bits() >> (64 - b)) as i64 }
            }
        })
    }
}

/// Returns item `index` of a list.
pub(crate) fn pick<T: Clone>(list: &[T], index: i64) -> Result<T, Fault> {
    let len = list.len() as i64;
    usize::try_from(index)
        .ok()
        .and_then(|i| list.get(i).cloned())
        .ok_or(Fault::Index { index, len })
}
