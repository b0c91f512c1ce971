//! One line of a program's text: its words, and the expressions among them.

use std::ops::{Deref, DerefMut};

use super::names::{Names, span};
use crate::line::{Line, number, unquote};
use crate::program::ir::{Expr, Kind, Op, VarId};
use crate::source::Span;
use crate::syntax::ast::BinOp;

/// A line that is being read from its start to its end.
pub(super) struct ProgramLine<'n> {
    names: &'n Names,
    line: Line<'n>,
    /// The places of expressions, in the order of the line.
    spans: std::vec::IntoIter<Span>,
    /// The nesting depth of the expression that is being read.
    depth: usize,
}

/// A bound of the nesting of expressions in compiled programs: those of a source nest 128 deep.
const MOST_DEPTH: usize = 512;

impl<'n> Deref for ProgramLine<'n> {
    type Target = Line<'n>;

    fn deref(&self) -> &Line<'n> {
        &self.line
    }
}

impl DerefMut for ProgramLine<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.line
    }
}

impl<'n> ProgramLine<'n> {
    pub(super) fn new(text: &'n str, names: &'n Names) -> Result<Self, String> {
        let (text, spans) = text.rsplit_once(" // ").unwrap_or((text, ""));
        let spans = spans.split_whitespace().map(span).collect::<Result<Vec<_>, _>>()?;
        let line = Line::new(text, &['(', ')', ',', '{', '}', '"'])?;
        Ok(Self { names, line, spans: spans.into_iter(), depth: 0 })
    }

    pub(super) fn end(&self) -> Result<(), String> {
        self.line.end()?;
        if self.spans.as_slice().is_empty() {
            return Ok(());
        }
        Err("the line has more places than expressions".into())
    }

    pub(super) fn string(&mut self) -> Result<String, String> {
        unquote(self.word()?)
    }

    pub(super) fn var(&mut self) -> Result<(VarId, Kind), String> {
        let word = self.word()?;
        self.names.var(word)
    }

    pub(super) fn var_of(&mut self, kind: Kind) -> Result<VarId, String> {
        let (var, found) = self.var()?;
        if found == kind { Ok(var) } else { Err(format!("this variable is no {}", kind.name())) }
    }

    /// Reads an expression whose value is of one of these kinds.
    pub(super) fn expr_of(&mut self, kinds: &[Kind]) -> Result<Expr, String> {
        let (expr, kind) = self.expr()?;
        if kinds.contains(&kind) {
            return Ok(expr);
        }
        let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        Err(format!("expected a {}, found a {}", names.join(" or a "), kind.name()))
    }

    pub(super) fn number(&mut self) -> Result<Expr, String> {
        self.expr_of(&[Kind::Number])
    }

    pub(super) fn place(&mut self) -> Result<Expr, String> {
        self.expr_of(&[Kind::Place])
    }

    pub(super) fn places(&mut self) -> Result<Vec<Expr>, String> {
        let places = self.list(&[Kind::Place])?;
        Ok(places.into_iter().map(|(place, _)| place).collect())
    }

    pub(super) fn range(&mut self) -> Result<(Expr, Expr), String> {
        let lo = self.number()?;
        self.expect("..")?;
        Ok((lo, self.number()?))
    }

    /// Reads the value behind a word, if the word comes next.
    pub(super) fn option(&mut self, word: &str, kinds: &[Kind]) -> Result<Option<Expr>, String> {
        if self.skip(word) { self.expr_of(kinds).map(Some) } else { Ok(None) }
    }

    /// Reads expressions in brackets, of these kinds if any are named.
    pub(super) fn list(&mut self, kinds: &[Kind]) -> Result<Vec<(Expr, Kind)>, String> {
        self.expect("(")?;
        let mut items = Vec::new();
        if self.skip(")") {
            return Ok(items);
        }
        loop {
            let (item, kind) = self.expr()?;
            if !kinds.is_empty() && !kinds.contains(&kind) {
                return Err(format!("expected a {}, found a {}", kinds[0].name(), kind.name()));
            }
            items.push((item, kind));
            if self.skip(")") {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    fn expr(&mut self) -> Result<(Expr, Kind), String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(format!("an expression nests deeper than {MOST_DEPTH}"));
        }
        let span = self.spans.next().ok_or("the line has fewer places than expressions")?;
        let (op, args) = self.operation()?;
        self.depth -= 1;
        let kinds: Vec<_> = args.iter().map(|(_, kind)| *kind).collect();
        let kind = match op {
            Op::Var(var) => Some(self.names.kind(var)),
            op => op.result(&kinds),
        };
        let kind = kind.ok_or_else(|| {
            let name = op.name().unwrap_or_else(|| "this operator".to_owned());
            format!("{name} does not take such operands")
        })?;
        let args = args.into_iter().map(|(arg, _)| arg).collect();
        Ok((Expr { op, args, span }, kind))
    }

    fn operation(&mut self) -> Result<(Op, Vec<(Expr, Kind)>), String> {
        if self.skip("(") {
            let left = self.expr()?;
            let word = self.word()?;
            let op = BinOp::ALL.into_iter().find(|op| op.text() == word);
            let op = op.ok_or_else(|| format!("`{word}` is no operator"))?;
            let right = self.expr()?;
            self.expect(")")?;
            return Ok((Op::Binary(op), vec![left, right]));
        }
        let word = self.word()?;
        let op = if word.starts_with('%') {
            Op::Var(self.names.var(word)?.0)
        } else if let Some(rate) = word.strip_suffix("B/s") {
            Op::Rate(number(rate)?)
        } else if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            match word.strip_suffix("ns") {
                Some(time) => Op::Time(number(time)?),
                None => Op::Int(number(word)?),
            }
        } else {
            Op::from_name(word).ok_or_else(|| format!("no operator is called `{word}`"))?
        };
        let args = if self.peek() == "(" { self.list(&[])? } else { Vec::new() };
        Ok((op, args))
    }
}
