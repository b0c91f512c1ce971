//! Python by ctypes, with the functions that vLLM's communicator asks for.

use std::ffi::OsStr;
use std::path::Path;

use crate::jobs::{Job, said};
use crate::made::{library, real, run, source};
use crate::stand_in::stand_in;

fn python(arg: &Path, variables: &[(&str, &OsStr)]) -> String {
    let script = source("programs/vllm.py");
    run(Path::new("python3"), &[script.as_os_str(), arg.as_os_str()], variables).out
}

#[test]
fn a_communicator_as_vllm_makes_it_comes_through() {
    let (_folder, real) = stand_in(&[]);
    let said = python(&library(), &[("ROUNDELAY_NCCL", real.as_os_str())]);
    assert_eq!(said, "version 23004\n2 ranks: [1, 2, 3, 4] [1, 2, 3, 4]\nno communicator\n");
}

/// Without an NCCL, each rank a process with a GPU of the driver for tests.
#[test]
fn ranks_of_vllm_are_processes() {
    for nranks in [2, 8] {
        let job = Job::new("vllm.py").set("ROUNDELAY_NCCL", "alone");
        for (rank, output) in
            job.ranks(nranks, &job.folder().join("id"), &[], &[]).iter().enumerate()
        {
            assert_eq!(said(rank, output).0, "done\n", "{nranks} ranks");
        }
    }
}

/// The list is complete, and the host's part works, before NCCL itself.
#[test]
fn the_list_of_vllm_is_there_before_the_real_nccl() {
    let said = python(&library(), &[("ROUNDELAY_NCCL", real().as_os_str())]);
    // Without a GPU, there is no communicator.
    assert_eq!(
        said,
        "version 23203\nunhandled cuda error (run with NCCL_DEBUG=INFO for details)\n"
    );
}
