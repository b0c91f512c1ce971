//! `roundelay check`: proves every algorithm for every rank count asked for.

use std::time::Instant;

use clap::Args;
use roundelay::{OrderClass, Promises};
use roundelay_core::check::Verify;
use roundelay_core::diagnostics::Code;
use roundelay_core::expansion::ranges;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::stages;
use roundelay_core::syntax::Source;
use roundelay_core::units::count;
use roundelay_core::values::resource::Resource;
use roundelay_core::verdict::{Asked, Every, Verdict, Within, reason};
use roundelay_core::verify::Signals;
use serde::{Serialize, Serializer};

use crate::facts::part;
use crate::flags::SourceFlags;
use crate::interrupt;
use crate::msccl::{self, MscclFlags};
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
    /// invariant), `rank_order`, `every_run` and `roundings=MOST` (of f16, bf16 and fp8), or `all`
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

/// A verdict, with the costs of its proofs.
#[derive(Serialize)]
struct Checked {
    #[serde(flatten, serialize_with = "whole")]
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
}

fn whole<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    part(&verdict.json(), serializer)
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
    let prove = |algorithm| proved(algorithm, flags, &source);
    let checked: Vec<Checked> = algorithms.iter().map(prove).collect();
    for c in &checked {
        tally.algorithm(c.verdict.is_right(), !c.verdict.refused.is_empty());
    }
    let ok = checked.iter().all(|c| c.verdict.is_right());
    match flags.format {
        Format::Human => {
            print_all(&warnings, &source);
            for c in &checked {
                print_all(&c.verdict.errors, &source);
                print_human(&c.verdict);
                if let Some(stats) = &c.stats {
                    stats.print();
                }
            }
        }
        Format::Json => {
            let errors = checked.iter().flat_map(|c| &c.verdict.errors);
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

fn proved(algorithm: &Configured, flags: &CheckFlags, source: &Source) -> Checked {
    let RankCounts { counts, named } = counts(algorithm, flags);
    let asked = Asked {
        named,
        signals: flags.signals,
        stop: interrupt::stop(),
        ..Asked::with_limits(&counts, Within::Plans)
    };
    let about = |n, every: &Every| {
        let known = if every.is_proved() { format!("{}; ", every.line()) } else { String::new() };
        progress::about(format!("{} {known}{n} ranks", algorithm.name()));
    };
    let prove = || Verdict::check(algorithm, source, &asked, about);
    if !flags.stats {
        return Checked { verdict: prove(), stats: None };
    }
    let (verdict, spent) = stages::record(prove);
    let ops = usize::try_from(verdict.ops).unwrap_or(usize::MAX);
    Checked { verdict, stats: Some(Stats::new(spent, ops)) }
}

fn print_human(verdict: &Verdict) {
    let Verdict { name, collective, refused, proved, every, .. } = verdict;
    let refused: Vec<_> = refused.iter().map(|(n, errors)| (n, reason(errors))).collect();
    for same in refused.chunk_by(|a, b| a.1 == b.1) {
        let counts: Vec<u32> = same.iter().map(|(n, _)| **n).collect();
        let (counts, reason) = (ranges(&counts), &same[0].1);
        print(&format!("  \x1b[1;93mrefused\x1b[0m {name} for nranks {counts}: {reason}"));
    }
    let below = |line: &str| print(&within_a_page(&format!("          {line}"), 14));
    if let Some(nranks) = verdict.stopped {
        let so_far = match &proved[..] {
            [] => "nothing was proved before".to_owned(),
            _ => format!("proved for nranks {} before", verdict.proved_counts()),
        };
        print(&format!("  \x1b[1;93mstopped\x1b[0m {name} at {nranks} ranks: {so_far}"));
        if let Some(every) = every.as_ref().filter(|every| every.is_proved()) {
            print(&format!("          {}", every.line()));
        }
    } else if verdict.is_right() {
        print(&format!(
            "   \x1b[1;92mproved\x1b[0m {name} ({collective}) for nranks {}: {} ops in {}",
            verdict.proved_counts(),
            verdict.ops,
            took(verdict.took.as_secs_f64())
        ));
        for one in proved.iter().filter(|_| is_verbose()) {
            let by = one.facts.certificate.symmetry.as_ref();
            let how = by.map_or("", |_| ", one rank for all by symmetry");
            let (ranks, spent) = (count(one.nranks(), "rank"), took(one.took.as_secs_f64()));
            print(&format!("          {ranks}: {} ops in {spent}{how}", one.ops));
        }
        if let Some(every) = every {
            below(&every.line());
        }
        if !verdict.values.is_empty() {
            below(&format!("for {}", verdict.values.join(", ")));
        }
        if let Some(counts) = proved.iter().rev().find_map(|one| one.facts.certificate.counts()) {
            below(&counts);
        }
        // The largest run says most.
        let optimum = proved.iter().rev().find_map(|one| one.facts.optimum.as_ref());
        if let Some(one) = proved.last() {
            one.facts.certificate.lines(optimum.is_none()).iter().for_each(|line| below(line));
        }
        if let Some(optimum) = optimum {
            optimum.lines().iter().for_each(|line| below(line));
        }
    } else {
        let errors = count(verdict.errors.len(), "error");
        print(&format!("   \x1b[1;91mfailed\x1b[0m {name} ({collective}): {errors}"));
    }
}
