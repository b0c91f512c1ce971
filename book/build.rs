//! Makes a table of the pages below `src/errors`, each as a reader of a terminal has it: without the comments that only
//! the tests of the book read.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/errors");
    let made =
        PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where")).join("pages.rs");
    std::fs::write(&made, table(Path::new("src/errors"))).expect("cargo's folder can be written");
}

/// The text of a slice of codes and pages, in the order of the codes.
fn table(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("the package has its pages");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a page").path()).collect();
    paths.sort();
    let mut table = String::from("&[\n");
    for path in paths {
        let code = path.file_stem().expect("a page has a name").to_string_lossy().into_owned();
        if code != "index" {
            let page = std::fs::read_to_string(&path).expect("a page is text");
            let shown = page.lines().filter(|line| !line.starts_with("<!-- "));
            let shown: String = shown.flat_map(|line| [line, "\n"]).collect();
            let _ = writeln!(table, "({code:?}, {shown:?}),");
        }
    }
    table + "]\n"
}
