//! `roundelay check`: proves every algorithm for every rank count asked for.

use std::time::Instant;

use clap::Args;
use roundelay::{Algorithm as _, OrderClass, Promises};
use roundelay_core::certificate::Certificate;
use roundelay_core::check::Verify;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::expansion::{CountErrors, counted};
use roundelay_core::layout::Configured;
use roundelay_core::layout::roots::{self, WithRoot};
use roundelay_core::stages;
use roundelay_core::syntax::Source;
use roundelay_core::units::count;
use roundelay_core::values::resource::Resource;
use roundelay_core::verify::Signals;
use roundelay_core::{AnyProof, prove_many};
use serde::Serialize;

use crate::every::Every;
use crate::facts::facts;
use crate::flags::SourceFlags;
use crate::interrupt;
use crate::msccl::{self, MscclFlags};
use crate::optimum::Optimum;
use crate::program::{Loaded, load_with, read};
use crate::progress;
use crate::report::{
    Failure, Format, JsonDiagnostic, exit_code, print_all, refuse, took, within_a_page,
};
use crate::stats::Stats;
use crate::streams::{is_verbose, print, print_json};
use crate::tally::Tally;
use crate::topology;
use crate::values::{RankCounts, budget, promises, rank_counts, signals};

#[derive(Args, Clone)]
pub(crate) struct CheckFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// More sources, each of them checked by itself
    #[arg(value_name = "SOURCE")]
    pub(crate) more: Vec<String>,
    /// Rank counts: 8, 2..=33, 2..9, or a list such as 2,4,8 [default: those that the source names, or all ranks of the
    /// topology, or 1..=9]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    /// How the runtime's signals behave: counting, binary (a flag: a second post before the wait is lost), link-shared
    /// (all streams of a rank share the signals of a link), or binary,link-shared
    #[arg(long, default_value = "counting", value_parser = signals)]
    pub(crate) signals: Signals,
    /// The most of a resource that an algorithm may use: scratch (units of the count, of a rank), streams (of a rank),
    /// notifies (of a link), ports (peers of a rank in one step) or fifo (credits that a link needs), such as
    /// streams=2,notifies=2
    #[arg(long = "budget", value_name = "RESOURCE=MOST", value_delimiter = ',', value_parser = budget)]
    pub(crate) budgets: Vec<(Resource, u64)>,
    /// Require the same order of reduction on every rank
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// Require promises about the order of reduction: any of `all_ranks`, `all_elements`, `all_counts` (batch
    /// invariant), `rank_order` and `roundings=MOST` (of f16, bf16 and fp8), or `all`
    #[arg(long, value_name = "PROMISES", value_parser = promises)]
    pub(crate) order: Option<Promises>,
    #[command(flatten)]
    pub(crate) msccl: MscclFlags,
    /// Print the time of each stage of the proof, the ops per second and the peak memory
    #[arg(long)]
    pub(crate) stats: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Serialize)]
struct CheckReport {
    ok: bool,
    file: String,
    algorithms: Vec<Checked>,
    diagnostics: Vec<JsonDiagnostic>,
}

#[derive(Serialize)]
struct Checked {
    name: String,
    collective: &'static str,
    ok: bool,
    seconds: f64,
    ops: u64,
    nranks: Vec<u32>,
    proved: Vec<u32>,
    /// The values of the parameters that the proofs hold for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
    refused: Vec<RefusedCount>,
    /// The rank count at which Ctrl-C ended the proofs.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<u32>,
    #[serde(serialize_with = "facts")]
    certificates: Vec<Certificate>,
    /// Where no error was found at the counts asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    every_nranks: Option<Every>,
    /// On the given topology, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<Optimum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    #[serde(skip)]
    errors: Vec<Diagnostic>,
    /// The time of the proof at each rank count, for `--verbose`.
    #[serde(skip)]
    each: Vec<String>,
}

#[derive(Serialize)]
struct RefusedCount {
    nranks: u32,
    reason: String,
}

/// Checks one source after the other, whatever the errors of earlier ones; the exit code is the worst of all.
pub(crate) fn main(mut flags: CheckFlags) -> u8 {
    // From now on Ctrl-C ends with the counts that are proved.
    interrupt::happened();
    let more = std::mem::take(&mut flags.more);
    let several = !more.is_empty();
    let (begun, mut tally) = (Instant::now(), Tally::default());
    let mut worst = 0;
    for name in std::iter::once(flags.source.source.clone()).chain(more) {
        if several && flags.format == Format::Human {
            print(&format!("     \x1b[1mfile\x1b[0m {name}"));
        }
        flags.source.source = name;
        let before = tally.algorithms();
        let code = exit_code(check(&flags, &mut tally));
        tally.source(code, before);
        worst = worst.max(code);
        if interrupt::happened() {
            return interrupt::ENDED;
        }
    }
    if several && flags.format == Format::Human {
        tally.print(begun.elapsed().as_secs_f64());
    }
    worst
}

fn check(flags: &CheckFlags, tally: &mut Tally) -> Result<bool, Failure> {
    if msccl::is_program(&flags.source.source) {
        return check_program(flags, tally);
    }
    flags.msccl.absent()?;
    let source = read(&flags.source.source)?;
    let given = topology::given(&flags.source.topology)?;
    let report = |ok, algorithms, diagnostics| {
        let file = source.name().to_owned();
        CheckReport { ok, file, algorithms, diagnostics }
    };
    let mut warnings = Vec::new();
    let loaded = load_with(&source, &flags.source, given.as_ref(), |found| warnings = found)?;
    let mut algorithms = match loaded {
        Loaded::Ready(algorithms) => algorithms,
        Loaded::Wrong(errors) => {
            return Err(refuse(flags.format, &errors, &source, |d| report(false, vec![], d)));
        }
    };
    for algorithm in &mut algorithms {
        if flags.deterministic {
            algorithm.demand_order(OrderClass::AllRanks);
        }
        let promises = flags.order.unwrap_or_default();
        let kept = OrderClass::ALL.into_iter().filter(|class| promises.has(*class));
        kept.for_each(|class| algorithm.demand_order(class));
        if let Some(most) = promises.most_roundings() {
            algorithm.demand_roundings(most);
        }
        for (resource, most) in &flags.budgets {
            algorithm.demand_at_most(*resource, *most);
        }
    }
    let prove = |algorithm| prove_all(algorithm, flags, &source);
    let checked: Vec<Checked> = algorithms.iter().map(prove).collect();
    for c in &checked {
        tally.algorithm(c.ok, !c.refused.is_empty());
    }
    let ok = checked.iter().all(|c| c.ok);
    match flags.format {
        Format::Human => {
            print_all(&warnings, &source);
            for c in &checked {
                print_all(&c.errors, &source);
                print_human(c);
                if let Some(stats) = &c.stats {
                    stats.print();
                }
            }
        }
        Format::Json => {
            let errors = checked.iter().flat_map(|c| &c.errors);
            let diagnostics =
                warnings.iter().chain(errors).map(|d| JsonDiagnostic::new(d, &source)).collect();
            print_json(&report(ok, checked, diagnostics));
        }
    }
    Ok(ok)
}

/// Checks a program for MSCCL, whose file contains the values that most flags set.
fn check_program(flags: &CheckFlags, tally: &mut Tally) -> Result<bool, Failure> {
    let source = &flags.source;
    let given = [
        ("--nranks", flags.nranks.is_some()),
        ("--algorithm", source.algorithm.is_some()),
        ("--set", !source.settings.is_empty()),
        ("--topology", source.topology.topology.is_some()),
        ("--budget", !flags.budgets.is_empty()),
        ("--order", flags.order.is_some()),
        ("--signals", flags.signals != Signals::default()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        let title = format!("{flag} does not go with a program for MSCCL");
        return Err(Failure::usage(Code::BadCall, title)
            .with_help("its ranks, blocks and signals stand in the file"));
    }
    let ok = msccl::check(&msccl::MscclCheck {
        path: &source.source,
        msccl: &flags.msccl,
        lints: &source.lints,
        deterministic: flags.deterministic,
        stats: flags.stats,
        format: flags.format,
    })?;
    tally.algorithm(ok, false);
    Ok(ok)
}

/// Returns the counts that were asked for: by a flag, by the given machine, by an attribute, or else small ones.
fn counts(algorithm: &Configured, flags: &CheckFlags) -> RankCounts {
    if let Some(nranks) = &flags.nranks {
        return nranks.clone();
    }
    if let Some(topology) = algorithm.topology() {
        return RankCounts::one(topology.nranks());
    }
    let declaration = &algorithm.program().declaration;
    match (&declaration.verify, declaration.machine) {
        (Some(Verify::Counts { counts, named, .. }), _) => {
            RankCounts { counts: counts.clone(), named: *named }
        }
        (_, Some(machine)) => RankCounts::range(machine..=machine),
        _ => RankCounts::range(1..=9),
    }
}

fn prove_all(algorithm: &Configured, flags: &CheckFlags, source: &Source) -> Checked {
    let nranks = counts(algorithm, flags);
    // It takes no longer for more ranks, so it can be told while they are proved.
    let every = Every::new(algorithm.program(), source);
    let prove = || prove_each(algorithm, &nranks, flags, source, &every);
    let mut checked = if flags.stats {
        let (mut checked, spent) = stages::record(prove);
        checked.stats = Some(Stats::new(spent, usize::try_from(checked.ops).unwrap_or(usize::MAX)));
        checked
    } else {
        prove()
    };
    checked.every_nranks = checked.errors.is_empty().then_some(every);
    checked
}

fn prove_each(
    algorithm: &Configured,
    nranks: &RankCounts,
    flags: &CheckFlags,
    source: &Source,
    every: &Every,
) -> Checked {
    let start = Instant::now();
    let mut checked = Checked {
        name: algorithm.name().to_owned(),
        collective: algorithm.collective().name(),
        ok: true,
        seconds: 0.0,
        ops: 0,
        nranks: nranks.counts.clone(),
        proved: Vec::new(),
        values: Vec::new(),
        refused: Vec::new(),
        stopped: None,
        certificates: Vec::new(),
        every_nranks: None,
        bounds: Vec::new(),
        stats: None,
        errors: Vec::new(),
        each: Vec::new(),
    };
    let mut slips = CountErrors::default();
    let mut held = Vec::new();
    for &n in &nranks.counts {
        if slips.settled() {
            break;
        }
        let known = if every.is_proved() { format!("{}; ", every.line()) } else { String::new() };
        progress::about(format!("{} {known}{n} ranks", checked.name));
        let (mut first, mut refusal, mut wrong) = (None, None, false);
        let (begun, before) = (Instant::now(), checked.ops);
        let at = algorithm.roots().each(n, roots::MOST_OPS, |root| {
            let with = algorithm.with_root(root);
            let Some(proved) = interrupt::until(|| prove_many(&with, n, flags.signals)) else {
                checked.stopped = Some(n);
                return WithRoot::Ended;
            };
            match proved {
                Ok(proved) => {
                    let (ops, root) = match &proved {
                        AnyProof::Direct(all, _) => {
                            (all.schedule().ops.len() as u64, all.schedule().root)
                        }
                        AnyProof::Symmetric(one) => (one.ops(), one.of.own.root),
                    };
                    checked.ops += ops;
                    first.get_or_insert(proved);
                    WithRoot::Proved { root, ops }
                }
                Err(errors) if errors.iter().all(|e| e.code.refuses()) => {
                    refusal.get_or_insert(errors);
                    WithRoot::Refused
                }
                Err(errors) => {
                    slips.add(errors);
                    wrong = true;
                    WithRoot::Ended
                }
            }
        });
        if checked.stopped.is_some() {
            break;
        }
        match (first, refusal) {
            _ if wrong => {}
            (Some(proved), _) => {
                checked.proved.push(n);
                held.push(at);
                let how = match &proved {
                    AnyProof::Direct(..) => "",
                    AnyProof::Symmetric(_) => ", one rank for all by symmetry",
                };
                let (ops, spent) = (checked.ops - before, took(begun.elapsed().as_secs_f64()));
                checked.each.push(format!("{}: {ops} ops in {spent}{how}", count(n, "rank")));
                checked.certificates.push(Certificate::new(&proved, flags.signals));
                if let AnyProof::Direct(proved, _) = &proved {
                    let optimum = algorithm.topology().and_then(|t| Optimum::new(proved, t));
                    checked.bounds.extend(optimum);
                }
            }
            (None, Some(errors)) if !nranks.named => {
                let reason = errors.into_iter().next().map(reason).unwrap_or_default();
                checked.refused.push(RefusedCount { nranks: n, reason });
            }
            (None, Some(errors)) => slips.add(errors),
            (None, None) => {}
        }
    }
    checked.errors = slips.errors;
    checked.values = algorithm.held(source, &held, every.holds_in_any_order(&checked.proved));
    if checked.proved.is_empty() && checked.errors.is_empty() && checked.stopped.is_none() {
        let reason = checked.refused.first().map_or(String::new(), |r| r.reason.clone());
        let title = format!("{} admits none of the rank counts asked for", checked.name);
        let place = algorithm.program().header();
        checked.errors.push(Diagnostic::new(Code::NothingAdmitted, place, title).note(reason));
    }
    checked.ok = checked.errors.is_empty() && checked.stopped.is_none();
    checked.seconds = start.elapsed().as_secs_f64();
    checked
}

/// Returns why a rank count is refused. The title of a `require` names the algorithm and the count, which stand beside
/// it already.
fn reason(refusal: Diagnostic) -> String {
    match refusal.title.split_once(": ") {
        Some((_, why)) if refusal.code == Code::RankCountRefused => why.to_owned(),
        _ => refusal.title,
    }
}

fn print_human(checked: &Checked) {
    for same in checked.refused.chunk_by(|a, b| a.reason == b.reason) {
        let counts: Vec<u32> = same.iter().map(|r| r.nranks).collect();
        let (name, reason) = (&checked.name, &same[0].reason);
        print(&format!(
            "  \x1b[1;93mrefused\x1b[0m {name} for nranks {}: {reason}",
            counted(&counts)
        ));
    }
    if let Some(nranks) = checked.stopped {
        let so_far = match &checked.proved[..] {
            [] => "nothing was proved before".to_owned(),
            proved => format!("proved for nranks {} before", counted(proved)),
        };
        let name = &checked.name;
        print(&format!("  \x1b[1;93mstopped\x1b[0m {name} at {nranks} ranks: {so_far}"));
        if let Some(every) = checked.every_nranks.as_ref().filter(|every| every.is_proved()) {
            print(&format!("          {}", every.line()));
        }
    } else if checked.ok {
        print(&format!(
            "   \x1b[1;92mproved\x1b[0m {} ({}) for nranks {}: {} ops in {}",
            checked.name,
            checked.collective,
            counted(&checked.proved),
            checked.ops,
            took(checked.seconds)
        ));
        for line in checked.each.iter().filter(|_| is_verbose()) {
            print(&format!("          {line}"));
        }
        if let Some(every) = &checked.every_nranks {
            print(&within_a_page(&format!("          {}", every.line()), 14));
        }
        if !checked.values.is_empty() {
            print(&within_a_page(&format!("          for {}", checked.values.join(", ")), 14));
        }
        if let Some(counts) = checked.certificates.iter().rev().find_map(Certificate::counts) {
            print(&within_a_page(&format!("          {counts}"), 14));
        }
        // The largest run says most.
        let on_topology = !checked.bounds.is_empty();
        for line in checked.certificates.last().map_or(vec![], |c| c.lines(!on_topology)) {
            print(&within_a_page(&format!("          {line}"), 14));
        }
        if let Some(optimum) = checked.bounds.last() {
            for line in optimum.lines() {
                print(&within_a_page(&format!("          {line}"), 14));
            }
        }
    } else {
        let n = checked.errors.len();
        print(&format!(
            "   \x1b[1;91mfailed\x1b[0m {} ({}): {}",
            checked.name,
            checked.collective,
            count(n, "error")
        ));
    }
}
