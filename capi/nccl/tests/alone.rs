//! Jobs without an NCCL: the library's own communicators, on the driver for tests.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;

use crate::jobs::{Job, said};

fn job(name: &str) -> Job {
    Job::new(name).set("ROUNDELAY_NCCL", "alone")
}

fn ranks(more: &[&str]) -> Vec<Output> {
    let job = job("alone");
    job.ranks(3, &job.folder().join("id"), more, &[])
}

#[test]
fn a_job_of_three_ranks_runs_without_an_nccl() {
    for (rank, output) in ranks(&[]).iter().enumerate() {
        let (out, err) = said(rank, output);
        assert_eq!(out, format!("rank {rank} is done\n"));
        let reports = err.contains("no NCCL: its communicators are worlds of their own");
        assert_eq!(reports, rank == 0, "{err}");
        let taken = err.contains("ncclAllReduce 34 calls, 28 taken, 0 passed on, 6 failed");
        assert!(taken || rank > 0, "{err}");
        // Rank 0 sends to rank 1 and to itself.
        let messages = err.contains("ncclSend 9 calls, 6 taken, 0 passed on, 3 failed");
        assert!(messages || rank > 0, "{err}");
    }
}

#[test]
fn a_rank_that_dies_is_an_error_of_the_communicator() {
    let outputs = ranks(&["die"]);
    assert_eq!(outputs[1].status.signal(), Some(9));
    for rank in [0, 2] {
        let said = said(rank, &outputs[rank]).0;
        // The page has it of a process of its own, and of the first rank that waited there.
        let pid = said.split("(process ").nth(1).and_then(|rest| rest.split(')').next());
        let (begin, _) = said.split_once(" waited for").expect("the wait");
        let begin = begin.replace(pid.expect("a process"), "4712");
        let begin = begin.trim_end_matches(|last: char| last.is_ascii_digit());
        let page = include_str!("../../../book/src/guide/gpu_jobs.md").replace('\n', " ");
        assert!(page.contains(&format!("```text {begin}")), "{begin}");
        for words in ["signal 9", "waited for", "step ", ".coll:", "[E0428]"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}

#[test]
fn an_average_is_that_of_nccl_on_demand() {
    let job = job("alone").set("ROUNDELAY_NCCL_AVERAGE", "each");
    let outputs = job.ranks(3, &job.folder().join("id"), &["each"], &[]);
    for (rank, output) in outputs.iter().enumerate() {
        // The quotient of the sum of integers.
        assert_eq!(said(rank, output).0, "7\n");
    }
}

#[test]
fn a_communicator_that_is_revoked_refuses_and_can_shrink() {
    for (rank, output) in ranks(&["revoke"]).iter().enumerate() {
        assert_eq!(said(rank, output).0, "revoked\n");
    }
}

#[test]
fn ranks_of_one_process_are_made_at_once_in_a_group_and_by_threads() {
    let job = job("several");
    for [nranks, devices] in [["3", "3"], ["3", "1"], ["1", "1"]] {
        let output = job.command(3).args([nranks, devices]).output().expect("it starts");
        let (out, err) = said(0, &output);
        assert_eq!(out, "all\ngroup\nthreads\n", "{err}");
    }
}
