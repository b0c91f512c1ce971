//! The code of all ranks in one array, and the places of frames and variables.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::fault::LaunchError;
use crate::memory::{LANES, variables_at};
use crate::program::{Function, Instruction, Lack, Module, Operation, Space, Symbol, Variable};

/// A function in the array of all code.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    /// The function.
    pub(crate) function: &'a Function,
    /// The module that has it.
    pub(crate) module: usize,
    /// The index of its first instruction.
    pub(crate) first: u32,
    /// The number of its first register.
    pub(crate) registers: u32,
    /// The offset of its frame in local memory.
    pub(crate) local: u64,
    /// The offset of its frame in parameter space.
    pub(crate) param: u64,
}

/// The sizes of a module's frames and variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) registers: u32,
    pub(crate) local: u64,
    pub(crate) param: u64,
    pub(crate) shared: u64,
    pub(crate) constants: Rc<[u8]>,
    pub(crate) globals: Vec<u8>,
    /// The offset of each variable in its space.
    variables: Vec<u64>,
}

/// The code of all ranks.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    modules: Vec<&'a Module>,
    pub(crate) sizes: Vec<Sizes>,
    pub(crate) frames: Vec<Frame<'a>>,
    pub(crate) code: Vec<&'a Instruction>,
    /// The first frame of each module.
    first_frame: Vec<usize>,
}

impl<'a> Image<'a> {
    /// The code of these modules, each once.
    pub(crate) fn new(all: impl Iterator<Item = &'a Module>) -> Result<Self, LaunchError> {
        let mut image = Self {
            modules: Vec::new(),
            sizes: Vec::new(),
            frames: Vec::new(),
            code: Vec::new(),
            first_frame: Vec::new(),
        };
        for module in all {
            if image.module(module).is_none() {
                image.add(module)?;
            }
        }
        Ok(image)
    }

    fn module(&self, module: &Module) -> Option<usize> {
        self.modules.iter().position(|&known| std::ptr::eq(known, module))
    }

    fn add(&mut self, module: &'a Module) -> Result<(), LaunchError> {
        let mut sizes = variables(module);
        let number = self.modules.len();
        let base = self.frames.len();
        for function in &module.functions {
            let first = self.code.len() as u32;
            self.code.extend(&function.instructions);
            self.frames.push(Frame {
                function,
                module: number,
                first,
                registers: 0,
                local: 0,
                param: 0,
            });
        }
        // A frame is behind those of all functions that may call its function.
        for caller in callers_first(module)? {
            let Frame { function, registers, local, param, .. } = self.frames[base + caller];
            let registers = registers + function.slots;
            let local = (local + u64::from(function.local_bytes)).next_multiple_of(16);
            let param = (param + u64::from(function.parameter_bytes)).next_multiple_of(16);
            for called in calls(function) {
                let frame = &mut self.frames[base + called];
                frame.registers = frame.registers.max(registers);
                frame.local = frame.local.max(local);
                frame.param = frame.param.max(param);
            }
            sizes.registers = sizes.registers.max(registers);
            sizes.local = sizes.local.max(local);
            sizes.param = sizes.param.max(param);
        }
        self.first_frame.push(base);
        self.modules.push(module);
        self.sizes.push(sizes);
        Ok(())
    }

    /// The frame of a kernel.
    pub(crate) fn kernel(&self, module: &Module, name: &str) -> Result<usize, LaunchError> {
        let number = self.module(module);
        let function = module.function(name).filter(|&f| module.functions[f].is_kernel);
        match (number, function) {
            (Some(number), Some(function)) => {
                let lacks: Vec<Lack> = module.lacks_of(function).into_iter().cloned().collect();
                if lacks.is_empty() {
                    Ok(self.first_frame[number] + function)
                } else {
                    Err(LaunchError::Lacks(name.to_owned(), lacks))
                }
            }
            _ => Err(LaunchError::Kernel(name.to_owned())),
        }
    }

    /// The frame of the function `called` of the module that has the frame `caller`.
    pub(crate) fn called(&self, caller: usize, called: u32) -> usize {
        self.first_frame[self.frames[caller].module] + called as usize
    }

    /// The address of a symbol in its space, for a function's frame and the variables of a launch.
    pub(crate) fn address(&self, frame: usize, symbol: Symbol, variables: u32) -> u64 {
        let frame = &self.frames[frame];
        match symbol {
            Symbol::Variable(variable, offset) => {
                self.variable(frame.module, variable, variables).wrapping_add_signed(offset)
            }
            Symbol::Local(offset) => frame.local.wrapping_add_signed(offset),
            Symbol::Param(offset) => frame.param.wrapping_add_signed(offset),
        }
    }

    fn variable(&self, module: usize, variable: u32, variables: u32) -> u64 {
        let offset = self.sizes[module].variables[variable as usize];
        match self.modules[module].variables[variable as usize].space {
            Space::Global => variables_at(variables) + offset,
            _ => offset,
        }
    }

    /// The bytes of a variable among those of all variables of a module in global memory.
    pub(crate) fn global(module: &Module, name: &str) -> Option<Range<usize>> {
        let is_it = |variable: &Variable| variable.space == Space::Global && variable.name == name;
        let number = module.variables.iter().position(is_it)?;
        let first = variables(module).variables[number] as usize;
        Some(first..first + module.variables[number].bytes as usize)
    }

    /// The variable of a module at an offset in global memory, and the offset in it.
    pub(crate) fn global_at(&self, module: usize, offset: u64) -> Option<(&str, u64)> {
        let variables = self.modules[module].variables.iter().zip(&self.sizes[module].variables);
        let mut globals = variables.filter(|(variable, _)| variable.space == Space::Global);
        globals.find_map(|(variable, &first)| {
            let within = offset.checked_sub(first)?;
            (within < variable.bytes.into()).then_some((variable.name.as_str(), within))
        })
    }

    /// The variables of a module in global memory, by their names, from the bytes of all of them.
    pub(crate) fn globals(&self, module: usize, bytes: &[u8]) -> HashMap<String, Vec<u8>> {
        let variables = self.modules[module].variables.iter().zip(&self.sizes[module].variables);
        let globals = variables.filter(|(variable, _)| variable.space == Space::Global);
        globals
            .filter_map(|(variable, &offset)| {
                let bytes = bytes.get(offset as usize..)?.get(..variable.bytes as usize)?;
                Some((variable.name.clone(), bytes.to_vec()))
            })
            .collect()
    }

    /// The number of the frame of the function that has an instruction.
    pub(crate) fn frame_number(&self, place: u32) -> usize {
        self.frames.partition_point(|frame| frame.first <= place) - 1
    }

    /// The module that has an instruction.
    pub(crate) fn module_of(&self, place: u32) -> &'a Module {
        self.modules[self.frames[self.frame_number(place)].module]
    }
}

/// Lays the variables of a module out.
fn variables(module: &Module) -> Sizes {
    let mut sizes = Sizes::default();
    let mut constants = Vec::new();
    let aligned = |bytes: usize, align: u32| bytes.next_multiple_of(align.max(1) as usize);
    for variable in &module.variables {
        let bytes = match variable.space {
            Space::Global => &mut sizes.globals,
            Space::Const => &mut constants,
            _ => {
                let offset = sizes.shared.next_multiple_of(u64::from(variable.align.max(1)));
                sizes.variables.push(offset);
                sizes.shared = offset + u64::from(variable.bytes);
                continue;
            }
        };
        let offset = aligned(bytes.len(), variable.align);
        sizes.variables.push(offset as u64);
        bytes.resize(offset, 0);
        bytes.extend(&variable.initial);
        bytes.resize(offset + variable.bytes as usize, 0);
    }
    sizes.constants = constants.into();
    // An array whose size the launch gives is behind all others.
    for (variable, offset) in module.variables.iter().zip(&mut sizes.variables) {
        if variable.space == Space::Shared && variable.bytes == 0 {
            *offset = sizes.shared.next_multiple_of(u64::from(variable.align.max(1)));
        }
    }
    sizes
}

/// The functions that a function calls.
fn calls(function: &Function) -> impl Iterator<Item = usize> {
    function.instructions.iter().filter_map(|instruction| match &instruction.operation {
        Operation::Call(call) => Some(call.function as usize),
        _ => None,
    })
}

/// The functions of a module, each behind all that call it.
fn callers_first(module: &Module) -> Result<Vec<usize>, LaunchError> {
    let functions = &module.functions;
    let mut callers = vec![0; functions.len()];
    functions.iter().flat_map(calls).for_each(|called| callers[called] += 1);
    let mut order: Vec<usize> = (0..functions.len()).filter(|&f| callers[f] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for called in calls(&functions[order[next]]) {
            callers[called] -= 1;
            if callers[called] == 0 {
                order.push(called);
            }
        }
        next += 1;
    }
    match callers.iter().position(|&left| left > 0) {
        Some(function) => Err(LaunchError::Recursion(functions[function].name.clone())),
        None => Ok(order),
    }
}

/// The lanes of a mask.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    let mut left = mask;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let lane = left.trailing_zeros();
            left &= left - 1;
            lane
        })
    })
}

/// The mask of the first `count` lanes of a warp.
pub(crate) fn first_lanes(count: u32) -> u32 {
    u32::MAX >> (LANES - count.clamp(1, LANES))
}
