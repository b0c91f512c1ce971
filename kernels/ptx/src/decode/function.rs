//! A function: its statements in order, with the operation of each instruction.

use std::collections::HashMap;

use super::body::Body;
use super::opcode::Words;
use super::{Names, Places, arithmetic, control, memory};
use crate::error::BadText;
use crate::program::{Function, Instruction, Module, Operation, Symbol};
use crate::text::{FunctionText, InstructionText, Statement};

/// Decodes a function that has a body. Its shared arrays become variables of the module.
pub(super) fn function(
    text: &FunctionText,
    module: &mut Module,
    names: &Names,
    places: &mut Places,
) -> Function {
    let statements = text.body.as_deref().unwrap_or_default();
    let mut own = Vec::new();
    for statement in statements {
        if let Statement::Declare(declared) = statement
            && declared.space == ".shared"
        {
            match super::variable(declared) {
                Ok(variable) => {
                    own.push((declared.name.clone(), module.variables.len() as u32));
                    module.variables.push(variable);
                }
                Err(why) => module.lack(&text.name, ".shared", why),
            }
        }
    }
    let frame = names.functions[&text.name].1.clone();
    let labels = labels(statements, |why| module.lack(&text.name, "a label", why));
    let mut body = Body::new(names, &frame, labels);
    for (name, number) in own {
        body.declare(&name, Symbol::Variable(number, 0));
    }
    let mut instructions = Vec::new();
    let mut place = None;
    for statement in statements {
        let done = match statement {
            Statement::Open => {
                body.open();
                Ok(())
            }
            Statement::Close => {
                body.close();
                Ok(())
            }
            Statement::Label(..) => Ok(()),
            Statement::Registers { line, ty, names } => body.registers(*line, ty, names),
            Statement::Declare(declared) => body.memory(declared),
            Statement::Place(text) => {
                place = Some(places.number(*text));
                Ok(())
            }
            Statement::UsedBytes(mask) => {
                body.used_bytes = Some(*mask);
                Ok(())
            }
            Statement::Unread(unread) => Err(unread.error.clone()),
            Statement::Instruction(text) => instruction(&mut body, text, place)
                .map(|instruction| instructions.push(instruction)),
        };
        if let Err(why) = done {
            let line = why.line;
            module.lack(&text.name, spelling(statement), why);
            if is_instruction(statement) {
                // A function with it is not launched; labels keep their places.
                let operation = Operation::Trap;
                instructions.push(Instruction { guard: None, operation, place, line });
            }
        }
    }
    // The end of a body is a return, too: a branch may lead there.
    let ends = matches!(
        instructions.last(),
        Some(Instruction { guard: None, operation: Operation::Return | Operation::Exit, .. })
    );
    if !ends || body.has_label_at(instructions.len()) {
        let line = instructions.last().map_or(text.line, |last| last.line);
        instructions.push(Instruction { guard: None, operation: Operation::Return, place, line });
    }
    let Body { local_bytes, most_bytes, slots, .. } = body;
    Function {
        name: text.name.clone(),
        is_kernel: text.is_kernel,
        parameters: frame.parameters,
        returns: frame.returns,
        parameter_bytes: most_bytes,
        local_bytes,
        slots,
        most_threads: text.most_threads,
        instructions,
    }
}

/// The word that a statement begins with.
fn spelling(statement: &Statement) -> &str {
    match statement {
        Statement::Instruction(text) => &text.opcode,
        Statement::Unread(unread) => &unread.spelling,
        Statement::Registers { ty, .. } => ty,
        Statement::Declare(declared) => &declared.ty,
        _ => "",
    }
}

fn is_instruction(statement: &Statement) -> bool {
    matches!(statement, Statement::Instruction(_) | Statement::Unread(_))
}

fn instruction(
    body: &mut Body,
    text: &InstructionText,
    place: Option<u32>,
) -> Result<Instruction, BadText> {
    let guard = body.guard(text)?;
    let operation = operation(body, text)?;
    if body.used_bytes.take().is_some() && !matches!(operation, Operation::Load { .. }) {
        let what = "a mask of used bytes before an instruction that loads nothing";
        return Err(BadText::new(text.line, what));
    }
    Ok(Instruction { guard, operation, place, line: text.line })
}

/// Returns the index of the instruction behind each label.
fn labels(statements: &[Statement], mut twice: impl FnMut(BadText)) -> HashMap<String, u32> {
    let (mut found, mut next) = (HashMap::new(), 0);
    for statement in statements {
        match statement {
            Statement::Label(line, name) if found.insert(name.clone(), next).is_some() => {
                twice(BadText::new(*line, format!("`{name}` is a label twice")));
            }
            _ => next += u32::from(is_instruction(statement)),
        }
    }
    found
}

fn operation(body: &Body, text: &InstructionText) -> Result<Operation, BadText> {
    let (first, mut words) = Words::of(&text.opcode, text.line);
    let operation = match first {
        "ld" | "st" | "red" | "atom" | "fence" | "membar" | "cvta" | "isspacep" | "prefetch"
        | "prefetchu" | "applypriority" | "createpolicy" | "multimem" => {
            memory::operation(first, &mut words, body, &text.operands)
        }
        "bra" | "call" | "ret" | "exit" | "trap" | "brkpt" | "bar" | "barrier" | "shfl"
        | "vote" | "griddepcontrol" | "activemask" | "match" | "redux" | "elect" | "nanosleep"
        | "pmevent" | "mapa" | "getctarank" => {
            control::operation(first, &mut words, body, &text.operands)
        }
        _ => arithmetic::operation(first, &mut words, body, &text.operands),
    }?;
    words.end()?;
    Ok(operation)
}
