//! Makes tables of the pages below `src/errors` and of the pages on topics, each as a reader of a terminal has it: without
//! the comments that only the tests of the book read; and a table of the words of the glossary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/errors");
    println!("cargo::rerun-if-changed={GLOSSARY}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where"));
    let write = |name: &str, table: String| {
        std::fs::write(out.join(name), table).expect("cargo's folder can be written");
    };
    write("pages.rs", table(Path::new("src/errors")));
    write("topics.rs", topics());
    write("words.rs", words(&std::fs::read_to_string(GLOSSARY).expect("a glossary")));
}

const GLOSSARY: &str = "src/reference/glossary.md";

/// The pages that have a name of their own, in the order of the names.
const TOPICS: [&str; 2] = ["order", "roundings"];

/// The text of a slice of words and meanings: a meaning is one paragraph, without the sentences that link a page.
fn words(glossary: &str) -> String {
    let mut table = String::from("&[\n");
    for entry in glossary.split("\n### ").skip(1) {
        let (words, text) = entry.split_once('\n').expect("a word has a meaning");
        let text = text.split("\n## ").next().unwrap_or(text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentences = text.split_inclusive(". ").filter(|one| !one.starts_with("Explained in"));
        let text: String = sentences.collect();
        for word in words.split(", ") {
            let _ = writeln!(table, "({word:?}, {:?}),", text.trim());
        }
    }
    table + "]\n"
}

/// The text of a slice of codes and pages, in the order of the codes.
fn table(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("the package has its pages");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a page").path()).collect();
    paths.sort();
    let mut table = String::from("&[\n");
    for path in paths {
        let code = path.file_stem().expect("a page has a name").to_string_lossy().into_owned();
        if code != "index" {
            let _ = writeln!(table, "({code:?}, {:?}),", shown(&path));
        }
    }
    table + "]\n"
}

/// The text of a slice of names and pages.
fn topics() -> String {
    let mut table = String::from("&[\n");
    for name in TOPICS {
        let path = format!("src/reference/{name}.md");
        println!("cargo::rerun-if-changed={path}");
        let _ = writeln!(table, "({name:?}, {:?}),", shown(Path::new(&path)));
    }
    table + "]\n"
}

/// The text of a page without its comments.
fn shown(path: &Path) -> String {
    let page = std::fs::read_to_string(path).expect("a page is text");
    let lines = page.lines().filter(|line| !line.starts_with("<!-- "));
    lines.flat_map(|line| [line, "\n"]).collect()
}
