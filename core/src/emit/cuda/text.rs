//! The whole text of a kernel: what it is, what it is made for, a function for each algorithm, and the entry.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::stmts::{Body, identifier, param_type};
use super::{Protocol, Site, Spec};
use crate::check::hir::{
    self, Algorithm, Callee, ExprKind, ParamTy, Stmt, StmtKind, Ty, VarId, walk,
};
use crate::dtype::ReduceOp;
use crate::ids::SpanId;
use crate::program::Configured;
use crate::schedule::{Algorithm as _, OpKind, Schedule};
use crate::source::Location;
use crate::source::Span;

/// An algorithm whose statements are written, and what is known of them.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) algorithm: &'a Algorithm,
    /// The file it stands in, and where its statements stand there.
    pub(super) file: &'a str,
    pub(super) locations: &'a [Location],
    /// `None` for an algorithm that another calls: its statements are the caller's one.
    notes: Option<&'a Notes>,
}

/// What the schedule tells of statements.
#[derive(Default)]
pub(super) struct Notes {
    /// Signals that others imply at every rank and every time: left out.
    pub(super) dropped: BTreeSet<SpanId>,
    /// Data statements after which the parts of a stream must meet.
    pub(super) meets: BTreeSet<SpanId>,
}

impl Source<'_> {
    pub(super) fn dropped(&self, at: SpanId) -> bool {
        self.notes.is_some_and(|notes| notes.dropped.contains(&at))
    }

    pub(super) fn meets(&self, at: SpanId) -> bool {
        self.notes.is_none_or(|notes| notes.meets.contains(&at))
    }

    /// Whether all CTAs of a rank must walk what one iteration of a `parallel` does: it forks streams, which are
    /// numbered on the way, or writes slots whose length the others need to know.
    pub(super) fn all_walk(&self, body: &[Stmt]) -> bool {
        forks(self.algorithm, body) || self.shares_slots(body)
    }

    /// Whether slots that take the length of what is written to them are used in `body` and elsewhere too.
    fn shares_slots(&self, body: &[Stmt]) -> bool {
        let mut slots = Vec::new();
        hir::walk(&self.algorithm.body, &mut |stmt| match &stmt.kind {
            StmtKind::Scratch(var, _, like) if like.ty == Ty::Pieces => slots.push(*var),
            _ => {}
        });
        let uses = |body: &[Stmt], slots: VarId| {
            let mut uses = 0;
            hir::walk(body, &mut |stmt| {
                for expr in stmt.exprs() {
                    expr.walk(&mut |expr| uses += u32::from(*expr.kind == ExprKind::Var(slots)));
                }
            });
            uses
        };
        slots.into_iter().any(|slots| {
            let inside = uses(body, slots);
            inside > 0 && inside < uses(&self.algorithm.body, slots)
        })
    }
}

/// Whether statements may fork streams.
fn forks(algorithm: &Algorithm, body: &[Stmt]) -> bool {
    let (mut forks_itself, mut calls_a_step) = (false, false);
    hir::walk(body, &mut |stmt| match &stmt.kind {
        StmtKind::Parallel(..) => forks_itself = true,
        StmtKind::Run(run) => {
            let callee = &run.callee.algorithm;
            forks_itself |= forks(callee, &callee.body);
        }
        StmtKind::Call(..) => calls_a_step = true,
        _ => {}
    });
    let mut a_step_forks = false;
    hir::walk(&algorithm.body, &mut |stmt| {
        if let StmtKind::Step(step) = &stmt.kind {
            hir::walk(&step.body, &mut |stmt| {
                a_step_forks |= matches!(stmt.kind, StmtKind::Parallel(..) | StmtKind::Run(_));
            });
        }
    });
    forks_itself || (calls_a_step && a_step_forks)
}

/// What the functions of one text share.
#[derive(Default)]
pub(super) struct Writer<'a> {
    /// Where objects are made: the algorithm and the place of the expression.
    pub(super) sites: Vec<Site>,
    functions: Vec<Function<'a>>,
    text: String,
}

struct Function<'a> {
    name: String,
    of: &'a str,
    /// Parameters that it is called with; the others have their defaults.
    given: Vec<usize>,
}

impl<'a> Writer<'a> {
    pub(super) fn site(&mut self, algorithm: &Algorithm, span: Span) -> usize {
        let place = (span.lo, span.hi);
        let known = |(name, at): &Site| *name == algorithm.name && *at == place;
        self.sites.iter().position(known).unwrap_or_else(|| {
            self.sites.push((algorithm.name.clone(), place));
            self.sites.len() - 1
        })
    }

    /// The function of a called algorithm, written when it is first called.
    pub(super) fn callee(&mut self, callee: &'a Callee, given: &[usize]) -> String {
        let Callee { algorithm, file, locations, .. } = callee;
        self.function(Source { algorithm, file, locations, notes: None }, given)
    }

    fn function(&mut self, source: Source<'a>, given: &[usize]) -> String {
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
        // As wide as a page of the book.
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

/// Whether the word occurs in the text.
fn mentions(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// A kernel that holds the author's loops, and where it asks for objects.
pub(super) fn loops(
    algorithm: &Configured,
    spec: Spec,
    notes: &Notes,
    about: &[String],
    scale: bool,
) -> (String, Vec<Site>) {
    let checked = algorithm.checked();
    let mut writer = Writer::default();
    let source = Source {
        algorithm: checked,
        file: algorithm.file(),
        locations: algorithm.locations(),
        notes: Some(notes),
    };
    let all: Vec<usize> = (0..checked.params.len()).collect();
    let name = writer.function(source, &all);
    let params = checked.params.iter().enumerate().map(|(index, param)| {
        let kind = match param.ty {
            ParamTy::Int | ParamTy::Rank => "int",
            ParamTy::Bool => "bool",
            ParamTy::Ranks => "list",
            ParamTy::Ring => "ring",
            ParamTy::Rings => "rings",
            ParamTy::Tree => "tree",
            ParamTy::Groups => "groups",
            ParamTy::Topology => "topology",
        };
        format!(", lane.{kind}_param({index})")
    });
    let call = format!("{name}(lane, lane.input(), lane.output(){})", params.collect::<String>());
    // Functions of several algorithms, many regions at once, and slices of them leave fewer registers to the moves.
    let cuts = cuts(checked);
    let several = !checked.callees().is_empty();
    let slices = spec.protocol != Protocol::Direct && cuts > CUTS / 2;
    let defines = match cuts {
        cuts if cuts > 2 * CUTS => "#define ROUNDELAY_IN_FLIGHT 1\n",
        cuts if cuts > CUTS => "#define ROUNDELAY_IN_FLIGHT 2\n",
        _ if several || slices => "#define ROUNDELAY_IN_FLIGHT 4\n",
        _ => "",
    };
    let text = whole(&checked.name, spec, about, (defines, &writer.text), &call, scale);
    (text, writer.sites)
}

/// Times that a page may cut a region before its moves have to do with fewer loads in flight.
const CUTS: usize = 8;

/// How often `algorithm` cuts a region.
fn cuts(algorithm: &Algorithm) -> usize {
    let mut cuts = 0;
    walk(&algorithm.body, &mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| cuts += usize::from(matches!(*part.kind, ExprKind::Split(..))));
        }
    });
    cuts
}

/// A kernel that walks a table.
pub(super) fn table(schedule: &Schedule, spec: Spec, about: &[String], scale: bool) -> String {
    let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move);
    let mix: BTreeSet<_> = moves.map(|op| (op.srcs, op.dsts)).collect();
    let mix = mix.into_iter().map(|(srcs, dsts)| format!(" MOVE({srcs}, {dsts})"));
    let mix = format!("#define ROUNDELAY_MOVES(MOVE){}\n", mix.collect::<String>());
    whole(&schedule.algorithm, spec, about, (&mix, ""), "run_table(lane)", scale)
}

fn whole(
    name: &str,
    spec: Spec,
    about: &[String],
    (defines, functions): (&str, &str),
    call: &str,
    scale: bool,
) -> String {
    let mut text = String::new();
    for line in about {
        // A backslash would join the next line to the comment.
        let line = format!("// {}", line.trim_end().trim_end_matches('\\'));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let op = match spec.op {
        ReduceOp::Sum => "Sum",
        ReduceOp::Prod => "Prod",
        ReduceOp::Min => "Min",
        ReduceOp::Max => "Max",
        ReduceOp::Avg => "Avg",
    };
    let protocol = match spec.protocol {
        Protocol::Direct => "Direct",
        Protocol::Simple => "Simple",
        Protocol::Ll => "Ll",
    };
    let element = spec.element.name();
    let _ = writeln!(text, "#define ROUNDELAY_ELEMENT {element}");
    let _ = writeln!(text, "#define ROUNDELAY_OP {op}");
    let _ = writeln!(text, "#define ROUNDELAY_PROTOCOL {protocol}");
    let _ = writeln!(text, "#define ROUNDELAY_VECTOR {}", spec.vector);
    text.push_str(defines);
    let _ = writeln!(text, "#include \"roundelay.cuh\"");
    if !functions.is_empty() {
        let _ = write!(text, "\nnamespace roundelay {{\n{functions}\n}} // namespace roundelay\n");
    }
    // What follows stands in no source: it has the lines of this text.
    let line = text.lines().count() + 3;
    let _ = write!(text, "\n#line {line} \"{name}.cu\"\n");
    let _ = write!(
        text,
        "ROUNDELAY_KERNEL({name}) {{\n    roundelay::Lane lane(launch);\n    roundelay::{call};\n}}\n"
    );
    if scale {
        let _ = write!(text, "\nROUNDELAY_SCALE_KERNEL({name}_scale)\n");
    }
    text
}
