//! `within` and the calls of algorithms: the ranks that a body sees, and the algorithms that run on regions.

use super::dependencies::DependencyLookup;
use super::exprs::wrong;
use super::hir::{AlgorithmCall, Expr, ExprKind, ParamTy, StmtKind, Ty};
use super::{Checker, scope};
use crate::diagnostics::{Code, Diagnostic};
use crate::syntax::ast;

/// The most calls of algorithms that nest: the bound of every recursion over them.
const MAX_CALLS: usize = 32;

impl Checker<'_> {
    pub(super) fn within(&mut self, group: &ast::Expr, body: &[ast::Stmt]) -> StmtKind {
        let group = self.expect(group, Ty::List);
        self.groups += 1;
        let body = self.inner(body);
        self.groups -= 1;
        StmtKind::Within(group, body)
    }

    pub(super) fn run(&mut self, call: &ast::Expr, on: &[ast::Expr]) -> Option<StmtKind> {
        let ast::ExprKind::Call(path, args) = &*call.kind else {
            self.error(
                Diagnostic::new(Code::WrongType, call.span, "only algorithms run `on` regions")
                    .help("the form is `RingAllReduce() on (input, output);`"),
            );
            return None;
        };
        let regions: Vec<Expr> = on.iter().map(|region| self.whose(region)).collect();
        let all = args.len();
        let args: Vec<_> = args.iter().filter_map(|arg| self.argument(arg)).collect();
        let unnamed = args.len() < all;
        let (input, output) = match &regions[..] {
            [both] => (both.clone(), both.clone()),
            [input, output] => (input.clone(), output.clone()),
            _ => {
                let title = format!("an algorithm runs on one region or two, and got {}", on.len());
                self.error(
                    Diagnostic::new(Code::WrongArity, call.span, title)
                        .help("`on (input_region, output_region)`, or one region for both"),
                );
                return None;
            }
        };
        let name = &path[path.len() - 1];
        let callee = match self.known.find(&name.text) {
            DependencyLookup::Callee(callee) if path.len() == 1 => callee,
            DependencyLookup::Wrong => return None,
            DependencyLookup::Itself => {
                let title = format!("algorithm `{}` calls itself", name.text);
                self.error(
                    Diagnostic::new(Code::RecursiveStep, name.span, title)
                        .label("by this call")
                        .note("a called algorithm is laid out where it is called")
                        .help("use a `for` loop"),
                );
                return None;
            }
            DependencyLookup::Private => {
                let title = format!("algorithm `{}` is its source's own", name.text);
                self.error(
                    Diagnostic::new(Code::UnknownName, name.span, title)
                        .help(format!("write `pub algorithm {}` there", name.text)),
                );
                return None;
            }
            _ => {
                self.unknown_algorithm(name);
                return None;
            }
        };
        if callee.depth >= MAX_CALLS {
            let title = format!("algorithms call each other more than {MAX_CALLS} deep");
            self.error(
                Diagnostic::new(Code::NestedTooDeep, name.span, title)
                    .note("a called algorithm is laid out where it is called")
                    .help("call the innermost ones directly"),
            );
            return None;
        }
        let algorithm = &callee.algorithm;
        self.escapes |= algorithm.escapes;
        let mut given: Vec<(usize, Expr)> = Vec::new();
        for (name, value) in args {
            let param = |p: &super::hir::Param| algorithm.vars[p.var.index()].name == name.text;
            let Some(index) = algorithm.params.iter().position(param) else {
                let known = algorithm.params.iter().map(|p| &*algorithm.vars[p.var.index()].name);
                let near = scope::nearest(&name.text, known.clone());
                let title = format!("{} has no parameter `{}`", algorithm.name, name.text);
                let mut error = Diagnostic::new(Code::UnknownMember, name.span, title);
                error = error.label("not found");
                let known: Vec<_> = known.map(|name| format!("`{name}`")).collect();
                error = match (near, known.is_empty()) {
                    (Some(near), _) => error.suggest(near),
                    (None, true) => error.note("it has none"),
                    (None, false) => error.note(format!("it has {}", known.join(", "))),
                };
                self.error(error);
                continue;
            };
            let ty = algorithm.params[index].ty.ty();
            if value.ty != ty && value.ty != Ty::Error {
                self.error(wrong(value.span, ty.name(), value.ty));
            }
            if given.iter().any(|(known, _)| *known == index) {
                let title = format!("parameter `{}` is given twice", name.text);
                self.error(Diagnostic::new(Code::AlreadyDeclared, name.span, title));
                continue;
            }
            given.push((index, value));
        }
        for (index, param) in algorithm.params.iter().enumerate() {
            let has = given.iter().any(|(known, _)| *known == index);
            if !unnamed && !has && param.default.is_none() && !param.ty.has_natural() {
                let param = &algorithm.vars[param.var.index()].name;
                let title = format!("{} needs its parameter `{param}`", algorithm.name);
                self.error(
                    Diagnostic::new(Code::WrongArity, call.span, title)
                        .help(format!("write `{}({param}: …)`", algorithm.name)),
                );
            }
        }
        given.sort_by_key(|(index, _)| *index);
        Some(StmtKind::Run(AlgorithmCall { callee, args: given, input, output }))
    }

    /// Reads an argument: `name: value`, or a name that stands for both.
    fn argument(&mut self, arg: &ast::Expr) -> Option<(ast::Name, Expr)> {
        match &*arg.kind {
            ast::ExprKind::Named(name, value) => Some((name.clone(), self.expr(value))),
            ast::ExprKind::Name(text) => {
                let name = ast::Name { text: text.clone(), span: arg.span };
                Some((name, self.expr(arg)))
            }
            _ => {
                let value = self.expr(arg);
                if value.ty != Ty::Error {
                    self.error(
                        Diagnostic::new(Code::WrongArity, arg.span, "an argument without its name")
                            .label("for which parameter?")
                            .help("arguments of algorithms are named: `root: 0`"),
                    );
                }
                None
            }
        }
    }

    /// Checks a region of all ranks, such as a buffer of a called algorithm.
    fn whose(&mut self, region: &ast::Expr) -> Expr {
        let mut checked = self.expr(region);
        if matches!(checked.ty, Ty::Region | Ty::Error) {
            return checked;
        }
        let error = wrong(checked.span, "a region", checked.ty);
        self.error(match checked.ty {
            ranked if ranked.has_rank() => {
                error.help("leave the rank out: it is the region of every rank")
            }
            Ty::Pieces => error.help("choose one piece by `[i]`, or several by `[i..j]`"),
            _ => error.help("regions are `input`, `output`, views and scratch"),
        });
        checked.kind = Box::new(ExprKind::Error);
        checked.ty = Ty::Error;
        checked
    }

    fn unknown_algorithm(&mut self, name: &ast::Name) {
        let title = format!("no algorithm is called `{}`", name.text);
        let mut error = Diagnostic::new(Code::UnknownName, name.span, title).label("not found");
        let known = self.known.names();
        error = match scope::nearest(&name.text, known.iter().map(String::as_str)) {
            Some(near) => error.suggest(near),
            None => error.note(
                "an algorithm is found in the same source, in one that it uses (`use \"file.coll\";`), or \
                 in the library",
            ),
        };
        self.error(error);
    }
}

impl ParamTy {
    /// Returns the type of the values that a program gives the parameter.
    pub(super) const fn ty(self) -> Ty {
        match self {
            Self::Int | Self::Rank => Ty::Int,
            Self::Bool => Ty::Bool,
            Self::Ring => Ty::Ring,
            Self::Rings => Ty::Rings,
            Self::Topology => Ty::Topology,
            Self::Tree => Ty::Tree,
            Self::Trees => Ty::Trees,
            Self::Groups => Ty::Groups,
            Self::Ranks => Ty::List,
        }
    }
}
