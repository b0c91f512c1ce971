//! Expressions: the type of each expression, and the names in it resolved.

use super::declaration::{Escape, EscapeName};
use super::hir::{Expr, ExprKind, Ty};
use super::scope::{ALL, COUNT};
use super::{Checker, Frontend, constructors, scope};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::{self, BinOp, UnOp};
use crate::syntax::{printer, suggestions};
use roundelay_topology::shape::ShapeKind;

impl Checker<'_> {
    /// Checks an expression that must be of type `ty`.
    pub(super) fn expect(&mut self, expr: &ast::Expr, ty: Ty) -> Expr {
        let checked = self.expr(expr);
        if checked.ty != ty && checked.ty != Ty::Error && ty != Ty::Error {
            let mut error = wrong(checked.span, ty.name(), checked.ty);
            error.help = match (checked.ty, ty) {
                (Ty::Peer, Ty::Int) => number(expr).map(|of| format!("its number is `{of}`")),
                (Ty::Int, Ty::Peer) => {
                    Some(format!("the peer of that number is `{}`", with_number(expr)))
                }
                (Ty::Place | Ty::OfAll, Ty::Region) => {
                    Some("leave out the rank: a region is the same on every rank".to_owned())
                }
                _ => None,
            };
            self.error(error);
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
                if ty.has_rank() || matches!(ty, Ty::All | Ty::Step) {
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
            ast::ExprKind::Call(path, _) if self.is_apart(path) => {
                self.unknown_function(&path[0]);
                (ExprKind::Error, Ty::Error)
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
            ast::ExprKind::Text(_) => {
                self.error(
                    Diagnostic::new(Code::WrongType, span, "a text is not a value")
                        .label("names a machine")
                        .help("names of machines stand in topologies: `machine(\"dgx-h100\", 2)`"),
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
            ast::ExprKind::Rust(text) => (self.escape(text, span), Ty::Int),
            ast::ExprKind::Error => (ExprKind::Error, Ty::Error),
        };
        Expr { kind: Box::new(kind), ty, span }
    }

    fn escape(&mut self, text: &str, span: Span) -> ExprKind {
        self.escapes = true;
        if self.frontend == Frontend::File {
            self.error(
                Diagnostic::new(Code::EscapeInFile, span, "`rust { }` outside the macro")
                    .label("nobody can compile this here")
                    .help("put the algorithm in a `collective! { … }` block, or write the value in the language"),
            );
        }
        let (mut scope, mut values) = (Vec::<EscapeName>::new(), Vec::new());
        // Any word may name a value, even inside a string that is formatted.
        for word in text.split(|c: char| c != '_' && !c.is_alphanumeric()) {
            if scope.iter().any(|known| known.name == word) {
                continue;
            }
            let Some(value) = self.seen_by_escape(word, span) else { continue };
            let declared = match &*value.kind {
                ExprKind::Var(var) => Some(self.vars[var.index()].span),
                _ => None,
            };
            let method = match value.ty {
                Ty::Bool => "flag",
                Ty::Peer => "peer",
                Ty::List => "list",
                _ => "int",
            };
            scope.push(EscapeName { name: word.to_owned(), declared, method });
            values.push(value);
        }
        self.own_escapes.push(Escape { span, text: text.to_owned(), scope });
        ExprKind::Rust(self.own_escapes.len() as u32 - 1, values)
    }

    /// Returns the value of a name in an escape: a number, a truth value, a peer or a list.
    fn seen_by_escape(&self, name: &str, span: Span) -> Option<Expr> {
        let (kind, ty) = match name {
            "rank" => (ExprKind::Rank, Ty::Int),
            "nranks" => (ExprKind::Nranks, Ty::Int),
            "local" => (ExprKind::Local, Ty::Peer),
            _ => {
                let var = self.scope.find(name)?;
                (ExprKind::Var(var), self.ty(var))
            }
        };
        let seen = matches!(ty, Ty::Int | Ty::Bool | Ty::Peer | Ty::List);
        seen.then(|| Expr { kind: Box::new(kind), ty, span })
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
            self.uses.push((span, var));
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
        if name == ALL {
            self.not_in_default(span, name);
            return (ExprKind::All, Ty::All);
        }
        if self.known.unread(name) {
            return (ExprKind::Error, Ty::Error);
        }
        let near = scope::nearest(name, self.scope.names().chain(scope::PREDEFINED));
        let help = match (ShapeKind::from_name(name), suggestions::instead(name)) {
            _ if name == COUNT => Some(
                "the count of a call is known to `require count % OF == 0, \"why\";` alone"
                    .to_owned(),
            ),
            (Some(shape), _) => Some(format!("a topology has sizes: `{}`", shape.form())),
            (None, Some(instead)) => Some(instead.to_owned()),
            (None, None) => None,
        };
        let error =
            Diagnostic::new(Code::UnknownName, span, format!("nothing is called `{name}` here"))
                .caused_by(name)
                .label("not found");
        let error = match (help, near, suggestions::counterpart(name)) {
            (Some(help), _, Some(word)) => error.help(help).edit(span, word),
            (Some(help), _, None) => error.help(help),
            (None, Some(near), _) => error.suggest(near),
            (None, None, _) => error,
        };
        self.error(error);
        (ExprKind::Error, Ty::Error)
    }

    /// Reports a value that differs by rank in a default, which is computed once for all ranks.
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
            self.alike(op, left, right)
        };
        if matches!(op, BinOp::Div | BinOp::Rem) && matches!(*right.kind, ExprKind::Int(0)) {
            self.error(
                Diagnostic::new(Code::ConstantOutOfRange, right.span, "a division by zero")
                    .label("always zero"),
            );
        }
        (ExprKind::Binary(op, left, right), ty)
    }

    /// Checks the two sides of `==` or `!=`.
    fn alike(&mut self, op: BinOp, left: &ast::Expr, right: &ast::Expr) -> (Expr, Expr) {
        let (one, other) = (self.expr(left), self.expr(right));
        if !matches!(one.ty, Ty::Int | Ty::Bool | Ty::Peer | Ty::Error) {
            self.error(wrong(one.span, "an int, a bool or a peer", one.ty));
        } else if one.ty != other.ty && one.ty != Ty::Error && other.ty != Ty::Error {
            let (written, op) = ([left, right].map(operand), op.text());
            let (numbers, peers) = match (one.ty, other.ty) {
                (Ty::Peer, Ty::Int) => (
                    number(left).map(|left| format!("{left} {op} {}", written[1])),
                    Some(format!("{} {op} {}", written[0], with_number(right))),
                ),
                (Ty::Int, Ty::Peer) => (
                    number(right).map(|right| format!("{} {op} {right}", written[0])),
                    Some(format!("{} {op} {}", with_number(left), written[1])),
                ),
                _ => (None, None),
            };
            let mut error = wrong(other.span, one.ty.name(), other.ty)
                .other(one.span, format!("this is {}", one.ty.name()));
            error.help = peers.map(|peers| match numbers {
                Some(numbers) => format!("compare numbers: `{numbers}`, or peers: `{peers}`"),
                None => format!("compare peers: `{peers}`"),
            });
            self.error(error);
        }
        (one, other)
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
        if base.ty == Ty::Trees {
            return Expr { kind: Box::new(ExprKind::TreeAt(base, index)), ty: Ty::Tree, span };
        }
        if base.ty == Ty::Groups {
            return Expr { kind: Box::new(ExprKind::GroupAt(base, index)), ty: Ty::List, span };
        }
        self.cut(base, span, |pieces| ExprKind::Piece(pieces, index))
    }

    /// Returns one region of pieces.
    fn cut(&mut self, base: Expr, span: Span, make: impl FnOnce(Expr) -> ExprKind) -> Expr {
        match base.ty {
            Ty::Pieces | Ty::Places | Ty::PiecesOfAll => on_region(base, span, Ty::Region, make),
            Ty::Error => Expr { kind: Box::new(ExprKind::Error), ty: Ty::Error, span },
            other => {
                let mut error = wrong(base.span, "pieces", other);
                if matches!(other, Ty::Region | Ty::Place | Ty::OfAll) {
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

/// Returns an operand as it is written.
fn operand(expr: &ast::Expr) -> String {
    let text = printer::print_expr(expr);
    if matches!(*expr.kind, ast::ExprKind::If(..)) { format!("({text})") } else { text }
}

/// Returns the text of a peer's number, such as `p.rank`; `None` where `.rank` cannot follow the peer.
fn number(peer: &ast::Expr) -> Option<String> {
    use ast::ExprKind::{Call, Field, Index, Method, Name};
    let atom = matches!(*peer.kind, Name(_) | Call(..) | Field(..) | Index(..) | Method(..));
    atom.then(|| format!("{}.rank", printer::print_expr(peer)))
}

/// Returns the text of the peer with this number.
fn with_number(number: &ast::Expr) -> String {
    format!("peer({})", printer::print_expr(number))
}

/// Returns the error of a value of another type than its place needs.
pub(super) fn wrong(span: Span, wanted: &str, got: Ty) -> Diagnostic {
    Diagnostic::new(Code::WrongType, span, format!("expected {wanted}, found {}", got.name()))
        .label(format!("this is {}", got.name()))
}

/// Applies `make` to the region, whether or not a rank stands before it: the rank stays outermost.
pub(super) fn on_region(
    base: Expr,
    span: Span,
    ty: Ty,
    make: impl FnOnce(Expr) -> ExprKind,
) -> Expr {
    match *base.kind {
        ExprKind::On(peer, region) => {
            let region = Expr { kind: Box::new(make(region)), ty, span };
            let ty = ty.place_of(peer.ty);
            Expr { kind: Box::new(ExprKind::On(peer, region)), ty, span }
        }
        _ => Expr { kind: Box::new(make(base)), ty, span },
    }
}
