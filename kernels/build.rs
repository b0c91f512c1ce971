//! Lists the device headers, so that a new one is embedded without being named twice.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("device");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut headers: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cuh"))
        .collect();
    headers.sort();
    let named = |path: &PathBuf| {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        format!("({name:?}, include_str!({:?})),\n", path.display().to_string())
    };
    let list = format!("&[{}]", headers.iter().map(named).collect::<String>());
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("headers.rs"), list).expect("a writable folder");
}
