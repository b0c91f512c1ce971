//! Calls: the ops, the built-in functions, and the author's steps.

use super::exprs::wrong;
use super::hir::{Expr, ExprKind, Primitive, Signal, StmtKind, Ty, VarId};
use super::members::elsewhere;
use super::{Checker, constructors, scope};
use crate::diagnostics::{Code, Diagnostic, INPUT_KEPT};
use crate::source::Span;
use crate::syntax::{ast, printer, suggestions};
use crate::units::count;
use crate::values::arith::IntFn;
use roundelay_topology::shape::ShapeKind;

/// The functions that are not from integers to integers.
const OTHER_FUNCTIONS: [&str; 4] = ["is_power_of_two", "peer", "len", "rev"];

/// The most calls of steps that nest: the bound of every recursion over them.
const MAX_STEPS: usize = 64;

impl Checker<'_> {
    pub(super) fn call_stmt(
        &mut self,
        name: &ast::Name,
        args: &[ast::Expr],
        expr: &ast::Expr,
    ) -> Option<StmtKind> {
        match name.text.as_str() {
            "copy" => {
                let [src, dst] = self.two(name, args, expr.span, "copy(from, to)")?;
                let src = self.place(src);
                if matches!(*dst.kind, ast::ExprKind::List(_)) {
                    let dsts = self.places(dst, true);
                    self.writable(&dsts);
                    return Some(StmtKind::Copy(src, dsts));
                }
                let dst = self.expr(dst);
                self.writable(std::slice::from_ref(&dst));
                if dst.ty == Ty::OfAll {
                    return Some(StmtKind::Switch(src, dst));
                }
                Some(StmtKind::Copy(src, vec![self.as_place(dst)]))
            }
            "reduce" => {
                let [src, dst] = self.two(name, args, expr.span, "reduce(from, into)")?;
                let srcs = self.places(src, false);
                let dst = self.place(dst);
                self.writable(std::slice::from_ref(&dst));
                Some(StmtKind::Reduce(srcs, dst))
            }
            text if self.scope.find(text).is_some_and(|var| self.ty(var) == Ty::Step) => {
                let step = self.scope.find(text)?;
                self.uses.push((name.span, step));
                self.step_call(step, name, args, expr.span)
            }
            "fold" => {
                let [src, dst] = self.two(name, args, expr.span, "fold(all.from, local.into)")?;
                let (src, dst) = (self.expr(src), self.expr(dst));
                if !matches!(src.ty, Ty::OfAll | Ty::Error) {
                    let title = format!(
                        "`fold` takes a region of all ranks, and this is {}",
                        src.ty.name()
                    );
                    let error =
                        Diagnostic::new(Code::NotARegion, src.span, title).label(src.ty.name());
                    let help =
                        "write `fold(all.…, …)`; `reduce` folds regions of ranks that are named";
                    self.error(error.help(help));
                }
                self.writable(std::slice::from_ref(&dst));
                let dst = if dst.ty == Ty::OfAll { dst } else { self.as_place(dst) };
                Some(StmtKind::Switch(src, dst))
            }
            text if self.open_steps.iter().any(|(open, _)| open == text) => {
                self.error(
                    Diagnostic::new(
                        Code::RecursiveStep,
                        name.span,
                        format!("step `{text}` calls itself"),
                    )
                    .label("inside its own body")
                    .note("a step is inlined where it is called")
                    .help("use a `for` loop"),
                );
                None
            }
            _ => {
                // The value of the function is unused, or the name is unknown.
                let value = self.call(std::slice::from_ref(name), args, expr.span);
                if value.ty != Ty::Error {
                    self.error(
                        Diagnostic::new(Code::WrongType, expr.span, "this statement does nothing")
                            .label(format!("{}, which nobody uses", value.ty.name())),
                    );
                }
                None
            }
        }
    }

    fn two<'a>(
        &mut self,
        name: &ast::Name,
        args: &'a [ast::Expr],
        span: Span,
        form: &str,
    ) -> Option<[&'a ast::Expr; 2]> {
        if let [a, b] = args {
            return Some([a, b]);
        }
        self.arity(name, 2, args.len(), span, form);
        for arg in args {
            self.expr(arg);
        }
        None
    }

    pub(super) fn arity(
        &mut self,
        name: &ast::Name,
        takes: usize,
        got: usize,
        span: Span,
        form: &str,
    ) {
        let takes = count(takes, "argument");
        self.error(
            Diagnostic::new(
                Code::WrongArity,
                span,
                format!("`{}` takes {takes}, and got {got}", name.text),
            )
            .label(format!("{got} given"))
            .help(format!("the form is `{form}`")),
        );
    }

    /// Checks a data operand: a region of a rank.
    pub(super) fn place(&mut self, expr: &ast::Expr) -> Expr {
        let place = self.expr(expr);
        self.as_place(place)
    }

    /// Checks that an expression is a region of a rank.
    fn as_place(&mut self, place: Expr) -> Expr {
        let help = match place.ty {
            Ty::Place | Ty::Error => return place,
            Ty::Region => "say whose: `local.…` for this rank, or a peer's".to_owned(),
            Ty::Places | Ty::PiecesOfAll => {
                "choose one piece by `[i]`, or several by `[i..j]`".to_owned()
            }
            Ty::Pieces => "say whose, and choose a piece: `local.…[i]`".to_owned(),
            Ty::OfAll => {
                "`fold(all.…, …)` folds a region of all ranks, and `copy(…, all.…)` writes one"
                    .to_owned()
            }
            Ty::Peer | Ty::All => "say which buffer: `.input`, `.output` or a view".to_owned(),
            _ => "operands are such as `left.output` or `local.block[b]`".to_owned(),
        };
        let title =
            format!("a data operand is a region of a rank, and this is {}", place.ty.name());
        self.error(
            Diagnostic::new(Code::NotARegion, place.span, title).label(place.ty.name()).help(help),
        );
        place
    }

    /// Checks one operand, or a list of them.
    fn places(&mut self, expr: &ast::Expr, destinations: bool) -> Vec<Expr> {
        let ast::ExprKind::List(items) = &*expr.kind else { return vec![self.place(expr)] };
        if items.is_empty() || (destinations && items.len() > 8) {
            let title = match items.len() {
                0 => "an op without operands".to_owned(),
                n => format!("{n} destinations, and an op takes at most 8"),
            };
            self.error(
                Diagnostic::new(Code::TooManyOperands, expr.span, title)
                    .label(format!("{} here", items.len()))
                    .help("name one region, or a list of one to eight"),
            );
        }
        items.iter().map(|item| self.place(item)).collect()
    }

    pub(super) fn writable(&mut self, dsts: &[Expr]) {
        for dst in dsts {
            if let ExprKind::On(_, region) = &*dst.kind
                && matches!(root(region), ExprKind::Input)
            {
                let title = "the input is never a destination";
                let error = Diagnostic::new(Code::InputWritten, dst.span, title);
                self.error(error.label("written here").note(INPUT_KEPT.0).help(INPUT_KEPT.1));
            }
        }
    }

    fn step_call(
        &mut self,
        step: VarId,
        name: &ast::Name,
        args: &[ast::Expr],
        span: Span,
    ) -> Option<StmtKind> {
        let declared = self.steps.iter().find(|known| known.name == step)?;
        let (params, depth) = (declared.params.clone(), declared.depth + 1);
        if depth > MAX_STEPS {
            self.error(
                Diagnostic::new(
                    Code::NestedTooDeep,
                    span,
                    format!("steps call each other more than {MAX_STEPS} deep"),
                )
                .note("a step is inlined where it is called")
                .help("use a `for` loop"),
            );
            return None;
        }
        if let Some((_, deepest)) = self.open_steps.last_mut() {
            *deepest = depth.max(*deepest);
        }
        // The errors of unreadable parameters were reported at the step.
        if params.is_empty() && !args.is_empty() && self.known.unread(&name.text) {
            return None;
        }
        if params.len() != args.len() {
            let names: Vec<_> =
                params.iter().map(|p| self.vars[p.0 as usize].name.clone()).collect();
            let form = format!("{}({})", name.text, names.join(", "));
            self.arity(name, params.len(), args.len(), span, &form);
            return None;
        }
        let args = params.iter().zip(args).map(|(p, arg)| self.expect(arg, self.ty(*p))).collect();
        Some(StmtKind::Call(step, args))
    }

    /// Checks a call that has a value.
    pub(super) fn call(&mut self, path: &[ast::Name], args: &[ast::Expr], span: Span) -> Expr {
        let error = Expr { kind: Box::new(ExprKind::Error), ty: Ty::Error, span };
        let name = &path[path.len() - 1];
        if path.len() > 1 {
            return self.constructor(path, args, span).unwrap_or(error);
        }
        if let (true, Some(owner)) = (self.in_executor, constructors::owner(&name.text)) {
            let owner = ast::Name { text: owner.to_owned(), span: name.span };
            return self.constructor(&[owner, name.clone()], args, span).unwrap_or(error);
        }
        if let Some(function) = IntFn::from_name(&name.text) {
            if args.len() != function.arity() {
                let form = match function {
                    IntFn::BitReverse => "bit_reverse(x, bits)".to_owned(),
                    _ if function.arity() == 2 => format!("{}(x, y)", name.text),
                    _ => format!("{}(x)", name.text),
                };
                self.arity(name, function.arity(), args.len(), span, &form);
                return error;
            }
            let args = args.iter().map(|arg| self.expect(arg, Ty::Int)).collect();
            return Expr { kind: Box::new(ExprKind::IntFn(function, args)), ty: Ty::Int, span };
        }
        if !OTHER_FUNCTIONS.contains(&name.text.as_str()) {
            let at = self.errors.len();
            self.unknown_function(name);
            let checked: Vec<Expr> = args.iter().map(|arg| self.expr(arg)).collect();
            if at < self.errors.len()
                && let Some((form, call)) = Self::with_a_peer(name, args, &checked)
            {
                let through = if call && !self.has_fifo() {
                    ", with `fifo like output;` at the top of the algorithm"
                } else {
                    ""
                };
                let error = self.errors.remove(at);
                let error =
                    error.help(format!("the peer stands before the dot: `{form};`{through}"));
                let whole = through.is_empty();
                let error = if whole { error.edit(span, form) } else { error };
                self.errors.insert(at, error);
            }
            return error;
        }
        let [arg] = args else {
            self.arity(name, 1, args.len(), span, &format!("{}(x)", name.text));
            return error;
        };
        let (kind, ty) = match name.text.as_str() {
            "is_power_of_two" => (ExprKind::IsPowerOfTwo(self.expect(arg, Ty::Int)), Ty::Bool),
            "peer" => {
                let arg = self.expect(arg, Ty::Int);
                self.not_in_default(span, "peer");
                (ExprKind::Peer(arg), Ty::Peer)
            }
            "rev" => (ExprKind::Rev(self.expect(arg, Ty::List)), Ty::List),
            _ => {
                let arg = self.expr(arg);
                self.has_a_name(&arg);
                if !matches!(
                    arg.ty,
                    Ty::List | Ty::Rings | Ty::Trees | Ty::Groups | Ty::Pieces | Ty::Error
                ) {
                    self.error(wrong(arg.span, "a list or pieces", arg.ty));
                }
                (ExprKind::Len(arg), Ty::Int)
            }
        };
        Expr { kind: Box::new(kind), ty, span }
    }

    /// Returns a signal or a primitive that is written as a function, with its peer before the dot, and whether it is a
    /// primitive; `None` where the arguments are not those that it takes.
    fn with_a_peer(
        name: &ast::Name,
        written: &[ast::Expr],
        args: &[Expr],
    ) -> Option<(String, bool)> {
        let (mut peers, mut regions) = (Vec::new(), Vec::new());
        for (arg, written) in args.iter().zip(written) {
            let text = printer::print_expr(written);
            match arg.ty {
                Ty::Peer => peers.push(text),
                Ty::Int => peers.push(format!("peer({text})")),
                Ty::Place => regions.push(text),
                Ty::Region => regions.push(format!("local.{text}")),
                _ => return None,
            }
        }
        if let Some(signal) = Signal::from_name(&name.text) {
            let [peer] = &peers[..] else { return None };
            return regions.is_empty().then(|| (format!("{peer}.{}()", signal.name()), false));
        }
        let called = elsewhere(&name.text).unwrap_or_else(|| name.text.clone());
        let primitive = Primitive::from_name(&called)?;
        let [first, others @ ..] = &peers[..] else { return None };
        // The form has as many peers behind the dot, and as many regions.
        let forms = primitive.form().split_once('(')?.1.trim_end_matches(')').split(", ");
        let (of_local, to): (Vec<&str>, Vec<&str>) = forms.partition(|arg| arg.contains('.'));
        let fits = (of_local.len(), to.len()) == (regions.len(), others.len());
        fits.then(|| {
            (format!("{first}.{called}({})", [&regions, others].concat().join(", ")), true)
        })
    }

    pub(super) fn unknown_function(&mut self, name: &ast::Name) {
        if self.known.unread(&name.text) {
            return;
        }
        let known = IntFn::ALL
            .iter()
            .map(|f| f.name())
            .chain(OTHER_FUNCTIONS)
            .chain(["copy", "reduce", "fold"]);
        let known = known.chain(ShapeKind::ALL.iter().map(|k| k.name()));
        let near = scope::nearest(&name.text, known).map(str::to_owned);
        let near =
            near.or_else(|| scope::nearest(&name.text, self.scope.names()).map(str::to_owned));
        let mut error = Diagnostic::new(
            Code::UnknownName,
            name.span,
            format!("no function or step is called `{}`", name.text),
        )
        .caused_by(&*name.text)
        .label("not found");
        if matches!(name.text.as_str(), "copy" | "reduce" | "fold") {
            error.title = format!("`{}` is a statement, not a value", name.text);
        } else if self.known.names().contains(&name.text) {
            error.title = format!("`{}` is an algorithm, and runs on regions", name.text);
            error = error.help(format!("write `{}() on (input, output);`", name.text));
        } else if let Some(instead) = suggestions::instead(&name.text) {
            error = error.help(instead);
        } else if let Some(near) = near {
            error = error.suggest(&near);
        }
        self.error(error);
    }
}

/// Returns the expression that a region is cut from.
fn root(region: &Expr) -> &ExprKind {
    match &*region.kind {
        ExprKind::Split(base, _)
        | ExprKind::Block(base, _)
        | ExprKind::Piece(base, _)
        | ExprKind::Range(base, ..) => root(base),
        other => other,
    }
}
