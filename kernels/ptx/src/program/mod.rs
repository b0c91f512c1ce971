//! A module of PTX as typed instructions: flat arrays, registers as numbered slots, labels as indices.

mod operation;
mod types;

use std::fmt;

use crate::bad_text::BadText;

pub use operation::{
    Address, Arithmetic, Barrier, Base, Call, Collect, CollectMode, Fence, Guard, Instruction,
    LaneMask, MemoryAccess, MulticastOp, Operand, Operation, Ordering, Shuffle, ShuffleMode, Slot,
    Special, Symbol, Vote, VoteMode,
};
pub use types::{
    ArithmeticOp, Clamp, Comparison, Float, FloatOp, Logic, Mode, Packed, ReduceOp, Rounding,
    Scope, Semantics, Space, Type,
};

/// A module of PTX.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The version of the PTX ISA, such as (9, 0).
    pub version: (u32, u32),
    /// The architecture, such as `sm_90`.
    pub target: String,
    /// The kernels and functions that have a body.
    pub functions: Vec<Function>,
    /// The variables of the module in global, constant and shared memory.
    pub variables: Vec<Variable>,
    /// The names of the source files, at the numbers that `.file` gives them; an empty name for a missing number.
    pub files: Vec<String>,
    /// The places of sources that instructions name.
    pub places: Vec<Place>,
    /// The spellings that the machine lacks: a function with such an instruction cannot be launched.
    pub lacks: Vec<Lack>,
}

/// A spelling of a function that is not in the subset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The function; empty for a declaration of the module.
    pub function: String,
    /// The opcode with its modifiers, or the directive.
    pub spelling: String,
    /// The reason, with the line at which the spelling is found first.
    pub why: BadText,
    /// How often the function has it.
    pub count: u32,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, spelling, why, count } = self;
        write!(f, "`{spelling}` of {function} ({count} x): {why}")
    }
}

/// A kernel or a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The mangled name.
    pub name: String,
    /// Whether it is a kernel.
    pub is_kernel: bool,
    /// The parameters, in order. Those of a kernel begin at offset 0, laid out as the driver expects them.
    pub parameters: Vec<Parameter>,
    /// The returned values, in order.
    pub returns: Vec<Parameter>,
    /// Bytes of the function's frame in parameter space: its parameters, its returned values, and the arguments and
    /// results of the calls that it makes.
    pub parameter_bytes: u32,
    /// Bytes of the function's frame in local memory.
    pub local_bytes: u32,
    /// The number of registers, each a slot of 64 bits.
    pub slots: u32,
    /// The most threads of a block in x, y and z, by `.maxntid`.
    pub most_threads: Option<[u32; 3]>,
    /// The instructions. A branch names an index among them.
    pub instructions: Vec<Instruction>,
}

/// A range of a frame in parameter space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name in the text.
    pub name: String,
    /// The offset of the first byte in the frame.
    pub offset: u32,
    /// The number of bytes.
    pub bytes: u32,
}

/// A variable of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The mangled name.
    pub name: String,
    /// The memory that holds it: global, constant or shared.
    pub space: Space,
    /// Alignment in bytes.
    pub align: u32,
    /// The number of bytes; 0 for an array of `.extern .shared`, whose size the launch gives.
    pub bytes: u32,
    /// The bytes at the start. A variable in shared memory has none.
    pub initial: Vec<u8>,
}

/// A place of a source, by a `.loc` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of the file in [`Module::files`].
    pub file: u32,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The place of the call, where the code was inlined: an index in [`Module::places`].
    pub caller: Option<u32>,
}

impl Module {
    /// Returns the index of the function `name`.
    pub fn function(&self, name: &str) -> Option<usize> {
        self.functions.iter().position(|function| function.name == name)
    }

    /// The spellings that the machine lacks for a function and those that it calls.
    pub fn lacks_of(&self, function: usize) -> Vec<&Lack> {
        let mut called = vec![function];
        let mut next = 0;
        while let Some(&caller) = called.get(next) {
            for instruction in &self.functions[caller].instructions {
                if let Operation::Call(call) = &instruction.operation
                    && !called.contains(&(call.function as usize))
                {
                    called.push(call.function as usize);
                }
            }
            next += 1;
        }
        let is_of = |lack: &&Lack| called.iter().any(|&f| self.functions[f].name == lack.function);
        self.lacks.iter().filter(is_of).collect()
    }

    /// Notes a line that is not in the subset.
    pub(crate) fn lack(&mut self, function: &str, spelling: &str, why: BadText) {
        let same = |lack: &&mut Lack| lack.function == function && lack.spelling == spelling;
        match self.lacks.iter_mut().find(same) {
            Some(lack) => lack.count += 1,
            None => {
                let (function, spelling) = (function.to_owned(), spelling.to_owned());
                self.lacks.push(Lack { function, spelling, why, count: 1 });
            }
        }
    }

    /// Returns the place of an instruction and the places of the calls through which it was inlined, inner ones first.
    pub fn places(&self, instruction: &Instruction) -> impl Iterator<Item = &Place> {
        let at = |place: u32| self.places.get(place as usize);
        let first = instruction.place.and_then(at);
        std::iter::successors(first, move |place| place.caller.and_then(at))
    }

    /// Returns the file name and the line of an instruction: those of the algorithm's own page where its code was inlined
    /// into a line of the page, and otherwise the innermost ones.
    pub fn source_line(&self, instruction: &Instruction) -> Option<(&str, u32)> {
        let named = |place: &Place| {
            let file = self.files.get(place.file as usize)?;
            Some((file.rsplit('/').next().unwrap_or(file), place.line))
        };
        let lines = || self.places(instruction).filter_map(named);
        lines().find(|(file, _)| is_page(file)).or_else(|| lines().next())
    }
}

/// Whether a file is an algorithm's page: neither a header nor the text of the kernel.
pub fn is_page(file: &str) -> bool {
    let end = file.rsplit('.').next();
    !end.is_some_and(|end| ["cuh", "cu", "h", "hpp"].contains(&end))
}
