//! What the integration tests share: every `.coll` source of the tree, and paths.

use std::path::{Path, PathBuf};

use roundelay_core::check::Door;
use roundelay_core::check::hir::Program;
use roundelay_core::check::others::Others;
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::source::Source;

/// A source, with the library; paths begin in this package.
pub fn compile(source: &Source, door: Door) -> Result<Program, Vec<Diagnostic>> {
    let load = |path: &str| {
        let text = std::fs::read_to_string(root().join("tests").join(path));
        text.map(|text| Source::from_text(path, &text)).map_err(|error| error.to_string())
    };
    let others = Others { prelude: roundelay::library::SOURCES, load: &load };
    roundelay_core::compile_with(source, door, &others)
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The `.coll` files of `folder`, sorted by name: path and text.
pub fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = root().join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "coll"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("sources are UTF-8");
            (path, text)
        })
        .collect()
}

/// Every source that is meant to be right.
pub fn right_sources() -> Vec<(PathBuf, String)> {
    ["stdlib", "examples", "core/tests/data"].into_iter().flat_map(sources).collect()
}

/// The file's name alone.
pub fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}
