//! Accesses, fences, and conversions of addresses.

use super::body::Body;
use super::opcode::Words;
use crate::bad_text::BadText;
use crate::program::{
    Address, Base, Fence, Float, MemoryAccess, MulticastOp, Operand, Operation, Ordering, ReduceOp,
    Scope, Semantics, Slot, Space, Symbol, Type,
};
use crate::text::OperandText;

pub(super) fn operation(
    first: &str,
    words: &mut Words,
    body: &Body,
    operands: &[OperandText],
) -> Result<Operation, BadText> {
    match first {
        "fence" => fence(words),
        "membar" => membar(words),
        "cvta" => converted(words, body, operands),
        "isspacep" => {
            let [to, from] = operands else { return Err(words.error("it takes two operands")) };
            let space = words.space().ok_or_else(|| words.error("a space is missing"))?;
            let to = to_register(to, body, words)?;
            let from = body.source(from, Type::Unsigned(64), words.line)?;
            Ok(Operation::IsSpace { to, from, space })
        }
        "prefetch" | "prefetchu" | "applypriority" => {
            let (Some(place), true) = (operands.first(), operands.len() <= 2) else {
                return Err(words.error("it takes an address"));
            };
            address(place, body, words)?;
            words.space();
            drop_hints(words);
            words.drop(|word| ["L1", "L2"].contains(&word));
            Ok(Operation::Nothing)
        }
        "multimem" => multicast(words, body, operands),
        "createpolicy" => {
            let to = operands.first().ok_or_else(|| words.unknown())?;
            let to = to_register(to, body, words)?;
            // A policy has no effect on values.
            words.drop(|_| true);
            Ok(Operation::Move { to, from: Operand::Value(0) })
        }
        _ => accessed(first, words, body, operands),
    }
}

fn to_register(operand: &OperandText, body: &Body, words: &Words) -> Result<Slot, BadText> {
    let result = body.result(operand, words.line)?;
    Ok(result.ok_or_else(|| words.error("its result is not wanted"))?.slot)
}

fn multicast(
    words: &mut Words,
    body: &Body,
    operands: &[OperandText],
) -> Result<Operation, BadText> {
    let kind = ["ld_reduce", "st", "red"].into_iter().find(|word| words.has(word));
    let kind = kind.ok_or_else(|| words.unknown())?;
    let wide = words.has("acc::f32");
    let op = match kind {
        "st" => MulticastOp::Store,
        "red" => MulticastOp::Reduce(reduction(words)?),
        _ => MulticastOp::LoadReduce(reduction(words)?, wide),
    };
    let first = if kind == "ld_reduce" { "ld" } else { kind };
    if words.space().is_some_and(|space| space != Space::Global) {
        return Err(words.unknown());
    }
    let (access, place, values) = access(first, words, operands)?;
    let address = address(place, body, words)?;
    let access = MemoryAccess { space: Space::Global, address, ..access };
    let (mut to, mut from) = (Vec::new(), Vec::new());
    for value in values {
        if kind == "ld_reduce" {
            to.push(body.result(value, words.line)?.map(|register| register.slot));
        } else {
            from.push(body.source(value, access.ty, words.line)?);
        }
    }
    Ok(Operation::Multicast { op, access, from: from.into(), to: to.into() })
}

fn fence(words: &mut Words) -> Result<Operation, BadText> {
    if words.has("proxy") {
        if words.has("alias") {
            return Ok(Operation::FenceAliases);
        }
        // No copy is asynchronous.
        let is_proxy = ["async", "async::generic", "async.global", "async.shared::cta"];
        let known = is_proxy.into_iter().any(|word| words.has(word));
        words.space();
        return if known { Ok(Operation::Nothing) } else { Err(words.unknown()) };
    }
    let ordering = words.find(|word| {
        Some(match word {
            "acq_rel" => Ordering::AcqRel,
            "acquire" => Ordering::Acquire,
            "release" => Ordering::Release,
            "sc" => Ordering::SeqCst,
            _ => return None,
        })
    });
    let scope = words.scope().ok_or_else(|| words.error("a scope is missing"))?;
    Ok(Operation::Fence(Fence { ordering: ordering.unwrap_or(Ordering::AcqRel), scope }))
}

/// A fence by its old name: a sequentially consistent one.
fn membar(words: &mut Words) -> Result<Operation, BadText> {
    let scope = words.find(|word| {
        Some(match word {
            "cta" => Scope::Cta,
            "gl" => Scope::Gpu,
            "sys" => Scope::Sys,
            _ => return None,
        })
    });
    let scope = scope.ok_or_else(|| words.unknown())?;
    Ok(Operation::Fence(Fence { ordering: Ordering::SeqCst, scope }))
}

/// Takes what has no effect on values: cache operators, and hints for eviction and for fetching ahead.
fn drop_hints(words: &mut Words) {
    const OPERATORS: [&str; 8] = ["ca", "cg", "cs", "cv", "lu", "wb", "wt", "noftz"];
    words.drop(|word| {
        word.starts_with("L1::") || word.starts_with("L2::") || OPERATORS.contains(&word)
    });
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
    let to = to_register(to, body, words)?;
    let from = body.source(from, ty, words.line)?;
    Ok(if back {
        Operation::FromGeneric { to, from, space }
    } else {
        Operation::ToGeneric { to, from, space }
    })
}

/// The parts of an access that its words tell, the operand of its address, and those of its values.
type Parts<'t> = (MemoryAccess, &'t OperandText, &'t [OperandText]);

fn access<'t>(
    first: &str,
    words: &mut Words,
    operands: &'t [OperandText],
) -> Result<Parts<'t>, BadText> {
    let semantics = words.find(|word| {
        Some(match word {
            "weak" => Semantics::Weak,
            "relaxed" => Semantics::Relaxed,
            "acquire" => Semantics::Acquire,
            "release" => Semantics::Release,
            "acq_rel" => Semantics::AcqRel,
            "volatile" => Semantics::Volatile,
            _ => return None,
        })
    });
    // An atomic operation without an order is relaxed, and an access is weak.
    let is_atomic = matches!(first, "red" | "atom");
    let default = if is_atomic { Semantics::Relaxed } else { Semantics::Weak };
    let semantics = semantics.unwrap_or(default);
    let _ = !is_atomic && words.has("mmio");
    let scope = match (semantics, words.scope()) {
        (Semantics::Weak, None) => None,
        (Semantics::Volatile, None) => Some(Scope::Sys),
        (Semantics::Weak | Semantics::Volatile, Some(_)) | (_, None) if !is_atomic => {
            return Err(words.error("the order does not fit the scope"));
        }
        (_, scope) => Some(scope.unwrap_or(Scope::Gpu)),
    };
    let allowed = match first {
        "ld" => !matches!(semantics, Semantics::Release | Semantics::AcqRel),
        "st" => !matches!(semantics, Semantics::Acquire | Semantics::AcqRel),
        "red" => matches!(semantics, Semantics::Relaxed | Semantics::Release),
        _ => !matches!(semantics, Semantics::Weak | Semantics::Volatile),
    };
    if !allowed {
        return Err(words.error("the order is not one of this access"));
    }
    let has_policy = words.look(|word| (word == "L2::cache_hint").then_some(())).is_some();
    drop_hints(words);
    let operands = &operands[..operands.len() - usize::from(has_policy && operands.len() > 2)];
    let elements = words.find(|word| match word {
        "v2" => Some(2),
        "v4" => Some(4),
        _ => None,
    });
    let elements = elements.unwrap_or(1);
    let ty = words.ty()?;
    if ty == Type::Pred || ty.bytes() * u32::from(elements) > 16 {
        return Err(words.error("the access has no such type"));
    }
    let (("ld", [value, place]) | (_, [place, value])) = (first, operands) else {
        return Err(words.error("it takes two operands"));
    };
    let values = match value {
        OperandText::Vector(values) if values.len() == usize::from(elements) => &values[..],
        _ if elements == 1 => std::slice::from_ref(value),
        _ => return Err(words.error("the number of elements does not fit")),
    };
    let used_bytes = u32::MAX >> (32 - ty.bytes() * u32::from(elements));
    let address = Address { base: Base::Value(0), offset: 0 };
    let (space, non_coherent) = (Space::Generic, false);
    let access =
        MemoryAccess { space, ty, elements, semantics, scope, non_coherent, used_bytes, address };
    Ok((access, place, values))
}

fn accessed(
    first: &str,
    words: &mut Words,
    body: &Body,
    operands: &[OperandText],
) -> Result<Operation, BadText> {
    let space = words.space().unwrap_or(Space::Generic);
    let non_coherent = words.has("nc");
    let op = if matches!(first, "red" | "atom") { Some(reduction(words)?) } else { None };
    // The result of an atomic operation is before its address, and the second value of `cas` is behind the first.
    let (mut operands, mut to, mut swap) = (operands, None, None);
    if first == "atom" {
        let [result, rest @ ..] = operands else { return Err(words.unknown()) };
        (operands, to) = (rest, body.result(result, words.line)?.map(|register| register.slot));
    }
    if op == Some(ReduceOp::Cas) {
        let [_, _, last, ..] = operands else {
            return Err(words.error("it takes an address and two values"));
        };
        (operands, swap) = (&operands[..2], Some(last));
    }
    let (access, place, values) = access(first, words, operands)?;
    let MemoryAccess { ty, elements, semantics, used_bytes, .. } = access;
    if non_coherent && (first != "ld" || space != Space::Global || semantics != Semantics::Weak) {
        return Err(words.error("`.nc` is for weak loads from global memory"));
    }
    if op.is_some_and(|op| elements > 1 || !has_type(op, ty)) {
        return Err(words.error("the access has no such type"));
    }
    let used_bytes = body.used_bytes.unwrap_or(used_bytes) & used_bytes;
    let address = address(place, body, words)?;
    let access = MemoryAccess { space, non_coherent, used_bytes, address, ..access };
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
    let Some(op) = op else { return Ok(Operation::Store { access, from }) };
    let second = swap.map(|swap| body.source(swap, ty, words.line)).transpose()?;
    let from = [from[0], second.unwrap_or(Operand::Value(0))];
    Ok(Operation::Reduce { access, op, from, returns: first == "atom", to })
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
            "exch" => ReduceOp::Exch,
            "cas" => ReduceOp::Cas,
            "inc" => ReduceOp::Inc,
            "dec" => ReduceOp::Dec,
            _ => return None,
        })
    });
    op.ok_or_else(|| words.unknown())
}

/// Whether an atomic operation has a type.
fn has_type(op: ReduceOp, ty: Type) -> bool {
    match op {
        ReduceOp::Add => match ty {
            Type::Unsigned(bits) => bits >= 32,
            Type::Signed(bits) => bits == 32,
            Type::Float(_) => true,
            _ => false,
        },
        ReduceOp::Min | ReduceOp::Max => match ty {
            Type::Unsigned(bits) | Type::Signed(bits) => bits >= 32,
            Type::Float(ty) => !matches!(ty, Float::F32 | Float::F64),
            _ => false,
        },
        ReduceOp::Cas => matches!(ty, Type::Bits(16 | 32 | 64)),
        ReduceOp::Inc | ReduceOp::Dec => ty == Type::Unsigned(32),
        _ => matches!(ty, Type::Bits(32 | 64)),
    }
}

fn address(operand: &OperandText, body: &Body, words: &Words) -> Result<Address, BadText> {
    let OperandText::Address(base, offset) = operand else {
        return Err(words.error("an address in brackets is missing"));
    };
    let offset = *offset;
    if i32::try_from(offset).is_err() {
        return Err(words.error("the offset of an address has 32 bits"));
    }
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
        Symbol::Variable(number, offset) => Symbol::Variable(number, offset.wrapping_add(by)),
        Symbol::Local(offset) => Symbol::Local(offset.wrapping_add(by)),
        Symbol::Param(offset) => Symbol::Param(offset.wrapping_add(by)),
    }
}
