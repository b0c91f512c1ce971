//! The text of a file about a machine, for messages that name a line and a column.

use super::Problem;
use roundelay_base::diagnostics::Code;

/// A file that is being read: its name, and its text.
#[derive(Clone, Copy)]
pub struct File<'a> {
    /// The name, for messages.
    pub name: &'a str,
    /// The text, without a mark of its encoding.
    pub text: &'a str,
}

impl<'a> File<'a> {
    /// Takes the bytes of a file, which must be text.
    pub fn new(name: &'a str, bytes: &'a [u8]) -> Result<Self, Problem> {
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
    pub fn problem(&self, code: Code, at: usize, title: impl Into<String>) -> Problem {
        self.at_line(at, Problem::new(code, title))
    }

    /// Adds a place in the file to a problem.
    pub fn at_line(&self, at: usize, problem: Problem) -> Problem {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = before.split(|byte| *byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        problem.note(format!("line {line}, column {column} of {}", self.name))
    }
}

/// Returns a text for a message: no longer than a line, without control characters.
pub fn show(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(40).map(clean).collect()
}
