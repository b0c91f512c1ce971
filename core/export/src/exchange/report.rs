//! What is said of a program, each at its place in the text. Of many like errors only the first are kept.

use std::collections::BTreeMap;
use std::ops::Range;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::SpanId;
use roundelay_core::source::{Location, Span};
use roundelay_core::syntax::Source;

/// Errors that are kept.
const ERRORS: usize = 16;

/// The places of a text, and what is said at them.
#[derive(Default)]
pub(super) struct TextReport {
    places: Vec<Range<u32>>,
    errors: Vec<Diagnostic>,
    /// Of the errors, those in spite of which the rest makes sense.
    mild: usize,
    /// By what they are about: the first, and how many more there are.
    warnings: BTreeMap<String, (Diagnostic, usize)>,
}

impl TextReport {
    /// A place that messages can point at.
    pub(super) fn place(&mut self, at: Range<usize>) -> SpanId {
        self.places.push(at.start as u32..at.end as u32);
        SpanId(self.places.len() as u32 - 1)
    }

    /// Says that something is wrong; `more` adds to it.
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

    /// The last error leaves the rest with a sense.
    pub(super) fn was_mild(&mut self) {
        self.mild += 1;
    }

    /// Says that the runtime refuses something.
    pub(super) fn refuse(&mut self, at: Range<usize>, title: impl Into<String>) {
        self.error(Code::RefusedByRuntime, at, title, |all| all);
    }

    /// Warns of something that the runtime passes over, once for all that is `about` the same.
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

    /// Whether anything is wrong.
    pub(super) fn failed(&self) -> bool {
        self.errors.len() > self.mild
    }

    /// The text with its places, what is wrong, and warnings.
    pub(super) fn finish(
        mut self,
        name: &str,
        text: &str,
    ) -> (Source, Vec<Diagnostic>, Vec<Diagnostic>) {
        for place in &mut self.places {
            // A reader may have stopped in the middle of a character.
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

/// A place as diagnostics name it.
pub(super) fn span(at: SpanId) -> Span {
    Span { lo: at.0, hi: at.0 + 1 }
}

/// Lines and columns of ranges of a text, in one walk through it.
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

/// The last boundary of a character that is not behind `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A text for a message: no longer than a line, without what a terminal would obey.
pub(super) fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(40).map(clean).collect()
}
