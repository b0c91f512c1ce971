//! `cargo xtask test`: every check of the project, in the order in which they fail fastest.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The book's builder; installed below `target/`, so that a fresh machine needs only Rust.
const MDBOOK: &str = "0.5.4";

type Step = (&'static str, fn(&Path) -> Result<(), String>);

const STEPS: [Step; 10] = [
    ("format", |root| cargo(root, &["fmt", "--all", "--check"])),
    ("lints", |root| {
        cargo(root, &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
    }),
    ("generated parser", |_| crate::parser::check()),
    ("CUDA's compiler", crate::nvrtc::install),
    ("tests", |root| cargo(root, &["test", "--workspace"])),
    ("examples", examples),
    ("signal and park protocol", loom),
    ("sources in canonical form", canonical),
    ("documentation", |root| {
        run(Command::new(env!("CARGO"))
            .current_dir(root)
            .env("RUSTDOCFLAGS", "-D warnings")
            .args(["doc", "--quiet", "--workspace", "--no-deps"]))
    }),
    ("book", book),
];

/// Runs every step; the first that fails ends the run and is named.
pub(crate) fn all() -> Result<(), String> {
    let root = root();
    let mut times = Vec::new();
    for (name, step) in STEPS {
        println!("== {name}");
        let start = Instant::now();
        step(&root).map_err(|why| format!("{name}: {why}"))?;
        times.push((name, start.elapsed()));
    }
    println!("== all checks passed");
    for (name, time) in times {
        println!("{:>8.1} s  {name}", time.as_secs_f64());
    }
    Ok(())
}

/// The workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} ended with {status}")),
        Err(error) => Err(format!("{shown} did not start: {error}")),
    }
}

fn cargo(root: &Path, args: &[&str]) -> Result<(), String> {
    run(Command::new(env!("CARGO")).current_dir(root).args(args))
}

/// The engine's protocols under loom: every interleaving of a few threads, on modelled atomics.
fn loom(root: &Path) -> Result<(), String> {
    run(Command::new(env!("CARGO"))
        .current_dir(root)
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", "target/loom")
        .args(["test", "--release", "--package", "roundelay-kernels", "--lib", "loom"]))
}

/// The programs among the examples, each of which ends in a check of its own; the sources are the tests' business.
/// With every engine there is: the one for GPUs says itself what it lacks.
fn examples(root: &Path) -> Result<(), String> {
    for path in files(root, "examples", "rs")? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        cargo(root, &["run", "--quiet", "--features", "cuda", "--example", &name])?;
    }
    Ok(())
}

/// The files of a folder with that extension, in order.
fn files(root: &Path, folder: &str, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(root.join(folder)).map_err(|e| format!("{folder}: {e}"))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    files.sort();
    Ok(files)
}

fn canonical(root: &Path) -> Result<(), String> {
    let mut sources = files(root, "stdlib/library", "coll")?;
    sources.extend(files(root, "examples", "coll")?);
    run(Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["run", "--quiet", "--package", "roundelay-cli", "--", "fmt", "--check"])
        .args(sources))
}

fn book(root: &Path) -> Result<(), String> {
    let tools = root.join("target/tools");
    let mdbook = tools.join("bin").join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    if !mdbook.exists() {
        println!("installing mdbook {MDBOOK} below target/tools");
        run(Command::new(env!("CARGO"))
            .current_dir(root)
            .args(["install", "mdbook", "--locked", "--quiet", "--version", MDBOOK, "--root"])
            .arg(&tools))?;
    }
    run(Command::new(mdbook).arg("build").arg(root.join("book")))
}
