//! Moves, special registers, and operations on registers.

use super::body::Body;
use super::float;
use super::opcode::Words;
use crate::error::BadText;
use crate::program::{
    Arithmetic, ArithmeticOp, Comparison, Float, LaneMask, Logic, Operand, Operation, ReduceOp,
    Special, Type,
};
use crate::text::OperandText;

pub(super) fn operation(
    first: &str,
    words: &mut Words,
    body: &Body,
    operands: &[OperandText],
) -> Result<Operation, BadText> {
    if first == "mov" {
        return moved(words, body, operands);
    }
    let (to, from) = operands.split_first().ok_or_else(|| words.unknown())?;
    let result = body.result(to, words.line)?;
    let to = result.ok_or_else(|| words.error("its result is not wanted"))?;
    let (op, types) = match first {
        "cvt" => float::conversion(words, to.ty)?,
        "setp" => comparison(words, from.len() > 2)?,
        "lop3" => lookup(words, from)?,
        _ => match float::operation(first, words)? {
            Some(typed) => typed,
            None => plain(first, words)?,
        },
    };
    // The table of lop3 is part of the operation.
    let from = if first == "lop3" { &from[..from.len() - 1] } else { from };
    if from.len() != types.len() {
        return Err(words.error(format_args!("it takes {} sources", types.len())));
    }
    let (mut sources, mut negated) = ([Operand::Value(0); 4], 0);
    for (at, (operand, ty)) in from.iter().zip(&types).enumerate() {
        if *ty == Type::Pred {
            let (source, is_negated) = body.truth(operand, words.line)?;
            sources[at] = source;
            negated |= u8::from(is_negated) << at;
        } else {
            sources[at] = body.source(operand, *ty, words.line)?;
        }
    }
    Ok(Operation::Arithmetic(Arithmetic { op, to: to.slot, from: sources, negated }))
}

fn moved(words: &mut Words, body: &Body, operands: &[OperandText]) -> Result<Operation, BadText> {
    let ty = words.ty()?;
    let [to, from] = operands else { return Err(words.error("it takes two operands")) };
    for operand in [to, from] {
        let OperandText::Vector(pieces) = operand else { continue };
        let count = pieces.len() as u32;
        if ![2, 4].contains(&count) || ty.bits() < 8 * count {
            return Err(words.error("the number of pieces does not fit"));
        }
    }
    if let OperandText::Vector(pieces) = to {
        let bits = ty.bits() / pieces.len() as u32;
        let to = pieces.iter().map(|piece| {
            let register = body.result(piece, words.line)?;
            Ok(register.map(|register| register.slot))
        });
        let to = to.collect::<Result<Box<[_]>, BadText>>()?;
        return Ok(Operation::Unpack { to, from: body.source(from, ty, words.line)?, bits });
    }
    let result = body.result(to, words.line)?;
    let to = result.ok_or_else(|| words.error("its result is not wanted"))?.slot;
    match from {
        OperandText::Vector(pieces) => {
            let bits = ty.bits() / pieces.len() as u32;
            let from =
                pieces.iter().map(|piece| body.source(piece, Type::Bits(bits as u8), words.line));
            Ok(Operation::Join { to, from: from.collect::<Result<_, _>>()?, bits })
        }
        OperandText::Name(name) => {
            if let Some(symbol) = body.symbol(name) {
                return Ok(Operation::AddressOf { to, symbol });
            }
            match special(name) {
                Some(register) => Ok(Operation::Special { to, register }),
                None => Ok(Operation::Move { to, from: body.source(from, ty, words.line)? }),
            }
        }
        OperandText::Address(..) => Err(words.error("an address is not a source")),
        _ => Ok(Operation::Move { to, from: body.source(from, ty, words.line)? }),
    }
}

fn special(name: &str) -> Option<Special> {
    let axis = |name: &str| Some(["x", "y", "z"].iter().position(|axis| *axis == name)? as u8);
    match name.strip_prefix('%')?.split_once('.') {
        Some(("tid", name)) => axis(name).map(Special::Tid),
        Some(("ntid", name)) => axis(name).map(Special::Ntid),
        Some(("ctaid", name)) => axis(name).map(Special::Ctaid),
        Some(("nctaid", name)) => axis(name).map(Special::Nctaid),
        Some(("clusterid", name)) => axis(name).map(Special::ClusterId),
        Some(("nclusterid", name)) => axis(name).map(Special::ClusterCount),
        Some(("cluster_ctaid", name)) => axis(name).map(Special::InCluster),
        Some(("cluster_nctaid", name)) => axis(name).map(Special::ClusterShape),
        Some(_) => None,
        None => match name {
            "%laneid" => Some(Special::LaneId),
            "%globaltimer" | "%clock64" => Some(Special::GlobalTimer),
            "%globaltimer_lo" | "%clock" => Some(Special::TimerLow),
            "%globaltimer_hi" | "%clock_hi" => Some(Special::TimerHigh),
            "%warpid" => Some(Special::WarpId),
            "%nwarpid" => Some(Special::WarpCount),
            "%gridid" => Some(Special::GridId),
            "%cluster_ctarank" => Some(Special::ClusterRank),
            "%cluster_nctarank" => Some(Special::ClusterSize),
            "%lanemask_eq" => Some(Special::LaneMask(LaneMask::Equal)),
            "%lanemask_lt" => Some(Special::LaneMask(LaneMask::Less)),
            "%lanemask_le" => Some(Special::LaneMask(LaneMask::LessOrEqual)),
            "%lanemask_gt" => Some(Special::LaneMask(LaneMask::Greater)),
            "%lanemask_ge" => Some(Special::LaneMask(LaneMask::GreaterOrEqual)),
            _ => None,
        },
    }
}

/// An operation, and the types of its sources.
pub(super) type Typed = (ArithmeticOp, Vec<Type>);

/// The classes of types that an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Signed and unsigned integers of 16, 32 and 64 bits.
    Integer,
    /// Bits of 16, 32 and 64, and truth values.
    Logical,
    /// Bits or integers of 16, 32 and 64.
    Shift,
    /// Bits or unsigned integers of 32 and 64.
    Word,
    /// All of 16 bits or more.
    Any,
}

impl Class {
    fn has(self, ty: Type) -> bool {
        match ty {
            Type::Pred => self == Self::Logical,
            Type::Bits(8)
            | Type::Unsigned(8)
            | Type::Signed(8)
            | Type::Float(Float::F16x2 | Float::Bf16x2) => false,
            Type::Bits(16) => matches!(self, Self::Logical | Self::Shift | Self::Any),
            Type::Bits(_) => self != Self::Integer,
            Type::Unsigned(_) | Type::Signed(_) => {
                matches!(self, Self::Integer | Self::Shift | Self::Any)
                    || (self == Self::Word && ty.bits() > 16)
            }
            Type::Float(_) => self == Self::Any,
        }
    }
}

fn typed(words: &mut Words, class: Class) -> Result<Type, BadText> {
    let ty = words.ty()?;
    if class.has(ty) { Ok(ty) } else { Err(words.error("it has no such type")) }
}

/// The part of a product that is the result.
enum Half {
    Low,
    High,
    Both,
}

fn product(words: &mut Words) -> Result<(Half, Type), BadText> {
    let half = words.find(|word| {
        Some(match word {
            "lo" => Half::Low,
            "hi" => Half::High,
            "wide" => Half::Both,
            _ => return None,
        })
    });
    let ty = typed(words, Class::Integer)?;
    match half {
        Some(Half::Both) if ty.bits() == 64 => Err(words.unknown()),
        Some(half) => Ok((half, ty)),
        None => Err(words.unknown()),
    }
}

/// The type of each half of an operation on two integers of 16 bits.
fn halves(words: &Words) -> Option<Type> {
    let is = |word: &str| match word {
        "u16x2" => Some(Type::Unsigned(16)),
        "s16x2" => Some(Type::Signed(16)),
        _ => None,
    };
    words.look(is)
}

fn plain(first: &str, words: &mut Words) -> Result<Typed, BadText> {
    let u32 = Type::Unsigned(32);
    Ok(match first {
        "add" | "min" | "max" if halves(words).is_some() => {
            let ty = halves(words).ok_or_else(|| words.unknown())?;
            words.drop(|word| ["u16x2", "s16x2"].contains(&word));
            let op = match first {
                "add" => ReduceOp::Add,
                "min" => ReduceOp::Min,
                _ => ReduceOp::Max,
            };
            (ArithmeticOp::Halves(op, ty), vec![Type::Bits(32); 2])
        }
        "add" | "sub" | "div" => {
            let ty = typed(words, Class::Integer)?;
            let op = match first {
                "add" => ArithmeticOp::Add(ty),
                "sub" => ArithmeticOp::Sub(ty),
                _ => ArithmeticOp::Div(ty),
            };
            (op, vec![ty; 2])
        }
        "mul" => {
            let (half, ty) = product(words)?;
            let op = match half {
                Half::Low => ArithmeticOp::Mul(ty),
                Half::High => ArithmeticOp::MulHigh(ty),
                Half::Both => ArithmeticOp::MulWide(ty),
            };
            (op, vec![ty; 2])
        }
        "mad" => {
            let (half, ty) = product(words)?;
            match half {
                Half::Low => (ArithmeticOp::Mad(ty), vec![ty; 3]),
                Half::High => (ArithmeticOp::MadHigh(ty), vec![ty; 3]),
                Half::Both => {
                    (ArithmeticOp::MadWide(ty), vec![ty, ty, Type::Bits(2 * ty.bits() as u8)])
                }
            }
        }
        "sad" => {
            let ty = typed(words, Class::Integer)?;
            (ArithmeticOp::Sad(ty), vec![ty; 3])
        }
        "rem" | "min" | "max" => {
            let ty = typed(words, Class::Integer)?;
            let op = match first {
                "rem" => ArithmeticOp::Rem(ty),
                "min" => ArithmeticOp::Min(ty),
                _ => ArithmeticOp::Max(ty),
            };
            (op, vec![ty; 2])
        }
        "neg" | "abs" => {
            let ty = typed(words, Class::Integer)?;
            let op = if first == "neg" { ArithmeticOp::Neg(ty) } else { ArithmeticOp::Abs(ty) };
            (op, vec![ty])
        }
        "and" | "or" | "xor" => {
            let ty = typed(words, Class::Logical)?;
            let logic = match first {
                "and" => Logic::And,
                "or" => Logic::Or,
                _ => Logic::Xor,
            };
            (ArithmeticOp::Logic(logic, ty), vec![ty; 2])
        }
        "not" => {
            let ty = typed(words, Class::Logical)?;
            (ArithmeticOp::Not(ty), vec![ty])
        }
        "shl" | "shr" => {
            let ty = typed(words, Class::Shift)?;
            let op = if first == "shl" { ArithmeticOp::Shl(ty) } else { ArithmeticOp::Shr(ty) };
            (op, vec![ty, u32])
        }
        "bfi" => {
            let ty = typed(words, Class::Word)?;
            (ArithmeticOp::Bfi(ty), vec![ty, ty, u32, u32])
        }
        "bfind" => {
            let shift = words.has("shiftamt");
            let ty = typed(words, Class::Word)?;
            (ArithmeticOp::Bfind { ty, shift }, vec![ty])
        }
        "bfe" => {
            let ty = typed(words, Class::Word)?;
            if !matches!(ty, Type::Unsigned(_) | Type::Signed(_)) {
                return Err(words.unknown());
            }
            (ArithmeticOp::Bfe(ty), vec![ty, u32, u32])
        }
        "brev" | "clz" | "popc" => {
            let ty = typed(words, Class::Word)?;
            let op = match first {
                "brev" => ArithmeticOp::Brev(ty),
                "clz" => ArithmeticOp::Clz(ty),
                _ => ArithmeticOp::Popc(ty),
            };
            (op, vec![ty])
        }
        "prmt" if words.has("b32") => (ArithmeticOp::Prmt, vec![u32; 3]),
        "shf" => {
            let (left, right) = (words.has("l"), words.has("r"));
            let (clamp, wrap) = (words.has("clamp"), words.has("wrap"));
            if left == right || clamp == wrap || !words.has("b32") {
                return Err(words.unknown());
            }
            (ArithmeticOp::Shf { left, clamp }, vec![u32; 3])
        }
        "selp" => {
            let ty = typed(words, Class::Any)?;
            (ArithmeticOp::Selp(ty), vec![ty, ty, Type::Pred])
        }
        _ => return Err(words.unknown()),
    })
}

fn lookup(words: &mut Words, from: &[OperandText]) -> Result<Typed, BadText> {
    let [_, _, _, OperandText::Integer(table @ 0..256)] = from else {
        return Err(words.error("it takes three sources and a table of 8 bits"));
    };
    if !words.has("b32") {
        return Err(words.unknown());
    }
    Ok((ArithmeticOp::Lop3(*table as u8), vec![Type::Bits(32); 3]))
}

fn comparison(words: &mut Words, has_third: bool) -> Result<Typed, BadText> {
    let compare = words.find(|word| {
        Some(match word {
            "eq" => Comparison::Eq,
            "ne" => Comparison::Ne,
            "lt" | "lo" => Comparison::Lt,
            "le" | "ls" => Comparison::Le,
            "gt" | "hi" => Comparison::Gt,
            "ge" | "hs" => Comparison::Ge,
            "equ" => Comparison::Equ,
            "neu" => Comparison::Neu,
            "ltu" => Comparison::Ltu,
            "leu" => Comparison::Leu,
            "gtu" => Comparison::Gtu,
            "geu" => Comparison::Geu,
            "num" => Comparison::Num,
            "nan" => Comparison::Nan,
            _ => return None,
        })
    });
    let compare = compare.ok_or_else(|| words.error("the comparison is missing"))?;
    let combine = words.find(|word| {
        Some(match word {
            "and" => Logic::And,
            "or" => Logic::Or,
            "xor" => Logic::Xor,
            _ => return None,
        })
    });
    let ftz = words.has("ftz");
    let ty = typed(words, Class::Any)?;
    let is_ordered = matches!(
        compare,
        Comparison::Eq
            | Comparison::Ne
            | Comparison::Lt
            | Comparison::Le
            | Comparison::Gt
            | Comparison::Ge
    );
    let fits = match ty {
        Type::Float(_) => true,
        Type::Bits(_) => matches!(compare, Comparison::Eq | Comparison::Ne),
        _ => is_ordered,
    };
    if !fits || combine.is_some() != has_third || ftz && !matches!(ty, Type::Float(_)) {
        return Err(words.unknown());
    }
    let mut types = vec![ty; 2];
    types.extend(combine.map(|_| Type::Pred));
    Ok((ArithmeticOp::Setp { compare, ty, combine, ftz }, types))
}
