//! Writes functions in CUDA text, one for each algorithm, with one statement for each statement of the author, below a
//! line number of its source.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Site;
use super::names::{identifier, param_type, type_name};
use super::source::KernelSource;
use roundelay_core::check::hir::{
    Algorithm, AlgorithmCall, Callee, Expr, Iter, Param, ParamTy, Primitive, Step, Stmt, StmtKind,
    Ty, VarId,
};
use roundelay_core::ids::SpanId;
use roundelay_core::layout::{CREDITS, SLICES};
use roundelay_core::source::Span;
use roundelay_core::syntax::ast::BinOp;
use roundelay_core::syntax::expr_text::{Target, Text};

/// The state that all functions of one text share.
#[derive(Default)]
pub(super) struct KernelWriter<'a> {
    /// The places at which objects are made: the algorithm and the span of the expression.
    pub(super) sites: Vec<Site>,
    /// The kinds of passes through slots in the program, by the name of the first primitive of each kind.
    pub(super) passes: BTreeSet<&'static str>,
    functions: Vec<Function<'a>>,
    pub(super) text: String,
}

struct Function<'a> {
    name: String,
    of: &'a str,
    /// The parameters that the caller passes; the others have their defaults.
    given: Vec<usize>,
}

impl<'a> KernelWriter<'a> {
    pub(super) fn site(&mut self, algorithm: &Algorithm, span: Span) -> usize {
        let place = (span.lo, span.hi);
        let known = |(name, at): &Site| *name == algorithm.name && *at == place;
        self.sites.iter().position(known).unwrap_or_else(|| {
            self.sites.push((algorithm.name.clone(), place));
            self.sites.len() - 1
        })
    }

    /// Writes the function of a called algorithm at its first call, and returns its name.
    pub(super) fn callee(&mut self, callee: &'a Callee, given: &[usize]) -> String {
        let Callee { algorithm, file, locations, .. } = callee;
        self.function(KernelSource { algorithm, file, locations, notes: None }, given)
    }

    pub(super) fn function(&mut self, source: KernelSource<'a>, given: &[usize]) -> String {
        let algorithm = source.algorithm;
        let known = |f: &&Function<'_>| f.of == algorithm.name && f.given == given;
        if let Some(function) = self.functions.iter().find(known) {
            return function.name.clone();
        }
        let body = Body::new(source, self).emit(given);
        let before = self.functions.iter().filter(|f| f.of == algorithm.name).count();
        let name = match before {
            0 => identifier(&algorithm.name),
            n => format!("{}_{}", algorithm.name, n + 1),
        };
        let mut params = vec!["Lane& lane".to_owned()];
        for buffer in ["input", "output"] {
            let used = mentions(&body, buffer);
            params.push(if used {
                format!("const Region {buffer}")
            } else {
                "const Region".into()
            });
        }
        for (index, param) in algorithm.params.iter().enumerate() {
            if given.contains(&index) {
                let name = identifier(&algorithm.vars[param.var.0 as usize].name);
                let unused = if mentions(&body, &name) { "" } else { "[[maybe_unused]] " };
                params.push(format!("{unused}const {} {name}", param_type(param.ty)));
            }
        }
        let text = &mut self.text;
        let params = params.join(", ");
        let one_line = format!("ROUNDELAY_DEVICE void {name}({params}) {{");
        // The width of the book's page.
        if one_line.len() <= 100 {
            let _ = writeln!(text, "\n{one_line}");
        } else {
            let _ = writeln!(text, "\nROUNDELAY_DEVICE void {name}(\n    {params}) {{");
        }
        for (name, ty, value) in [
            ("rank", "i64", "lane.rank()"),
            ("nranks", "i64", "lane.nranks()"),
            ("local", "Peer", "lane.local()"),
        ] {
            if mentions(&body, name) {
                let _ = writeln!(text, "    const {ty} {name} = {value};");
            }
        }
        text.push_str(&body);
        text.push_str("}\n");
        self.functions.push(Function {
            name: name.clone(),
            of: &algorithm.name,
            given: given.to_vec(),
        });
        name
    }
}

/// Whether a word occurs in the text.
fn mentions(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// The statements of one algorithm under construction.
pub(super) struct Body<'a, 'w> {
    source: KernelSource<'a>,
    /// The state that all algorithms share.
    writer: &'w mut KernelWriter<'a>,
    out: String,
    depth: usize,
    /// The lines to write before the next statement.
    before: Vec<String>,
    /// The number of lists so far.
    lists: u32,
    /// The number of declarations of scratch and fifos so far.
    declared: u32,
}

impl<'a, 'w> Body<'a, 'w> {
    pub(super) fn new(source: KernelSource<'a>, writer: &'w mut KernelWriter<'a>) -> Self {
        let (out, before) = (String::new(), Vec::new());
        Self { source, writer, out, depth: 1, before, lists: 0, declared: 0 }
    }

    /// Returns the text of parameters that are not `given`, and of the statements.
    pub(super) fn emit(mut self, given: &[usize]) -> String {
        let algorithm = self.source.algorithm;
        for (index, param) in algorithm.params.iter().enumerate() {
            if !given.contains(&index) {
                self.default(param);
            }
        }
        self.block(&algorithm.body);
        let fifo = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Fifo { .. });
        if algorithm.body.iter().any(fifo) {
            self.line("lane.end_fifo();");
        }
        self.out
    }

    fn default(&mut self, param: &Param) {
        let value = match (&param.default, param.ty) {
            (Some(default), _) => self.expr(default),
            (None, ParamTy::Topology) => {
                let span = self.source.algorithm.vars[param.var.0 as usize].span;
                let site = self.writer.site(self.source.algorithm, span);
                format!("lane.topology_at({site})")
            }
            (None, _) => "lane.ring_natural()".into(),
        };
        let (ty, name) = (param_type(param.ty), self.var(param.var));
        self.statement(SpanId(0), &format!("const {ty} {name} = {value};"));
    }

    // ---- lines ------------------------------------------------------------------------------

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 4 * self.depth);
    }

    /// Writes a line, and the pending lines before it, each with the author's line number.
    fn statement(&mut self, at: SpanId, text: &str) {
        let place = self.source.locations.get(at.index()).filter(|place| place.line > 0);
        let number = place.map(|place| {
            let file = self.source.file.replace('\\', "\\\\").replace('"', "\\\"");
            format!("#line {} \"{file}\"\n", place.line)
        });
        let before = std::mem::take(&mut self.before);
        for line in before.iter().map(String::as_str).chain([text]) {
            self.out += number.as_deref().unwrap_or_default();
            self.line(line);
        }
    }

    /// Writes a statement with a body: its head, which ends in `{`, its body, and its last line.
    fn nested(&mut self, at: SpanId, head: &str, body: &'a [Stmt], end: &str) {
        self.statement(at, head);
        self.indented(body);
        self.line(end);
    }

    /// Writes the statements of a body.
    fn indented(&mut self, body: &'a [Stmt]) {
        self.depth += 1;
        self.block(body);
        self.depth -= 1;
    }

    // ---- names ------------------------------------------------------------------------------

    pub(super) fn var(&self, id: VarId) -> String {
        identifier(&self.source.algorithm.vars[id.0 as usize].name)
    }

    /// Returns the number of the place at which an object is made.
    pub(super) fn site(&mut self, expr: &Expr) -> usize {
        self.writer.site(self.source.algorithm, expr.span)
    }

    /// Returns a list of these items; its definition is written before the statement.
    pub(super) fn list(&mut self, items: &[String]) -> String {
        if items.is_empty() {
            return "List()".into();
        }
        let name = format!("list_{}", self.lists);
        self.lists += 1;
        self.before.push(format!("const i64 {name}[] = {{{}}};", items.join(", ")));
        format!("List({name}, {})", items.len())
    }

    // ---- statements -------------------------------------------------------------------------

    fn block(&mut self, body: &'a [Stmt]) {
        for stmt in body {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        let at = stmt.at;
        match &stmt.kind {
            StmtKind::Let(var, value) => {
                let text = self.expr(value);
                let (ty, name) = (type_name(value.ty), self.var(*var));
                self.statement(at, &format!("const {ty} {name} = {text};"));
            }
            StmtKind::For(.., body) if self.source.idle(body) => {}
            StmtKind::For(var, Iter::Range(lo, hi), body) => {
                let (lo, hi, var) = (self.expr(lo), self.text(hi), self.var(*var));
                let more = Target::Cpp.binary(BinOp::Lt, Text::atom(var.clone()), hi).code;
                let head = format!("for (i64 {var} = {lo}; {more}; ++{var}) {{");
                self.nested(at, &head, body, "}");
            }
            StmtKind::For(var, Iter::List(list), body) => {
                let (list, var) = (self.expr(list), self.var(*var));
                self.nested(at, &format!("for (const i64 {var} : {list}) {{"), body, "}");
            }
            StmtKind::Parallel(var, lo, hi, body) => {
                let (lo, hi, var) = (self.expr(lo), self.expr(hi), self.var(*var));
                let walk = self.source.all_walk(body);
                let head = format!("lane.parallel<{walk}>({lo}, {hi}, [&](const i64 {var}) {{");
                self.nested(at, &head, body, "});");
            }
            StmtKind::If(arms, otherwise) => self.branches(at, arms, otherwise.as_deref()),
            // Checked when the schedule was laid out.
            StmtKind::Require(..) | StmtKind::Demand(_) => {}
            StmtKind::Scratch(var, count, like, _) => self.scratch(at, *var, count.as_ref(), like),
            StmtKind::Fifo { like, credits, slices } => {
                let like = self.expr(like);
                let mut size = |size: &Option<Expr>, default: u32| match size {
                    Some(size) => self.expr(size),
                    None => default.to_string(),
                };
                let (credits, slices) = (size(credits, CREDITS), size(slices, SLICES));
                let k = self.declaration();
                self.statement(at, &format!("lane.fifo({k}, {like}, {credits}, {slices});"));
            }
            StmtKind::Step(step) => self.step(at, step),
            StmtKind::Call(step, args) => {
                let args: Vec<_> = args.iter().map(|arg| self.expr(arg)).collect();
                let name = self.var(*step);
                self.statement(at, &format!("{name}({});", args.join(", ")));
            }
            StmtKind::Copy(src, dsts) => {
                let src = self.expr(src);
                let dsts = self.places(dsts);
                self.data(at, &format!("copy({src}, {dsts});"));
            }
            StmtKind::Reduce(srcs, dst) => {
                let srcs = self.places(srcs);
                let dst = self.expr(dst);
                self.data(at, &format!("reduce({srcs}, {dst});"));
            }
            StmtKind::Signal(..) if self.source.dropped(at) => {}
            StmtKind::Signal(signal, peer) => {
                let peer = self.atom(peer);
                self.statement(at, &format!("{peer}.{}();", signal.name()));
            }
            StmtKind::Within(group, body) => {
                let group = self.expr(group);
                let head = format!(
                    "lane.within({group}, [&]([[maybe_unused]] const i64 rank, [[maybe_unused]] const i64 nranks) {{"
                );
                self.nested(at, &head, body, "});");
            }
            StmtKind::Run(run) => self.run(at, run),
            StmtKind::Primitive { primitive, peer, places, onward } => {
                self.primitive(at, *primitive, peer, places, onward.as_ref());
            }
        }
    }

    /// Writes the branches of an `if` as far as one of them does something.
    fn branches(
        &mut self,
        at: SpanId,
        arms: &'a [(Expr, Vec<Stmt>)],
        otherwise: Option<&'a [Stmt]>,
    ) {
        let otherwise = otherwise.filter(|body| !self.source.idle(body));
        let busy = |(_, body): &(Expr, Vec<Stmt>)| !self.source.idle(body);
        if let ([(condition, body)], Some(otherwise)) = (arms, otherwise)
            && self.source.idle(body)
        {
            let condition = self.expr(condition);
            return self.nested(at, &format!("if (!({condition})) {{"), otherwise, "}");
        }
        let last = arms.iter().rposition(busy).map_or(0, |last| last + 1);
        let arms = if otherwise.is_some() { arms } else { &arms[..last] };
        if arms.is_empty() {
            return;
        }
        let conditions: Vec<_> = arms.iter().map(|(c, _)| self.expr(c)).collect();
        for (i, ((_, body), condition)) in arms.iter().zip(conditions).enumerate() {
            let head = format!("if ({condition}) {{");
            if i == 0 {
                self.statement(at, &head);
            } else {
                self.line(&format!("}} else {head}"));
            }
            self.indented(body);
        }
        if let Some(body) = otherwise {
            self.line("} else {");
            self.indented(body);
        }
        self.line("}");
    }

    /// Returns one place, or several in braces.
    fn places(&mut self, places: &[Expr]) -> String {
        let texts: Vec<_> = places.iter().map(|place| self.expr(place)).collect();
        match &texts[..] {
            [one] => one.clone(),
            _ => format!("{{{}}}", texts.join(", ")),
        }
    }

    fn data(&mut self, at: SpanId, text: &str) {
        if self.source.meets(at) {
            // On the same line, which is the author's.
            self.statement(at, &format!("{text} lane.meet();"));
        } else {
            self.statement(at, text);
        }
    }

    fn declaration(&mut self) -> u32 {
        self.declared += 1;
        self.declared - 1
    }

    fn scratch(&mut self, at: SpanId, var: VarId, count: Option<&Expr>, like: &Expr) {
        let shape = self.expr(like);
        let many = count.map(|count| self.expr(count));
        let (k, name) = (self.declaration(), self.var(var));
        let text = match (like.ty, many) {
            (Ty::Region, None) => format!("const Region {name} = lane.scratch({k}, {shape});"),
            (Ty::Region, Some(n)) => {
                format!("const Pieces {name} = lane.scratch_slots({k}, {n}, {shape});")
            }
            (_, n) => {
                let n = n.unwrap_or_else(|| "1".into());
                format!("const Pieces {name} = lane.scratch_blocks({k}, {n}, {shape});")
            }
        };
        self.statement(at, &text);
    }

    fn step(&mut self, at: SpanId, step: &'a Step) {
        let param = |var: &VarId| {
            let ty = self.source.algorithm.vars[var.0 as usize].ty;
            format!("const {} {}", type_name(ty), self.var(*var))
        };
        let params: Vec<_> = step.params.iter().map(param).collect();
        let name = self.var(step.name);
        let head = format!("const auto {name} = [&]({}) {{", params.join(", "));
        self.nested(at, &head, &step.body, "};");
    }

    fn primitive(
        &mut self,
        at: SpanId,
        primitive: Primitive,
        peer: &Expr,
        places: &[Expr],
        onward: Option<&Expr>,
    ) {
        self.writer.passes.insert(match primitive {
            // The second place is equal to the first.
            Primitive::RecvReduce => Primitive::RecvReduceCopy.name(),
            other => other.name(),
        });
        let peer = self.atom(peer);
        let args: Vec<_> = places.iter().chain(onward).map(|arg| self.expr(arg)).collect();
        self.data(at, &format!("{peer}.{}({});", primitive.name(), args.join(", ")));
    }

    fn run(&mut self, at: SpanId, run: &'a AlgorithmCall) {
        let mut args = run.args.clone();
        args.sort_by_key(|(index, _)| *index);
        let given: Vec<usize> = args.iter().map(|(index, _)| *index).collect();
        let name = self.writer.callee(&run.callee, &given);
        let mut passed = vec!["lane".to_owned(), "input".into(), "output".into()];
        passed.extend(args.iter().map(|(_, value)| self.expr(value)));
        let (input, output) = (self.expr(&run.input), self.expr(&run.output));
        let collective = run.callee.algorithm.collective;
        // Whether a buffer grows with the ranks: its units for two ranks show it.
        let many = |units: fn(&roundelay_core::collective::Collective, u32) -> u32| {
            u32::from(units(&collective, 2) == 2)
        };
        let (inwards, outwards) =
            (many(|c, n| c.max_input_units(n)), many(|c, n| c.max_output_units(n)));
        let head = format!(
            "lane.call({}, {inwards}, {outwards}, {input}, {output}, [&](const Region input, const Region output) {{",
            at.0
        );
        self.statement(at, &head);
        self.depth += 1;
        self.statement(at, &format!("{name}({});", passed.join(", ")));
        self.depth -= 1;
        self.line("});");
    }
}
