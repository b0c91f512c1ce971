//! The memory of runs: runs without room are left out with a message, and all other results are printed as soon as they
//! are known.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use super::call::{binary, with_memory};

const EXECUTOR: &str = "CustomHugeAllReduceMesh";

#[test]
fn a_score_leaves_out_what_has_no_room() {
    let score = ["executor", "score", EXECUTOR, "-I", "1", "--sizes", "1K,1M,1G"];
    let out = with_memory(&score, "24M").ends(0).out;
    let row = |size: &str| {
        let found = out.lines().find(|line| line.trim_start().starts_with(size));
        found.unwrap_or_else(|| panic!("no row of {size}:\n{out}"))
    };
    assert!(row("1 KiB").ends_with(" 0") && row("1 MiB").ends_with(" 0"), "{out}");
    let why = "not run: it needs 19.2 GiB of memory, and ROUNDELAY_MEMORY lets it take 24.0 MiB";
    assert!(row("1 GiB").contains(" 29.2 ") && row("1 GiB").ends_with(why), "{out}");
}

#[test]
fn an_executor_runs_the_sizes_that_have_room() {
    let run = ["executor", "run", EXECUTOR, "--sizes", "1G,4K,64M,1K"];
    let out = with_memory(&run, "24M").ends(0).out;
    let sizes = ["1 GiB left out: the run needs 19.2 GiB", "4 KiB ", "64 MiB left out", "1 KiB "];
    let rows: Vec<_> = out.lines().skip(2).map(str::trim_start).collect();
    assert!(rows.iter().zip(sizes).all(|(row, size)| row.starts_with(size)), "{out}");
}

#[test]
fn a_run_leaves_out_counts_of_a_range() {
    let run = ["run", "RecursiveDoublingAllReduce", "--count", "32K", "-n", "2..=5"];
    let out = with_memory(&run, "1M").ends(0).out;
    let lines: Vec<_> = out.lines().skip(4).map(str::trim_start).collect();
    let begins = [
        "2 ",
        "refused ",
        "left out 4 ranks: the run needs 1.5 MiB of memory",
        "refused ",
        "0 of 65,536 elements wrong",
    ];
    assert!(lines.len() == 5 && lines.iter().zip(begins).all(|(l, b)| l.starts_with(b)), "{out}");
}

#[test]
fn a_benchmark_leaves_out_what_has_no_room() {
    let bench = ["bench", "RingAllReduce,RingAllGather", "-n", "4", "-I", "1"];
    let sizes = ["-b", "64K", "-e", "512K", "-f", "8"];
    let out = with_memory(&[&bench[..], &sizes].concat(), "1M").ends(0).out;
    let why =
        "# refused RingAllReduce on 4 ranks [E0407]: 524288 B: the run needs 4.0 MiB of memory";
    assert!(out.contains(why) && !out.contains("65536 B: the run"), "{out}");
    let rows: Vec<_> = out.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rows.len(), 2, "{out}");
}

/// The second size takes minutes: the row of the first must be there while it runs.
#[test]
fn rows_are_printed_when_they_are_known() {
    let minutes = "500";
    let executor = ["--sizes", "1K,16M", "-I", minutes];
    let commands = [
        [&["executor", "bench", EXECUTOR][..], &executor].concat(),
        [&["executor", "score", EXECUTOR], &executor[..]].concat(),
        vec!["run", "RingAllReduce", "--count", "1M", "-I", minutes, "-n", "1,8"],
    ];
    for command in commands {
        let mut child = binary()
            .args(&command)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let row = lines.map_while(Result::ok).find(|line| {
            let line = line.trim_start();
            line.starts_with("1 KiB ") || line.starts_with("1 ")
        });
        let runs = child.try_wait().expect("a child can be asked").is_none();
        child.kill().expect("a child of ours can be killed");
        child.wait().expect("a child can be waited for");
        assert!(row.is_some() && runs, "{command:?}: {row:?}");
    }
}
