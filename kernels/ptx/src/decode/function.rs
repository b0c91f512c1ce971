//! A function: its registers, its frames, its labels and its instructions.

use std::collections::HashMap;

use super::opcode::{self, Words};
use super::{Frame, Names, Places, arithmetic, control, memory, size};
use crate::error::Error;
use crate::program::{
    Function, Guard, Instruction, Module, Operand, Operation, Slot, Symbol, Type, Variable,
};
use crate::text::{Declaration, FunctionText, InstructionText, OperandText, Statement};

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

/// The function under way.
pub(super) struct Body<'m> {
    names: &'m Names,
    blocks: Vec<Block>,
    frame: Frame,
    local_bytes: u32,
    most_bytes: u32,
    slots: u32,
    labels: HashMap<String, u32>,
    /// Bytes that the next access uses.
    pub(super) used_bytes: Option<u32>,
}

/// Decodes a function that has a body. Its shared arrays become variables of the module.
pub(super) fn function(
    text: &FunctionText,
    module: &mut Module,
    names: &mut Names,
    places: &mut Places,
) -> Result<Function, Error> {
    let statements = text.body.as_deref().unwrap_or_default();
    let mut own = Vec::new();
    for statement in statements {
        if let Statement::Declare(declared) = statement
            && declared.space == ".shared"
        {
            own.push((declared.name.clone(), module.variables.len() as u32));
            module.variables.push(shared(declared)?);
        }
    }
    let frame = names.functions[&text.name].1.clone();
    let mut body = Body {
        names,
        blocks: vec![Block::default()],
        most_bytes: frame.bytes,
        frame: frame.clone(),
        local_bytes: 0,
        slots: 0,
        labels: labels(statements)?,
        used_bytes: None,
    };
    for (name, number) in own {
        body.blocks[0].symbols.insert(name, Symbol::Variable(number, 0));
    }
    for parameter in frame.parameters.iter().chain(&frame.returns) {
        body.declare(&parameter.name, Symbol::Param(parameter.offset.into()));
    }
    let mut instructions = Vec::new();
    let mut place = None;
    for statement in statements {
        match statement {
            Statement::Open => {
                let before = body.frame.bytes;
                body.blocks.push(Block { before, ..Block::default() });
            }
            Statement::Close => {
                if let Some(block) = body.blocks.pop() {
                    body.frame.bytes = block.before;
                }
            }
            Statement::Label(..) => {}
            Statement::Registers { line, ty, names } => body.registers(*line, ty, names)?,
            Statement::Declare(declared) => body.memory(declared)?,
            Statement::Place(text) => place = Some(places.number(*text)),
            Statement::UsedBytes(mask) => body.used_bytes = Some(*mask),
            Statement::Instruction(text) => {
                let guard = body.guard(text)?;
                let operation = body.operation(text)?;
                instructions.push(Instruction { guard, operation, place, line: text.line });
                if body.used_bytes.take().is_some_and(|_| !is_load(instructions.last())) {
                    let what = "a mask of used bytes before an instruction that loads nothing";
                    return Err(Error::new(text.line, what));
                }
            }
        }
    }
    let Body { local_bytes, most_bytes, slots, .. } = body;
    Ok(Function {
        name: text.name.clone(),
        is_kernel: text.is_kernel,
        parameters: frame.parameters,
        returns: frame.returns,
        parameter_bytes: most_bytes,
        local_bytes,
        slots,
        most_threads: text.most_threads,
        instructions,
    })
}

fn is_load(instruction: Option<&Instruction>) -> bool {
    instruction.is_some_and(|last| matches!(last.operation, Operation::Load { .. }))
}

fn shared(declared: &Declaration) -> Result<Variable, Error> {
    super::variable(declared)
}

/// Returns the index of the instruction behind each label.
fn labels(statements: &[Statement]) -> Result<HashMap<String, u32>, Error> {
    let (mut found, mut next) = (HashMap::new(), 0);
    for statement in statements {
        match statement {
            Statement::Instruction(_) => next += 1,
            Statement::Label(line, name) if found.insert(name.clone(), next).is_some() => {
                return Err(Error::new(*line, format!("`{name}` is a label twice")));
            }
            _ => {}
        }
    }
    Ok(found)
}

impl Body<'_> {
    fn declare(&mut self, name: &str, symbol: Symbol) {
        if let Some(block) = self.blocks.last_mut() {
            block.symbols.insert(name.to_owned(), symbol);
        }
    }

    fn registers(
        &mut self,
        line: u32,
        ty: &str,
        names: &[(String, Option<u32>)],
    ) -> Result<(), Error> {
        let ty = opcode::ty(ty.trim_start_matches('.'));
        let ty =
            ty.ok_or_else(|| Error::new(line, "the type of a register is not in the subset"))?;
        for (name, many) in names {
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
    fn memory(&mut self, declared: &Declaration) -> Result<(), Error> {
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
                self.local_bytes = offset + bytes;
                self.declare(&declared.name, Symbol::Local(offset.into()));
            }
            _ => {}
        }
        Ok(())
    }

    fn guard(&self, text: &InstructionText) -> Result<Option<Guard>, Error> {
        let Some((name, negated)) = &text.guard else { return Ok(None) };
        let register = self.register(name, text.line)?;
        if register.ty != Type::Pred {
            return Err(Error::new(text.line, format!("`{name}` is not a truth value")));
        }
        Ok(Some(Guard { slot: register.slot, negated: *negated }))
    }

    fn operation(&mut self, text: &InstructionText) -> Result<Operation, Error> {
        let (first, mut words) = Words::of(&text.opcode, text.line);
        let operation = match first {
            "ld" | "st" | "red" | "fence" | "cvta" => {
                memory::operation(first, &mut words, self, &text.operands)
            }
            "bra" | "call" | "ret" | "exit" | "trap" | "bar" | "shfl" | "vote" => {
                control::operation(first, &mut words, self, &text.operands)
            }
            _ => arithmetic::operation(first, &mut words, self, &text.operands),
        }?;
        words.end()?;
        Ok(operation)
    }

    pub(super) fn symbol(&self, name: &str) -> Option<Symbol> {
        let inner = self.blocks.iter().rev().find_map(|block| block.symbols.get(name));
        let outer = || Some(Symbol::Variable(*self.names.variables.get(name)?, 0));
        inner.copied().or_else(outer)
    }

    pub(super) fn function(&self, name: &str) -> Option<(u32, &Frame)> {
        self.names.functions.get(name).map(|(number, frame)| (*number, frame))
    }

    pub(super) fn label(&self, name: &str, line: u32) -> Result<u32, Error> {
        let found = self.labels.get(name).copied();
        found.ok_or_else(|| Error::new(line, format!("`{name}` is not a label")))
    }

    pub(super) fn register(&self, name: &str, line: u32) -> Result<Register, Error> {
        let found = self.blocks.iter().rev().find_map(|block| block.registers.get(name));
        found.copied().ok_or_else(|| Error::new(line, format!("`{name}` is not a register")))
    }

    /// Returns the register that an operand names as a result; `_` is no register.
    pub(super) fn result(
        &self,
        operand: &OperandText,
        line: u32,
    ) -> Result<Option<Register>, Error> {
        match operand {
            OperandText::Name(name) if name == "_" => Ok(None),
            OperandText::Name(name) => self.register(name, line).map(Some),
            _ => Err(Error::new(line, "a result that is not a register")),
        }
    }

    /// Returns a source, of a type.
    pub(super) fn source(
        &self,
        operand: &OperandText,
        ty: Type,
        line: u32,
    ) -> Result<Operand, Error> {
        Ok(match operand {
            OperandText::Name(name) => Operand::Slot(self.register(name, line)?.slot),
            OperandText::Integer(value) => Operand::Value(truncated(*value, ty)),
            OperandText::Float32(bits) => Operand::Value((*bits).into()),
            OperandText::Float64(bits) => Operand::Value(*bits),
            _ => return Err(Error::new(line, "a source that is neither a register nor a number")),
        })
    }

    /// Returns a truth value, and whether it is negated.
    pub(super) fn truth(&self, operand: &OperandText, line: u32) -> Result<(Operand, bool), Error> {
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
