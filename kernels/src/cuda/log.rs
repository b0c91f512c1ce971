//! NVRTC's messages about a text. The text's `#line` directives make them name the algorithm's own source.

use std::fmt;

/// Whether a message refuses the kernel or only warns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The kernel is refused.
    Error,
    /// The kernel compiles all the same.
    Warning,
}

/// A message of NVRTC with its place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The file: the source of an algorithm, or a header.
    pub file: String,
    /// The line in that file, counted from 1.
    pub line: u32,
    /// Whether it refuses the kernel.
    pub severity: Severity,
    /// The message; the lines that follow show the place.
    pub text: String,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, severity, text } = self;
        write!(f, "{file}:{line}: {severity}: {text}")
    }
}

/// Returns the messages of a log, in its order. The lines below a message up to an empty line are a part of it: the
/// line of the source and a mark.
pub(super) fn messages(log: &str) -> Vec<Message> {
    let mut all: Vec<Message> = Vec::new();
    let mut open = false;
    for line in log.lines() {
        if let Some(message) = headline(line) {
            all.push(message);
            open = true;
        } else if line.trim().is_empty() || line.starts_with("Remark:") {
            open = false;
        } else if let Some(last) = all.last_mut().filter(|_| open) {
            last.text.push('\n');
            last.text.push_str(line.trim_end());
        }
    }
    all
}

/// Parses `file(line): error: text`, with or without a number after the severity.
fn headline(line: &str) -> Option<Message> {
    let words = [
        ("): error", Severity::Error),
        ("): catastrophic error", Severity::Error),
        ("): warning", Severity::Warning),
    ];
    let (end, word, severity) =
        words.into_iter().find_map(|(word, severity)| Some((line.find(word)?, word, severity)))?;
    let (file, number) = line[..end].rsplit_once('(')?;
    let (_, text) = line[end + word.len()..].split_once(": ")?;
    Some(Message {
        file: file.to_owned(),
        line: number.parse().ok()?,
        severity,
        text: text.trim_end().to_owned(),
    })
}

/// Returns CUDA's header that NVRTC could not open, if it stopped at one. NVRTC writes "could not" without any folder
/// to search, "cannot" with one.
pub(super) fn missing_header(messages: &[Message]) -> Option<String> {
    messages.iter().find_map(|message| {
        let (_, rest) = message.text.split_once("open source file \"")?;
        let (header, _) = rest.split_once('"')?;
        header.starts_with("cuda").then(|| header.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
stdlib/ring (2).coll(12): warning #177-D: variable \"u\" was declared but never referenced
  long long u;
            ^

Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"

ring.coll(14): error: identifier \"blok\" is undefined
  copy(blok[0]);
       ^

K.cu(3): catastrophic error: could not open source file \"cuda_bf16.h\" (no directory in search list)
  #include <cuda_bf16.h>
                        ^

2 errors detected in the compilation of \"K.cu\".
";

    #[test]
    fn messages_have_their_places() {
        let found = messages(LOG);
        let places: Vec<_> = found.iter().map(|m| (m.file.as_str(), m.line, m.severity)).collect();
        assert_eq!(
            places,
            [
                ("stdlib/ring (2).coll", 12, Severity::Warning),
                ("ring.coll", 14, Severity::Error),
                ("K.cu", 3, Severity::Error),
            ]
        );
        assert_eq!(
            found[1].to_string(),
            "ring.coll:14: error: identifier \"blok\" is undefined\n  copy(blok[0]);\n       ^"
        );
    }

    #[test]
    fn a_header_that_is_not_there_is_named() {
        assert_eq!(missing_header(&messages(LOG)).as_deref(), Some("cuda_bf16.h"));
        let other = LOG.replace("cuda_bf16.h", "mine.h").replace("could not", "cannot");
        assert_eq!(missing_header(&messages(&other)), None);
        let other = LOG.replace("could not", "cannot");
        assert_eq!(missing_header(&messages(&other)).as_deref(), Some("cuda_bf16.h"));
    }

    #[test]
    fn other_lines_are_no_messages() {
        assert_eq!(messages("nvrtc: error: invalid value for --gpu-architecture (-arch)\n"), []);
        assert_eq!(messages("a(b): error: c\n"), []);
    }
}
