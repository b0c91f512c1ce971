//! `roundelay executor`: contest-style executors, from their resources to the contest's judgement.

mod check;
mod executor_flags;
mod export;
mod list;
mod run;
mod score;
mod synthesize;

use roundelay::select::size;
use roundelay_core::diagnostics::near::nearest;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::executor::Executor;
use roundelay_core::syntax::Source;

use crate::lints::LintFlags;
use crate::program::{self, compile};
use crate::report::{Failure, Format, print_all, refuse, wrong};
pub(crate) use executor_flags::ExecutorFlags;
use executor_flags::{AskedExecutor, ExecutorCommand};
pub(crate) use executor_flags::{ProfileFlags, Which};
pub(crate) use export::{algorithm_operator, export, export_operator, put};

pub(crate) fn main(flags: &ExecutorFlags) -> Result<bool, Failure> {
    match &flags.command {
        ExecutorCommand::List(flags) => list::main(flags),
        ExecutorCommand::Check(flags) => check::main(flags),
        ExecutorCommand::Run(flags) => run::main(flags),
        ExecutorCommand::Bench(flags) => run::bench(flags),
        ExecutorCommand::Score(flags) => score::main(flags),
        ExecutorCommand::Synthesize(flags) => synthesize::main(flags),
    }
}

/// Returns the source of a file, or of the library's file that holds an executor of that name.
pub(crate) fn read(name: &str) -> Result<Source, Failure> {
    let head = format!("executor {name} for ");
    let mut library = roundelay::library::SOURCES.iter();
    if let Some((file, text)) = library.find(|(_, text)| text.contains(&head)) {
        return Ok(Source::from_text(*file, text));
    }
    if name != "-" && !name.contains(['.', '/']) && !std::path::Path::new(name).exists() {
        let title = format!("`{name}` is neither a file nor a registered executor");
        return Err(Failure::usage(Code::UnknownExecutor, title).with_help(program::or_nearest(
            name,
            roundelay::executor::names().iter().map(String::as_str),
            "`roundelay executor list` names those of the library",
        )));
    }
    program::read(name)
}

/// Whether `name` is an executor of the library, or a file with one.
pub(crate) fn is_executor(name: &str) -> bool {
    let in_library = || roundelay::executor::names().iter().any(|known| known == name);
    let heads = |text: String| {
        text.lines().any(|line| line.trim_start_matches("pub ").starts_with("executor "))
    };
    in_library() || std::fs::read_to_string(name).is_ok_and(heads)
}

/// Compiles the executors of `source`.
fn compiled(source: &Source) -> Result<Vec<Executor>, Vec<Diagnostic>> {
    Executor::compile_all(&compile(source)?.executors, source)
}

/// Returns the reasons why the contest's form does not hold an executor, each with the index of its class, as
/// diagnostics.
fn misfits(executor: &Executor, all: Vec<(usize, Finding)>) -> Vec<Diagnostic> {
    let place = |(class, finding): (usize, _)| executor.classes[class].diagnostics(vec![finding]);
    all.into_iter().flat_map(place).collect()
}

/// Returns the one executor that a command needs; warnings are printed.
fn one(
    source: &Source,
    name: &str,
    wanted: Option<&str>,
    lints: &LintFlags,
) -> Result<Executor, Stopped> {
    let alone = wanted.or_else(|| {
        let named = format!("executor {name} for ");
        source.text().is_some_and(|text| text.contains(&named)).then_some(name)
    });
    let checked = lints.apply(compile(source)).map_err(Stopped::Failure)?;
    let (program, warnings) = checked.map_err(Stopped::Wrong)?;
    print_all(&warnings, source);
    let wanted = program.executors.iter().filter(|of| alone.is_none_or(|name| of.name == name));
    let mut executors = Executor::compile_all(wanted, source).map_err(Stopped::Wrong)?;
    if executors.len() == 1 {
        return Ok(executors.remove(0));
    }
    let file = source.name();
    let failure = match (executors.len(), alone) {
        (0, None) => Failure::usage(Code::UnknownExecutor, format!("{file} holds no executor"))
            .with_help("write `executor NAME for AllReduce { … }`"),
        (0, Some(wanted)) => {
            let title = format!("{file} holds no executor `{wanted}`");
            let all = source.text().unwrap_or_default().split("executor ").skip(1);
            let known = all.filter_map(|head| head.split_once(" for ").map(|(name, _)| name));
            let failure = Failure::usage(Code::UnknownExecutor, title);
            match nearest(wanted, known) {
                Some(near) => failure.with_help(format!("did you mean `{near}`?")),
                None => failure,
            }
        }
        (n, _) => {
            let names: Vec<_> = executors.iter().map(|e| e.name.as_str()).collect();
            let title = format!("{file} holds {n} executors, and this command takes one");
            Failure::usage(Code::UnknownExecutor, title)
                .with_help(format!("choose one by --executor: {}", names.join(", ")))
        }
    };
    Err(Stopped::Failure(failure))
}

/// Why there is no executor.
enum Stopped {
    /// Its source has errors.
    Wrong(Vec<Diagnostic>),
    /// The call is.
    Failure(Failure),
}

impl AskedExecutor {
    /// Returns the executor; where it is wrong, its errors are printed.
    fn load(&self) -> Result<Executor, Failure> {
        self.load_with_source().map(|(_, executor)| executor)
    }

    /// Returns the executor with its source; where it is wrong, its errors are printed.
    fn load_with_source(&self) -> Result<(Source, Executor), Failure> {
        self.which.load(self.format)
    }
}

impl Which {
    /// Returns the executor with its source; where it is wrong, its errors are printed.
    fn load(&self, format: Format) -> Result<(Source, Executor), Failure> {
        let source = read(&self.source)?;
        match one(&source, &self.source, self.executor.as_deref(), &self.lints) {
            Ok(executor) => Ok((source, executor)),
            Err(Stopped::Wrong(errors)) => Err(refuse(format, &errors, &source, wrong)),
            Err(Stopped::Failure(failure)) => Err(failure),
        }
    }
}
