//! The author's statements: the text of an op's statement, and its place.

use roundelay_core::ids::SpanId;
use roundelay_core::schedule::Schedule;
use roundelay_core::source::Location;
use roundelay_core::syntax::Source;

/// The most letters of a statement that are shown.
pub(super) const SHOWN: usize = 96;

/// The statements of a schedule.
pub(super) struct Statements {
    /// The statements, by location.
    all: Vec<Statement>,
}

/// A statement.
#[derive(Default)]
pub(super) struct Statement {
    /// Its place, for example `ring.coll:27`; empty if unknown.
    pub(super) place: String,
    /// Its text, for example `reduce(left.block[b], local.block[b]);`; empty without the source.
    pub(super) text: String,
}

impl Statements {
    pub(super) fn new(schedule: &Schedule, source: Option<&Source>) -> Self {
        // The locations of a schedule are all in one file.
        let source = source.filter(|source| source.name() == &*schedule.file);
        let lines: Vec<_> = source.and_then(Source::text).unwrap_or_default().lines().collect();
        let statement = |at: &Location| Statement {
            place: place(&schedule.file, at.line),
            text: written(&lines, at),
        };
        // An op that represents several statements shows only their places.
        let several =
            |at| Statement { place: schedule.place(SpanId(at as u32)), ..Statement::default() };
        let known = schedule.locations.len();
        let several = (known..known + schedule.origins.len()).map(several);
        Self { all: schedule.locations.iter().map(statement).chain(several).collect() }
    }

    /// Returns the statement at a place; `None` if its place in the source is unknown.
    pub(super) fn get(&self, at: SpanId) -> Option<&Statement> {
        self.all.get(at.index()).filter(|statement| !statement.place.is_empty())
    }
}

impl Statement {
    /// Returns the place and the text: `ring.coll:27: reduce(left.block[b], local.block[b]);`
    pub(super) fn words(&self) -> String {
        let mut words = self.place.clone();
        if !self.text.is_empty() {
            words += ": ";
            words += &self.text;
        }
        words
    }
}

pub(super) fn place(file: &str, line: u32) -> String {
    match (file, line) {
        (_, 0) => String::new(),
        ("", line) => format!("line {line}"),
        (file, line) => format!("{file}:{line}"),
    }
}

/// Returns a statement on one line, without comments, and shortened.
pub(super) fn written(lines: &[&str], at: &Location) -> String {
    let mut words: Vec<String> = Vec::new();
    for number in at.line.max(1)..=at.end_line {
        let Some(line) = lines.get(number as usize - 1) else { break };
        let end = if number == at.end_line {
            (at.end_column as usize).saturating_sub(1)
        } else {
            usize::MAX
        };
        let start = if number == at.line { (at.column as usize).saturating_sub(1) } else { 0 };
        let line: String = line.chars().take(end).skip(start).collect();
        let line = line.split("//").next().unwrap_or_default();
        words.extend(line.split_whitespace().map(str::to_owned));
    }
    let text = words.join(" ");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
