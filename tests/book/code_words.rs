//! Code words in the prose beside printed code: a page that shows the output of `roundelay emit` speaks of code that
//! the output has.

use std::collections::BTreeSet;
use std::path::Path;

use roundelay_tests::{files, root};

use crate::book::listings::prose;
use crate::book::{console, pages, read};

/// The forms of code that a page explains word by word.
const FORMS: [&str; 4] = ["emit cuda", "emit loops", "emit hccl-cpp", "emit mpi"];

/// The words in backquotes of a text by hand, outside of its blocks of code.
fn code_words(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced && !line.starts_with("```") {
            prose.push_str(line.trim());
            prose.push(' ');
        }
    }
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The file of a part of an `include`, whole.
fn file(page: &Path, part: &str) -> String {
    let file = part.split(':').next().expect("a file");
    read(&page.parent().expect("a folder").join(file))
}

fn shows_a_form(text: &str) -> bool {
    console::commands(text).iter().any(|command| FORMS.iter().any(|form| command.contains(form)))
}

/// Whether a word is of a command line, or a name of the crate, and not of printed code.
fn is_of_a_caller(word: &str) -> bool {
    word.starts_with('-') || word.contains(" -") || word.contains("::")
}

/// Whether a word is code beyond a single name, which may be of the language or of another program.
fn is_code(word: &str) -> bool {
    word.contains(['.', '(', '[', '{'])
}

#[test]
fn words_beside_printed_code_occur_in_it() {
    let device = files(&root().join("kernels/device"), "cuh");
    let device: Vec<String> = device.iter().map(|path| read(path)).collect();
    let (mut seen, mut missing) = (0, BTreeSet::new());
    for path in prose() {
        let page = read(&path);
        let whole: Vec<String> =
            pages::includes(&page).into_iter().map(|part| file(&path, part)).collect();
        if !whole.iter().any(|text| shows_a_form(text)) {
            continue;
        }
        // The tutorial explains what it shows; the guide also names functions that other kernels call.
        let tutorial = path.components().any(|part| part.as_os_str() == "tutorial");
        let more: &[String] = if tutorial { &[] } else { &device };
        let has = |word: &str| whole.iter().chain(more).any(|text| text.contains(word));
        for section in page.split("\n## ") {
            let shown = pages::includes(section).into_iter().any(|p| shows_a_form(&file(&path, p)));
            if !shown {
                continue;
            }
            for word in code_words(&pages::by_hand(section)) {
                let of_kernel = !is_of_a_caller(&word) && (tutorial || is_code(&word));
                seen += usize::from(of_kernel);
                // Functions of lanes are members in the headers.
                let member = word.strip_prefix("lane.").map_or(&*word, |name| name);
                if of_kernel && !has(&word) && !(more.len() > 1 && has(&format!("{member}("))) {
                    let page = path.file_name().expect("a name").to_string_lossy();
                    missing.insert(format!("{page}: `{word}`"));
                }
            }
        }
    }
    assert!(seen > 20, "{seen} words alone");
    let missing: Vec<_> = missing.into_iter().collect();
    assert!(missing.is_empty(), "no listing of the page has these words:\n{}", missing.join("\n"));
}
