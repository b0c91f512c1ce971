//! `roundelay lsp`: the compiler's answers for an editor, by the Language Server Protocol on standard input and output.
//! The answers are those of `ide`, in the protocol's form.
//!
//! A text is examined as soon as it changes: errors of syntax, names and types are known at once. A proof takes longer,
//! so a thread of its own makes it, and a proof of a text that has changed meanwhile is dropped.

mod answers;
mod commands;
mod document;
mod files;
mod lines;
mod options;

mod proofs;
mod protocol;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::HashMap;

use crossbeam_channel::select;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{
    DidChangeConfiguration, DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument,
    Notification as _, PublishDiagnostics,
};
use lsp_types::request::{ExecuteCommand, Request as _};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeLensOptions, CompletionOptions,
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    ExecuteCommandOptions, OneOf, PublishDiagnosticsParams, RenameOptions,
    SemanticTokensFullOptions, SemanticTokensLegend, SemanticTokensOptions, ServerCapabilities,
    SignatureHelpOptions, TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
    WorkDoneProgressOptions,
};
use roundelay_core::diagnostics::Code;
use serde_json::Value;

use crate::report::Failure;
use document::{Document, Documents, OpenFiles};
use options::Options;
use proofs::{Job, Proofs, Proved};

/// Serves the editor that started the process, until it says that it ends, or is gone.
pub(crate) fn main() -> Result<bool, Failure> {
    let failed = |why: String| {
        let title = format!("the editor and the server did not understand each other: {why}");
        Failure::usage(Code::BadCall, title).with_help("an editor starts `roundelay lsp`")
    };
    let (connection, threads) = wire::connect();
    let served = serve(&connection);
    drop(connection);
    served.map_err(|why| failed(threads.trouble().unwrap_or(why)))?;
    threads.join().map_err(|why| failed(why.to_string()))?;
    Ok(true)
}

/// Serves one client, until it ends or is gone.
fn serve(connection: &Connection) -> Result<(), String> {
    let (id, start) = connection.initialize_start().map_err(|why| why.to_string())?;
    let options = Options::of_start(&start);
    let about = serde_json::json!({
        "capabilities": capabilities(&options),
        "serverInfo": { "name": "roundelay", "version": env!("CARGO_PKG_VERSION") },
    });
    connection.initialize_finish(id, about).map_err(|why| why.to_string())?;
    let mut server = Server {
        connection,
        documents: HashMap::new(),
        options,
        asked: 0,
        proofs: Proofs::start(),
    };
    loop {
        select! {
            recv(connection.receiver) -> message => match message {
                Ok(Message::Request(request)) => {
                    if connection.handle_shutdown(&request).map_err(|why| why.to_string())? {
                        return Ok(());
                    }
                    if let Some(response) = server.response(request) {
                        server.send(response.into())?;
                    }
                }
                Ok(Message::Notification(notification)) => server.notice(notification)?,
                // The client only says that it will ask again.
                Ok(Message::Response(_)) => {}
                Err(_) => return Ok(()),
            },
            recv(server.proofs.done) -> proved => {
                if let Ok(proved) = proved {
                    server.proved(proved)?;
                }
            }
        }
    }
}

fn capabilities(options: &Options) -> ServerCapabilities {
    // A client with commands of its own would register these twice.
    let commands = if options.lenses { Vec::new() } else { commands::names() };
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        hover_provider: Some(true.into()),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        document_formatting_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        workspace_symbol_provider: Some(OneOf::Left(true)),
        execute_command_provider: Some(ExecuteCommandOptions { commands, ..Default::default() }),
        folding_range_provider: Some(true.into()),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![".".to_owned()]),
            ..Default::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: Some(vec!["(".to_owned(), ",".to_owned()]),
            ..Default::default()
        }),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend: SemanticTokensLegend {
                    token_types: protocol::SORTS.to_vec(),
                    token_modifiers: Vec::new(),
                },
                full: Some(SemanticTokensFullOptions::Bool(true)),
                ..Default::default()
            }
            .into(),
        ),
        inlay_hint_provider: Some(OneOf::Left(true)),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
                ..Default::default()
            }
            .into(),
        ),
        ..Default::default()
    }
}

/// The notice of the state of each proof, for clients that ask for it.
const PROOF: &str = "roundelay/proof";

/// The state of a client's session.
struct Server<'c> {
    connection: &'c Connection,
    documents: Documents,
    options: Options,
    /// The number of requests to the client.
    asked: i32,
    proofs: Proofs,
}

impl Server<'_> {
    fn send(&self, message: Message) -> Result<(), String> {
        self.connection.sender.send(message).map_err(|why| why.to_string())
    }

    /// Answers a request; one that is malformed or unknown gets an error, and a command that runs answers by itself.
    fn response(&self, request: Request) -> Option<Response> {
        let Request { id, method, params } = request;
        let refused = |why| Response::new_err(id.clone(), ErrorCode::InvalidParams as i32, why);
        if method == ExecuteCommand::METHOD {
            let asked = serde_json::from_value(params).map_err(|why| why.to_string());
            let out = &self.connection.sender;
            let begun =
                asked.and_then(|asked| commands::run(&self.documents, out, id.clone(), &asked));
            return begun.err().map(refused);
        }
        Some(match answers::answer(&self.documents, &self.options, &method, &params) {
            Ok(Some(result)) => Response::new_ok(id, result),
            Ok(None) => {
                let why = format!("no method {method}");
                Response::new_err(id, ErrorCode::MethodNotFound as i32, why)
            }
            Err(why) => refused(why),
        })
    }

    /// Takes a notice; one that is malformed is left alone, as the protocol has no answer to it.
    fn notice(&mut self, notification: Notification) -> Result<(), String> {
        let Notification { method, params } = notification;
        match method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Ok(DidOpenTextDocumentParams { text_document: opened }) =
                    serde_json::from_value(params)
                {
                    return self.changed(&opened.uri, opened.version, &opened.text);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Ok(DidChangeTextDocumentParams { text_document: changed, content_changes }) =
                    serde_json::from_value(params)
                    && let Some(whole) = content_changes.into_iter().next_back()
                {
                    return self.changed(&changed.uri, changed.version, &whole.text);
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Ok(DidCloseTextDocumentParams { text_document: closed }) =
                    serde_json::from_value(params)
                {
                    self.documents.remove(closed.uri.as_str());
                    return self.publish(closed.uri, Vec::new(), None);
                }
            }
            DidChangeConfiguration::METHOD => {
                self.options.change(&params);
                return self.refresh();
            }
            _ => {}
        }
        Ok(())
    }

    /// Examines a new text, tells its errors, and has it proved.
    fn changed(&mut self, uri: &Uri, version: i32, text: &str) -> Result<(), String> {
        let files = OpenFiles::of(&self.documents, &document::path(uri));
        let document = Document::new(uri.clone(), version, text, &files);
        if document.errors.is_empty() {
            let (source, checked) = (document.source.clone(), document.checked.clone());
            self.proofs.prove(Job { uri: uri.clone(), version, source, checked });
        }
        self.documents.insert(uri.as_str().to_owned(), document);
        self.publish_of(uri)
    }

    /// Takes the proof of a text, unless the text has changed meanwhile.
    fn proved(&mut self, proved: Proved) -> Result<(), String> {
        let Proved { uri, version, proof } = proved;
        match self.documents.get_mut(uri.as_str()) {
            Some(document) if document.version == version => document.text.proof = Some(proof),
            _ => return Ok(()),
        }
        self.publish_of(&uri)?;
        self.refresh()
    }

    /// Has the client ask again for the facts of a proof, which a change of the text does not bring.
    fn refresh(&mut self) -> Result<(), String> {
        for method in self.options.refreshes.clone() {
            self.asked += 1;
            let id = RequestId::from(self.asked);
            let request = Request { id, method: method.to_owned(), params: Value::Null };
            self.send(request.into())?;
        }
        Ok(())
    }

    fn publish_of(&self, uri: &Uri) -> Result<(), String> {
        let Some(document) = self.documents.get(uri.as_str()) else { return Ok(()) };
        if self.options.proofs {
            let lights = Notification::new(PROOF.to_owned(), document.lights());
            self.send(lights.into())?;
        }
        let diagnostics = document.diagnostics(&self.options);
        self.publish(uri.clone(), diagnostics, Some(document.version))
    }

    fn publish(
        &self,
        uri: Uri,
        diagnostics: Vec<lsp_types::Diagnostic>,
        version: Option<i32>,
    ) -> Result<(), String> {
        let told = PublishDiagnosticsParams { uri, diagnostics, version };
        self.send(Notification::new(PublishDiagnostics::METHOD.to_owned(), told).into())
    }
}
