//! Lines of a text form, of a program, of loops or of a schedule: their words, read from the first to the last.

use std::fmt;
use std::str::FromStr;

/// A line that is not of the text form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The expected text of the line, in words.
    pub reason: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for TextError {}

/// The words of a line that were not read yet.
#[derive(Debug, Default)]
pub struct Line<'t> {
    words: std::vec::IntoIter<&'t str>,
}

impl<'t> Line<'t> {
    /// Splits a line into words. Each of the characters in `alone` is a word; with `"` among them, a text in quotes is one.
    ///
    /// # Errors
    /// A text in quotes does not end.
    pub fn new(text: &'t str, alone: &[char]) -> Result<Self, String> {
        let mut words = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let len = if first == '"' && alone.contains(&'"') {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|(_, c)| {
                    let ends = *c == '"' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    ends
                });
                end.ok_or("a text in quotes does not end")?.0 + 1
            } else if alone.contains(&first) {
                first.len_utf8()
            } else {
                let ends = |c: char| c.is_whitespace() || c != '"' && alone.contains(&c);
                rest.find(ends).unwrap_or(rest.len())
            };
            words.push(&rest[..len]);
            rest = rest[len..].trim_start();
        }
        Ok(Self { words: words.into_iter() })
    }

    /// Returns the next word without taking it; an empty one at the end.
    pub fn peek(&self) -> &'t str {
        self.words.as_slice().first().copied().unwrap_or_default()
    }

    /// Whether all words were read.
    pub fn is_done(&self) -> bool {
        self.words.as_slice().is_empty()
    }

    /// Takes the next word.
    ///
    /// # Errors
    /// There is none.
    pub fn word(&mut self) -> Result<&'t str, String> {
        self.words.next().ok_or_else(|| "the line ends too early".to_owned())
    }

    /// Takes the last word of the line if it begins so, and returns the rest of it.
    pub fn last(&mut self, begin: char) -> Option<&'t str> {
        let rest = self.words.as_slice().last()?.strip_prefix(begin)?;
        self.words.next_back();
        Some(rest)
    }

    /// Whether the next word is `word`, which is then taken.
    pub fn skip(&mut self, word: &str) -> bool {
        let found = self.peek() == word;
        if found {
            self.words.next();
        }
        found
    }

    /// Takes the next word, which must be `word`.
    ///
    /// # Errors
    /// It is another one.
    pub fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.skip(word) {
            return Ok(());
        }
        Err(format!("expected `{word}`, found `{}`", self.peek()))
    }

    /// Reads a number, which is the next word.
    ///
    /// # Errors
    /// The next word is no number.
    pub fn count<T: FromStr>(&mut self) -> Result<T, String> {
        number(self.word()?)
    }

    /// Checks that all words were read.
    ///
    /// # Errors
    /// Words are left.
    pub fn end(&self) -> Result<(), String> {
        if self.is_done() {
            return Ok(());
        }
        Err(format!("expected the end of the line, found `{}`", self.peek()))
    }
}

/// Reads a number such as `12`; the error names the text.
///
/// # Errors
/// The text is no number.
pub fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a number, found `{text}`"))
}

/// Returns a name on one line, with all special characters escaped.
pub fn quote(name: &str) -> String {
    let escaped =
        name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

/// Reads a name that [`quote`] wrote.
pub fn unquote(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let mut chars = inner.ok_or("expected a name in quotes")?.chars();
    let mut name = String::new();
    while let Some(next) = chars.next() {
        if next != '\\' {
            name.push(next);
            continue;
        }
        name.push(match chars.next() {
            Some('\\') => '\\',
            Some('"') => '"',
            Some('n') => '\n',
            Some('r') => '\r',
            _ => {
                return Err(
                    "expected `\\\\`, `\\\"`, `\\n` or `\\r` for a character of a name".into()
                );
            }
        });
    }
    Ok(name)
}
