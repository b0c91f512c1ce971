//! `roundelay emit`: a source in each form that can be printed. Every form is a subcommand with its own flags.

mod schedule;
mod source_text;

use clap::{Args, Subcommand};
use roundelay::Algorithm as _;
use roundelay::library::SOURCES;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding, Severity};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::program::text as program_text;
use roundelay_core::prove_source;
use roundelay_core::syntax::Source;
use roundelay_export::loops::{Loops, text as loops_text};
use roundelay_export::rust::rust;

use crate::emit_exchange::{self, MscclFlags};
use crate::executor::{self, ProfileFlags, Which};
use crate::flags::SourceFlags;
use crate::kernel::{HostFlags, KernelFlags, TargetFlags};
use crate::lints::LintFlags;
use crate::messages::{self, GoalFlags};
use crate::msccl;
use crate::program::{Loaded, load, one, read};
use crate::report::{Failure, Format, name_counts, print_all, refuse};
use crate::texts::Texts;
use crate::values::{RankCounts, rank_count, rank_counts};
use crate::vector::BlocksFlags;

#[derive(Args)]
pub(crate) struct EmitFlags {
    /// Write to a file instead; in a folder, to files with names of their own, as several rank counts need; - is standard
    /// output
    #[arg(short, long, global = true, value_name = "FILE|DIR")]
    output: Option<String>,
    #[command(subcommand)]
    form: EmitForm,
}

#[derive(Subcommand)]
enum EmitForm {
    /// An algorithm in canonical form, with its comments, as a file of its own
    Coll(CollFlags),
    /// The struct of the macro: the Rust that `collective!` expands to
    #[cfg(not(target_family = "wasm"))]
    Struct(FileFlags),
    /// The syntax tree
    Ast {
        /// A .coll file, - for standard input, or the name of an algorithm of the library
        source: String,
    },
    /// The work of every rank in the compiler's intermediate form: few constructs, with loops
    Program(SourceFlags),
    /// The work of every rank at a rank count: the loops, with arithmetic and tables for all numbers
    Loops(OneCountFlags),
    /// The flat schedule of a rank count
    Schedule(ScheduleFlags),
    /// The data and signals between the ranks, one line for each step
    Steps(StepsFlags),
    /// A GPU's kernel
    Cuda(CudaFlags),
    /// A GPU's kernel, compiled
    Ptx(PtxFlags),
    /// The work of each rank as plain Rust, with the loops of the page, over a small trait
    Rust(RustFlags),
    /// A C file that runs the algorithm by MPI's sends and receives
    Mpi(MpiOf),
    /// Sends, receives and times in GOAL, for simulators
    Goal(GoalOf),
    /// A program in XML for MSCCL's runtime, in RCCL or elsewhere
    Msccl(MscclOf),
    /// An execution plan for MSCCL++, in JSON
    Mscclpp(MscclppOf),
    /// An executor as C++ in the form of the contest
    HcclCpp(Which),
    /// An executor or an algorithm as an operator for HCOMM, in C++
    Hcomm(HcommFlags),
}

/// A file that is read and not laid out.
#[derive(Args)]
struct FileFlags {
    /// A .coll file, - for standard input, or the name of an algorithm of the library
    source: String,
    #[command(flatten)]
    lints: LintFlags,
}

#[derive(Args)]
struct CollFlags {
    /// A .coll file, - for standard input, the name of an algorithm of the library, or a program for MSCCL
    source: String,
    /// The algorithm of the source that is printed, with the algorithms that it calls [default: all]
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    #[command(flatten)]
    lints: LintFlags,
}

#[derive(Args)]
struct ScheduleFlags {
    #[command(flatten)]
    source: SourceFlags,
    /// Rank counts: 4, 2..=9, or a list such as 2,4,8 [default: 4]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    nranks: Option<RankCounts>,
    #[command(flatten)]
    blocks: BlocksFlags,
}

#[derive(Args)]
struct StepsFlags {
    #[command(flatten)]
    of: ScheduleFlags,
    #[command(flatten)]
    rank: RankFlag,
}

/// A rank that is printed alone.
#[derive(Args)]
struct RankFlag {
    /// This rank alone, where the form may be too large to make for all ranks
    #[arg(long, value_name = "RANK")]
    rank: Option<u32>,
}

impl RankFlag {
    /// Returns the rank, which must be one of `nranks`.
    fn of(&self, nranks: u32) -> Result<Option<RankId>, Failure> {
        match self.rank {
            Some(rank) if rank >= nranks => {
                let title = format!("`--rank {rank}` names no rank of {nranks}");
                Err(Failure::usage(Code::BadFlag, title)
                    .with_help(format!("a rank is in 0..{nranks}")))
            }
            rank => Ok(rank.map(RankId)),
        }
    }
}

#[derive(Args)]
struct CudaFlags {
    #[command(flatten)]
    of: ScheduleFlags,
    #[command(flatten)]
    kernel: KernelFlags,
    #[command(flatten)]
    beside: HostFlags,
}

#[derive(Args)]
struct PtxFlags {
    #[command(flatten)]
    of: ScheduleFlags,
    #[command(flatten)]
    kernel: KernelFlags,
    #[command(flatten)]
    target: TargetFlags,
}

/// An algorithm for one rank count.
#[derive(Args)]
struct OneCountFlags {
    #[command(flatten)]
    source: SourceFlags,
    /// The rank count [default: 4]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_count)]
    nranks: Option<u32>,
    #[command(flatten)]
    blocks: BlocksFlags,
}

#[derive(Args)]
struct RustFlags {
    #[command(flatten)]
    of: OneCountFlags,
    /// The module that has the trait, such as `crate::lane`, for several texts of one program [default: the text has it]
    #[arg(long, value_name = "PATH", value_parser = module_path)]
    lane: Option<String>,
}

/// Reads the path of a module.
fn module_path(text: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if text.split("::").all(is_name) {
        return Ok(text.to_owned());
    }
    Err("a path of names, such as crate::lane".to_owned())
}

#[derive(Args)]
struct MpiOf {
    #[command(flatten)]
    of: OneCountFlags,
    #[command(flatten)]
    rank: RankFlag,
}

#[derive(Args)]
struct GoalOf {
    #[command(flatten)]
    of: OneCountFlags,
    #[command(flatten)]
    rank: RankFlag,
    #[command(flatten)]
    goal: GoalFlags,
}

#[derive(Args)]
struct MscclOf {
    #[command(flatten)]
    of: OneCountFlags,
    #[command(flatten)]
    msccl: MscclFlags,
}

#[derive(Args)]
struct MscclppOf {
    #[command(flatten)]
    of: OneCountFlags,
    /// A plan for calls in place [default: input and output apart]
    #[arg(long)]
    in_place: bool,
}

#[derive(Args)]
struct HcommFlags {
    #[command(flatten)]
    of: OneCountFlags,
    /// The executor of the source that is written [default: the only one, unless a rank count or an algorithm is given]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["nranks", "algorithm"])]
    executor: Option<String>,
    #[command(flatten)]
    profile: ProfileFlags,
}

/// The number of ranks where none is given.
const DEFAULT: u32 = 4;

impl EmitForm {
    /// Returns the source, the extension of a file of this form, and whether the form has several texts.
    fn facts(&self) -> (&str, &'static str, bool) {
        let several = |of: &ScheduleFlags| of.nranks.as_ref().is_some_and(|n| n.counts.len() > 1);
        match self {
            Self::Coll(flags) => (&flags.source, "coll", false),
            #[cfg(not(target_family = "wasm"))]
            Self::Struct(flags) => (&flags.source, "rs", false),
            Self::Rust(RustFlags { of, .. }) => (&of.source.source, "rs", false),
            Self::Ast { source } => (source, "ast", false),
            Self::Program(flags) => (&flags.source, "program", false),
            Self::Loops(of) => (&of.source.source, "loops", false),
            Self::Schedule(of) => (&of.source.source, "schedule", several(of)),
            Self::Steps(StepsFlags { of, .. }) => (&of.source.source, "steps", several(of)),
            Self::Cuda(CudaFlags { of, .. }) => (&of.source.source, "cu", several(of)),
            Self::Ptx(PtxFlags { of, .. }) => (&of.source.source, "ptx", several(of)),
            Self::Mpi(MpiOf { of, .. }) => (&of.source.source, "c", false),
            Self::Goal(GoalOf { of, .. }) => (&of.source.source, "goal", false),
            Self::Msccl(MscclOf { of, .. }) => (&of.source.source, "xml", false),
            Self::Mscclpp(MscclppOf { of, .. }) => (&of.source.source, "json", false),
            Self::HcclCpp(which) => (which.source(), "cc", false),
            Self::Hcomm(HcommFlags { of, .. }) => (&of.source.source, "cc", false),
        }
    }
}

pub(crate) fn main(flags: &EmitFlags) -> Result<bool, Failure> {
    let (source, extension, several) = flags.form.facts();
    let to = &Texts::new(flags.output.as_deref(), source, extension, several)?;
    let output = flags.output.is_some();
    match &flags.form {
        EmitForm::Coll(flags) => source_text::coll(flags, to),
        #[cfg(not(target_family = "wasm"))]
        EmitForm::Struct(flags) => source_text::of_macro(flags, to),
        EmitForm::Ast { source } => source_text::ast(source, to),
        EmitForm::Program(flags) => {
            let (_, algorithm) = algorithm(flags)?;
            to.put(algorithm.name(), &program_text::print(algorithm.program()))
        }
        EmitForm::Loops(of) => {
            of.blocks.refuse("loops")?;
            for_one_count(of, to, |algorithm, _, nranks| {
                let proved = prove_source(algorithm, nranks)?;
                let loops = Loops::from_schedule(algorithm, proved.schedule());
                loops
                    .map(|loops| loops_text::print(&loops))
                    .map_err(|all| placed(algorithm, nranks, all))
            })
        }
        EmitForm::Schedule(flags) => schedule::schedule(flags, to),
        EmitForm::Steps(flags) => schedule::steps(flags, to),
        EmitForm::Cuda(CudaFlags { of, kernel, beside }) => {
            kernel.check()?;
            of.blocks.refuse("cuda")?;
            if let Some(folder) = beside.folder()? {
                if output {
                    let title = "-o is of one text, and --headers writes several files";
                    return Err(Failure::usage(Code::BadCall, title).with_help("leave -o out"));
                }
                return host_files(of, kernel, (folder, beside.elements()));
            }
            for_each_count(of, to, |algorithm, nranks| {
                Ok(kernel.kernel(algorithm, nranks).map(|kernel| kernel.text))
            })
        }
        EmitForm::Ptx(PtxFlags { of, kernel, target }) => {
            target.check()?;
            of.blocks.refuse("ptx")?;
            kernel.check()?;
            for_each_count(of, to, |algorithm, nranks| match kernel.kernel(algorithm, nranks) {
                Ok(kernel) => target.ptx(&kernel).map(Ok),
                Err(errors) => Ok(Err(errors)),
            })
        }
        EmitForm::Rust(RustFlags { of, lane }) => {
            of.blocks.refuse("rust")?;
            for_one_count(of, to, |algorithm, source, nranks| {
                let proved = prove_source(algorithm, nranks)?;
                let source = file_of(algorithm, source);
                let text = rust(algorithm, proved.schedule(), source.as_ref(), lane.as_deref());
                text.map_err(|all| placed(algorithm, nranks, all))
            })
        }
        EmitForm::Mpi(MpiOf { of, rank }) => {
            let rank = rank.of(of.nranks.unwrap_or(DEFAULT))?;
            for_one_count(of, to, |algorithm, source, nranks| {
                messages::mpi(algorithm, source, &of.source, (nranks, rank), &of.blocks)
            })
        }
        EmitForm::Goal(GoalOf { of, rank, goal }) => {
            of.blocks.refuse("goal")?;
            let rank = rank.of(of.nranks.unwrap_or(DEFAULT))?;
            for_one_count(of, to, |algorithm, _, nranks| {
                goal.goal(algorithm, &of.source, (nranks, rank))
            })
        }
        EmitForm::Msccl(MscclOf { of, msccl }) => of_msccl(of, msccl, to),
        EmitForm::Mscclpp(MscclppOf { of, in_place }) => {
            of.blocks.refuse("mscclpp")?;
            for_one_count(of, to, |algorithm, _, nranks| {
                emit_exchange::plan(algorithm, nranks, *in_place)
            })
        }
        EmitForm::HcclCpp(which) => executor::export(which, to),
        EmitForm::Hcomm(flags) => hcomm(flags, to),
    }?;
    Ok(true)
}

/// Returns the one algorithm that the flags name, and its source.
fn algorithm(flags: &SourceFlags) -> Result<(Source, Configured), Failure> {
    if msccl::is_program(&flags.source) {
        let title =
            "of a program for MSCCL only its schedule, its steps and an algorithm are printed";
        return Err(Failure::usage(Code::BadCall, title)
            .with_help("write `emit schedule FILE`, `emit steps FILE` or `emit coll FILE`"));
    }
    let source = read(&flags.source)?;
    let algorithm = match load(&source, flags)? {
        Loaded::Ready(algorithms) => one(algorithms, &source)?,
        Loaded::Wrong(errors) => return Err(wrong(&errors, &source)),
    };
    Ok((source, algorithm))
}

/// Returns the source that an algorithm is from: the one that was read, or one of the library's.
fn file_of(algorithm: &Configured, source: &Source) -> Option<Source> {
    let library = SOURCES.iter().map(|(name, text)| Source::from_text(*name, text));
    std::iter::once(source.clone()).chain(library).find(|file| file.name() == algorithm.file())
}

/// Returns findings at their places in the source.
fn placed(algorithm: &Configured, nranks: u32, all: Vec<Finding>) -> Vec<Diagnostic> {
    all.into_iter().map(|finding| algorithm.diagnostic(finding, nranks)).collect()
}

/// Returns the failure of a wrong source.
fn wrong(errors: &[Diagnostic], source: &Source) -> Failure {
    refuse(Format::Human, errors, source, |_| ())
}

/// Returns the failure of an algorithm at a wrong rank count; it says so where the count was the `default`.
fn wrong_at(
    mut errors: Vec<Diagnostic>,
    (source, algorithm): &(Source, Configured),
    default: bool,
) -> Failure {
    name_counts(&mut errors, algorithm, default.then_some(DEFAULT));
    wrong(&errors, source)
}

/// Prints a text for each rank count.
fn for_each_count(
    flags: &ScheduleFlags,
    to: &Texts,
    text: impl Fn(&Configured, u32) -> Result<Result<String, Vec<Diagnostic>>, Failure>,
) -> Result<(), Failure> {
    let read = algorithm(&flags.source)?;
    for nranks in RankCounts::or(flags.nranks.as_ref(), DEFAULT).counts {
        match text(&read.1, nranks)? {
            Ok(text) => to.put_at(read.1.name(), nranks, &text)?,
            Err(errors) => return Err(wrong_at(errors, &read, flags.nranks.is_none())),
        }
    }
    Ok(())
}

/// Writes the files of a program in C++ for one rank count.
fn host_files(
    flags: &ScheduleFlags,
    kernel: &KernelFlags,
    (folder, count): (&str, u64),
) -> Result<bool, Failure> {
    let read = algorithm(&flags.source)?;
    let counts = RankCounts::or(flags.nranks.as_ref(), DEFAULT).counts;
    let [nranks] = counts[..] else {
        let title = "a program in C++ is for one number of ranks";
        return Err(Failure::usage(Code::BadFlag, title).with_help("write `--nranks 8`"));
    };
    let kernel = kernel.kernel(&read.1, nranks);
    let kernel = kernel.map_err(|errors| wrong_at(errors, &read, flags.nranks.is_none()))?;
    HostFlags::write(&kernel, folder, count)?;
    Ok(true)
}

/// Prints a text for one rank count.
fn for_one_count(
    flags: &OneCountFlags,
    to: &Texts,
    text: impl Fn(&Configured, &Source, u32) -> Result<String, Vec<Diagnostic>>,
) -> Result<(), Failure> {
    let read = algorithm(&flags.source)?;
    let nranks = flags.nranks.unwrap_or(DEFAULT);
    match text(&read.1, &read.0, nranks) {
        Ok(text) => to.put_at(read.1.name(), nranks, &text),
        Err(errors) => Err(wrong_at(errors, &read, flags.nranks.is_none())),
    }
}

/// Writes an executor, or an algorithm at a rank count, as an operator.
fn hcomm(flags: &HcommFlags, to: &Texts) -> Result<(), Failure> {
    let HcommFlags { of, executor, profile: ProfileFlags { profile } } = flags;
    of.blocks.refuse("hcomm")?;
    let named = of.nranks.is_some() || of.source.algorithm.is_some();
    if executor.is_some() || (!named && executor::is_executor(&of.source.source)) {
        let lints = of.source.lints.clone();
        let which = Which::new(&of.source.source, executor.as_deref(), lints);
        return executor::export_operator(&which, *profile, to);
    }
    let read = algorithm(&of.source)?;
    let nranks = of.nranks.unwrap_or(DEFAULT);
    let source = file_of(&read.1, &read.0);
    let operator = prove_source(&read.1, nranks).and_then(|proved| {
        let made = executor::algorithm_operator(&read.1, &proved, source.as_ref(), *profile);
        made.map_err(|all| placed(&read.1, nranks, all))
    });
    match operator {
        Ok(operator) => executor::put(&operator, to),
        Err(errors) => Err(wrong_at(errors, &read, of.nranks.is_none())),
    }
}

/// Prints a program for MSCCL, with its warnings.
fn of_msccl(flags: &OneCountFlags, msccl: &MscclFlags, to: &Texts) -> Result<(), Failure> {
    flags.blocks.refuse("msccl")?;
    let read = algorithm(&flags.source)?;
    let nranks = flags.nranks.unwrap_or(DEFAULT);
    match emit_exchange::program(&read.1, nranks, msccl.options()) {
        Ok(program) => {
            let told = flags.source.lints.warnings(program.warnings)?;
            print_all(&told, &program.source);
            if told.iter().any(|said| said.severity == Severity::Error) {
                return Err(Failure::Program);
            }
            to.put_at(read.1.name(), nranks, &program.text)
        }
        Err(errors) => Err(wrong_at(errors, &read, flags.nranks.is_none())),
    }
}
