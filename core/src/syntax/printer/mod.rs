//! The canonical form: from the tree back to text, with or without the author's comments.
//!
//! Printing, parsing and printing again is the identity. The layout is rustfmt's: four blanks, one
//! statement a line, parentheses only where precedence needs them.

mod executor;
mod expr;
mod trivia;

use std::fmt::Write;

use super::ast::{
    Algorithm, Attr, AttrArg, AttrValue, Executor, Expr, File, Iter, Name, Param, Stmt, StmtKind,
    TypeName,
};
use crate::source::Span;
use crate::syntax::Source;
use crate::syntax::expr_text::{ATOM, OPERATOR};
use trivia::Trivia;

const WIDTH: usize = 100;

/// Returns the canonical text of `file`, without comments and blank lines inside algorithms.
pub fn print(file: &File) -> String {
    Printer::new(None).file(file)
}

/// Returns the canonical text of one algorithm.
pub fn print_algorithm(algorithm: &Algorithm) -> String {
    let mut printer = Printer::new(None);
    printer.algorithm(algorithm, false);
    printer.out
}

/// Returns the canonical text of one executor.
pub fn print_executor(executor: &Executor) -> String {
    let mut printer = Printer::new(None);
    printer.executor(executor, false);
    printer.out
}

/// Returns the canonical text of one expression.
pub fn print_expr(expr: &Expr) -> String {
    Printer::new(None).expr(expr, 0)
}

/// Returns the text that `roundelay fmt` writes: the canonical text with every comment, single blank lines, and
/// literals and escapes as they were spelled. `file` must have been parsed from `source`, a text, without diagnostics.
/// Comments inside a statement move to lines of their own before it.
pub fn print_with_trivia(file: &File, source: &Source) -> String {
    Printer::new(Some(Trivia::new(source))).file(file)
}

struct Printer<'s> {
    out: String,
    indent: usize,
    /// Whether the next line opens a block, where blank lines are dropped.
    opening: bool,
    /// The text between an argument's name and its value.
    given: &'static str,
    trivia: Option<Trivia<'s>>,
}

impl<'s> Printer<'s> {
    fn new(trivia: Option<Trivia<'s>>) -> Self {
        Self { out: String::new(), indent: 0, opening: true, given: ": ", trivia }
    }

    fn file(mut self, file: &File) -> String {
        for used in &file.uses {
            self.before(used.span.lo, used.span.hi, false);
            self.line_to(&format!("use {:?};", used.path), used.span.hi);
        }
        let mut executors = file.executors.iter().peekable();
        let mut separate = !file.uses.is_empty();
        for algorithm in &file.algorithms {
            while let Some(first) = executors.next_if(|e| e.span.lo < algorithm.span.lo) {
                self.executor(first, separate);
                separate = true;
            }
            self.algorithm(algorithm, separate);
            separate = true;
        }
        for executor in executors {
            self.executor(executor, separate);
            separate = true;
        }
        self.comments_below(u32::MAX);
        self.out
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
        self.opening = false;
    }

    /// Prints a line whose last token is the one before `end`, with the comments that trail it.
    fn line_to(&mut self, text: &str, end: u32) {
        let mut text = text.to_owned();
        if let Some(trivia) = &mut self.trivia {
            for comment in trivia.trailing(end) {
                text.push(' ');
                text.push_str(comment);
            }
        }
        self.line(&text);
    }

    /// Prints comments on lines of their own, up to those before token `end`.
    fn comments_below(&mut self, end: u32) {
        let Some(trivia) = &mut self.trivia else { return };
        for comment in trivia.below(end) {
            if comment.blank_before && !self.opening {
                self.blank();
            }
            self.line(&comment.text);
        }
    }

    /// Prints the text before a line: its blank line, and all comments up to its last token, at `hi`.
    fn before(&mut self, lo: u32, hi: u32, blank: bool) {
        self.comments_before(lo + 1, blank);
        let blank = match &self.trivia {
            Some(trivia) => trivia.source.blank_before(lo),
            None => false,
        };
        if blank && !self.opening {
            self.blank();
        }
        self.comments_below_quietly(hi);
    }

    fn comments_before(&mut self, end: u32, blank: bool) {
        if blank {
            self.blank();
        }
        self.comments_below(end);
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Prints comments from inside a statement: the blank lines around them had no meaning.
    fn comments_below_quietly(&mut self, end: u32) {
        let Some(trivia) = &mut self.trivia else { return };
        for comment in trivia.below(end) {
            self.line(&comment.text);
        }
    }

    fn algorithm(&mut self, a: &Algorithm, separate: bool) {
        let brace = self.brace_from(a.collective.span.hi);
        let arrow = a.collective.span.lo.saturating_sub(1);
        let listed = self.params_listed(&a.params, a.name.span.hi, arrow);
        self.before(a.span.lo, if listed { a.name.span.hi + 1 } else { brace + 1 }, separate);
        self.docs(&a.docs, &a.attrs);
        let public = if a.public { "pub " } else { "" };
        let head = format!("{public}algorithm {}", a.name.text);
        let tail = format!(" -> {} {{", a.collective.text);
        self.header(&head, &a.params, &tail, brace, listed);
        self.block(&a.body, brace);
        self.line_to("}", a.span.hi);
    }

    /// Prints the doc comment and attributes of an item.
    fn docs(&mut self, docs: &[String], attrs: &[Attr]) {
        for doc in docs {
            // A doc line that begins with a slash would be read as a plain comment.
            let gap = if doc.starts_with('/') { " " } else { "" };
            self.line(&format!("///{gap}{doc}"));
        }
        for attr in attrs {
            let text = self.attr(attr);
            self.line(&text);
        }
    }

    fn attr(&self, attr: &Attr) -> String {
        let arg = |arg: &AttrArg| {
            let name = arg.name.as_ref().map_or(String::new(), |n| format!("{} = ", n.text));
            let value = match &arg.value {
                AttrValue::Expr(value) => self.expr(value, 0),
                AttrValue::Range { lo, hi, inclusive } => {
                    let dots = if *inclusive { "..=" } else { ".." };
                    format!("{}{dots}{}", self.expr(lo, 0), self.expr(hi, 0))
                }
                AttrValue::Text(text) => format!("{text:?}"),
            };
            name + &value
        };
        let args: Vec<_> = attr.args.iter().map(arg).collect();
        let list = if args.is_empty() { String::new() } else { format!("({})", args.join(", ")) };
        format!("#[{}{list}]", attr.name.text)
    }

    /// Returns the opening brace at or after token `from`; 0 without a source, where no caller needs it.
    fn brace_from(&self, from: u32) -> u32 {
        self.trivia.as_ref().map_or(0, |t| t.brace_from(from))
    }

    /// Whether comments among the parameters need a line for each parameter.
    fn params_listed(&self, params: &[Param], open: u32, close: u32) -> bool {
        let inside = |t: &Trivia<'_>| t.any_between(open + 1, close);
        !params.is_empty() && self.trivia.as_ref().is_some_and(inside)
    }

    /// Prints `HEAD(PARAMS)TAIL`, on one line if it fits and no comment stands among the parameters.
    fn header(&mut self, head: &str, params: &[Param], tail: &str, brace: u32, listed: bool) {
        let printed: Vec<String> = params.iter().map(|p| self.param(p)).collect();
        let text = format!("{head}({}){tail}", printed.join(", "));
        let width = self.indent * 4 + text.chars().count();
        if params.is_empty() || (width <= WIDTH && !listed) {
            return self.line_to(&text, brace + 1);
        }
        self.line(&format!("{head}("));
        self.opening = true;
        self.indent += 1;
        for (i, text) in printed.iter().enumerate() {
            let (lo, end) = self
                .trivia
                .as_ref()
                .map_or((0, 0), |t| (params[i].name.span.lo, t.param_end(params, i, brace)));
            self.before(lo, end, false);
            self.line_to(&format!("{text},"), end);
        }
        self.comments_below_quietly(brace + 1);
        self.indent -= 1;
        self.line_to(&format!("){tail}"), brace + 1);
    }

    fn param(&self, p: &Param) -> String {
        let mut text = format!("{}: {}", p.name.text, type_name(&p.ty));
        if let Some(default) = &p.default {
            let _ = write!(text, " = {}", self.expr(default, 0));
        }
        text
    }

    /// Prints the statements after the brace at `brace`, up to the closing brace, which is not printed; returns the
    /// index of the closing brace.
    fn block(&mut self, body: &[Stmt], brace: u32) -> u32 {
        self.indent += 1;
        self.opening = true;
        for stmt in body {
            self.stmt(stmt);
        }
        let close = body.last().map_or(brace + 1, |s| s.span.hi);
        self.comments_below(close + 1);
        self.indent -= 1;
        close
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let Span { lo, hi } = stmt.span;
        let text = match &stmt.kind {
            StmtKind::Let { name, ty, value } => {
                let ty = ty.as_ref().map_or(String::new(), |t| format!(": {}", type_name(t)));
                format!("let {}{ty} = {};", name.text, self.expr(value, 0))
            }
            StmtKind::View { name, value } => {
                format!("view {} = {};", name.text, self.expr(value, 0))
            }
            StmtKind::Require { condition, why } => {
                format!("require {}, {why:?};", self.expr(condition, 0))
            }
            StmtKind::Scratch { name, count, like, wide } => {
                let count = count.as_ref().map_or(String::new(), |c| self.expr(c, 0) + " ");
                let wide = wide.as_ref().map_or(String::new(), |ty| format!(" as {}", ty.text));
                format!("scratch {}: {count}like {}{wide};", name.text, self.expr(like, 0))
            }
            StmtKind::Fifo { like, options } => {
                let option =
                    |(name, e): &(Name, Expr)| format!(", {} = {}", name.text, self.expr(e, 0));
                let options: String = options.iter().map(option).collect();
                format!("fifo like {}{options};", self.expr(like, 0))
            }
            StmtKind::Run { call, on } => {
                let on: Vec<_> = on.iter().map(|region| self.expr(region, 0)).collect();
                format!("{} on ({});", self.expr(call, ATOM), on.join(", "))
            }
            StmtKind::Within { group, body } => {
                let brace = self.brace_from(group.span.hi);
                self.before(lo, brace + 1, false);
                self.line_to(&format!("within {} {{", self.expr(group, OPERATOR)), brace + 1);
                self.block(body, brace);
                return self.line_to("}", hi);
            }
            StmtKind::Expr(e) => format!("{};", self.expr(e, ATOM)),
            StmtKind::Error => "/* unreadable */".to_owned(),
            StmtKind::For { var, iter, body } => {
                return self.looping("for", &var.text, iter, body, stmt.span);
            }
            StmtKind::Parallel { var, iter, body } => {
                return self.looping("parallel", &var.text, iter, body, stmt.span);
            }
            StmtKind::If { arms, otherwise } => {
                return self.branches(arms, otherwise.as_deref(), stmt.span);
            }
            StmtKind::Step { name, params, body } => {
                let brace = self.brace_from(name.span.hi);
                let listed = self.params_listed(params, name.span.hi, brace);
                self.before(lo, if listed { name.span.hi + 1 } else { brace + 1 }, false);
                self.header(&format!("step {}", name.text), params, " {", brace, listed);
                self.block(body, brace);
                return self.line_to("}", hi);
            }
        };
        self.before(lo, hi, false);
        self.line_to(&text, hi);
    }

    fn looping(&mut self, word: &str, var: &str, iter: &Iter, body: &[Stmt], span: Span) {
        let (range, last) = match iter {
            Iter::Range(lo, hi) => {
                (format!("{}..{}", self.expr(lo, OPERATOR), self.expr(hi, OPERATOR)), hi)
            }
            Iter::List(list) => (self.expr(list, OPERATOR), list),
        };
        let brace = self.brace_from(last.span.hi);
        self.before(span.lo, brace + 1, false);
        self.line_to(&format!("{word} {var} in {range} {{"), brace + 1);
        self.block(body, brace);
        self.line_to("}", span.hi);
    }

    fn branches(&mut self, arms: &[(Expr, Vec<Stmt>)], otherwise: Option<&[Stmt]>, span: Span) {
        let mut prefix = String::new();
        let mut close = span.lo;
        for (condition, body) in arms {
            let brace = self.brace_from(condition.span.hi);
            if prefix.is_empty() {
                self.before(span.lo, brace + 1, false);
            } else {
                // Comments around `else` go to the end of the block before it.
                self.indent += 1;
                self.comments_below_quietly(brace + 1);
                self.indent -= 1;
            }
            let condition = self.expr(condition, OPERATOR);
            self.line_to(&format!("{prefix}if {condition} {{"), brace + 1);
            close = self.block(body, brace);
            "} else ".clone_into(&mut prefix);
        }
        if let Some(body) = otherwise {
            let brace = self.brace_from(close);
            self.indent += 1;
            self.comments_below_quietly(brace + 1);
            self.indent -= 1;
            self.line_to("} else {", brace + 1);
            self.block(body, brace);
        }
        self.line_to("}", span.hi);
    }
}

fn type_name(ty: &TypeName) -> String {
    if ty.list { format!("[{}]", ty.text) } else { ty.text.clone() }
}
