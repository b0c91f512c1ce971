//! The way from a text to a program: names become slots, offsets and indices, and opcodes become operations.

mod arithmetic;
mod body;
mod control;
mod float;
mod function;
mod memory;
mod opcode;

use std::collections::HashMap;

use crate::error::BadText;
use crate::program::{Module, Parameter, Place, Space, Type, Variable};
use crate::text::{Declaration, FunctionText, PlaceText, Text};

impl Module {
    /// Reads the text of a module, of which all functions are to be in the subset.
    ///
    /// # Errors
    /// A line that is not PTX, or not in the subset.
    pub fn parse_whole(text: &str) -> Result<Self, BadText> {
        let module = Self::parse(text)?;
        match module.lacks.first() {
            Some(lack) => Err(lack.why.clone()),
            None => Ok(module),
        }
    }

    /// Reads the text of a module. What is not in the subset is among [`lacks`](Self::lacks).
    ///
    /// # Errors
    /// The line that is not PTX.
    pub fn parse(text: &str) -> Result<Self, BadText> {
        let text = Text::parse(text)?;
        if let Some((number, _)) = text.files.iter().find(|(number, _)| *number > MOST_FILES) {
            return Err(BadText::new(1, format!("the number {number} of a file is too large")));
        }
        let files = text.files.iter().map(|(number, _)| *number as usize + 1).max().unwrap_or(0);
        let mut module = Self {
            version: text.version,
            target: text.target,
            functions: Vec::new(),
            variables: Vec::new(),
            files: vec![String::new(); files],
            places: Vec::new(),
            lacks: Vec::new(),
        };
        for unread in text.unread {
            module.lack("", &unread.spelling, unread.error);
        }
        for (number, name) in text.files {
            module.files[number as usize] = name;
        }
        for declared in &text.variables {
            match variable(declared) {
                Ok(variable) => module.variables.push(variable),
                Err(why) => module.lack("", &declared.ty, why),
            }
        }
        let bodies: Vec<_> = text.functions.iter().filter(|text| text.body.is_some()).collect();
        let mut names = Names::default();
        for (number, variable) in module.variables.iter().enumerate() {
            names.variables.insert(variable.name.clone(), number as u32);
        }
        for (number, text) in bodies.iter().enumerate() {
            let frame = ParamFrame::of(text).unwrap_or_else(|why| {
                module.lack(&text.name, ".param", why);
                ParamFrame::default()
            });
            names.functions.insert(text.name.clone(), (number as u32, frame));
        }
        let mut places = Places::default();
        for text in bodies {
            let function = function::function(text, &mut module, &names, &mut places);
            module.functions.push(function);
        }
        module.places = places.all;
        Ok(module)
    }
}

/// The most bytes of a frame, of a variable, and of an alignment.
const MOST_BYTES: u32 = 1 << 26;

/// The largest number of a source file.
const MOST_FILES: u32 = 1 << 16;

/// The names of a module.
#[derive(Default)]
struct Names {
    variables: HashMap<String, u32>,
    /// Functions with a body: the index and the frame.
    functions: HashMap<String, (u32, ParamFrame)>,
}

/// The parameters and returned values of a function, at their places in its frame.
#[derive(Clone, Default)]
struct ParamFrame {
    parameters: Vec<Parameter>,
    returns: Vec<Parameter>,
    bytes: u32,
}

impl ParamFrame {
    fn of(text: &FunctionText) -> Result<Self, BadText> {
        let mut frame = Self::default();
        let place = |frame: &mut Self, all: &[Declaration]| -> Result<Vec<Parameter>, BadText> {
            all.iter().map(|declared| frame.place(declared)).collect()
        };
        frame.parameters = place(&mut frame, &text.parameters)?;
        frame.returns = place(&mut frame, &text.returns)?;
        Ok(frame)
    }

    /// Adds a declaration to the frame.
    fn place(&mut self, declared: &Declaration) -> Result<Parameter, BadText> {
        let size = size(declared)?;
        let bytes = size.bytes.ok_or_else(|| size.open(declared))?;
        let offset = self.bytes.next_multiple_of(size.align);
        self.bytes = end(declared, offset, bytes)?;
        Ok(Parameter { name: declared.name.clone(), offset, bytes })
    }
}

/// The size of a declaration.
struct Extent {
    /// Bytes of an element.
    element: u32,
    align: u32,
    /// Bytes of all elements, unless the launch gives their number.
    bytes: Option<u32>,
}

impl Extent {
    fn open(&self, declared: &Declaration) -> BadText {
        let what = format!("`{}` has no size, with elements of {}", declared.name, self.element);
        BadText::new(declared.line, what)
    }
}

fn size(declared: &Declaration) -> Result<Extent, BadText> {
    let ty = opcode::ty(declared.ty.trim_start_matches('.')).filter(|ty| *ty != Type::Pred);
    let ty = ty.ok_or_else(|| {
        BadText::new(declared.line, format!("`{}` is not a type of memory", declared.ty))
    })?;
    let element = ty.bytes();
    let align = declared.align.unwrap_or(element);
    if !align.is_power_of_two() || align > MOST_BYTES {
        return Err(BadText::new(declared.line, format!("an alignment of {align}")));
    }
    let bytes = declared.elements.map(|many| end(declared, 0, many.saturating_mul(element)));
    Ok(Extent { element, align, bytes: bytes.transpose()? })
}

/// Returns the end of a range of bytes.
fn end(declared: &Declaration, offset: u32, bytes: u32) -> Result<u32, BadText> {
    let end = offset.checked_add(bytes).filter(|&end| end <= MOST_BYTES);
    end.ok_or_else(|| BadText::new(declared.line, format!("`{}` is too large", declared.name)))
}

fn variable(declared: &Declaration) -> Result<Variable, BadText> {
    let size = size(declared)?;
    let space = match declared.space.as_str() {
        ".global" => Space::Global,
        ".const" => Space::Const,
        _ => Space::Shared,
    };
    if space != Space::Shared && size.bytes.is_none() {
        return Err(size.open(declared));
    }
    let bytes = size.bytes.unwrap_or(0);
    let mut initial = Vec::new();
    for value in &declared.initial {
        initial.extend_from_slice(&value.to_le_bytes()[..size.element as usize]);
    }
    if initial.len() > bytes as usize || (space == Space::Shared && !initial.is_empty()) {
        return Err(BadText::new(declared.line, "an initialiser that does not fit"));
    }
    if space != Space::Shared {
        initial.resize(bytes as usize, 0);
    }
    Ok(Variable { name: declared.name.clone(), space, align: size.align, bytes, initial })
}

/// The places of a module, each once.
#[derive(Default)]
struct Places {
    all: Vec<Place>,
    numbers: HashMap<Place, u32>,
    /// The last place at each position: the place of the call that a later place names as its caller.
    last: HashMap<[u32; 3], u32>,
}

impl Places {
    /// Returns the number of the place that a `.loc` line gives.
    fn number(&mut self, text: PlaceText) -> u32 {
        let [file, line, column] = text.at;
        let caller = text.inlined_at.map(|at| match self.last.get(&at) {
            Some(number) => *number,
            None => self.number(PlaceText { at, inlined_at: None }),
        });
        let place = Place { file, line, column, caller };
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.all.push(place);
        }
        self.last.insert(text.at, number);
        number
    }
}

#[cfg(test)]
mod tests;
