//! The names of a function: its registers, its frames and its labels.

use std::collections::HashMap;

use super::opcode;
use super::{Names, ParamFrame, end, size};
use crate::error::BadText;
use crate::program::{Guard, Operand, Slot, Symbol, Type};
use crate::text::{Declaration, InstructionText, OperandText};

/// Registers of a function at most.
const MOST_REGISTERS: u32 = 1 << 17;

/// A register: its slot and its type.
#[derive(Clone, Copy)]
pub(super) struct Register {
    pub(super) slot: Slot,
    pub(super) ty: Type,
}

/// The names that a block of a function declares.
#[derive(Default)]
struct Block {
    registers: HashMap<String, Register>,
    symbols: HashMap<String, Symbol>,
    /// Bytes of the frame in parameter space before the block.
    before: u32,
}

/// The function at hand.
pub(super) struct Body<'m> {
    names: &'m Names,
    blocks: Vec<Block>,
    frame: ParamFrame,
    /// Bytes of the frame in local memory.
    pub(super) local_bytes: u32,
    /// The most bytes of the frame in parameter space.
    pub(super) most_bytes: u32,
    /// The number of registers.
    pub(super) slots: u32,
    labels: HashMap<String, u32>,
    /// Bytes that the next access uses.
    pub(super) used_bytes: Option<u32>,
}

impl<'m> Body<'m> {
    /// The body of a function with these parameters, before its first statement.
    pub(super) fn new(names: &'m Names, frame: &ParamFrame, labels: HashMap<String, u32>) -> Self {
        let mut body = Self {
            names,
            blocks: vec![Block::default()],
            most_bytes: frame.bytes,
            frame: ParamFrame { bytes: frame.bytes, ..ParamFrame::default() },
            local_bytes: 0,
            slots: 0,
            labels,
            used_bytes: None,
        };
        for parameter in frame.parameters.iter().chain(&frame.returns) {
            body.declare(&parameter.name, Symbol::Param(parameter.offset.into()));
        }
        body
    }

    /// Begins a block of declarations.
    pub(super) fn open(&mut self) {
        self.blocks.push(Block { before: self.frame.bytes, ..Block::default() });
    }

    /// Ends a block: its parameters of calls give their bytes back.
    pub(super) fn close(&mut self) {
        if let Some(block) = self.blocks.pop() {
            self.frame.bytes = block.before;
        }
    }

    pub(super) fn declare(&mut self, name: &str, symbol: Symbol) {
        if let Some(block) = self.blocks.last_mut() {
            block.symbols.insert(name.to_owned(), symbol);
        }
    }

    pub(super) fn registers(
        &mut self,
        line: u32,
        ty: &str,
        names: &[(String, Option<u32>)],
    ) -> Result<(), BadText> {
        let ty = opcode::ty(ty.trim_start_matches('.'));
        let ty =
            ty.ok_or_else(|| BadText::new(line, "the type of a register is not in the subset"))?;
        for (name, many) in names {
            if many.unwrap_or(1) > MOST_REGISTERS - self.slots.min(MOST_REGISTERS) {
                return Err(BadText::new(line, "more registers than a function may have"));
            }
            let all = (0..many.unwrap_or(1)).map(|number| match many {
                Some(_) => format!("{name}{number}"),
                None => name.clone(),
            });
            for name in all {
                let register = Register { slot: self.slots, ty };
                self.slots += 1;
                if let Some(block) = self.blocks.last_mut() {
                    block.registers.insert(name, register);
                }
            }
        }
        Ok(())
    }

    /// Places memory of the function: local memory and parameters of calls.
    pub(super) fn memory(&mut self, declared: &Declaration) -> Result<(), BadText> {
        match declared.space.as_str() {
            ".param" => {
                let placed = self.frame.place(declared)?;
                self.most_bytes = self.most_bytes.max(self.frame.bytes);
                self.declare(&declared.name, Symbol::Param(placed.offset.into()));
            }
            ".local" => {
                let size = size(declared)?;
                let offset = self.local_bytes.next_multiple_of(size.align);
                let bytes = size.bytes.ok_or_else(|| size.open(declared))?;
                self.local_bytes = end(declared, offset, bytes)?;
                self.declare(&declared.name, Symbol::Local(offset.into()));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn guard(&self, text: &InstructionText) -> Result<Option<Guard>, BadText> {
        let Some((name, negated)) = &text.guard else { return Ok(None) };
        let register = self.register(name, text.line)?;
        if register.ty != Type::Pred {
            return Err(BadText::new(text.line, format!("`{name}` is not a truth value")));
        }
        Ok(Some(Guard { slot: register.slot, negated: *negated }))
    }

    pub(super) fn symbol(&self, name: &str) -> Option<Symbol> {
        let inner = self.blocks.iter().rev().find_map(|block| block.symbols.get(name));
        let outer = || Some(Symbol::Variable(*self.names.variables.get(name)?, 0));
        inner.copied().or_else(outer)
    }

    pub(super) fn function(&self, name: &str) -> Option<(u32, &ParamFrame)> {
        self.names.functions.get(name).map(|(number, frame)| (*number, frame))
    }

    /// Whether a label stands before the instruction of that number.
    pub(super) fn has_label_at(&self, number: usize) -> bool {
        self.labels.values().any(|&label| label as usize == number)
    }

    pub(super) fn label(&self, name: &str, line: u32) -> Result<u32, BadText> {
        let found = self.labels.get(name).copied();
        found.ok_or_else(|| BadText::new(line, format!("`{name}` is not a label")))
    }

    pub(super) fn register(&self, name: &str, line: u32) -> Result<Register, BadText> {
        let found = self.blocks.iter().rev().find_map(|block| block.registers.get(name));
        found.copied().ok_or_else(|| BadText::new(line, format!("`{name}` is not a register")))
    }

    /// Returns the register that an operand names as a result; `_` is no register.
    pub(super) fn result(
        &self,
        operand: &OperandText,
        line: u32,
    ) -> Result<Option<Register>, BadText> {
        match operand {
            OperandText::Name(name) if name == "_" => Ok(None),
            OperandText::Name(name) => self.register(name, line).map(Some),
            _ => Err(BadText::new(line, "a result that is not a register")),
        }
    }

    /// Returns a source, of a type.
    pub(super) fn source(
        &self,
        operand: &OperandText,
        ty: Type,
        line: u32,
    ) -> Result<Operand, BadText> {
        Ok(match operand {
            OperandText::Name(name) => Operand::Slot(self.register(name, line)?.slot),
            OperandText::Integer(value) => Operand::Value(truncated(*value, ty)),
            OperandText::Float32(bits) => Operand::Value((*bits).into()),
            OperandText::Float64(bits) => Operand::Value(*bits),
            _ => {
                return Err(BadText::new(line, "a source that is neither a register nor a number"));
            }
        })
    }

    /// Returns a truth value, and whether it is negated.
    pub(super) fn truth(
        &self,
        operand: &OperandText,
        line: u32,
    ) -> Result<(Operand, bool), BadText> {
        match operand {
            OperandText::Not(name) => Ok((Operand::Slot(self.register(name, line)?.slot), true)),
            _ => self.source(operand, Type::Pred, line).map(|operand| (operand, false)),
        }
    }
}

/// Returns the low bits of a number.
pub(super) fn truncated(value: u64, ty: Type) -> u64 {
    value & (u64::MAX >> (64 - ty.bits()))
}
