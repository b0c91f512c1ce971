//! A text in an editor, and all that is known of it.

use roundelay::tools;
use roundelay_core::check::CheckedSource;
use roundelay_core::check::dependencies::SourceFiles;
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::lints::Levels;
use roundelay_core::syntax::Source;

use super::proof::TextProof;
use super::rust;

/// A text whose syntax, names and types were examined.
pub struct EditorText {
    /// Whether the text is Rust, with programs in macros. Its errors are those of the macro, which the Rust compiler's
    /// server shows, so they are not told twice; and its form is that of Rust.
    pub is_rust: bool,
    /// The source, in which the text of Rust is blank.
    pub source: Source,
    /// The declarations, as far as they could be checked.
    pub checked: CheckedSource,
    /// Errors of syntax, names and types.
    pub errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    /// The proof of the text, when it is made.
    pub proof: Option<TextProof>,
}

impl EditorText {
    /// Examines the text of a file, which may be of Rust.
    pub fn new(path: String, text: &str, files: &dyn SourceFiles) -> Self {
        let is_rust = std::path::Path::new(&path).extension().is_some_and(|end| end == "rs");
        let source = if is_rust {
            Source::from_text(path, &rust::programs(text))
        } else {
            Source::from_text(path, text)
        };
        Self::of_source(source, is_rust, files)
    }

    /// Examines a source, in which the text of Rust is blank already.
    pub(super) fn of_source(source: Source, is_rust: bool, files: &dyn SourceFiles) -> Self {
        let (mut checked, errors) = tools::examine(&source, files);
        let warnings = Levels::default().apply(std::mem::take(&mut checked.warnings));
        Self { is_rust, source, checked, errors, warnings, proof: None }
    }

    /// Returns all errors and warnings, those of the proof last.
    pub fn problems(&self) -> impl Iterator<Item = &Diagnostic> {
        let proof = self.proof.iter().flat_map(|proof| proof.errors.iter().chain(&proof.left));
        self.errors.iter().chain(&self.warnings).chain(proof)
    }
}
