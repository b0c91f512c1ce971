//! Errors and warnings about a program, each at its place in the text. Of many similar errors only the first are kept.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::program::{StepName, StepNames};

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::SpanId;
use roundelay_core::source::{Location, Span};
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;

/// The most errors that are kept.
const ERRORS: usize = 16;

/// A text after reading.
#[derive(Clone, Debug)]
pub struct Text<P> {
    /// The text, with the places that messages point at.
    pub source: Arc<Source>,
    /// The program, if it can be read; also if the runtime refuses its collective or a chain of waits.
    pub program: Option<P>,
    /// The errors for which the runtime refuses the program, each at its place.
    pub errors: Vec<Diagnostic>,
    /// Warnings of text that the runtime passes over.
    pub warnings: Vec<Diagnostic>,
}

impl<P> Text<P> {
    /// Reads the file `name` by a reader of its format; `broken` is the code of a file that is no text.
    pub(super) fn read(
        name: &str,
        bytes: &[u8],
        broken: Code,
        program: impl FnOnce(&str, &mut TextReport) -> Option<P>,
    ) -> Self {
        stage("read", || {
            let mut report = TextReport::default();
            let text = String::from_utf8_lossy(bytes);
            let program = match std::str::from_utf8(bytes) {
                Ok(_) => program(&text, &mut report),
                Err(error) => {
                    let at = error.valid_up_to();
                    report.error(broken, at..at, "the file is not UTF-8 text");
                    None
                }
            };
            let (source, errors, warnings) = report.finish(name, &text);
            Self { source: Arc::new(source), program, errors, warnings }
        })
    }
}

/// The places of a text, and the errors and warnings at them.
#[derive(Default)]
pub(super) struct TextReport {
    places: Vec<Range<u32>>,
    /// The name of each step, by place.
    pub(super) names: StepNames,
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

    /// Registers the place of a step.
    pub(super) fn step(&mut self, at: Range<usize>, name: StepName) -> SpanId {
        let at = self.place(at);
        self.names.0.push((at, name));
        at
    }

    /// Adds an error.
    pub(super) fn error(
        &mut self,
        code: Code,
        at: Range<usize>,
        title: impl Into<String>,
    ) -> Remark<'_> {
        if self.errors.len() >= ERRORS {
            return Remark(None);
        }
        let at = span(self.place(at));
        self.errors.push(Diagnostic::new(code, at, title));
        Remark(self.errors.last_mut())
    }

    /// Marks the last error as one that does not prevent reading the rest.
    pub(super) fn was_mild(&mut self) {
        self.mild += 1;
    }

    /// Adds an error for a text that the runtime refuses.
    pub(super) fn refuse(&mut self, at: Range<usize>, title: impl Into<String>) -> Remark<'_> {
        self.error(Code::RefusedByRuntime, at, title)
    }

    /// Warns of a text that the runtime passes over; the first warning of each subject `about` is kept, the others are
    /// counted.
    pub(super) fn warn(
        &mut self,
        about: &str,
        at: Range<usize>,
        title: impl Into<String>,
    ) -> Remark<'_> {
        if let Some((_, times)) = self.warnings.get_mut(about) {
            *times += 1;
            return Remark(None);
        }
        let at = span(self.place(at));
        let warning = (Diagnostic::new(Code::PassedOver, at, title), 0);
        Remark(Some(&mut self.warnings.entry(about.to_owned()).or_insert(warning).0))
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
        let source = Source::with_places(name, text, places);
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

/// An error or a warning that may get more text; none where it is not kept.
pub(super) struct Remark<'r>(Option<&'r mut Diagnostic>);

impl Remark<'_> {
    /// Sets the text at the place.
    pub(super) fn label(mut self, label: &str) -> Self {
        if let Some(said) = &mut self.0 {
            label.clone_into(&mut said.label);
        }
        self
    }

    /// Adds a fact.
    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        if let Some(said) = &mut self.0 {
            said.notes.push(note.into());
        }
        self
    }

    /// Sets the correction.
    pub(super) fn help(self, help: impl Into<String>) {
        self.help_if(Some(help.into()));
    }

    /// Sets the correction, if there is one.
    pub(super) fn help_if(self, help: Option<String>) {
        if let Some(said) = self.0 {
            said.help = help;
        }
    }
}

/// Returns the correction to a word that is near to another one.
pub(super) fn did_you_mean(meant: Option<&str>) -> Option<String> {
    Some(format!("did you mean `{}`?", meant?))
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

/// Returns why a number is not within a range; `text` is the number as the program writes it.
pub(super) fn beyond<T: Ord + std::fmt::Display>(
    name: &str,
    (number, text): (T, &str),
    (least, most): (T, T),
) -> String {
    if number > most {
        return format!("`{name}` is {text}, and the most is {most}");
    }
    format!("`{name}` is {text}, and the least is {least}")
}

/// Returns a text for a message: at most 40 characters, control characters replaced.
pub(super) fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(40).map(clean).collect()
}
