//! Branches, calls, barriers, and the exchange between lanes.

use super::body::Body;
use super::opcode::Words;
use crate::error::BadText;
use crate::program::{
    Address, Barrier, Base, Call, Collect, CollectMode, MemoryAccess, Operand, Operation,
    Parameter, ReduceOp, Semantics, Shuffle, ShuffleMode, Slot, Space, Symbol, Type, Vote,
    VoteMode,
};
use crate::text::OperandText;

pub(super) fn operation(
    first: &str,
    words: &mut Words,
    body: &Body,
    operands: &[OperandText],
) -> Result<Operation, BadText> {
    match (first, operands) {
        ("ret", []) => {
            words.has("uni");
            Ok(Operation::Return)
        }
        ("exit", []) => Ok(Operation::Exit),
        ("trap" | "brkpt", []) => Ok(Operation::Trap),
        ("pmevent", _) => {
            words.has("mask");
            Ok(Operation::Nothing)
        }
        ("nanosleep", [duration]) if words.has("u32") => {
            body.source(duration, Type::Unsigned(32), words.line)?;
            Ok(Operation::Pause)
        }
        ("activemask", [to]) if words.has("b32") => {
            let result = body.result(to, words.line)?;
            let to = result.ok_or_else(|| words.error("its result is not wanted"))?.slot;
            Ok(Operation::ActiveMask { to })
        }
        ("match" | "redux" | "elect", _) => collect(first, words, body, operands),
        ("bra", [OperandText::Name(name)]) => {
            let uniform = words.has("uni");
            Ok(Operation::Branch { target: body.label(name, words.line)?, uniform })
        }
        ("griddepcontrol", []) if words.has("launch_dependents") => Ok(Operation::LaunchDependents),
        ("griddepcontrol", []) if words.has("wait") => Ok(Operation::WaitForLaunches),
        ("call", _) => call(words, body, operands),
        ("barrier", []) if words.has("cluster") => {
            words.has("aligned");
            let relaxed = words.has("relaxed");
            if words.has("arrive") {
                words.has("release");
                Ok(Operation::ClusterArrive { releases: !relaxed })
            } else if words.has("wait") {
                words.has("acquire");
                Ok(Operation::ClusterWait { acquires: !relaxed })
            } else {
                Err(words.unknown())
            }
        }
        ("mapa", [to, from, rank]) => {
            let (to, from) = in_cluster(words, body, (to, from))?;
            let rank = body.source(rank, Type::Unsigned(32), words.line)?;
            Ok(Operation::MapShared { to, from, rank })
        }
        ("getctarank", [to, from]) => {
            let (to, from) = in_cluster(words, body, (to, from))?;
            Ok(Operation::RankOfShared { to, from })
        }
        ("bar" | "barrier", _) => barrier(words, body, operands),
        ("shfl", _) => shuffle(words, body, operands),
        ("vote", _) => vote(words, body, operands),
        _ => Err(words.unknown()),
    }
}

/// The offset of a parameter of a call in the frame.
fn param(body: &Body, words: &Words, name: &str) -> Result<u32, BadText> {
    match body.symbol(name) {
        Some(Symbol::Param(offset)) => Ok(offset as u32),
        _ => Err(words.error(format_args!("`{name}` is not in parameter space"))),
    }
}

fn call(words: &mut Words, body: &Body, operands: &[OperandText]) -> Result<Operation, BadText> {
    words.has("uni");
    let (returns, name, arguments) = match operands {
        [OperandText::List(returns), OperandText::Name(name), OperandText::List(arguments)] => {
            (&returns[..], name, &arguments[..])
        }
        [OperandText::List(returns), OperandText::Name(name)] => (&returns[..], name, &[][..]),
        [OperandText::Name(name), OperandText::List(arguments)] => (&[][..], name, &arguments[..]),
        [OperandText::Name(name)] => (&[][..], name, &[][..]),
        _ => return Err(words.error("only direct calls are in the subset")),
    };
    if body.function(name).is_none() && [PRINT, ASSERT].contains(&name.as_str()) {
        return host_call(name, words, body, (returns, arguments));
    }
    let (function, frame) = body
        .function(name)
        .ok_or_else(|| words.error(format_args!("`{name}` has no body in the module")))?;
    if arguments.len() != frame.parameters.len() || returns.len() != frame.returns.len() {
        return Err(words.error(format_args!("`{name}` has other parameters")));
    }
    let offsets = |names: &[String], of: &[Parameter]| -> Result<Box<[u32]>, BadText> {
        let offset = |(name, of): (&String, &Parameter)| {
            let offset = param(body, words, name)?;
            if offset + of.bytes > body.most_bytes {
                return Err(
                    words.error(format_args!("`{name}` has fewer bytes than `{}`", of.name))
                );
            }
            Ok(offset)
        };
        names.iter().zip(of).map(offset).collect()
    };
    let (arguments, returns) =
        (offsets(arguments, &frame.parameters)?, offsets(returns, &frame.returns)?);
    Ok(Operation::Call(Call { function, arguments, returns }))
}

/// Functions of the driver that print, and that end a launch.
const PRINT: &str = "vprintf";
const ASSERT: &str = "__assertfail";

/// Bytes of their widest parameter.
const HOST_BYTES: u32 = 8;

/// A call of a function that the driver has.
fn host_call(
    name: &str,
    words: &Words,
    body: &Body,
    (returns, arguments): (&[String], &[String]),
) -> Result<Operation, BadText> {
    let offset = |name: &String| {
        let offset = param(body, words, name)?;
        let end = offset + HOST_BYTES;
        if end <= body.most_bytes { Ok(offset) } else { Err(words.unknown()) }
    };
    let last = arguments.len().saturating_sub(usize::from(name == ASSERT));
    let arguments = arguments[..last].iter().map(offset).collect::<Result<Vec<u32>, _>>()?;
    match (name, returns, &arguments[..]) {
        (ASSERT, [], [text, file, line, function]) => {
            Ok(Operation::Assert { texts: [*text, *file, *function], line: *line })
        }
        // What is printed does not show.
        (PRINT, [], [_, _]) => Ok(Operation::Nothing),
        (PRINT, [result], [_, _]) => {
            let ty = Type::Bits(32);
            let access = MemoryAccess {
                space: Space::Param,
                ty,
                elements: 1,
                semantics: Semantics::Weak,
                scope: None,
                non_coherent: false,
                used_bytes: 0xf,
                address: Address {
                    base: Base::Symbol(Symbol::Param(param(body, words, result)?.into())),
                    offset: 0,
                },
            };
            Ok(Operation::Store { access, from: Box::new([Operand::Value(0)]) })
        }
        _ => Err(words.error(format_args!("`{name}` has other parameters"))),
    }
}

/// The result and the source of an operation on addresses of shared memory in a cluster.
fn in_cluster(
    words: &mut Words,
    body: &Body,
    (to, from): (&OperandText, &OperandText),
) -> Result<(Slot, Operand), BadText> {
    words.space();
    let ty = words.ty()?;
    if !matches!(ty, Type::Unsigned(32 | 64)) {
        return Err(words.unknown());
    }
    let result = body.result(to, words.line)?;
    let to = result.ok_or_else(|| words.error("its result is not wanted"))?.slot;
    Ok((to, body.source(from, ty, words.line)?))
}

fn collect(
    first: &str,
    words: &mut Words,
    body: &Body,
    operands: &[OperandText],
) -> Result<Operation, BadText> {
    if !words.has("sync") {
        return Err(words.unknown());
    }
    let line = words.line;
    let slot = |name: &str| match name {
        "_" => Ok(None),
        _ => body.register(name, line).map(|register| Some(register.slot)),
    };
    let result = |operand: &OperandText| match operand {
        OperandText::Pair(to, is) => Ok((slot(to)?, slot(is)?)),
        OperandText::Name(to) => Ok((slot(to)?, None)),
        _ => Err(words.error("a result that is not a register")),
    };
    let mask = |operand| body.source(operand, Type::Bits(32), line);
    if let ("elect", [to, lanes]) = (first, operands) {
        let ((to, is), mask) = (result(to)?, mask(lanes)?);
        let (mode, from) = (CollectMode::Elect, Operand::Value(0));
        return Ok(Operation::Collect(Collect { mode, to, is, from, mask }));
    }
    let [to, from, lanes] = operands else {
        return Err(words.error("it takes a result, a value and a mask"));
    };
    let ((to, is), mask) = (result(to)?, mask(lanes)?);
    let ops = [
        ("any", CollectMode::Any(0)),
        ("all", CollectMode::All(0)),
        ("add", CollectMode::Reduce(ReduceOp::Add, Type::Pred)),
        ("min", CollectMode::Reduce(ReduceOp::Min, Type::Pred)),
        ("max", CollectMode::Reduce(ReduceOp::Max, Type::Pred)),
        ("and", CollectMode::Reduce(ReduceOp::And, Type::Pred)),
        ("or", CollectMode::Reduce(ReduceOp::Or, Type::Pred)),
        ("xor", CollectMode::Reduce(ReduceOp::Xor, Type::Pred)),
    ];
    let found = ops.into_iter().find(|(name, _)| words.has(name));
    let (_, mode) = found.ok_or_else(|| words.unknown())?;
    let ty = words.ty()?;
    let mode = match (first, mode, ty) {
        ("match", CollectMode::Any(_), Type::Bits(bits @ (32 | 64))) => CollectMode::Any(bits),
        ("match", CollectMode::All(_), Type::Bits(bits @ (32 | 64))) => CollectMode::All(bits),
        (
            "redux",
            CollectMode::Reduce(op @ (ReduceOp::And | ReduceOp::Or | ReduceOp::Xor), _),
            _,
        ) if ty == Type::Bits(32) => CollectMode::Reduce(op, ty),
        (
            "redux",
            CollectMode::Reduce(op @ (ReduceOp::Add | ReduceOp::Min | ReduceOp::Max), _),
            _,
        ) if matches!(ty, Type::Unsigned(32) | Type::Signed(32)) => CollectMode::Reduce(op, ty),
        _ => return Err(words.unknown()),
    };
    let from = body.source(from, ty, line)?;
    Ok(Operation::Collect(Collect { mode, to, is, from, mask }))
}

fn barrier(words: &mut Words, body: &Body, operands: &[OperandText]) -> Result<Operation, BadText> {
    let line = words.line;
    let number = |operand| body.source(operand, Type::Bits(32), line);
    // Barriers of whole warps are those of which all lanes stand together; lanes that stand apart come one by one.
    words.has("cta");
    words.has("aligned");
    if words.has("warp") {
        let [mask] = operands else { return Err(words.error("it takes a mask")) };
        let mask = body.source(mask, Type::Bits(32), words.line)?;
        return if words.has("sync") {
            Ok(Operation::WarpSync { mask })
        } else {
            Err(words.unknown())
        };
    }
    let barrier = match operands {
        [id] => Barrier { id: number(id)?, count: None, waits: true, reduction: None },
        [id, count] => {
            Barrier { id: number(id)?, count: Some(number(count)?), waits: true, reduction: None }
        }
        [to, id, rest @ .., from] => {
            let result = body.result(to, words.line)?;
            let to = result.ok_or_else(|| words.error("its result is not wanted"))?.slot;
            let (from, negated) = body.truth(from, words.line)?;
            let count = match rest {
                [] => None,
                [count] => Some(number(count)?),
                _ => return Err(words.error("it takes at most four operands")),
            };
            let id = number(id)?;
            let ops = [("or", ReduceOp::Or), ("and", ReduceOp::And), ("popc", ReduceOp::Popc)];
            let op = ops.into_iter().find(|(name, _)| words.has(name));
            let (_, op) = op.filter(|_| words.has("red")).ok_or_else(|| words.unknown())?;
            let result = if op == ReduceOp::Popc { Type::Unsigned(32) } else { Type::Pred };
            if words.ty()? != result {
                return Err(words.unknown());
            }
            let reduction = Some((op, to, from, negated));
            return Ok(Operation::Barrier(Barrier { id, count, waits: true, reduction }));
        }
        [] => return Err(words.error("the number of the barrier is missing")),
    };
    let waits = words.has("sync");
    if !waits && !words.has("arrive") {
        return Err(words.unknown());
    }
    Ok(Operation::Barrier(Barrier { waits, ..barrier }))
}

fn shuffle(words: &mut Words, body: &Body, operands: &[OperandText]) -> Result<Operation, BadText> {
    let modes = [
        ("idx", ShuffleMode::Idx),
        ("up", ShuffleMode::Up),
        ("down", ShuffleMode::Down),
        ("bfly", ShuffleMode::Bfly),
    ];
    let mode = modes.into_iter().find(|(name, _)| words.has(name));
    let (_, mode) = mode.filter(|_| words.has("sync")).ok_or_else(|| words.unknown())?;
    let [to, from, lane, clamp, mask] = operands else {
        return Err(words.error("it takes five operands"));
    };
    if words.ty()? != Type::Bits(32) {
        return Err(words.unknown());
    }
    let (to, valid) = match to {
        OperandText::Pair(to, valid) => {
            (body.register(to, words.line)?.slot, Some(body.register(valid, words.line)?.slot))
        }
        OperandText::Name(to) => (body.register(to, words.line)?.slot, None),
        _ => return Err(words.error("a result that is not a register")),
    };
    let source = |operand| body.source(operand, Type::Bits(32), words.line);
    let (from, lane, clamp, mask) = (source(from)?, source(lane)?, source(clamp)?, source(mask)?);
    Ok(Operation::Shuffle(Shuffle { mode, to, valid, from, lane, clamp, mask }))
}

fn vote(words: &mut Words, body: &Body, operands: &[OperandText]) -> Result<Operation, BadText> {
    let modes = [
        ("all", VoteMode::All),
        ("any", VoteMode::Any),
        ("uni", VoteMode::Uni),
        ("ballot", VoteMode::Ballot),
    ];
    let mode = modes.into_iter().find(|(name, _)| words.has(name));
    let (_, mode) = mode.filter(|_| words.has("sync")).ok_or_else(|| words.unknown())?;
    let result = if mode == VoteMode::Ballot { Type::Bits(32) } else { Type::Pred };
    if words.ty()? != result {
        return Err(words.unknown());
    }
    let [OperandText::Name(to), from, mask] = operands else {
        return Err(words.error("it takes a register, a truth value and a mask"));
    };
    let to = body.register(to, words.line)?.slot;
    let (from, negated) = body.truth(from, words.line)?;
    let mask = body.source(mask, Type::Bits(32), words.line)?;
    Ok(Operation::Vote(Vote { mode, to, from, negated, mask }))
}
