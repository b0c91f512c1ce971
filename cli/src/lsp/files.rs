//! Files beside the open texts: the programs of the workspace, sources that a text uses, and the library's.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lsp_types::{Location, Position, Range, SymbolInformation, SymbolKind, Uri};
use roundelay::tools;
use roundelay_core::check::hir::Callee;
use roundelay_core::source::{Home, Span};
use roundelay_core::syntax::Source;
use roundelay_core::syntax::token::Tok;
use roundelay_kernels::cache_folder;

use super::document::{Document, Documents, path};
use super::place::Lines;

/// The most files and folders of a workspace that are looked at for one request.
const MOST: usize = 20_000;

/// The largest file that is read for its names.
const LARGEST: u64 = 1 << 20;

/// Returns the algorithms and executors of the workspace whose names hold the letters of `query` in order: those of open
/// texts as they are in the editor, and those of files below the folders.
pub(super) fn symbols(
    documents: &Documents,
    folders: &[Uri],
    query: &str,
) -> Vec<SymbolInformation> {
    let mut all: Vec<SymbolInformation> = Vec::new();
    for document in documents.values() {
        all.extend(names(&document.source, &document.uri));
    }
    for file in folders.iter().flat_map(|folder| programs(Path::new(&path(folder)))) {
        let name = file.to_string_lossy();
        let open = documents.values().any(|document| document.source.name() == name);
        if !open && let (Ok(source), Some(uri)) = (tools::file(&name), address(&file)) {
            all.extend(names(&source, &uri));
        }
    }
    all.retain(|symbol| holds(&symbol.name, query));
    all.sort_by(|a, b| (&a.name, a.location.uri.as_str()).cmp(&(&b.name, b.location.uri.as_str())));
    all
}

/// Whether a name has the letters of a query, in order and in capital or small letters.
fn holds(name: &str, query: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|wanted| letters.any(|has| has == wanted))
}

/// Returns the names that a source declares, also where its text has errors.
#[expect(deprecated, reason = "the field is part of the protocol's struct")]
fn names(source: &Source, uri: &Uri) -> Vec<SymbolInformation> {
    let lines = Lines::of(source);
    let symbol = |(at, pair): (usize, &[Tok])| {
        let (kind, name) = match pair {
            [Tok::Algorithm, Tok::Ident(name)] => (SymbolKind::FUNCTION, name),
            [Tok::Executor, Tok::Ident(name)] => (SymbolKind::OBJECT, name),
            _ => return None,
        };
        let range = lines.range(source, Span::new(at + 1, at + 2));
        let location = Location::new(uri.clone(), range);
        let (name, tags) = (name.clone(), None);
        Some(SymbolInformation {
            name,
            kind,
            tags,
            deprecated: None,
            location,
            container_name: None,
        })
    };
    source.tokens().windows(2).enumerate().filter_map(symbol).collect()
}

/// Returns the programs below a folder, without hidden folders and those of builds.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MOST {
                return found;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // A link is not followed: it may lead back.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules"
            {
                left.push(entry.path());
            }
            let small = || entry.metadata().is_ok_and(|about| about.len() <= LARGEST);
            if kind.is_file() && name.ends_with(".coll") && small() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Returns the place where an algorithm of another source is declared: one of the library lies in a copy in the folder
/// for caches, as its sources are inside the command.
pub(super) fn declared(document: &Document, name: &str) -> Option<Location> {
    if let Some(Callee { algorithm, file, locations, .. }) = document.callee(name)
        && algorithm.declaration.home == Home::Used
    {
        let line = locations.first()?.line - 1;
        let uri = address(&Path::new(file).canonicalize().ok()?)?;
        return Some(Location::new(uri, line_of(line)));
    }
    let source = tools::find(name, |_| Err(String::new())).ok()?;
    let text = source.text()?;
    let line = text.lines().position(|line| line.contains(&format!("algorithm {name}(")))?;
    let file = cache_folder::of_process()?.join("library").join(source.name());
    if cache_folder::read(&file).ok().as_deref() != Some(text.as_bytes()) {
        cache_folder::replace(&file, text.as_bytes()).ok()?;
    }
    Some(Location::new(address(&file)?, line_of(line as u32)))
}

fn line_of(line: u32) -> Range {
    Range::new(Position::new(line, 0), Position::new(line, 0))
}

/// Returns the address of a file.
fn address(file: &Path) -> Option<Uri> {
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
