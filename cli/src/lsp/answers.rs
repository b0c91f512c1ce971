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
    GotoDefinitionResponse, Hover, HoverContents, InlayHintParams, Location, Position,
    PrepareRenameResponse, Range, RenameParams, TextDocumentPositionParams, TextEdit, Uri,
    WorkspaceEdit, WorkspaceSymbolParams,
};
use roundelay_core::diagnostics::Edit;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::{Document, Documents, OpenFiles};
use super::files;
use super::options::Options;
use super::protocol::markdown;
use roundelay_ide::{Named, declaration};

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
    fn hover(&self, at: Position) -> Option<Hover> {
        let lines = self.lines();
        let (span, value) = self.text.hover(lines.place(at))?;
        let contents = HoverContents::Markup(markdown(value));
        Some(Hover { contents, range: Some(lines.range(span)) })
    }

    fn definition(&self, at: Position) -> Option<GotoDefinitionResponse> {
        let lines = self.lines();
        let named = self.named_at(lines.place(at))?;
        let location = match (declaration(named), named) {
            (Some(span), _) => self.location(&lines, span),
            (None, Named::Word(name)) => {
                let (file, line) = self.declared_elsewhere(name)?;
                let start = Position::new(line - 1, 0);
                Location::new(files::address(&file)?, Range::new(start, start))
            }
            (None, _) => return None,
        };
        Some(GotoDefinitionResponse::Scalar(location))
    }

    fn references(&self, at: Position) -> Vec<Location> {
        let lines = self.lines();
        let named = self.named_at(lines.place(at));
        let places = named.map_or_else(Vec::new, |named| self.places(named));
        places.into_iter().map(|span| self.location(&lines, span)).collect()
    }

    /// Returns the range of the name at a place, if it can get another name.
    fn renamed_at(&self, at: Position) -> Option<PrepareRenameResponse> {
        let lines = self.lines();
        let span = self.text.renamed_at(lines.place(at))?;
        Some(PrepareRenameResponse::Range(lines.range(span)))
    }

    /// Gives a name another name at all its places.
    fn rename(
        &self,
        params: &RenameParams,
        documents: &Documents,
    ) -> Result<Option<WorkspaceEdit>, String> {
        let (lines, new) = (self.lines(), &params.new_name);
        let at = lines.place(params.text_document_position.position);
        let files = OpenFiles::of(documents, self.source.name());
        let places = self.text.rename(at, new, &files)?;
        let edit = |span| TextEdit::new(lines.range(span), new.clone());
        Ok(places.map(|places| edits(&self.uri, places.into_iter().map(edit).collect())))
    }

    /// Returns the edit that brings the text into canonical form; nothing where the text has an error of syntax.
    fn formatted(&self) -> Option<Vec<TextEdit>> {
        let text = self.text.format()?;
        let is_same = self.source.text() == Some(text.as_str());
        let edit = (!is_same).then(|| TextEdit::new(self.lines().all(), text));
        Some(edit.into_iter().collect())
    }

    /// Returns the corrections of the errors and warnings in a range.
    fn fixes(&self, params: &CodeActionParams) -> Vec<CodeAction> {
        let lines = self.lines();
        let touches = |span| {
            let range = lines.range(span);
            range.start <= params.range.end && params.range.start <= range.end
        };
        let edit = |edit: &Edit| TextEdit::new(lines.range(edit.at), edit.text.clone());
        let action = |(title, all): (String, &[Edit])| CodeAction {
            title,
            kind: Some(CodeActionKind::QUICKFIX),
            edit: Some(edits(&self.uri, all.iter().map(edit).collect())),
            is_preferred: Some(true),
            ..Default::default()
        };
        self.text.fixes(touches).map(action).collect()
    }
}

#[expect(clippy::mutable_key_type, reason = "it is the protocol's type")]
fn edits(uri: &Uri, edits: Vec<TextEdit>) -> WorkspaceEdit {
    let changes = HashMap::from([(uri.clone(), edits)]);
    WorkspaceEdit { changes: Some(changes), ..Default::default() }
}
