//! Jobs without an NCCL: the library's own communicators, on the driver for tests.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use crate::made::{folder, library, program};

/// The variables of programs below the driver for tests.
fn driver() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root.join("target"), PathBuf::from);
    let mut shell = Command::new("sh");
    shell.arg(root.join("tests/driver/make.sh")).arg("all").arg(target.join("driver"));
    let output = shell.output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("paths in UTF-8");
    let variable = |line: &str| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
    said.lines().filter_map(variable).collect()
}

/// Runs the program as ranks, and returns what they said, with a report of rank 0.
fn ranks(nranks: usize, more: &[&str]) -> Vec<Output> {
    let folder = folder();
    let job = program("alone", folder.path());
    let variables = driver();
    let start = |rank: usize| -> Child {
        let mut command = Command::new(&job);
        command.arg(library()).args([rank.to_string(), nranks.to_string()]);
        command.arg(folder.path().join("id")).args(more).envs(variables.iter().cloned());
        // The driver's last device reaches no other.
        command.env("ROUNDELAY_FAKE_DEVICES", (nranks + 1).to_string());
        command.env("ROUNDELAY_NCCL", "alone").env("ROUNDELAY_REPORT", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let started: Vec<Child> = (0..nranks).map(start).collect();
    // The system tells how a process ended when its parent has looked.
    let wait = |child: Child| thread::spawn(|| child.wait_with_output().expect("it ends"));
    let waiting: Vec<_> = started.into_iter().map(wait).collect();
    waiting.into_iter().map(|thread| thread.join().expect("it ends")).collect()
}

#[test]
fn a_job_of_three_ranks_runs_without_an_nccl() {
    for (rank, output) in ranks(3, &[]).iter().enumerate() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "rank {rank}: {}\n{said}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("rank {rank} is done\n"));
        let reports = said.contains("no NCCL: its communicators are worlds of their own");
        assert_eq!(reports, rank == 0, "{said}");
        let taken = said.contains("ncclAllReduce 9 calls, 6 taken, 0 passed on, 3 failed");
        assert!(taken || rank > 0, "{said}");
    }
}

#[test]
fn a_rank_that_dies_is_an_error_of_the_communicator() {
    let outputs = ranks(3, &["die"]);
    assert_eq!(outputs[1].status.signal(), Some(9));
    for rank in [0, 2] {
        let said = String::from_utf8_lossy(&outputs[rank].stderr);
        assert!(outputs[rank].status.success(), "rank {rank}: {}\n{said}", outputs[rank].status);
        assert_eq!(String::from_utf8_lossy(&outputs[rank].stdout), "signal 9\n");
    }
}
