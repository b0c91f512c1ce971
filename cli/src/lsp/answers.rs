//! The answers to an editor's requests.

use std::collections::HashMap;

use lsp_types::request::{
    CodeActionRequest, CodeLensRequest, Completion, DocumentHighlightRequest,
    DocumentSymbolRequest, FoldingRangeRequest, Formatting, GotoDefinition, HoverRequest,
    InlayHintRequest, PrepareRenameRequest, References, Rename, Request, SemanticTokensFullRequest,
    SignatureHelpRequest, WorkspaceSymbolRequest,
};
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionParams, DocumentFormattingParams, DocumentHighlight,
    GotoDefinitionResponse, InlayHintParams, Location, Position, PrepareRenameResponse, Range,
    RenameParams, TextDocumentPositionParams, TextEdit, Uri, WorkspaceEdit, WorkspaceSymbolParams,
};
use roundelay_core::diagnostics::{Diagnostic, Edit};
use roundelay_core::source::Span;
use roundelay_core::syntax::{self, Source};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::{Document, Documents, OpenFiles};
use super::files;
use super::names::{Named, declaration};
use super::options::Options;
use super::place::{Lines, word};

/// The request of a client for the page of a code: `{ "code": "E0306" }`, to which the answer is Markdown.
const EXPLAIN: &str = "roundelay/explain";

#[derive(Deserialize)]
struct Explained {
    code: String,
}

fn explained(code: &str) -> Result<&'static str, String> {
    roundelay_book::error(code).ok_or_else(|| format!("no error or warning has the code {code}"))
}

/// Returns the answer to a request; `None` for an unknown method.
///
/// # Errors
/// Why the request makes no sense.
pub(super) fn answer(
    documents: &Documents,
    options: &Options,
    method: &str,
    params: &Value,
) -> Result<Option<Value>, String> {
    /// The text that most requests name.
    #[derive(Deserialize)]
    struct Asked {
        #[serde(rename = "textDocument")]
        text_document: lsp_types::TextDocumentIdentifier,
    }
    let document = || -> Result<&Document, String> {
        let Asked { text_document } = read(params)?;
        let open = documents.get(text_document.uri.as_str());
        open.ok_or_else(|| format!("{} is not open", text_document.uri.as_str()))
    };
    let place = || read::<TextDocumentPositionParams>(params).map(|asked| asked.position);
    let value = match method {
        HoverRequest::METHOD => json(document()?.hover(place()?)),
        GotoDefinition::METHOD => json(document()?.definition(place()?)),
        References::METHOD => json(document()?.references(place()?)),
        DocumentHighlightRequest::METHOD => {
            let highlight = |place: Location| DocumentHighlight { range: place.range, kind: None };
            json(document()?.references(place()?).into_iter().map(highlight).collect::<Vec<_>>())
        }
        PrepareRenameRequest::METHOD => json(document()?.renamed_at(place()?)),
        Rename::METHOD => json(document()?.rename(&read::<RenameParams>(params)?, documents)?),
        Formatting::METHOD => {
            read::<DocumentFormattingParams>(params)?;
            json(document()?.formatted())
        }
        DocumentSymbolRequest::METHOD => json(document()?.symbols()),
        FoldingRangeRequest::METHOD => json(document()?.folds()),
        Completion::METHOD => json(document()?.completions(place()?)),
        CodeLensRequest::METHOD => json(document()?.lenses(options)),
        SemanticTokensFullRequest::METHOD => json(document()?.colored()),
        SignatureHelpRequest::METHOD => json(document()?.call_at(place()?)),
        InlayHintRequest::METHOD => {
            json(document()?.hints(read::<InlayHintParams>(params)?.range, options.hints))
        }
        CodeActionRequest::METHOD => json(document()?.fixes(&read::<CodeActionParams>(params)?)),
        WorkspaceSymbolRequest::METHOD => {
            let query = read::<WorkspaceSymbolParams>(params)?.query;
            json(files::symbols(documents, &options.folders, &query))
        }
        EXPLAIN => json(explained(&read::<Explained>(params)?.code)?),
        _ => return Ok(None),
    };
    value.map(Some)
}

fn read<T: DeserializeOwned>(params: &Value) -> Result<T, String> {
    T::deserialize(params).map_err(|why| why.to_string())
}

fn json<T: serde::Serialize>(value: T) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|why| why.to_string())
}

impl Document {
    fn at(&self, lines: &Lines<'_>, at: Position) -> Option<Named<'_>> {
        self.named(lines.token(&self.source, at)?)
    }

    fn location(&self, lines: &Lines<'_>, span: Span) -> Location {
        Location::new(self.uri.clone(), lines.range(&self.source, span))
    }

    fn definition(&self, at: Position) -> Option<GotoDefinitionResponse> {
        let lines = Lines::of(&self.source);
        let named = self.at(&lines, at)?;
        let location = match (declaration(named), named) {
            (Some(span), _) => self.location(&lines, span),
            (None, Named::Word(name)) => files::declared(self, name)?,
            (None, _) => return None,
        };
        Some(GotoDefinitionResponse::Scalar(location))
    }

    fn references(&self, at: Position) -> Vec<Location> {
        let lines = Lines::of(&self.source);
        let places = self.at(&lines, at).map_or_else(Vec::new, |named| self.places(named));
        places.into_iter().map(|span| self.location(&lines, span)).collect()
    }

    /// Returns the range of the name at a place, if it can get another name.
    fn renamed_at(&self, at: Position) -> Option<PrepareRenameResponse> {
        let lines = Lines::of(&self.source);
        let token = lines.token(&self.source, at)?;
        declaration(self.named(token)?)?;
        let range = lines.range(&self.source, Span::new(token, token + 1));
        Some(PrepareRenameResponse::Range(range))
    }

    /// Gives a name another name at all its places. The text with the new name has the errors that it had before: a
    /// name that is taken, or that would stand for something else somewhere, is refused.
    fn rename(
        &self,
        params: &RenameParams,
        documents: &Documents,
    ) -> Result<Option<WorkspaceEdit>, String> {
        let new = &params.new_name;
        let asked = Source::from_text("", new);
        if asked.tokens().len() != 1 || word(&asked, 0).is_none() || !asked.diagnostics().is_empty()
        {
            return Err(format!("`{new}` is not a name"));
        }
        let lines = Lines::of(&self.source);
        let at = params.text_document_position.position;
        let Some(named) = self.at(&lines, at) else { return Ok(None) };
        let mut places = self.places(named);
        if places.is_empty() {
            return Err("this name is not declared in this text".to_owned());
        }
        places.sort_by_key(|span| span.lo);
        let text = self.source.text().unwrap_or_default();
        let (mut changed, mut end) = (String::new(), 0);
        for span in &places {
            let range = self.source.range(*span);
            changed.push_str(&text[end..range.start]);
            changed.push_str(new);
            end = range.end;
        }
        changed.push_str(&text[end..]);
        let source = Source::from_text(self.source.name(), &changed);
        let files = OpenFiles::of(documents, source.name());
        let after = Self::of_source(self.uri.clone(), self.version, source, self.is_rust, &files);
        let same = after.errors.len() == self.errors.len() && {
            let token = places[0].lo as usize;
            after.named(token).map(|named| after.places(named).len()) == Some(places.len())
        };
        if !same {
            let why = after.errors.first().map_or("it has another meaning there", |e| &e.title);
            return Err(format!("`{new}` cannot be the name: {why}"));
        }
        let edit = |span: &Span| TextEdit::new(lines.range(&self.source, *span), new.clone());
        Ok(Some(edits(&self.uri, places.iter().map(edit).collect())))
    }

    /// Returns the edit that brings the text into canonical form; nothing where the text has an error of syntax.
    fn formatted(&self) -> Option<Vec<TextEdit>> {
        let (file, errors) = syntax::parse(&self.source);
        if self.is_rust || !errors.is_empty() {
            return None;
        }
        let text = syntax::printer::print_with_trivia(&file, &self.source);
        if self.source.text() == Some(text.as_str()) {
            return Some(Vec::new());
        }
        Some(vec![TextEdit::new(Lines::of(&self.source).all(), text)])
    }

    /// Returns the corrections of the errors and warnings in a range: those that their `help` says, as edits.
    fn fixes(&self, params: &CodeActionParams) -> Vec<CodeAction> {
        let lines = Lines::of(&self.source);
        let touches =
            |range: Range| range.start <= params.range.end && params.range.start <= range.end;
        let found = self.found().filter(|found| touches(lines.range(&self.source, found.primary)));
        let fix = |found: &Diagnostic| {
            let edit =
                |edit: &Edit| TextEdit::new(lines.range(&self.source, edit.at), edit.text.clone());
            let title = match &found.edits[..] {
                [] => return None,
                [Edit { text, .. }] if text.is_empty() => "leave it out".to_owned(),
                [Edit { text, at }] if at.lo < at.hi && !text.contains('\n') => {
                    format!("write `{text}`")
                }
                _ => found.help.clone()?,
            };
            Some(CodeAction {
                title,
                kind: Some(CodeActionKind::QUICKFIX),
                edit: Some(edits(&self.uri, found.edits.iter().map(edit).collect())),
                is_preferred: Some(true),
                ..Default::default()
            })
        };
        found.filter_map(fix).collect()
    }
}

#[expect(clippy::mutable_key_type, reason = "it is the protocol's type")]
fn edits(uri: &Uri, edits: Vec<TextEdit>) -> WorkspaceEdit {
    let changes = HashMap::from([(uri.clone(), edits)]);
    WorkspaceEdit { changes: Some(changes), ..Default::default() }
}
