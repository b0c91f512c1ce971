//! Writes a program as text.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::line::quote;
use crate::program::ir::{Demand, Expr, Op, Pass, Program, Stmt, StmtKind, Var};
use crate::schedule::text::{location_text, signal_name};
use crate::source::Span;

/// Returns the text form of `program`, with the programs that it calls.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    let called = program.all_callees();
    for (number, program) in called.iter().map(|called| &**called).chain([program]).enumerate() {
        let names = names(&program.vars);
        let mut writer =
            ProgramWriter { program, names, called: &called, out: &mut out, spans: Vec::new() };
        writer.program(number).expect("a string grows");
    }
    out
}

/// Returns the text of each variable: its name, with its number where another variable has that name.
fn names(vars: &[Var]) -> Vec<String> {
    let mut many: HashMap<&str, usize> = HashMap::new();
    for var in vars {
        *many.entry(&var.name).or_default() += 1;
    }
    let name = |(id, Var { name, .. }): (usize, &Var)| {
        if many[&**name] == 1 { format!("%{name}") } else { format!("%{name}#{id}") }
    };
    vars.iter().enumerate().map(name).collect()
}

struct ProgramWriter<'p> {
    program: &'p Program,
    names: Vec<String>,
    /// The programs that have a number, in its order.
    called: &'p [Arc<Program>],
    out: &'p mut String,
    /// The places of the expressions in the line.
    spans: Vec<Span>,
}

impl<'p> ProgramWriter<'p> {
    fn program(&mut self, number: usize) -> fmt::Result {
        let program = self.program;
        let mark = if program.out_of_place { " out_of_place" } else { "" };
        writeln!(self.out, "program {number} {} {}{mark}", program.name, program.collective)?;
        writeln!(self.out, "file {}", quote(&program.file))?;
        for (id, (place, tokens)) in program.locations.iter().zip(&program.spans).enumerate() {
            writeln!(self.out, "at {id} = {} // {}", location_text(*place), span(*tokens))?;
        }
        for var in &program.vars {
            writeln!(self.out, "var {} {} {}", var.name, var.kind.name(), span(var.span))?;
        }
        for param in &program.params {
            write!(self.out, "param {}: {}", self.names[param.var.index()], param.ty.name())?;
            if let Some(default) = &param.default {
                self.out.push_str(" = ");
                self.expr(default)?;
            }
            self.end()?;
        }
        for step in &program.steps {
            let params: Vec<_> =
                step.params.iter().map(|param| &*self.names[param.index()]).collect();
            writeln!(self.out, "step {}({}) {{", step.name, params.join(", "))?;
            self.block(&step.body, 1)?;
            writeln!(self.out, "}}")?;
        }
        writeln!(self.out, "body {{")?;
        self.block(&program.body, 1)?;
        writeln!(self.out, "}}")
    }

    /// Ends a line, with the places of its expressions.
    fn end(&mut self) -> fmt::Result {
        let spans = std::mem::take(&mut self.spans);
        if !spans.is_empty() {
            let spans: Vec<_> = spans.into_iter().map(span).collect();
            write!(self.out, " // {}", spans.join(" "))?;
        }
        self.out.push('\n');
        Ok(())
    }

    fn block(&mut self, body: &'p [Stmt], depth: usize) -> fmt::Result {
        body.iter().try_for_each(|stmt| self.stmt(stmt, depth))
    }

    /// Writes a line that begins a block, the block, and the line that ends it.
    fn body(&mut self, stmt: &Stmt, body: &'p [Stmt], depth: usize) -> fmt::Result {
        self.out.push_str(" {");
        self.end()?;
        self.block(body, depth + 1)?;
        self.begin(stmt, depth)?;
        self.out.push('}');
        Ok(())
    }

    fn begin(&mut self, stmt: &Stmt, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        write!(self.out, "{:>4}:{indent}", stmt.at.0)
    }

    fn stmt(&mut self, stmt: &'p Stmt, depth: usize) -> fmt::Result {
        self.begin(stmt, depth)?;
        match &stmt.kind {
            StmtKind::Let(var, value) => {
                write!(self.out, "let {} = ", self.names[var.index()])?;
                self.expr(value)?;
            }
            StmtKind::Limit(loops) => {
                self.out.push_str("limit");
                for (lo, hi) in loops {
                    self.out.push(' ');
                    self.range(lo, hi)?;
                }
            }
            StmtKind::For(var, lo, hi, body) | StmtKind::Parallel(var, lo, hi, body) => {
                let word = if matches!(stmt.kind, StmtKind::For(..)) { "for" } else { "parallel" };
                write!(self.out, "{word} {} in ", self.names[var.index()])?;
                self.range(lo, hi)?;
                self.body(stmt, body, depth)?;
            }
            StmtKind::Each(var, list, body) => {
                write!(self.out, "each {} in ", self.names[var.index()])?;
                self.expr(list)?;
                self.body(stmt, body, depth)?;
            }
            StmtKind::If(arms, otherwise) => {
                for (i, (condition, body)) in arms.iter().enumerate() {
                    self.out.push_str(if i == 0 { "if " } else { " else if " });
                    self.expr(condition)?;
                    self.body(stmt, body, depth)?;
                }
                if !otherwise.is_empty() {
                    self.out.push_str(" else");
                    self.body(stmt, otherwise, depth)?;
                }
            }
            StmtKind::Require(condition, why) => {
                write!(self.out, "require {} ", quote(why))?;
                self.expr(condition)?;
            }
            StmtKind::Scratch(var, count, like, wide) => {
                write!(self.out, "scratch {}", self.names[var.index()])?;
                self.option("count", count.as_ref())?;
                self.option("like", Some(like))?;
                if *wide {
                    self.out.push_str(" wide");
                }
            }
            StmtKind::Step(step, args) => {
                write!(self.out, "do {} ", step.0)?;
                self.list(args)?;
            }
            StmtKind::Copy(src, dsts) => {
                self.out.push_str("copy ");
                self.expr(src)?;
                self.out.push_str(" to ");
                self.list(dsts)?;
            }
            StmtKind::Reduce(srcs, dst) => {
                self.out.push_str("reduce ");
                self.list(srcs)?;
                self.out.push_str(" into ");
                self.expr(dst)?;
            }
            StmtKind::Switch(src, dst) => {
                self.out.push_str("switch ");
                self.expr(src)?;
                self.out.push_str(" to ");
                self.expr(dst)?;
            }
            StmtKind::Post(kind, peer) | StmtKind::Wait(kind, peer) => {
                let word = if matches!(stmt.kind, StmtKind::Post(..)) { "post" } else { "wait" };
                write!(self.out, "{word} {} ", signal_name(*kind))?;
                self.expr(peer)?;
            }
            StmtKind::Within(list, body) => {
                self.out.push_str("within ");
                self.expr(list)?;
                self.body(stmt, body, depth)?;
            }
            StmtKind::Call(call) => {
                let number = self.called.iter().position(|known| Arc::ptr_eq(known, &call.program));
                write!(self.out, "call {}", number.expect("it was listed"))?;
                for (param, value) in &call.args {
                    write!(self.out, " with {param} = ")?;
                    self.expr(value)?;
                }
                self.option("on", Some(&call.input))?;
                self.option("to", Some(&call.output))?;
            }
            StmtKind::Fifo(like, credits, slices) => {
                self.out.push_str("fifo");
                self.option("like", Some(like))?;
                self.option("credits", credits.as_ref())?;
                self.option("slices", slices.as_ref())?;
            }
            StmtKind::Pass(Pass { from, own, dst, to }) => {
                self.out.push_str("pass");
                for (word, part) in [("from", from), ("own", own), ("into", dst), ("to", to)] {
                    self.option(word, part.as_ref())?;
                }
            }
            StmtKind::Demand(Demand::Order(class)) => write!(self.out, "demand order {class}")?,
            StmtKind::Demand(Demand::Roundings(most)) => {
                self.out.push_str("demand roundings ");
                self.expr(most)?;
            }
            StmtKind::Demand(Demand::Uneven) => self.out.push_str("demand uneven"),
            StmtKind::Demand(Demand::Links(topology)) => {
                self.out.push_str("demand links ");
                self.expr(topology)?;
            }
            StmtKind::Demand(Demand::AtMost(resource, most)) => {
                write!(self.out, "demand {} ", resource.name())?;
                self.expr(most)?;
            }
            StmtKind::Demand(Demand::Multiple(of, why)) => {
                write!(self.out, "demand multiple {} ", quote(why))?;
                self.expr(of)?;
            }
        }
        self.end()
    }

    fn range(&mut self, lo: &Expr, hi: &Expr) -> fmt::Result {
        self.expr(lo)?;
        self.out.push_str(" .. ");
        self.expr(hi)
    }

    fn option(&mut self, word: &str, value: Option<&Expr>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        write!(self.out, " {word} ")?;
        self.expr(value)
    }

    /// Writes expressions in brackets.
    fn list(&mut self, exprs: &[Expr]) -> fmt::Result {
        self.out.push('(');
        for (i, expr) in exprs.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.expr(expr)?;
        }
        self.out.push(')');
        Ok(())
    }

    fn expr(&mut self, expr: &Expr) -> fmt::Result {
        let (names, spans) = (&self.names, &mut self.spans);
        write_expr(self.out, expr, &mut |expr, out| {
            spans.push(expr.span);
            let Op::Var(var) = expr.op else { return false };
            out.push_str(&names[var.index()]);
            true
        })
    }
}

/// Writes an expression. `own` is told of each part, and may write it instead.
///
/// # Errors
/// None: a string grows.
pub fn write_expr(
    out: &mut String,
    expr: &Expr,
    own: &mut impl FnMut(&Expr, &mut String) -> bool,
) -> fmt::Result {
    if own(expr, out) {
        return Ok(());
    }
    match expr.op {
        Op::Int(value) => write!(out, "{value}")?,
        Op::Rate(rate) => write!(out, "{rate}B/s")?,
        Op::Time(time) => write!(out, "{time}ns")?,
        Op::Binary(_) => {}
        op => out.push_str(&op.name().expect("every other operator has a name")),
    }
    for (nth, arg) in expr.args.iter().enumerate() {
        match (nth, expr.op) {
            (0, _) => out.push('('),
            (_, Op::Binary(op)) => write!(out, " {} ", op.text())?,
            _ => out.push_str(", "),
        }
        write_expr(out, arg, own)?;
    }
    if !expr.args.is_empty() {
        out.push(')');
    }
    Ok(())
}

fn span(span: Span) -> String {
    format!("{}..{}", span.lo, span.hi)
}
