//! `roundelay emit`: what a source becomes, at each stage that can be printed.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Args, ValueEnum};
use roundelay::{Algorithm as _, select};
use roundelay_core::diagnostics::{Code, Diagnostic, Finding, Severity};
use roundelay_core::expansion::rust::{Origin, each};
use roundelay_core::ids::RankId;
use roundelay_core::layout::{self, Configured};
use roundelay_core::messages::TwoSided;
use roundelay_core::program::{self as core_program};
use roundelay_core::schedule::{Schedule, text};
use roundelay_core::source::Span;
use roundelay_core::syntax;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::ast::File;
use roundelay_core::syntax::token::Tok;
use roundelay_export::steps::steps;
use roundelay_export::unrolled::{Export, unrolled};

use crate::executor;
use crate::exported::{self, ExportFlags};
use crate::flags::SourceFlags;
use crate::kernel::KernelFlags;
use crate::messages::{self, GoalFlags};
use crate::msccl;
use crate::mscclpp;
use crate::program::{self, Loaded, compile, load, one, read};
use crate::report::{Failure, Format, name_counts, print_all, refuse};
use crate::streams::print;
use crate::values::{RankCounts, rank_counts};

#[derive(Args)]
pub(crate) struct EmitFlags {
    /// What to print
    #[arg(value_enum)]
    pub(crate) what: Emit,
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Rank counts, for schedule, steps, cuda and ptx: 4, 2..=9, or a list such as 2,4,8; one for mpi, goal, msccl and
    /// mscclpp
    /// [default: 4]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    /// For steps: the ops of this rank alone, whose schedule may be too large to lay out for all ranks
    #[arg(long, value_name = "RANK")]
    pub(crate) rank: Option<u32>,
    /// For mscclpp: a plan for calls in place [default: input and output apart]
    #[arg(long)]
    pub(crate) in_place: bool,
    #[command(flatten)]
    pub(crate) kernel: KernelFlags,
    #[command(flatten)]
    pub(crate) goal: GoalFlags,
    #[command(flatten)]
    pub(crate) export: ExportFlags,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Emit {
    /// An algorithm in canonical form, with its comments, as a file of its own
    Coll,
    /// The Rust that the macro expands to
    Rust,
    /// What every rank does, in the compiler's intermediate form: few constructs, with loops
    Program,
    /// The flat schedule of one rank count
    Schedule,
    /// What goes between the ranks, one line for each step
    Steps,
    /// The syntax tree
    Ast,
    /// A GPU's kernel
    Cuda,
    /// A GPU's kernel, compiled
    Ptx,
    /// A C file that does it by MPI's sends and receives
    Mpi,
    /// Sends, receives and times in GOAL, for simulators
    Goal,
    /// A program in XML for MSCCL's runtime, in RCCL or elsewhere
    Msccl,
    /// An execution plan for MSCCL++, in JSON
    Mscclpp,
    /// An executor as C++ in the form of the contest
    HcclCpp,
}

/// The number of ranks where none is given.
const DEFAULT: u32 = 4;

pub(crate) fn main(flags: &EmitFlags) -> Result<bool, Failure> {
    if flags.rank.is_some() && !matches!(flags.what, Emit::Steps) {
        return Err(Failure::usage(Code::BadFlag, "`--rank` is for `emit steps`")
            .with_help("`emit schedule` prints all ranks: choose among its lines"));
    }
    if let Some(flag) = flags.goal.given().filter(|_| !matches!(flags.what, Emit::Goal)) {
        let help = "`roundelay run`, `bench` and `simulate` have sizes, too";
        return Err(
            Failure::usage(Code::BadFlag, format!("`{flag}` is for `emit goal`")).with_help(help)
        );
    }
    if let Some(flag) = flags.export.given().filter(|_| !matches!(flags.what, Emit::Msccl)) {
        let help = "`roundelay check FILE.xml` has a runtime, too";
        return Err(
            Failure::usage(Code::BadFlag, format!("`{flag}` is for `emit msccl`")).with_help(help)
        );
    }
    if flags.in_place && !matches!(flags.what, Emit::Mscclpp) {
        return Err(Failure::usage(Code::BadFlag, "`--in-place` is for `emit mscclpp`")
            .with_help("everything else that is printed holds for both ways to call it"));
    }
    if let Emit::HcclCpp = flags.what {
        return executor::export(&flags.source);
    }
    if msccl::is_program(&flags.source.source) {
        return exchanged(flags);
    }
    let source = read(&flags.source.source)?;
    let refuse = |errors: &[_]| refuse(Format::Human, errors, &source, |_| ());
    let stop = |errors: &[_]| Err(refuse(errors));
    let algorithm = || match load(&source, &flags.source)? {
        Loaded::Ready(algorithms) => one(algorithms, &source),
        Loaded::Wrong(errors) => Err(refuse(&errors)),
    };
    let default = flags.nranks.is_none().then_some(DEFAULT);
    match flags.what {
        Emit::Ast => {
            let (file, errors) = syntax::parse(&source);
            if !errors.is_empty() {
                return stop(&errors);
            }
            print(&format!("{file:#?}"));
        }
        Emit::Coll => {
            let (file, errors) = syntax::parse(&source);
            if !errors.is_empty() {
                return stop(&errors);
            }
            print(coll(&file, &source, flags)?.trim_end());
        }
        Emit::Rust => {
            let program = match flags.source.lints.apply(compile(&source))? {
                Ok((program, warnings)) => {
                    print_all(&warnings, &source);
                    program
                }
                Err(errors) => return stop(&errors),
            };
            let name = source.name();
            let origin = Origin {
                file: quote::quote!(#name),
                locate: &|span| source.location(span),
                span: &|_| proc_macro2::Span::call_site(),
            };
            for items in each(&program, &origin) {
                let file = syn::parse2(items).expect("the expansion is Rust");
                print(prettyplease::unparse(&file).trim_end());
            }
        }
        Emit::Cuda | Emit::Ptx => {
            flags.kernel.check()?;
            let algorithm = algorithm()?;
            for nranks in RankCounts::or(flags.nranks.as_ref(), DEFAULT).counts {
                let kernel = match flags.kernel.kernel(&algorithm, nranks) {
                    Ok(kernel) => kernel,
                    Err(mut errors) => {
                        name_counts(&mut errors, &algorithm, default);
                        return stop(&errors);
                    }
                };
                match flags.what {
                    Emit::Ptx => print(flags.kernel.ptx(&kernel)?.trim_end()),
                    _ => print(kernel.text.trim_end()),
                }
            }
        }
        Emit::Mpi | Emit::Goal | Emit::Mscclpp => {
            let nranks = one_count(flags)?;
            let algorithm = algorithm()?;
            let text = match flags.what {
                Emit::Mpi => messages::mpi(&algorithm, &source, &flags.source, nranks),
                Emit::Mscclpp => mscclpp::plan(&algorithm, nranks, flags.in_place),
                _ => flags.goal.goal(&algorithm, &flags.source, nranks, flags.kernel.element()),
            };
            match text {
                Ok(text) => print(text.trim_end()),
                Err(mut errors) => {
                    name_counts(&mut errors, &algorithm, default);
                    return stop(&errors);
                }
            }
        }
        Emit::Msccl => {
            let nranks = one_count(flags)?;
            let options = flags.export.options(flags.kernel.protocol)?;
            let algorithm = algorithm()?;
            match exported::program(&algorithm, nranks, options) {
                Ok(program) => {
                    let told = flags.source.lints.warnings(program.warnings)?;
                    print_all(&told, &program.source);
                    if told.iter().any(|said| said.severity == Severity::Error) {
                        return Err(Failure::Program);
                    }
                    print(program.text.trim_end());
                }
                Err(mut errors) => {
                    name_counts(&mut errors, &algorithm, default);
                    return stop(&errors);
                }
            }
        }
        Emit::Program => print(core_program::text::print(algorithm()?.program()).trim_end()),
        Emit::HcclCpp => unreachable!("it takes an executor, and has been printed"),
        Emit::Schedule | Emit::Steps => {
            let algorithm = algorithm()?;
            for nranks in RankCounts::or(flags.nranks.as_ref(), DEFAULT).counts {
                if let Some(rank) = flags.rank.filter(|rank| *rank >= nranks) {
                    let title = format!("`--rank {rank}` names no rank of {nranks}");
                    return Err(Failure::usage(Code::BadFlag, title)
                        .with_help(format!("a rank is in 0..{nranks}")));
                }
                let printed = match (flags.what, flags.rank) {
                    (Emit::Steps, Some(rank)) => one_rank(&algorithm, nranks, RankId(rank)),
                    (Emit::Steps, None) => algorithm
                        .schedule(nranks)
                        .and_then(|schedule| table(&schedule, &flags.source.settings)),
                    _ => algorithm.schedule(nranks).map(|schedule| text::print(&schedule)),
                };
                match printed {
                    Ok(text) => print(text.trim_end()),
                    Err(findings) => {
                        let mut errors: Vec<_> =
                            findings.into_iter().map(|f| algorithm.diagnostic(f, nranks)).collect();
                        name_counts(&mut errors, &algorithm, default);
                        return stop(&errors);
                    }
                }
            }
        }
    }
    Ok(true)
}

/// Prints the schedule that a program for MSCCL was proved as, what goes between its ranks, or an algorithm that does the
/// same.
fn exchanged(flags: &EmitFlags) -> Result<bool, Failure> {
    let printed = matches!(flags.what, Emit::Coll | Emit::Schedule | Emit::Steps);
    if !printed || flags.rank.is_some() {
        let title =
            "of a program for MSCCL only its schedule, its steps and an algorithm are printed";
        return Err(Failure::usage(Code::BadCall, title)
            .with_help("write `emit schedule FILE`, `emit steps FILE` or `emit coll FILE`"));
    }
    msccl::counts_ranks(flags.nranks.is_some())?;
    let (path, lints) = (&flags.source.source, &flags.source.lints);
    let (source, proved) = msccl::proved(path, lints, false, Format::Human)?;
    let schedule = proved.schedule();
    let printed = match flags.what {
        Emit::Steps => table(schedule, &[]),
        Emit::Coll => TwoSided::of(&proved).and_then(|form| {
            let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            unrolled(&Export { form: &form, file: &file })
        }),
        _ => Ok(text::print(schedule)),
    };
    let printed = printed.map_err(|findings| {
        let whole = |finding: Finding| {
            let said = Diagnostic::new(finding.code, Span::default(), finding.title);
            finding.notes.into_iter().fold(said, Diagnostic::note)
        };
        let errors: Vec<_> = findings.into_iter().map(whole).collect();
        refuse(Format::Human, &errors, &source, |_| ())
    })?;
    print(printed.trim_end());
    Ok(true)
}

/// The number of ranks of what is written for one.
fn one_count(flags: &EmitFlags) -> Result<u32, Failure> {
    match RankCounts::or(flags.nranks.as_ref(), DEFAULT).counts[..] {
        [nranks] => Ok(nranks),
        ref counts => {
            let title = format!(
                "`--nranks` names {} rank counts, and this is written for one",
                counts.len()
            );
            Err(Failure::usage(Code::BadFlag, title).with_help("write a file for each"))
        }
    }
}

/// The algorithm that the flags name, as a file of its own; the whole source if they name none.
fn coll(file: &File, source: &Source, flags: &EmitFlags) -> Result<String, Failure> {
    let names: Vec<_> = file.algorithms.iter().map(|a| a.name.text.as_str()).collect();
    let named = flags.source.algorithm.as_deref();
    let wanted = named.or_else(|| names.iter().copied().find(|n| *n == flags.source.source));
    let Some(wanted) = wanted else {
        return Ok(syntax::printer::print_with_trivia(file, source));
    };
    let at = names.iter().position(|name| *name == wanted);
    let at = at.ok_or_else(|| program::unknown(source, wanted, &names))?;
    // Every source knows the library's algorithms; others of its file it would lack.
    let known = |name: &str| select::library().iter().any(|a| a.name() == name);
    let mut taken = vec![false; names.len()];
    let mut open = vec![at];
    while let Some(at) = open.pop() {
        taken[at] = true;
        let Span { lo, hi } = file.algorithms[at].span;
        for token in &source.tokens()[lo as usize..hi as usize] {
            let called =
                names.iter().position(|name| matches!(token, Tok::Ident(word) if word == name));
            open.extend(called.filter(|c| !taken[*c] && !known(names[*c])));
        }
    }
    let text = source.text().unwrap_or_default();
    let uses = file.uses.iter().map(|used| used.span);
    let algorithms = file.algorithms.iter().zip(&taken).filter(|(_, taken)| **taken);
    let parts = uses.chain(algorithms.map(|(a, _)| a.span)).map(|span| &text[source.range(span)]);
    let own = Source::from_text(source.name(), &parts.collect::<Vec<_>>().join("\n"));
    let (file, errors) = syntax::parse(&own);
    // Whole items of a source without errors.
    debug_assert_eq!(errors, []);
    Ok(syntax::printer::print_with_trivia(&file, &own))
}

/// An op a line, stream by stream, each with the line of the source that it stands in.
fn one_rank(algorithm: &Configured, nranks: u32, rank: RankId) -> Result<String, Vec<Finding>> {
    let schedule = layout::one_rank(algorithm, nranks, rank)?;
    let mut out = format!("rank {rank} of {nranks}:");
    for stream in &schedule.streams {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        if schedule.streams.len() > 1 {
            let _ = write!(out, "\nstream {}", stream.index);
        }
        for op in ops {
            let line = schedule.location(op.at).line;
            let _ = write!(out, "\n  {}  line {line}", text::op(&schedule, op));
        }
    }
    Ok(out)
}

/// A line a step, however long, and what it is of above.
fn table(schedule: &Schedule, settings: &[(String, String)]) -> Result<String, Vec<Finding>> {
    let steps = steps(schedule)?;
    let lines = steps.lines(usize::MAX);
    Ok([vec![steps.heading(settings)], lines].concat().join("\n"))
}
