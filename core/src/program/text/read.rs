//! Reads a program's text, and checks that every operator has operands of the kinds that it takes.

use std::sync::Arc;

use super::line::ProgramLine;
use super::names::{Names, span};
use crate::collective::Collective;
use crate::ids::SpanId;
use crate::line::{TextError, number, unquote};
use crate::program::ir::{
    Call, Demand, Expr, Kind, Param, Pass, Program, Step, StepId, Stmt, StmtKind, Var,
};
use crate::schedule::SignalKind;
use crate::schedule::text::{location, signal_kind};
use crate::values::order_class::OrderClass;
use crate::values::params::ParamTy;
use crate::values::resource::Resource;

/// Reads the text that [`print()`](super::print) wrote.
///
/// # Errors
/// The first line that is no line of a program, or whose expressions make no sense.
pub fn parse(text: &str) -> Result<Program, TextError> {
    let mut reader = ProgramReader { lines: text.lines().collect(), at: 0, programs: Vec::new() };
    let read = reader.all();
    read.map_err(|reason| TextError { line: reader.at.max(1), reason })?;
    let last = reader.programs.pop();
    let missing = || TextError { line: 1, reason: "expected `program 0 NAME COLLECTIVE`".into() };
    last.map(Arc::unwrap_or_clone).ok_or_else(missing)
}

struct ProgramReader<'t> {
    lines: Vec<&'t str>,
    /// The number of lines that were read.
    at: usize,
    /// The programs by their numbers.
    programs: Vec<Arc<Program>>,
}

impl<'t> ProgramReader<'t> {
    fn next(&mut self) -> Option<&'t str> {
        let line = self.lines.get(self.at)?;
        self.at += 1;
        Some(line)
    }

    /// Returns the rest of the next line, if the line begins with `word`, and takes the line.
    fn take(&mut self, word: &str) -> Option<&'t str> {
        let rest = self.lines.get(self.at)?.strip_prefix(word)?;
        self.at += 1;
        Some(rest.trim())
    }

    fn all(&mut self) -> Result<(), String> {
        while self.at < self.lines.len() {
            let program = self.program()?;
            self.programs.push(Arc::new(program));
        }
        Ok(())
    }

    fn program(&mut self) -> Result<Program, String> {
        let header = self.take("program ").unwrap_or_default();
        let words: Vec<_> = header.split_whitespace().collect();
        let (known, name, collective, out_of_place) = match words[..] {
            [known, name, collective] => (known, name, collective, false),
            [known, name, collective, "out_of_place"] => (known, name, collective, true),
            _ => return Err("expected `program NUMBER NAME COLLECTIVE`".into()),
        };
        if number::<usize>(known)? != self.programs.len() {
            return Err(format!("expected program {}", self.programs.len()));
        }
        let collective = Collective::from_name(collective)
            .ok_or_else(|| format!("no collective is called `{collective}`"))?;
        let file = unquote(self.take("file ").ok_or("expected `file \"NAME\"`")?)?;
        let (mut locations, mut spans) = (Vec::new(), Vec::new());
        while let Some(line) = self.take("at ") {
            let (id, place) = line.split_once(" = ").ok_or("expected `at NUMBER = PLACE`")?;
            if number::<usize>(id)? != locations.len() {
                return Err(format!("expected `at {}`", locations.len()));
            }
            let (place, tokens) = place.split_once(" // ").ok_or("expected `PLACE // TOKENS`")?;
            locations.push(location(place)?);
            spans.push(span(tokens)?);
        }
        let mut names = Names::default();
        while let Some(line) = self.take("var ") {
            let words: Vec<_> = line.split_whitespace().collect();
            let [name, kind, place] = words[..] else {
                return Err("expected `var NAME KIND PLACE`".into());
            };
            let kind = Kind::from_name(kind);
            let kind = kind.ok_or("no values are of that kind")?;
            names.declare(Var { name: name.to_owned(), kind, span: span(place)? });
        }
        let mut params = Vec::new();
        while let Some(line) = self.take("param ") {
            params.push(param(line, &names)?);
        }
        let mut body =
            Body { reader: self, names: &names, steps: Vec::new(), ids: locations.len(), depth: 0 };
        while let Some(line) = body.reader.take("step ") {
            let step = body.step(line)?;
            body.steps.push(step);
        }
        body.reader.take("body {").ok_or("expected `body {`")?;
        let stmts = body.block()?;
        let steps = body.steps;
        Ok(Program {
            name: name.to_owned(),
            collective,
            out_of_place,
            file,
            locations: locations.into(),
            spans,
            vars: names.into_vars(),
            params,
            steps,
            body: stmts,
            declaration: Arc::default(),
        })
    }
}

fn param(line: &str, names: &Names) -> Result<Param, String> {
    let (name, rest) = line.split_once(": ").ok_or("expected `param NAME: TYPE`")?;
    let (ty, default) = match rest.split_once(" = ") {
        Some((ty, default)) => (ty, Some(default)),
        None => (rest, None),
    };
    let ty = ParamTy::from_name(ty);
    let ty = ty.ok_or("no parameter has that type")?;
    let (var, kind) = names.var(name)?;
    if kind != Kind::of_param(ty) {
        return Err(format!("{name} is not of the kind of its type"));
    }
    let default = default.map(|text| {
        let mut line = ProgramLine::new(text, names)?;
        let default = line.expr_of(&[kind])?;
        line.end()?;
        Ok::<_, String>(default)
    });
    Ok(Param { var, ty, default: default.transpose()? })
}

/// The statements of a program, with the names that they use.
struct Body<'r, 't> {
    reader: &'r mut ProgramReader<'t>,
    names: &'r Names,
    steps: Vec<Step>,
    /// The number of the author's statements.
    ids: usize,
    /// The nesting depth of the statements that are being read.
    depth: usize,
}

/// A bound of the nesting of statements: those of a source nest at most 128 deep.
const MOST_DEPTH: usize = 256;

impl Body<'_, '_> {
    fn step(&mut self, line: &str) -> Result<Step, String> {
        let expected = "expected `step NAME(PARAMETERS) {`";
        let (name, rest) = line.split_once('(').ok_or(expected)?;
        let params = rest.strip_suffix(") {").ok_or(expected)?;
        let params = params.split(", ").filter(|name| !name.is_empty());
        let params =
            params.map(|name| Ok(self.names.var(name)?.0)).collect::<Result<_, String>>()?;
        Ok(Step { name: name.to_owned(), params, body: self.block()? })
    }

    /// Reads the statements up to the line that ends the block.
    fn block(&mut self) -> Result<Vec<Stmt>, String> {
        let (stmts, end) = self.stmts()?;
        if end == "}" { Ok(stmts) } else { Err("expected `}`".into()) }
    }

    /// Reads statements, and the line behind them, which begins with `}`.
    fn stmts(&mut self) -> Result<(Vec<Stmt>, String), String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(format!("statements nest deeper than {MOST_DEPTH}"));
        }
        let stmts = self.up_to_the_end();
        self.depth -= 1;
        stmts
    }

    fn up_to_the_end(&mut self) -> Result<(Vec<Stmt>, String), String> {
        let mut stmts = Vec::new();
        loop {
            let line = self.reader.next().ok_or("expected `}` before the end")?;
            if line.starts_with('}') {
                return Ok((stmts, line.to_owned()));
            }
            let (at, rest) = line.split_once(':').ok_or("expected `NUMBER: STATEMENT`")?;
            let (at, rest) = (SpanId(number(at.trim())?), rest.trim());
            if at.index() >= self.ids {
                return Err(format!("the program has no statement {at}"));
            }
            if rest.starts_with('}') {
                return Ok((stmts, rest.to_owned()));
            }
            let mut line = ProgramLine::new(rest, self.names)?;
            let kind = self.stmt(&mut line)?;
            line.end()?;
            stmts.push(Stmt { at, kind });
        }
    }

    /// Reads the block that a line begins, up to the line that ends it.
    fn inner(&mut self, line: &mut ProgramLine<'_>) -> Result<Vec<Stmt>, String> {
        line.expect("{")?;
        self.block()
    }

    fn stmt(&mut self, line: &mut ProgramLine<'_>) -> Result<StmtKind, String> {
        let word = line.word()?;
        Ok(match word {
            "let" => {
                let (var, kind) = line.var()?;
                line.expect("=")?;
                StmtKind::Let(var, line.expr_of(&[kind])?)
            }
            "limit" => {
                let mut loops = Vec::new();
                while !line.is_done() {
                    loops.push(line.range()?);
                }
                StmtKind::Limit(loops)
            }
            "for" | "parallel" => {
                let var = line.var_of(Kind::Number)?;
                line.expect("in")?;
                let (lo, hi) = line.range()?;
                let body = self.inner(line)?;
                match word {
                    "for" => StmtKind::For(var, lo, hi, body),
                    _ => StmtKind::Parallel(var, lo, hi, body),
                }
            }
            "each" => {
                let var = line.var_of(Kind::Number)?;
                line.expect("in")?;
                let list = line.expr_of(&[Kind::List])?;
                StmtKind::Each(var, list, self.inner(line)?)
            }
            "if" => {
                let mut arms = Vec::new();
                let mut condition = line.number()?;
                line.expect("{")?;
                let otherwise = loop {
                    let (body, end) = self.stmts()?;
                    arms.push((condition, body));
                    let Some(next) = end.strip_prefix("} else if ") else {
                        break match end.as_str() {
                            "} else {" => self.block()?,
                            "}" => Vec::new(),
                            _ => return Err("expected `}`, `} else {` or `} else if … {`".into()),
                        };
                    };
                    let mut line = ProgramLine::new(next, self.names)?;
                    condition = line.number()?;
                    line.expect("{")?;
                    line.end()?;
                };
                StmtKind::If(arms, otherwise)
            }
            "require" => {
                let why = line.string()?;
                StmtKind::Require(line.number()?, why)
            }
            "scratch" => {
                let (var, kind) = line.var()?;
                let count = line.option("count", &[Kind::Number])?;
                line.expect("like")?;
                // Several slots, or slots that are like pieces, have the kind of pieces.
                let likes = match (kind, &count) {
                    (Kind::Region, None) => &[Kind::Region][..],
                    (Kind::Pieces, None) => &[Kind::Pieces],
                    (Kind::Pieces, Some(_)) => &[Kind::Region, Kind::Pieces],
                    _ => return Err("this variable holds no such scratch".into()),
                };
                let like = line.expr_of(likes)?;
                let wide = line.skip("wide");
                StmtKind::Scratch(var, count, like, wide)
            }
            "do" => {
                let step = StepId(line.count()?);
                let found = self.steps.get(step.0 as usize).ok_or("no step has that number")?;
                let args = line.list(&[])?;
                let kinds = found.params.iter().map(|var| self.names.kind(*var));
                if !kinds.eq(args.iter().map(|(_, kind)| *kind)) {
                    return Err(format!("step {} takes other arguments", found.name));
                }
                StmtKind::Step(step, args.into_iter().map(|(arg, _)| arg).collect())
            }
            "copy" => {
                let src = line.place()?;
                line.expect("to")?;
                StmtKind::Copy(src, line.places()?)
            }
            "reduce" => {
                let srcs = line.places()?;
                line.expect("into")?;
                StmtKind::Reduce(srcs, line.place()?)
            }
            "switch" => {
                let src = line.expr_of(&[Kind::Place, Kind::Region])?;
                line.expect("to")?;
                StmtKind::Switch(src, line.expr_of(&[Kind::Place, Kind::Region])?)
            }
            "post" | "wait" => {
                let name = line.word()?;
                let kind = signal_kind(name)?;
                if !matches!(kind, SignalKind::Ack | SignalKind::Data) {
                    return Err(format!("no statement gives the signal `{name}`"));
                }
                let peer = line.number()?;
                match word {
                    "post" => StmtKind::Post(kind, peer),
                    _ => StmtKind::Wait(kind, peer),
                }
            }
            "within" => {
                let list = line.expr_of(&[Kind::List])?;
                StmtKind::Within(list, self.inner(line)?)
            }
            "call" => StmtKind::Call(self.call(line)?),
            "fifo" => {
                line.expect("like")?;
                let like = line.expr_of(&[Kind::Region, Kind::Pieces])?;
                let credits = line.option("credits", &[Kind::Number])?;
                StmtKind::Fifo(like, credits, line.option("slices", &[Kind::Number])?)
            }
            "pass" => {
                let pass = Pass {
                    from: line.option("from", &[Kind::Number, Kind::List])?,
                    own: line.option("own", &[Kind::Place])?,
                    dst: line.option("into", &[Kind::Place])?,
                    to: line.option("to", &[Kind::Number, Kind::List])?,
                };
                // Received data needs a destination, and data that is only sent comes from this rank.
                let Pass { from, own, dst, to } = &pass;
                let sent = own.is_some() && to.is_some();
                if !(sent || from.is_some() && dst.is_some()) || from.is_none() && dst.is_some() {
                    return Err("no primitive passes data so".into());
                }
                StmtKind::Pass(pass)
            }
            "demand" => StmtKind::Demand(match line.word()? {
                "order" => {
                    let class = OrderClass::from_name(line.word()?);
                    Demand::Order(class.ok_or("no promise of an order has that name")?)
                }
                "roundings" => Demand::Roundings(line.number()?),
                "uneven" => Demand::Uneven,
                "links" => Demand::Links(line.expr_of(&[Kind::Topology])?),
                "multiple" => {
                    let why = line.string()?;
                    Demand::Multiple(line.number()?, why)
                }
                resource => {
                    let resource = Resource::from_name(resource).ok_or("no such resource")?;
                    Demand::AtMost(resource, line.number()?)
                }
            }),
            other => return Err(format!("no statement begins with `{other}`")),
        })
    }

    fn call(&mut self, line: &mut ProgramLine<'_>) -> Result<Call, String> {
        let known: usize = line.count()?;
        let program = self.reader.programs.get(known).cloned();
        let program = program.ok_or("no program before this one has that number")?;
        let mut args: Vec<(usize, Expr)> = Vec::new();
        while line.skip("with") {
            let index: usize = line.count()?;
            line.expect("=")?;
            let param = program.params.get(index).ok_or("it has no such parameter")?;
            args.push((index, line.expr_of(&[Kind::of_param(param.ty)])?));
        }
        line.expect("on")?;
        let input = line.expr_of(&[Kind::Region])?;
        line.expect("to")?;
        Ok(Call { program, args, input, output: line.expr_of(&[Kind::Region])? })
    }
}
