//! `roundelay signals`: the needed signals of an algorithm, and their purpose.

use clap::Args;
use roundelay::Algorithm as _;
use roundelay_core::layout::Configured;
use roundelay_core::optimize::elide::{Elided, Reason, elide, reasons};
use roundelay_core::prove_source;
use roundelay_core::verify;
use serde::Serialize;

use crate::flags::{Callers, SourceFlags};
use crate::program::{Loaded, load, one, read};
use crate::progress;
use crate::report::{Failure, Format, JsonDiagnostic, name_counts, refuse};
use crate::streams::{print, print_json};
use crate::values::{RankCounts, rank_counts};

#[derive(Args)]
pub(crate) struct SignalsFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Rank counts: 8, 2..=33, 2..9, or a list such as 2,4,8 [default: 8]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    /// How the ranks are called; if one call runs all ranks, it waits for the last one by itself
    #[arg(long, value_enum, default_value_t = Callers::Each)]
    pub(crate) callers: Callers,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Serialize)]
struct SignalsReport {
    ok: bool,
    algorithm: Option<String>,
    results: Vec<Needed>,
    diagnostics: Vec<JsonDiagnostic>,
}

/// The signals of one rank count.
#[derive(Serialize)]
struct Needed {
    nranks: u32,
    callers: &'static str,
    signals: usize,
    kept: usize,
    /// Whether no signal can be dropped by itself.
    least: bool,
    /// Why no signal was dropped, where that was not tried.
    unchanged: Option<String>,
    reasons: Vec<JsonReason>,
}

#[derive(Serialize)]
struct JsonReason {
    line: u32,
    signal: &'static str,
    times: usize,
    why: String,
}

/// The number of ranks where none is given.
const DEFAULT: u32 = 8;

pub(crate) fn main(flags: &SignalsFlags) -> Result<bool, Failure> {
    let source = read(&flags.source.source)?;
    let report = |algorithm, results, diagnostics: Vec<_>| SignalsReport {
        ok: diagnostics.is_empty(),
        algorithm,
        results,
        diagnostics,
    };
    let stop =
        |errors: &[_]| Err(refuse(flags.format, errors, &source, |d| report(None, Vec::new(), d)));
    let algorithms = match load(&source, &flags.source)? {
        Loaded::Ready(algorithms) => algorithms,
        Loaded::Wrong(errors) => return stop(&errors),
    };
    let algorithm = one(algorithms, &source)?;
    let mut results = Vec::new();
    for nranks in RankCounts::or(flags.nranks.as_ref(), DEFAULT).counts {
        progress::about(format!("{}, {nranks} ranks", algorithm.name()));
        match needed(&algorithm, nranks, flags.callers.into()) {
            Ok(needed) => results.push(needed),
            Err(mut errors) => {
                let default = flags.nranks.is_none().then_some(DEFAULT);
                name_counts(&mut errors, &algorithm, default);
                return stop(&errors);
            }
        }
    }
    match flags.format {
        Format::Human => results.iter().for_each(print_human),
        Format::Json => {
            print_json(&report(Some(algorithm.name().to_owned()), results, Vec::new()));
        }
    }
    Ok(true)
}

fn needed(
    algorithm: &Configured,
    nranks: u32,
    callers: verify::Callers,
) -> Result<Needed, Vec<roundelay_core::diagnostics::Diagnostic>> {
    let proved = prove_source(algorithm, nranks)?;
    let elided = elide(proved.schedule(), callers).map_err(|found| {
        found.into_iter().map(|f| algorithm.diagnostic(f, nranks)).collect::<Vec<_>>()
    })?;
    Ok(Needed::new(&elided, callers))
}

impl Needed {
    fn new(elided: &Elided, callers: verify::Callers) -> Self {
        let (kept, dropped) = elided.between_ranks();
        let json = |Reason { line, signal, times, why }| JsonReason { line, signal, times, why };
        Self {
            nranks: elided.schedule.nranks,
            callers: match callers {
                verify::Callers::One => "one",
                verify::Callers::Each => "each",
                verify::Callers::Announced => "announced",
            },
            signals: kept + dropped,
            kept,
            least: elided.least,
            unchanged: elided.unchanged.map(|why| why.to_string()),
            reasons: reasons(elided).into_iter().map(json).collect(),
        }
    }

    /// Returns a heading: `8 ranks, each with a caller: 120 of 224 signals are needed`
    fn heading(&self) -> String {
        let Self { nranks, signals, kept, .. } = self;
        let plural = if *nranks == 1 { "" } else { "s" };
        let callers = if self.callers == "one" { "one caller" } else { "each with a caller" };
        let head = format!("{nranks} rank{plural}, {callers}");
        match (&self.unchanged, kept) {
            (Some(why), _) => format!("{head}: all {signals} signals stay, for {why}"),
            (None, 0) if *signals == 0 => format!("{head}: no signals"),
            (None, _) if self.least => format!("{head}: {kept} of {signals} signals are needed"),
            (None, _) => format!("{head}: {kept} of {signals} signals are needed, or fewer"),
        }
    }
}

fn print_human(needed: &Needed) {
    print(&needed.heading());
    if needed.unchanged.is_some() || needed.reasons.is_empty() {
        return;
    }
    let width = |of: &dyn Fn(&JsonReason) -> usize| needed.reasons.iter().map(of).max();
    let signal = width(&|r| r.signal.len()).unwrap_or(0).max("signal".len());
    print(&format!("  line  {:<signal$}  times  what it orders, for example", "signal"));
    for JsonReason { line, signal: name, times, why } in &needed.reasons {
        print(&format!("  {line:>4}  {name:<signal$}  {times:>5}  {why}"));
    }
}
