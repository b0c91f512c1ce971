//! The verdicts of a check in print: for people, for programs, and as annotations of a pull request.

use roundelay_core::diagnostics::{Diagnostic, Severity};
use roundelay_core::render::render;
use roundelay_core::syntax::Source;
use roundelay_core::units::count;
use roundelay_kernel_check::{Case, Harness, State, Verdict};
use roundelay_topology::Problem;
use serde_json::{Value, json};

use super::{CheckFormat, case_name};
use crate::report::{Failure, JsonDiagnostic, took, within_a_page};
use crate::streams::{is_verbose, print, print_json, say};

/// The printer of all verdicts of a call.
pub(super) struct Printer {
    format: CheckFormat,
    verdicts: Vec<Value>,
    cases: Vec<Value>,
    wrong: Vec<JsonDiagnostic>,
    all_right: bool,
}

impl Printer {
    pub(super) fn new(format: CheckFormat) -> Self {
        Self { format, verdicts: Vec::new(), cases: Vec::new(), wrong: Vec::new(), all_right: true }
    }

    /// Prints the error of a harness, and returns the exit code.
    pub(super) fn wrong(&mut self, (diagnostic, source): &(Diagnostic, Source)) -> u8 {
        match self.format {
            CheckFormat::Text => say(format!("{}\n", render(diagnostic, source, true))),
            CheckFormat::Json => self.wrong.push(JsonDiagnostic::new(diagnostic, source)),
            CheckFormat::Github => annotate(diagnostic, source),
        }
        2
    }

    /// Prints the cases of a harness.
    pub(super) fn list(&mut self, file: &str, harnesses: &[Harness]) {
        for harness in harnesses {
            let Harness { case, title, run, verdict, .. } = harness;
            if self.format == CheckFormat::Json {
                self.cases.push(json!({
                    "file": file, "case": case, "title": title, "ranks": run.ranks, "elements": run.elements,
                    "seeds": run.seeds, "expected": verdict,
                }));
                continue;
            }
            let name = case_name(file, harness);
            let stated = verdict.join(" or ");
            let stated = if stated.is_empty() { stated } else { format!(": {stated}") };
            let title = if title.is_empty() { String::new() } else { format!("; {title}") };
            print(&within_a_page(&format!("{name}{stated}{title}"), 4));
        }
    }

    /// Prints why a case of a harness cannot be run, and returns the exit code.
    pub(super) fn problem(&mut self, file: &str, harness: &Harness, problem: Problem) -> u8 {
        let case = harness.case.as_ref().map_or(String::new(), |case| format!(", case {case}"));
        let problem = problem.note(format!("the harness is {file}{case}"));
        match self.format {
            CheckFormat::Text => return Failure::from(problem).print(),
            CheckFormat::Json => self.wrong.push(JsonDiagnostic::placeless(&problem)),
            CheckFormat::Github => {
                let text = escaped(&problem.title);
                print(&format!("::error file={file},title={}::{text}", problem.code));
            }
        }
        2
    }

    /// Prints a verdict.
    pub(super) fn verdict(
        &mut self,
        (file, text): (&str, &str),
        harness: &Harness,
        cases: &[Case],
        verdict: &Verdict,
    ) {
        let found = verdict.diagnostic((file, text), harness, cases);
        let as_stated = verdict.is_as_stated() == Some(true);
        self.all_right &= verdict.is_right();
        match self.format {
            CheckFormat::Json => {
                self.verdicts.push(verdict.json(file, env!("CARGO_PKG_VERSION")));
            }
            CheckFormat::Github => {
                if let Some((diagnostic, source)) = found.filter(|_| !as_stated) {
                    annotate(&diagnostic, &source);
                } else if verdict.is_as_stated() == Some(false) {
                    print(&format!(
                        "::error file={file}::{}",
                        escaped(&summary(file, harness, verdict))
                    ));
                }
            }
            CheckFormat::Text => {
                // A finding that the harness states is no news.
                if let Some((diagnostic, source)) = found.filter(|_| !as_stated || is_verbose()) {
                    say(format!("{}\n", render(&diagnostic, &source, true)));
                }
                print(&within_a_page(&summary(file, harness, verdict), 4));
            }
        }
    }

    /// Prints what stands at the end.
    pub(super) fn end(self) {
        if self.format == CheckFormat::Json {
            print_json(&json!({
                "ok": self.wrong.is_empty() && self.all_right, "verdicts": self.verdicts, "cases": self.cases, "diagnostics": self.wrong,
            }));
        }
    }
}

/// Returns the verdict in one line.
fn summary(file: &str, harness: &Harness, verdict: &Verdict) -> String {
    let name = case_name(file, harness);
    let ranks: Vec<_> = harness.run.ranks.iter().map(u32::to_string).collect();
    let seeds = count(usize::try_from(verdict.seeds()).unwrap_or(usize::MAX), "run");
    let found = match verdict.state {
        State::Clean => format!("no finding in {seeds}; relies on nothing"),
        State::Relies => {
            format!(
                "relies on {}; with that, no finding in {seeds}",
                roundelay_kernel_check::names(&verdict.assumptions)
            )
        }
        _ => {
            let title = verdict.finding.as_ref().map_or("", |found| found.title.as_str());
            format!("{}: {}", verdict.word(), title.strip_prefix("a race: ").unwrap_or(title))
        }
    };
    let stated = match verdict.is_as_stated() {
        Some(true) => ", as the harness states".to_owned(),
        Some(false) => format!(", but the harness states {}", verdict.stated.join(" or ")),
        None => String::new(),
    };
    let left = match (verdict.whole, verdict.stopped) {
        (_, true) => "; stopped",
        (false, _) => "; the time was up before all seeds were run",
        _ => "",
    };
    // Times differ from call to call.
    let time = if is_verbose() { format!(", {}", took(verdict.seconds)) } else { String::new() };
    format!("{name}: {found}{stated} ({} ranks{time}{left})", ranks.join(", "))
}

/// Prints a diagnostic as a command of GitHub's runner.
fn annotate(diagnostic: &Diagnostic, source: &Source) {
    let Diagnostic { code, title, notes, help, severity, primary, .. } = diagnostic;
    let level = if *severity == Severity::Error { "error" } else { "warning" };
    let at = source.location(*primary);
    let mut text = title.clone();
    for line in notes.iter().chain(help) {
        text.push('\n');
        text += line;
    }
    let (name, line) = (source.name(), at.line);
    print(&format!("::{level} file={name},line={line},title={code}::{}", escaped(&text)));
}

/// Returns a text as the value of such a command.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
