//! Commands as the book shows them, and their output. The module is apart, because it starts processes.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use roundelay_tests::root;

use crate::command::call::{binary, example};

/// The commands of a transcript as they stand there: a line, and those behind it while they end in a backslash.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("$ ") {
            let mut command = line.to_owned();
            while command.ends_with('\\') {
                command.push('\n');
                command.push_str(lines.next().expect("a backslash is followed by a line"));
            }
            found.push(command);
        }
    }
    found
}

/// Returns the command `$ …` and its output in `folder`, on both streams.
pub(crate) fn transcript(line: &str, folder: &Path) -> String {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = command(line, folder);
    command.stderr(writer.try_clone().expect("a second end")).stdout(writer);
    let mut child = command.spawn().expect("the command starts");
    // It holds the pipe's ends for writing.
    drop(command);
    let mut output = String::new();
    reader.read_to_string(&mut output).expect("the output is text");
    child.wait().expect("the command ends");
    let mut shown = format!("{line}\n");
    for line in output.lines() {
        shown.push_str(line.trim_end());
        shown.push('\n');
    }
    shown
}

/// Returns the standard output of the line's command in `folder`.
pub(crate) fn drawn(line: &str, folder: &Path) -> String {
    let output = command(line, folder).output().expect("the command starts");
    assert!(output.status.success(), "{line} ended with {}", output.status);
    String::from_utf8(output.stdout).expect("a picture is text")
}

/// Returns the command of a line, with an empty input and its errors dropped.
fn command(line: &str, folder: &Path) -> Command {
    let words = words(&line.trim_start_matches("$ ").replace("\\\n", " "));
    // Programs of the tree run in its root; the other programs run where the listings are.
    let (mut command, folder) = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["roundelay", ref args @ ..] => (with(binary(), args), folder),
        ["cargo", "run", ref flags @ .., "--example", name] => {
            assert!(flags.iter().all(|flag| ["-q", "--quiet"].contains(flag)), "{line}");
            (example(name), &*root())
        }
        _ => panic!("the book runs only `roundelay` and `cargo run --example`, not `{line}`"),
    };
    command
        .current_dir(folder)
        .env("NO_COLOR", "1")
        // How wide a help is.
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn with(mut command: Command, args: &[&str]) -> Command {
    command.args(args);
    command
}

/// The words of a command, of which one in double quotes may hold blanks.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(i, part)| match i % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// Returns `text` with every decimal fraction replaced: times and speeds differ from run to run.
pub(crate) fn without_measurements(text: &str) -> String {
    let is_fraction = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    let mut plain = String::new();
    for line in text.lines() {
        if line.split_whitespace().any(is_fraction) {
            let words = line.split_whitespace();
            let words: Vec<_> = words.map(|w| if is_fraction(w) { "0.0" } else { w }).collect();
            plain.push_str(&words.join(" "));
        } else {
            plain.push_str(line);
        }
        plain.push('\n');
    }
    plain
}
