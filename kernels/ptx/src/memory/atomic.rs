//! Atomic operations on memory.

use super::history::Strong;
use super::{Memory, Refusal, Target, Thread, strength};
use crate::arithmetic::evaluate;
use crate::assumptions::Assumption;
use crate::choices::Choices;
use crate::program::{
    ArithmeticOp, Float, FloatOp, MemoryAccess, Mode, ReduceOp, Scope, Semantics, Type,
};

/// An atomic operation on a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atomic {
    /// The operation.
    pub(crate) op: ReduceOp,
    /// Its values; the second one is that which `cas` stores.
    pub(crate) values: [u64; 2],
    /// Whether the thread gets the value before.
    pub(crate) returns: bool,
}

impl Memory {
    /// Performs an atomic operation. Returns the value before, and whether there is another one now.
    pub(crate) fn reduce(
        &mut self,
        choices: &mut Choices,
        access: &MemoryAccess,
        (thread, place): (Thread, u32),
        address: u64,
        Atomic { op, values, returns }: Atomic,
    ) -> Result<(u64, bool), Refusal> {
        let each = u64::from(access.ty.bytes());
        let target = self.target(thread, access.space, address, each)?;
        let clocks = &mut self.clocks;
        let (region, offset) = match target {
            Target::Global(global, offset) => (&mut self.globals[global].region, offset),
            Target::Shared(block, offset) => (&mut self.shared[block], offset),
            Target::Private(_) | Target::Const(_) => return Err(Refusal::Constant),
        };
        if !region.has_value(offset, each) {
            return Err(Refusal::NoValue(0));
        }
        let (semantics, rules) = (access.semantics, &self.rules);
        let counted = rules.has(Assumption::CountedBlocks);
        let strong = Strong {
            stamp: clocks.stamp(thread, place),
            scope: strength(access).unwrap_or(Scope::Gpu),
            acquires: matches!(semantics, Semantics::Acquire | Semantics::AcqRel)
                || rules.has(Assumption::PollsAcquire)
                || counted,
            acquires_counts: false,
            releases: matches!(semantics, Semantics::Release | Semantics::AcqRel)
                || rules.has(Assumption::FlagsRelease)
                || counted,
            whole: 0,
        };
        let flushes = matches!(target, Target::Global(..));
        let reduction = |old| match access.ty {
            Type::Float(ty) if !matches!(op, ReduceOp::Exch | ReduceOp::Cas) => {
                Some(reduced_float(op, ty, old, values[0], flushes))
            }
            ty => reduced(op, ty, old, values),
        };
        let by = (choices, &mut self.races);
        let before = region
            .reduce(clocks, by, &strong, (offset, each, returns || counted), reduction)
            .map_err(Refusal::Unordered)?;
        Ok((before, reduction(before).is_some_and(|value| value != before)))
    }
}

/// The result of an operation on an old float. Sums of f32 in global memory have no subnormal values.
fn reduced_float(op: ReduceOp, ty: Float, old: u64, value: u64, flushes: bool) -> u64 {
    let op = match op {
        ReduceOp::Min => FloatOp::Min,
        ReduceOp::Max => FloatOp::Max,
        _ => FloatOp::Add,
    };
    let mode = Mode { ftz: flushes && ty == Float::F32, ..Mode::default() };
    evaluate(ArithmeticOp::Float { op, ty, mode }, [old, value, 0, 0])
}

/// The result of an operation on an old integer, if one is stored.
pub(crate) fn reduced(op: ReduceOp, ty: Type, old: u64, [value, swap]: [u64; 2]) -> Option<u64> {
    let bits = ty.bits();
    let signed = |value: u64| (value << (64 - bits)) as i64 >> (64 - bits);
    let cut = |value: u64| value & (u64::MAX >> (64 - bits));
    let (old, value) = (cut(old), cut(value));
    let less = if ty.is_signed() { signed(value) < signed(old) } else { value < old };
    Some(cut(match op {
        ReduceOp::Add => old.wrapping_add(value),
        ReduceOp::Min => [old, value][usize::from(less)],
        ReduceOp::Max => [value, old][usize::from(less)],
        ReduceOp::And => old & value,
        ReduceOp::Or => old | value,
        ReduceOp::Xor => old ^ value,
        ReduceOp::Exch => value,
        ReduceOp::Cas if old == value => swap,
        ReduceOp::Cas => return None,
        ReduceOp::Inc if old >= value => 0,
        ReduceOp::Inc => old + 1,
        ReduceOp::Dec if old == 0 || old > value => value,
        ReduceOp::Dec => old - 1,
        ReduceOp::Popc => old,
    }))
}
