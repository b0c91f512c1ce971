//! Statements of a function.

use super::lexer::Token;
use super::parser::Parser;
use super::{InstructionText, OperandText, PlaceText, Statement};
use crate::error::BadText;

impl Parser<'_> {
    /// Reads the statements of a body behind its opening brace, up to the closing one.
    pub(super) fn statements(&mut self) -> Result<Vec<Statement>, BadText> {
        let (mut statements, mut depth) = (Vec::new(), 0);
        loop {
            let start = self.position_of_next();
            match self.take() {
                Some(Token::Mark('{')) => {
                    depth += 1;
                    statements.push(Statement::Open);
                }
                Some(Token::Mark('}')) if depth == 0 => return Ok(statements),
                Some(Token::Mark('}')) => {
                    depth -= 1;
                    statements.push(Statement::Close);
                }
                Some(Token::Mark('@')) => match self.guarded() {
                    Ok(instruction) => statements.push(Statement::Instruction(instruction)),
                    Err(error) => statements.push(Statement::Unread(self.unread(start, error)?)),
                },
                Some(Token::Word(word)) => match self.statement(word) {
                    Ok(statement) => statements.extend(statement),
                    Err(error) => statements.push(Statement::Unread(self.unread(start, error)?)),
                },
                Some(Token::Mark(';')) => {}
                _ => return Err(self.unexpected("an instruction")),
            }
        }
    }

    /// Reads a guarded instruction behind `@`.
    fn guarded(&mut self) -> Result<InstructionText, BadText> {
        let negated = self.is_mark('!');
        let guard = self.word("a truth value")?.to_owned();
        let opcode = self.word("an instruction")?;
        self.instruction(Some((guard, negated)), opcode)
    }

    fn statement(&mut self, word: &str) -> Result<Option<Statement>, BadText> {
        let line = self.line();
        Ok(Some(match word {
            ".reg" => {
                let ty = self.word("a type")?.to_owned();
                let mut names = Vec::new();
                loop {
                    let name = self.word("a register")?.to_owned();
                    let mut many = None;
                    if self.is_mark('<') {
                        many = Some(self.number("a number of registers")?);
                        self.mark('>')?;
                    }
                    names.push((name, many));
                    if !self.is_mark(',') {
                        break;
                    }
                }
                self.mark(';')?;
                Statement::Registers { line, ty, names }
            }
            ".local" | ".param" | ".shared" => {
                let declared = self.declaration(word)?;
                self.mark(';')?;
                Statement::Declare(declared)
            }
            ".loc" => self.place()?,
            ".pragma" => return self.pragma(),
            _ if word.starts_with('.') => {
                return Err(self.error(format!("the directive `{word}` is not in the subset")));
            }
            _ if self.is_mark(':') => Statement::Label(line, word.to_owned()),
            _ => Statement::Instruction(self.instruction(None, word)?),
        }))
    }

    fn place(&mut self) -> Result<Statement, BadText> {
        let at = self.position()?;
        let mut inlined_at = None;
        while self.is_mark(',') {
            match self.word("an attribute of the place")? {
                "function_name" => {
                    self.word("a label")?;
                    if self.is_mark('+') {
                        self.integer("an offset")?;
                    }
                }
                "inlined_at" => inlined_at = Some(self.position()?),
                _ => return Err(self.unexpected("`function_name` or `inlined_at`")),
            }
        }
        Ok(Statement::Place(PlaceText { at, inlined_at }))
    }

    fn position(&mut self) -> Result<[u32; 3], BadText> {
        let mut next = || self.number("a file, a line and a column");
        Ok([next()?, next()?, next()?])
    }

    fn pragma(&mut self) -> Result<Option<Statement>, BadText> {
        let Some(Token::Quoted(text)) = self.take() else {
            return Err(self.unexpected("a text"));
        };
        let found = match text.split_once(' ') {
            Some(("used_bytes_mask", mask)) => {
                let mask = match mask.trim().strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => mask.trim().parse(),
                };
                Some(mask.map_err(|_| self.error("the mask of used bytes is not a number"))?)
            }
            _ if text == "nounroll" => None,
            _ => return Err(self.error(format!("the pragma \"{text}\" is not in the subset"))),
        };
        self.mark(';')?;
        Ok(found.map(Statement::UsedBytes))
    }

    fn instruction(
        &mut self,
        guard: Option<(String, bool)>,
        opcode: &str,
    ) -> Result<InstructionText, BadText> {
        let line = self.line();
        let mut operands = Vec::new();
        if !self.is_mark(';') {
            loop {
                operands.push(self.operand()?);
                if self.is_mark(';') {
                    break;
                }
                self.mark(',')?;
            }
        }
        Ok(InstructionText { line, guard, opcode: opcode.to_owned(), operands })
    }

    fn operand(&mut self) -> Result<OperandText, BadText> {
        self.operand_within(0)
    }

    /// Reads an operand in so many brackets.
    fn operand_within(&mut self, depth: u32) -> Result<OperandText, BadText> {
        if depth > 1 {
            return Err(self.error("an operand in more than one pair of brackets"));
        }
        Ok(match self.take() {
            Some(Token::Word(name)) if self.is_mark('|') => {
                OperandText::Pair(name.to_owned(), self.word("a register")?.to_owned())
            }
            Some(Token::Word(name)) => OperandText::Name(name.to_owned()),
            Some(Token::Integer(value)) => OperandText::Integer(value),
            Some(Token::Float32(bits)) => OperandText::Float32(bits),
            Some(Token::Float64(bits)) => OperandText::Float64(bits),
            Some(Token::Mark('-')) => match self.take() {
                Some(Token::Integer(value)) => OperandText::Integer(value.wrapping_neg()),
                _ => return Err(self.unexpected("a number")),
            },
            Some(Token::Mark('!')) => OperandText::Not(self.word("a truth value")?.to_owned()),
            Some(Token::Mark('[')) => {
                let base = self.operand_within(depth + 1)?;
                let mut offset = 0;
                if self.is_mark('+') {
                    offset = self.integer("an offset")? as i64;
                }
                self.mark(']')?;
                OperandText::Address(Box::new(base), offset)
            }
            Some(Token::Mark('{')) => {
                let mut elements = Vec::new();
                loop {
                    elements.push(self.operand_within(depth + 1)?);
                    if self.is_mark('}') {
                        break;
                    }
                    self.mark(',')?;
                }
                OperandText::Vector(elements)
            }
            Some(Token::Mark('(')) => {
                let mut names = Vec::new();
                while !self.is_mark(')') {
                    if !names.is_empty() {
                        self.mark(',')?;
                    }
                    names.push(self.word("a parameter")?.to_owned());
                }
                OperandText::List(names)
            }
            _ => return Err(self.unexpected("an operand")),
        })
    }
}
