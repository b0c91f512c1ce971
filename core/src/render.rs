//! Diagnostics in the form of rustc, for the command line. This is a module of its own because rustc itself renders the
//! macro's diagnostics.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use std::fmt::Write as _;

use crate::diagnostics::{Diagnostic, Edit, Severity};
use crate::json::Json;
use crate::source::{Location, Span};
use crate::syntax::Source;

/// Renders `diagnostic` like rustc; with terminal colors if `colored`.
pub fn render(diagnostic: &Diagnostic, source: &Source, colored: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.title.as_str()).id(diagnostic.code.as_str());
    let group = if let Some(snippet) = snippet(diagnostic, source) {
        title.element(snippet)
    } else {
        let at = source.location(diagnostic.primary);
        let origin = Origin::path(source.name());
        title.element(origin.line(at.line as usize).char_column(at.column as usize))
    };
    let group = footers(group, diagnostic);
    let renderer = if colored { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// Returns the annotated lines; `None` for macro input, or for lines that are too long to read.
fn snippet<'a>(
    diagnostic: &'a Diagnostic,
    source: &'a Source,
) -> Option<Snippet<'a, Annotation<'a>>> {
    const MAX_SHOWN: usize = 1 << 14;
    let text = source.text()?;
    let spans = || diagnostic.others.iter().map(|(span, _)| *span).chain([diagnostic.primary]);
    let first = spans().map(|s| source.range(s).start).min()?;
    let last = spans().map(|s| source.range(s).end).max()?;
    let start = text[..first].rfind('\n').map_or(0, |i| i + 1);
    let end = text[last..].find('\n').map_or(text.len(), |i| last + i);
    // Only these lines are handed over: the renderer's time grows with the length of its text.
    let shown = text.get(start..end).filter(|t| t.len() <= MAX_SHOWN)?;
    let line = spans().map(|s| source.location(s).line).min()?;
    let annotate = |kind: AnnotationKind, span: Span, label: &'a str| {
        let range = source.range(span);
        let label = (!label.is_empty()).then_some(label);
        kind.span(range.start - start..range.end - start).label(label)
    };
    let primary = annotate(AnnotationKind::Primary, diagnostic.primary, &diagnostic.label);
    let others = diagnostic.others.iter();
    let others = others.map(|(span, text)| annotate(AnnotationKind::Context, *span, text));
    let snippet = Snippet::source(shown).line_start(line as usize).path(source.name());
    Some(snippet.annotation(primary).annotations(others))
}

fn footers<'a>(mut group: Group<'a>, diagnostic: &'a Diagnostic) -> Group<'a> {
    for note in diagnostic.all_notes() {
        group = group.element(Level::NOTE.message(note));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    group
}

impl Diagnostic {
    /// Returns the text under a span that the compiler underlines by itself: stable Rust has no notes or help for
    /// macros, so they are lines of the message, and other places are notes with their lines.
    pub fn message(&self, source: &Source) -> String {
        let mut text = format!("{} [{}]", self.title, self.code);
        self.details(source, &mut text);
        text
    }

    /// Returns all parts for a program, as `--format json` prints them.
    pub fn json(&self, source: &Source) -> Json {
        let whole = |at: Location| {
            [
                ("line", at.line.into()),
                ("column", at.column.into()),
                ("end_line", at.end_line.into()),
                ("end_column", at.end_column.into()),
            ]
        };
        let text = |name, text: &String| (name, Json::from(text));
        let other = |(span, label): &(Span, String)| {
            let [line, column, ..] = whole(source.location(*span));
            Json::Object(vec![line, column, text("label", label)])
        };
        let edit = |edit: &Edit| {
            let place = whole(source.location(edit.at)).into_iter();
            Json::Object(place.chain([text("text", &edit.text)]).collect())
        };
        let mut fields = vec![
            ("code", self.code.as_str().into()),
            ("severity", self.severity.name().into()),
            text("title", &self.title),
            ("file", source.name().into()),
        ];
        fields.extend(whole(source.location(self.primary)));
        fields.extend([
            ("nranks", self.nranks.map_or(Json::Null, Json::from)),
            text("label", &self.label),
            // Other places in the source, with their relation to the error.
            ("others", Json::List(self.others.iter().map(other).collect())),
            ("notes", Json::list(&self.notes)),
            ("help", self.help.as_ref().map_or(Json::Null, Json::from)),
        ]);
        // The correction as edits of the source, where it is one; an empty range is an insertion.
        let edits = || Json::List(self.edits.iter().map(edit).collect());
        fields.extend((!self.edits.is_empty()).then(|| ("edits", edits())));
        Json::Object(fields)
    }

    /// Returns the message with its place, the line of the source and a mark below it, for callers without a span to
    /// point at.
    pub fn report(&self, source: &Source) -> String {
        let mut text = format!("{} [{}]", self.title, self.code);
        /// The most characters of a line that is shown; longer lines were not written for people.
        const MAX_SHOWN: usize = 400;
        let place = source.location(self.primary);
        let _ = write!(text, "\n--> {}:{}:{}", source.name(), place.line, place.column);
        if let Some(line) = source.line(place.line).filter(|line| line.len() <= MAX_SHOWN) {
            let number = place.line.to_string();
            let width = if place.end_line == place.line {
                place.end_column.saturating_sub(place.column).max(1) as usize
            } else {
                line.chars().count().saturating_sub(place.column as usize - 1).max(1)
            };
            let gutter = " ".repeat(number.len());
            let lead = " ".repeat(place.column as usize - 1);
            let marks = "^".repeat(width);
            let _ = write!(text, "\n{gutter} |\n{number} | {line}\n{gutter} | {lead}{marks}");
            if !self.label.is_empty() {
                let _ = write!(text, " {}", self.label);
            }
        }
        self.details(source, &mut text);
        text
    }

    fn details(&self, source: &Source, text: &mut String) {
        for (span, label) in &self.others {
            let place = source.location(*span);
            let (line, column) = (place.line, place.column);
            let _ = write!(text, "\n= note: line {line}, column {column}: {label}");
        }
        for note in self.all_notes() {
            let _ = write!(text, "\n= note: {note}");
        }
        if let Some(help) = &self.help {
            let _ = write!(text, "\n= help: {help}");
        }
    }
}
