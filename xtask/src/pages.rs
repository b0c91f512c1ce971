//! Tables of the book that the command measures: `cargo xtask reach`, the largest number of ranks for which each algorithm
//! of the library is proved, with the time, the memory and the way of the proof; and `cargo xtask synthesis`, the trees
//! that are found for machines of which published tools tell their results, and the executors that are found for meshes
//! with dead links.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{optimized, program, read, root, write};
use crate::switches::JobOptions;

const USAGE: &str = "\
usage: cargo xtask reach|synthesis [--program FILE]
  --program FILE  an optimized command to use instead of building one";

/// The numbers of ranks that are tried, the largest first and then the smallest ones.
const COUNTS: [u32; 9] = [65536, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768];
/// The seconds that a proof may take.
const SECONDS: &str = "30";

/// A topology, a collective, the trees of a root (0 for the optimum), and the published result.
type SynthesisRow = (&'static str, &'static str, u32, &'static str);

const ROWS: &[SynthesisRow] = &[
    ("examples/topologies/ndv2_x2.links", "AllGather", 0, "91.4 % in 43 s (TE-CCL)"),
    ("examples/topologies/ndv2_x4.links", "AllGather", 0, "90.6 % in 8.6 h (TE-CCL)"),
    ("examples/topologies/dgx2_x2.links", "AllGather", 0, "100 % in 2,700 s (TE-CCL)"),
    ("examples/topologies/mi250_x1.links", "AllGather", 0, "100 % (ForestColl)"),
    ("examples/topologies/a100_x1.links", "AllGather", 0, "100 % (ForestColl)"),
    ("examples/topologies/a100_x2.links", "AllGather", 0, "100 % (ForestColl)"),
    ("full_mesh(8) without (0, 1)", "AllGather", 1, "58 % (ForestColl)"),
    ("full_mesh(8) without (0, 1)", "AllGather", 2, "78 % (ForestColl)"),
    ("full_mesh(8) without (0, 1)", "AllGather", 3, "88 % (ForestColl)"),
    ("full_mesh(8) without (0, 1)", "AllGather", 0, "100 % (ForestColl)"),
    ("full_mesh(8) without (0, 1)", "ReduceScatter", 0, ""),
    ("full_mesh(8) without (0, 1)", "AllReduce", 0, ""),
    ("full_mesh(8) without (0, 1) without (2, 3)", "AllReduce", 0, ""),
    ("full_mesh(8) without (0, 1) without (1, 2)", "AllReduce", 0, ""),
    ("groups([8, 8], 200GB/s, 1us, 25GB/s, 5us) without (0, 1)", "AllGather", 0, ""),
    ("groups([8, 8], 200GB/s, 1us, 25GB/s, 5us) without (0, 1)", "AllReduce", 0, ""),
    ("groups([8, 4], 200GB/s, 1us, 25GB/s, 5us) without (0, 1)", "AllGather", 0, ""),
    ("groups([8, 4], 200GB/s, 1us, 25GB/s, 5us) without (0, 1)", "AllReduce", 0, ""),
    ("spine_leaf(16, 8, 4, 1, 25GB/s, 1us)", "AllGather", 0, ""),
    ("spine_leaf(16, 8, 4, 2, 25GB/s, 1us)", "AllGather", 0, ""),
];

/// Meshes with no, one and two dead links: up to symmetry, two links share a rank or they do not.
const MESHES: [&str; 4] = [
    "full_mesh(8)",
    "full_mesh(8) without (0, 1)",
    "full_mesh(8) without (0, 1) without (1, 2)",
    "full_mesh(8) without (0, 1) without (2, 3)",
];

/// The keys of an executor's times, and its name in the table.
const EXECUTORS: [(&str, &str); 3] = [
    ("synthesized", "synthesized"),
    ("library", "the library's classes"),
    ("ring", "the published ring"),
];

/// Proves the library, and writes the table.
pub(crate) fn reach(args: &[&str]) -> Result<(), String> {
    let command = chosen(JobOptions::read(USAGE, args)?.path("--program"))?;
    let mut table = "|---|---|---|---|---|\n".to_owned();
    let listed = report(&command, &["list"])?;
    for algorithm in listed.as_array().ok_or("the list is no list")? {
        let [name, file] = ["name", "file"].map(|key| algorithm[key].as_str());
        let (name, file) = name.zip(file).ok_or("an algorithm has no name or no file")?;
        let file =
            Path::new("stdlib/library").join(Path::new(file).file_name().unwrap_or_default());
        let file = file.to_string_lossy();
        let try_at = |nranks: u32| proved(&command, &file, name, nranks);
        let up = || COUNTS[1..].iter().copied().map_while(try_at).last();
        let found = try_at(COUNTS[0]).or_else(up).unwrap_or_else(|| "below 256 | | |".to_owned());
        row(&mut table, &format!("| {name} | {found} |"));
    }
    into_page("book/src/results/reach.md", "| algorithm | ranks | seconds | MB | way |", &table)
}

/// Proves an algorithm at a rank count; `None` where it is refused, too large, or too slow.
fn proved(command: &Path, file: &str, name: &str, nranks: u32) -> Option<String> {
    let mut timeout = program("timeout", &[SECONDS]);
    timeout.current_dir(root()).arg(command).args(["check", file, "--algorithm", name, "-n"]);
    let out = timeout.args([&nranks.to_string(), "--stats", "--format", "json"]).output().ok()?;
    let report: Value = serde_json::from_slice(&out.stdout).ok()?;
    let checked = &report["algorithms"][0];
    let symmetry = &checked["certificates"][0]["symmetry"];
    let way = match (symmetry["turns"].as_str(), symmetry["way"].as_str()) {
        (Some(turns), Some(way)) => format!("symmetric: {turns}, {way}"),
        _ => "direct".to_owned(),
    };
    let (seconds, bytes) = (checked["seconds"].as_f64()?, checked["stats"]["peak_bytes"].as_f64()?);
    let found = format!("{nranks} | {seconds:.2} | {:.0} | {way}", bytes / 1e6);
    checked["ok"].as_bool()?.then_some(found)
}

/// Searches for all rows, and writes the tables.
pub(crate) fn synthesis(args: &[&str]) -> Result<(), String> {
    const PAGE: &str = "book/src/results/synthesis.md";
    const TREES: &str = "| topology | collective | trees of a root | found in | of the bound | simulated, 1 GB | published |";
    const TIMES: &str =
        "| machine | executor | 1 KiB, us | 1 MiB, us | 1 GiB, us | of the bound at 1 GiB |";
    let command = chosen(JobOptions::read(USAGE, args)?.path("--program"))?;
    into_page(PAGE, TREES, &trees(&command)?)?;
    into_page(PAGE, TIMES, &executors(&command)?)
}

/// Returns the table of trees.
fn trees(command: &Path) -> Result<String, String> {
    let mut table = "|---|---|---:|---:|---:|---:|---|\n".to_owned();
    for (topology, collective, trees, published) in ROWS {
        let number = trees.to_string();
        // By the links alone, as the published results are.
        let mut call = vec!["synthesize", collective, "--bytes", "1GB", "--costs", "messages"];
        call.extend(["--topology", topology]);
        if *trees > 0 {
            call.extend(["--trees", &number]);
        }
        if topology.starts_with("full_mesh(8)") {
            call.extend(["--bandwidth", "25GB/s"]);
        }
        let found = report(command, &call)?;
        // The page's: an AllReduce may go up trees and then down, or both at once.
        let all = found["found"].as_array().ok_or("no trees")?;
        let of = all.iter().find(|of| of["at_once"] == found["at_once"]).ok_or("no trees")?;
        let share = |value: &Value| value.as_f64().map(|share| format!("{:.1} %", 100.0 * share));
        row(
            &mut table,
            &format!(
                "| `{topology}` | {collective} | {} | {:.2} s | {} | {} | {published} |",
                of["trees_of_a_root"],
                of["seconds"].as_f64().ok_or("no time")?,
                share(&of["share_of_the_bound"]).ok_or("no share")?,
                share(&found["simulated"]["share_of_the_bound"]).unwrap_or_default(),
            ),
        );
    }
    Ok(table)
}

/// Returns the table of executors.
fn executors(command: &Path) -> Result<String, String> {
    let mut table = "|---|---|---:|---:|---:|---:|\n".to_owned();
    for mesh in MESHES {
        let found = report(command, &["executor", "synthesize", "--topology", mesh])?;
        let times = |of: &str| -> Option<Vec<f64>> {
            found["score"][of].as_array()?.iter().map(Value::as_f64).collect()
        };
        let bound = times("bound").ok_or("no bound")?;
        for (of, name) in EXECUTORS {
            let told = match times(of).as_deref() {
                Some([small, medium, huge]) => {
                    let share = 100.0 * bound[2] / huge;
                    format!("{small:.1} | {medium:.1} | {huge:.1} | {share:.1} %")
                }
                _ => "none | none | none |".to_owned(),
            };
            row(&mut table, &format!("| `{mesh}` | {name} | {told} |"));
        }
    }
    Ok(table)
}

/// Adds a row, and prints it.
pub(crate) fn row(table: &mut String, row: &str) {
    println!("{row}");
    table.push_str(row);
    table.push('\n');
}

/// Writes a table in its place in a page, which begins with the line `head`; the lines before and behind it stay.
pub(crate) fn into_page(page: &str, head: &str, table: &str) -> Result<(), String> {
    let path = root().join(page);
    let text = read(&path)?;
    let (before, known) = text.split_once(head).unwrap_or((&text, ""));
    let behind = known.find("\n\n").map_or("", |end| &known[end + 1..]);
    write(&path, &format!("{before}{head}\n{table}{behind}"))
}

/// Returns the optimized command: the one that the arguments name, or one that is built.
pub(crate) fn chosen(given: Option<PathBuf>) -> Result<PathBuf, String> {
    given.map_or_else(optimized, |given| std::path::absolute(given).map_err(|why| why.to_string()))
}

/// Returns the report of a call of the command.
fn report(command: &Path, call: &[&str]) -> Result<Value, String> {
    let mut command = program(&command.to_string_lossy(), &["--quiet"]);
    command.current_dir(root()).args(call).args(["--format", "json"]);
    let out = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&out.stderr);
    serde_json::from_slice(&out.stdout).map_err(|_| format!("{}: {said}", call.join(" ")))
}
