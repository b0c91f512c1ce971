//! Operations on floats, and conversions.

use super::arithmetic::Typed;
use super::opcode::{self, Words};
use crate::error::BadText;
use crate::program::{ArithmeticOp, Clamp, Float, FloatOp, Mode, Packed, Rounding, Type};

/// The operation that the words name, if it is one on floats.
pub(super) fn operation(first: &str, words: &mut Words) -> Result<Option<Typed>, BadText> {
    let float = |word: &str| match opcode::ty(word)? {
        Type::Float(ty) => Some(ty),
        _ => None,
    };
    let Some(ty) = words.look(float) else { return Ok(None) };
    let (op, sources) = match first {
        "add" => (FloatOp::Add, 2),
        "sub" => (FloatOp::Sub, 2),
        "mul" => (FloatOp::Mul, 2),
        "div" => (FloatOp::Div, 2),
        "fma" | "mad" => (FloatOp::Fma, 3),
        "min" => (FloatOp::Min, 2),
        "max" => (FloatOp::Max, 2),
        "neg" => (FloatOp::Neg, 1),
        "abs" => (FloatOp::Abs, 1),
        "copysign" => (FloatOp::CopySign, 2),
        "sqrt" => (FloatOp::Sqrt, 1),
        "rcp" => (FloatOp::Rcp, 1),
        "rsqrt" => (FloatOp::Rsqrt, 1),
        "ex2" => (FloatOp::Ex2, 1),
        "lg2" => (FloatOp::Lg2, 1),
        "sin" => (FloatOp::Sin, 1),
        "cos" => (FloatOp::Cos, 1),
        "tanh" => (FloatOp::Tanh, 1),
        _ => return Ok(None),
    };
    let is_exact = matches!(op, FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Fma);
    let is_choice =
        matches!(op, FloatOp::Min | FloatOp::Max | FloatOp::Neg | FloatOp::Abs | FloatOp::CopySign);
    let direction = rounding(words);
    let near = ["approx", "full"].into_iter().any(|word| words.has(word));
    let mode =
        Mode { rounding: direction.unwrap_or_default(), nan: words.has("NaN"), ..mode(words) };
    let ty = (words.ty()? == Type::Float(ty)).then_some(ty).ok_or_else(|| words.unknown())?;
    let has_op = match ty {
        Float::F32 => true,
        Float::F64 => is_exact || is_choice || near || direction.is_some(),
        _ => is_exact || is_choice || matches!(op, FloatOp::Ex2 | FloatOp::Tanh) && near,
    };
    let fits = match direction {
        // Sums of f64, and all operations on narrow floats, are rounded to the nearest value alone.
        Some(direction) if direction != Rounding::Nearest => ty == Float::F32 && !near,
        Some(_) => !is_choice,
        None => is_exact || is_choice || near,
    };
    if !has_op || !fits || near && (is_exact || is_choice) || mode.nan && !is_choice {
        return Err(words.unknown());
    }
    Ok(Some((ArithmeticOp::Float { op, ty, mode }, vec![Type::Float(ty); sources])))
}

fn rounding(words: &mut Words) -> Option<Rounding> {
    words.find(|word| {
        Some(match word {
            "rn" => Rounding::Nearest,
            "rz" => Rounding::Zero,
            "rm" => Rounding::Down,
            "rp" => Rounding::Up,
            _ => return None,
        })
    })
}

fn mode(words: &mut Words) -> Mode {
    let clamp = match (words.has("sat"), words.has("relu")) {
        (true, _) => Clamp::Saturate,
        (_, true) => Clamp::Relu,
        _ => Clamp::None,
    };
    Mode { ftz: words.has("ftz"), clamp, ..Mode::default() }
}

/// The conversion that the words name, to a register of a type.
pub(super) fn conversion(words: &mut Words, register: Type) -> Result<Typed, BadText> {
    let packed = |words: &mut Words, names: &[(&str, Packed)]| {
        let mut names = names.iter();
        names.find(|(name, _)| words.has(name)).map(|(_, packed)| *packed)
    };
    let narrow = packed(words, &[("e4m3x2", Packed::E4m3x2), ("e5m2x2", Packed::E5m2x2)]);
    let half = packed(words, &[("f16x2", Packed::F16x2), ("bf16x2", Packed::Bf16x2)]);
    let integral = words.find(|word| {
        Some(match word {
            "rni" => Rounding::Nearest,
            "rzi" => Rounding::Zero,
            "rmi" => Rounding::Down,
            "rpi" => Rounding::Up,
            _ => return None,
        })
    });
    let direction = rounding(words);
    let finite = words.has("satfinite");
    let mode = Mode { rounding: direction.or(integral).unwrap_or_default(), ..mode(words) };
    let nearest = direction == Some(Rounding::Nearest);
    match (narrow, half) {
        (Some(from), Some(Packed::F16x2)) if nearest && !finite && mode == Mode::default() => {
            return Ok((ArithmeticOp::Widen { from }, vec![Type::Bits(16)]));
        }
        (Some(to), Some(Packed::F16x2)) if nearest && finite => {
            let op = ArithmeticOp::Narrow { to, from: Float::F16, mode };
            return Ok((op, vec![Type::Bits(32)]));
        }
        (None, Some(to)) | (Some(to), None) if direction.is_some() => {
            let fits = if half.is_some() { !finite } else { finite && nearest };
            let is_toward = matches!(mode.rounding, Rounding::Nearest | Rounding::Zero);
            if words.ty()? != Type::Float(Float::F32) || !fits || !is_toward {
                return Err(words.unknown());
            }
            return Ok((ArithmeticOp::Pack { to, mode }, vec![Type::Float(Float::F32); 2]));
        }
        (None, None) => {}
        _ => return Err(words.unknown()),
    }
    let (to, from) = (words.ty()?, words.ty()?);
    let is_integer = |ty| matches!(ty, Type::Unsigned(_) | Type::Signed(_));
    let directed = direction.is_some() && integral.is_none();
    let unrounded = direction.is_none() && integral.is_none();
    let known = !finite
        && match (to, from) {
            (Type::Float(to), Type::Float(from)) if to == from => direction.is_none(),
            (Type::Float(to), Type::Float(from)) if to.bits() > from.bits() => unrounded,
            (Type::Float(_), Type::Float(_)) => directed,
            (Type::Float(Float::F64), from) => directed && nearest && is_integer(from),
            (Type::Float(_), from) => directed && is_integer(from),
            (to, Type::Float(_)) => integral.is_some() && is_integer(to) && direction.is_none(),
            (to, from) => unrounded && is_integer(to) && is_integer(from),
        };
    if !known {
        return Err(words.unknown());
    }
    let (width, integral) = (register.bits() as u8, integral.is_some());
    Ok((ArithmeticOp::Convert { to, from, width, mode, integral }, vec![from]))
}
