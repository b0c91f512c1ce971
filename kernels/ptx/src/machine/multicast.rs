//! Accesses to multicast addresses: to a window of each device.

use super::image::lanes;
use super::{Failed, Machine};
use crate::arithmetic::evaluate;
use crate::assumptions::Assumption;
use crate::choices::Choice;
use crate::memory::{Atomic, Side, reduced};
use crate::program::{
    ArithmeticOp, Float, FloatOp, MemoryAccess, Mode, MulticastOp, Operand, ReduceOp, Slot, Type,
};

impl Machine<'_> {
    pub(super) fn multicast(
        &mut self,
        warp: usize,
        (base, mask, place): (u32, u32, u32),
        (op, access): (MulticastOp, &MemoryAccess),
        from: &[Operand],
        to: &[Option<Slot>],
    ) -> Result<(), Failed> {
        let addresses = self.addresses(warp, base, place, access);
        let bytes = u64::from(access.ty.bytes()) * u64::from(access.elements);
        for lane in lanes(mask) {
            let (address, thread) = (addresses[lane as usize], self.warps[warp].first + lane);
            let stores = !matches!(op, MulticastOp::LoadReduce(..));
            let all = self.memory.multicast(address, bytes);
            let all =
                all.map_err(|refusal| self.refusal(&refusal, access, address, (thread, stores)))?;
            let mut values = [0; 4];
            let elements = usize::from(access.elements);
            for (value, &from) in values.iter_mut().zip(from) {
                *value = self.warps[warp].value(base, from, lane);
            }
            let mut loaded = Vec::new();
            for address in self.in_some_order(all) {
                let at = (thread, place);
                let done = match op {
                    MulticastOp::LoadReduce(..) => {
                        let choices = &mut self.choices;
                        let to = &mut values[..elements];
                        let load = self.memory.load(choices, access, at, address, to);
                        loaded.push(values);
                        load.map(|_| ())
                    }
                    MulticastOp::Store => {
                        let choices = &mut self.choices;
                        let values = &values[..elements];
                        self.memory.store(choices, access, at, address, (values, 0))
                    }
                    MulticastOp::Reduce(op) => {
                        self.reduce_elements(access, op, at, address, &values)
                    }
                };
                let side = (Side::Multicast, stores);
                let done =
                    done.and_then(|()| self.memory.note_side(access, at, (address, bytes), side));
                done.map_err(|refusal| self.refusal(&refusal, access, address, (thread, stores)))?;
                self.note_races(place, access, address, (thread, stores))?;
            }
            if let MulticastOp::LoadReduce(op, wide) = op {
                for (element, &slot) in to.iter().enumerate() {
                    let values = loaded.iter().map(|values| values[element]);
                    let sum = reduction((op, access.ty, wide), values);
                    if let Some(slot) = slot {
                        self.warps[warp].set(base, slot, lane, sum);
                    }
                }
            }
            if stores {
                self.progress();
            }
        }
        Ok(())
    }

    fn reduce_elements(
        &mut self,
        access: &MemoryAccess,
        op: ReduceOp,
        at: (u32, u32),
        address: u64,
        values: &[u64; 4],
    ) -> Result<(), crate::memory::Refusal> {
        let each = u64::from(access.ty.bytes());
        for (element, &value) in (0..u64::from(access.elements)).zip(values) {
            let atomic = Atomic { op, values: [value, 0], returns: false };
            let choices = &mut self.choices;
            self.memory.reduce(choices, access, at, address + element * each, atomic)?;
        }
        Ok(())
    }

    /// The addresses of the windows in the order of the access: PTX tells none.
    fn in_some_order(&mut self, mut left: Vec<u64>) -> Vec<u64> {
        if self.assumptions.has(&Assumption::MulticastSum) {
            return left;
        }
        let mut order = Vec::new();
        while !left.is_empty() {
            let next = self.choices.choose(Choice::Order, || left.len());
            order.push(left.remove(next));
        }
        order
    }
}

/// The reduction of values in their order; of halves in f32, rounded once, where it is wide.
fn reduction((op, ty, wide): (ReduceOp, Type, bool), mut values: impl Iterator<Item = u64>) -> u64 {
    let Some(first) = values.next() else { return 0 };
    let Type::Float(ty) = ty else {
        return values.fold(first, |sum, value| reduced(op, ty, sum, [value, 0]).unwrap_or(sum));
    };
    let op = match op {
        ReduceOp::Min => FloatOp::Min,
        ReduceOp::Max => FloatOp::Max,
        _ => FloatOp::Add,
    };
    let mode = Mode::default();
    let by =
        |ty| move |one, other| evaluate(ArithmeticOp::Float { op, ty, mode }, [one, other, 0, 0]);
    let half = match ty {
        Float::F16 | Float::F16x2 => Float::F16,
        Float::Bf16 | Float::Bf16x2 => Float::Bf16,
        _ => return values.fold(first, by(ty)),
    };
    if !wide {
        return values.fold(first, by(ty));
    }
    let convert = |to, from, value| {
        let (to, from, width, integral) = (Type::Float(to), Type::Float(from), 32, false);
        evaluate(ArithmeticOp::Convert { to, from, width, mode, integral }, [value, 0, 0, 0])
    };
    let all: Vec<u64> = std::iter::once(first).chain(values).collect();
    let sum = |shift: u32| {
        let values = all.iter().map(|value| convert(Float::F32, half, value >> shift & 0xffff));
        convert(half, Float::F32, values.reduce(by(Float::F32)).unwrap_or(0)) << shift
    };
    if ty == half { sum(0) } else { sum(16) | sum(0) }
}
