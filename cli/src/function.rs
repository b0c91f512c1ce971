//! The command as a function, for libraries: what it prints, and the algorithms that it would run.

use std::ffi::OsString;
use std::ops::RangeInclusive;

use clap::Parser;
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;

use crate::flags::SourceFlags;
use crate::program::{Loaded, load, read};
use crate::report::{Failure, print_all};
use crate::streams::keeping;
use crate::usage;
use crate::values::bytes;

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

/// The sizes in bytes that a range such as `64K..1M`, `..=4096` or `1M..` stands for; as in Rust, `..=` takes in its end.
///
/// # Errors
/// Why the text is no such range, or one that no size is in.
///
/// ```
/// assert_eq!(roundelay_cli::byte_range("64K..1M").unwrap(), 65_536..=1_048_575);
/// assert_eq!(roundelay_cli::byte_range("1M..").unwrap(), 1_048_576..=u64::MAX);
/// assert!(roundelay_cli::byte_range("2..2").unwrap_err().message.contains("`2..2`"));
/// ```
pub fn byte_range(text: &str) -> Result<RangeInclusive<u64>, Refused> {
    let wrong = || Refused {
        code: Code::BadFlag,
        message: format!(
            "`{text}` is no range of sizes; write `64K..1M`, `..=4096` or `1M..`, in bytes, K, M or G"
        ),
    };
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let size = |text: &str| bytes(text).map_err(|_| wrong());
    let first = if first.is_empty() { 0 } else { size(first)? };
    let last = match end.strip_prefix('=') {
        Some(last) => size(last)?,
        None if end.is_empty() => u64::MAX,
        None => size(end)?.checked_sub(1).ok_or_else(wrong)?,
    };
    if first > last { Err(wrong()) } else { Ok(first..=last) }
}
