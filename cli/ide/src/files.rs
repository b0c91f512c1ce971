//! Files beside the open texts: the programs of a folder, sources that a text uses, and the library's.

use std::path::{Path, PathBuf};

use roundelay::tools;
use roundelay_core::check::hir::Callee;
use roundelay_core::source::{Home, Span};
use roundelay_core::syntax::Source;
use roundelay_core::syntax::token::Tok;
use roundelay_kernels::cache_folder;

use super::outline::OutlineSort;
use super::text::EditorText;

/// The most files and folders of a workspace that are looked at for one request.
const MOST: usize = 20_000;

/// The largest file that is read for its names.
const LARGEST: u64 = 1 << 20;

/// Whether a name has the letters of a query, in order and in capital or small letters.
pub fn holds(name: &str, query: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|wanted| letters.any(|has| has == wanted))
}

/// Returns the names that a source declares, also where its text has errors.
pub fn names(source: &Source) -> impl Iterator<Item = (&str, OutlineSort, Span)> {
    source.tokens().windows(2).enumerate().filter_map(|(at, pair)| {
        let (sort, name) = match pair {
            [Tok::Algorithm, Tok::Ident(name)] => (OutlineSort::Algorithm, name),
            [Tok::Executor, Tok::Ident(name)] => (OutlineSort::Executor, name),
            _ => return None,
        };
        Some((&**name, sort, Span::new(at + 1, at + 2)))
    })
}

/// Returns the programs below a folder, without hidden folders and those of builds.
pub fn programs(folder: &Path) -> Vec<PathBuf> {
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

impl EditorText {
    /// Returns the file and the line, from 1, where an algorithm of another source is declared: one of the library lies in
    /// a copy in the folder for caches, as its sources are inside the command.
    pub fn declared_elsewhere(&self, name: &str) -> Option<(PathBuf, u32)> {
        if let Some(Callee { algorithm, file, locations, .. }) = self.callee(name)
            && algorithm.declaration.home == Home::Used
        {
            let line = locations.first()?.line;
            return Some((Path::new(file).canonicalize().ok()?, line));
        }
        let source = tools::find(name, |_| Err(String::new())).ok()?;
        let text = source.text()?;
        let line = text.lines().position(|line| line.contains(&format!("algorithm {name}(")))?;
        let file = cache_folder::of_process()?.join("library").join(source.name());
        if cache_folder::read(&file).ok().as_deref() != Some(text.as_bytes()) {
            cache_folder::replace(&file, text.as_bytes()).ok()?;
        }
        Some((file, line as u32 + 1))
    }
}
