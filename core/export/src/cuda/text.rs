//! The whole text of a kernel: its comment, its definitions, a function for each algorithm, and the entry.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::print::{Cuda, WIDTH, name_of};
use super::switch::SwitchSides;
use super::words::{HEADER_WORDS, SCRATCH_WORDS};
use super::{Protocol, Spec};
use crate::loops::cpp::comment_line;
use crate::loops::cpp_names::mentions;
use crate::loops::ir::NodeId;
use crate::loops::machine::RunFacts;
use crate::loops::printer::Printer;
use crate::loops::{LoopFunction, Loops};
use roundelay_core::schedule::{Op, OpKind, Schedule};

/// The largest number that fits 32 bits beside another one.
const NARROW: u64 = 1 << 30;

/// Returns a kernel with the author's loops. `is_move` tells the moves that the kernel performs as moves; the others pass
/// through lines.
pub(super) fn loops(
    (loops, facts): (&Loops, &RunFacts),
    (schedule, is_move): (&Schedule, impl Fn(&Op) -> bool),
    spec: Spec,
    meets: &BTreeSet<NodeId>,
    about: &[String],
    scale: bool,
) -> String {
    let lined = spec.protocol.has_lines();
    let (passes, functions) = (BTreeSet::new(), Vec::new());
    let mut printer = Printer::new((loops, facts), None, Cuda { lined, meets, passes, functions });
    let (name, functions) = functions_of(&mut printer);
    let mut defines = mix(schedule, is_move);
    if lined {
        let passes = printer.dialect.passes.iter().map(|name| format!(" PASS({name})"));
        let _ = writeln!(defines, "#define ROUNDELAY_PASSES(PASS){}", passes.collect::<String>());
        let _ = writeln!(defines, "#define ROUNDELAY_LINK_PASSES {}", facts.passes);
    }
    let _ = writeln!(defines, "#define ROUNDELAY_PIECES {}", loops.pieces);
    let words = loops.tables.all.iter().flat_map(|table| table.entries.iter().flatten());
    if words.fold(facts.farthest, |most, word| most.max(word.unsigned_abs())) > NARROW {
        defines += "#define ROUNDELAY_NUMBER i64\n";
    }
    let call = format!("program::{name}(lane)");
    whole(&loops.algorithm, spec, about, (&defines, &functions), &call, scale)
}

/// Returns the name of the last function, which is that of the whole algorithm, and the text of all functions.
fn functions_of(printer: &mut Printer<'_, Cuda<'_>>) -> (String, String) {
    let loops = printer.loops;
    let mut text = String::new();
    for function in &loops.functions {
        text += &function_of(printer, function);
    }
    let (name, body) = (loops.algorithm.clone(), loops.body.clone());
    text += &function_of(printer, &LoopFunction { name, params: Vec::new(), body });
    let name = printer.dialect.functions.pop().unwrap_or_default();
    let mut numbers = String::new();
    if mentions(&text, "nranks") {
        let _ = writeln!(numbers, "constexpr num nranks = {};", loops.nranks);
    }
    // The first word of each table, among the facts.
    let mut first = HEADER_WORDS + SCRATCH_WORDS * loops.scratch.len();
    for (number, table) in loops.tables.all.iter().enumerate() {
        let sizes: Vec<_> =
            table.dims(loops.nranks).iter().map(|size| format!("[{size}]")).collect();
        let words = if table.has_pieces() { "[4]" } else { "" };
        let name = name_of(number);
        let _ = writeln!(
            numbers,
            "constexpr num {name} = {first}; // the first word of {}{words}",
            sizes.concat()
        );
        first += table.entries.iter().map(Vec::len).sum::<usize>();
    }
    (name, numbers + &text)
}

fn function_of(printer: &mut Printer<'_, Cuda<'_>>, function: &LoopFunction) -> String {
    printer.names.begin();
    let name = printer.names.global(&function.name);
    let (params, body) = printer.function(&function.params, &function.body);
    let params = params.into_iter().map(|name| format!("const num {name}"));
    let params = std::iter::once("Lane& lane".to_owned()).chain(params);
    let params = params.collect::<Vec<_>>().join(", ");
    let head = format!("\nROUNDELAY_DEVICE void {name}({params}) {{\n");
    let head = if head.len() <= WIDTH + 2 {
        head
    } else {
        format!("\nROUNDELAY_DEVICE void {name}(\n    {params}) {{\n")
    };
    printer.dialect.functions.push(name);
    let me = if mentions(&body, "me") { "    const num me = lane.me;\n" } else { "" };
    format!("{head}{me}{body}}}\n")
}

/// Returns the definition of the sides that moves of a switch have; nothing where there are none.
fn switch_moves(schedule: &Schedule) -> String {
    let sides: BTreeSet<_> = schedule.ops.iter().filter_map(SwitchSides::of).collect();
    if sides.is_empty() {
        return String::new();
    }
    let all = sides.into_iter().map(|sides| format!(" MOVE({})", sides.number()));
    format!("#define ROUNDELAY_SWITCH_MOVES(MOVE){}\n", all.collect::<String>())
}

/// Returns the combinations of numbers of sources and destinations that moves have: the kernel needs a loop for each.
fn mix(schedule: &Schedule, is_move: impl Fn(&Op) -> bool) -> String {
    let is_move = |op: &&Op| SwitchSides::of(op).is_none() && is_move(op);
    let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move).filter(is_move);
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
        (&(mix(schedule, |_| true) + &switch_moves(schedule)), ""),
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
        let line = format!("// {}", comment_line(line));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let protocol = match spec.protocol {
        Protocol::Direct => "Direct",
        Protocol::Simple => "Simple",
        Protocol::Ll => "Ll",
        Protocol::Ll128 => "Ll128",
    };
    let element = spec.element.name();
    let _ = writeln!(text, "#define ROUNDELAY_ELEMENT {element}");
    let _ = writeln!(text, "#define ROUNDELAY_OP {:?}", spec.op);
    let _ = writeln!(text, "#define ROUNDELAY_PROTOCOL {protocol}");
    let _ = writeln!(text, "#define ROUNDELAY_VECTOR {}", spec.vector);
    text.push_str(defines);
    let _ = writeln!(text, "#include \"roundelay.cuh\"");
    if !functions.is_empty() {
        let _ = write!(
            text,
            "\nnamespace roundelay::program {{\n\n{functions}\n}} // namespace roundelay::program\n"
        );
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
