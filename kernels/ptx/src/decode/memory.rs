//! Accesses, fences, and conversions of addresses.

use super::body::Body;
use super::opcode::Words;
use crate::error::BadText;
use crate::program::{
    Address, Base, Fence, MemoryAccess, Operand, Operation, Ordering, ReduceOp, Scope, Semantics,
    Space, Symbol, Type,
};
use crate::text::OperandText;

pub(super) fn operation(
    first: &str,
    words: &mut Words,
    body: &Body,
    operands: &[OperandText],
) -> Result<Operation, BadText> {
    match first {
        "fence" => {
            let ordering = match (words.has("acq_rel"), words.has("sc")) {
                (true, false) => Ordering::AcqRel,
                (false, true) => Ordering::SeqCst,
                _ => return Err(words.unknown()),
            };
            let scope = words.scope().ok_or_else(|| words.error("a scope is missing"))?;
            Ok(Operation::Fence(Fence { ordering, scope }))
        }
        "cvta" => converted(words, body, operands),
        _ => accessed(first, words, body, operands),
    }
}

fn converted(
    words: &mut Words,
    body: &Body,
    operands: &[OperandText],
) -> Result<Operation, BadText> {
    let [to, from] = operands else { return Err(words.error("it takes two operands")) };
    let back = words.has("to");
    let space = words.space().ok_or_else(|| words.error("a space is missing"))?;
    let ty = words.ty()?;
    if ty != Type::Unsigned(64) {
        return Err(words.unknown());
    }
    let result = body.result(to, words.line)?;
    let to = result.ok_or_else(|| words.error("its result is not wanted"))?.slot;
    let from = body.source(from, ty, words.line)?;
    Ok(if back {
        Operation::FromGeneric { to, from, space }
    } else {
        Operation::ToGeneric { to, from, space }
    })
}

fn accessed(
    first: &str,
    words: &mut Words,
    body: &Body,
    operands: &[OperandText],
) -> Result<Operation, BadText> {
    let semantics = words.find(|word| {
        Some(match word {
            "weak" => Semantics::Weak,
            "relaxed" => Semantics::Relaxed,
            "acquire" => Semantics::Acquire,
            "release" => Semantics::Release,
            "volatile" => Semantics::Volatile,
            _ => return None,
        })
    });
    // A reduction without an order is relaxed, and an access is weak.
    let default = if first == "red" { Semantics::Relaxed } else { Semantics::Weak };
    let semantics = semantics.unwrap_or(default);
    let scope = match (semantics, words.scope()) {
        (Semantics::Weak, None) => None,
        (Semantics::Volatile, None) => Some(Scope::Sys),
        (Semantics::Weak | Semantics::Volatile, Some(_)) | (_, None) if first != "red" => {
            return Err(words.error("the order does not fit the scope"));
        }
        (_, scope) => Some(scope.unwrap_or(Scope::Gpu)),
    };
    let allowed = match first {
        "ld" => semantics != Semantics::Release,
        "st" => semantics != Semantics::Acquire,
        _ => matches!(semantics, Semantics::Relaxed | Semantics::Release),
    };
    if !allowed {
        return Err(words.error("the order is not one of this access"));
    }
    let space = words.space().unwrap_or(Space::Generic);
    let non_coherent = words.has("nc");
    if non_coherent && (first != "ld" || space != Space::Global || semantics != Semantics::Weak) {
        return Err(words.error("`.nc` is for weak loads from global memory"));
    }
    // A hint for the cache has no effect on values.
    words.has("L1::no_allocate");
    let elements = words.find(|word| match word {
        "v2" => Some(2),
        "v4" => Some(4),
        _ => None,
    });
    let elements = elements.unwrap_or(1);
    let op = if first == "red" { Some(reduction(words)?) } else { None };
    let ty = words.ty()?;
    if ty == Type::Pred || ty.bytes() * u32::from(elements) > 16 {
        return Err(words.error("the access has no such type"));
    }
    let (("ld", [value, place]) | (_, [place, value])) = (first, operands) else {
        return Err(words.error("it takes two operands"));
    };
    let all = u32::MAX >> (32 - ty.bytes() * u32::from(elements));
    let used_bytes = body.used_bytes.unwrap_or(all) & all;
    let address = address(place, body, words)?;
    let access =
        MemoryAccess { space, ty, elements, semantics, scope, non_coherent, used_bytes, address };
    let values = match value {
        OperandText::Vector(values) if values.len() == usize::from(elements) => &values[..],
        _ if elements == 1 => std::slice::from_ref(value),
        _ => return Err(words.error("the number of elements does not fit")),
    };
    if first == "ld" {
        let mut to = Vec::new();
        for value in values {
            let register = body.result(value, words.line)?;
            to.push(register.map(|register| (register.slot, register.ty.bits() as u8)));
        }
        return Ok(Operation::Load { access, to: to.into() });
    }
    let from = values.iter().map(|value| body.source(value, ty, words.line));
    let from = from.collect::<Result<Box<[_]>, _>>()?;
    Ok(match op {
        Some(op) => Operation::Reduce {
            access,
            op,
            from: [from[0], Operand::Value(0)],
            returns: false,
            to: None,
        },
        None => Operation::Store { access, from },
    })
}

fn reduction(words: &mut Words) -> Result<ReduceOp, BadText> {
    let op = words.find(|word| {
        Some(match word {
            "add" => ReduceOp::Add,
            "min" => ReduceOp::Min,
            "max" => ReduceOp::Max,
            "and" => ReduceOp::And,
            "or" => ReduceOp::Or,
            "xor" => ReduceOp::Xor,
            _ => return None,
        })
    });
    op.ok_or_else(|| words.unknown())
}

fn address(operand: &OperandText, body: &Body, words: &Words) -> Result<Address, BadText> {
    let OperandText::Address(base, offset) = operand else {
        return Err(words.error("an address in brackets is missing"));
    };
    let offset = *offset;
    match &**base {
        OperandText::Integer(value) => Ok(Address { base: Base::Value(*value), offset }),
        OperandText::Name(name) => {
            if let Some(symbol) = body.symbol(name) {
                return Ok(Address { base: Base::Symbol(moved(symbol, offset)), offset: 0 });
            }
            let register = body.register(name, words.line)?;
            Ok(Address { base: Base::Slot(register.slot), offset })
        }
        _ => Err(words.error("an address that is neither a name nor a number")),
    }
}

/// Returns a symbol with an offset added.
fn moved(symbol: Symbol, by: i64) -> Symbol {
    match symbol {
        Symbol::Variable(number, offset) => Symbol::Variable(number, offset + by),
        Symbol::Local(offset) => Symbol::Local(offset + by),
        Symbol::Param(offset) => Symbol::Param(offset + by),
    }
}
