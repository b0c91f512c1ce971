//! The text of a file about a machine, for messages that name a line and a column.

use super::Problem;
use crate::diagnostics::Code;

/// A file that is being read: its name, and its text.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl<'a> File<'a> {
    /// Takes the bytes of a file, which must be text.
    pub(super) fn new(name: &'a str, bytes: &'a [u8]) -> Result<Self, Problem> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, text: text.strip_prefix('\u{feff}').unwrap_or(text) }),
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let file = Self { name, text: std::str::from_utf8(good).unwrap_or_default() };
                let title = "the file is not UTF-8 text";
                Err(file.problem(Code::UnreadableXml, file.text.len(), title))
            }
        }
    }

    /// Returns the problem at a byte of the file.
    pub(super) fn problem(&self, code: Code, at: usize, title: impl Into<String>) -> Problem {
        self.placed(at, Problem::new(code, title))
    }

    /// Adds a place in the file to a problem.
    pub(super) fn placed(&self, at: usize, problem: Problem) -> Problem {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = before.split(|byte| *byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        problem.note(format!("line {line}, column {column} of {}", self.name))
    }
}

/// A word of a file, and the byte at which it begins.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

/// The most words of a line that are kept: more than any form has.
const WORDS: usize = (1 << 16) + 16;

/// A line of a file: its words, and the byte at which it ends.
pub(super) struct Line<'a> {
    pub(super) end: usize,
    pub(super) words: Vec<Word<'a>>,
}

impl<'a> File<'a> {
    /// Returns the lines that are not blank.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'a>> + use<'a> {
        let text = self.text;
        let at = move |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        let word = move |word| Word { at: at(word), text: word };
        let lines = text.lines().map(move |line| Line {
            end: at(line) + line.trim_end().len(),
            words: line.split_whitespace().take(WORDS).map(word).collect(),
        });
        lines.filter(|line| !line.words.is_empty())
    }
}

/// Returns a text for a message: no longer than a line, without control characters.
pub(super) fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(40).map(clean).collect()
}
