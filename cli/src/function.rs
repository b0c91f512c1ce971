//! The command as a function, for libraries: it returns its output.

use std::ffi::OsString;

use crate::streams::keeping;

/// The output of a command, and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The exit code.
    pub code: u8,
    /// The text on its standard output.
    pub out: String,
    /// The text on its standard error.
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
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let (code, kept) = keeping(input.to_owned(), || crate::command(&args));
    Output { code, out: kept.out, err: kept.err }
}
