//! `cargo xtask synthesis [--program FILE]`: the trees that are found for machines of which published tools tell their
//! results, as the table of a page of the book.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

use crate::command::root;
use crate::reach::{optimized, write_table};

/// The page that is written.
const PAGE: &str = "book/src/results/synthesis.md";
/// The line of the page before its table.
const HEAD: &str = "| topology | collective | trees of a root | found in | of the bound | simulated, 1 GB | published |";

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

/// Searches for all rows, and writes the table; the lines before it stay.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let root = root();
    let program = optimized(args, "cargo xtask synthesis [--program FILE]")?;
    let mut table = format!("{HEAD}\n|---|---|---:|---:|---:|---:|---|\n");
    for (topology, collective, trees, published) in ROWS {
        let mut search = Command::new(&program);
        search.current_dir(&root).args(["--quiet", "synthesize", collective]);
        search.args(["--topology", topology, "--bytes", "1GB", "--format", "json"]);
        let number = trees.to_string();
        if *trees > 0 {
            search.args(["--trees", &number]);
        }
        let out = search.output().map_err(|error| format!("{}: {error}", program.display()))?;
        let Ok(found) = serde_json::from_slice::<Value>(&out.stdout) else {
            let said = String::from_utf8_lossy(&out.stderr);
            return Err(format!("{collective} on {topology}: {said}"));
        };
        let of = &found["found"][0];
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
    write_table(PAGE, HEAD, &table)
}
