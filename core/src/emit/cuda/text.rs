//! The whole text of a kernel: what it is, what it is made for, a function for each algorithm, and the entry.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::source::{Notes, Source};
use super::stmts::Writer;
use super::{Protocol, Site, Spec};
use crate::check::hir::{Algorithm, ExprKind, ParamTy, walk};
use crate::program::Configured;
use crate::schedule::{Algorithm as _, OpKind, Schedule};

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
    let protocol = match spec.protocol {
        Protocol::Direct => "Direct",
        Protocol::Simple => "Simple",
        Protocol::Ll => "Ll",
    };
    let element = spec.element.name();
    let _ = writeln!(text, "#define ROUNDELAY_ELEMENT {element}");
    let _ = writeln!(text, "#define ROUNDELAY_OP {:?}", spec.op);
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
