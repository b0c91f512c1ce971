//! `cargo xtask reach [--program FILE]`: the largest number of ranks for which each algorithm of the library is proved,
//! with the time, the memory and the way of the proof, as the table of a page of the book.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command::root;

/// The page that is written.
const PAGE: &str = "book/src/results/reach.md";
/// The line of the page before its table.
const HEAD: &str = "| algorithm | ranks | seconds | MB | way |";
/// The numbers of ranks that are tried after the largest, the smallest first.
const COUNTS: [u32; 8] = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768];
/// The largest number of ranks.
const MOST: u32 = 65536;
/// The seconds that a proof may take.
const SECONDS: &str = "30";

/// A proof that succeeded.
struct Reached {
    nranks: u32,
    seconds: f64,
    bytes: f64,
    way: String,
}

/// Proves the library, and writes the table; the lines before it stay.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let root = root();
    let program = optimized(args, "cargo xtask reach [--program FILE]")?;
    let listed = json(&program, &["list", "--format", "json"])?;
    let mut table = format!("{HEAD}\n|---|---|---|---|---|\n");
    let algorithms = listed.as_array().ok_or("the list is no list")?;
    for algorithm in algorithms {
        let (Some(name), Some(file)) = (algorithm["name"].as_str(), algorithm["file"].as_str())
        else {
            return Err("an algorithm of the list has no name or no file".to_owned());
        };
        let file =
            root.join("stdlib/library").join(Path::new(file).file_name().unwrap_or_default());
        let file = file.to_string_lossy();
        let try_at = |nranks| proved(&program, &file, name, nranks);
        let up = || COUNTS.into_iter().map_while(try_at).last();
        let reached = try_at(MOST).or_else(up);
        let row = match reached {
            Some(Reached { nranks, seconds, bytes, way }) => {
                format!("| {name} | {nranks} | {seconds:.2} | {:.0} | {way} |", bytes / 1e6)
            }
            None => format!("| {name} | below 256 | | | |"),
        };
        println!("{row}");
        writeln!(table, "{row}").map_err(|error| error.to_string())?;
    }
    write_table(PAGE, HEAD, &table)
}

/// Returns the optimized command: the one that the arguments name, or one that is built.
pub(crate) fn optimized(args: &[&str], usage: &str) -> Result<PathBuf, String> {
    let root = root();
    match args {
        [] => {
            let mut build = Command::new(env!("CARGO"));
            build.current_dir(&root).args(["build", "--release", "--package", "roundelay-cli"]);
            let built = build.status().map_err(|error| format!("cargo did not start: {error}"))?;
            if !built.success() {
                return Err("the command was not built".to_owned());
            }
            Ok(root.join("target/release/roundelay"))
        }
        ["--program", file] => Ok(PathBuf::from(file)),
        _ => Err(format!("usage: {usage}")),
    }
}

/// Writes a table, which begins with the line `head`, in its place in a page; the lines before and behind it stay.
pub(crate) fn write_table(page: &str, head: &str, table: &str) -> Result<(), String> {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
    let (before, known) = text.split_once(head).unwrap_or((&text, ""));
    let behind = known.find("\n\n").map_or("", |end| &known[end + 1..]);
    let all = format!("{before}{table}{behind}");
    std::fs::write(&path, all).map_err(|error| format!("{page}: {error}"))
}

/// Proves an algorithm at a rank count; `None` where it is refused, too large, or too slow.
fn proved(program: &Path, file: &str, name: &str, nranks: u32) -> Option<Reached> {
    let count = nranks.to_string();
    let check = ["check", file, "--algorithm", name, "-n", &count, "--stats", "--format", "json"];
    let out = Command::new("timeout").arg(SECONDS).arg(program).args(check).output().ok()?;
    let report: Value = serde_json::from_slice(&out.stdout).ok()?;
    let checked = &report["algorithms"][0];
    if checked["ok"] != Value::Bool(true) {
        return None;
    }
    let symmetry = &checked["certificates"][0]["symmetry"];
    let way = match (symmetry["turns"].as_str(), symmetry["way"].as_str()) {
        (Some(turns), Some(way)) => format!("symmetric: {turns}, {way}"),
        _ => "direct".to_owned(),
    };
    let (seconds, bytes) = (checked["seconds"].as_f64()?, checked["stats"]["peak_bytes"].as_f64()?);
    Some(Reached { nranks, seconds, bytes, way })
}

fn json(program: &Path, args: &[&str]) -> Result<Value, String> {
    let out = Command::new(program).args(args).output();
    let out = out.map_err(|error| format!("{}: {error}", program.display()))?;
    serde_json::from_slice(&out.stdout).map_err(|error| format!("{args:?}: {error}"))
}
