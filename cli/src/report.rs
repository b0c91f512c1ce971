//! Errors, as the person or the program that called sees them.

use std::ops::RangeInclusive;

use clap::ValueEnum;
use roundelay::Algorithm as _;
use roundelay::tools::problem_text;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding, Severity};
use roundelay_core::dtype::NoSuchOp;
use roundelay_core::expansion::ranges;
use roundelay_core::json::Json;
use roundelay_core::layout::{Configured, Limits};
use roundelay_core::source::Span;
use roundelay_core::syntax::Source;
use roundelay_core::units::count;
use roundelay_runner::RunError;
use roundelay_runner::memory::TooMuch;
use roundelay_topology::Problem;
use serde::Serialize;

use crate::facts::part;
use crate::streams::{note, print_json, say};

/// Returns the exit code of a command that reported its result, or failed: then the failure is printed here.
pub(crate) fn exit_code(outcome: Result<bool, Failure>) -> u8 {
    match outcome {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(failure) => failure.print(),
    }
}

/// Returns a time as people write it: in milliseconds below one second, then in seconds, minutes and hours.
pub(crate) fn took(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        ..1.0 => format!("{:.1} ms", seconds * 1e3),
        ..59.95 => format!("{seconds:.1} s"),
        ..3599.5 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// The reader of a report.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[value(alias = "text")]
    Human,
    /// For programs
    Json,
}

/// Why a command gave up.
pub(crate) enum Failure {
    /// The call is wrong: a flag, a missing file, a parameter.
    Usage(Box<Problem>),
    /// A flag's value is wrong at some place within it.
    Value(Vec<Diagnostic>, Box<Source>),
    /// The program is wrong; its errors have been printed.
    Program,
}

impl Failure {
    pub(crate) fn usage(code: Code, title: impl Into<String>) -> Self {
        Problem::new(code, title).into()
    }

    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        match self {
            Self::Usage(problem) => problem.help(help).into(),
            other => other,
        }
    }

    /// Says it, and returns the exit code.
    pub(crate) fn print(self) -> u8 {
        match self {
            Self::Usage(problem) => {
                say(problem_text(&problem, true));
                2
            }
            Self::Value(diagnostics, source) => {
                print_all(&diagnostics, &source);
                2
            }
            Self::Program => 1,
        }
    }
}

/// Makes an error of a text that may end with its code, which is printed before the text.
pub(crate) fn coded(code: Code, text: &str) -> Problem {
    Problem::new(code, text.strip_suffix(&format!(" [{code}]")).unwrap_or(text))
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Usage(Box::new(problem))
    }
}

impl From<NoSuchOp> for Failure {
    fn from(none: NoSuchOp) -> Self {
        Self::usage(Code::NoSuchOp, none.to_string()).with_help(NoSuchOp::help())
    }
}

impl From<roundelay_kernels::Error> for Failure {
    fn from(error: roundelay_kernels::Error) -> Self {
        coded(error.code(), &error.to_string()).into()
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Problem(problem) => Self::Usage(problem),
            RunError::Unproved => Self::Program,
        }
    }
}

impl From<Failure> for RunError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Usage(problem) => Self::Problem(problem),
            // The command that asks has read and proved the same program.
            Failure::Value(..) | Failure::Program => Self::Unproved,
        }
    }
}

impl From<TooMuch> for Failure {
    fn from(much: TooMuch) -> Self {
        Self::usage(Code::TooLarge, format!("the run {much}"))
            .with_help("lower --count or the sizes, or the number of ranks")
    }
}

#[cfg(feature = "cuda")]
impl From<roundelay_kernels::cuda::Error> for Failure {
    fn from(error: roundelay_kernels::cuda::Error) -> Self {
        coded(error.code(), &error.to_string()).into()
    }
}

/// A diagnostic as `--format json` gives it.
#[derive(Serialize)]
pub(crate) struct JsonDiagnostic(#[serde(serialize_with = "part")] Json);

impl JsonDiagnostic {
    pub(crate) fn new(diagnostic: &Diagnostic, source: &Source) -> Self {
        Self(diagnostic.json(source))
    }

    /// Makes a diagnostic without a place in a source.
    pub(crate) fn placeless(problem: &Problem) -> Self {
        let Problem { code, title, notes, help } = problem.clone();
        let diagnostic =
            Diagnostic { notes, help, ..Diagnostic::new(code, Span::default(), title) };
        Self::new(&diagnostic, &Source::from_text("", ""))
    }
}

/// Returns the document of a command whose source has errors.
#[expect(clippy::needless_pass_by_value, reason = "`refuse` passes it by value")]
pub(crate) fn wrong(diagnostics: Vec<JsonDiagnostic>) -> serde_json::Value {
    serde_json::json!({ "ok": false, "diagnostics": diagnostics })
}

/// Prints diagnostics like rustc does, to standard error.
pub(crate) fn print_all(diagnostics: &[Diagnostic], source: &Source) {
    for diagnostic in diagnostics {
        say(format!("{}\n", roundelay_core::render::render(diagnostic, source, true)));
    }
}

/// Adds the numbers of ranks that `algorithm` takes, where it refuses the number it was asked for: the `default` of the
/// command, if no number was given.
pub(crate) fn name_counts(errors: &mut [Diagnostic], algorithm: &Configured, default: Option<u32>) {
    /// The numbers that are tried, by schedules with at most this many ops and steps.
    const TRIED: RangeInclusive<u32> = 1..=33;
    const LIMITS: Limits = Limits { ops: 1 << 18, steps: 1 << 18 };
    /// The most numbers that are listed.
    const NAMED: usize = 60;
    let Some(error) = errors.iter_mut().find(|error| error.code == Code::RankCountRefused) else {
        return;
    };
    if let Some(default) = default {
        error.notes.push(format!("{default} is the default of --nranks"));
    }
    if error.help.is_some() {
        return;
    }
    // A schedule that is too large to be tried was not refused.
    let refuses = |findings: Vec<Finding>| {
        findings.iter().any(|finding| finding.code == Code::RankCountRefused)
    };
    let takes = |n: &u32| !algorithm.schedule_within(*n, LIMITS).is_err_and(refuses);
    let taken: Vec<u32> = TRIED.filter(takes).collect();
    let counts = ranges(&taken);
    let (first, last) = (TRIED.start(), TRIED.end());
    error.help = Some(match &taken[..] {
        [] => format!("no number of ranks from {first} to {last} is taken"),
        _ => {
            let more = if counts.len() <= NAMED { "" } else { " and more" };
            let named = if more.is_empty() { counts } else { ranges(&taken[..4]) };
            format!(
                "choose a number of ranks by `--nranks`: of {first}..={last} it takes {named}{more}"
            )
        }
    });
}

/// Ends a command whose source has errors: prints them for people on standard error, or the JSON that `value` makes.
pub(crate) fn refuse<J: Serialize>(
    format: Format,
    diagnostics: &[Diagnostic],
    source: &Source,
    value: impl FnOnce(Vec<JsonDiagnostic>) -> J,
) -> Failure {
    match format {
        Format::Human => {
            print_all(diagnostics, source);
            let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
            let found = match diagnostics.len() - errors {
                0 => count(errors, "error"),
                n => format!("{} and {}", count(errors, "error"), count(n, "warning")),
            };
            note(format!("\x1b[1;91merror\x1b[0m\x1b[1m: {found} in {}\x1b[0m", source.name()));
        }
        Format::Json => {
            let all = diagnostics.iter().map(|d| JsonDiagnostic::new(d, source)).collect();
            print_json(&value(all));
        }
    }
    Failure::Program
}

/// The columns of a report: the width of the book's pages.
pub(crate) const WIDEST: usize = 100;

/// Breaks a line of a report into lines of at most [`WIDEST`] columns: between words, and all but the first indented by
/// `indent`.
pub(crate) fn within_a_page(line: &str, indent: usize) -> String {
    let mut shown = String::new();
    let mut width = 0;
    for word in line.split_inclusive(' ') {
        let long = word.trim_end().chars().count();
        if width > indent && width + long > WIDEST {
            shown.truncate(shown.trim_end().len());
            shown.push('\n');
            shown.push_str(&" ".repeat(indent));
            width = indent;
        }
        shown.push_str(word);
        width += word.chars().count();
    }
    shown
}

/// Returns an argument as it is typed in a shell.
pub(crate) fn quoted(text: &str) -> String {
    let quote = if text.contains('"') { '\'' } else { '"' };
    format!("{quote}{text}{quote}")
}

#[cfg(test)]
mod tests {
    use super::{took, within_a_page};

    #[test]
    fn a_time_is_written_as_people_write_it() {
        let times = [0.0042, 0.9999, 1.0, 59.94, 59.96, 95.4, 3599.4, 3599.6, 7384.0];
        let texts = [
            "4.2 ms",
            "999.9 ms",
            "1.0 s",
            "59.9 s",
            "1 min 0 s",
            "1 min 35 s",
            "59 min 59 s",
            "1 h 0 min",
            "2 h 3 min",
        ];
        assert_eq!(times.map(took), texts);
    }

    #[test]
    fn a_long_line_goes_on_below() {
        let long = format!("  bound  {}", "word ".repeat(30));
        let shown = within_a_page(long.trim_end(), 9);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines.len(), 2, "{shown}");
        assert!(lines.iter().all(|line| line.len() <= 100 && line.trim_end() == *line), "{shown}");
        assert!(lines[1].starts_with("         word"), "{shown}");
        assert_eq!(shown.split_whitespace().count(), 31);
        assert_eq!(within_a_page("  as it was", 4), "  as it was");
    }
}
