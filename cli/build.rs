//! Brings the book's error pages into the command: one file a code, so that the two cannot differ.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../book/src/errors");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages: Vec<_> = std::fs::read_dir(&folder)
        .expect("the book has a folder of error pages")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(['E', 'W']))
        })
        .collect();
    pages.sort();
    let mut table = String::from("const PAGES: &[(&str, &str)] = &[\n");
    for path in pages {
        let code = path.file_stem().expect("a page has a name").to_string_lossy().into_owned();
        let path = path.canonicalize().expect("the page exists");
        let path = path.to_str().expect("include_str! takes paths that are text");
        writeln!(table, "    ({code:?}, include_str!({path:?})),").expect("a string grows");
    }
    table.push_str("];\n");
    let out = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("pages.rs");
    std::fs::write(out, table).expect("the build folder can be written");
}
