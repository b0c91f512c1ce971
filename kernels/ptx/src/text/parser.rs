//! Directives and declarations of a module. Statements are read in [`super::body`].

use super::lexer::{Placed, Token};
use super::{Declaration, FunctionText, Text, UnreadText};
use crate::error::BadText;

/// A reader of tokens.
pub(super) struct Parser<'t> {
    tokens: &'t [Placed<'t>],
    next: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(tokens: &'t [Placed<'t>]) -> Self {
        Self { tokens, next: 0 }
    }

    /// Reads a whole module.
    pub(super) fn module(mut self) -> Result<Text, BadText> {
        let mut module = Text::default();
        while let Some(token) = self.peek() {
            let start = self.next;
            self.next += 1;
            let Token::Word(word) = token else { return Err(self.unexpected("a directive")) };
            match word {
                ".version" => module.version = self.version()?,
                ".target" => self.word("an architecture")?.clone_into(&mut module.target),
                ".address_size" => {
                    if self.integer("a size")? != 64 {
                        return Err(self.error("addresses of 64 bits alone are in the subset"));
                    }
                }
                ".file" => {
                    let number = self.number("a number of a file")?;
                    let Some(Token::Quoted(name)) = self.take() else {
                        return Err(self.unexpected("a file name"));
                    };
                    module.files.push((number, name.to_owned()));
                    while self.is_mark(',') {
                        self.integer("a time or a size")?;
                    }
                }
                ".section" => self.section()?,
                ".visible" | ".weak" | ".extern" => {}
                ".global" | ".const" | ".shared" => match self.variable(word) {
                    Ok(declared) => module.variables.push(declared),
                    Err(error) => module.unread.push(self.unread(start, error)?),
                },
                ".entry" | ".func" => module.functions.push(self.function(word == ".entry")?),
                _ => {
                    let error = self.error(format!("the directive `{word}` is not in the subset"));
                    module.unread.push(self.unread(start, error)?);
                }
            }
        }
        Ok(module)
    }

    fn variable(&mut self, space: &str) -> Result<Declaration, BadText> {
        let declared = self.declaration(space)?;
        self.mark(';')?;
        Ok(declared)
    }

    /// The number of the next token.
    pub(super) fn position_of_next(&self) -> usize {
        self.next
    }

    /// Skips a statement from its first token on, which cannot be read for that reason.
    pub(super) fn unread(&mut self, start: usize, error: BadText) -> Result<UnreadText, BadText> {
        self.next = start;
        let mut spelling = None;
        let (mut depth, mut is_guard) = (0, false);
        loop {
            match self.peek() {
                Some(Token::Mark('{')) => depth += 1,
                Some(Token::Mark('}')) if depth == 0 => break,
                Some(Token::Mark('}')) => depth -= 1,
                Some(Token::Mark('@')) => is_guard = true,
                Some(Token::Word(_)) if is_guard => is_guard = false,
                Some(Token::Word(word)) => spelling = spelling.or(Some(word.to_owned())),
                Some(Token::Mark(';')) => {
                    self.next += 1;
                    break;
                }
                Some(_) => {}
                None => return Err(error),
            }
            self.next += 1;
        }
        Ok(UnreadText { error, spelling: spelling.unwrap_or_default() })
    }

    /// Reads the version, which the lexer splits at its point: a number and a word such as `.0`.
    fn version(&mut self) -> Result<(u32, u32), BadText> {
        let major = self.number("a version")?;
        let mark = self.word("a minor version")?;
        let minor = mark.trim_start_matches('.').parse();
        minor.map(|minor| (major, minor)).map_err(|_| self.error("the version has no minor number"))
    }

    /// Skips the section of debug information behind its directive.
    fn section(&mut self) -> Result<(), BadText> {
        self.word("a section")?;
        self.mark('{')?;
        loop {
            match self.take() {
                Some(Token::Mark('}')) => return Ok(()),
                Some(_) => {}
                None => return Err(self.unexpected("the end of the section")),
            }
        }
    }

    fn function(&mut self, is_kernel: bool) -> Result<FunctionText, BadText> {
        let line = self.line();
        let returns = if self.is_mark('(') { self.declarations(true)? } else { Vec::new() };
        let name = self.word("a name")?.to_owned();
        let parameters = if self.is_mark('(') { self.declarations(true)? } else { Vec::new() };
        let (mut most_threads, mut body) = (None, None);
        loop {
            match self.take() {
                Some(Token::Mark(';')) => break,
                Some(Token::Mark('{')) => {
                    body = Some(self.statements()?);
                    break;
                }
                Some(Token::Word(".maxntid" | ".reqntid")) => most_threads = Some(self.three()?),
                Some(Token::Word(".minnctapersm" | ".maxnreg" | ".maxclusterrank")) => {
                    self.integer("a number")?;
                }
                Some(Token::Word(".reqnctapercluster")) => {
                    self.three()?;
                }
                Some(Token::Word(".noreturn" | ".explicitcluster" | ".blocksareclusters")) => {}
                _ => return Err(self.unexpected("a body")),
            }
        }
        Ok(FunctionText { line, name, is_kernel, returns, parameters, most_threads, body })
    }

    /// Reads up to three numbers; absent ones are 1.
    fn three(&mut self) -> Result<[u32; 3], BadText> {
        let mut numbers = [self.number("a number of threads")?, 1, 1];
        for number in &mut numbers[1..] {
            if self.is_mark(',') {
                *number = self.number("a number of threads")?;
            }
        }
        Ok(numbers)
    }

    /// Reads declarations in parentheses, behind the opening one.
    fn declarations(&mut self, mut first: bool) -> Result<Vec<Declaration>, BadText> {
        let mut declared = Vec::new();
        while !self.is_mark(')') {
            if !first {
                self.mark(',')?;
            }
            first = false;
            let space = self.word("`.param`")?;
            if space != ".param" {
                return Err(self.unexpected("`.param`"));
            }
            declared.push(self.declaration(space)?);
        }
        Ok(declared)
    }

    /// Reads a declaration behind its space.
    pub(super) fn declaration(&mut self, space: &str) -> Result<Declaration, BadText> {
        let line = self.line();
        let mut align = None;
        let mut ty = self.word("a type")?;
        if ty == ".align" {
            align = Some(self.number("an alignment")?);
            ty = self.word("a type")?;
        }
        let mut name = self.word("a name")?;
        if name == ".ptr" {
            // What a pointer points to has no effect on its value.
            name = self.word("a name")?;
            if [".global", ".const", ".shared", ".local"].contains(&name) {
                name = self.word("a name")?;
            }
            if name == ".align" {
                self.number("an alignment")?;
                name = self.word("a name")?;
            }
        }
        let name = name.to_owned();
        let mut elements = Some(1);
        if self.is_mark('[') {
            elements = None;
            if !self.is_mark(']') {
                elements = Some(self.number("a size")?);
                self.mark(']')?;
            }
        }
        let mut initial = Vec::new();
        if self.is_mark('=') {
            if self.is_mark('{') {
                loop {
                    initial.push(self.integer("a value")?);
                    if self.is_mark('}') {
                        break;
                    }
                    self.mark(',')?;
                }
            } else {
                initial.push(self.integer("a value")?);
            }
        }
        let (space, ty) = (space.to_owned(), ty.to_owned());
        Ok(Declaration { line, space, align, ty, name, elements, initial })
    }

    pub(super) fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.next).map(|placed| placed.token)
    }

    pub(super) fn take(&mut self) -> Option<Token<'t>> {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// Whether the next token is this mark, which is then taken.
    pub(super) fn is_mark(&mut self, mark: char) -> bool {
        let is = self.peek() == Some(Token::Mark(mark));
        self.next += usize::from(is);
        is
    }

    pub(super) fn mark(&mut self, mark: char) -> Result<(), BadText> {
        match self.take() {
            Some(Token::Mark(found)) if found == mark => Ok(()),
            _ => Err(self.unexpected(&format!("`{mark}`"))),
        }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'t str, BadText> {
        match self.take() {
            Some(Token::Word(word)) => Ok(word),
            _ => Err(self.unexpected(what)),
        }
    }

    /// Reads an integer with or without a sign, as 64 bits, or the bits of a float.
    pub(super) fn integer(&mut self, what: &str) -> Result<u64, BadText> {
        let negative = self.is_mark('-');
        match self.take() {
            Some(Token::Integer(value)) if negative => Ok(value.wrapping_neg()),
            Some(Token::Integer(value) | Token::Float64(value)) => Ok(value),
            Some(Token::Float32(value)) => Ok(value.into()),
            _ => Err(self.unexpected(what)),
        }
    }

    pub(super) fn number(&mut self, what: &str) -> Result<u32, BadText> {
        let value = self.integer(what)?;
        u32::try_from(value).map_err(|_| self.error(format!("{value} is too large for {what}")))
    }

    /// The line of the token before the next one.
    pub(super) fn line(&self) -> u32 {
        let last = self.tokens.len().saturating_sub(1);
        let token = self.tokens.get(self.next.saturating_sub(1).min(last));
        token.map_or(1, |placed| placed.line)
    }

    pub(super) fn error(&self, what: impl Into<String>) -> BadText {
        BadText::new(self.line(), what)
    }

    /// The refusal of the token that was taken last.
    pub(super) fn unexpected(&self, expected: &str) -> BadText {
        let taken = self.next.checked_sub(1).and_then(|last| self.tokens.get(last));
        let found = match taken.map(|placed| placed.token) {
            Some(Token::Word(word)) => format!("`{word}`"),
            Some(Token::Quoted(text)) => format!("\"{text}\""),
            Some(Token::Mark(mark)) => format!("`{mark}`"),
            Some(Token::Integer(value)) => value.to_string(),
            Some(Token::Float32(bits)) => format!("0f{bits:08X}"),
            Some(Token::Float64(bits)) => format!("0d{bits:016X}"),
            None => "the end of the text".to_owned(),
        };
        self.error(format!("{found} where {expected} is expected"))
    }
}
