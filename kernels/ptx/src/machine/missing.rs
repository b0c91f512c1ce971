//! Bytes of registers that come from local memory that nothing has stored. A program may copy these bytes, as a copy of a
//! struct with unset fields does, and compute with them; nothing that shows may depend on them.

use super::fault::FaultKind;
use super::image::lanes;
use super::warp::{Missing, Warp};
use super::{Failed, Machine};
use crate::memory::LANES;
use crate::program::{
    Arithmetic, ArithmeticOp, Base, Instruction, Logic, MemoryAccess, Operand, Operation, Slot,
    Type,
};

/// All bytes of a register.
const WHOLE: u8 = u8::MAX;

const NONE: Missing = [0; LANES as usize];

fn both(a: &Missing, b: &Missing) -> Missing {
    std::array::from_fn(|lane| a[lane] | b[lane])
}

/// The result of a computation that depends on whole values.
fn spread(missing: &Missing) -> Missing {
    missing.map(|bytes| if bytes == 0 { 0 } else { WHOLE })
}

/// The low bytes of a register.
fn low(bits: u32) -> u8 {
    WHOLE >> (8 - (bits / 8).clamp(1, 8))
}

impl Machine<'_> {
    /// Fails where the effect of an instruction depends on missing bytes, in lanes `all` by its guard, and in lanes `mask`.
    pub(super) fn refuse_missing(
        &self,
        number: usize,
        (base, all, mask): (u32, u32, u32),
        instruction: &Instruction,
    ) -> Result<(), Failed> {
        let warp = &self.warps[number];
        let refuse = |what: &'static str, among: u32, slot: Operand| {
            let missing = warp.missing(base, slot);
            let lanes = lanes(among).filter(|&lane| missing[lane as usize] != 0);
            let lanes = lanes.fold(0, |all, lane| all | 1 << lane);
            if lanes == 0 { Ok(()) } else { Err((FaultKind::Unset { what }, lanes)) }
        };
        if let Some(guard) = instruction.guard {
            refuse("a condition", all, Operand::Slot(guard.slot))?;
        }
        let address = |access: &MemoryAccess| match access.address.base {
            Base::Slot(slot) => refuse("an address", mask, Operand::Slot(slot)),
            Base::Value(_) | Base::Symbol(_) => Ok(()),
        };
        let exchange = |operands: &[Operand]| {
            operands.iter().try_for_each(|&from| refuse("a barrier or exchange", mask, from))
        };
        match &instruction.operation {
            Operation::Load { access, .. } | Operation::Store { access, .. } => address(access),
            Operation::Reduce { access, from, .. } => {
                address(access)?;
                from.iter().try_for_each(|&from| refuse("a reduction on memory", mask, from))
            }
            Operation::Barrier(barrier) => {
                let value = barrier.reduction.map_or(barrier.id, |(_, _, from, _)| from);
                exchange(&[barrier.id, barrier.count.unwrap_or(barrier.id), value])
            }
            Operation::Shuffle(shuffle) => exchange(&[shuffle.lane, shuffle.clamp, shuffle.mask]),
            Operation::Vote(vote) => exchange(&[vote.from, vote.mask]),
            Operation::Multicast { access, from, .. } => {
                address(access)?;
                from.iter().try_for_each(|&from| refuse("a store", mask, from))
            }
            Operation::Collect(collect) => exchange(&[collect.from, collect.mask]),
            Operation::WarpSync { mask } => exchange(&[*mask]),
            _ => Ok(()),
        }
    }
}

impl Warp {
    /// The missing bytes of the results of an instruction that only reads and writes registers.
    pub(super) fn missing_results(&self, base: u32, operation: &Operation) -> Vec<(Slot, Missing)> {
        let of = |operand: Operand| self.missing(base, operand);
        match operation {
            Operation::Move { to, from } => vec![(*to, of(*from))],
            Operation::ToGeneric { to, from, .. }
            | Operation::FromGeneric { to, from, .. }
            | Operation::IsSpace { to, from, .. }
            | Operation::MapShared { to, from, .. }
            | Operation::RankOfShared { to, from } => {
                vec![(*to, spread(&of(*from)))]
            }
            Operation::Unpack { to, from, bits } => {
                let missing = of(*from);
                let pieces = (0..).zip(to).filter_map(|(piece, slot)| Some((piece, (*slot)?)));
                let shift = bits / 8;
                pieces
                    .map(|(piece, slot)| (slot, missing.map(|m| m >> (piece * shift) & low(*bits))))
                    .collect()
            }
            Operation::Join { to, from, bits } => {
                let piece = |(piece, &from): (u32, &Operand)| {
                    of(from).map(|missing| (missing & low(*bits)) << (piece * bits / 8))
                };
                let all = (0..).zip(from).map(piece).fold(NONE, |all, piece| both(&all, &piece));
                vec![(*to, all)]
            }
            Operation::Arithmetic(arithmetic) => {
                vec![(arithmetic.to, self.missing_result(base, arithmetic))]
            }
            _ => Vec::new(),
        }
    }

    fn missing_result(&self, base: u32, arithmetic: &Arithmetic) -> Missing {
        let [a, b, c, d] = arithmetic.from.map(|from| self.missing(base, from));
        match arithmetic.op {
            ArithmeticOp::Selp(_) => {
                let chosen = self.values(base, arithmetic.from[2]);
                let negated = u64::from(arithmetic.negated >> 2 & 1);
                std::array::from_fn(|lane| match (c[lane], chosen[lane] ^ negated) {
                    (0, 0) => b[lane],
                    (0, _) => a[lane],
                    _ => WHOLE,
                })
            }
            ArithmeticOp::Convert { to, from, .. }
                if !matches!((to, from), (Type::Float(_), _) | (_, Type::Float(_))) =>
            {
                let used = a.map(|missing| missing & low(from.bits().min(to.bits())));
                if from.is_signed() { spread(&used) } else { used }
            }
            ArithmeticOp::Logic(Logic::And, _) => {
                let [x, y] = [0, 1].map(|source| self.values(base, arithmetic.from[source]));
                let cleared = |missing: u8, other: u64| {
                    let bytes = (0..8).zip(other.to_le_bytes());
                    missing & bytes.fold(0, |kept, (at, byte)| kept | u8::from(byte != 0) << at)
                };
                std::array::from_fn(|lane| match (a[lane], b[lane]) {
                    (a, 0) => cleared(a, y[lane]),
                    (0, b) => cleared(b, x[lane]),
                    (a, b) => a | b,
                })
            }
            ArithmeticOp::Logic(..) => both(&a, &b),
            _ => spread(&both(&both(&a, &b), &both(&c, &d))),
        }
    }
}
