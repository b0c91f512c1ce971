//! The whole text of a kernel: its comment, its definitions, a function for each algorithm, and the entry.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::source::{KernelSource, Notes};
use super::stmts::KernelWriter;
use super::{Protocol, Site, Spec};
use roundelay_core::check::hir::ParamTy;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::schedule::{Op, OpKind, Schedule};

/// Returns a kernel with the author's loops, and the places at which objects are made. `is_move` tells the moves that
/// the kernel performs as moves; the others pass through lines.
pub(super) fn loops(
    algorithm: &Configured,
    (schedule, is_move): (&Schedule, impl Fn(&Op) -> bool),
    spec: Spec,
    notes: &Notes,
    about: &[String],
    scale: bool,
) -> (String, Vec<Site>) {
    let checked = algorithm.checked();
    let mut writer = KernelWriter::default();
    let source = KernelSource {
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
            ParamTy::Trees => "trees",
            ParamTy::Groups => "groups",
            ParamTy::Topology => "topology",
        };
        format!(", lane.{kind}_param({index})")
    });
    let call = format!("{name}(lane, lane.input(), lane.output(){})", params.collect::<String>());
    let mut defines = mix(schedule, is_move);
    if spec.protocol == Protocol::Ll {
        let passes = writer.passes.iter().map(|name| format!(" PASS({name})"));
        let _ = writeln!(defines, "#define ROUNDELAY_PASSES(PASS){}", passes.collect::<String>());
    }
    let text = whole(&checked.name, spec, about, (&defines, &writer.text), &call, scale);
    (text, writer.sites)
}

/// Returns the combinations of numbers of sources and destinations that moves have: the kernel needs a loop for each.
fn mix(schedule: &Schedule, is_move: impl Fn(&Op) -> bool) -> String {
    let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move && is_move(op));
    let mix: BTreeSet<_> = moves.map(|op| (op.srcs, op.dsts)).collect();
    let mix = mix.into_iter().map(|(srcs, dsts)| format!(" MOVE({srcs}, {dsts})"));
    let chain = if schedule.has_chains() { "#define ROUNDELAY_CHAIN 1\n" } else { "" };
    format!("{chain}#define ROUNDELAY_MOVES(MOVE){}\n", mix.collect::<String>())
}

/// Returns a kernel that walks a table.
pub(super) fn table(schedule: &Schedule, spec: Spec, about: &[String], scale: bool) -> String {
    whole(
        &schedule.algorithm,
        spec,
        about,
        (&mix(schedule, |_| true), ""),
        "run_table(lane)",
        scale,
    )
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
    // The entry has no source, so it has the line numbers of this text.
    let line = text.lines().count() + 3;
    let _ = write!(text, "\n#line {line} \"{name}.cu\"\n");
    let _ = write!(
        text,
        "ROUNDELAY_WALK({name}) {{\n    roundelay::Lane lane(launch);\n    roundelay::{call};\n}}\n"
    );
    if scale {
        let _ = write!(text, "\nROUNDELAY_SCALE_KERNEL({name}_scale)\n");
    }
    text
}
