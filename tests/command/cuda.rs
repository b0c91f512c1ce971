//! `emit cuda` and `emit ptx`: kernels as text and compiled, and what a dry run predicts of them.

use std::process::Output;
use std::time::Instant;

use super::call::{Call, binary, roundelay};

/// With the wheel that `cargo xtask nvrtc` installs, and a cache of its own.
pub(super) fn compiled(args: &[&str], variables: &[(&str, &str)]) -> Call {
    let wheel = roundelay_tests::root().join("target/nvrtc");
    assert!(wheel.is_dir(), "{} is not there: run `cargo xtask nvrtc`", wheel.display());
    let mut command = binary();
    let start = Instant::now();
    command.env("ROUNDELAY_NVRTC", wheel).env("ROUNDELAY_CACHE", "off").args(args);
    let Output { status, stdout, stderr } =
        command.envs(variables.iter().copied()).output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let call = Call {
        code: status.code().expect("it ends by itself"),
        out: text(stdout),
        err: text(stderr),
        took: start.elapsed(),
    };
    assert!(!call.err.contains("panicked"), "{args:?} panicked:\n{}", call.err);
    call
}

#[test]
fn loops_stay_loops_and_one_launch_needs_fewer_signals() {
    let of = |nranks: &str, more: &[&str]| {
        let args = [&["emit", "cuda", "RingAllReduce", "--nranks", nranks], more].concat();
        roundelay(&args).ends(0).out
    };
    let (each, one) = (of("8", &[]), of("8", &["--callers", "one"]));
    // One launch orders the end of all ranks, and the last signals of the ring are for nothing else.
    let signals = |text: &str| text.matches("xDataSignal(").count();
    assert!(signals(&each) > signals(&one), "{each}{one}");
    assert!(of("64", &[]).lines().count() <= each.lines().count() + 2);
}

#[test]
fn ptx_begins_with_what_the_assembler_says() {
    let out = compiled(&["emit", "ptx", "RingAllReduce", "--arch", "sm_80"], &[]).ends(0).out;
    let first: Vec<_> = out.lines().take(2).collect();
    assert_eq!(first[0], "// for sm_80, 256 threads a block, 2 blocks a multiprocessor");
    assert!(
        first[1].starts_with("// RingAllReduce: ") && first[1].contains(" registers, "),
        "{out}"
    );
    assert!(out.contains(".maxntid 256"), "{out}");
    let args = ["emit", "ptx", "RingAllReduce", "--arch", "sm_80", "--threads", "128"];
    assert!(compiled(&args, &[]).ends(0).out.contains(".maxntid 128"));
    assert!(out.contains(".target sm_80") && out.contains(".entry RingAllReduce("), "{out}");
}

/// Whoever makes a folder above the working directory does not choose the library.
#[test]
fn nvrtc_is_not_looked_for_above_the_working_directory() {
    let planted = tempfile::tempdir().expect("a folder");
    let [lib, below] = ["target/nvrtc/lib", "below"].map(|name| planted.path().join(name));
    for folder in [&lib, &below] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    std::fs::write(lib.join("libnvrtc.so.99"), "planted").expect("a file");
    let mut command = binary();
    command.current_dir(below).env_remove("ROUNDELAY_NVRTC").env("ROUNDELAY_CACHE", "off");
    let said = command.args(["emit", "ptx", "RingAllReduce", "-n", "3"]).output();
    let said = said.expect("the command starts");
    // The one that lies where cargo built the command is found.
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && !err.contains("libnvrtc.so.99"), "{err}");
}

/// The rows of a dry run.
fn predicted(args: &[&str]) -> Vec<serde_json::Value> {
    let args = [&["bench", "--device", "cuda", "--dry-run", "--format", "json"], args].concat();
    let out = compiled(&args, &[]).ends(0).out;
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    report["predicted"].as_array().expect("rows").clone()
}

#[test]
fn a_dry_run_predicts_what_launches_take() {
    let rows = predicted(&[
        "MeshAllReduce,PushedOneShotAllReduce",
        "-b",
        "1K",
        "-e",
        "64M",
        "-f",
        "65536",
    ]);
    let number = |row: &serde_json::Value, key: &str| row[key].as_f64().expect("a number");
    for size in [1 << 10, 64 << 20] {
        let of_size: Vec<_> = rows.iter().filter(|row| row["size"] == size).collect();
        let forms: Vec<_> = of_size
            .iter()
            .map(|row| (row["algo"].as_str(), row["form"].as_str(), row["protocol"].as_str()))
            .collect();
        let (mesh, eager) = (Some("MeshAllReduce"), Some("PushedOneShotAllReduce"));
        let (loops, table, direct) = (Some("loops"), Some("table"), Some("direct"));
        let expected = [
            (mesh, loops, direct),
            (mesh, table, direct),
            (eager, loops, Some("simple")),
            (eager, loops, Some("ll")),
            (eager, loops, Some("ll128")),
            (eager, table, direct),
        ];
        assert_eq!(forms, expected);
        let fastest: Vec<_> = of_size.iter().filter(|row| row["fastest"] == true).collect();
        let least =
            of_size.iter().map(|row| number(row, "predicted")).fold(f64::INFINITY, f64::min);
        assert!(!fastest.is_empty() && fastest.iter().all(|row| number(row, "predicted") <= least));
        for row in &of_size {
            let parts = ["launch", "moving", "latency", "signals"].map(|key| number(row, key));
            let all: f64 = parts.iter().sum();
            assert!((all - number(row, "predicted")).abs() < 1e-6, "{row}");
        }
    }
    // The optimized schedule reads every input once and writes every output once, and has no waits.
    let table = &rows[7];
    assert_eq!((table["form"].as_str(), table["waits"].as_u64()), (Some("table"), Some(0)));
    assert_eq!(table["traffic"].as_u64(), Some(2 * 8 * (64 << 20)));
    assert!(number(table, "percent_of_floor") > 95.0, "{table}");
    // Lines save a signal, and cost twice the bytes.
    let [simple, lines] = [&rows[2], &rows[3]].map(|row| number(row, "predicted"));
    assert!(lines < simple, "{lines} {simple}");
    let [simple, lines] = [&rows[8], &rows[9]].map(|row| number(row, "predicted"));
    assert!(lines > simple, "{lines} {simple}");
}

#[test]
fn a_graph_and_another_gpu_change_what_is_predicted() {
    let ring = ["RingAllReduce", "--form", "loops", "-b", "64M"];
    let time = |more: &[&str]| {
        let rows = predicted(&[&ring, more].concat());
        assert_eq!(rows.len(), 1);
        rows[0]["predicted"].as_f64().expect("a number")
    };
    let plain = time(&[]);
    // On the GPU that was measured, a launch by a graph takes as long as one by a call.
    assert!((time(&["--graph"]) - plain).abs() < 1e-9);
    assert!(time(&["--gpu", "H100"]) > 1.2 * plain);
    assert!((time(&["--gpu", "H200"]) - plain).abs() < 1e-9);
}
