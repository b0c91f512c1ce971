//! Error pages: an explanation written by hand in `book/errors/`, with the wrong program and its real
//! message put in. The page holds no directives, because `roundelay explain` prints it as it is.
//!
//! A line `{{wrong NAME}}` becomes `tests/wrong/NAME.coll` and the message beside it, `{{console ARGS}}`
//! what `roundelay ARGS` prints, `{{engine}}` a call from `engine.rs` and its error.

use std::fmt::Write as _;
use std::path::PathBuf;

use roundelay_core::diagnostics::Code;
use roundelay_tests::root;

use crate::book::{console, engine};

/// How many columns of code a page has. Messages are wrapped, and programs are narrow enough.
pub(crate) const WIDEST: usize = 100;

pub(crate) fn path(code: Code) -> PathBuf {
    root().join(format!("book/src/errors/{code}.md"))
}

/// The pages as the command holds them: in one file of its own package, each under a line with its code.
pub(crate) fn embedded() -> String {
    let mut all = String::new();
    for code in Code::ALL {
        let page = std::fs::read_to_string(path(*code)).unwrap_or_default();
        assert!(
            !page.contains("%% "),
            "{code}: the command takes `%% ` for the beginning of a page"
        );
        let _ = write!(all, "%% {code}\n{page}");
    }
    all
}

/// What was written by hand.
pub(crate) fn template(code: Code) -> String {
    let path = root().join(format!("book/errors/{code}.md"));
    std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{code} has no {}", path.display()))
}

pub(crate) fn page(code: Code) -> String {
    let mut page = format!("# {code}: {}\n\n", code.summary());
    for line in template(code).lines() {
        let directive = line.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        match directive.map(|d| d.split_once(' ').unwrap_or((d, ""))) {
            None => writeln!(page, "{line}").expect("a string grows"),
            Some(("wrong", name)) => {
                fence(&mut page, "coll", &wrong(name, "coll"));
                page.push('\n');
                fence(&mut page, "text", &wrong(name, "stderr"));
            }
            Some(("console", args)) => {
                let listings = match code.as_str() {
                    code if code > "E0800" => "msccl",
                    code if code > "E0605" => "topology",
                    _ => "one_ring",
                };
                let folder = root().join("book/src/listings").join(listings);
                fence(
                    &mut page,
                    "console",
                    &console::transcript(&format!("$ roundelay {args}"), &folder),
                );
            }
            Some(("engine", _)) => {
                let (call, error) = engine::example(code);
                if !call.is_empty() {
                    fence(&mut page, "rust,ignore", &call);
                    page.push('\n');
                }
                fence(&mut page, "text", &format!("error[{code}]: {error}"));
            }
            Some((other, _)) => panic!("{code}: no directive `{other}`"),
        }
    }
    page
}

fn wrong(name: &str, extension: &str) -> String {
    let path = root().join(format!("tests/wrong/{name}.{extension}"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn fence(page: &mut String, language: &str, text: &str) {
    let _ = writeln!(page, "```{language}");
    for line in text.trim_end().lines() {
        let shown = match language {
            "text" | "console" => wrapped(line),
            _ => line.to_owned(),
        };
        let widest = shown.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let command = line.starts_with('$');
        assert!(widest <= WIDEST || command, "the page is narrower than this line:\n{line}");
        let _ = writeln!(page, "{shown}");
    }
    page.push_str("```\n");
}

/// What is too wide goes on below, under its own text. The lines of a program itself stay as they are.
fn wrapped(line: &str) -> String {
    let text = line.trim_start();
    let blanks = line.len() - text.len();
    if text.starts_with('|') {
        // What is said of a place in the program, behind the marks below it.
        let label = text.find(|c| !" |_^-".contains(c)).map_or(0, |at| blanks + at);
        let goes_on = format!("{:blanks$}|", "");
        return broken(line, &format!("{goes_on:label$}"));
    }
    let numbered = text.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    if numbered.starts_with('|') || text.starts_with("-->") || text.starts_with('$') {
        return line.to_owned();
    }
    let kind = ["= note: ", "= help: "].iter().find(|kind| text.starts_with(**kind));
    let indent = match blanks {
        0 => 4,
        blanks => blanks + kind.map_or(2, |kind| kind.len()),
    };
    broken(line, &" ".repeat(indent))
}

/// Breaks a line that is too wide between words. Each further line begins with `margin`.
fn broken(line: &str, margin: &str) -> String {
    let mut all = String::new();
    let mut width = 0;
    for word in line.split_inclusive(' ') {
        if width + word.trim_end().chars().count() > WIDEST && width > margin.len() {
            all.truncate(all.trim_end().len());
            let _ = write!(all, "\n{margin}");
            width = margin.len();
        }
        all.push_str(word);
        width += word.chars().count();
    }
    all
}

/// The whole programs in a text: its blocks of `coll`, but for files that it shows, which have tests of their own.
pub(crate) fn programs(text: &str) -> Vec<String> {
    let blocks = text.split("```coll\n").skip(1);
    let own = blocks.filter(|block| !block.starts_with("{{#include "));
    own.map(|b| b.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The chapter's first page: every code with its line.
pub(crate) fn index() -> String {
    let mut page = String::from(
        "# Error codes\n\n\
         Every error has a code, the same in the macro, on the command line and when a plan is made. So has every\n\
         warning: [which are errors](../reference/language.md#warnings) is the author's and the caller's choice.\n\
         `roundelay explain E0301` prints the page of a code; `roundelay explain` lists them. The pages wrap long\n\
         messages, which the command prints on one line each.\n",
    );
    let mut group = "";
    for code in Code::ALL {
        let part = match &code.as_str()[..3] {
            "E00" => "The text",
            "E01" => "Names and types",
            "E02" => "Laying out for a number of ranks",
            "E03" => "The proof",
            "E04" => "Plans and runs",
            "E05" => "The command line",
            "E06" => "Topologies",
            "E07" => "Executors",
            "E08" => "Programs of other runtimes",
            _ => "Warnings",
        };
        if part != group {
            let _ = write!(page, "\n## {part}\n\n| code | what it says |\n|---|---|\n");
            group = part;
        }
        let _ = writeln!(page, "| [{code}]({code}.md) | {} |", code.summary());
    }
    page
}
