//! `roundelay kernel check`: communication kernels that others wrote, on several GPUs, without a GPU.

pub(crate) mod compile;
mod judge;
#[cfg(feature = "cuda")]
pub(crate) mod ours;
mod own_kernel;
mod printer;

use std::num::NonZero;
use std::path::Path;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use roundelay_core::diagnostics::Code;
use roundelay_kernel_check::harness::KernelModule;
use roundelay_kernel_check::{Case, CheckOptions, Compiled, Harness, State, Verdict};
use roundelay_ptx::BadText;
use roundelay_topology::Problem;

use crate::interrupt;
use crate::progress;
use crate::report::Failure;
use crate::streams;
use crate::values::{RankCounts, duration, rank_counts};
use own_kernel::OwnKernelFlags;
use printer::Printer;

#[derive(Args)]
pub(crate) struct KernelFlags {
    #[command(subcommand)]
    command: KernelCommand,
}

#[derive(Subcommand)]
enum KernelCommand {
    /// Check the communication kernels of harnesses under the memory model of PTX, on several GPUs, without a GPU
    Check(CheckFlags),
    /// Judge kernels that are to do a collective: each candidate of a folder in the same cases, with a score and a reason
    Judge(judge::JudgeFlags),
}

#[derive(Args)]
struct CheckFlags {
    /// Harnesses: files such as `ring.kernel.toml`, or - for standard input, TOML or JSON
    #[arg(value_name = "HARNESS", required_unless_present = "ours")]
    files: Vec<String>,
    #[command(flatten)]
    own: OwnKernelFlags,
    /// Check this case of the harnesses alone
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Seeds of each number of ranks with each number of elements [default: as the harness says]
    #[arg(long, value_name = "COUNT")]
    seeds: Option<NonZero<u64>>,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    first: u64,
    /// Numbers of ranks: 8, 2..=4, or a list such as 2,4,8 [default: as the harness says]
    #[arg(short = 'n', long, value_name = "RANKS", value_parser = rank_counts)]
    ranks: Option<RankCounts>,
    /// Elements of the calls, in turn, such as 64 or 64,1024,64 [default: as the harness says]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    elements: Vec<u32>,
    /// The longest time for a harness's case, such as 10s or 300s
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    budget: Duration,
    /// Print the cases of the harnesses, and check nothing
    #[arg(long)]
    list: bool,
    /// Exit with 0 where a kernel could not be checked to its end, too
    #[arg(long)]
    allow_partial: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    format: CheckFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    /// For people
    #[value(alias = "human")]
    Text,
    /// For programs
    Json,
    /// Annotations of a pull request, for a job of GitHub
    Github,
}

/// Runs the subcommand, and returns its exit code.
pub(crate) fn main(flags: &KernelFlags) -> u8 {
    let flags = match &flags.command {
        KernelCommand::Check(flags) => flags,
        KernelCommand::Judge(flags) => {
            interrupt::happened();
            return judge::main(flags);
        }
    };
    let own = flags.own.check();
    match (own, &flags.own.ours) {
        (Err(failure), _) => return failure.print(),
        (Ok(()), Some(source)) => {
            let printed = flags.own.print(source, flags.ranks.as_ref());
            return printed.map_or_else(Failure::print, |()| 0);
        }
        (Ok(()), None) => {}
    }
    // From now on Ctrl-C ends with the verdicts so far.
    interrupt::happened();
    let mut printer = Printer::new(flags.format);
    let mut worst = 0;
    for file in &flags.files {
        worst = worst.max(check(flags, file, &mut printer));
        if interrupt::happened() {
            worst = interrupt::ENDED;
            break;
        }
    }
    printer.end();
    worst
}

fn check(flags: &CheckFlags, file: &str, printer: &mut Printer) -> u8 {
    let text = match text_of(file) {
        Ok(text) => text,
        Err(problem) => return Failure::from(problem).print(),
    };
    let is_json = text.trim_start().starts_with('{');
    let read = if is_json { Harness::from_json(&text) } else { Harness::from_toml(&text) };
    let mut harnesses = match read {
        Ok(harnesses) => harnesses,
        Err(mistake) => return printer.wrong(&mistake.diagnostic(file, &text)),
    };
    if let Some(case) = &flags.case {
        let names: Vec<_> = harnesses.iter().filter_map(|harness| harness.case.clone()).collect();
        harnesses.retain(|harness| harness.case.as_ref() == Some(case));
        if harnesses.is_empty() {
            let wrong = Failure::usage(Code::BadFlag, format!("`{file}` has no case `{case}`"));
            return wrong.with_help(format!("its cases are: {}", names.join(", "))).print();
        }
    }
    if flags.list {
        printer.list(file, &harnesses);
        return 0;
    }
    let mut worst = 0;
    for mut harness in harnesses {
        if let Some(ranks) = &flags.ranks {
            harness.run.ranks.clone_from(&ranks.counts);
        }
        if !flags.elements.is_empty() {
            harness.run.elements = vec![flags.elements.iter().map(|&count| count.into()).collect()];
        }
        worst = worst.max(match run(flags, file, &harness) {
            Ok((cases, verdict)) => {
                printer.verdict((file, &text), &harness, &cases, &verdict);
                exit_code(flags, &verdict)
            }
            Err(problem) => printer.problem(file, &harness, problem),
        });
        if interrupt::happened() {
            break;
        }
    }
    worst
}

fn text_of(file: &str) -> Result<String, Problem> {
    let bytes = if file == "-" { streams::input() } else { streams::source(file) };
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|why| why.to_string()));
    text.map_err(|why| {
        Problem::new(Code::UnreadableSource, format!("`{file}` cannot be read: {why}"))
    })
}

/// The cases of a harness, whose modules `compile` compiles.
fn cases(
    harness: &Harness,
    compile: impl Fn(&KernelModule, u32) -> Result<Compiled, Problem>,
) -> Result<Vec<Case>, Problem> {
    harness.cases(compile, |module, bad: &BadText| {
        let title = format!("the PTX of `{}`, line {}: {}", module.name, bad.line, bad.what);
        Problem::new(Code::KernelUnchecked, title)
    })
}

fn run(flags: &CheckFlags, file: &str, harness: &Harness) -> Result<(Vec<Case>, Verdict), Problem> {
    progress::shown(|| {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let name = case_name(file, harness);
        progress::about(format!("{name}: compiles"));
        let cases = cases(harness, |module, ranks| compile::module(module, ranks, folder))?;
        let stop = interrupt::stop();
        let options = CheckOptions {
            seeds: flags.seeds.map(NonZero::get),
            first: flags.first,
            budget: flags.budget,
            threads: available_parallelism().map_or(1, NonZero::get),
            explain: true,
            stop: &|| stop.is_some_and(|stop| stop()),
            progress: &|text| progress::about(format!("{name}: {text}")),
        };
        let checked = harness.check(&cases, &options);
        let verdict = checked.map_err(|why| Problem::new(Code::BadHarness, why))?;
        Ok((cases, verdict))
    })
}

/// The name of a harness's case, for people.
fn case_name(file: &str, harness: &Harness) -> String {
    harness.case.as_ref().map_or(file.to_owned(), |case| format!("{file}, {case}"))
}

fn exit_code(flags: &CheckFlags, verdict: &Verdict) -> u8 {
    match (verdict.is_as_stated(), verdict.state) {
        _ if verdict.is_right() => 0,
        (None, State::Unsupported | State::Limit) if flags.allow_partial => 0,
        (None, State::Unsupported | State::Limit) => 2,
        _ => 1,
    }
}
