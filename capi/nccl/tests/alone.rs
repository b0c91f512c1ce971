//! Jobs without an NCCL: the library's own communicators, on the driver for tests.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::driver;
use crate::made::{folder, library, program};

/// Runs the program as ranks, and returns what they said, with a report of rank 0.
fn ranks(nranks: usize, more: &[&str]) -> Vec<Output> {
    let folder = folder();
    let job = program("alone", folder.path());
    let variables = driver::variables(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
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
    driver::outputs((0..nranks).map(start).collect())
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
