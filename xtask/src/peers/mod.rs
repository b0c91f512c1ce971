//! `cargo xtask peers`: our algorithms beside those of Open MPI (and MPICH where it is installed), the same operation
//! with the same algorithm on the same machine in the same run, by turns. `--processes` is another comparison: of ranks
//! that are processes on both sides.

mod library;
mod processes;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;

use crate::command::output;
use library::Library;
use table::PeerLine;

const NRANKS: [u32; 3] = [2, 4, 8];
const SIZES: [u64; 4] = [1 << 10, 32 << 10, 1 << 20, 16 << 20];
/// Turns of both; the best median of each counts.
const ROUNDS: u32 = 3;

/// One comparison: an operation, the peer's algorithm, and ours.
pub(crate) struct Case {
    pub(crate) op: &'static str,
    /// `default` is the peer's own choice.
    pub(crate) theirs: &'static str,
    /// The fastest of them counts.
    pub(crate) ours: &'static [&'static str],
}

const CASES: [Case; 11] = [
    Case { op: "AllReduce", theirs: "ring", ours: &["RingAllReduce"] },
    Case { op: "AllReduce", theirs: "recursive_doubling", ours: &["RecursiveDoublingAllReduce"] },
    Case {
        op: "AllReduce",
        theirs: "default",
        ours: &[
            "RingAllReduce",
            "RecursiveDoublingAllReduce",
            "HalvingDoublingAllReduce",
            "MeshAllReduce",
            "NhrOneShotAllReduce",
        ],
    },
    Case { op: "ReduceScatter", theirs: "ring", ours: &["RingReduceScatter"] },
    Case {
        op: "ReduceScatter",
        theirs: "default",
        ours: &["RingReduceScatter", "MeshReduceScatter"],
    },
    Case { op: "AllGather", theirs: "ring", ours: &["RingAllGather"] },
    Case { op: "AllGather", theirs: "default", ours: &["RingAllGather", "MeshAllGather"] },
    Case { op: "Broadcast", theirs: "pipeline", ours: &["RingBroadcast"] },
    Case { op: "Broadcast", theirs: "default", ours: &["RingBroadcast", "NhrBroadcast"] },
    Case { op: "Reduce", theirs: "pipeline", ours: &["RingReduce"] },
    Case { op: "Reduce", theirs: "default", ours: &["RingReduce", "DoubleBinaryTreeReduce"] },
];

const USAGE: &str = "\
usage: cargo xtask peers [--quick] [--json FILE]
  --quick      one turn of each instead of three
  --json FILE  write the table as JSON, too
       cargo xtask peers --processes [OPTION]...
  ranks as processes, beside Intel MPI and Open MPI of PyPI";

/// Installs missing packages, builds, measures, prints.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let build_ours = || build(&root, "roundelay-cli", "roundelay");
    if let ["--processes", rest @ ..] = args {
        return processes::run(&root, rest, build_ours);
    }
    let (mut rounds, mut json) = (ROUNDS, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (*arg, args.as_slice()) {
            ("--quick", _) => rounds = 1,
            ("--json", [file, ..]) => {
                json = Some(*file);
                args.next();
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    let ours = build_ours()?;
    let libraries = library::find(&root)?;
    let cores = available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    println!(
        "f32 sum, out of place, {cores} cores; medians in microseconds, the best of {rounds} turns"
    );
    let mut lines = Vec::new();
    for library in &libraries {
        for nranks in NRANKS {
            let launches = library.launches(nranks, cores)?;
            for case in CASES.iter().filter(|case| library.knows(case)) {
                let compared = compare(&ours, library, case, nranks, &launches, rounds)?;
                for line in &compared {
                    println!("{line}");
                }
                lines.extend(compared);
            }
        }
    }
    println!("\n{}", table::render(&lines));
    if let Some(file) = json {
        let text = table::json(&lines, cores, rounds);
        std::fs::write(file, text).map_err(|error| format!("`{file}`: {error}"))?;
    }
    match lines.iter().filter(|line| line.wrong).count() {
        0 => Ok(()),
        wrong => Err(format!("{wrong} results are wrong")),
    }
}

/// Builds a program, as users have it.
pub(crate) fn build(root: &Path, package: &str, program: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--quiet", "--release", "--package", package]);
    cargo.args(["--bin", program]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let built = output(&mut cargo)?;
    let path = built.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    path.ok_or_else(|| format!("cargo built no {program}"))
}

/// Times all sizes of a case, ours and theirs by turns.
fn compare(
    ours: &Path,
    library: &Library,
    case: &Case,
    nranks: u32,
    launches: &[library::Launch],
    rounds: u32,
) -> Result<Vec<PeerLine>, String> {
    let mut lines: Vec<PeerLine> =
        SIZES.iter().map(|size| PeerLine::new(library.name(), case, nranks, *size)).collect();
    for _ in 0..rounds {
        for launch in launches {
            for (line, (time, wrong)) in
                lines.iter_mut().zip(library.time(case, nranks, &SIZES, launch)?)
            {
                line.theirs(time, launch.name, wrong);
            }
        }
        for line in &mut lines {
            bench(ours, case, nranks, line)?;
        }
    }
    Ok(lines)
}

/// Takes our times of one size, and the limit.
fn bench(ours: &Path, case: &Case, nranks: u32, line: &mut PeerLine) -> Result<(), String> {
    let mut command = Command::new(ours);
    command.args(["bench", &case.ours.join(","), "--nranks", &nranks.to_string()]);
    command.args(["-b", &line.bytes.to_string(), "--format", "json"]);
    let text = output(&mut command)?;
    let report: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("bench: {error}\n{text}"))?;
    let number = |value: &serde_json::Value| {
        value.as_f64().ok_or_else(|| format!("bench printed no such number:\n{text}"))
    };
    line.limit(number(&report["limit"]["sizes"][0]["median"])?);
    for row in report["results"].as_array().into_iter().flatten() {
        let place = &row["out_of_place"];
        let wrong = number(&place["nwrong"])? > 0.0;
        line.ours(number(&place["median"])?, row["algo"].as_str().unwrap_or_default(), wrong);
    }
    Ok(())
}
