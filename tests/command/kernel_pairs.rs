//! Pairs of kernels of `examples/kernels`: one has a real bug, which the check finds, and its twin has no finding.

use std::fmt::Write as _;
use std::path::PathBuf;

use expect_test::expect_file;
use roundelay_tests::{files, name, root};

use super::call::roundelay;

/// The most lines of a kernel, as one of its cases compiles it.
const MOST_LINES: usize = 40;
/// Instructions that the runs of all pairs may take together: seconds on a machine without other work.
const MOST_INSTRUCTIONS: u64 = 10_000_000;

fn pairs() -> Vec<PathBuf> {
    let mut pairs = files(&root().join("examples/kernels"), "toml");
    pairs.retain(|path| name(path).ends_with(".kernel.toml"));
    assert!(pairs.len() >= 26, "{} pairs alone", pairs.len());
    pairs
}

fn read(path: &PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The text of a key at the beginning of a harness.
fn value(harness: &str, key: &str) -> String {
    let line = harness.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
    line.and_then(|line| line.strip_suffix('"')).unwrap_or_else(|| panic!("no {key}")).to_owned()
}

/// A link with the name of its repository, and the number of the thread if it is one.
fn link(url: &str) -> String {
    let parts: Vec<&str> = url.split('/').collect();
    let [_, _, "github.com", owner, repository, kind, last, ..] = parts[..] else {
        panic!("{url} is no page of a repository");
    };
    let thread =
        if ["issues", "pull"].contains(&kind) { format!("#{last}") } else { String::new() };
    format!("[{owner}/{repository}{thread}]({url})")
}

/// Every case has the verdict that its file states. `UPDATE_EXPECT=1` writes the table of the book.
#[test]
fn the_pairs_have_the_verdicts_that_they_state() {
    let paths = pairs();
    let mut args = vec!["kernel", "check", "--format", "json", "--budget", "20s"];
    args.extend(paths.iter().map(|path| path.to_str().expect("a path is text")));
    let call = roundelay(&args);
    let told = call.json();
    let verdicts = told["verdicts"].as_array().expect("a list of verdicts");
    let (mut seconds, mut instructions, mut wrong) = (0.0, 0, String::new());
    let heads = ["pair", "what is wrong", "from", "verdicts"];
    let mut table = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for path in &paths {
        let file = name(path);
        let cases = verdicts.iter().filter(|verdict| {
            verdict["file"].as_str().is_some_and(|told| told.ends_with(&format!("/{file}")))
        });
        let (mut words, mut clean, mut found) = (Vec::new(), false, false);
        for verdict in cases {
            let word = verdict["verdict"].as_str().expect("a verdict");
            let case = verdict["case"].as_str().unwrap_or_default();
            let took = verdict["seconds"].as_f64().expect("seconds");
            seconds += took;
            let runs = verdict["cases"].as_array().expect("the cases").iter();
            instructions += runs.filter_map(|runs| runs["instructions"].as_u64()).sum::<u64>();
            println!("{took:6.2} s  {file} {case}: {word}");
            if verdict["as_expected"] != true {
                let _ = writeln!(wrong, "{file} {case}: {word}, not {}", verdict["expected"]);
            }
            clean |= word == "clean" && case == "good";
            found |= word != "clean";
            words.push(format!("{}: {word}", case.replace('_', " ")));
        }
        if !(clean && found) {
            let _ = writeln!(wrong, "{file} is no pair of a bug and its mend: {words:?}");
        }
        let stem = file.trim_end_matches(".kernel.toml");
        let harness = read(path);
        let cells = [
            &format!("`{stem}`"),
            &value(&harness, "title"),
            &link(&value(&harness, "source")),
            &words.join("; "),
        ];
        let _ = writeln!(table, "| {} |", cells.map(String::as_str).join(" | "));
    }
    println!("{seconds:6.2} s  in all, and {instructions} instructions");
    assert!(wrong.is_empty(), "{wrong}{}", call.err);
    call.ends(0);
    assert!(instructions < MOST_INSTRUCTIONS, "the pairs take {instructions} instructions");
    expect_file![root().join("book/src/listings/museum/kernels.table")].assert_eq(&table);
}

/// A kernel is short, and links to where its bug is told.
#[test]
fn a_kernel_of_a_pair_is_short_and_has_its_source() {
    for path in pairs() {
        let harness = read(&path);
        let kernel = read(&PathBuf::from(path.to_string_lossy().replace(".kernel.toml", ".cu")));
        let source = value(&harness, "source");
        assert!(kernel.contains(&source), "{} does not link {source}", path.display());
        let defines = harness.lines().filter_map(|line| line.strip_prefix("define = [\""));
        let defines = defines.filter_map(|line| line.strip_suffix("\"]")).chain([""]);
        for define in defines {
            let lines = compiled(&kernel, define);
            let file = path.display();
            assert!(lines <= MOST_LINES, "{file} has {lines} lines with `{define}`");
        }
    }
}

/// The lines of a text that a macro leaves, without those of the preprocessor.
fn compiled(text: &str, define: &str) -> usize {
    let mut taken = vec![true];
    let mut lines = 0;
    for line in text.lines() {
        let has_it = !define.is_empty()
            && line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == define);
        if line.starts_with("#if") {
            taken.push(has_it != line.starts_with("#ifndef"));
        } else if line.starts_with("#else") {
            let last = taken.pop().expect("an #if before");
            taken.push(!last);
        } else if line.starts_with("#endif") {
            taken.pop();
        } else if taken.iter().all(|&taken| taken) {
            lines += 1;
        }
    }
    lines
}
