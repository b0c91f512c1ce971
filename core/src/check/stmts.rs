//! Statements: the declarations of each statement, and the places where it may stand.

use super::exprs::wrong;
use super::hir::{
    Demand, Expr, ExprKind, Iter, Primitive, Signal, Step, Stmt, StmtKind, Ty, VarId,
};
use super::scope::COUNT;
use super::{Checker, DeclaredStep, ast_type};
use crate::diagnostics::{Code, Diagnostic};
use crate::ids::SpanId;
use crate::source::Span;
use crate::syntax::{ast, suggestions};

/// The reason why no rank signals itself.
const ORDERED: &str = "ops of one rank are ordered already; `parallel` is joined at its end";

/// Returns the divisor of the count in a condition of the form `count % OF == 0`.
fn divisor(condition: &ast::Expr) -> Option<&ast::Expr> {
    use ast::ExprKind::{Binary, Int, Name};
    let Binary(ast::BinOp::Eq, left, right) = &*condition.kind else { return None };
    let (Binary(ast::BinOp::Rem, count, of), Int(0)) = (&*left.kind, &*right.kind) else {
        return None;
    };
    matches!(&*count.kind, Name(name) if name == COUNT).then_some(of)
}

impl Checker<'_> {
    /// Checks the statements of a block, in a scope of their own.
    pub(super) fn block(&mut self, body: &[ast::Stmt]) -> Vec<Stmt> {
        self.scope.open();
        let checked = body.iter().filter_map(|stmt| self.stmt(stmt)).collect();
        self.scope.close();
        checked
    }

    /// Checks a block one level deeper than the algorithm's own.
    pub(super) fn inner(&mut self, body: &[ast::Stmt]) -> Vec<Stmt> {
        self.depth += 1;
        let checked = self.block(body);
        self.depth -= 1;
        checked
    }

    fn stmt(&mut self, stmt: &ast::Stmt) -> Option<Stmt> {
        let at = SpanId(self.spans.len() as u32);
        self.spans.push(stmt.span);
        let kind = match &stmt.kind {
            ast::StmtKind::Let { name, ty, value } => self.let_stmt(name, ty.as_ref(), value),
            ast::StmtKind::View { name, value } => self.view(name, value),
            ast::StmtKind::For { var, iter, body } => self.for_stmt(var, iter, body),
            ast::StmtKind::Parallel { var, iter, body } => self.parallel(var, iter, body)?,
            ast::StmtKind::If { arms, otherwise } => {
                let arms = arms
                    .iter()
                    .map(|(condition, body)| (self.expect(condition, Ty::Bool), self.inner(body)))
                    .collect();
                StmtKind::If(arms, otherwise.as_ref().map(|body| self.inner(body)))
            }
            ast::StmtKind::Require { condition, why } => self.require(condition, why),
            ast::StmtKind::Scratch { name, count, like, wide } => {
                let wide = wide.as_ref().is_some_and(|ty| self.wide(ty));
                self.scratch((name, wide), count.as_ref(), like, stmt)
            }
            ast::StmtKind::Step { name, params, body } => self.step(name, params, body),
            ast::StmtKind::Fifo { like, options } => self.fifo(like, options, stmt),
            ast::StmtKind::Within { group, body } => self.within(group, body),
            ast::StmtKind::Run { call, on } => self.run(call, on)?,
            ast::StmtKind::Expr(expr) => self.action(expr)?,
            ast::StmtKind::Error => return None,
        };
        Some(Stmt { at, kind })
    }

    /// Checks `require CONDITION, "why";`, or `require count % OF == 0, "why";`, which is a demand on the calls of the
    /// algorithm.
    fn require(&mut self, condition: &ast::Expr, why: &str) -> StmtKind {
        match divisor(condition).filter(|_| self.scope.find(COUNT).is_none()) {
            Some(of) => {
                StmtKind::Demand(Demand::Multiple(self.expect(of, Ty::Int), why.to_owned()))
            }
            None => StmtKind::Require(self.expect(condition, Ty::Bool), why.to_owned()),
        }
    }

    fn let_stmt(
        &mut self,
        name: &ast::Name,
        ty: Option<&ast::TypeName>,
        value: &ast::Expr,
    ) -> StmtKind {
        let before = self.errors.len();
        let written = ty.map(|ty| self.value_type(ty));
        let value = match written {
            Some(ty) => self.expect(value, ty),
            None => self.expr(value),
        };
        if matches!(value.ty, Ty::Region | Ty::Pieces | Ty::All) || value.ty.has_rank() {
            let help = if value.ty == Ty::All {
                "write `all` where its region or its signal is used".to_owned()
            } else {
                format!("regions are named by `view {} = …;`, without a rank", name.text)
            };
            self.error(
                Diagnostic::new(
                    Code::WrongType,
                    value.span,
                    format!("`let` cannot name {}", value.ty.name()),
                )
                .label(value.ty.name())
                .help(help),
            );
        }
        StmtKind::Let(self.declare(name, self.sound(before, value.ty)), value)
    }

    fn value_type(&mut self, ty: &ast::TypeName) -> Ty {
        match (ty.text.as_str(), ty.list) {
            ("int" | "Rank", false) => Ty::Int,
            ("bool", false) => Ty::Bool,
            ("peer", false) => Ty::Peer,
            ("Ring", false) => Ty::Ring,
            ("Rings", false) => Ty::Rings,
            ("Tree", false) => Ty::Tree,
            ("Trees", false) => Ty::Trees,
            ("Groups", false) => Ty::Groups,
            ("Topology", false) => Ty::Topology,
            ("region", false) => Ty::Region,
            ("int" | "Rank", true) => Ty::List,
            _ => {
                let integer =
                    suggestions::integer(&ty.text).then_some("integers are `int`, of 64 bits");
                self.error(
                    Diagnostic::new(
                        Code::UnknownName,
                        ty.span,
                        format!("`{}` is not a type", ast_type(ty)),
                    )
                    .help(integer.unwrap_or("the types are `int`, `bool`, `peer`, `Rank`, `Ring`, `Rings`, `Tree`, `Trees`, `Groups`, `Topology`, `[Rank]` and `region`")),
                );
                Ty::Error
            }
        }
    }

    fn view(&mut self, name: &ast::Name, value: &ast::Expr) -> StmtKind {
        let before = self.errors.len();
        let value = self.expr(value);
        match value.ty {
            Ty::Region | Ty::Pieces | Ty::Error => {}
            ranked if ranked.has_rank() => self.error(
                Diagnostic::new(
                    Code::WrongType,
                    value.span,
                    "a view has no rank: it names the same region of every rank",
                )
                .label("this names a rank")
                .help(format!(
                    "leave the rank out here, and write `local.{}` where it is used",
                    name.text
                )),
            ),
            other => self.error(wrong(value.span, "a region or pieces of one", other)),
        }
        StmtKind::Let(self.declare(name, self.sound(before, value.ty)), value)
    }

    fn for_stmt(&mut self, var: &ast::Name, iter: &ast::Iter, body: &[ast::Stmt]) -> StmtKind {
        let iter = match iter {
            ast::Iter::Range(lo, hi) => {
                Iter::Range(self.expect(lo, Ty::Int), self.expect(hi, Ty::Int))
            }
            ast::Iter::List(list) => Iter::List(self.expect(list, Ty::List)),
        };
        self.scope.open();
        let var = self.counter("for", var);
        let body = self.inner(body);
        self.scope.close();
        StmtKind::For(var, iter, body)
    }

    /// Declares the variable of a loop that begins with `word`.
    fn counter(&mut self, word: &str, var: &ast::Name) -> VarId {
        let id = self.declare(var, Ty::Int);
        if let ("_", Some(error)) = (&*var.text, self.errors.last_mut()) {
            error.help = Some(format!("a loop's variable has a name: write `{word} _i in …`"));
        }
        id
    }

    fn parallel(
        &mut self,
        var: &ast::Name,
        iter: &ast::Iter,
        body: &[ast::Stmt],
    ) -> Option<StmtKind> {
        let ast::Iter::Range(lo, hi) = iter else {
            let ast::Iter::List(list) = iter else { unreachable!("two kinds of iteration") };
            self.error(
                Diagnostic::new(Code::ParallelOverList, list.span, "`parallel` runs over a range")
                    .label("a list here")
                    .note(
                        "a signal's lane is the value of the `parallel` variable, and a list need \
                         not have the same values on both sides",
                    )
                    .help("iterate over a distance: `parallel d in 1..nranks { let to = peer((rank + d) % nranks); … }`"),
            );
            return None;
        };
        let (lo, hi) = (self.expect(lo, Ty::Int), self.expect(hi, Ty::Int));
        self.scope.open();
        let var = self.counter("parallel", var);
        let body = self.inner(body);
        self.scope.close();
        Some(StmtKind::Parallel(var, lo, hi, body))
    }

    fn scratch(
        &mut self,
        (name, wide): (&ast::Name, bool),
        count: Option<&ast::Expr>,
        like: &ast::Expr,
        stmt: &ast::Stmt,
    ) -> StmtKind {
        self.at_the_top("scratch", "scratch", stmt);
        let before = self.errors.len();
        let count = count.map(|count| self.expect(count, Ty::Int));
        let like = self.expr(like);
        let ty = match like.ty {
            Ty::Region if count.is_none() => Ty::Region,
            Ty::Region | Ty::Pieces => Ty::Pieces,
            Ty::Error => Ty::Error,
            other => {
                self.error(
                    wrong(like.span, "a region or pieces of one", other)
                        .help("`scratch inbox: like output;` or `scratch slot: 2 like block;`"),
                );
                Ty::Error
            }
        };
        StmtKind::Scratch(self.declare(name, self.sound(before, ty)), count, like, wide)
    }

    /// Checks the type of the elements of scratch: `as f32` is the only one.
    fn wide(&mut self, ty: &ast::Name) -> bool {
        if ty.text != "f32" {
            let title = format!("scratch has no elements of type `{}`", ty.text);
            self.error(
                Diagnostic::new(Code::UnknownName, ty.span, title)
                    .label("not a type of scratch")
                    .help("`as f32` keeps f16, bf16 and fp8 as f32; without it, elements are those of the call")
                    .edit(ty.span, "f32"),
            );
        }
        true
    }

    /// Reports a declaration inside a block: scratch and the like belong to every rank on every path, so they are
    /// declared outside of all blocks.
    pub(super) fn at_the_top(&mut self, one: &str, what: &str, stmt: &ast::Stmt) {
        if self.depth > 0 || !self.open_steps.is_empty() {
            let title = format!("{one} is declared inside a block");
            self.error(
                Diagnostic::new(Code::ScratchPlacement, stmt.span, title)
                    .label("must stand at the top of the algorithm")
                    .note(format!("every rank has the same {what}, whatever path it takes")),
            );
        }
    }

    fn step(&mut self, name: &ast::Name, params: &[ast::Param], body: &[ast::Stmt]) -> StmtKind {
        self.scope.open();
        let params: Vec<VarId> = params
            .iter()
            .map(|param| {
                if let Some(default) = &param.default {
                    self.error(Diagnostic::new(
                        Code::WrongArity,
                        default.span,
                        "a step's parameter has no default",
                    ));
                }
                let ty = self.value_type(&param.ty);
                self.declare(&param.name, ty)
            })
            .collect();
        self.open_steps.push((name.text.clone(), 1));
        let body = self.inner(body);
        let (_, depth) = self.open_steps.pop().expect("the step was pushed above");
        self.scope.close();
        let name = self.declare(name, Ty::Step);
        self.steps.push(DeclaredStep { name, params: params.clone(), depth });
        StmtKind::Step(Step { name, params, body })
    }

    /// Checks an expression that stands as a statement: an op, a signal, or the call of a step.
    fn action(&mut self, expr: &ast::Expr) -> Option<StmtKind> {
        match &*expr.kind {
            ast::ExprKind::Error => None,
            ast::ExprKind::Method(base, name, args) => {
                if let Some(signal) = Signal::from_name(&name.text) {
                    return Some(self.signal(signal, base, name, args));
                }
                if let Some(which) = Primitive::from_name(&name.text) {
                    return self.primitive(which, base, name, args, expr.span);
                }
                self.no_effect(expr);
                None
            }
            ast::ExprKind::Call(path, args) if path.len() == 1 => {
                self.call_stmt(&path[0], args, expr)
            }
            _ => {
                self.no_effect(expr);
                None
            }
        }
    }

    fn signal(
        &mut self,
        signal: Signal,
        base: &ast::Expr,
        name: &ast::Name,
        args: &[ast::Expr],
    ) -> StmtKind {
        if let Some(first) = args.first() {
            let span = args.iter().fold(first.span, |span, arg| span.join(arg.span));
            self.error(
                Diagnostic::new(
                    Code::WrongArity,
                    span,
                    format!("`{}` takes no argument", signal.name()),
                )
                .label("unexpected"),
            );
        }
        let peer = self.partner((signal.name(), &[Ty::Peer, Ty::All]), base, name.span, ORDERED);
        StmtKind::Signal(signal, peer)
    }

    /// Returns the peer of `name`, a signal or primitive, or what else it takes in its place; `last` ends the place of the
    /// two.
    pub(super) fn partner(
        &mut self,
        (name, takes): (&str, &[Ty]),
        peer: &ast::Expr,
        last: Span,
        to_oneself: &str,
    ) -> Expr {
        let peer = self.expr(peer);
        if !takes.contains(&peer.ty) && peer.ty != Ty::Error {
            let help = match peer.ty {
                Ty::List if Primitive::from_name(name).is_some() => {
                    "the data of several peers is folded: `recv_reduce` and its longer forms take a list"
                }
                Ty::List => "signals have one peer: write `for r in LIST { peer(r)… }`",
                Ty::Int => "write `peer(…)` to make a peer of a rank's number",
                Ty::Ring => "write `.left` or `.right` to choose a neighbor",
                _ => "what comes and goes has a peer, such as `ring.right` or `peer(rank ^ 1)`",
            };
            let title = format!("`{name}` on {}", peer.ty.name());
            let mut error = Diagnostic::new(Code::SignalOnNonPeer, peer.span, title)
                .label(format!("this is {}, not a peer", peer.ty.name()))
                .help(help);
            if let ExprKind::Var(var) = *peer.kind {
                error = error.caused_by(format!("{} as a peer", self.vars[var.0 as usize].name));
            }
            self.error(error);
        } else if matches!(*peer.kind, ExprKind::Local) {
            self.error(
                Diagnostic::new(
                    Code::SelfSignal,
                    peer.span.join(last),
                    format!("`{name}` to oneself"),
                )
                .label("`local` is this very rank")
                .help(to_oneself),
            );
        }
        peer
    }

    fn no_effect(&mut self, expr: &ast::Expr) {
        let checked = self.expr(expr);
        if checked.ty != Ty::Error {
            self.error(
                Diagnostic::new(Code::WrongType, expr.span, "this statement does nothing")
                    .label(format!("{}, which nobody uses", checked.ty.name()))
                    .help("statements are ops (`copy`, `reduce`), signals, and calls of steps"),
            );
        }
    }
}
