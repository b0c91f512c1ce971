//! Expressions: the type of each, and the names in it resolved.

use super::hir::{Expr, ExprKind, GroupsField, Primitive, Signal, Ty};
use super::{Checker, Frontend, constructors, scope};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::{self, BinOp, UnOp};
use crate::syntax::{habits, printer};
use crate::topology::shape::ShapeKind;

impl Checker<'_> {
    /// An expression that must be of type `ty`.
    pub(super) fn expect(&mut self, expr: &ast::Expr, ty: Ty) -> Expr {
        let checked = self.expr(expr);
        if checked.ty != ty && checked.ty != Ty::Error && ty != Ty::Error {
            self.error(wrong(checked.span, ty.name(), checked.ty));
        }
        checked
    }

    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Expr {
        let span = expr.span;
        let (kind, ty) = match &*expr.kind {
            ast::ExprKind::Int(value) => (ExprKind::Int(*value), Ty::Int),
            ast::ExprKind::Bool(value) => (ExprKind::Bool(*value), Ty::Bool),
            ast::ExprKind::Name(name) => self.name(name, span),
            ast::ExprKind::List(items) => {
                let items = items.iter().map(|item| self.expect(item, Ty::Int)).collect();
                (ExprKind::List(items), Ty::List)
            }
            ast::ExprKind::Unary(op, operand) => self.unary(*op, operand),
            ast::ExprKind::Binary(op, left, right) => self.binary(*op, left, right),
            ast::ExprKind::If(condition, then, otherwise) => {
                let condition = self.expect(condition, Ty::Bool);
                let then = self.expr(then);
                let otherwise = self.expr(otherwise);
                if then.ty != otherwise.ty && then.ty != Ty::Error && otherwise.ty != Ty::Error {
                    self.error(
                        wrong(otherwise.span, then.ty.name(), otherwise.ty)
                            .other(then.span, format!("because this is {}", then.ty.name())),
                    );
                }
                let ty = then.ty;
                if matches!(ty, Ty::Place | Ty::Places | Ty::Step) {
                    self.error(
                        wrong(then.span, "a value", ty)
                            .help("choose the peer or the region by `if`, then put them together"),
                    );
                }
                (ExprKind::If(condition, then, otherwise), ty)
            }
            ast::ExprKind::Call(path, _) if constructors::makes_topology(path) => {
                return self.topology(expr);
            }
            ast::ExprKind::Call(path, args) => return self.call(path, args, span),
            ast::ExprKind::Method(base, name, args) => return self.method(base, name, args, span),
            ast::ExprKind::Field(base, name) => return self.field(base, name, span),
            ast::ExprKind::Index(base, index) => return self.index(base, index, span),
            ast::ExprKind::Slice(base, lo, hi) => {
                let base = self.expr(base);
                let (lo, hi) = (self.expect(lo, Ty::Int), self.expect(hi, Ty::Int));
                return self.cut(base, span, |pieces| ExprKind::Range(pieces, lo, hi));
            }
            ast::ExprKind::Without(..) => return self.topology(expr),
            ast::ExprKind::Quantity(..) => {
                self.error(
                    Diagnostic::new(Code::WrongType, span, "a number with a unit is not a value")
                        .label("describes a link")
                        .help("bandwidths and latencies stand in topologies: `full_mesh(8, 25GB/s, 2us)`"),
                );
                (ExprKind::Error, Ty::Error)
            }
            ast::ExprKind::Named(name, value) => {
                self.expr(value);
                self.error(
                    Diagnostic::new(
                        Code::WrongType,
                        name.span,
                        format!(
                            "`{}:` names an argument, and only algorithms take such",
                            name.text
                        ),
                    )
                    .help("steps and functions take their arguments in order"),
                );
                (ExprKind::Error, Ty::Error)
            }
            ast::ExprKind::Rust(text) => {
                self.escape(span);
                (ExprKind::Rust(text.clone()), Ty::Int)
            }
            ast::ExprKind::Error => (ExprKind::Error, Ty::Error),
        };
        Expr { kind: Box::new(kind), ty, span }
    }

    fn escape(&mut self, span: Span) {
        self.escapes = true;
        if self.frontend == Frontend::File {
            self.error(
                Diagnostic::new(Code::EscapeInFile, span, "`rust { }` outside the macro")
                    .label("nobody can compile this here")
                    .help("put the algorithm in a `collective! { … }` block, or write the value in the language"),
            );
        }
    }

    fn name(&mut self, name: &str, span: Span) -> (ExprKind, Ty) {
        let predefined = match name {
            "rank" => Some((ExprKind::Rank, Ty::Int)),
            "nranks" => return (ExprKind::Nranks, Ty::Int),
            "local" => Some((ExprKind::Local, Ty::Peer)),
            "input" => Some((ExprKind::Input, Ty::Region)),
            "output" => Some((ExprKind::Output, Ty::Region)),
            _ => None,
        };
        if let Some(found) = predefined {
            self.not_in_default(span, name);
            return found;
        }
        if let Some(var) = self.scope.find(name) {
            let ty = self.ty(var);
            if ty == Ty::Step {
                self.error(
                    Diagnostic::new(
                        Code::WrongType,
                        span,
                        format!("`{name}` is a step, not a value"),
                    )
                    .help(format!("call it: `{name}(…);`")),
                );
                return (ExprKind::Error, Ty::Error);
            }
            if ty == Ty::Topology && self.seen_from[var.0 as usize] < self.groups {
                self.error(
                    Diagnostic::new(
                        Code::WrongType,
                        span,
                        format!("`{name}` numbers other ranks than this block does"),
                    )
                    .label("inside `within`")
                    .help("ask it before the block, and use the answer inside"),
                );
                return (ExprKind::Error, Ty::Error);
            }
            if ty == Ty::Fifo {
                self.error(
                    Diagnostic::new(Code::WrongType, span, "the fifo is not a value")
                        .help("its slots are used by `send`, `recv` and their kin alone"),
                );
                return (ExprKind::Error, Ty::Error);
            }
            return (ExprKind::Var(var), ty);
        }
        if self.known.unread(name) {
            return (ExprKind::Error, Ty::Error);
        }
        let near = scope::nearest(name, self.scope.names().chain(scope::PREDEFINED));
        let help = match (ShapeKind::from_name(name), habits::instead(name)) {
            (Some(shape), _) => Some(format!("a topology has sizes: `{}`", shape.form())),
            (None, Some(instead)) => Some(instead.to_owned()),
            (None, None) => near.map(|near| format!("did you mean `{near}`?")),
        };
        let mut error =
            Diagnostic::new(Code::UnknownName, span, format!("nothing is called `{name}` here"))
                .label("not found");
        error.help = help;
        self.error(error);
        (ExprKind::Error, Ty::Error)
    }

    /// A default is computed once, for all ranks.
    pub(super) fn not_in_default(&mut self, span: Span, name: &str) {
        if self.in_default {
            self.error(
                Diagnostic::new(
                    Code::UnknownName,
                    span,
                    format!("`{name}` differs between ranks, and this must not"),
                )
                .help("defaults and attributes may use `nranks` and the parameters before them"),
            );
        }
    }

    fn unary(&mut self, op: UnOp, operand: &ast::Expr) -> (ExprKind, Ty) {
        let operand = match op {
            UnOp::Neg => self.expect(operand, Ty::Int),
            UnOp::Not => self.expr(operand),
        };
        if !matches!(operand.ty, Ty::Int | Ty::Bool | Ty::Error) {
            self.error(wrong(operand.span, "a bool or an int", operand.ty));
        }
        let ty = operand.ty;
        (ExprKind::Unary(op, operand), ty)
    }

    fn binary(&mut self, op: BinOp, left: &ast::Expr, right: &ast::Expr) -> (ExprKind, Ty) {
        let (operands, ty) = match op {
            BinOp::And | BinOp::Or => (Some(Ty::Bool), Ty::Bool),
            BinOp::Eq | BinOp::Ne => (None, Ty::Bool),
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => (Some(Ty::Int), Ty::Bool),
            _ => (Some(Ty::Int), Ty::Int),
        };
        let (left, right) = if let Some(ty) = operands {
            (self.expect(left, ty), self.expect(right, ty))
        } else {
            let left = self.expr(left);
            if !matches!(left.ty, Ty::Int | Ty::Bool | Ty::Peer | Ty::Error) {
                self.error(wrong(left.span, "an int, a bool or a peer", left.ty));
            }
            let right = self.expect(right, left.ty);
            (left, right)
        };
        if matches!(op, BinOp::Div | BinOp::Rem) && matches!(*right.kind, ExprKind::Int(0)) {
            self.error(
                Diagnostic::new(Code::ConstantOutOfRange, right.span, "a division by zero")
                    .label("always zero"),
            );
        }
        (ExprKind::Binary(op, left, right), ty)
    }

    fn method(
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
        let ranked = matches!(base.ty, Ty::Region | Ty::Place);
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
            ("split" | "block", _) if matches!(base.ty, Ty::Pieces | Ty::Places) => {
                self.error(
                    wrong(base.span, "a region", base.ty)
                        .help("choose a piece first, by `[i]` or `[i..j]`"),
                );
                error
            }
            ("index_of" | "position_of", [rank]) if base.ty == Ty::Groups => {
                self.has_a_name(&base);
                if !matches!(rank.ty, Ty::Int | Ty::Error) {
                    self.error(wrong(rank.span, "the number of a rank", rank.ty));
                }
                let index = name.text == "index_of";
                let field = if index { GroupsField::Index } else { GroupsField::Position };
                let kind = ExprKind::GroupsOf(field, base, rank.clone());
                Expr { kind: Box::new(kind), ty: Ty::Int, span }
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
                    Ty::Groups => &["index_of", "position_of"],
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

    /// A method that a peer does not have: it has the signals, and the primitives where there is a fifo.
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
        error.help = near.map(|near| format!("did you mean `{near}`?"));
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
        .label("not found");
        let region = ["input", "output"].contains(&&*name.text)
            || self.regions().any(|region| region == name.text);
        if base.ty == Ty::Int && region {
            error = error.help("a number has no memory: write `local` for this rank, or `peer(…)` around the number of another");
        } else if let Some(near) = scope::nearest(&name.text, known.iter().copied()) {
            error = error.help(format!("did you mean `{near}`?"));
        } else if !known.is_empty() {
            error = error.note(format!("it has `{}`", known.join("`, `")));
        }
        self.error(error);
    }

    fn field(&mut self, written: &ast::Expr, name: &ast::Name, span: Span) -> Expr {
        let base = self.expr(written);
        self.has_a_name(&base);
        let (kind, ty) = match constructors::field(&base, &name.text) {
            Some(field) => field,
            None if base.ty == Ty::Peer => return self.on_peer(base, written, name, span),
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

    /// `peer.region`
    fn on_peer(&mut self, peer: Expr, written: &ast::Expr, name: &ast::Name, span: Span) -> Expr {
        let region = match name.text.as_str() {
            "input" => Some((ExprKind::Input, Ty::Region)),
            "output" => Some((ExprKind::Output, Ty::Region)),
            text => self.scope.find(text).map(|var| (ExprKind::Var(var), self.ty(var))),
        };
        let ty = match region {
            Some((_, Ty::Region)) => Ty::Place,
            Some((_, Ty::Pieces)) => Ty::Places,
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
                let regions: Vec<&str> =
                    self.regions().chain(["input", "output", "rank"]).collect();
                let near = scope::nearest(&name.text, regions.iter().copied()).map(str::to_owned);
                let mut error = Diagnostic::new(
                    Code::UnknownMember,
                    name.span,
                    format!("no view or scratch is called `{}`", name.text),
                )
                .label("not found");
                if let Some(near) = near {
                    error = error.help(format!("did you mean `{near}`?"));
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

    /// A signal or a primitive without its parentheses, reported.
    fn bare_signal(&mut self, written: &ast::Expr, name: &ast::Name) -> bool {
        let signals = Signal::ALL.into_iter().map(Signal::name);
        let all = signals.chain(Primitive::ALL.into_iter().map(Primitive::name));
        let Some(meant) = scope::nearest(&name.text, all) else { return false };
        let regions: Vec<&str> = self.regions().collect();
        if scope::nearest(&name.text, regions).is_some() {
            return false;
        }
        let signal = Signal::ALL.into_iter().any(|signal| signal.name() == meant);
        let form = match Primitive::ALL.into_iter().find(|p| p.name() == meant) {
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
                .help(format!("write `{form};`")),
        );
        true
    }

    fn regions(&self) -> impl Iterator<Item = &str> {
        self.scope.names().filter(|name| {
            self.scope.find(name).is_some_and(|v| matches!(self.ty(v), Ty::Region | Ty::Pieces))
        })
    }

    fn index(&mut self, base: &ast::Expr, index: &ast::Expr, span: Span) -> Expr {
        let base = self.expr(base);
        self.has_a_name(&base);
        let index = self.expect(index, Ty::Int);
        if base.ty == Ty::List {
            return Expr { kind: Box::new(ExprKind::Element(base, index)), ty: Ty::Int, span };
        }
        if base.ty == Ty::Ring {
            return Expr { kind: Box::new(ExprKind::RingSeat(base, index)), ty: Ty::Peer, span };
        }
        if base.ty == Ty::Rings {
            return Expr { kind: Box::new(ExprKind::RingAt(base, index)), ty: Ty::Ring, span };
        }
        if base.ty == Ty::Groups {
            return Expr { kind: Box::new(ExprKind::GroupAt(base, index)), ty: Ty::List, span };
        }
        self.cut(base, span, |pieces| ExprKind::Piece(pieces, index))
    }

    /// One region out of pieces.
    fn cut(&mut self, base: Expr, span: Span, make: impl FnOnce(Expr) -> ExprKind) -> Expr {
        match base.ty {
            Ty::Pieces | Ty::Places => on_region(base, span, Ty::Region, make),
            Ty::Error => Expr { kind: Box::new(ExprKind::Error), ty: Ty::Error, span },
            other => {
                let mut error = wrong(base.span, "pieces", other);
                if matches!(other, Ty::Region | Ty::Place) {
                    error = error
                        .note("ranges select pieces, never raw elements")
                        .help("cut it first: `.split(n)[i]`");
                }
                self.error(error);
                Expr { kind: Box::new(ExprKind::Error), ty: Ty::Error, span }
            }
        }
    }
}

/// A value of another type than its place asks for.
pub(super) fn wrong(span: Span, wanted: &str, got: Ty) -> Diagnostic {
    Diagnostic::new(Code::WrongType, span, format!("expected {wanted}, found {}", got.name()))
        .label(format!("this is {}", got.name()))
}

/// Applies `make` to the region, whether or not a rank stands before it: the rank stays outermost.
fn on_region(base: Expr, span: Span, ty: Ty, make: impl FnOnce(Expr) -> ExprKind) -> Expr {
    match *base.kind {
        ExprKind::On(peer, region) => {
            let region = Expr { kind: Box::new(make(region)), ty, span };
            let ty = if ty == Ty::Pieces { Ty::Places } else { Ty::Place };
            Expr { kind: Box::new(ExprKind::On(peer, region)), ty, span }
        }
        _ => Expr { kind: Box::new(make(base)), ty, span },
    }
}

/// The primitive that a word of other libraries stands for.
fn elsewhere(word: &str) -> Option<String> {
    match word {
        "Send" | "isend" | "put" | "push" | "write" => Some("send".to_owned()),
        "Recv" | "irecv" | "get" | "pull" | "read" => Some("recv".to_owned()),
        "reduce" => Some("recv_reduce".to_owned()),
        _ => word.strip_prefix("receive").map(|rest| format!("recv{rest}")),
    }
}
