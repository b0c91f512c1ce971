//! `roundelay check`: proves every algorithm for every rank count asked for.

use std::time::Instant;

use roundelay::{Algorithm as _, Schedule};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::prove_source;
use roundelay_core::schedule::interpret::Interpreted;
use roundelay_core::stages;
use roundelay_core::verify::links;
use serde::Serialize;

use crate::flags::{CheckFlags, Format, RankCounts};
use crate::optimum::Optimum;
use crate::program::{Loaded, load_on, read};
use crate::report::{Failure, JsonDiagnostic, print, print_all, print_json, refuse};
use crate::stats::Stats;
use crate::topology;

#[derive(Serialize)]
struct Report {
    ok: bool,
    nranks: Vec<u32>,
    algorithms: Vec<Checked>,
    diagnostics: Vec<JsonDiagnostic>,
}

#[derive(Serialize)]
struct Checked {
    name: String,
    collective: &'static str,
    ok: bool,
    seconds: f64,
    ops: usize,
    proved: Vec<u32>,
    refused: Vec<Refused>,
    /// On the topology, if one was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<Optimum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    #[serde(skip)]
    errors: Vec<Diagnostic>,
}

#[derive(Serialize)]
struct Refused {
    nranks: u32,
    reason: String,
}

pub(crate) fn main(flags: &CheckFlags) -> Result<bool, Failure> {
    let source = read(&flags.source.source)?;
    let given = topology::given(&flags.source.topology)?;
    let nranks = match (&flags.nranks, &given) {
        (Some(nranks), _) => nranks.clone(),
        (None, Some(given)) => RankCounts::one(given.topology.nranks()),
        (None, None) => RankCounts::range(1..=9),
    };
    let report = |ok, algorithms, diagnostics| Report {
        ok,
        nranks: nranks.counts.clone(),
        algorithms,
        diagnostics,
    };
    let algorithms = match load_on(&source, &flags.source, given.as_ref())? {
        Loaded::Ready(algorithms) => algorithms,
        Loaded::Wrong(errors) => {
            return Err(refuse(flags.format, &errors, &source, |d| report(false, vec![], d)));
        }
    };
    let checked: Vec<Checked> =
        algorithms.iter().map(|algorithm| prove_all(algorithm, &nranks, flags.stats)).collect();
    let ok = checked.iter().all(|c| c.ok);
    match flags.format {
        Format::Human => checked.iter().for_each(|c| {
            print_all(&c.errors, &source);
            print_human(c);
            if let Some(stats) = &c.stats {
                stats.print();
            }
        }),
        Format::Json => {
            let errors = checked.iter().flat_map(|c| &c.errors);
            let diagnostics = errors.map(|d| JsonDiagnostic::new(d, &source)).collect();
            print_json(&report(ok, checked, diagnostics));
        }
    }
    Ok(ok)
}

fn prove_all(algorithm: &Interpreted, nranks: &RankCounts, stats: bool) -> Checked {
    if !stats {
        return prove_each(algorithm, nranks);
    }
    let (mut checked, spent) = stages::record(|| prove_each(algorithm, nranks));
    checked.stats = Some(Stats::new(spent, checked.ops));
    checked
}

fn prove_each(algorithm: &Interpreted, nranks: &RankCounts) -> Checked {
    let start = Instant::now();
    let mut checked = Checked {
        name: algorithm.name().to_owned(),
        collective: algorithm.collective().name(),
        ok: true,
        seconds: 0.0,
        ops: 0,
        proved: Vec::new(),
        refused: Vec::new(),
        bounds: Vec::new(),
        stats: None,
        errors: Vec::new(),
    };
    for &n in &nranks.counts {
        let proved = prove_source(algorithm, n).and_then(|proved| {
            on_links(algorithm, proved.schedule())?;
            Ok(proved)
        });
        match proved {
            Ok(proved) => {
                checked.ops += proved.schedule().ops.len();
                checked.proved.push(n);
                checked.bounds.extend(algorithm.topology().and_then(|t| Optimum::new(&proved, t)));
            }
            Err(errors) if !nranks.named && errors.iter().all(|e| e.code.refuses()) => {
                let reason = errors.into_iter().next().map(reason).unwrap_or_default();
                checked.refused.push(Refused { nranks: n, reason });
            }
            Err(errors) => checked.errors.extend(new_ones(errors, &checked.errors)),
        }
    }
    if checked.proved.is_empty() && checked.errors.is_empty() {
        let reason = checked.refused.first().map_or(String::new(), |r| r.reason.clone());
        let title = format!("{} admits none of the rank counts asked for", checked.name);
        let place = algorithm.checked().name_span;
        checked.errors.push(Diagnostic::new(Code::NothingAdmitted, place, title).note(reason));
    }
    checked.ok = checked.errors.is_empty();
    checked.seconds = start.elapsed().as_secs_f64();
    checked
}

/// Whether the topology, if one was given, has every link that the schedule uses.
fn on_links(algorithm: &Interpreted, schedule: &Schedule) -> Result<(), Vec<Diagnostic>> {
    let Some(topology) = algorithm.topology() else { return Ok(()) };
    let missing = links(schedule, topology);
    if missing.is_empty() {
        return Ok(());
    }
    Err(missing.into_iter().map(|f| algorithm.diagnostic(f, schedule.nranks)).collect())
}

/// Why a rank count is refused. The title of a `require` names the algorithm and the count, which stand
/// beside it already.
fn reason(refusal: Diagnostic) -> String {
    match refusal.title.split_once(": ") {
        Some((_, why)) if refusal.code == Code::RankCountRefused => why.to_owned(),
        _ => refusal.title,
    }
}

/// The same mistake at the same place is reported for the smallest rank count that shows it.
fn new_ones(errors: Vec<Diagnostic>, known: &[Diagnostic]) -> Vec<Diagnostic> {
    errors
        .into_iter()
        .filter(|e| !known.iter().any(|k| k.code == e.code && k.primary == e.primary))
        .collect()
}

fn print_human(checked: &Checked) {
    for same in checked.refused.chunk_by(|a, b| a.reason == b.reason) {
        let counts: Vec<u32> = same.iter().map(|r| r.nranks).collect();
        let (name, reason) = (&checked.name, &same[0].reason);
        print(&format!(
            "  \x1b[1;93mrefused\x1b[0m {name} for nranks {}: {reason}",
            spans(&counts)
        ));
    }
    if checked.ok {
        print(&format!(
            "   \x1b[1;92mproved\x1b[0m {} ({}) for nranks {}: {} ops in {:.1} ms",
            checked.name,
            checked.collective,
            spans(&checked.proved),
            checked.ops,
            checked.seconds * 1e3
        ));
        // The largest run says most.
        if let Some(optimum) = checked.bounds.last() {
            print(&format!("          {}", optimum.line()));
        }
    } else {
        let n = checked.errors.len();
        let plural = if n == 1 { "" } else { "s" };
        print(&format!(
            "   \x1b[1;91mfailed\x1b[0m {} ({}): {n} error{plural}",
            checked.name, checked.collective
        ));
    }
}

/// `2..=5, 8` for 2 3 4 5 8.
fn spans(counts: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &n in counts {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => runs.push((n, n)),
        }
    }
    let text =
        |&(lo, hi): &(u32, u32)| if lo == hi { lo.to_string() } else { format!("{lo}..={hi}") };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}
