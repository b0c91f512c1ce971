//! Reads the text of a form.

use std::collections::HashMap;
use std::str::FromStr;

use crate::loops::form::{LoopFunction, Loops};
use crate::loops::ir::{
    At, LoopNode, LoopPlace, MessageStep, Number, Piece, binary, entry, executing,
};
use crate::loops::tables::Tables;
use roundelay_core::collective::Collective;
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::program::ir::{Kind, Op};
use roundelay_core::schedule::Buffer;
use roundelay_core::schedule::text::{TextError, signal_kind};
use roundelay_core::syntax::ast::BinOp;

type Read<T> = Result<T, String>;

/// The deepest nesting of statements and of numbers.
const MOST_DEPTH: usize = 256;

/// Reads the text that [`print()`](super::print) wrote.
///
/// # Errors
/// The first line that is no line of a form.
pub fn parse(text: &str) -> Result<Loops, TextError> {
    let mut reader = LoopsReader {
        lines: text.lines().collect(),
        at: 0,
        words: Vec::new(),
        vars: HashMap::new(),
    };
    reader.loops().map_err(|reason| TextError { line: reader.at.max(1), reason })
}

struct LoopsReader<'t> {
    lines: Vec<&'t str>,
    /// The number of lines that were read.
    at: usize,
    /// The rest of the line that is being read, the last word first.
    words: Vec<&'t str>,
    /// The variables by their texts.
    vars: HashMap<&'t str, usize>,
}

fn number<T: FromStr>(word: &str) -> Read<T> {
    word.parse().map_err(|_| format!("expected a number, found `{word}`"))
}

/// Splits a line into words; a bracket or a comma is a word.
fn words(line: &str) -> Vec<&str> {
    let mut words: Vec<_> = line
        .split_whitespace()
        .flat_map(|part| part.split_inclusive(['(', ')', '[', ']', ',']))
        .flat_map(|part| match part.char_indices().next_back() {
            Some((end, '(' | ')' | '[' | ']' | ',')) => [&part[..end], &part[end..]],
            _ => [part, ""],
        })
        .filter(|word| !word.is_empty())
        .collect();
    words.reverse();
    words
}

impl<'t> LoopsReader<'t> {
    fn line(&mut self) -> Read<()> {
        let line = self.lines.get(self.at).ok_or("expected another line")?;
        self.at += 1;
        self.words = words(line);
        Ok(())
    }

    fn next(&mut self) -> Read<&'t str> {
        self.words.pop().ok_or_else(|| "the line ends too early".to_owned())
    }

    fn skip(&mut self, word: &str) -> bool {
        let found = self.words.last() == Some(&word);
        if found {
            self.words.pop();
        }
        found
    }

    fn expect(&mut self, word: &str) -> Read<()> {
        if self.skip(word) {
            return Ok(());
        }
        Err(format!("expected `{word}`, found `{}`", self.words.last().unwrap_or(&"")))
    }

    fn end(&self) -> Read<()> {
        match self.words.last() {
            None => Ok(()),
            Some(word) => Err(format!("expected the end of the line, found `{word}`")),
        }
    }

    fn value<T: FromStr>(&mut self, word: &str) -> Read<T> {
        self.expect(word)?;
        number(self.next()?)
    }

    fn loops(&mut self) -> Read<Loops> {
        self.line()?;
        self.expect("loops")?;
        let algorithm = self.next()?.to_owned();
        let collective = self.next()?;
        let collective = Collective::from_name(collective)
            .ok_or_else(|| format!("no collective is called `{collective}`"))?;
        let nranks = self.value("nranks")?;
        let (root, pieces) = (RankId(self.value("root")?), self.value("pieces")?);
        self.expect("of")?;
        let of_program = match self.next()? {
            "program" => true,
            "schedule" => false,
            word => return Err(format!("expected `program` or `schedule`, found `{word}`")),
        };
        let mut loops = Loops {
            algorithm,
            collective,
            nranks,
            root,
            of_program,
            files: Vec::new(),
            pieces,
            scratch: Vec::new(),
            vars: Vec::new(),
            tables: Tables { all: Vec::new(), nranks },
            functions: Vec::new(),
            body: Vec::new(),
        };
        loop {
            self.end()?;
            self.line()?;
            match self.next()? {
                "file" => {
                    let name = self.lines[self.at - 1].strip_prefix("file ");
                    loops.files.push(name.ok_or("expected the name of a file")?.to_owned());
                    self.words.clear();
                }
                "scratch" => {
                    let (name, id) = scratch(self.next()?)?;
                    if id.index() != loops.scratch.len() {
                        return Err(format!("expected scratch {}", loops.scratch.len()));
                    }
                    loops.scratch.push(name.to_owned());
                }
                "step" => {
                    let name = self.next()?.to_owned();
                    self.expect("(")?;
                    let params = self.list(")", |line| line.declare(&mut loops.vars))?;
                    self.expect("{")?;
                    let body = self.block(&mut loops, 0)?;
                    loops.functions.push(LoopFunction { name, params, body });
                }
                "body" => {
                    self.expect("{")?;
                    loops.body = self.block(&mut loops, 0)?;
                    self.end()?;
                    return match self.lines.get(self.at) {
                        None => Ok(loops.numbered()),
                        Some(_) => Err("expected the end of the text".into()),
                    };
                }
                word if word == format!("t{}", loops.tables.all.len()) => {
                    self.table(&mut loops.tables)?;
                }
                word => return Err(format!("no line begins with `{word}`")),
            }
        }
    }

    fn table(&mut self, tables: &mut Tables) -> Read<()> {
        let mut sizes = Vec::new();
        while !matches!(self.words.last(), Some(&("by" | "="))) {
            sizes.push(number(self.next()?)?);
        }
        let by_rank = self.skip("by");
        if by_rank {
            self.expect("rank")?;
        }
        self.expect("=")?;
        let mut entries = vec![Vec::new()];
        while let Some(word) = self.words.pop() {
            match word {
                "," => entries.push(Vec::new()),
                word => entries.last_mut().expect("there is one").push(number(word)?),
            }
        }
        let rows = if by_rank { tables.nranks as usize } else { 1 };
        let many = sizes.iter().try_fold(rows, |many, size| many.checked_mul(*size));
        let len = entries[0].len();
        if many != Some(entries.len())
            || !matches!(len, 1 | 4)
            || entries.iter().any(|entry| entry.len() != len)
        {
            return Err("the table has other sizes than its entries".into());
        }
        let known = tables.all.len();
        if tables.table(sizes, by_rank, entries) != known {
            return Err("another table has these entries".into());
        }
        Ok(())
    }

    /// Returns the number of a variable, which may be new.
    fn declare(&mut self, vars: &mut Vec<String>) -> Read<usize> {
        let text = self.next()?;
        let name = text.strip_prefix('%').ok_or_else(|| format!("`{text}` is no variable"))?;
        Ok(*self.vars.entry(text).or_insert_with(|| {
            vars.push(name.split('#').next().unwrap_or_default().to_owned());
            vars.len() - 1
        }))
    }

    /// Reads items between commas up to the closing bracket.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let mut items = Vec::new();
        while !self.skip(close) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads the statements up to the line that closes the block.
    fn block(&mut self, loops: &mut Loops, depth: usize) -> Read<Vec<LoopNode>> {
        if depth > MOST_DEPTH {
            return Err(format!("statements nest deeper than {MOST_DEPTH}"));
        }
        let mut nodes = Vec::new();
        loop {
            self.end()?;
            self.line()?;
            if self.skip("}") {
                return Ok(nodes);
            }
            let at = match self.words.first().and_then(|word| word.strip_prefix('@')) {
                Some(place) => {
                    self.words.remove(0);
                    let (file, line) = place.split_once(':').unwrap_or(("0", place));
                    let (file, line) = (number(file)?, number(line)?);
                    if file > 0 && file >= loops.files.len() {
                        return Err(format!("no file has the number {file}"));
                    }
                    At { file, line, ..At::default() }
                }
                None => At::default(),
            };
            nodes.push(self.node(loops, at, depth)?);
        }
    }

    fn node(&mut self, loops: &mut Loops, at: At, depth: usize) -> Read<LoopNode> {
        Ok(match self.next()? {
            "let" => {
                let var = self.declare(&mut loops.vars)?;
                self.expect("=")?;
                LoopNode::Let(var, self.number(loops, 0)?)
            }
            word @ ("for" | "streams") => {
                let var = self.declare(&mut loops.vars)?;
                self.expect("in")?;
                let lo = self.number(loops, 0)?;
                self.expect("..")?;
                let hi = self.number(loops, 0)?;
                self.expect("{")?;
                let body = self.block(loops, depth + 1)?;
                match word {
                    "for" => LoopNode::Loop { var, lo, hi, body },
                    _ => LoopNode::Streams { at, var, lo, hi, body },
                }
            }
            "if" => {
                let mut arms = Vec::new();
                loop {
                    let condition = self.number(loops, 0)?;
                    self.expect("{")?;
                    arms.push((condition, self.block(loops, depth + 1)?));
                    let otherwise = if !self.skip("else") {
                        Vec::new()
                    } else if self.skip("if") {
                        continue;
                    } else {
                        self.expect("{")?;
                        self.block(loops, depth + 1)?
                    };
                    break LoopNode::If(arms, otherwise);
                }
            }
            "block" => {
                self.expect("{")?;
                LoopNode::Block { at, body: self.block(loops, depth + 1)? }
            }
            "on" => {
                let stream = number(self.next()?)?;
                self.expect("{")?;
                LoopNode::On { stream, body: self.block(loops, depth + 1)? }
            }
            "do" => {
                let function: usize = number(self.next()?)?;
                self.expect("(")?;
                let args = self.list(")", |reader| reader.number(loops, 0))?;
                let known =
                    loops.functions.get(function).ok_or("no step before has that number")?;
                if known.params.len() != args.len() {
                    return Err(format!("{} takes other arguments", known.name));
                }
                LoopNode::Do { at, function, args }
            }
            word @ ("post" | "wait") => {
                let kind = signal_kind(self.next()?)?;
                let peer = self.number(loops, 0)?;
                let lane = self.skip("lane").then(|| self.number(loops, 0)).transpose()?;
                LoopNode::Signal { at, post: word == "post", kind, peer, lane }
            }
            word @ ("copy" | "fold" | "chain") => {
                let srcs = self.list("->", |reader| reader.place(loops))?;
                let mut dsts = vec![self.place(loops)?];
                while self.skip(",") {
                    dsts.push(self.place(loops)?);
                }
                if (srcs.len() == 1) != (word == "copy") {
                    return Err(format!("a `{word}` of {} sources", srcs.len()));
                }
                LoopNode::Move { at, chain: word == "chain", srcs, dsts }
            }
            word @ ("send" | "receive") => {
                let (request, peer) = (self.number(loops, 0)?, self.number(loops, 0)?);
                self.expect("tag")?;
                let tag = self.number(loops, 0)?;
                let step = MessageStep::Begin { peer, tag, place: Box::new(self.place(loops)?) };
                LoopNode::Message { at, send: word == "send", request, step }
            }
            word @ ("sent" | "received") => {
                let request = self.number(loops, 0)?;
                self.expect(",")?;
                let step = MessageStep::Finish(self.number(loops, 0)?);
                LoopNode::Message { at, send: word == "sent", request, step }
            }
            word => return Err(format!("no statement begins with `{word}`")),
        })
    }

    fn place(&mut self, loops: &Loops) -> Read<LoopPlace> {
        let buffer = match self.next()? {
            "input" => Buffer::Input,
            "output" => Buffer::Output,
            word => {
                let (name, id) = scratch(word)?;
                if loops.scratch.get(id.index()).is_none_or(|known| known != name) {
                    return Err(format!("no scratch is called `{word}`"));
                }
                Buffer::Scratch(id)
            }
        };
        self.expect("[")?;
        let mut numbers = self.list("]", |reader| reader.number(loops, 0))?.into_iter();
        let mut next = || numbers.next();
        let pieces = |table: usize| loops.tables.all[table].has_pieces();
        let piece = match (next(), next(), next(), next()) {
            (Some(Number { op: Op::Entry(table), args, .. }), None, ..)
                if pieces(table as usize) =>
            {
                Piece::Entry(table as usize, args.into())
            }
            (Some(lo), Some(width), None, _) => {
                let [slot, base] = [0; 2].map(Number::int);
                Piece::Computed { lo, width, slot, base }
            }
            (Some(lo), Some(width), Some(slot), Some(base)) => {
                Piece::Computed { lo, width, slot, base }
            }
            _ => return Err("a place has a piece, two numbers or four".into()),
        };
        let of = self.skip("of").then(|| self.number(loops, 0)).transpose()?;
        let step = self.skip("step").then(|| self.number(loops, 0)).transpose()?;
        Ok(LoopPlace { of, buffer, piece, step })
    }

    fn number(&mut self, loops: &Loops, depth: usize) -> Read<Number> {
        if depth > MOST_DEPTH {
            return Err(format!("a number nests deeper than {MOST_DEPTH}"));
        }
        let word = self.next()?;
        if word == "(" {
            let left = self.number(loops, depth + 1)?;
            let op = self.next()?;
            let op = BinOp::ALL.into_iter().find(|known| known.text() == op);
            let op = op.ok_or("expected an operator")?;
            let right = self.number(loops, depth + 1)?;
            self.expect(")")?;
            return Ok(binary(op, left, right));
        }
        if word.starts_with('%') {
            let var = self.vars.get(word).ok_or_else(|| format!("no variable is called `{word}`"));
            return Ok(Number::var(*var?));
        }
        if let Ok(value) = word.parse() {
            return Ok(Number::int(value));
        }
        if let Some(table) = word.strip_prefix('t').and_then(|id| id.parse::<usize>().ok()) {
            self.expect("[")?;
            let indices = self.list("]", |reader| reader.number(loops, depth + 1))?;
            let known = loops.tables.all.get(table).ok_or("no table has that number")?;
            if known.sizes.len() != indices.len() {
                return Err(format!("table {table} has other indices"));
            }
            return Ok(entry((table, indices)));
        }
        match word {
            "me" => return Ok(executing()),
            "nranks" => return Ok(Number::leaf(Op::Nranks)),
            _ => self.expect("(")?,
        }
        let args = self.list(")", |reader| reader.number(loops, depth + 1))?;
        let op = Op::named(word).filter(|op| op.is_arithmetic());
        let op = op.ok_or_else(|| format!("no function is called `{word}`"))?;
        if op.result(&vec![Kind::Number; args.len()]) != Some(Kind::Number) {
            return Err(format!("{word} takes other arguments"));
        }
        Ok(Number::of(op, args))
    }
}

/// Splits `NAME#NUMBER`.
fn scratch(word: &str) -> Read<(&str, ScratchId)> {
    let (name, id) = word.rsplit_once('#').ok_or_else(|| format!("`{word}` is no scratch"))?;
    Ok((name, ScratchId(number(id)?)))
}
