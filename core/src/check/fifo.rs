//! The fifo and NCCL's primitives, which pass data through it.

use super::Checker;
use super::exprs::wrong;
use super::hir::{Expr, ExprKind, Primitive, StmtKind, Ty};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast;

/// The name of the fifo in messages and among the scratch buffers.
const NAME: &str = "fifo";

/// The help for a rank that would send to itself.
const WITHIN: &str = "within a rank data is moved by `copy` and `reduce`";

impl Checker<'_> {
    pub(super) fn fifo(
        &mut self,
        like: &ast::Expr,
        options: &[(ast::Name, ast::Expr)],
        stmt: &ast::Stmt,
    ) -> StmtKind {
        self.at_the_top("a fifo", "fifo", stmt);
        let like = self.expr(like);
        if !matches!(like.ty, Ty::Region | Ty::Pieces | Ty::Error) {
            self.error(
                wrong(like.span, "a region or pieces of one", like.ty)
                    .help("`fifo like block, credits = 4;`: a slot holds the widest piece"),
            );
        }
        let (mut credits, mut slices) = (None, None);
        for (name, value) in options {
            let value = self.count(name, value);
            let option = match name.text.as_str() {
                "credits" => &mut credits,
                "slices" => &mut slices,
                other => {
                    self.error(
                        Diagnostic::new(
                            Code::UnknownMember,
                            name.span,
                            format!("a fifo has no option `{other}`"),
                        )
                        .label("not an option")
                        .help("its options are `credits`, the slots of a link, and `slices`"),
                    );
                    continue;
                }
            };
            if option.replace(value).is_some() {
                self.error(
                    Diagnostic::new(
                        Code::AlreadyDeclared,
                        name.span,
                        format!("`{}` is given twice", name.text),
                    )
                    .label("again")
                    .help("keep one of them"),
                );
            }
        }
        let word = Span { hi: stmt.span.lo + 1, ..stmt.span };
        if let Some(first) = self.scope.find(NAME).filter(|var| self.ty(*var) == Ty::Fifo) {
            let first = self.vars[first.0 as usize].span;
            self.error(
                Diagnostic::new(Code::AlreadyDeclared, word, "a second fifo")
                    .label("declared again")
                    .other(first, "the first one")
                    .note(
                        "every two ranks have one link in each lane, and its slots are of one size",
                    )
                    .help("keep one, `like` the largest region that is sent at once"),
            );
            return StmtKind::Fifo { like, credits, slices };
        }
        // The name is declared like a scratch buffer, so that no scratch has it.
        self.declare(&ast::Name { text: NAME.to_owned(), span: word }, Ty::Fifo);
        StmtKind::Fifo { like, credits, slices }
    }

    /// Whether a fifo is declared.
    pub(super) fn has_fifo(&self) -> bool {
        self.scope.find(NAME).is_some_and(|var| self.ty(var) == Ty::Fifo)
    }

    fn count(&mut self, name: &ast::Name, value: &ast::Expr) -> Expr {
        let value = self.expect(value, Ty::Int);
        if let ExprKind::Int(..=0) = *value.kind {
            self.error(
                Diagnostic::new(
                    Code::ConstantOutOfRange,
                    value.span,
                    format!("a fifo has at least 1 of its `{}`", name.text),
                )
                .label("nothing could pass"),
            );
        }
        value
    }

    pub(super) fn primitive(
        &mut self,
        primitive: Primitive,
        base: &ast::Expr,
        name: &ast::Name,
        args: &[ast::Expr],
        span: Span,
    ) -> Option<StmtKind> {
        if !self.has_fifo() {
            self.error(
                Diagnostic::new(
                    Code::UnknownName,
                    name.span,
                    format!("`{}` passes data through a fifo, and none is declared", name.text),
                )
                .caused_by(NAME)
                .label("through which fifo?")
                .help(
                    "declare `fifo like REGION, credits = 4;` at the top of the algorithm, where \
                     REGION is the largest that is sent at once",
                )
                .note(
                    "without a fifo data goes by `copy(left.output, local.output);` or \
                     `copy(local.output, right.output);`, with signals before and after it",
                ),
            );
        }
        let one_or_several: &[Ty] = &[Ty::Peer, Ty::List];
        let takes = if primitive.copies() { &[Ty::Peer] } else { one_or_several };
        let peer = self.partner((primitive.name(), takes), base, name.span, WITHIN);
        let regions = usize::from(primitive.reads()) + usize::from(primitive.writes());
        let arity = regions + usize::from(primitive.forwards());
        if args.len() != arity {
            self.arity(name, arity, args.len(), span, primitive.form());
            for arg in args {
                self.expr(arg);
            }
            return None;
        }
        let (places, onward) = args.split_at(regions);
        let places: Vec<Expr> = places.iter().map(|place| self.place(place)).collect();
        if primitive.writes() {
            self.writable(&places[regions - 1..]);
        }
        let onward = onward
            .first()
            .map(|to| self.partner((primitive.name(), one_or_several), to, to.span, WITHIN));
        Some(StmtKind::Primitive { primitive, peer, places, onward })
    }
}
