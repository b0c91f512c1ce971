//! Brings the book's error pages into the command: one file a code, so that neither can lack one.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../book/src/errors");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut code = String::from("fn page(code: &str) -> &'static str {\n    match code {\n");
    let mut pages: Vec<_> = std::fs::read_dir(&folder)
        .expect("the book has a folder of error pages")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('E')))
        .collect();
    pages.sort();
    for path in pages {
        let name = path.file_stem().expect("a page has a name").to_string_lossy().into_owned();
        let path = path.canonicalize().expect("the page exists");
        writeln!(code, "        {name:?} => include_str!({path:?}),").expect("a string grows");
    }
    code.push_str("        _ => \"This code has no page yet.\",\n    }\n}\n");
    let out = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("pages.rs");
    std::fs::write(out, code).expect("the build folder can be written");
}
