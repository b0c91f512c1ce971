//! Moves, special registers, and operations on registers.

use super::body::Body;
use super::opcode::Words;
use crate::bad_text::BadText;
use crate::program::{
    Arithmetic, ArithmeticOp, Comparison, Float, Logic, Operand, Operation, Packed, Special, Type,
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
        "cvt" => conversion(words, to.ty)?,
        "setp" => comparison(words, from.len() > 2)?,
        "lop3" => lookup(words, from)?,
        _ => plain(first, words)?,
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
        Some(_) => None,
        None => match name {
            "%laneid" => Some(Special::LaneId),
            "%globaltimer" => Some(Special::GlobalTimer),
            _ => None,
        },
    }
}

/// An operation, and the types of its sources.
type Typed = (ArithmeticOp, Vec<Type>);

/// The classes of types that an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Signed and unsigned integers of 16, 32 and 64 bits.
    Integer,
    /// These, and f32 and f64.
    Number,
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
            Type::Bits(8) | Type::Unsigned(8) | Type::Signed(8) => false,
            Type::Bits(16) => matches!(self, Self::Logical | Self::Shift | Self::Any),
            Type::Bits(_) => !matches!(self, Self::Integer | Self::Number),
            Type::Unsigned(_) | Type::Signed(_) => {
                matches!(self, Self::Integer | Self::Number | Self::Shift | Self::Any)
                    || (self == Self::Word && ty.bits() > 16)
            }
            Type::Float(Float::F32 | Float::F64) => matches!(self, Self::Number | Self::Any),
            Type::Float(_) => false,
        }
    }
}

fn typed(words: &mut Words, class: Class) -> Result<Type, BadText> {
    let ty = words.ty()?;
    if class.has(ty) { Ok(ty) } else { Err(words.error("it has no such type")) }
}

/// Takes the rounding of an operation on floats; integers have none.
fn arithmetic_type(words: &mut Words) -> Result<Type, BadText> {
    let rounded = words.has("rn");
    let ty = typed(words, Class::Number)?;
    if matches!(ty, Type::Float(_)) == rounded {
        return Ok(ty);
    }
    Err(words.error("floats are rounded with `.rn`, and integers are not"))
}

fn plain(first: &str, words: &mut Words) -> Result<Typed, BadText> {
    let u32 = Type::Unsigned(32);
    Ok(match first {
        "add" | "sub" | "div" => {
            let ty = arithmetic_type(words)?;
            let op = match first {
                "add" => ArithmeticOp::Add(ty),
                "sub" => ArithmeticOp::Sub(ty),
                _ => ArithmeticOp::Div(ty),
            };
            (op, vec![ty; 2])
        }
        "mul" => {
            let [low, high, wide] = ["lo", "hi", "wide"].map(|word| words.has(word));
            let ty = arithmetic_type(words)?;
            let op = match (low, high, wide, ty) {
                (true, ..) => ArithmeticOp::Mul(ty),
                (_, true, ..) => ArithmeticOp::MulHigh(ty),
                (_, _, true, Type::Signed(16 | 32) | Type::Unsigned(16 | 32)) => {
                    ArithmeticOp::MulWide(ty)
                }
                (.., Type::Float(_)) => ArithmeticOp::Mul(ty),
                _ => return Err(words.unknown()),
            };
            if (low || high || wide) && matches!(ty, Type::Float(_)) {
                return Err(words.unknown());
            }
            (op, vec![ty; 2])
        }
        "mad" if words.has("lo") => {
            let ty = typed(words, Class::Integer)?;
            (ArithmeticOp::Mad(ty), vec![ty; 3])
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
            let ty = typed(words, Class::Number)?;
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
            if !matches!(ty, Type::Unsigned(_)) {
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
        "shf" if words.has("l") && words.has("wrap") && words.has("b32") => {
            (ArithmeticOp::ShfLeft, vec![u32; 3])
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
    if !fits || combine.is_some() != has_third {
        return Err(words.unknown());
    }
    let mut types = vec![ty; 2];
    types.extend(combine.map(|_| Type::Pred));
    Ok((ArithmeticOp::Setp { compare, ty, combine }, types))
}

fn conversion(words: &mut Words, register: Type) -> Result<Typed, BadText> {
    let packed = |words: &mut Words, names: &[(&str, Packed)]| {
        let mut names = names.iter();
        names.find(|(name, _)| words.has(name)).map(|(_, packed)| *packed)
    };
    let narrow = packed(words, &[("e4m3x2", Packed::E4m3x2), ("e5m2x2", Packed::E5m2x2)]);
    let half = packed(words, &[("f16x2", Packed::F16x2), ("bf16x2", Packed::Bf16x2)]);
    let rounded = words.has("rn");
    match (narrow, half) {
        (Some(from), Some(Packed::F16x2)) if rounded => {
            return Ok((ArithmeticOp::Widen { from }, vec![Type::Bits(16)]));
        }
        (None, Some(to)) | (Some(to), None) if rounded => {
            let saturate = words.has("satfinite");
            if words.ty()? != Type::Float(Float::F32) || saturate == half.is_some() {
                return Err(words.unknown());
            }
            return Ok((ArithmeticOp::Pack { to }, vec![Type::Float(Float::F32); 2]));
        }
        (None, None) => {}
        _ => return Err(words.unknown()),
    }
    let (to, from) = (words.ty()?, words.ty()?);
    let is_integer = |ty| matches!(ty, Type::Unsigned(_) | Type::Signed(_));
    let known = match (to, from) {
        (Type::Float(Float::F32), Type::Float(Float::F16 | Float::Bf16)) => !rounded,
        (Type::Float(Float::F32 | Float::F64), from) => rounded && is_integer(from),
        (to, from) => !rounded && is_integer(to) && is_integer(from),
    };
    if !known {
        return Err(words.unknown());
    }
    Ok((ArithmeticOp::Convert { to, from, width: register.bits() as u8 }, vec![from]))
}
