//! Pages are written by hand but for their made parts, which the tests write, so that a page is whole wherever it is
//! read: in the browser, on a forge, in an editor. A part begins with a comment and ends with `<!-- end -->`.
//!
//! Below `<!-- include INFO FILE… -->` stands the text of files, in a fence with that info, or bare where the info is `-`.
//! A file may be followed by `:ANCHOR` or by `:FIRST:LAST`, numbers of lines; `/` stands for an empty line, and `…` for
//! itself. Error pages, `book/src/errors/CODE.md`, have other parts and a made title: below `<!-- wrong NAME -->` stand
//! `tests/wrong/NAME.coll` and the message beside it, below `<!-- console ARGS -->` the output of `roundelay ARGS`, and
//! below `<!-- engine -->` a call from `engine.rs` and its error. `roundelay explain` prints them, without the comments.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use roundelay_core::diagnostics::Code;
use roundelay_tests::root;

use crate::book::{console, engine, facts, read};

/// How many columns of code a page has. Messages are wrapped, and programs are narrow enough.
pub(crate) const WIDEST: usize = 100;

/// The line that ends a made part.
pub(crate) const END: &str = "<!-- end -->";

pub(crate) fn path(code: Code) -> PathBuf {
    root().join(format!("book/src/errors/{code}.md"))
}

/// A page's text by hand, with the directives of its made parts and without these parts.
pub(crate) fn by_hand(page: &str) -> String {
    let mut kept = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let _ = writeln!(kept, "{line}");
        if directive(line).is_some() {
            assert!(lines.any(|line| line == END), "a part has no end: {line}");
        }
    }
    kept
}

/// The files of all `include` parts of a text, as the directives name them.
pub(crate) fn includes(text: &str) -> Vec<&str> {
    let directives = text.lines().filter_map(directive);
    let files = directives.filter(|(name, _)| *name == "include").map(|(_, args)| args);
    files
        .flat_map(|args| args.split(' ').skip(1))
        .filter(|part| !["/", "…"].contains(part))
        .collect()
}

/// A text by hand with its parts, each made by `part` of the name and the arguments of a directive.
fn with_parts(text: &str, mut part: impl FnMut(&str, &str) -> String) -> String {
    let mut page = String::new();
    for line in text.lines() {
        let _ = writeln!(page, "{line}");
        if let Some((name, args)) = directive(line) {
            page += &part(name, args);
            let _ = writeln!(page, "{END}");
        }
    }
    page
}

/// The page at `path` as it must be: its text by hand, with fresh parts.
pub(crate) fn whole(path: &Path) -> String {
    let folder = path.parent().expect("a page has a folder");
    let page = with_parts(&by_hand(&read(path)), |name, args| match name {
        // A reader of the README types commands in the clone's root, and not in the folder of a listing.
        "include" if folder == root() => included(folder, args).replace("../../../../", ""),
        "include" => included(folder, args),
        _ => panic!("{}: `{name}` is for error pages", path.display()),
    });
    facts::with_facts(&page)
}

/// The text of an `include` part.
fn included(folder: &Path, args: &str) -> String {
    let (info, parts) = args.split_once(' ').expect("an info and files");
    let mut body = String::new();
    for part in parts.split(' ') {
        match part {
            "/" => body.push('\n'),
            "…" => body += "…\n",
            file => body += &selected(folder, file),
        }
    }
    match info {
        "-" => format!("{body}\n"),
        info => format!("```{info}\n{body}```\n"),
    }
}

/// The lines that `file`, `file:ANCHOR` or `file:FIRST:LAST` selects, without the lines that name anchors.
fn selected(folder: &Path, part: &str) -> String {
    let (file, select) = part.split_once(':').unwrap_or((part, ""));
    let text = read(&folder.join(file));
    let range = select.split_once(':').map(|ends| {
        let [first, last] = [ends.0, ends.1].map(|end| end.parse::<usize>().expect("a line"));
        first..=last
    });
    let mut shown = range.is_some() || select.is_empty();
    let mut lines = String::new();
    for (number, line) in (1..).zip(text.trim_end().lines()) {
        let mark = line.split_once("ANCHOR").map(|(_, mark)| mark);
        if let Some(mark) = mark {
            let name = mark.split_once(": ").map_or("", |(_, name)| name.trim_end_matches(" -->"));
            if name == select {
                shown = mark.starts_with(':');
            }
        } else if shown && range.as_ref().is_none_or(|range| range.contains(&number)) {
            let _ = writeln!(lines, "{line}");
        }
    }
    assert!(!lines.is_empty(), "{part} selects no line");
    lines
}

/// The directive of a line that begins a made part.
pub(crate) fn directive(line: &str) -> Option<(&str, &str)> {
    let text = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let (name, args) = text.split_once(' ').unwrap_or((text, ""));
    ["include", "wrong", "console", "engine"].contains(&name).then_some((name, args))
}

/// The text by hand of the page of a code.
pub(crate) fn written(code: Code) -> String {
    let path = path(code);
    let page = std::fs::read_to_string(&path);
    by_hand(&page.unwrap_or_else(|_| panic!("{code} has no {}", path.display())))
}

/// The page of a code as it must be: its text by hand under the code's title, with fresh parts.
pub(crate) fn page(code: Code) -> String {
    let written = written(code);
    let (_, below) = written.split_once('\n').expect("a page has a title");
    let below = with_parts(below, |name, args| match name {
        "wrong" => {
            fence("coll", &wrong(args, "coll")) + "\n" + &fence("text", &wrong(args, "stderr"))
        }
        "console" => {
            let listings = match code.as_str() {
                "W0008" => "kernels",
                code if ("E0435"..="E0440").contains(&code) => "kernels",
                code if code > "E0800" => "msccl",
                code if code > "E0605" => "topology",
                _ => "one_ring",
            };
            let folder = root().join("book/src/listings").join(listings);
            fence("console", &console::transcript(&format!("$ roundelay {args}"), &folder))
        }
        "engine" => {
            let (call, error) = engine::example(code);
            let error = fence("text", &format!("error[{code}]: {error}"));
            if call.is_empty() { error } else { fence("rust,ignore", &call) + "\n" + &error }
        }
        _ => panic!("{code}: `{name}` is for pages that no command prints"),
    });
    format!("# {code}: {}\n{below}", code.summary())
}

fn wrong(name: &str, extension: &str) -> String {
    read(&root().join(format!("tests/wrong/{name}.{extension}")))
}

fn fence(language: &str, text: &str) -> String {
    let mut page = format!("```{language}\n");
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
    page + "```\n"
}

/// Returns a line broken to the page's width, with the rest below, under its own text. Lines of a program itself stay
/// unchanged.
fn wrapped(line: &str) -> String {
    let text = line.trim_start();
    let blanks = line.len() - text.len();
    if text.starts_with('|') {
        // The message for a place in the program, behind the marks below it.
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

/// The whole programs in a text by hand: its blocks of `coll`. Files that it includes have tests of their own.
pub(crate) fn programs(text: &str) -> Vec<String> {
    let text = by_hand(text);
    let own = text.split("```coll\n").skip(1);
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
