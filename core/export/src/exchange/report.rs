//! Errors and warnings about a program, each at its place in the text. Of many similar errors only the first are kept.

use std::collections::BTreeMap;
use std::ops::Range;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::SpanId;
use roundelay_core::source::{Location, Span};
use roundelay_core::syntax::Source;

/// The most errors that are kept.
const ERRORS: usize = 16;

/// The places of a text, and the errors and warnings at them.
#[derive(Default)]
pub(super) struct TextReport {
    places: Vec<Range<u32>>,
    errors: Vec<Diagnostic>,
    /// The number of errors that do not prevent reading the rest.
    mild: usize,
    /// The warnings by their subject: the first warning, and the number of further ones.
    warnings: BTreeMap<String, (Diagnostic, usize)>,
}

impl TextReport {
    /// Registers a place for messages to point at.
    pub(super) fn place(&mut self, at: Range<usize>) -> SpanId {
        self.places.push(at.start as u32..at.end as u32);
        SpanId(self.places.len() as u32 - 1)
    }

    /// Adds an error; `more` adds notes to it.
    pub(super) fn error(
        &mut self,
        code: Code,
        at: Range<usize>,
        title: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        if self.errors.len() < ERRORS {
            let at = span(self.place(at));
            self.errors.push(more(Diagnostic::new(code, at, title)));
        }
    }

    /// Marks the last error as one that does not prevent reading the rest.
    pub(super) fn was_mild(&mut self) {
        self.mild += 1;
    }

    /// Adds an error for a text that the runtime refuses.
    pub(super) fn refuse(&mut self, at: Range<usize>, title: impl Into<String>) {
        self.error(Code::RefusedByRuntime, at, title, |all| all);
    }

    /// Warns of a text that the runtime passes over; the first warning of each subject `about` is kept, the others are
    /// counted.
    pub(super) fn warn(
        &mut self,
        about: &str,
        at: Range<usize>,
        title: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        if let Some((_, times)) = self.warnings.get_mut(about) {
            *times += 1;
            return;
        }
        let at = span(self.place(at));
        let warning = more(Diagnostic::new(Code::PassedOver, at, title));
        self.warnings.insert(about.to_owned(), (warning, 0));
    }

    /// Whether an error prevents the use of the program.
    pub(super) fn failed(&self) -> bool {
        self.errors.len() > self.mild
    }

    /// Returns the text with its places, the errors, and the warnings.
    pub(super) fn finish(
        mut self,
        name: &str,
        text: &str,
    ) -> (Source, Vec<Diagnostic>, Vec<Diagnostic>) {
        for place in &mut self.places {
            // A reader may have stopped within a character.
            let [start, end] = [place.start, place.end].map(|at| floor(text, at as usize) as u32);
            *place = start..end;
        }
        let places = locations(text, &self.places).into_iter().zip(self.places.iter().cloned());
        let source = Source::pointed(name, text, places);
        let mut warnings: Vec<_> = self
            .warnings
            .into_values()
            .map(|(warning, more)| match more {
                0 => warning,
                1 => warning.note("and at 1 more place like this"),
                _ => warning.note(format!("and at {more} more places like this")),
            })
            .collect();
        warnings.sort_by_key(|warning| self.places[warning.primary.lo as usize].start);
        (source, self.errors, warnings)
    }
}

/// Returns a place as a span of a diagnostic.
pub(super) fn span(at: SpanId) -> Span {
    Span { lo: at.0, hi: at.0 + 1 }
}

/// Returns the lines and columns of ranges of a text, in one walk through it.
fn locations(text: &str, ranges: &[Range<u32>]) -> Vec<Location> {
    let mut ends: Vec<u32> = ranges.iter().flat_map(|range| [range.start, range.end]).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut places = Vec::with_capacity(ends.len());
    let (mut line, mut column, mut at) = (1, 1, 0);
    for end in &ends {
        let until = *end as usize;
        let passed = &text[at.min(until)..until];
        match passed.rfind('\n') {
            None => column += passed.chars().count() as u32,
            Some(last) => {
                line += passed.bytes().filter(|byte| *byte == b'\n').count() as u32;
                column = passed[last + 1..].chars().count() as u32 + 1;
            }
        }
        at = until;
        places.push((line, column));
    }
    let place = |end: u32| places[ends.binary_search(&end).unwrap_or(0)];
    let location = |range: &Range<u32>| {
        let ((line, column), (end_line, end_column)) = (place(range.start), place(range.end));
        Location { line, column, end_line, end_column }
    };
    ranges.iter().map(location).collect()
}

/// Returns the last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns a text for a message: at most 40 characters, control characters replaced.
pub(super) fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(40).map(clean).collect()
}
