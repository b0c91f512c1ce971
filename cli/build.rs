//! Tells the command how it is built: `bench` says so, as figures of an unoptimized command mislead. Packs the built book
//! that `ROUNDELAY_BOOK` names, for `roundelay book`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ROUNDELAY_BOOK");
    let said = |name| std::env::var(name).expect("cargo says how it builds");
    let optimized = said("PROFILE") == "release" && said("OPT_LEVEL") != "0";
    println!("cargo::rustc-env=ROUNDELAY_BUILD={}", if optimized { "release" } else { "dev" });
    let out = PathBuf::from(said("OUT_DIR"));
    let table = match std::env::var_os("ROUNDELAY_BOOK") {
        Some(book) if !book.is_empty() => {
            packed(Path::new(&book), &out).expect("the built book can be read")
        }
        _ => "&[]".to_owned(),
    };
    fs::write(out.join("book.rs"), table).expect("cargo's folder can be written");
}

/// Returns the table of a book's files, in the order of their paths; the files are written in the form of gzip.
fn packed(book: &Path, out: &Path) -> std::io::Result<String> {
    println!("cargo::rerun-if-changed={}", book.display());
    let mut files = Vec::new();
    let mut folders = vec![book.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let name = |path: &Path| {
        let inside = path.strip_prefix(book).expect("a file of the book");
        inside
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect::<Vec<_>>()
            .join("/")
    };
    files.sort_by_key(|path| name(path));
    let mut table = "&[\n".to_owned();
    for (nth, path) in files.iter().enumerate() {
        let to = out.join(format!("book.{nth}.gz"));
        let mut encoder = GzEncoder::new(fs::File::create(&to)?, Compression::best());
        std::io::copy(&mut fs::File::open(path)?, &mut encoder)?;
        encoder.finish()?;
        let _ =
            writeln!(table, "({:?}, include_bytes!({:?})),", name(path), to.display().to_string());
    }
    Ok(table + "]")
}
