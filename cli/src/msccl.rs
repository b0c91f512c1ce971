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
use roundelay_exchange::msccl::{self, Connections};
use roundelay_exchange::{Checked, Header, Mode, Program, Safe, Text, Verdict, mscclpp};
use serde::Serialize;

use crate::lints::LintFlags;
use crate::progress;
use crate::report::{
    Failure, Format, JsonDiagnostic, print_all, refuse, took, within_a_page, wrong,
};
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
    program: Option<Described>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    diagnostics: Vec<JsonDiagnostic>,
}

/// A program of either format, for other programs.
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
    /// Channels and chunks, for a program for MSCCL.
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<u32>,
    operations: usize,
    /// The most blocks of a rank.
    blocks: usize,
    seconds: f64,
    modes: Vec<ProvedMode>,
    /// The most orders in which ranks reduce one piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    orders: Option<usize>,
    /// Stretches of each loop that were looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stretches: Vec<u32>,
    min_bytes: u64,
    /// Absent for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
    /// For a program for MSCCL.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<Connected>,
}

/// Whether a program is right in a mode.
#[derive(Serialize)]
struct ProvedMode {
    mode: &'static str,
    right: bool,
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

/// The result of reading and proving a program of either format.
struct Examined {
    source: Arc<Source>,
    warnings: Vec<Diagnostic>,
    errors: Vec<Diagnostic>,
    modes: Vec<Checked>,
    orders: Option<usize>,
    /// The program, where it makes sense: in a few words, in claims, and for other programs.
    shown: Option<(String, Vec<String>, Described)>,
}

/// Reads and proves a program or a plan.
fn examine(path: &str, bytes: &[u8], flags: &MscclFlags) -> Examined {
    if is_plan(path) {
        let verdict = |program: &mscclpp::Program, source: &Source| program.verdict(source);
        return Examined::new(mscclpp::read(path, bytes), verdict, |program, verdict, shown| {
            shown.1.extend(plan_lines(program, verdict));
        });
    }
    let connections = flags.connections();
    let verdict = |program: &msccl::Program, source: &Source| program.verdict(source, &connections);
    let text = msccl::read(path, bytes, flags.runtime.map(Into::into));
    Examined::new(text, verdict, |program, verdict, (_, lines, described)| {
        let header = &program.header;
        (described.channels, described.chunks) =
            (Some(header.own.channels), Some(header.own.chunks));
        described.connections = Some(Connected {
            runtime: connections.runtime.name(),
            slots: header.protocol.slots(),
            message_bytes: connections.message(header),
            ends: verdict.safe.is_some(),
            safe_bytes: verdict.safe.and_then(|safe| safe.bytes),
            least_chunks: verdict.safe.map(|safe| safe.chunks),
        });
        lines.extend(verdict.safe.map(|safe| line_of_sizes(header, safe, connections)));
    })
}

impl Examined {
    /// Proves the program of a text, and adds what only its format has to what is shown of it.
    fn new<H, B>(
        text: Text<Program<H, B>>,
        verdict: impl Fn(&Program<H, B>, &Source) -> Verdict,
        more: impl Fn(&Program<H, B>, &Verdict, &mut (String, Vec<String>, Described)),
    ) -> Self {
        let Text { source, program, mut errors, mut warnings } = text;
        let Some(program) = program else {
            return Self { source, warnings, errors, modes: vec![], orders: None, shown: None };
        };
        let verdict = verdict(&program, &source);
        let Header { name, coll, collective, protocol, nranks, min_bytes, max_bytes, .. } =
            &program.header;
        let (operations, blocks) = program.size();
        let described = Described {
            name: name.clone(),
            coll: coll.clone(),
            collective: collective.map(Collective::name),
            nranks: *nranks,
            protocol: protocol.name(),
            channels: None,
            chunks: None,
            operations,
            blocks,
            seconds: 0.0,
            modes: verdict.modes.iter().map(ProvedMode::new).collect(),
            orders: verdict.orders,
            stretches: verdict.stretches.clone(),
            min_bytes: *min_bytes,
            max_bytes: *max_bytes,
            connections: None,
        };
        let what = described.collective.unwrap_or(coll);
        let ranks = count(*nranks as usize, "rank");
        let title = format!("{name} ({what}, {ranks}, {})", protocol.name());
        let mut shown = (title, claims(*collective, &verdict), described);
        more(&program, &verdict, &mut shown);
        errors.extend(verdict.errors().cloned());
        warnings.extend(verdict.warnings);
        let (modes, orders) = (verdict.modes, verdict.orders);
        Self { source, warnings, errors, modes, orders, shown: Some(shown) }
    }

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
    let operations = found.shown.as_ref().map_or(0, |(.., described)| described.operations);
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
            program: found.shown.map(|(.., described)| Described { seconds, ..described }),
            stats,
            diagnostics: all.iter().map(|d| JsonDiagnostic::new(d, &found.source)).collect(),
        }),
    }
    Ok(ok)
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
        return Err(refuse(format, &all, &found.source, wrong));
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

fn print_human(
    (name, lines, described): &(String, Vec<String>, Described),
    (errors, seconds): (usize, f64),
) {
    if errors > 0 {
        print(&format!("   \x1b[1;91mfailed\x1b[0m {name}: {}", count(errors, "error")));
        return;
    }
    let size = format!(
        "{} in up to {} a rank, in {}",
        count(described.operations, "operation"),
        count(described.blocks, "block"),
        took(seconds)
    );
    let word = if described.collective.is_some() { "proved" } else { "looked at" };
    print(&format!("   \x1b[1;92m{word}\x1b[0m {name}: {size}"));
    for line in lines {
        print(&within_a_page(&format!("          {line}"), 14));
    }
}

impl ProvedMode {
    fn new(checked: &Checked) -> Self {
        let mode = match checked.mode {
            Mode::OutOfPlace => "out_of_place",
            Mode::InPlace => "in_place",
            Mode::Both => "both",
        };
        Self { mode, right: checked.errors.is_empty() }
    }
}

/// Returns the claims about every right program.
fn claims(collective: Option<Collective>, verdict: &Verdict) -> Vec<String> {
    let contribution = match collective {
        Some(_) => "every contribution exactly once",
        None => "what it must have at its end is not known",
    };
    let modes: Vec<_> = verdict.modes.iter().map(|checked| checked.mode.name()).collect();
    let mut lines =
        vec![format!("no deadlock, no data race, {contribution}; {}", modes.join(", and "))];
    lines.extend(verdict.orders.map(|orders| match orders {
        1 => "all ranks reduce in one order".to_owned(),
        _ => format!("ranks reduce in {orders} orders: floats may differ from rank to rank"),
    }));
    lines
}

/// Returns the claim about the sizes of calls of a right program for MSCCL.
fn line_of_sizes(header: &msccl::Header, safe: Safe, connections: Connections) -> String {
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
    match safe {
        Safe { bytes: None, .. } => format!("calls of any size end; {declared}; {of}"),
        Safe { bytes: Some(bytes), chunks } => format!(
            "calls of up to {bytes} bytes end, as {chunks} chunks fit a message; {declared}; {of}"
        ),
    }
}

/// Returns the claims that only a right plan has.
fn plan_lines(program: &mscclpp::Program, verdict: &Verdict) -> Vec<String> {
    let header = &program.header;
    let [input, output, _] = program.gpus.first().map_or([0; 3], |gpu| gpu.chunks);
    let declared = match (header.min_bytes, header.max_bytes) {
        (0, None) => "calls of any size are declared".to_owned(),
        (least, None) => format!("calls of {least} bytes and more are declared"),
        (least, Some(most)) => format!("calls of {least} to {most} bytes are declared"),
    };
    let mut lines = vec![format!(
        "{declared}; the executor takes multiples of {} bytes for each of {input} chunks of input and {output} of \
         output",
        header.own.alignment
    )];
    if let [one, several] = verdict.stretches[..] {
        lines.push(format!("loops were laid out with {one} and with {several} stretches"));
    }
    if header.own.doubled {
        lines.push("two calls were laid out, one for each half of the scratch".to_owned());
    }
    lines
}
