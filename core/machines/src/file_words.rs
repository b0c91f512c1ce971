//! The lines and words of a file, each with its place.

use roundelay_topology::file::File;

/// A word of a file, and the byte at which it begins.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a> {
    pub(crate) at: usize,
    pub(crate) text: &'a str,
}

/// The most words of a line that are kept: more than any form has.
const WORDS: usize = (1 << 16) + 16;

/// A line of a file: its words, and the byte at which it ends.
pub(crate) struct Line<'a> {
    pub(crate) end: usize,
    pub(crate) words: Vec<Word<'a>>,
}

/// Returns the lines that are not blank.
pub(crate) fn lines<'a>(file: &File<'a>) -> impl Iterator<Item = Line<'a>> + use<'a> {
    let text = file.text;
    let at = move |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    let word = move |word| Word { at: at(word), text: word };
    let lines = text.lines().map(move |line| Line {
        end: at(line) + line.trim_end().len(),
        words: line.split_whitespace().take(WORDS).map(word).collect(),
    });
    lines.filter(|line| !line.words.is_empty())
}
