//! `--device cuda`, without a GPU: its error where there is no driver, and its output below a driver for tests.

use std::process::Command;

use serde_json::Value;

use super::call::{binary, roundelay};
use crate::driver::build;

/// The command below the driver.
fn below(args: &[&str]) -> (String, i32) {
    let mut command: Command = binary();
    command.args(args);
    let ran = build::below(&mut command).output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(ran.stdout) + &text(ran.stderr), ran.status.code().expect("it was not killed"))
}

#[test]
fn without_a_driver_it_says_what_to_install() {
    for command in ["run", "bench"] {
        let call = roundelay(&[command, "RingAllReduce", "--device", "cuda", "--nranks", "2"]);
        // A machine with a GPU runs it.
        if call.code == 0 {
            continue;
        }
        assert_eq!(call.code, 2, "{}", call.err);
        assert!(call.err.contains("error[E0415]"), "{}", call.err);
        assert!(call.err.contains("= help: "), "{}", call.err);
    }
}

#[test]
fn a_run_is_compared_with_the_reference() {
    let args = ["run", "RingAllReduce", "--device", "cuda", "--nranks", "3", "--count", "1003"];
    for place in [&[][..], &["--in-place"]] {
        let mut all = args.to_vec();
        all.extend(place);
        all.extend(["--format", "json"]);
        let (out, code) = below(&all);
        assert_eq!(code, 0, "{out}");
        let report: Value = serde_json::from_str(&out).expect("a document");
        assert_eq!(report["device"], "Paper GPU 0");
        assert_eq!((&report["wrong"], &report["nranks"]), (&0.into(), &3.into()));
    }
}

#[test]
fn the_table_has_the_kernel_beside_what_the_host_drives() {
    let args = ["bench", "RingAllReduce", "--device", "cuda", "--nranks", "3", "--iters", "2"];
    let mut all = args.to_vec();
    all.extend(["-b", "4K", "-v"]);
    let (out, code) = below(&all);
    assert_eq!(code, 0, "{out}");
    for line in [
        "# device: Paper GPU 0",
        "# virtual ranks on one GPU share its memory: busbw is not the speed of a link",
        "# Out of bounds values : 0 OK",
    ] {
        assert!(out.lines().any(|found| found == line), "no `{line}` in\n{out}");
    }
    // Beside the head and the warning that this is the dev build.
    let row = |line: &&str| !["#", "warning: ", "note: "].iter().any(|of| line.starts_with(of));
    let rows: Vec<&str> = out.lines().filter(row).collect();
    let names = ["RingAllReduce", "RingAllReduce, driven from the host"];
    assert_eq!(rows.len(), 2, "{out}");
    for (row, name) in rows.iter().zip(names) {
        assert!(row.trim_end().ends_with(name), "{row}");
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!([words[8], words[12]], ["0", "0"], "nothing is wrong: {row}");
        // On threads that a CPU shares it rounds to nothing.
        assert!(words[15].parse::<f64>().is_ok_and(|share| share >= 0.0), "% of floor: {row}");
    }
}
