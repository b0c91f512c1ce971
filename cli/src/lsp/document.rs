//! A text in the editor, and all that is known of it.

use std::collections::HashMap;
use std::path::Path;

use lsp_types::{
    DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Range, Uri,
};
use roundelay::tools::{self, FilesOnDisk};
use roundelay_core::check::CheckedSource;
use roundelay_core::check::dependencies::SourceFiles;
use roundelay_core::diagnostics::{Diagnostic, Severity};
use roundelay_core::lints::Levels;
use roundelay_core::syntax::Source;

use super::options::Options;
use super::place::Lines;
use super::proof::Proved;
use super::rust;

/// The open texts, by their addresses.
pub(super) type Documents = HashMap<String, Document>;

pub(super) struct Document {
    pub(super) uri: Uri,
    /// Whether the text is Rust, with programs in macros. Its errors are those of the macro, which the Rust compiler's
    /// server shows, so they are not told twice; and its form is that of Rust.
    pub(super) is_rust: bool,
    pub(super) version: i32,
    pub(super) source: Source,
    /// The declarations, as far as they could be checked.
    pub(super) checked: CheckedSource,
    /// Errors of syntax, names and types.
    pub(super) errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    /// The proof of this version, when it is made.
    pub(super) proof: Option<Proved>,
}

impl Document {
    pub(super) fn new(uri: Uri, version: i32, text: &str, files: &dyn SourceFiles) -> Self {
        let path = path(&uri);
        let is_rust = Path::new(&path).extension().is_some_and(|end| end == "rs");
        let source = if is_rust {
            Source::from_text(path, &rust::programs(text))
        } else {
            Source::from_text(path, text)
        };
        Self::of_source(uri, version, source, is_rust, files)
    }

    /// Examines a source, in which the text of Rust is blank already.
    pub(super) fn of_source(
        uri: Uri,
        version: i32,
        source: Source,
        is_rust: bool,
        files: &dyn SourceFiles,
    ) -> Self {
        let (mut checked, errors) = tools::examined(&source, files);
        let warnings = Levels::default().apply(std::mem::take(&mut checked.warnings));
        Self { uri, is_rust, version, source, checked, errors, warnings, proof: None }
    }

    /// Returns all diagnostics, in the editor's form.
    pub(super) fn diagnostics(&self, options: &Options) -> Vec<lsp_types::Diagnostic> {
        if self.is_rust {
            return Vec::new();
        }
        let lines = Lines::of(&self.source);
        self.found().map(|found| self.diagnostic(&lines, found, options)).collect()
    }

    /// Returns all errors and warnings, those of the proof last.
    pub(super) fn found(&self) -> impl Iterator<Item = &Diagnostic> {
        let proof = self.proof.iter().flat_map(|proof| proof.errors.iter().chain(&proof.left));
        self.errors.iter().chain(&self.warnings).chain(proof)
    }

    fn diagnostic(
        &self,
        lines: &Lines<'_>,
        found: &Diagnostic,
        options: &Options,
    ) -> lsp_types::Diagnostic {
        let range = |span| lines.range(&self.source, span);
        let related = found.others.iter().map(|(span, label)| DiagnosticRelatedInformation {
            location: Location::new(self.uri.clone(), range(*span)),
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
            range: at_least_a_letter(range(found.primary)),
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
        Self { documents, disk: FilesOnDisk::of(path) }
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
