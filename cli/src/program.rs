//! The way from a SOURCE on the command line to checked algorithms with their parameters set.

use roundelay::tools::{self, Refusal, Wanted};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::layout::Configured;
use roundelay_core::program::CompiledSource;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;

use crate::flags::SourceFlags;
use crate::report::{Failure, print_all};
use crate::streams;
use crate::topology::{self, Given};

pub(crate) use roundelay::tools::{compile, in_library, or_nearest, set, unknown};

/// Reads a file, standard input, or the library's file that holds the algorithm of that name.
pub(crate) fn read(source: &str) -> Result<Source, Failure> {
    if source == "-" {
        return match streams::input() {
            Ok(bytes) => Ok(Source::from_bytes("<stdin>", &bytes)),
            Err(why) => {
                let title = format!("standard input cannot be read: {why}");
                Err(Failure::usage(Code::UnreadableSource, title))
            }
        };
    }
    Ok(tools::find(source, streams::source)?)
}

/// The meaning of a name on the command line.
pub(crate) enum AlgorithmOrProgram {
    Algorithm(Box<Configured>),
    /// A program for MSCCL, which was proved when it was read.
    Program(Proved),
}

/// The algorithms that the flags ask for.
pub(crate) enum Loaded {
    /// Ready to be laid out.
    Ready(Vec<Configured>),
    /// The source has errors.
    Wrong(Vec<Diagnostic>),
}

/// Checks `source` and sets the parameters.
pub(crate) fn load(source: &Source, flags: &SourceFlags) -> Result<Loaded, Failure> {
    load_on(source, flags, topology::given(&flags.topology)?.as_ref())
}

/// Checks `source` and sets the parameters, on a topology that was read already.
pub(crate) fn load_on(
    source: &Source,
    flags: &SourceFlags,
    given: Option<&Given>,
) -> Result<Loaded, Failure> {
    load_with(source, flags, given, |warnings| print_all(&warnings, source))
}

/// Checks `source` and sets the parameters, on a topology that was read already; `warn` gets the warnings.
pub(crate) fn load_with(
    source: &Source,
    flags: &SourceFlags,
    given: Option<&Given>,
    warn: impl FnOnce(Vec<Diagnostic>),
) -> Result<Loaded, Failure> {
    let program: CompiledSource = match flags.lints.apply(compile(source))? {
        Ok((program, warnings)) => {
            warn(warnings);
            program
        }
        Err(errors) => return Ok(Loaded::Wrong(errors)),
    };
    let wanted = Wanted {
        found_by: &flags.source,
        algorithm: flags.algorithm.as_deref(),
        settings: &flags.settings,
        topology: given.map(|given| &given.topology),
    };
    match tools::configure(program, source, &wanted) {
        Ok(algorithms) => Ok(Loaded::Ready(algorithms)),
        Err(Refusal::Source(wrong)) => Ok(Loaded::Wrong(wrong)),
        Err(Refusal::Call(problem)) => Err((*problem).into()),
    }
}

/// Returns the one algorithm that a command needs.
pub(crate) fn one(mut algorithms: Vec<Configured>, source: &Source) -> Result<Configured, Failure> {
    use roundelay::Algorithm as _;
    if algorithms.len() > 1 {
        let names: Vec<_> = algorithms.iter().map(|a| a.name().to_owned()).collect();
        return Err(Failure::usage(
            Code::UnknownAlgorithm,
            format!(
                "{} holds {} algorithms, and this command takes one",
                source.name(),
                names.len()
            ),
        )
        .with_help(format!("choose one by --algorithm: {}", names.join(", "))));
    }
    Ok(algorithms.remove(0))
}
