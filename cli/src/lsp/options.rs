//! The choices of an editor: what it can show, and which hints its user wants.

use lsp_types::request::{CodeLensRefresh, InlayHintRefreshRequest, Request as _};
use lsp_types::{CodeDescription, Uri};
use roundelay_core::diagnostics::Code;
use serde::Deserialize;
use serde_json::Value;

/// The hints inside a text that can be switched off.
#[derive(Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct Hints {
    /// Whether a post is needed or implied.
    pub(super) signals: bool,
    /// The rank counts that an algorithm is proved for.
    pub(super) counts: bool,
    /// The lengths of views and of slots.
    pub(super) lengths: bool,
}

impl Default for Hints {
    fn default() -> Self {
        Self { signals: true, counts: true, lengths: true }
    }
}

/// The choices that a client makes when it starts; all parts may be left out.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Options {
    pub(super) hints: Hints,
    /// Whether the client takes the notices of `roundelay/proof`.
    pub(super) proofs: bool,
    /// Whether the client has commands of its own for the lenses *simulate* and *run*.
    pub(super) lenses: bool,
    /// Whether the client shows addresses such as `roundelay-explain:/E0306.md`, by the request `roundelay/explain`.
    pub(super) explain: bool,
    #[serde(skip)]
    pub(super) folders: Vec<Uri>,
    /// The requests by which the client asks again for facts of a proof: of lenses, and of hints.
    #[serde(skip)]
    pub(super) refreshes: Vec<&'static str>,
}

impl Options {
    /// Reads the parameters of `initialize`; malformed choices are those of an editor that makes none.
    pub(super) fn of_start(params: &Value) -> Self {
        let given = params.get("initializationOptions").filter(|given| given.is_object());
        let mut options: Self =
            given.and_then(|given| Self::deserialize(given).ok()).unwrap_or_default();
        let refreshed =
            [("codeLens", CodeLensRefresh::METHOD), ("inlayHint", InlayHintRefreshRequest::METHOD)];
        let supports = |of: &str| params["capabilities"]["workspace"][of]["refreshSupport"] == true;
        let refreshed = refreshed.into_iter().filter(|(of, _)| supports(of));
        options.refreshes = refreshed.map(|(_, method)| method).collect();
        let folders = params["workspaceFolders"].as_array().into_iter().flatten();
        let named = folders.filter_map(|folder| folder["uri"].as_str());
        options.folders = named.filter_map(|uri| uri.parse().ok()).collect();
        if options.folders.is_empty() {
            options.folders =
                params["rootUri"].as_str().and_then(|uri| uri.parse().ok()).into_iter().collect();
        }
        options
    }

    /// Returns the command of a lens: the client's own, or the server's.
    pub(super) fn command(&self, client: &'static str, server: &'static str) -> &'static str {
        if self.lenses { client } else { server }
    }

    /// Returns the address of a code's page, where the client shows such addresses.
    pub(super) fn explained(&self, code: Code) -> Option<CodeDescription> {
        let href = self.explain.then(|| format!("roundelay-explain:/{code}.md").parse().ok())??;
        Some(CodeDescription { href })
    }

    /// Takes changed settings: `{ "roundelay": { "hints": { "signals": false } } }`.
    pub(super) fn change(&mut self, params: &Value) {
        let hints = &params["settings"]["roundelay"]["hints"];
        if let Ok(hints) = Hints::deserialize(hints) {
            self.hints = hints;
        }
    }
}
