//! Programs in Fortran, whose calls are taken, each once.

use std::path::Path;
use std::process::Command;

use crate::installed::{Mpi, all};
use crate::launched::{Compiled, row, source, taken};

/// MPICH's keep their cores.
const RANKS: u32 = 2;

#[test]
fn calls_of_fortran_are_taken_once() {
    for mpi in all() {
        if let Err(why) = with_and_without_f08(&mpi) {
            println!("skipped: {why}");
        }
    }
}

/// Runs the program, or says why it cannot be compiled.
fn with_and_without_f08(mpi: &Mpi) -> Result<(), String> {
    // With `mpi_f08` there are two allreduces more, and a broadcast.
    for (flags, more) in [(&[][..], [0, 0]), (&["-DF08"][..], [2, 1])] {
        let program = Compiled::by(mpi, |program| compile(mpi, flags, program))?;
        for mode in ["on", "verify"] {
            let variables = [("ROUNDELAY_MPI_TAKE", "all"), ("ROUNDELAY_MPI", mode)];
            let text = program.taken(RANKS, &variables);
            let name = format!("{}, {mode}, {flags:?}", program.name());
            let [allreduces, bcasts] = [5 + more[0], 6 + more[1]];
            let said = format!("OK: Allreduce {allreduces}, Bcast {bcasts}\n");
            assert!(text.contains(&said), "{name}:\n{text}");
            // One of the broadcasts has an invalid root.
            for (what, calls, ours) in [
                ("Allreduce", allreduces, allreduces),
                ("Allgather", 4, 4),
                ("Reduce_scatter_block", 4, 4),
                ("Bcast", bcasts, bcasts - 1),
                ("Reduce", 4, 4),
                ("Scatter", 4, 4),
                ("Gather", 4, 4),
                ("Alltoall", 2, 2),
                ("Allgatherv", 2, 2),
                ("Reduce_scatter", 2, 2),
                ("Alltoallv", 2, 2),
                ("Scatterv", 4, 4),
                ("Gatherv", 4, 4),
            ] {
                let line = row(&text, what);
                let all = format!("roundelay: {what} {calls} calls, ");
                assert!(line.starts_with(&all) && taken(line) == ours, "{name}: {line}");
                // The report is made once, whether Fortran or C ends MPI.
                assert_eq!(text.matches(&all).count(), 1, "{name}:\n{text}");
            }
            assert!(taken(row(&text, "Barrier")) >= 3, "{name}: {}", row(&text, "Barrier"));
        }
        let text = program.taken(RANKS, &[("ROUNDELAY_MPI", "off"), ("ROUNDELAY_REPORT", "0")]);
        assert!(text.contains("OK: ") && !text.contains("roundelay"), "{text}");
    }
    Ok(())
}

/// Compiles the program. Only Debian's MPIs have modules of Fortran.
///
/// # Errors
/// The missing compiler or module.
fn compile(mpi: &Mpi, flags: &[&str], program: &Path) -> Result<(), String> {
    let Some(kind) = mpi.name.strip_prefix("Debian's ") else {
        return Err(format!("{} has no modules of Fortran", mpi.name));
    };
    let compiler = format!("mpif90.{kind}");
    for needed in ["gfortran", &compiler] {
        let there = Command::new(needed).arg("--version").output();
        if !there.is_ok_and(|there| there.status.success()) {
            return Err(format!("{} without {needed}", mpi.name));
        }
    }
    let mut command = Command::new(compiler);
    // Buffers of all types go to functions without an interface, which compilers doubt.
    command.args(["-cpp", "-O1", "-w", "-fallow-argument-mismatch", "-J"]);
    command.arg(program.with_file_name("")).args(flags);
    command.arg(source("fortran.f90")).arg("-o").arg(program);
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {command:?}:\n{said}", mpi.name);
    Ok(())
}
