//! Jobs over a stand-in for NCCL whose ranks are processes, on the driver for tests: who makes an operation, and that all
//! ranks decide alike.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;

use crate::jobs::{Job, Variable, said};
use crate::made::{compile_library, folder, source};

/// Small all-reduces are taken.
const SMALL: &str = "AllReduce ..=4K: RingAllReduce";

fn job(name: &str) -> Job {
    let job = Job::new(name);
    let real = job.folder().join("real");
    let real = compile_library(&source("programs/over_library.c"), &real, &[]);
    let folder = job.folder().to_owned();
    job.set("ROUNDELAY_NCCL", real).set("STAND_IN", folder)
}

fn ranks(nranks: usize, what: &str, variables: &[Variable<'_>]) -> Vec<Output> {
    let job = job("over");
    job.ranks(nranks, job.folder(), &[what], variables)
}

fn is_any(_: usize) -> bool {
    true
}

/// Two ranks, for which small all-reduces are selected, have operations made by these, as rank 0 reports in these lines.
fn two_take(what: &str, makers: &str, lines: &[&str]) {
    let taken: &[Variable] = &[(&is_any, "ROUNDELAY_ALGORITHM", SMALL)];
    for (rank, output) in ranks(2, what, taken).iter().enumerate() {
        let (out, err) = said(rank, output);
        assert_eq!(out, makers, "rank {rank}: {err}");
        for line in lines {
            assert!(rank > 0 || err.contains(line), "{line}: {err}");
        }
    }
}

/// All ranks pass all on, for one reason, which rank 0 reports.
fn all_pass(what: &str, variables: &[Variable<'_>], why: &str) {
    for (rank, output) in ranks(3, what, variables).iter().enumerate() {
        let (out, err) = said(rank, output);
        assert_eq!(out, "tt\n", "rank {rank}: {err}");
        let line = format!("ncclAllReduce 2 calls, 0 taken, 2 passed on ({why}");
        assert!(rank > 0 || err.contains(&line), "{line}: {err}");
    }
}

#[test]
fn what_is_selected_is_taken_and_the_rest_goes_on() {
    let taken: &[Variable] = &[(&is_any, "ROUNDELAY_ALGORITHM", SMALL)];
    for (rank, output) in ranks(3, "take", taken).iter().enumerate() {
        let (out, err) = said(rank, output);
        // The parts of the communicator are those of the other ranks.
        let parts = if rank == 0 { "" } else { "oo" };
        assert_eq!(out, format!("ottoott oo{parts}\n"), "{err}");
        if rank == 0 {
            for line in [
                "ncclAllReduce 20 calls, 16 taken, 4 passed on (",
                "no algorithm is selected 2",
                "its arguments are NCCL's 1",
                "another operation of the group is passed on 1",
                "by RingAllReduce 15, nothing 1",
                "ncclBroadcast 3 calls, 0 taken, 3 passed on (no algorithm is selected 3)",
            ] {
                assert!(err.contains(line), "{line}: {err}");
            }
        }
    }
}

#[test]
fn promises_and_a_selection_file_select_and_nothing_takes_nothing() {
    let folder = folder();
    let file = folder.path().join("selection");
    let two = "AllReduce nranks 2 bytes 0..=4096: NhrAllReduce\nAllReduce nranks 3 bytes 0..: RingAllReduce\n";
    std::fs::write(&file, two).expect("it is written");
    for (variable, value, makers) in [
        ("ROUNDELAY_SELECTION", file.to_str().expect("a path in UTF-8"), "oo\n"),
        ("ROUNDELAY_ORDER", "all", "oo\n"),
        ("ROUNDELAY_NCCL_TAKE", "all", "oo\n"),
        ("ROUNDELAY_NCCL_TAKE", "selected", "tt\n"),
    ] {
        for (rank, output) in ranks(2, "two", &[(&is_any, variable, value)]).iter().enumerate() {
            assert_eq!(said(rank, output).0, makers, "{variable}={value}");
        }
    }
}

/// The times are those of the streams: NCCL's operations take none of the host's.
#[test]
fn the_faster_of_the_two_makes_what_follows_on_all_ranks() {
    let faster: Variable = (&is_any, "ROUNDELAY_NCCL_TAKE", "faster");
    let slow: Variable = (&is_any, "SLOW", "20000");
    // The slowest rank's time is that of all.
    let one_slow: Variable = (&|rank| rank == 1, "SLOW", "20000");
    for (variables, makers, verdict) in [
        (&[faster, slow][..], "0t 12t 12o \n", "us by NCCL: taken"),
        (&[faster, one_slow], "0t 12t 12o \n", "us by NCCL: taken"),
        (&[faster], "0t 12t 0t \n", "us by NCCL: passed on"),
    ] {
        for (rank, output) in ranks(2, "compete", variables).iter().enumerate() {
            let (out, err) = said(rank, output);
            assert_eq!(out, makers, "rank {rank}: {err}");
            if rank == 0 {
                assert!(err.contains("roundelay: AllReduce of 1 KB to 2 KB: "), "{err}");
                assert!(err.contains(verdict), "{err}");
                assert!(err.contains("a trial of NCCL's speed 12"), "{err}");
            }
        }
    }
}

#[test]
fn a_communicator_that_does_not_wait_is_ready_when_its_ranks_have_met() {
    two_take("later", "oo\n", &[]);
}

#[test]
fn ranks_with_other_settings_all_pass_all_on() {
    let is_one = |rank| rank == 1;
    let small: Variable = (&is_any, "ROUNDELAY_ALGORITHM", SMALL);
    let other: Variable = (&is_one, "ROUNDELAY_ALGORITHM", "AllReduce: NhrAllReduce");
    all_pass("two", &[small, other], "rank 1 has other settings than rank 0; ");
    let wrong: Variable = (&is_one, "ROUNDELAY_ALGORITHM", "AllReduce: Nowhere");
    all_pass("two", &[small, wrong], "the settings of rank 1 make no sense, as it says 2)");
}

#[test]
fn ranks_on_other_hosts_all_pass_all_on() {
    let is_two = |rank| rank == 2;
    let small: Variable = (&is_any, "ROUNDELAY_ALGORITHM", SMALL);
    let elsewhere: Variable = (&is_two, "NCCL_HOSTID", "other");
    all_pass("two", &[small, elsewhere], "not all of its 3 ranks came within 5s: ");
    // The launcher knows it, and no rank waits.
    let local: Vec<Variable> = [
        ("RANK", "0"),
        ("WORLD_SIZE", "4"),
        ("LOCAL_RANK", "0"),
        ("LOCAL_WORLD_SIZE", "2"),
        ("MASTER_ADDR", "localhost"),
        ("MASTER_PORT", "1"),
    ]
    .map(|(name, value)| -> Variable<'_> { (&is_any, name, value) })
    .to_vec();
    let begun = std::time::Instant::now();
    all_pass(
        "two",
        &[&local[..], &[small]].concat(),
        "of its 3 ranks, the launcher started 2 on this host 2)",
    );
    assert!(begun.elapsed().as_secs() < 4, "{:?}", begun.elapsed());
}

#[test]
fn a_rank_without_a_gpu_has_all_pass_all_on() {
    let is_one = |rank| rank == 1;
    let small: Variable = (&is_any, "ROUNDELAY_ALGORITHM", SMALL);
    let blind: Variable = (&is_one, "ROUNDELAY_FAKE_DEVICES", "0");
    all_pass("blind", &[small, blind], "rank 1 has no GPU 2)");
}

#[test]
fn a_configuration_that_is_about_nccls_kernels_goes_on() {
    let calls = "ncclAllReduceConfig 7 calls, 4 taken, 3 passed on (";
    two_take("configure", "ooottto\n", &[calls, "its configuration is about NCCL's kernels 2"]);
}

#[test]
fn a_graph_has_what_was_called_before() {
    two_take("graphs", "ttoooo\n", &["a graph captures the first of its shape 1"]);
}

#[test]
fn a_communicator_that_is_revoked_refuses() {
    two_take("revoke", "o\n", &[]);
}

#[test]
fn a_rank_that_dies_in_the_meeting_stops_nobody() {
    let small: Variable = (&is_any, "ROUNDELAY_ALGORITHM", SMALL);
    let outputs = ranks(3, "two", &[small, (&is_any, "DIE", "1")]);
    assert_eq!(outputs[1].status.signal(), Some(9));
    for rank in [0, 2] {
        assert_eq!(said(rank, &outputs[rank]).0, "tt\n");
    }
}

#[test]
fn a_hundred_communicators_come_and_go() {
    two_take("many", "oooo\n", &[]);
}

#[test]
fn a_thread_aborts_a_call_that_waits_for_a_rank() {
    let taken: &[Variable] = &[(&is_any, "ROUNDELAY_ALGORITHM", SMALL)];
    let outputs = ranks(2, "abort", taken);
    assert_eq!(said(0, &outputs[0]).0, "state 0 code 6\n");
    assert_eq!(said(1, &outputs[1]).0, "state 6\n");
}

#[test]
fn ranks_of_one_process_are_taken() {
    let job = job("several").set("ROUNDELAY_ALGORITHM", SMALL);
    for devices in ["3", "1"] {
        let output = job.command(3).args(["3", devices]).output().expect("it starts");
        let (out, err) = said(0, &output);
        assert_eq!(out, "all\ngroup\nthreads\n");
        assert!(err.contains("ncclAllReduce 9 calls, 9 taken, 0 passed on"), "{err}");
    }
}
