//! The command in the book's pages: a WebAssembly module, and the scripts that call it.

use std::path::Path;
use std::process::Command;

use crate::command::{has_target, run, there};
use crate::install::debian;

/// The system of a module that takes arguments, files and streams from a page.
const SYSTEM: &str = "wasm32-wasip1";

/// The names of a browser that the tests of the pages can drive.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Builds the module and the scripts into the built book. Returns whether they are there; else the reason is printed.
pub(crate) fn build(root: &Path, book: &Path) -> Result<bool, String> {
    let left_out = "the pages run no command";
    if !there("npm") {
        println!("{left_out}: npm is not on this machine");
        return Ok(false);
    }
    if !has_target(root, SYSTEM)? {
        println!("{left_out}: Rust's libraries for {SYSTEM} cannot be had here");
        return Ok(false);
    }
    let package = ["--package", "roundelay-cli", "--no-default-features", "--profile", "browser"];
    run(Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["build", "--target", SYSTEM])
        .args(package))?;
    let module = root.join("target").join(SYSTEM).join("browser/roundelay.wasm");
    let to = book.join("roundelay.wasm");
    std::fs::copy(&module, &to).map_err(|why| format!("{}: {why}", to.display()))?;
    npm(root, &["ci"])?;
    npm(root, &["run", "build", "--", &book.display().to_string()])?;
    Ok(true)
}

/// Runs the pages in a browser, which is installed first where that is possible.
pub(crate) fn test(root: &Path, book: &Path) -> Result<(), String> {
    if !BROWSERS.iter().any(|browser| there(browser)) && !debian(&BROWSERS[..1])? {
        return Err(format!("no browser is on this machine: {}", BROWSERS.join(", ")));
    }
    let mut tests = Command::new("npm");
    tests.current_dir(root.join("book/playground")).arg("test").env("BOOK", book);
    run(&mut tests)
}

fn npm(root: &Path, args: &[&str]) -> Result<(), String> {
    run(Command::new("npm").current_dir(root.join("book/playground")).args(args))
}
