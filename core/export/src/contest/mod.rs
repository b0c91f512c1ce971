//! Executors as C++14 in the form of the contest: a class with the `Calc*` methods, `KernelRun` and `REGISTER_EXEC`.
//!
//! The text is printed from the [loop form](crate::loops) of the schedules as their authors wrote them: no signal is left
//! out. Each class of sizes has its own level of links and its own scratch, so no other algorithm takes a
//! signal that one algorithm leaves behind. Within a class, the schedule is first proved for one-shot flags that all
//! streams of a rank share, and refused if it could lose a signal.

mod class;
mod class_parts;
mod flags;
mod handshakes;
mod interface;
mod moves;
pub mod operator;
mod part;
mod print;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Finding;
use roundelay_core::executor::Executor;
use roundelay_core::ids::RankId;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Signals;

use class_parts::{NUMBERS, SizeClassParts};
use interface::Interface;

/// The behavior of a link's flags.
pub const SIGNALS: Signals = Interface::Class.signals();

/// The part that every class contains: stream and memory of a run.
const HELPERS: &str = include_str!("helpers.h");

/// An executor for export.
#[derive(Clone, Debug)]
pub struct Export<'a> {
    /// The name of the class, and its name in the registry.
    pub name: &'a str,
    /// The lines of the class's doc comment.
    pub docs: &'a [String],
    /// Whether the class moves the caller's memory itself; otherwise the framework copies it in and out.
    pub dma_reduce: bool,
    /// The classes of sizes, the smallest first; the last has no limit.
    pub classes: Vec<SizeClass<'a>>,
}

impl<'a> Export<'a> {
    /// Returns a compiled executor for export; `source` finds the text of an algorithm by the name of its file.
    pub fn new(executor: &'a Executor, source: impl Fn(&str) -> Option<&'a Source>) -> Self {
        let classes = executor.classes.iter().map(|class| SizeClass {
            below: class.below,
            algorithm: &class.algorithm,
            schedule: class.proved.schedule(),
            source: source(class.algorithm.file()),
        });
        Self {
            name: &executor.name,
            docs: &executor.docs,
            dma_reduce: executor.dma_reduce,
            classes: classes.collect(),
        }
    }
}

/// The schedule for a range of sizes.
#[derive(Clone, Copy, Debug)]
pub struct SizeClass<'a> {
    /// The limit in bytes by nccl-tests' size, exclusive; `None` for all remaining sizes.
    pub below: Option<u64>,
    /// The algorithm: its program has the loops.
    pub algorithm: &'a Configured,
    /// The schedule as its author wrote it.
    pub schedule: &'a Schedule,
    /// The text that the lines of the ops refer to.
    pub source: Option<&'a Source>,
}

/// Returns the C++ text of the class.
///
/// # Errors
/// Findings that prevent the export, each with the index of its class.
pub fn contest(export: &Export<'_>) -> Result<String, Vec<(usize, Finding)>> {
    let parts = SizeClassParts::new(export, Interface::Class)?;
    let mut text = String::from("// Written by `roundelay emit hccl-cpp`.\n");
    text += &parts.docs();
    text += "#include \"hccl_stub.h\"\n\n#include <algorithm>\n\nnamespace hccl {\nnamespace {\n\n";
    let _ = write!(text, "{NUMBERS}\n{HELPERS}{}\n}} // namespace\n\n", parts.sections());
    text += &class_text(export, &parts);
    let _ =
        writeln!(text, "\nREGISTER_EXEC(\"{0}\", {0}, {0});\n\n}} // namespace hccl", export.name);
    Ok(text)
}

/// Returns the text of the executor's class.
fn class_text(export: &Export<'_>, parts: &SizeClassParts<'_>) -> String {
    let schedule = export.classes[0].schedule;
    let (nranks, collective) = (schedule.nranks, schedule.collective);
    let shows = parts.lines(|_, part| {
        let kinds = ["INPUT_MEM", "OUTPUT_MEM", "SCRATCH_MEM"];
        let bits: Vec<_> = kinds
            .iter()
            .zip(part.shows)
            .filter(|(_, shown)| *shown)
            .map(|(kind, _)| format!("Bit(UserMemType::{kind})"))
            .collect();
        let bits = if bits.is_empty() { "0".to_owned() } else { bits.join(" | ") };
        format!("    {bits},\n")
    });
    let enqueue = parts.lines(|at, _| {
        format!(
            "        case {at}:\n            run.pieces = class_{at}::PIECES;\n            CHK_RET(class_{at}::Enqueue(run));\n            break;\n"
        )
    });
    let slaves = parts.slaves();
    let tiles = if parts.all.iter().any(|part| part.tiles) { 2 * (slaves + 1) } else { 0 };
    let direct = collective == Collective::AllReduce || collective.max_input_units(nranks) == 1;
    parts
        .fill(include_str!("class.h"))
        .replace("@DMA@", if export.dma_reduce { "true" } else { "false" })
        .replace("@SLAVES@", &slaves.to_string())
        .replace("@TILES@", &tiles.to_string())
        .replace("@DIRECT@", if direct { "true" } else { "false" })
        .replace("@SHOWS@", &shows)
        .replace("@ENQUEUE@", &enqueue)
}

/// Pairs of ranks: one that accesses scratch, and its owner.
#[doc(hidden)]
pub type Accesses = BTreeSet<(RankId, RankId)>;

/// Returns the accesses to scratch that may overlap the previous run of the owner, and those that may overlap the next one,
/// for tests.
///
/// # Errors
/// Those of [`roundelay_core::verify::in_order`].
#[doc(hidden)]
pub fn open(schedule: &Schedule) -> Result<[Accesses; 2], Vec<Finding>> {
    handshakes::open(schedule).map(|open| [open.early, open.late])
}

/// Returns the schedule without an access to scratch outside of a run, for tests.
///
/// # Errors
/// Those of [`open`].
#[doc(hidden)]
pub fn close_scratch(schedule: &Schedule) -> Result<Schedule, Vec<Finding>> {
    handshakes::closed(schedule, SIGNALS).map(|closed| closed.schedule)
}
