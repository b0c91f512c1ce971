//! `roundelay check FILE.xml` and `check PLAN.json`: a program for MSCCL's runtime or for MSCCL++'s executor, proved as
//! that runtime or executor runs it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Diagnostic, Severity};
use roundelay_core::source::Span;
use roundelay_core::stages;
use roundelay_core::syntax::Source;
use roundelay_core::verify;
use roundelay_export::exchange::msccl::{self, Connections, Header, MscclVerdict, Program, Safe};
use roundelay_export::exchange::{Checked, Mode};
use serde::Serialize;

use crate::lints::LintFlags;
use crate::mscclpp::{self, Proved, claims};
use crate::progress;
use crate::report::{Failure, Format, JsonDiagnostic, print_all, refuse, took, within_a_page};
use crate::stats::Stats;
use crate::streams::{self, print, print_json};
use crate::topo::count;
use crate::values::bytes;

/// The largest size in bytes of a file.
const LARGEST: u64 = 256 << 20;

/// The runtime of a program for MSCCL.
#[derive(Args, Clone)]
pub(crate) struct MscclFlags {
    /// For a program for MSCCL (.xml): the runtime that it is for, whose limits and buffers count [default: what all of
    /// them refuse is an error, and buffers are RCCL's]
    #[arg(long, value_enum)]
    pub(crate) runtime: Option<Runtime>,
    /// For a program for MSCCL: the size of a connection's buffer, as `NCCL_BUFFSIZE` and the like set it, such as 8M
    /// [default: the runtime's for the protocol]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) buffer: Option<u64>,
}

impl MscclFlags {
    /// Refuses flags of a runtime where no program for it is given.
    pub(crate) fn absent(&self) -> Result<(), Failure> {
        let given = [("--runtime", self.runtime.is_some()), ("--buffer", self.buffer.is_some())];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                let title =
                    format!("{flag} is for programs for MSCCL, which are files that end in .xml");
                Err(Failure::usage(Code::BadCall, title))
            }
            None => Ok(()),
        }
    }

    fn connections(&self) -> Connections {
        let runtime = self.runtime.map_or_else(msccl::Runtime::default, Into::into);
        Connections { runtime, buffer: self.buffer }
    }
}

/// The runtimes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Runtime {
    /// AMD's RCCL
    Rccl,
    /// Azure's msccl-executor-nccl
    Azure,
    /// microsoft/msccl
    Microsoft,
}

impl From<Runtime> for msccl::Runtime {
    fn from(runtime: Runtime) -> Self {
        match runtime {
            Runtime::Rccl => Self::Rccl,
            Runtime::Azure => Self::Azure,
            Runtime::Microsoft => Self::Microsoft,
        }
    }
}

#[derive(Serialize)]
struct MscclReport {
    ok: bool,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<Either>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    diagnostics: Vec<JsonDiagnostic>,
}

/// A program of either kind.
#[derive(Serialize)]
#[serde(untagged)]
enum Either {
    Program(Described),
    Plan(mscclpp::Described),
}

#[derive(Serialize)]
struct Described {
    name: String,
    /// The name in the program.
    coll: String,
    /// The collective that the program promises; absent where that cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    collective: Option<&'static str>,
    nranks: u32,
    protocol: &'static str,
    channels: u32,
    chunks: u32,
    operations: usize,
    /// The most blocks of a rank.
    blocks: usize,
    seconds: f64,
    modes: Vec<Proved>,
    /// The most orders in which ranks reduce one piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    orders: Option<usize>,
    min_bytes: u64,
    /// Absent for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
    connections: Connected,
}

#[derive(Serialize)]
struct Connected {
    runtime: &'static str,
    /// Messages that a connection holds.
    slots: u32,
    /// Bytes of data in a message.
    message_bytes: u64,
    /// Whether calls end at some size.
    ends: bool,
    /// The most bytes of a call that ends; absent for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    safe_bytes: Option<u64>,
    /// The fewest chunks of a message with which calls end.
    #[serde(skip_serializing_if = "Option::is_none")]
    least_chunks: Option<u32>,
}

/// A check that is asked for.
pub(crate) struct MscclCheck<'f> {
    pub(crate) path: &'f str,
    pub(crate) msccl: &'f MscclFlags,
    pub(crate) lints: &'f LintFlags,
    /// Whether all ranks must reduce in one order.
    pub(crate) deterministic: bool,
    pub(crate) stats: bool,
    pub(crate) format: Format,
}

/// Whether a source is a program for MSCCL or a plan for MSCCL++, by its name.
pub(crate) fn is_program(source: &str) -> bool {
    ends_in(source, "xml") || is_plan(source)
}

/// Whether a source is a plan for MSCCL++, by its name.
fn is_plan(source: &str) -> bool {
    ends_in(source, "json")
}

fn ends_in(source: &str, ending: &str) -> bool {
    Path::new(source).extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}

/// Refuses a number of ranks beside a program, which says itself how many there are.
pub(crate) fn counts_ranks(given: bool) -> Result<(), Failure> {
    if !given {
        return Ok(());
    }
    let title = "--nranks does not go with a program for MSCCL";
    Err(Failure::usage(Code::BadCall, title)
        .with_help("the number of its ranks stands in the file"))
}

/// Returns the bytes of a program.
fn load(path: &str) -> Result<Vec<u8>, Failure> {
    let code = if is_plan(path) { Code::UnreadableSource } else { Code::UnreadableXml };
    let refused = |why| Failure::usage(code, format!("`{path}` cannot be read: {why}"));
    let read = streams::bytes(path, LARGEST).map_err(|error| refused(error.to_string()))?;
    read.ok_or_else(|| refused(format!("it has more than {} MiB", LARGEST >> 20)))
}

/// The result of reading and proving a program of either kind.
struct Examined {
    source: Arc<Source>,
    warnings: Vec<Diagnostic>,
    errors: Vec<Diagnostic>,
    modes: Vec<Checked>,
    orders: Option<usize>,
    /// The program, where it makes sense.
    shown: Option<Shown>,
}

/// A program in words.
struct Shown {
    name: String,
    operations: usize,
    /// Blocks of the rank that has most.
    blocks: usize,
    promised: bool,
    lines: Vec<String>,
    described: Either,
}

/// Reads and proves a program or a plan.
fn examine(path: &str, bytes: &[u8], flags: &MscclFlags) -> Examined {
    if is_plan(path) {
        let text = mscclpp::read(path, bytes);
        let verdict = text.program.as_ref().map(|program| program.verdict(&text.source));
        let shown = text.program.as_ref().zip(verdict.as_ref()).map(|(program, verdict)| {
            let (operations, blocks) = program.size();
            Shown {
                name: mscclpp::title(program),
                operations,
                blocks,
                promised: program.header.collective.is_some(),
                lines: mscclpp::lines(program, verdict),
                described: Either::Plan(mscclpp::describe(program, verdict)),
            }
        });
        let (mut warnings, mut errors, mut modes, mut orders) =
            (text.warnings, text.errors, Vec::new(), None);
        if let Some(verdict) = verdict {
            warnings.extend(verdict.warnings);
            errors.extend(verdict.checked.errors.iter().cloned());
            orders = verdict.orders;
            modes.push(verdict.checked);
        }
        return Examined { source: text.source, warnings, errors, modes, orders, shown };
    }
    let text = msccl::read(path, bytes, flags.runtime.map(Into::into));
    let connections = flags.connections();
    let verdict = text.program.as_ref().map(|program| program.verdict(&text.source, &connections));
    let shown = text.program.as_ref().zip(verdict.as_ref()).map(|(program, verdict)| {
        let header = &program.header;
        let what = header.collective.map_or(&*header.coll, |collective| collective.name());
        let (operations, blocks) = program.size();
        Shown {
            name: format!(
                "{} ({what}, {}, {})",
                header.name,
                count(header.nranks as usize, "rank"),
                header.protocol.name()
            ),
            operations,
            blocks,
            promised: header.collective.is_some(),
            lines: lines(program, verdict, connections),
            described: Either::Program(describe(program, verdict, connections)),
        }
    });
    let mut errors = text.errors;
    errors.extend(verdict.iter().flat_map(MscclVerdict::errors).cloned());
    let orders = verdict.as_ref().and_then(|verdict| verdict.orders);
    let modes = verdict.map(|verdict| verdict.modes).unwrap_or_default();
    Examined { source: text.source, warnings: text.warnings, errors, modes, orders, shown }
}

impl Examined {
    /// Returns all diagnostics.
    fn said(&self, lints: &LintFlags) -> Result<Vec<Diagnostic>, Failure> {
        let mut all = lints.warnings(self.warnings.clone())?;
        all.extend(self.errors.iter().cloned());
        Ok(all)
    }
}

/// Runs `roundelay check FILE.xml` and `check PLAN.json`.
pub(crate) fn check(asked: &MscclCheck<'_>) -> Result<bool, Failure> {
    let path = asked.path;
    if is_plan(path) {
        asked.msccl.absent()?;
    }
    let bytes = load(path)?;
    let start = Instant::now();
    progress::about(path.to_owned());
    let work = || examine(path, &bytes, asked.msccl);
    let (found, spent) = if asked.stats {
        let (done, spent) = stages::record(work);
        (done, Some(spent))
    } else {
        (work(), None)
    };
    let seconds = start.elapsed().as_secs_f64();
    let mut all = found.said(asked.lints)?;
    if asked.deterministic
        && let Some(orders) = found.orders
        && orders > 1
    {
        let title = format!("ranks reduce in {orders} different orders");
        all.push(Diagnostic::new(Code::OrderDiffers, Span::default(), title));
    }
    let errors = all.iter().filter(|d| d.severity == Severity::Error).count();
    let ok = errors == 0;
    let operations = found.shown.as_ref().map_or(0, |shown| shown.operations);
    let stats = spent.map(|spent| Stats::new(spent, operations));
    match asked.format {
        Format::Human => {
            print_all(&all, &found.source);
            match &found.shown {
                Some(shown) => print_human(shown, (errors, seconds)),
                None => {
                    print(&format!(
                        "   \x1b[1;91mfailed\x1b[0m {path}: {}",
                        count(errors, "error")
                    ));
                }
            }
            if let Some(stats) = &stats {
                stats.print();
            }
        }
        Format::Json => print_json(&MscclReport {
            ok,
            file: path.to_owned(),
            program: found.shown.map(|shown| shown.described.after(seconds)),
            stats,
            diagnostics: all.iter().map(|d| JsonDiagnostic::new(d, &found.source)).collect(),
        }),
    }
    Ok(ok)
}

impl Either {
    /// Adds the time that the check took.
    fn after(mut self, seconds: f64) -> Self {
        match &mut self {
            Self::Program(described) => described.seconds = seconds,
            Self::Plan(described) => described.seconds = seconds,
        }
        self
    }
}

/// Returns why no device takes a program: kernels are made of algorithms.
pub(crate) fn on_host() -> Failure {
    Failure::usage(Code::BadFlag, "a program for MSCCL runs on the host")
        .with_help("leave --device out")
}

/// Returns a right program, in the mode that is asked for if it has it: a run in place, or out of place.
pub(crate) fn proved(
    path: &str,
    lints: &LintFlags,
    in_place: bool,
    format: Format,
) -> Result<(Arc<Source>, verify::Proved), Failure> {
    let (bytes, flags) = (load(path)?, MscclFlags { runtime: None, buffer: None });
    progress::about(path.to_owned());
    let mut found = examine(path, &bytes, &flags);
    let all = found.said(lints)?;
    if all.iter().any(|d| d.severity == Severity::Error) {
        return Err(refuse(
            format,
            &all,
            &found.source,
            |all| serde_json::json!({ "ok": false, "diagnostics": all }),
        ));
    }
    print_all(&all, &found.source);
    let asked = if in_place { Mode::InPlace } else { Mode::OutOfPlace };
    // The mode that is asked for comes first.
    found.modes.sort_by_key(|checked| checked.mode != asked && checked.mode != Mode::Both);
    match found.modes.into_iter().find_map(|checked| checked.proved) {
        Some(proved) => Ok((found.source, proved)),
        None => {
            let title = format!("what `{path}` must have at its end is not known");
            Err(Failure::usage(Code::UnknownCollective, title)
                .with_help("`roundelay check` looks at what else there is to see"))
        }
    }
}

fn describe(program: &Program, verdict: &MscclVerdict, connections: Connections) -> Described {
    let Header { name, coll, collective, protocol, nranks, channels, chunks, .. } =
        program.header.clone();
    let (operations, blocks) = program.size();
    Described {
        name,
        coll,
        collective: collective.map(Collective::name),
        nranks,
        protocol: protocol.name(),
        channels,
        chunks,
        operations,
        blocks,
        seconds: 0.0,
        modes: verdict.modes.iter().map(Proved::new).collect(),
        orders: verdict.orders,
        min_bytes: program.header.min_bytes,
        max_bytes: program.header.max_bytes,
        connections: Connected {
            runtime: connections.runtime.name(),
            slots: protocol.slots(),
            message_bytes: connections.message(&program.header),
            ends: verdict.safe.is_some(),
            safe_bytes: verdict.safe.and_then(|safe| safe.bytes),
            least_chunks: verdict.safe.map(|safe| safe.chunks),
        },
    }
}

fn print_human(shown: &Shown, (errors, seconds): (usize, f64)) {
    let name = &shown.name;
    if errors > 0 {
        print(&format!("   \x1b[1;91mfailed\x1b[0m {name}: {}", count(errors, "error")));
        return;
    }
    let size = format!(
        "{} in up to {} a rank, in {}",
        count(shown.operations, "operation"),
        count(shown.blocks, "block"),
        took(seconds)
    );
    let word = if shown.promised { "proved" } else { "looked at" };
    print(&format!("   \x1b[1;92m{word}\x1b[0m {name}: {size}"));
    for line in &shown.lines {
        print(&within_a_page(&format!("          {line}"), 14));
    }
}

/// Returns the claims about a right program.
fn lines(program: &Program, verdict: &MscclVerdict, connections: Connections) -> Vec<String> {
    let header = &program.header;
    let modes: Vec<_> = verdict.modes.iter().map(|checked| checked.mode).collect();
    let mut lines = claims(header.collective, &modes, verdict.orders);
    let of = format!(
        "connections of {} with {} of up to {} bytes",
        connections.runtime.name(),
        count(header.protocol.slots() as usize, "message"),
        connections.message(header)
    );
    let declared = match (header.min_bytes, header.max_bytes) {
        (least, None) => format!("{least} bytes and more are declared"),
        (least, Some(most)) => format!("{least} to {most} bytes are declared"),
    };
    lines.extend(verdict.safe.map(|safe| match safe {
        Safe { bytes: None, .. } => format!("calls of any size end; {declared}; {of}"),
        Safe { bytes: Some(bytes), chunks } => format!(
            "calls of up to {bytes} bytes end, as {chunks} chunks fit a message; {declared}; {of}"
        ),
    }));
    lines
}
