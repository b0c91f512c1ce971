//! The grammar for editors and the highlighter of the book: both know every word of the language.

use std::collections::BTreeSet;

use roundelay::Collective;
use roundelay_core::syntax::token::{CONTEXTUAL, KEYWORDS};
use roundelay_tests::root;
use serde_json::Value;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words of a pattern or of a program, without the `b` of its word boundaries.
fn words(text: &str) -> BTreeSet<String> {
    let text = text.replace("\\b", " ");
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// All patterns of a grammar.
fn patterns(grammar: &Value, found: &mut String) {
    match grammar {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(pattern) if ["match", "begin", "end"].contains(&&name[..]) => {
                        found.push_str(pattern);
                        found.push('\n');
                    }
                    _ => patterns(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| patterns(value, found)),
        _ => {}
    }
}

#[test]
fn every_keyword_is_colored() {
    let mut grammar = String::new();
    patterns(&json("editors/coll.tmLanguage.json"), &mut grammar);
    let script = read("book/coll.js");
    let program = script.lines().filter(|line| !line.trim_start().starts_with("//"));
    let program: Vec<_> = program.collect();
    let collectives = Collective::ALL.map(Collective::name);
    for (what, known) in [("grammar", words(&grammar)), ("book", words(&program.join("\n")))] {
        let all = KEYWORDS.iter().chain(CONTEXTUAL).chain(&collectives);
        let missing: Vec<_> = all.filter(|word| !known.contains(**word)).collect();
        assert!(missing.is_empty(), "the highlighter of the {what} lacks {missing:?}");
    }
}

#[test]
fn the_extension_finds_its_files() {
    let package = json("editors/vscode/package.json");
    let contributes = &package["contributes"];
    assert_eq!(contributes["grammars"][0]["path"], "./coll.tmLanguage.json");
    let grammar = json("editors/coll.tmLanguage.json");
    assert_eq!(contributes["grammars"][0]["scopeName"], grammar["scopeName"]);
    assert_eq!(contributes["languages"][0]["configuration"], "./language-configuration.json");
    assert_eq!(json("editors/vscode/language-configuration.json")["comments"]["lineComment"], "//");
    // The package has a copy of the grammar, which is no second one in the tree.
    let build = package["scripts"]["build"].as_str().expect("a command");
    assert!(build.contains("cp ../coll.tmLanguage.json ."), "{build}");
    assert!(read("book/book.toml").contains("additional-js = [\"coll.js\"]"));
}
