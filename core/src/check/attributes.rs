//! Attributes of algorithms: the proofs at expansion and in tests, and the demands on a schedule. The demands become
//! statements at the head of the body, so that they have values and a place.

use std::collections::BTreeSet;

use super::declaration::Verify;
use super::hir::{Demand, Expr, Stmt, StmtKind, Ty};
use super::{Checker, scope, topology};
use crate::diagnostics::{Code, Diagnostic};
use crate::ids::SpanId;
use crate::lints::{Level, Levels, Lint, Unknown};
use crate::source::Span;
use crate::syntax::ast::{self, Attr, AttrArg, AttrValue};
use crate::values::order_class::OrderClass;
use crate::values::resource::Resource;

/// The attributes of algorithms, each with its meaning in one line.
pub const ATTRIBUTES: [(&str, &str); 10] = [
    ("out_of_place", "`#[out_of_place]`: the algorithm has no in-place form"),
    (
        "verify",
        "`#[verify(nranks = 2..=8)]`: the rank counts that are proved when Rust compiles it",
    ),
    ("deterministic", "`#[deterministic]`: reductions have one order on every rank"),
    (
        "order",
        "`#[order(all_ranks, all_counts)]`: promises about the order in which contributions are reduced",
    ),
    ("roundings", "`#[roundings(at_most = 1)]`: the most roundings of a result in a narrow type"),
    ("uneven", "`#[uneven]`: the algorithm serves a count for each rank"),
    ("topology", "`#[topology(full_mesh(8))]`: data and signals use only links of the topology"),
    ("budget", "`#[budget(streams = 2, scratch = 1)]`: the most of each resource that it may use"),
    ("allow", "`#[allow(W0002)]`: a warning is not given"),
    ("deny", "`#[deny(warnings)]`: a warning is an error"),
];

/// The most ranks that `#[verify]` may name; the expansion proves as many counts as its budget of steps allows.
const MOST_RANKS: i64 = 1 << 16;

const VERIFY: &str = "write `#[verify(nranks = 2..=8)]`, `#[verify(nranks = [2, 4, 8])]` or \
                      `#[verify(off, reason = \"…\")]`";
const ORDER: &str =
    "write `#[order(all_ranks, all_elements, all_counts, rank_order, every_run)]`, any of them";
const ROUNDINGS: &str = "write `#[roundings(at_most = 1)]`";
const BUDGET: &str = "write `#[budget(streams = 2, notifies = 2, scratch = 1, ports = 1, \
                      fifo = 4)]`, any of them";

/// The values of an algorithm's attributes.
#[derive(Default)]
pub(super) struct Attributes {
    pub(super) out_of_place: bool,
    pub(super) verify: Option<Verify>,
    pub(super) demands: Vec<Stmt>,
    /// The topology of the existing links, which a parameter of that type takes too.
    pub(super) topology: Option<Expr>,
    /// The levels of warnings.
    pub(super) levels: Levels,
}

impl Checker<'_> {
    /// Checks all attributes; the parameters are declared, so a budget may name them.
    pub(super) fn attributes(&mut self, attrs: &[Attr]) -> Attributes {
        let mut all = Attributes::default();
        for (i, attr) in attrs.iter().enumerate() {
            let name = attr.name.text.as_str();
            if let Some(first) = attrs[..i].iter().find(|a| a.name.text == name) {
                self.error(twice(&format!("`#[{name}]`"), attr.name.span, first.name.span));
                continue;
            }
            match name {
                "out_of_place" => {
                    self.bare(attr);
                    all.out_of_place = true;
                }
                "deterministic" => {
                    self.bare(attr);
                    self.demand(&mut all, attr.span, Demand::Order(OrderClass::AllRanks));
                }
                "uneven" => {
                    self.bare(attr);
                    self.demand(&mut all, attr.span, Demand::Uneven);
                }
                "order" => self.order(attr, &mut all),
                "roundings" => self.roundings(attr, &mut all),
                "verify" => all.verify = self.verify(attr),
                // `topology` is read before the parameters.
                "topology" => {}
                "budget" => self.budget(attr, &mut all),
                "allow" => self.level(attr, Level::Allow, &mut all.levels),
                "deny" => self.level(attr, Level::Deny, &mut all.levels),
                _ => self.unknown_attribute(&attr.name),
            }
        }
        all
    }

    /// Checks `#[topology(…)]`, whose expression knows no parameters: they may take it as their default.
    pub(super) fn on_topology(&mut self, attrs: &[Attr]) -> Option<(Expr, Span)> {
        let attr = attrs.iter().find(|a| a.name.text == "topology")?;
        match &attr.args[..] {
            [AttrArg { name: None, value: AttrValue::Expr(expr), .. }] => {
                Some((self.constant_on_all(expr, Ty::Topology), attr.span))
            }
            _ => {
                self.bad(attr.span, "`#[topology]` takes one topology", TOPOLOGY);
                None
            }
        }
    }

    pub(super) fn demand(&mut self, all: &mut Attributes, span: Span, demand: Demand) {
        let at = SpanId(self.spans.len() as u32);
        self.spans.push(span);
        all.demands.push(Stmt { at, kind: StmtKind::Demand(demand) });
    }

    /// Checks an expression that has one value for all ranks.
    fn constant_on_all(&mut self, expr: &ast::Expr, ty: Ty) -> Expr {
        self.in_default = true;
        let checked = self.expect(expr, ty);
        self.in_default = false;
        checked
    }

    fn verify(&mut self, attr: &Attr) -> Option<Verify> {
        let (mut off, mut reason, mut counts) = (None, None, None);
        for arg in &attr.args {
            let name = arg.name.as_ref().map(|n| n.text.as_str());
            let before = match (name, &arg.value) {
                (None, AttrValue::Expr(e)) if matches!(&*e.kind, ast::ExprKind::Name(n) if n == "off") => {
                    off.replace(arg.span)
                }
                (Some("reason"), AttrValue::Text(text)) => {
                    reason.replace((arg.span, text.clone())).map(|(span, _)| span)
                }
                (Some("nranks"), value) => {
                    let (list, named) = self.rank_counts(value, arg.span)?;
                    counts.replace((arg.span, list, named)).map(|(span, ..)| span)
                }
                _ => {
                    self.bad(arg.span, "`#[verify]` does not take this", VERIFY);
                    return None;
                }
            };
            if let Some(before) = before {
                self.error(twice("this", arg.span, before));
            }
        }
        match (off, reason, counts) {
            (Some(_), Some((_, text)), None) if !text.trim().is_empty() => {
                Some(Verify::Off { reason: text })
            }
            (None, None, Some((span, counts, named))) => {
                Some(Verify::Counts { counts, named, span })
            }
            (Some(off), _, Some((counts, ..))) => {
                let title = "`#[verify]` is switched off and asked for rank counts";
                self.error(
                    Diagnostic::new(Code::AttributeConflict, counts, title)
                        .label("asked for here")
                        .other(off, "switched off here")
                        .help("keep one of them"),
                );
                None
            }
            (Some(span), ..) => {
                let title = "`#[verify(off)]` needs a reason";
                self.bad(
                    span,
                    title,
                    "write `#[verify(off, reason = \"…\")]`: readers will ask why",
                );
                None
            }
            (None, Some((span, _)), _) => {
                self.bad(span, "a reason is for switching the proof off", VERIFY);
                None
            }
            (None, None, None) => {
                self.bad(attr.span, "`#[verify]` says nothing", VERIFY);
                None
            }
        }
    }

    /// Returns the counts, and whether each was named.
    fn rank_counts(&mut self, value: &AttrValue, span: Span) -> Option<(Vec<u32>, bool)> {
        let (counts, named) = match value {
            AttrValue::Range { lo, hi, inclusive } => {
                let (lo, hi) = (self.rank_count(lo)?, self.rank_count(hi)?);
                let last = if *inclusive { hi } else { hi - 1 };
                ((lo..=last).collect::<Vec<u32>>(), false)
            }
            AttrValue::Expr(expr) => match &*expr.kind {
                ast::ExprKind::List(items) => {
                    let all: Option<Vec<u32>> = items.iter().map(|i| self.rank_count(i)).collect();
                    (all?, true)
                }
                _ => (vec![self.rank_count(expr)?], true),
            },
            AttrValue::Text(_) => {
                self.bad(span, "rank counts are numbers", VERIFY);
                return None;
            }
        };
        if counts.is_empty() {
            self.bad(span, "no rank count is in this", VERIFY);
            return None;
        }
        let counts: BTreeSet<u32> = counts.into_iter().collect();
        Some((counts.into_iter().collect(), named))
    }

    fn rank_count(&mut self, expr: &ast::Expr) -> Option<u32> {
        let checked = self.constant_on_all(expr, Ty::Int);
        let value = topology::constant(&checked);
        let fits = value.filter(|n| (1..=MOST_RANKS).contains(n));
        if fits.is_none() && checked.ty != Ty::Error {
            let title = match value {
                Some(n) => format!("{n} is no rank count: they are in 1..={MOST_RANKS}"),
                None => "rank counts are numbers".to_owned(),
            };
            self.bad(expr.span, title, VERIFY);
        }
        fits.map(|n| n as u32)
    }

    fn budget(&mut self, attr: &Attr, all: &mut Attributes) {
        if attr.args.is_empty() {
            self.bad(attr.span, "`#[budget]` says nothing", BUDGET);
        }
        let mut seen: Vec<(Resource, Span)> = Vec::new();
        for arg in &attr.args {
            let resource = arg.name.as_ref().and_then(|n| Resource::from_name(&n.text));
            let (Some(resource), AttrValue::Expr(most)) = (resource, &arg.value) else {
                self.bad(arg.span, "`#[budget]` does not take this", BUDGET);
                continue;
            };
            if let Some((_, first)) = seen.iter().find(|(r, _)| *r == resource) {
                self.error(twice("this budget", arg.span, *first));
            }
            seen.push((resource, arg.span));
            let most = self.constant_on_all(most, Ty::Int);
            self.demand(all, arg.span, Demand::Budget(resource, most));
        }
    }

    fn order(&mut self, attr: &Attr, all: &mut Attributes) {
        if attr.args.is_empty() {
            self.bad(attr.span, "`#[order]` says nothing", ORDER);
        }
        let mut seen: Vec<(OrderClass, Span)> = Vec::new();
        for arg in &attr.args {
            let name = match (&arg.name, &arg.value) {
                (None, AttrValue::Expr(expr)) => match &*expr.kind {
                    ast::ExprKind::Name(name) => name.as_str(),
                    _ => "",
                },
                _ => "",
            };
            let Some(class) = OrderClass::from_name(name) else {
                let error =
                    Diagnostic::new(Code::BadAttribute, arg.span, "`#[order]` does not take this");
                let names = OrderClass::ALL.map(OrderClass::name);
                self.error(match scope::nearest(name, names) {
                    Some(near) => {
                        error.help(format!("did you mean `{near}`?")).edit(arg.span, near)
                    }
                    None => error.help(ORDER),
                });
                continue;
            };
            if let Some((_, first)) = seen.iter().find(|(known, _)| *known == class) {
                self.error(twice(&format!("`{class}`"), arg.span, *first));
            }
            seen.push((class, arg.span));
            self.demand(all, arg.span, Demand::Order(class));
        }
    }

    fn roundings(&mut self, attr: &Attr, all: &mut Attributes) {
        match &attr.args[..] {
            [AttrArg { name: Some(name), value: AttrValue::Expr(most), span }]
                if name.text == "at_most" =>
            {
                let most = self.constant_on_all(most, Ty::Int);
                self.demand(all, *span, Demand::Roundings(most));
            }
            _ => self.bad(attr.span, "`#[roundings]` takes one limit", ROUNDINGS),
        }
    }

    /// Checks `#[allow(W0002)]`, `#[deny(W0001, W0003)]`, `#[deny(warnings)]`.
    fn level(&mut self, attr: &Attr, level: Level, levels: &mut Levels) {
        let word = level.name();
        if attr.args.is_empty() {
            let help = format!("write `#[{word}(W0002)]`, or `#[{word}(warnings)]`");
            self.bad(attr.span, format!("`#[{word}]` says nothing"), &help);
        }
        for arg in &attr.args {
            let name = match &arg.value {
                AttrValue::Expr(expr) if arg.name.is_none() => match &*expr.kind {
                    ast::ExprKind::Name(name) => name,
                    _ => "",
                },
                _ => "",
            };
            if name.is_empty() {
                let help = format!("write `#[{word}(W0002)]`, or `#[{word}(warnings)]`");
                self.bad(arg.span, format!("`#[{word}]` takes the codes of warnings"), &help);
                continue;
            }
            let set = match Lint::parse(name) {
                Ok(lint) => levels.set(lint, level, Some(arg.span)),
                Err(Unknown { title, help }) => {
                    self.bad(arg.span, title, &help);
                    continue;
                }
            };
            if let Err((_, Some(before))) = set {
                let title = format!("`{name}` is both allowed and denied");
                self.error(
                    Diagnostic::new(Code::AttributeConflict, arg.span, title)
                        .label("again")
                        .other(before, "first here")
                        .help("keep one of them"),
                );
            }
        }
    }

    /// Checks an attribute that takes no arguments.
    fn bare(&mut self, attr: &Attr) {
        if let Some(arg) = attr.args.first() {
            let name = &attr.name.text;
            let title = format!("`#[{name}]` takes no arguments");
            self.bad(arg.span, title, &format!("write `#[{name}]`"));
        }
    }

    fn unknown_attribute(&mut self, name: &ast::Name) {
        let title = format!("unknown attribute `{}`", name.text);
        let error = Diagnostic::new(Code::UnknownAttribute, name.span, title)
            .label("not an attribute of algorithms");
        self.error(match scope::nearest(&name.text, ATTRIBUTES.map(|(name, _)| name)) {
            Some(near) => error.help(format!("did you mean `#[{near}]`?")).edit(name.span, near),
            None => {
                let known = ATTRIBUTES.map(|(name, _)| format!("`{name}`")).join(", ");
                error.help(format!("the attributes are {known}"))
            }
        });
    }

    /// Reports a `#[verify]` of an algorithm that cannot be laid out at expansion.
    pub(super) fn can_verify(&mut self, verify: Option<&Verify>, open: Option<&str>) {
        let Some(Verify::Counts { span, .. }) = verify else { return };
        let why = match open {
            Some(param) => format!("its parameter `{param}` has no value yet"),
            None if self.escapes => {
                "its body has a `rust { }` escape, which only the compiled crate can run".to_owned()
            }
            None => return,
        };
        let help = match open {
            Some(param) => format!("give `{param}` a default, or leave the attribute out: every plan is proved when it is made"),
            None => "leave the attribute out: the generated test proves 2..=33, and every plan is proved when it is made".to_owned(),
        };
        let title = format!("this algorithm cannot be proved while it expands: {why}");
        self.error(
            Diagnostic::new(Code::AttributeConflict, *span, title)
                .label("asks for a proof at expansion")
                .help(help),
        );
    }

    fn bad(&mut self, span: Span, title: impl Into<String>, help: &str) {
        self.error(Diagnostic::new(Code::BadAttribute, span, title).help(help));
    }
}

const TOPOLOGY: &str = "write `#[topology(full_mesh(8) without (0, 1))]`";

fn twice(what: &str, span: Span, first: Span) -> Diagnostic {
    Diagnostic::new(Code::AttributeConflict, span, format!("{what} stands twice"))
        .label("again")
        .other(first, "first here")
        .help("keep one of them")
}
