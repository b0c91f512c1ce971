//! A text in the editor.

use std::collections::HashMap;
use std::ops::Deref;

use lsp_types::{
    DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Range, Uri,
};
use roundelay::tools::FilesOnDisk;
use roundelay_core::check::dependencies::SourceFiles;
use roundelay_core::diagnostics::{Diagnostic, Severity};
use roundelay_core::source::Span;
use roundelay_core::syntax::Source;

use super::lines::Lines;
use super::options::Options;
use roundelay_ide::EditorText;

/// The open texts, by their addresses.
pub(super) type Documents = HashMap<String, Document>;

pub(super) struct Document {
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) text: EditorText,
}

impl Deref for Document {
    type Target = EditorText;

    fn deref(&self) -> &EditorText {
        &self.text
    }
}

impl Document {
    pub(super) fn new(uri: Uri, version: i32, text: &str, files: &dyn SourceFiles) -> Self {
        let text = EditorText::new(path(&uri), text, files);
        Self { uri, version, text }
    }

    pub(super) fn lines(&self) -> Lines<'_> {
        Lines::of(&self.source)
    }

    /// Returns the place of a span, in the editor's form.
    pub(super) fn location(&self, lines: &Lines<'_>, span: Span) -> Location {
        Location::new(self.uri.clone(), lines.range(span))
    }

    /// Returns all diagnostics, in the editor's form.
    pub(super) fn diagnostics(&self, options: &Options) -> Vec<lsp_types::Diagnostic> {
        if self.is_rust {
            return Vec::new();
        }
        let lines = self.lines();
        self.problems().map(|found| self.diagnostic(&lines, found, options)).collect()
    }

    fn diagnostic(
        &self,
        lines: &Lines<'_>,
        found: &Diagnostic,
        options: &Options,
    ) -> lsp_types::Diagnostic {
        let related = found.others.iter().map(|(span, label)| DiagnosticRelatedInformation {
            location: self.location(lines, *span),
            message: label.clone(),
        });
        let mut message = found.title.clone();
        if !found.label.is_empty() {
            message.extend([" (", &found.label, ")"]);
        }
        let notes = found.all_notes().map(|note| format!("\nnote: {note}"));
        let help = found.help.iter().map(|help| format!("\nhelp: {help}"));
        message.extend(notes.chain(help));
        lsp_types::Diagnostic {
            range: at_least_a_letter(lines.range(found.primary)),
            severity: Some(match found.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(found.code.as_str().to_owned())),
            code_description: options.explained(found.code),
            source: Some("roundelay".to_owned()),
            message,
            related_information: Some(related.collect()),
            ..Default::default()
        }
    }
}

/// The files that a text may use: as they are in the editor where they are open there, else as they are on the disk.
pub(super) struct OpenFiles<'d> {
    documents: &'d Documents,
    disk: FilesOnDisk,
}

impl<'d> OpenFiles<'d> {
    /// Returns the files that the text of that path may use.
    pub(super) fn of(documents: &'d Documents, path: &str) -> Self {
        Self { documents, disk: FilesOnDisk::for_source(path) }
    }

    fn open(&self, path: &str) -> Option<&'d Document> {
        self.documents.values().find(|document| document.source.name() == path)
    }
}

impl SourceFiles for OpenFiles<'_> {
    fn identity(&self, path: &str) -> Result<String, String> {
        match self.disk.identity(path) {
            // A text that was never saved is known by its path alone.
            Err(_) if self.open(path).is_some() => {
                self.disk.permits(path).map(|()| format!("text {path}"))
            }
            known => known,
        }
    }

    fn read(&self, path: &str) -> Result<Source, String> {
        let identity = self.identity(path)?;
        let same = |document: &&Document| {
            self.disk.identity(document.source.name()).is_ok_and(|known| known == identity)
        };
        let open = self.open(path).or_else(|| self.documents.values().find(same));
        open.map_or_else(|| self.disk.read(path), |document| Ok(document.source.clone()))
    }
}

/// An empty range would not be seen.
fn at_least_a_letter(mut range: Range) -> Range {
    if range.start == range.end {
        range.end.character += 1;
    }
    range
}

/// Returns the path of a file's address, or the address itself.
pub(super) fn path(uri: &Uri) -> String {
    if uri.scheme().is_none_or(|scheme| scheme.as_str() != "file") {
        return uri.as_str().to_owned();
    }
    let path = uri.path().as_estr().decode().into_string_lossy();
    // Windows has the drive behind a slash.
    let drive = path.strip_prefix('/').filter(|rest| rest.as_bytes().get(1) == Some(&b':'));
    drive.unwrap_or(&path).to_owned()
}
