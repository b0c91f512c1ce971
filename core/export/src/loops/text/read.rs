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
use roundelay_core::line::{Line, TextError, number};
use roundelay_core::program::ir::{Kind, Op};
use roundelay_core::schedule::Buffer;
use roundelay_core::schedule::text::signal_kind;
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
        line: Line::default(),
        vars: HashMap::new(),
    };
    reader.loops().map_err(|reason| TextError { line: reader.at.max(1), reason })
}

struct LoopsReader<'t> {
    lines: Vec<&'t str>,
    /// The number of lines that were read.
    at: usize,
    /// The line that is being read.
    line: Line<'t>,
    /// The variables by their texts.
    vars: HashMap<&'t str, usize>,
}

impl LoopsReader<'_> {
    /// Goes to the next line.
    fn advance(&mut self) -> Read<()> {
        let line = self.lines.get(self.at).ok_or("expected another line")?;
        self.at += 1;
        self.line = Line::new(line, &['(', ')', '[', ']', ','])?;
        Ok(())
    }

    fn value<T: FromStr>(&mut self, word: &str) -> Read<T> {
        self.line.expect(word)?;
        self.line.count()
    }

    fn loops(&mut self) -> Read<Loops> {
        self.advance()?;
        self.line.expect("loops")?;
        let algorithm = self.line.word()?.to_owned();
        let collective = self.line.word()?;
        let collective = Collective::from_name(collective)
            .ok_or_else(|| format!("no collective is called `{collective}`"))?;
        let nranks = self.value("nranks")?;
        let (root, pieces) = (RankId(self.value("root")?), self.value("pieces")?);
        self.line.expect("of")?;
        let of_program = match self.line.word()? {
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
            self.line.end()?;
            self.advance()?;
            match self.line.word()? {
                "file" => {
                    let name = self.lines[self.at - 1].strip_prefix("file ");
                    loops.files.push(name.ok_or("expected the name of a file")?.to_owned());
                    self.line = Line::default();
                }
                "scratch" => {
                    let (name, id) = scratch(self.line.word()?)?;
                    if id.index() != loops.scratch.len() {
                        return Err(format!("expected scratch {}", loops.scratch.len()));
                    }
                    loops.scratch.push(name.to_owned());
                }
                "step" => {
                    let name = self.line.word()?.to_owned();
                    self.line.expect("(")?;
                    let params = self.list(")", |line| line.declare(&mut loops.vars))?;
                    self.line.expect("{")?;
                    let body = self.block(&mut loops, 0)?;
                    loops.functions.push(LoopFunction { name, params, body });
                }
                "body" => {
                    self.line.expect("{")?;
                    loops.body = self.block(&mut loops, 0)?;
                    self.line.end()?;
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
        while !matches!(self.line.peek(), "by" | "=") {
            sizes.push(self.line.count()?);
        }
        let by_rank = self.line.skip("by");
        if by_rank {
            self.line.expect("rank")?;
        }
        self.line.expect("=")?;
        let mut entries = vec![Vec::new()];
        while !self.line.is_done() {
            match self.line.word()? {
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
        let text = self.line.word()?;
        let name = text.strip_prefix('%').ok_or_else(|| format!("`{text}` is no variable"))?;
        Ok(*self.vars.entry(text).or_insert_with(|| {
            vars.push(name.split('#').next().unwrap_or_default().to_owned());
            vars.len() - 1
        }))
    }

    /// Reads items between commas up to the closing bracket.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let mut items = Vec::new();
        while !self.line.skip(close) {
            if !items.is_empty() {
                self.line.expect(",")?;
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
            self.line.end()?;
            self.advance()?;
            if self.line.skip("}") {
                return Ok(nodes);
            }
            let at = match self.line.last('@') {
                Some(place) => {
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
        Ok(match self.line.word()? {
            "let" => {
                let var = self.declare(&mut loops.vars)?;
                self.line.expect("=")?;
                LoopNode::Let(var, self.number(loops, 0)?)
            }
            word @ ("for" | "streams") => {
                let var = self.declare(&mut loops.vars)?;
                self.line.expect("in")?;
                let lo = self.number(loops, 0)?;
                self.line.expect("..")?;
                let hi = self.number(loops, 0)?;
                self.line.expect("{")?;
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
                    self.line.expect("{")?;
                    arms.push((condition, self.block(loops, depth + 1)?));
                    let otherwise = if !self.line.skip("else") {
                        Vec::new()
                    } else if self.line.skip("if") {
                        continue;
                    } else {
                        self.line.expect("{")?;
                        self.block(loops, depth + 1)?
                    };
                    break LoopNode::If(arms, otherwise);
                }
            }
            "block" => {
                self.line.expect("{")?;
                LoopNode::Block { at, body: self.block(loops, depth + 1)? }
            }
            "on" => {
                let stream = self.line.count()?;
                self.line.expect("{")?;
                LoopNode::On { stream, body: self.block(loops, depth + 1)? }
            }
            "do" => {
                let function: usize = self.line.count()?;
                self.line.expect("(")?;
                let args = self.list(")", |reader| reader.number(loops, 0))?;
                let known =
                    loops.functions.get(function).ok_or("no step before has that number")?;
                if known.params.len() != args.len() {
                    return Err(format!("{} takes other arguments", known.name));
                }
                LoopNode::Do { at, function, args }
            }
            word @ ("post" | "wait") => {
                let kind = signal_kind(self.line.word()?)?;
                let peer = self.number(loops, 0)?;
                let lane = self.line.skip("lane").then(|| self.number(loops, 0)).transpose()?;
                LoopNode::Signal { at, post: word == "post", kind, peer, lane }
            }
            word @ ("copy" | "fold" | "chain") => {
                let srcs = self.list("->", |reader| reader.place(loops))?;
                let mut dsts = vec![self.place(loops)?];
                while self.line.skip(",") {
                    dsts.push(self.place(loops)?);
                }
                if (srcs.len() == 1) != (word == "copy") {
                    return Err(format!("a `{word}` of {} sources", srcs.len()));
                }
                LoopNode::Move { at, chain: word == "chain", srcs, dsts }
            }
            word @ ("send" | "receive") => {
                let (request, peer) = (self.number(loops, 0)?, self.number(loops, 0)?);
                self.line.expect("tag")?;
                let tag = self.number(loops, 0)?;
                let step = MessageStep::Begin { peer, tag, place: Box::new(self.place(loops)?) };
                LoopNode::Message { at, send: word == "send", request, step }
            }
            word @ ("sent" | "received") => {
                let request = self.number(loops, 0)?;
                self.line.expect(",")?;
                let step = MessageStep::Finish(self.number(loops, 0)?);
                LoopNode::Message { at, send: word == "sent", request, step }
            }
            word => return Err(format!("no statement begins with `{word}`")),
        })
    }

    fn place(&mut self, loops: &Loops) -> Read<LoopPlace> {
        let buffer = match self.line.word()? {
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
        self.line.expect("[")?;
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
        let of = self.line.skip("of").then(|| self.number(loops, 0)).transpose()?;
        let step = self.line.skip("step").then(|| self.number(loops, 0)).transpose()?;
        Ok(LoopPlace { of, buffer, piece, step })
    }

    fn number(&mut self, loops: &Loops, depth: usize) -> Read<Number> {
        if depth > MOST_DEPTH {
            return Err(format!("a number nests deeper than {MOST_DEPTH}"));
        }
        let word = self.line.word()?;
        if word == "(" {
            let left = self.number(loops, depth + 1)?;
            let op = self.line.word()?;
            let op = BinOp::ALL.into_iter().find(|known| known.text() == op);
            let op = op.ok_or("expected an operator")?;
            let right = self.number(loops, depth + 1)?;
            self.line.expect(")")?;
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
            self.line.expect("[")?;
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
            _ => self.line.expect("(")?,
        }
        let args = self.list(")", |reader| reader.number(loops, depth + 1))?;
        let op = Op::from_name(word).filter(|op| op.is_arithmetic());
        let op = op.ok_or_else(|| format!("no function is called `{word}`"))?;
        if op.result(&vec![Kind::Number; args.len()]) != Some(Kind::Number) {
            return Err(format!("{word} takes other arguments"));
        }
        Ok(Number::operator(op, args))
    }
}

/// Splits `NAME#NUMBER`.
fn scratch(word: &str) -> Read<(&str, ScratchId)> {
    let (name, id) = word.rsplit_once('#').ok_or_else(|| format!("`{word}` is no scratch"))?;
    Ok((name, ScratchId(number(id)?)))
}
