//! Cases that are data: a file of changed texts, with what is said of each. `UPDATE_EXPECT=1` writes what is said anew.
//!
//! * `@ NAME` is the text that the cases below change.
//! * `FROM => TO` changes the first `FROM`, and `FROM =*> TO` changes all; such lines in a row are one case. `.` is the
//!   text without a change, and `= TEXT` is another text.
//! * `\n`, `\t`, `\s` (a blank) and `\\` stand for what a line cannot have.
//! * Lines that begin with four blanks are what is said of the case above them.

use std::path::Path;

use expect_test::expect_file;

/// Compares what `says` says of each case of a file in the folder of its package with what the file says.
pub(crate) fn check(file: &str, texts: &[(&str, String)], says: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let cases = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (mut told, mut base) = (String::new(), "");
    let mut open: Option<String> = None;
    for (at, line) in (1..).zip(cases.lines().chain([""])) {
        let is_said = line.starts_with("    ");
        if is_said || line.is_empty() || line.starts_with(['@', '#']) {
            if let Some(text) = open.take() {
                for said in says(&text).lines() {
                    told += format!("    {said}").trim_end();
                    told.push('\n');
                }
            }
            if let Some(name) = line.strip_prefix("@ ") {
                let text = texts.iter().find(|(known, _)| *known == name);
                base = &text.unwrap_or_else(|| panic!("{file}:{at}: no text is called {name}")).1;
            }
        } else {
            let text = open.get_or_insert_with(|| base.to_owned());
            change(text, line).unwrap_or_else(|from| panic!("{file}:{at}: no {from:?} in {text}"));
        }
        if !is_said {
            told += line;
            told.push('\n');
        }
    }
    expect_file![path].assert_eq(told.strip_suffix('\n').unwrap_or_default());
}

/// Changes a text as a line says; the error is what the text does not have.
fn change(text: &mut String, line: &str) -> Result<(), String> {
    if let Some(other) = line.strip_prefix("= ") {
        *text = plain(other);
        return Ok(());
    }
    if line == "." {
        return Ok(());
    }
    let line = line.strip_suffix('>').map_or(line.to_owned(), |line| format!("{line}> "));
    let (all, once) = (line.split_once(" =*> "), line.split_once(" => "));
    let (from, to) = all.or(once).ok_or("=>")?;
    let (from, to) = (plain(from), plain(to.trim_end()));
    if !text.contains(&from) {
        return Err(from);
    }
    *text = text.replacen(&from, &to, if all.is_some() { usize::MAX } else { 1 });
    Ok(())
}

/// A part of a line without its escapes.
fn plain(text: &str) -> String {
    let text = text.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t");
    text.replace("\\s", " ").replace('\0', "\\")
}
