//! `cargo xtask synthesis [--program FILE]`: the trees that are found for machines of which published tools tell their
//! results, and the executors that are found for meshes with dead links, as the tables of a page of the book.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::command::root;
use crate::reach::{optimized, write_table};

/// The page that is written.
const PAGE: &str = "book/src/results/synthesis.md";
/// The first line of the table of trees.
const HEAD: &str = "| topology | collective | trees of a root | found in | of the bound | simulated, 1 GB | published |";

/// The first line of the table of executors.
const EXECUTORS: &str =
    "| machine | executor | 1 KiB, us | 1 MiB, us | 1 GiB, us | of the bound at 1 GiB |";
/// Meshes with no, one and two dead links: up to symmetry, two links share a rank or they do not.
const MESHES: [&str; 4] = [
    "full_mesh(8)",
    "full_mesh(8) without (0, 1)",
    "full_mesh(8) without (0, 1) without (1, 2)",
    "full_mesh(8) without (0, 1) without (2, 3)",
];

/// A topology, a collective, the trees of a root (0 for the optimum), and the published result.
type Row = (&'static str, &'static str, u32, &'static str);

const ROWS: &[Row] = &[
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

/// Searches for all rows, and writes the tables; the lines around them stay.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let program = optimized(args, "cargo xtask synthesis [--program FILE]")?;
    write_table(PAGE, HEAD, &trees(&program)?)?;
    write_table(PAGE, EXECUTORS, &executors(&program)?)
}

/// Returns the table of trees.
fn trees(program: &Path) -> Result<String, String> {
    let mut table = format!("{HEAD}\n|---|---|---:|---:|---:|---:|---|\n");
    for (topology, collective, trees, published) in ROWS {
        let number = trees.to_string();
        let mut call = vec!["synthesize", collective, "--topology", topology, "--bytes", "1GB"];
        if *trees > 0 {
            call.extend(["--trees", &number]);
        }
        // As the published results are: by the links alone.
        call.extend(["--costs", "messages"]);
        if topology.starts_with("full_mesh(8)") {
            call.extend(["--bandwidth", "25GB/s"]);
        }
        let found = json(program, &call)?;
        // The page's: an AllReduce may go up trees and then down, or both at once.
        let all = found["found"].as_array().ok_or("no trees")?;
        let of = all.iter().find(|of| of["at_once"] == found["at_once"]).ok_or("no trees")?;
        let share = |value: &Value| value.as_f64().map(|share| format!("{:.1} %", 100.0 * share));
        let seconds = of["seconds"].as_f64().ok_or("no time")?;
        let simulated = share(&found["simulated"]["share_of_the_bound"]).unwrap_or_default();
        let row = format!(
            "| `{topology}` | {collective} | {} | {seconds:.2} s | {} | {simulated} | {published} |",
            of["trees_of_a_root"],
            share(&of["share_of_the_bound"]).ok_or("no share")?,
        );
        println!("{row}");
        writeln!(table, "{row}").map_err(|error| error.to_string())?;
    }
    Ok(table)
}

/// Returns the table of executors.
fn executors(program: &Path) -> Result<String, String> {
    let mut table = format!("{EXECUTORS}\n|---|---|---:|---:|---:|---:|\n");
    for mesh in MESHES {
        let found = json(program, &["executor", "synthesize", "--topology", mesh])?;
        let times = |of: &str| -> Option<Vec<f64>> {
            found["score"][of].as_array()?.iter().map(Value::as_f64).collect()
        };
        let bound = times("bound").ok_or("no bound")?;
        for (of, name) in [
            ("synthesized", "synthesized"),
            ("library", "the library's classes"),
            ("ring", "the published ring"),
        ] {
            let row = match times(of).as_deref() {
                Some([small, medium, huge]) => {
                    let share = 100.0 * bound[2] / huge;
                    format!("{small:.1} | {medium:.1} | {huge:.1} | {share:.1} %")
                }
                _ => "none | none | none |".to_owned(),
            };
            let row = format!("| `{mesh}` | {name} | {row} |");
            println!("{row}");
            writeln!(table, "{row}").map_err(|error| error.to_string())?;
        }
    }
    Ok(table)
}

/// Returns the report of a call of the command.
fn json(program: &Path, call: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(program);
    command.current_dir(root()).arg("--quiet").args(call).args(["--format", "json"]);
    let out = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&out.stderr);
    serde_json::from_slice(&out.stdout).map_err(|_| format!("{}: {said}", call.join(" ")))
}
