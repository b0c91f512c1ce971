//! The text of a PTX module as declarations and statements, before names and types are resolved.

mod body;
mod lexer;
mod parser;

use crate::error::BadText;

/// A module as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) version: (u32, u32),
    pub(crate) target: String,
    /// The numbers and names of source files.
    pub(crate) files: Vec<(u32, String)>,
    pub(crate) variables: Vec<Declaration>,
    pub(crate) functions: Vec<FunctionText>,
    /// Declarations of the module that cannot be read.
    pub(crate) unread: Vec<UnreadText>,
}

/// A declaration of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) line: u32,
    /// The space, such as `.param`.
    pub(crate) space: String,
    pub(crate) align: Option<u32>,
    /// The type, such as `.b64`.
    pub(crate) ty: String,
    pub(crate) name: String,
    /// The number of elements; absent where the launch gives it.
    pub(crate) elements: Option<u32>,
    /// The values of the initialiser, as bits.
    pub(crate) initial: Vec<u64>,
}

/// A kernel or a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionText {
    pub(crate) line: u32,
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    pub(crate) returns: Vec<Declaration>,
    pub(crate) parameters: Vec<Declaration>,
    pub(crate) most_threads: Option<[u32; 3]>,
    /// The statements, absent in a forward declaration.
    pub(crate) body: Option<Vec<Statement>>,
}

/// A statement of a function, with the line of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// The begin of a block of declarations.
    Open,
    /// The end of such a block.
    Close,
    Label(u32, String),
    /// Registers of a type: a name, and how many there are of it if it is a prefix.
    Registers {
        line: u32,
        ty: String,
        names: Vec<(String, Option<u32>)>,
    },
    Declare(Declaration),
    Place(PlaceText),
    /// The bytes that the next access uses, `.pragma "used_bytes_mask"`.
    UsedBytes(u32),
    Instruction(InstructionText),
    Unread(UnreadText),
}

/// A statement or declaration that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadText {
    pub(crate) error: BadText,
    /// The first word.
    pub(crate) spelling: String,
}

/// A `.loc`: file, line and column, and those of the call where the code was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlaceText {
    pub(crate) at: [u32; 3],
    pub(crate) inlined_at: Option<[u32; 3]>,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstructionText {
    pub(crate) line: u32,
    /// The register of the condition, and whether it is negated.
    pub(crate) guard: Option<(String, bool)>,
    pub(crate) opcode: String,
    pub(crate) operands: Vec<OperandText>,
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OperandText {
    /// A register, a label, a variable or a function.
    Name(String),
    /// A truth value with `!`.
    Not(String),
    Integer(u64),
    Float32(u32),
    Float64(u64),
    /// Two results, `a|b`.
    Pair(String, String),
    /// An address in brackets: a name or a number, and an offset.
    Address(Box<OperandText>, i64),
    /// A vector in braces.
    Vector(Vec<OperandText>),
    /// Names in parentheses.
    List(Vec<String>),
}

impl Text {
    /// Reads a text.
    pub(crate) fn parse(text: &str) -> Result<Self, BadText> {
        let tokens = lexer::tokens(text)?;
        parser::Parser::new(&tokens).module()
    }
}
