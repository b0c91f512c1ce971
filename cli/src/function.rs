//! The command as a function, for libraries: what it prints, and the algorithms that it would run.

use std::ffi::OsString;

use clap::Parser;
use roundelay_core::diagnostics::Code;
use roundelay_core::program::Configured;

use crate::flags::SourceFlags;
use crate::program::{Loaded, load, read};
use crate::report::{Failure, print_all};
use crate::streams::keeping;
use crate::usage;

/// What a command wrote, and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The exit code.
    pub code: u8,
    /// What it wrote to its standard output.
    pub out: String,
    /// What it wrote to its standard error.
    pub err: String,
}

/// Runs the command as a function, on this thread: with `args` after its name and `input` on its standard input. It
/// reads and writes the files that it is told to, and neither standard input nor output of this process. Commands that
/// start processes of themselves are refused (E0507).
///
/// ```
/// let page = "algorithm Star -> Broadcast { step { } }";
/// let checked = roundelay_cli::output(["check", "-", "--format", "json"], page);
/// assert_eq!((checked.code, checked.err.as_str()), (1, ""));
/// assert!(checked.out.contains(r#""code": "E0"#), "{}", checked.out);
/// ```
pub fn output<A: Into<OsString>>(args: impl IntoIterator<Item = A>, input: &str) -> Output {
    let args = args.into_iter().map(Into::into).collect();
    let (code, kept) = keeping(input.to_owned(), || crate::command(args));
    Output { code, out: kept.out, err: kept.err }
}

/// Why there are no algorithms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The code of the first error.
    pub code: Code,
    /// All errors as `roundelay check` prints them, each at its place in the source.
    pub message: String,
}

/// Arguments that name algorithms.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Source {
    #[command(flatten)]
    flags: SourceFlags,
}

/// The algorithms that such arguments of `roundelay check` name, with their parameters set: a source, or `-` for the
/// text `input`, and flags such as `--algorithm` and `--set`. They are not proved yet.
///
/// # Errors
/// What the command would print on its standard error.
///
/// ```
/// use roundelay::Algorithm as _;
///
/// let rings = roundelay_cli::algorithms(["RingReduce", "--set", "slices=2"], "").unwrap();
/// assert_eq!(rings[0].name(), "RingReduce");
/// let refused = roundelay_cli::algorithms(["-"], "algorithm").unwrap_err();
/// assert!(refused.message.contains("<stdin>:1:10"), "{}", refused.message);
/// ```
pub fn algorithms<A: Into<OsString>>(
    args: impl IntoIterator<Item = A>,
    input: &str,
) -> Result<Vec<Configured>, Refused> {
    let args = args.into_iter().map(Into::into);
    let load = || -> Result<Vec<Configured>, (Code, Failure)> {
        let usage = |failure: Failure| (failure.code(), failure);
        let call = Source::try_parse_from(args).map_err(|e| usage(usage::problem(&e).into()))?;
        let source = read(&call.flags.source).map_err(usage)?;
        match load(&source, &call.flags).map_err(usage)? {
            Loaded::Ready(algorithms) => Ok(algorithms),
            Loaded::Wrong(diagnostics) => {
                print_all(&diagnostics, &source);
                let first = diagnostics.first().map_or(Code::BadCall, |first| first.code);
                Err((first, Failure::Program))
            }
        }
    };
    let (outcome, kept) = keeping(input.to_owned(), || {
        load().map_err(|(code, failure)| {
            failure.print();
            code
        })
    });
    let message = kept.err.trim_end().to_owned();
    outcome.map_err(|code| Refused { code, message })
}
