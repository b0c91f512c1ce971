//! Diagnostics with their places: as a message, as a report with the line of the source, as JSON.

use std::fmt::Write as _;

use super::{Diagnostic, Edit};
use crate::json::Json;
use crate::source::{Location, SourceLines, Span};

impl Diagnostic {
    /// Returns the text under a span that the compiler underlines by itself: stable Rust has no notes or help for
    /// macros, so they are lines of the message, and other places are notes with their lines.
    pub fn message(&self, source: &impl SourceLines) -> String {
        let mut text = format!("{} [{}]", self.title, self.code);
        self.details(source, &mut text);
        text
    }

    /// Returns all parts for a program, as `--format json` prints them.
    pub fn json(&self, source: &impl SourceLines) -> Json {
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
    pub fn report(&self, source: &impl SourceLines) -> String {
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

    fn details(&self, source: &impl SourceLines, text: &mut String) {
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
