//! The origins of addresses: which word of the kernel's parameters a pointer comes from.

use std::collections::{BTreeSet, HashMap};

use crate::program::{
    ArithmeticOp, Base, MemoryAccess, Module, Operand, Operation, Slot, Space, Symbol, Type,
};

/// An origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Origin {
    /// The word at an offset of the kernel's parameters, or an address computed from it.
    Word(i64),
    /// The address of the kernel's parameters, with an offset.
    Parameters(i64),
    /// An address in local memory of a function, with an offset.
    Local(u32, i64),
    /// An address in local memory of a function, with an unknown offset.
    Somewhere(u32),
    /// A number that is no address: a product, a part of bits, or a word of the table of facts.
    Number,
    /// Any other value from memory, or the address of a variable.
    Other,
}

type Set = BTreeSet<Origin>;

/// The origins of all registers and of what functions keep in memory.
pub(super) struct Origins<'m> {
    module: &'m Module,
    registers: HashMap<(u32, Slot), Set>,
    /// Words of frames in local memory.
    local: HashMap<(u32, i64), Set>,
    /// Bytes of parameters and returned values of functions, by their offset in the function's frame.
    frames: HashMap<(u32, i64), Set>,
    /// Bytes of the arguments and results of the call at hand. The next call may have its own at the same offsets.
    at_hand: HashMap<i64, Set>,
    changed: bool,
}

impl<'m> Origins<'m> {
    /// Follows all values of a module.
    pub(super) fn of(module: &'m Module) -> Self {
        let mut origins = Self {
            module,
            registers: HashMap::new(),
            local: HashMap::new(),
            frames: HashMap::new(),
            at_hand: HashMap::new(),
            changed: true,
        };
        while origins.changed {
            origins.changed = false;
            for (number, function) in module.functions.iter().enumerate() {
                origins.at_hand.clear();
                for instruction in &function.instructions {
                    origins.follow(number as u32, &instruction.operation);
                }
            }
        }
        origins
    }

    /// Returns the origins of the address of an access.
    pub(super) fn address(&self, function: u32, access: &MemoryAccess) -> Set {
        match access.address.base {
            Base::Slot(slot) => self.operand(function, Operand::Slot(slot)),
            Base::Value(_) => Set::new(),
            Base::Symbol(_) => Set::from([Origin::Other]),
        }
    }

    fn operand(&self, function: u32, operand: Operand) -> Set {
        match operand {
            Operand::Slot(slot) => {
                self.registers.get(&(function, slot)).cloned().unwrap_or_default()
            }
            Operand::Value(_) => Set::new(),
        }
    }

    fn add(&mut self, function: u32, slot: Slot, set: Set) {
        let known = self.registers.entry((function, slot)).or_default();
        let before = known.len();
        known.extend(set);
        self.changed |= known.len() != before;
    }

    fn follow(&mut self, function: u32, operation: &Operation) {
        match operation {
            Operation::Move { to, from }
            | Operation::ToGeneric { to, from, .. }
            | Operation::FromGeneric { to, from, .. } => {
                let set = self.operand(function, *from);
                self.add(function, *to, set);
            }
            Operation::AddressOf { to, symbol } => {
                let origin = match *symbol {
                    Symbol::Local(offset) => Origin::Local(function, offset),
                    Symbol::Param(offset) if self.is_kernel(function) => Origin::Parameters(offset),
                    _ => Origin::Other,
                };
                self.add(function, *to, Set::from([origin]));
            }
            Operation::Arithmetic(arithmetic) => {
                let [a, b, c, _] = arithmetic.from;
                let set = match arithmetic.op {
                    ArithmeticOp::Add(Type::Unsigned(64) | Type::Signed(64)) => {
                        self.sum(function, a, b)
                    }
                    ArithmeticOp::Sub(Type::Unsigned(64) | Type::Signed(64)) => {
                        let by = match b {
                            Operand::Value(value) => Some((value as i64).wrapping_neg()),
                            Operand::Slot(_) => None,
                        };
                        moved(&self.operand(function, a), by)
                    }
                    ArithmeticOp::Mad(Type::Unsigned(64) | Type::Signed(64)) => {
                        moved(&self.operand(function, c), None)
                    }
                    ArithmeticOp::Selp(_) | ArithmeticOp::Min(_) | ArithmeticOp::Max(_) => {
                        let mut set = self.operand(function, a);
                        set.extend(self.operand(function, b));
                        set
                    }
                    // Alignment keeps an address.
                    ArithmeticOp::Logic(..) => moved(&self.operand(function, a), None),
                    _ => Set::from([Origin::Number]),
                };
                self.add(function, arithmetic.to, set);
            }
            Operation::Load { access, to } => {
                for (nth, to) in to.iter().enumerate() {
                    if let Some((slot, _)) = to {
                        let at = (nth as u32 * access.ty.bytes()).into();
                        let set = self.loaded(function, access, at);
                        self.add(function, *slot, set);
                    }
                }
            }
            Operation::Store { access, from } => {
                for (nth, from) in from.iter().enumerate() {
                    let at = i64::from(nth as u32 * access.ty.bytes());
                    let set = self.operand(function, *from);
                    self.store(function, access, at, &set);
                }
            }
            Operation::Call(call) => {
                let callee = &self.module.functions[call.function as usize];
                for (to, from) in callee.parameters.iter().zip(&*call.arguments) {
                    for byte in 0..i64::from(to.bytes) {
                        if let Some(set) = self.at_hand.get(&(i64::from(*from) + byte)).cloned() {
                            let to = (call.function, i64::from(to.offset) + byte);
                            self.changed |= extend(&mut self.frames, to, &set);
                        }
                    }
                }
                for (from, to) in callee.returns.iter().zip(&*call.returns) {
                    for byte in 0..i64::from(from.bytes) {
                        let from = (call.function, i64::from(from.offset) + byte);
                        let set = self.frames.get(&from).cloned().unwrap_or_default();
                        self.at_hand.insert(i64::from(*to) + byte, set);
                    }
                }
            }
            operation => {
                for slot in super::flow::results(operation) {
                    self.add(function, slot, Set::from([Origin::Number]));
                }
            }
        }
    }

    /// Whether an offset in parameter space is that of a parameter or a returned value of the function itself.
    fn is_own(&self, function: u32, offset: i64) -> bool {
        let function = &self.module.functions[function as usize];
        let mut own = function.parameters.iter().chain(&function.returns);
        own.any(|own| (own.offset..own.offset + own.bytes).contains(&(offset as u32)))
    }

    fn is_kernel(&self, function: u32) -> bool {
        self.module.functions[function as usize].is_kernel
    }

    fn sum(&self, function: u32, a: Operand, b: Operand) -> Set {
        let (of_a, of_b) = (self.operand(function, a), self.operand(function, b));
        let value = |operand| match operand {
            Operand::Value(value) => Some(value as i64),
            Operand::Slot(_) => None,
        };
        let mut set = moved(&of_a, value(b));
        set.extend(moved(&of_b, value(a)));
        set
    }

    fn loaded(&self, function: u32, access: &MemoryAccess, at: i64) -> Set {
        if access.non_coherent {
            return Set::from([Origin::Number]);
        }
        let offset = access.address.offset + at;
        match access.address.base {
            Base::Symbol(Symbol::Param(symbol)) => {
                if !self.is_own(function, symbol) {
                    self.at_hand.get(&(symbol + at)).cloned().unwrap_or_default()
                } else if self.is_kernel(function) {
                    Set::from([Origin::Word(symbol + at)])
                } else {
                    self.frames.get(&(function, symbol + at)).cloned().unwrap_or_default()
                }
            }
            Base::Symbol(Symbol::Local(symbol)) => {
                self.local.get(&(function, symbol + at)).cloned().unwrap_or_default()
            }
            Base::Slot(slot) if access.ty.bytes() == 8 => {
                let mut set = Set::new();
                for origin in self.operand(function, Operand::Slot(slot)) {
                    match origin {
                        Origin::Parameters(at) => {
                            set.insert(Origin::Word(at + offset));
                        }
                        Origin::Local(owner, at) => {
                            set.extend(self.local.get(&(owner, at + offset)).into_iter().flatten());
                        }
                        // The bases of data are kept in arrays, and no pointer to facts or parameters is.
                        Origin::Word(_) | Origin::Somewhere(_) | Origin::Other => {
                            set.insert(Origin::Other);
                        }
                        Origin::Number => {}
                    }
                }
                set
            }
            Base::Slot(_) => Set::from([Origin::Number]),
            _ => Set::from([Origin::Other]),
        }
    }

    fn store(&mut self, function: u32, access: &MemoryAccess, at: i64, set: &Set) {
        let offset = access.address.offset + at;
        let changed = match access.address.base {
            Base::Symbol(Symbol::Param(symbol)) if self.is_own(function, symbol) => {
                extend(&mut self.frames, (function, symbol + at), set)
            }
            Base::Symbol(Symbol::Param(symbol)) => {
                self.at_hand.insert(symbol + at, set.clone());
                false
            }
            Base::Symbol(Symbol::Local(symbol)) => {
                extend(&mut self.local, (function, symbol + at), set)
            }
            Base::Slot(slot) if matches!(access.space, Space::Local | Space::Generic) => {
                let mut changed = false;
                for origin in self.operand(function, Operand::Slot(slot)) {
                    if let Origin::Local(owner, at) = origin {
                        changed |= extend(&mut self.local, (owner, at + offset), set);
                    }
                }
                changed
            }
            _ => false,
        };
        self.changed |= changed;
    }
}

/// Adds origins to a word, and returns whether one is new.
fn extend(words: &mut HashMap<(u32, i64), Set>, at: (u32, i64), set: &Set) -> bool {
    let known = words.entry(at).or_default();
    let before = known.len();
    known.extend(set);
    known.len() != before
}

/// Returns the origins of a sum: offsets move by a known or an unknown number of bytes.
fn moved(set: &Set, by: Option<i64>) -> Set {
    let by = by.filter(|&by| i32::try_from(by).is_ok());
    let origin = |origin: &Origin| match (*origin, by) {
        (Origin::Local(owner, at), Some(by)) if in_frame(at + by) => Origin::Local(owner, at + by),
        (Origin::Local(owner, _), _) => Origin::Somewhere(owner),
        (Origin::Parameters(at), Some(by)) if in_frame(at + by) => Origin::Parameters(at + by),
        (Origin::Parameters(_), _) => Origin::Other,
        (origin, _) => origin,
    };
    set.iter().map(origin).collect()
}

/// Whether an offset is that of a small object: a loop that moves a pointer on would have no end of offsets.
fn in_frame(offset: i64) -> bool {
    (-4096..4096).contains(&offset)
}
