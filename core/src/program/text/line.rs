//! One line of a program's text: its words, and the expressions among them.

use super::names::{Names, span};
use crate::program::ir::{Expr, Kind, Op, VarId};
use crate::schedule::text::{number, unquoted};
use crate::source::Span;
use crate::syntax::ast::BinOp;

/// A line that is being read from its start to its end.
pub(super) struct ProgramLine<'n> {
    names: &'n Names,
    words: std::vec::IntoIter<String>,
    /// The places of expressions, in the order of the line.
    spans: std::vec::IntoIter<Span>,
    /// The nesting depth of the expression that is being read.
    depth: usize,
}

/// A bound of the nesting of expressions in compiled programs: those of a source nest 128 deep.
const MOST_DEPTH: usize = 512;

impl<'n> ProgramLine<'n> {
    pub(super) fn new(text: &str, names: &'n Names) -> Result<Self, String> {
        let (text, spans) = text.rsplit_once(" // ").unwrap_or((text, ""));
        let spans = spans.split_whitespace().map(span).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { names, words: words(text)?.into_iter(), spans: spans.into_iter(), depth: 0 })
    }

    /// Returns the next word without taking it.
    fn peek(&self) -> &str {
        self.words.as_slice().first().map_or("", String::as_str)
    }

    pub(super) fn is_done(&self) -> bool {
        self.words.as_slice().is_empty()
    }

    pub(super) fn word(&mut self) -> Result<String, String> {
        self.words.next().ok_or_else(|| "the line ends too early".to_owned())
    }

    /// Whether the next word is `word`, which is then taken.
    pub(super) fn skip(&mut self, word: &str) -> bool {
        let found = self.peek() == word;
        if found {
            self.words.next();
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.skip(word) {
            return Ok(());
        }
        Err(format!("expected `{word}`, found `{}`", self.peek()))
    }

    pub(super) fn end(&mut self) -> Result<(), String> {
        match (self.is_done(), self.spans.as_slice().is_empty()) {
            (true, true) => Ok(()),
            (false, _) => Err(format!("expected the end of the line, found `{}`", self.peek())),
            (true, false) => Err("the line has more places than expressions".into()),
        }
    }

    pub(super) fn string(&mut self) -> Result<String, String> {
        unquoted(&self.word()?)
    }

    pub(super) fn var(&mut self) -> Result<(VarId, Kind), String> {
        let word = self.word()?;
        self.names.var(&word)
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
            Op::Var(self.names.var(&word)?.0)
        } else if let Some(rate) = word.strip_suffix("B/s") {
            Op::Rate(number(rate)?)
        } else if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            match word.strip_suffix("ns") {
                Some(time) => Op::Time(number(time)?),
                None => Op::Int(number(&word)?),
            }
        } else {
            Op::named(&word).ok_or_else(|| format!("no operator is called `{word}`"))?
        };
        let args = if self.peek() == "(" { self.list(&[])? } else { Vec::new() };
        Ok((op, args))
    }
}

/// Splits a line into words: brackets and commas are words, and a text in quotes is one.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '(' | ')' | ',' | '{' | '}' => 1,
            '"' => {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|(_, c)| {
                    let ends = *c == '"' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    ends
                });
                end.ok_or("a text in quotes does not end")?.0 + 1
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '{' | '}');
                rest.find(ends).unwrap_or(rest.len())
            }
        };
        words.push(rest[..len].to_owned());
        rest = rest[len..].trim_start();
    }
    Ok(words)
}
