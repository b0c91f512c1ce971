//! The names after a dot: methods and fields of values, and regions of a peer.

use super::exprs::{on_region, wrong};
use super::hir::{Expr, ExprKind, GroupsField, Primitive, Signal, Ty};
use super::{Checker, constructors, scope};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::{ast, printer};

impl Checker<'_> {
    pub(super) fn method(
        &mut self,
        base: &ast::Expr,
        name: &ast::Name,
        args: &[ast::Expr],
        span: Span,
    ) -> Expr {
        let base = self.expr(base);
        let args: Vec<Expr> = args.iter().map(|arg| self.expr(arg)).collect();
        let error = Expr { kind: Box::new(ExprKind::Error), ty: Ty::Error, span };
        if base.ty == Ty::Error {
            return error;
        }
        let ranked = matches!(base.ty, Ty::Region | Ty::Place | Ty::OfAll);
        match (name.text.as_str(), &args[..]) {
            ("split" | "block", [arg]) if ranked => {
                let arg = arg.clone();
                let split = name.text == "split";
                if arg.ty != Ty::Int && arg.ty != Ty::Error && !(split && arg.ty == Ty::List) {
                    let wanted = if split { "an int or a list of weights" } else { "an int" };
                    self.error(wrong(arg.span, wanted, arg.ty));
                }
                if split && matches!(*arg.kind, ExprKind::Int(n) if n < 1) {
                    self.error(Diagnostic::new(
                        Code::ConstantOutOfRange,
                        arg.span,
                        "a region is split in at least 1 piece",
                    ));
                }
                let ty = if split { Ty::Pieces } else { Ty::Region };
                on_region(base, span, ty, |region| {
                    if split { ExprKind::Split(region, arg) } else { ExprKind::Block(region, arg) }
                })
            }
            ("split" | "block", _) if ranked => {
                self.error(
                    Diagnostic::new(
                        Code::WrongArity,
                        span,
                        format!("`{}` takes 1 argument, and got {}", name.text, args.len()),
                    )
                    .help("the forms are `.split(n)`, `.split([w0, w1])` and `.block(i)`"),
                );
                error
            }
            ("split" | "block", _)
                if matches!(base.ty, Ty::Pieces | Ty::Places | Ty::PiecesOfAll) =>
            {
                self.error(
                    wrong(base.span, "a region", base.ty)
                        .help("choose a piece first, by `[i]` or `[i..j]`"),
                );
                error
            }
            ("index_of" | "position_of" | "weights_of", [number])
                if asked_by_number(base.ty).contains(&&*name.text) =>
            {
                self.has_a_name(&base);
                let of = (base.ty, &*name.text);
                if !matches!(number.ty, Ty::Int | Ty::Error) {
                    let a_tree = of == (Ty::Trees, "position_of");
                    let what = if a_tree { "the number of a tree" } else { "the number of a rank" };
                    self.error(wrong(number.span, what, number.ty));
                }
                let rank = number.clone();
                let ty = if name.text == "weights_of" { Ty::List } else { Ty::Int };
                let kind = match of {
                    (Ty::Ring, _) => ExprKind::RingPositionOf(base, rank),
                    (_, "weights_of") => ExprKind::TreesWeightsOf(base, rank),
                    (Ty::Trees, _) => ExprKind::TreesPositionOf(base, rank),
                    (_, "index_of") => ExprKind::GroupsOf(GroupsField::Index, base, rank),
                    _ => ExprKind::GroupsOf(GroupsField::Position, base, rank),
                };
                Expr { kind: Box::new(kind), ty, span }
            }
            _ if base.ty == Ty::Topology => self.of_topology(base, name, args, span),
            ("TxAck" | "RxAck" | "TxDataSignal" | "RxDataSignal", _) => {
                self.error(Diagnostic::new(
                    Code::WrongType,
                    span,
                    format!("`{}` is a statement, not a value", name.text),
                ));
                error
            }
            _ => {
                let known: &[&str] = match base.ty {
                    Ty::Region | Ty::Place => &["split", "block"],
                    ty @ (Ty::Ring | Ty::Trees | Ty::Groups) => asked_by_number(ty),
                    Ty::Peer => {
                        self.unknown_of_peer(&base, name);
                        return error;
                    }
                    _ => &[],
                };
                self.unknown_member("method", &base, name, known);
                error
            }
        }
    }

    /// Reports a method that a peer does not have: it has the signals, and the primitives where there is a fifo.
    fn unknown_of_peer(&mut self, peer: &Expr, name: &ast::Name) {
        let signals = Signal::ALL.map(Signal::name);
        let primitives = Primitive::ALL.map(Primitive::name);
        if !self.has_fifo() {
            return self.unknown_member("method", peer, name, &signals);
        }
        let near = elsewhere(&name.text).filter(|near| primitives.contains(&&**near));
        if near.is_none() && scope::nearest(&name.text, primitives).is_some() {
            return self.unknown_member("method", peer, name, &primitives);
        }
        self.unknown_member("method", peer, name, &signals);
        let Some(error) = self.errors.last_mut().filter(|error| error.help.is_none()) else {
            return;
        };
        error.notes.push(
            "through the fifo it has `send`, `recv`, `recv_reduce`, and longer ones to `recv_reduce_copy_send`"
                .to_owned(),
        );
        if let Some(near) = near {
            *error = error.clone().suggest(&near);
        }
    }

    pub(super) fn unknown_member(
        &mut self,
        what: &str,
        base: &Expr,
        name: &ast::Name,
        known: &[&str],
    ) {
        let mut error = Diagnostic::new(
            Code::UnknownMember,
            name.span,
            format!("{} has no {what} `{}`", base.ty.name(), name.text),
        )
        .caused_by(format!("{} {}", base.ty.name(), name.text))
        .label("not found");
        let region = ["input", "output"].contains(&&*name.text)
            || self.regions().any(|region| region == name.text);
        if base.ty == Ty::Int && region {
            error = error.help("a number has no memory: write `local` for this rank, or `peer(…)` around the number of another");
            if let ExprKind::Var(var) = *base.kind {
                error = error.caused_by(format!("{} as a peer", self.vars[var.0 as usize].name));
            }
        } else if let Some(near) = scope::nearest(&name.text, known.iter().copied()) {
            error = error.suggest(near);
        } else if !known.is_empty() {
            error = error.note(format!("it has `{}`", known.join("`, `")));
        }
        self.error(error);
    }

    pub(super) fn field(&mut self, written: &ast::Expr, name: &ast::Name, span: Span) -> Expr {
        let base = self.expr(written);
        self.has_a_name(&base);
        let (kind, ty) = match constructors::field(&base, &name.text) {
            Some(field) => field,
            None if matches!(base.ty, Ty::Peer | Ty::All) => {
                return self.on_peer(base, written, name, span);
            }
            None => {
                if base.ty != Ty::Error {
                    self.unknown_member("field", &base, name, constructors::fields(base.ty));
                }
                (ExprKind::Error, Ty::Error)
            }
        };
        if self.in_default && ty != Ty::Error && !constructors::is_uniform(&kind) {
            self.not_in_default(span, &name.text);
        }
        Expr { kind: Box::new(kind), ty, span }
    }

    /// Checks `peer.region`.
    fn on_peer(&mut self, peer: Expr, written: &ast::Expr, name: &ast::Name, span: Span) -> Expr {
        self.uses.extend(self.scope.find(&name.text).map(|var| (name.span, var)));
        let region = match name.text.as_str() {
            "input" => Some((ExprKind::Input, Ty::Region)),
            "output" => Some((ExprKind::Output, Ty::Region)),
            text => self.scope.find(text).map(|var| (ExprKind::Var(var), self.ty(var))),
        };
        let ty = match region {
            Some((_, ty @ (Ty::Region | Ty::Pieces))) => ty.place_of(peer.ty),
            Some((_, Ty::Error)) => Ty::Error,
            None if self.known.unread(&name.text) => Ty::Error,
            None if self.bare_signal(written, name) => Ty::Error,
            Some((_, other)) => {
                self.error(
                    Diagnostic::new(
                        Code::WrongType,
                        name.span,
                        format!("`{}` is {}, not a region", name.text, other.name()),
                    )
                    .label("not a region")
                    .help("a peer has `input`, `output`, your views and your scratch"),
                );
                Ty::Error
            }
            None => {
                // Only one rank has a number.
                let number = (peer.ty == Ty::Peer).then_some("rank");
                let regions: Vec<&str> =
                    self.regions().chain(["input", "output"]).chain(number).collect();
                let near = scope::nearest(&name.text, regions.iter().copied()).map(str::to_owned);
                let mut error = Diagnostic::new(
                    Code::UnknownMember,
                    name.span,
                    format!("no view or scratch is called `{}`", name.text),
                )
                .caused_by(&*name.text)
                .label("not found");
                if let Some(near) = near {
                    error = error.suggest(&near);
                }
                self.error(error);
                Ty::Error
            }
        };
        let kind = match region {
            Some((region, of)) if ty != Ty::Error => {
                let region = Expr { kind: Box::new(region), ty: of, span: name.span };
                ExprKind::On(peer, region)
            }
            _ => ExprKind::Error,
        };
        Expr { kind: Box::new(kind), ty, span }
    }

    /// Reports a signal or a primitive without its parentheses; returns whether it was one.
    fn bare_signal(&mut self, written: &ast::Expr, name: &ast::Name) -> bool {
        let signals = Signal::ALL.into_iter().map(Signal::name);
        let all = signals.chain(Primitive::ALL.into_iter().map(Primitive::name));
        let Some(meant) = scope::nearest(&name.text, all) else { return false };
        let regions: Vec<&str> = self.regions().collect();
        if scope::nearest(&name.text, regions).is_some() {
            return false;
        }
        let signal = Signal::from_name(meant).is_some();
        let form = match Primitive::from_name(meant) {
            Some(primitive) => primitive.form().to_owned(),
            None => format!("{}.{meant}()", printer::print_expr(written)),
        };
        let what = if signal { "a signal" } else { "a primitive" };
        let title = if meant == name.text {
            format!("`{meant}` is {what}, and stands with its parentheses")
        } else {
            format!("no view, scratch or signal is called `{}`", name.text)
        };
        self.error(
            Diagnostic::new(Code::UnknownMember, name.span, title)
                .label(if meant == name.text { "not called" } else { "not found" })
                .help(format!("write `{form};`"))
                .edit(name.span, if signal { format!("{meant}()") } else { form }),
        );
        true
    }

    fn regions(&self) -> impl Iterator<Item = &str> {
        self.scope.names().filter(|name| {
            self.scope.find(name).is_some_and(|v| matches!(self.ty(v), Ty::Region | Ty::Pieces))
        })
    }
}

/// Returns the fields and methods of a type, for an editor that completes them.
pub(super) fn of_type(ty: Ty) -> Vec<&'static str> {
    let methods: Vec<&str> = match ty {
        Ty::Region | Ty::Place => vec!["split", "block"],
        Ty::Peer => {
            let own = ["rank", "input", "output"].into_iter();
            own.chain(Signal::ALL.map(Signal::name))
                .chain(Primitive::ALL.map(Primitive::name))
                .collect()
        }
        Ty::All => ["input", "output"].into_iter().chain(Signal::ALL.map(Signal::name)).collect(),
        Ty::Topology => vec!["linked", "neighbors", "relays"],
        _ => asked_by_number(ty).to_vec(),
    };
    constructors::fields(ty).iter().copied().chain(methods).collect()
}

/// Returns the methods of a ring, of trees or of groups that take the number of a rank or of a tree.
fn asked_by_number(ty: Ty) -> &'static [&'static str] {
    match ty {
        Ty::Ring => &["position_of"],
        Ty::Trees => &["weights_of", "position_of"],
        Ty::Groups => &["index_of", "position_of"],
        _ => &[],
    }
}

/// Returns the primitive that a word of other libraries stands for.
pub(super) fn elsewhere(word: &str) -> Option<String> {
    match word {
        "Send" | "isend" | "Isend" | "put" | "push" | "write" => Some("send".to_owned()),
        "Recv" | "irecv" | "Irecv" | "get" | "pull" | "read" => Some("recv".to_owned()),
        "reduce" => Some("recv_reduce".to_owned()),
        _ => word.strip_prefix("receive").map(|rest| format!("recv{rest}")),
    }
}
