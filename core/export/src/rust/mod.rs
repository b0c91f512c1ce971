//! The orchestration of a rank as plain Rust: the page's loops, over a small trait for moves, signals and streams.
//!
//! The text is printed from the [loop form](crate::loops), which is run at every rank, and compared with the proved
//! schedule, before anything is printed. The trait is [`lane::Lane`]: the text has its source at its end, or takes it from a
//! module, so that several texts share one.

/// The trait that a printed orchestration calls, and the types of its calls.
pub mod lane;
mod print;

use std::fmt::Write as _;

use crate::loops::cpp_names::mentions;
use crate::loops::ir::{At, LoopNode, Number, binary};
use crate::loops::printer::Printer;
use crate::loops::{LoopFunction, Loops, pieces};
use print::Rust;
use roundelay_core::diagnostics::Finding;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::ast::BinOp;

/// Returns the orchestration of an algorithm, which was laid out as `schedule`. `lane` is the path of the module that has
/// the trait; without it, the text has the trait itself.
///
/// # Errors
/// E0704 where boundaries need too many equal pieces.
pub fn rust(
    algorithm: &Configured,
    schedule: &Schedule,
    source: Option<&Source>,
    lane: Option<&str>,
) -> Result<String, Vec<Finding>> {
    let (mut loops, facts) = Loops::with_lanes(algorithm, schedule, pieces(schedule)?)?;
    join_streams(&mut loops);
    let mut text = String::new();
    let Schedule { collective, nranks, .. } = *schedule;
    let _ = writeln!(text, "// {}: each rank's part of its {collective}.", algorithm.name());
    for line in algorithm.docs() {
        let _ = writeln!(text, "{}", format!("//{line}").trim_end());
    }
    let units = [collective.max_input_units(nranks), collective.max_output_units(nranks)];
    let scratch = schedule.scratch.iter().map(|scratch| {
        let width = scratch.width.element_ceil(loops.pieces);
        format!("({}, {width})", scratch.slots)
    });
    let scratch: Vec<_> = scratch.collect();
    let _ = write!(
        text,
        "
#[allow(unused_imports)]
use {}::{{Buffer::*, Signal::*, *}};

/// The number of ranks.
pub const NRANKS: i64 = {nranks};
/// The number of equal pieces of a unit.
pub const PIECES: i64 = {};
/// The units of the longest input and of the longest output.
pub const UNITS: [usize; 2] = {units:?};
/// The slots of each scratch buffer, and the pieces of a slot.
pub const SCRATCH: &[(usize, i64)] = &[{}];
",
        lane.unwrap_or("lane"),
        loops.pieces,
        scratch.join(", ")
    );
    let mut printer = Printer::new((&loops, &facts), source, Rust { functions: Vec::new() });
    for (number, table) in loops.tables.all.iter().enumerate() {
        let name = printer.names.global(&format!("TABLE_{number}"));
        let ty = if table.has_pieces() { "[i64; 4]" } else { "i64" };
        let entry = |entry: &Vec<i64>| match entry[..] {
            [lo, hi, slot, base] => format!("{:?}", [lo, hi - lo, slot, base]),
            _ => entry[0].to_string(),
        };
        let entries: Vec<_> = table.entries.iter().map(entry).collect();
        let (many, entries) = (entries.len(), entries.join(", "));
        let _ = writeln!(text, "const {name}: [{ty}; {many}] = [{entries}];");
    }
    for function in &loops.functions {
        let name = printer.names.global(&function.name);
        text += &function_of(&mut printer, "", &name, function);
        printer.dialect.functions.push(name);
    }
    let body = LoopFunction { name: String::new(), params: Vec::new(), body: loops.body.clone() };
    text += "\n/// Runs the part of the lane's rank.";
    text += &function_of(&mut printer, "pub ", "run", &body);
    if lane.is_none() {
        let lane = include_str!("lane.rs").replace('\n', "\n    ").replace("\n    \n", "\n\n");
        let _ = writeln!(
            text,
            "\n/// What an orchestration asks of the rank that runs it.\n#[allow(dead_code)]\npub mod lane {{\n    {}\n}}",
            lane.trim_end()
        );
    }
    Ok(text)
}

/// Puts the statements of the streams of a form that was found in a schedule into one loop over streams.
fn join_streams(loops: &mut Loops) {
    let is_other = |node: &LoopNode| matches!(node, LoopNode::On { .. });
    let Some(first) = loops.body.iter().position(is_other) else { return };
    let var = loops.vars.len();
    loops.vars.push("stream".to_owned());
    let mut many = 1;
    let arms = loops.body.split_off(first).into_iter().filter_map(|node| {
        let LoopNode::On { stream, body } = node else { return None };
        many = many.max(stream as i64 + 1);
        Some((binary(BinOp::Eq, Number::var(var), Number::int(stream as i64)), body))
    });
    let body = vec![LoopNode::If(arms.collect(), std::mem::take(&mut loops.body))];
    let [lo, hi] = [0, many].map(Number::int);
    loops.body.push(LoopNode::Streams { at: At::default(), var, lo, hi, body });
}

fn function_of(
    printer: &mut Printer<'_, Rust>,
    visible: &str,
    name: &str,
    function: &LoopFunction,
) -> String {
    let (params, body) = printer.function(&function.params, &function.body);
    let params = params.into_iter().map(|name| format!("{name}: i64"));
    let params: Vec<_> = std::iter::once("lane: &L".to_owned()).chain(params).collect();
    let params = params.join(", ");
    let me = if mentions(&body, "me") { "    let me = lane.me();\n" } else { "" };
    format!(
        "\n#[allow(unused_variables, non_snake_case)]\n{visible}fn {name}<L: Lane>({params}) {{\n{me}{body}}}\n"
    )
}
