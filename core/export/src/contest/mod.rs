//! Executors as C++14 in the form of the contest: a class with the `Calc*` methods, `KernelRun` and `REGISTER_EXEC`.
//!
//! The text is printed from the [loop form](crate::loops) of the schedules as their authors wrote them: no signal is left
//! out. Each class of sizes has its own level of links and its own scratch, so no other algorithm takes a
//! signal that one algorithm leaves behind. Within a class, the schedule is first proved for one-shot flags that all
//! streams of a rank share, and refused if it could lose a signal.

mod class;
mod handshakes;
mod moves;
mod print;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::loops;
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::executor::Executor;
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::schedule::{Buffer, OpKind, Schedule};
use roundelay_core::syntax::Source;
use roundelay_core::verify::{Signals, verify_with};

/// The behavior of a link's flags.
pub const SIGNALS: Signals = Signals { one_shot: true, link_shared: true };

/// The part that every export contains: stream, piece and memory of a run.
const HELPERS: &str = include_str!("helpers.h");

/// The alignment of slots, in bytes.
const ALIGNMENT: u64 = 512;

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

/// Returns the C++ text.
///
/// # Errors
/// Findings that prevent the export, each with the index of its class.
pub fn contest(export: &Export<'_>) -> Result<String, Vec<(usize, Finding)>> {
    let mut parts = Vec::new();
    let mut wrong = Vec::new();
    for (at, class) in export.classes.iter().enumerate() {
        match SizeClassPart::new(class) {
            Ok(part) => parts.push(part),
            Err(findings) => wrong.extend(findings.into_iter().map(|finding| (at, finding))),
        }
    }
    let first = &export.classes[0].schedule;
    for (at, SizeClass { schedule, .. }) in export.classes.iter().enumerate() {
        if (schedule.collective, schedule.nranks) != (first.collective, first.nranks) {
            let of = |s: &Schedule| format!("an {} of {} ranks", s.collective, s.nranks);
            let title = format!("{} beside {}", of(schedule), of(first));
            wrong.push((at, Finding::new(Code::NotExportable, SpanId(0), title)));
        }
    }
    if wrong.is_empty() { Ok(print(export, &parts)) } else { Err(wrong) }
}

/// The parts of a size class's text.
struct SizeClassPart {
    algorithm: String,
    pieces: u64,
    functions: String,
    /// Slots and width of each scratch buffer.
    scratch: Vec<(u32, (u64, u64))>,
    slaves: u32,
    /// The peers to which each rank has a link.
    peers: Vec<BTreeSet<RankId>>,
    /// Whether peers read the input, the output, and scratch.
    shows: [bool; 3],
    /// Whether some move needs room for intermediate data, since the copy engine cannot do it at once.
    tiles: bool,
}

impl SizeClassPart {
    fn new(class: &SizeClass<'_>) -> Result<Self, Vec<Finding>> {
        let noted = |findings: Vec<Finding>| -> Vec<Finding> {
            let note = |f: Finding| f.note(format!("with {SIGNALS} signals, as its links have"));
            findings.into_iter().map(note).collect()
        };
        if class.schedule.multiple > 1 {
            let title = format!("counts are multiples of {} here", class.schedule.multiple);
            let help = "cut regions by `split`, whose pieces differ by an element at most, and leave the `require` out";
            return Err(vec![
                Finding::new(Code::NotExportable, SpanId(0), title)
                    .note("a contest's executor takes calls of any count")
                    .help(help),
            ]);
        }
        if let Some(late) = class.schedule.rounds_late() {
            return Err(vec![*late]);
        }
        let closed = handshakes::closed(class.schedule).map_err(noted)?;
        verify_with(&closed.schedule, SIGNALS).map_err(noted)?;
        let pieces = loops::pieces(&closed.schedule)?;
        let schedule = moves::split(&closed.schedule)?;
        let (algorithm, source) = (class.algorithm, class.source);
        let single = (&schedule, pieces);
        let functions = class::functions(algorithm, class.schedule, &closed, single, source)?;
        let mut part = Self {
            algorithm: schedule.algorithm.clone(),
            pieces,
            functions,
            scratch: schedule
                .scratch
                .iter()
                .map(|s| (s.slots, (s.width.num(), s.width.den())))
                .collect(),
            slaves: schedule.needs().streams - 1,
            peers: vec![BTreeSet::new(); schedule.nranks as usize],
            shows: [false; 3],
            tiles: false,
        };
        part.touch(&schedule);
        Ok(part)
    }

    /// Records the links and the memory that the ops use.
    fn touch(&mut self, schedule: &Schedule) {
        for stream in &schedule.streams {
            for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
                if op.kind != OpKind::Move {
                    let channel = schedule.channel(op);
                    if channel.from != channel.to {
                        self.peers[channel.from.index()].insert(channel.to);
                        self.peers[channel.to.index()].insert(channel.from);
                    }
                    continue;
                }
                // A reduction has its destination as a source, too.
                let operands = &schedule.operands_of(op)[usize::from(op.srcs) - 1..];
                let far = operands.iter().filter(|operand| operand.rank != stream.rank);
                let mut peers = 0;
                for operand in far {
                    peers += 1;
                    self.peers[stream.rank.index()].insert(operand.rank);
                    self.peers[operand.rank.index()].insert(stream.rank);
                    let kind = match schedule.region(*operand).buffer {
                        Buffer::Input => 0,
                        Buffer::Output => 1,
                        Buffer::Scratch(_) => 2,
                    };
                    self.shows[kind] = true;
                }
                self.tiles |= peers > 1 || (peers == 1 && op.srcs > 1);
            }
        }
    }
}

fn print(export: &Export<'_>, parts: &[SizeClassPart]) -> String {
    let first = export.classes[0].schedule;
    let mut text = String::from("// Written by `roundelay emit hccl-cpp`.\n");
    for line in export.docs {
        let _ = writeln!(text, "//{}{}", if line.is_empty() { "" } else { " " }, line.trim());
    }
    if first.collective.is_rooted() {
        let _ = writeln!(text, "// The root is rank {}.", first.root);
    }
    text += "#include \"hccl_stub.h\"\n\n#include <algorithm>\n\nnamespace hccl {\nnamespace {\n\n";
    text += HELPERS;
    for (at, (part, class)) in parts.iter().zip(&export.classes).enumerate() {
        let sizes = sizes(class.below);
        let _ = writeln!(
            text,
            "\n// ---- {sizes}: {} -----\n\nnamespace class_{at} {{\n\nconstexpr u64 PIECES = {};\n{}\n}} // namespace class_{at}",
            part.algorithm, part.pieces, part.functions
        );
    }
    text += "\n} // namespace\n\n";
    text += &class_text(export, parts);
    let _ =
        writeln!(text, "\nREGISTER_EXEC(\"{0}\", {0}, {0});\n\n}} // namespace hccl", export.name);
    text
}

fn sizes(below: Option<u64>) -> String {
    below.map_or_else(|| "what is left".to_owned(), |below| format!("below {below} bytes"))
}

/// Returns the text of the executor's class.
fn class_text(export: &Export<'_>, parts: &[SizeClassPart]) -> String {
    let schedule = export.classes[0].schedule;
    let (nranks, collective) = (schedule.nranks, schedule.collective);
    let name = export.name;
    let units = collective.max_input_units(nranks).max(collective.max_output_units(nranks));
    let ranks = || (0..nranks).map(RankId);
    let per_rank = |units: &dyn Fn(RankId) -> u32| {
        ranks().map(|rank| units(rank).to_string()).collect::<Vec<_>>().join(", ")
    };
    let inputs = per_rank(&|rank| collective.input_units(rank, nranks, schedule.root));
    let outputs = per_rank(&|rank| collective.output_units(rank, nranks, schedule.root));
    let lines = |line: &dyn Fn(usize, &SizeClassPart) -> String| {
        parts.iter().enumerate().map(|(at, part)| line(at, part)).collect::<String>()
    };
    let limits: Vec<_> = export
        .classes
        .iter()
        .map(|c| c.below.map_or("~u64(0)".to_owned(), |b| b.to_string()))
        .collect();
    let scratch = lines(&|at, part| {
        let one = |(slots, (num, den)): &(u32, (u64, u64))| {
            format!("    {{{at}, {slots}, {num}, {den}}},\n")
        };
        part.scratch.iter().map(one).collect()
    });
    let links = lines(&|at, part| {
        let one = |peers: &BTreeSet<RankId>| {
            let peers: Vec<_> = peers.iter().map(ToString::to_string).collect();
            format!("{{{}}}", peers.join(", "))
        };
        let all: Vec<_> = part.peers.iter().map(one).collect();
        format!("    {{{}}}, // class {at}\n", all.join(", "))
    });
    let shows = lines(&|_, part| {
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
    let enqueue = lines(&|at, _| {
        format!(
            "        case {at}:\n            run.pieces = class_{at}::PIECES;\n            CHK_RET(class_{at}::Enqueue(run));\n            break;\n"
        )
    });
    let slaves = parts.iter().map(|part| part.slaves).max().unwrap_or(0);
    let tiles = if parts.iter().any(|part| part.tiles) { 2 * (slaves + 1) } else { 0 };
    let direct = collective == Collective::AllReduce || collective.max_input_units(nranks) == 1;
    include_str!("class.h")
        .replace("@NAME@", name)
        .replace("@DMA@", if export.dma_reduce { "true" } else { "false" })
        .replace("@RANKS@", &nranks.to_string())
        .replace("@UNITS@", &units.to_string())
        .replace("@INPUTS@", &inputs)
        .replace("@OUTPUTS@", &outputs)
        .replace("@LIMITS@", &limits.join(", "))
        .replace("@CLASSES@", &parts.len().to_string())
        .replace("@SLAVES@", &slaves.to_string())
        .replace("@TILES@", &tiles.to_string())
        .replace("@ALIGN@", &ALIGNMENT.to_string())
        .replace("@DIRECT@", if direct { "true" } else { "false" })
        .replace("@SCRATCH@", &scratch)
        .replace("@LINKS@", &links)
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
    handshakes::closed(schedule).map(|closed| closed.schedule)
}
