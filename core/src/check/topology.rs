//! Topologies in the language: their constructors, cuts and questions; and topologies outside of a source, as on the
//! command line, which have one grammar and one check with those of the language.

use std::str::FromStr;

use super::constructors::makes_topology;
use super::dependencies::{Dependencies, Known, Sources};
use super::hir::{Expr, ExprKind, ShapeArg, TopologyField, Ty};
use super::{Checker, Frontend, scope};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::Source;
use crate::syntax::ast::{self, UnOp};
use crate::syntax::token::Quantity;
use crate::topology::Topology;
use crate::values::arith;
use roundelay_topology::nccl::{NamedMachine, System};
use roundelay_topology::shape::{Argument, Shape, ShapeKind, Size};
use roundelay_topology::{GpuModel, Problem};

/// The advice for the model of GPUs.
const GPUS_FORM: &str =
    "write `gpus(sm=90)` for NVIDIA's of compute capability 9.0, `gpus(gfx942)` for AMD's";

/// The argument by which the switches of a topology fold and copy data on the way.
const REDUCING: &str = "reducing";

/// Whether a call of `path` stands for the GPUs of a topology.
pub(super) fn names_gpus(path: &[ast::Name]) -> bool {
    matches!(path, [name] if name.text == "gpus")
}

/// Reads the topology that `source` describes, such as `full_mesh(8, 25GB/s) without (0, 1)`.
pub fn read(source: &Source) -> Result<Topology, Vec<Diagnostic>> {
    let (shape, span) = read_shape(source)?;
    shape.build().map(Topology::from).map_err(|problem| vec![problem.into_diagnostic(span)])
}

/// Returns the machine that `source` describes, if it is one that has a name, as a topology file describes it.
pub fn machine(source: &Source) -> Option<System> {
    read_shape(source).ok()?.0.system()?.ok()
}

/// Reads the text of a topology, and returns its place too.
fn read_shape(source: &Source) -> Result<(Shape, Span), Vec<Diagnostic>> {
    let expr = crate::syntax::parse_value(source)?;
    let mut errors = Vec::new();
    let dependencies = Dependencies::none();
    let none = ast::File::default();
    let sources = Sources::new(&dependencies);
    let known = Known::new(&none, &sources, Vec::new(), &[], &mut errors);
    let mut checker = Checker::new(Frontend::File, &known, &mut errors);
    let checked = checker.expect(&expr, Ty::Topology);
    if !errors.is_empty() {
        let names: Vec<_> = ShapeKind::ALL.iter().map(|k| k.name()).collect();
        let known = format!("the constructors are {}", names.join(", "));
        for error in errors.iter_mut().filter(|e| e.code == Code::UnknownName && e.help.is_none()) {
            error.help = Some(known.clone());
        }
        return Err(errors);
    }
    match shape(&checked) {
        Some(shape) => shape
            .map(|shape| (shape, expr.span))
            .map_err(|problem| vec![problem.into_diagnostic(expr.span)]),
        None => {
            let title = "a topology that stands alone has no rank count to refer to";
            Err(vec![
                Diagnostic::new(Code::BadTopology, expr.span, title)
                    .help("write its sizes as numbers: `full_mesh(8)`"),
            ])
        }
    }
}

impl FromStr for Topology {
    type Err = Problem;

    /// Reads the text form, such as `full_mesh(8, 25GB/s) without (0, 1)`.
    fn from_str(text: &str) -> Result<Self, Problem> {
        read(&Source::from_text("<topology>", text)).map_err(|errors| {
            let first = errors.into_iter().next();
            first.map_or_else(
                || Problem::new(Code::BadTopology, "this is no topology"),
                |Diagnostic { code, title, notes, help, .. }| Problem { code, title, notes, help },
            )
        })
    }
}

impl Checker<'_> {
    /// Checks a constructor, with the links that are cut.
    pub(super) fn topology(&mut self, expr: &ast::Expr) -> Expr {
        let error = Expr { kind: Box::new(ExprKind::Error), ty: Ty::Error, span: expr.span };
        let mut cuts = Vec::new();
        let mut base = expr;
        while let ast::ExprKind::Without(inner, a, b) = &*base.kind {
            cuts.push((self.rank_of(a), self.rank_of(b)));
            base = inner;
        }
        cuts.reverse();
        let (kind, args) = match &*base.kind {
            ast::ExprKind::Call(path, args) if makes_topology(path) => {
                let Some(kind) = ShapeKind::from_name(&path[0].text) else { return error };
                (kind, args)
            }
            _ => {
                if self.expr(base).ty != Ty::Error {
                    let title = "`without` cuts a link of a topology that stands before it";
                    self.error(
                        Diagnostic::new(Code::WrongType, base.span, title)
                            .label("not a topology's constructor")
                            .help("write `full_mesh(nranks) without (0, 1)`"),
                    );
                }
                return error;
            }
        };
        let before = self.errors.len();
        let args = self.shape_args(kind, args);
        let kind = Box::new(ExprKind::Topology(kind, args, cuts));
        let checked = Expr { kind, ty: Ty::Topology, span: expr.span };
        if self.errors.len() > before {
            return error;
        }
        // An error that depends on no rank count is reported now.
        let built = shape(&checked).map(|shape| shape.and_then(|shape| shape.build()));
        if let Some(Err(problem)) = built {
            self.error(problem.into_diagnostic(expr.span));
            return error;
        }
        checked
    }

    /// Whether a call names the GPUs of a topology, apart from one.
    pub(super) fn is_apart(&self, path: &[ast::Name]) -> bool {
        names_gpus(path) && !self.known.names().contains(&path[0].text)
    }

    fn shape_args(&mut self, kind: ShapeKind, args: &[ast::Expr]) -> Vec<ShapeArg> {
        let mut found = Vec::new();
        for arg in args {
            let next = self.shape_arg(kind, arg);
            let is_last = |arg: &ShapeArg| matches!(arg, ShapeArg::Gpus(_) | ShapeArg::Reducing);
            let again = |next: &ShapeArg| {
                let same = |arg| std::mem::discriminant(arg) == std::mem::discriminant(next);
                !is_last(next) || found.iter().any(same)
            };
            if found.last().is_some_and(is_last) && next.as_ref().is_none_or(again) {
                let title = "`gpus` and `reducing` are the last arguments of a topology, and each stands once";
                let error = Diagnostic::new(Code::BadTopology, arg.span, title);
                self.error(error.label("stands behind them"));
                break;
            }
            found.extend(next);
        }
        found
    }

    fn shape_arg(&mut self, kind: ShapeKind, arg: &ast::Expr) -> Option<ShapeArg> {
        if let ast::ExprKind::Call(path, args) = &*arg.kind
            && names_gpus(path)
        {
            return self.gpus(args, arg.span).map(ShapeArg::Gpus);
        }
        if let ast::ExprKind::Name(name) = &*arg.kind
            && name == REDUCING
            && self.scope.find(name).is_none()
        {
            return Some(ShapeArg::Reducing);
        }
        if let ast::ExprKind::Named(name, _) = &*arg.kind {
            let title = "the arguments of a topology have no names";
            let error = Diagnostic::new(Code::BadTopology, name.span, title);
            let help = if name.text == "sm" {
                GPUS_FORM.to_owned()
            } else {
                format!("the form is `{}`", kind.form())
            };
            self.error(error.label("names an argument").help(help));
            return None;
        }
        let per = match &*arg.kind {
            ast::ExprKind::Quantity(amount, per) => Some((*amount, per.as_ref())),
            _ => None,
        };
        match per {
            None if let ast::ExprKind::Text(name) = &*arg.kind => {
                self.named_machine(kind, name, arg.span)
            }
            None if let Some(number) = self.a_second(arg) => {
                let written = match number {
                    n if n > 0 && n % (1 << 30) == 0 => format!("{}GB/s", n >> 30),
                    n if n > 0 && n % (1 << 20) == 0 => format!("{}MB/s", n >> 20),
                    n if n > 0 && n % (1 << 10) == 0 => format!("{}KB/s", n >> 10),
                    n => format!("{n}GB/s"),
                };
                let help = format!(
                    "write `{written}`: rates are in `KB/s`, `MB/s` or `GB/s`, powers of 1000; `GiB` is for sizes"
                );
                let title = "a bandwidth has a unit such as `GB/s`";
                self.error(
                    Diagnostic::new(Code::WrongType, arg.span, title)
                        .label("not a bandwidth")
                        .help(help),
                );
                None
            }
            None => {
                let size = self.expr(arg);
                if matches!(size.ty, Ty::Int | Ty::List) {
                    return Some(ShapeArg::Size(size));
                }
                if size.ty != Ty::Error {
                    let wrong =
                        super::exprs::wrong(size.span, "a size, a bandwidth or a latency", size.ty);
                    self.error(wrong.help(format!("the form is `{}`", kind.form())));
                }
                None
            }
            Some((Quantity::Bytes(rate), Some(per))) if per.text == "s" => {
                Some(ShapeArg::Rate(rate))
            }
            Some((Quantity::Time(time), None)) => Some(ShapeArg::Time(time)),
            Some((amount, _)) => {
                let title = match amount {
                    Quantity::Bytes(_) => "a bandwidth is so much a second",
                    Quantity::Time(_) => "a latency is a time, and nothing a second",
                };
                self.error(
                    Diagnostic::new(Code::WrongType, arg.span, title)
                        .help("write `25GB/s` for a bandwidth, `2us` for a latency"),
                );
                None
            }
        }
    }

    /// Returns the machine of that name.
    fn named_machine(&mut self, kind: ShapeKind, name: &str, span: Span) -> Option<ShapeArg> {
        if kind != ShapeKind::Machine {
            let title = format!("`{}` takes no text", kind.name());
            self.error(
                Diagnostic::new(Code::WrongType, span, title)
                    .label("names a machine")
                    .help(format!("the form is `{}`", kind.form())),
            );
            return None;
        }
        let known = NamedMachine::find(name);
        if known.is_none() {
            let title = format!("no machine is called \"{name}\"");
            let error = Diagnostic::new(Code::UnknownName, span, title).label("not found");
            let all = NamedMachine::ALL.iter().map(|machine| machine.name);
            self.error(match scope::nearest(name, all.clone()) {
                Some(near) => error.suggest(&format!("\"{near}\"")),
                None => {
                    error.help(format!("the machines are {}", all.collect::<Vec<_>>().join(", ")))
                }
            });
        }
        known.map(ShapeArg::Machine)
    }

    /// Checks `gpus(sm=90)` or `gpus(gfx942)`, which stands for the model of the ranks.
    fn gpus(&mut self, args: &[ast::Expr], span: Span) -> Option<GpuModel> {
        let constant = |value: &ast::Expr| match *value.kind {
            ast::ExprKind::Int(value) => Some(value),
            _ => None,
        };
        let (found, at, label) = match args {
            [one] => match &*one.kind {
                ast::ExprKind::Named(name, sm) if name.text == "sm" => {
                    let label = "no compute capability: it is a number such as 80, 90 or 100";
                    (constant(sm).and_then(GpuModel::cuda), sm.span, label)
                }
                ast::ExprKind::Named(name, _) => (None, name.span, "only `sm` is named here"),
                ast::ExprKind::Name(name) => {
                    (GpuModel::amd(name), one.span, "no model of AMD's, such as gfx90a or gfx942")
                }
                _ => (None, one.span, "no model of GPUs"),
            },
            _ => (None, span, "takes one model"),
        };
        if found.is_none() {
            let title = "`gpus` says the model of the GPUs that the ranks are";
            self.error(Diagnostic::new(Code::BadTopology, at, title).label(label).help(GPUS_FORM));
        }
        found
    }

    /// Returns the number of `1GiB/s` or `25/s`, which would be a division by an undeclared name.
    fn a_second(&self, arg: &ast::Expr) -> Option<i64> {
        let ast::ExprKind::Binary(ast::BinOp::Div, number, per) = &*arg.kind else { return None };
        match (&*number.kind, &*per.kind) {
            (ast::ExprKind::Int(number), ast::ExprKind::Name(per)) if per == "s" => {
                self.scope.find(per).is_none().then_some(*number)
            }
            _ => None,
        }
    }

    /// Checks a rank as a number or as a peer.
    pub(super) fn rank_of(&mut self, expr: &ast::Expr) -> Expr {
        let rank = self.expr(expr);
        self.as_rank(rank)
    }

    fn as_rank(&mut self, rank: Expr) -> Expr {
        match rank.ty {
            Ty::Int | Ty::Error => rank,
            Ty::Peer => {
                let span = rank.span;
                Expr { kind: Box::new(ExprKind::RankOf(rank)), ty: Ty::Int, span }
            }
            other => {
                self.error(super::exprs::wrong(rank.span, "a rank", other));
                rank
            }
        }
    }

    /// Checks `topology.linked(a, b)` and its kin.
    pub(super) fn of_topology(
        &mut self,
        topology: Expr,
        name: &ast::Name,
        args: Vec<Expr>,
        span: Span,
    ) -> Expr {
        let field = TopologyField::ALL.into_iter().find(|field| name.text == field.name());
        let takes = match name.text.as_str() {
            "linked" | "relays" => 2,
            "neighbors" => 1,
            _ if field.is_some() => 0,
            _ => {
                let mut known = vec!["linked", "neighbors", "relays"];
                known.extend(TopologyField::ALL.map(TopologyField::name));
                self.unknown_member("method", &topology, name, &known);
                return Expr { kind: Box::new(ExprKind::Error), ty: Ty::Error, span };
            }
        };
        self.has_a_name(&topology);
        let got = args.len();
        let mut ranks =
            args.into_iter().map(|arg| self.as_rank(arg)).collect::<Vec<_>>().into_iter();
        let ranks = (ranks.next(), ranks.next(), ranks.next());
        let (kind, ty) = match (field, name.text.as_str(), ranks) {
            (Some(field), _, (None, ..)) => (ExprKind::TopologyField(field, topology), Ty::List),
            (_, "linked", (Some(a), Some(b), None)) => (ExprKind::Linked(topology, a, b), Ty::Bool),
            (_, "relays", (Some(a), Some(b), None)) => (ExprKind::Relays(topology, a, b), Ty::List),
            (_, "neighbors", (Some(rank), None, _)) => {
                (ExprKind::Neighbors(topology, rank), Ty::List)
            }
            (_, text, _) => {
                let form = ["", "rank", "from, to"][takes];
                self.arity(name, takes, got, span, &format!("topology.{text}({form})"));
                (ExprKind::Error, Ty::Error)
            }
        };
        Expr { kind: Box::new(kind), ty, span }
    }
}

/// Returns the shape of a checked topology whose sizes are constants; `None` if they are not.
pub(super) fn shape(expr: &Expr) -> Option<Result<Shape, Problem>> {
    let ExprKind::Topology(kind, args, cuts) = &*expr.kind else { return None };
    let mut arguments = Vec::new();
    for arg in args {
        arguments.push(match arg {
            ShapeArg::Rate(rate) => Argument::Rate(*rate),
            ShapeArg::Time(time) => Argument::Time(*time),
            ShapeArg::Machine(machine) => Argument::Machine(machine),
            ShapeArg::Gpus(model) => Argument::Gpus(*model),
            ShapeArg::Reducing => Argument::Reducing,
            ShapeArg::Size(size) => Argument::Size(match &*size.kind {
                ExprKind::List(items) => {
                    Size::List(items.iter().map(constant).collect::<Option<_>>()?)
                }
                _ => Size::One(constant(size)?),
            }),
        });
    }
    let cut = |(a, b): &(Expr, Expr)| Some((constant(a)?, constant(b)?));
    let cuts = cuts.iter().map(cut).collect::<Option<Vec<_>>>()?;
    let shape = Shape::new(*kind, &arguments);
    Some(shape.map(|s| cuts.into_iter().fold(s, |s, (a, b)| s.without(a, b))))
}

/// Returns the number of ranks of a topology whose sizes are constants.
pub(super) fn ranks(expr: &Expr) -> Option<u32> {
    shape(expr)?.and_then(|shape| shape.build()).ok().map(|topology| topology.nranks())
}

/// Returns the value of an expression of constants.
pub(super) fn constant(expr: &Expr) -> Option<i64> {
    match &*expr.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::IntFn(function, args) => {
            let second = args.get(1).map_or(Some(0), constant)?;
            function.apply(constant(&args[0])?, second).ok()
        }
        ExprKind::Unary(UnOp::Neg, operand) => constant(operand)?.checked_neg(),
        ExprKind::Binary(op, left, right) if expr.ty == Ty::Int => {
            arith::arithmetic(*op, constant(left)?, constant(right)?).ok()
        }
        _ => None,
    }
}
