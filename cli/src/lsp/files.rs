//! The names of the workspace, and the addresses of files.

use std::fmt::Write as _;
use std::path::Path;

use lsp_types::{Location, SymbolInformation, Uri};
use roundelay::tools;
use roundelay_core::syntax::Source;

use super::document::{Documents, path};
use super::lines::Lines;
use super::protocol::symbol_kind;
use roundelay_ide::{holds, names, programs};

/// Returns the algorithms and executors of the workspace whose names hold the letters of `query` in order: those of open
/// texts as they are in the editor, and those of files below the folders.
pub(super) fn symbols(
    documents: &Documents,
    folders: &[Uri],
    query: &str,
) -> Vec<SymbolInformation> {
    let mut all: Vec<SymbolInformation> = Vec::new();
    for document in documents.values() {
        all.extend(symbols_of(&document.source, &document.uri));
    }
    for file in folders.iter().flat_map(|folder| programs(Path::new(&path(folder)))) {
        let name = file.to_string_lossy();
        let open = documents.values().any(|document| document.source.name() == name);
        if !open && let (Ok(source), Some(uri)) = (tools::file(&name), address(&file)) {
            all.extend(symbols_of(&source, &uri));
        }
    }
    all.retain(|symbol| holds(&symbol.name, query));
    all.sort_by(|a, b| (&a.name, a.location.uri.as_str()).cmp(&(&b.name, b.location.uri.as_str())));
    all
}

#[expect(deprecated, reason = "the field is part of the protocol's struct")]
fn symbols_of(source: &Source, uri: &Uri) -> Vec<SymbolInformation> {
    let lines = Lines::of(source);
    let symbol = |(name, sort, span): (&str, _, _)| SymbolInformation {
        name: name.to_owned(),
        kind: symbol_kind(sort),
        tags: None,
        deprecated: None,
        location: Location::new(uri.clone(), lines.range(span)),
        container_name: None,
    };
    names(source).map(symbol).collect()
}

/// Returns the address of a file.
pub(super) fn address(file: &Path) -> Option<Uri> {
    let text = file.to_str()?.replace('\\', "/");
    let mut address = String::from("file://");
    if !text.starts_with('/') {
        address.push('/');
    }
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b':' | b'-' | b'_' | b'.' | b'~' => {
                address.push(byte.into());
            }
            _ => _ = write!(address, "%{byte:02X}"),
        }
    }
    address.parse().ok()
}
