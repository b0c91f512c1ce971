//! A function: its statements in order, with the operation of each instruction.

use std::collections::HashMap;

use super::body::Body;
use super::opcode::Words;
use super::{Names, Places, accesses, arithmetic, control};
use crate::bad_text::BadText;
use crate::program::{Function, Instruction, Module, Operation, Symbol};
use crate::text::{FunctionText, InstructionText, Statement};

/// Decodes a function that has a body. Its shared arrays become variables of the module.
pub(super) fn function(
    text: &FunctionText,
    module: &mut Module,
    names: &Names,
    places: &mut Places,
) -> Result<Function, BadText> {
    let statements = text.body.as_deref().unwrap_or_default();
    let mut own = Vec::new();
    for statement in statements {
        if let Statement::Declare(declared) = statement
            && declared.space == ".shared"
        {
            own.push((declared.name.clone(), module.variables.len() as u32));
            module.variables.push(super::variable(declared)?);
        }
    }
    let frame = names.functions[&text.name].1.clone();
    let mut body = Body::new(names, &frame, labels(statements)?);
    for (name, number) in own {
        body.declare(&name, Symbol::Variable(number, 0));
    }
    let mut instructions = Vec::new();
    let mut place = None;
    for statement in statements {
        match statement {
            Statement::Open => body.open(),
            Statement::Close => body.close(),
            Statement::Label(..) => {}
            Statement::Registers { line, ty, names } => body.registers(*line, ty, names)?,
            Statement::Declare(declared) => body.memory(declared)?,
            Statement::Place(text) => place = Some(places.number(*text)),
            Statement::UsedBytes(mask) => body.used_bytes = Some(*mask),
            Statement::Instruction(text) => {
                let guard = body.guard(text)?;
                let operation = operation(&body, text)?;
                instructions.push(Instruction { guard, operation, place, line: text.line });
                if body.used_bytes.take().is_some_and(|_| !is_load(instructions.last())) {
                    let what = "a mask of used bytes before an instruction that loads nothing";
                    return Err(BadText::new(text.line, what));
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

/// Returns the index of the instruction behind each label.
fn labels(statements: &[Statement]) -> Result<HashMap<String, u32>, BadText> {
    let (mut found, mut next) = (HashMap::new(), 0);
    for statement in statements {
        match statement {
            Statement::Instruction(_) => next += 1,
            Statement::Label(line, name) if found.insert(name.clone(), next).is_some() => {
                return Err(BadText::new(*line, format!("`{name}` is a label twice")));
            }
            _ => {}
        }
    }
    Ok(found)
}

fn operation(body: &Body, text: &InstructionText) -> Result<Operation, BadText> {
    let (first, mut words) = Words::of(&text.opcode, text.line);
    let operation = match first {
        "ld" | "st" | "red" | "fence" | "cvta" => {
            accesses::operation(first, &mut words, body, &text.operands)
        }
        "bra" | "call" | "ret" | "exit" | "trap" | "bar" | "shfl" | "vote" => {
            control::operation(first, &mut words, body, &text.operands)
        }
        _ => arithmetic::operation(first, &mut words, body, &text.operands),
    }?;
    words.end()?;
    Ok(operation)
}
