//! Processes in which a library is missing or present twice: all calls are left to MPI, which is reported once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use crate::launched::{compiled, library, row, source, taken};

/// Compiles a file by the C compiler.
fn cc(args: &[&Path]) {
    let output = Command::new("cc").args(args).output().expect("a C compiler, which Rust links by");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a library of no known kind, below names of MPI libraries.
fn other(folder: &Path, name: &str) -> PathBuf {
    let library = folder.join(name);
    cc(&["-shared".as_ref(), "-fPIC".as_ref(), "-o".as_ref(), &library, &source("other.c")]);
    library
}

/// Starts a program and returns all that it prints. Of processes that have one launcher, which is this process, one prints
/// a line of the library, so one at a time is started.
fn said(command: &mut Command) -> String {
    static STARTS: Mutex<()> = Mutex::new(());
    let start = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let output = command.output().expect("it starts");
    drop(start);
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{}:\n{text}", output.status);
    text
}

/// Makes a folder with the program of calls, which is linked to this library.
fn calls(with: &dyn Fn(&Path) -> PathBuf) -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder for the tests");
    let library = with(folder.path());
    let program = folder.path().join("calls");
    cc(&[&source("calls.c"), "-o".as_ref(), &program, &library]);
    (folder, program, library)
}

#[test]
fn a_library_of_no_known_kind_gets_all_calls() {
    let (folder, program, _) = calls(&|folder| other(folder, "libmpi.so"));
    let mut command = Command::new(&program);
    command.env("LD_LIBRARY_PATH", folder.path()).env("LD_PRELOAD", library()).arg("begins");
    let text = said(&mut command);
    for call in ["MPI_Init", "MPI_Allreduce", "MPI_Barrier", "MPI_Finalize"] {
        assert!(text.contains(&format!("theirs: {call}\n{call} 0\n")), "{text}");
    }
    assert!(text.contains("all collectives are left to MPI: this process has an MPI library of an unknown kind: Some MPI 1.0"), "{text}");
    assert_eq!(text.matches("roundelay:").count(), 1, "{text}");
    // Collectives are left to MPI where MPI is not begun, too.
    let mut command = Command::new(&program);
    command.env("LD_LIBRARY_PATH", folder.path()).env("LD_PRELOAD", library());
    let text = said(&mut command);
    assert!(text.contains("theirs: MPI_Allreduce\nMPI_Allreduce 0\n"), "{text}");
}

#[test]
fn two_libraries_in_a_process_are_left_alone() {
    let (folder, program, _) = calls(&|folder| other(folder, "libmpi.so"));
    let second = other(folder.path(), "libmpi_abi.so");
    let mut command = Command::new(&program);
    let preload = format!("{}:{}", library().display(), second.display());
    command.env("LD_LIBRARY_PATH", folder.path()).env("LD_PRELOAD", preload).arg("begins");
    let text = said(&mut command);
    assert!(text.contains("several MPI libraries: "), "{text}");
    assert!(text.contains("MPI_Allreduce 0\n"), "{text}");
}

#[test]
fn a_process_without_mpi_is_told_so() {
    // A program that never calls MPI is as it was.
    assert_eq!(said(Command::new("true").env("LD_PRELOAD", library())), "");
    let (_folder, program, _) = calls(&|_| library());
    let mut command = Command::new(&program);
    command.env("LD_LIBRARY_PATH", library().parent().expect("a folder")).arg("begins");
    let text = said(&mut command);
    assert!(text.contains("MPI_Init 16\nMPI_Allreduce 16\n"), "{text}");
    assert_eq!(text.matches("this process has no MPI library").count(), 1, "{text}");
}

/// What becomes of calls with wrong arguments: the codes' classes, and how often a handler is called.
#[test]
fn wrong_arguments_are_refused_as_by_mpi_alone() {
    for program in compiled("arguments") {
        let cases = |text: &str| {
            let lines = text.lines().filter(|line| line.starts_with("rank ")).map(str::to_owned);
            lines.collect::<BTreeSet<_>>()
        };
        let alone = cases(&program.plain(2));
        assert!(alone.len() > 300, "{}: {} cases", program.name(), alone.len());
        for take in ["all", "faster"] {
            let text = program.taken(2, &[("ROUNDELAY_MPI_TAKE", take)]);
            let with = cases(&text);
            let differ: Vec<_> = alone.symmetric_difference(&with).collect();
            assert!(differ.is_empty(), "{}, {take}: {differ:#?}", program.name());
            assert!(take != "all" || taken(row(&text, "Allgatherv")) > 0, "{text}");
        }
    }
}

#[test]
fn a_program_that_passes_the_library_by_is_reported() {
    for program in compiled("bypassing") {
        let text = program.taken(2, &[]);
        let line =
            "no collective came through the library: the program opened MPI's library itself";
        assert_eq!(text.matches(line).count(), 1, "{}:\n{text}", program.name());
        assert_eq!(text.matches("roundelay:").count(), 1, "{}:\n{text}", program.name());
        let text = program.taken(2, &[("ROUNDELAY_MPI", "off")]);
        assert!(!text.contains("roundelay"), "{}:\n{text}", program.name());
    }
}

#[test]
fn settings_that_make_no_sense_leave_all_to_mpi() {
    let program = &compiled("collectives")[0];
    for (name, value, why) in [
        ("ROUNDELAY_MPI", "maybe", "ROUNDELAY_MPI is `maybe`"),
        ("ROUNDELAY_ALGORITHM", "Allreduce: nowhere.coll", "nowhere.coll"),
    ] {
        let text = program.taken(2, &[(name, value)]);
        assert!(text.contains("OK: ") && text.contains(why), "{text}");
        assert_eq!(text.matches("all collectives are left to MPI").count(), 1, "{text}");
    }
}

/// One rank of a host does not preload the library, or has other settings.
#[test]
fn ranks_that_are_not_alike_leave_all_to_mpi() {
    let programs = compiled("collectives");
    let program = programs.first().expect("an MPI");
    let differ = |change: &str, why: &str| {
        let script = format!(
            "if [ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" = 1 ]; then {change}; fi; exec \"$0\""
        );
        let own = program.program().display().to_string();
        let (well, text) = program.launched_by(
            "sh".as_ref(),
            &["-c", &script, &own],
            2,
            &[("ROUNDELAY_MPI_TAKE", "all")],
        );
        assert!(well && text.contains("OK: "), "{text}");
        assert_eq!(text.matches("all collectives are left to MPI").count(), 1, "{text}");
        assert!(text.contains(why), "{text}");
        assert_eq!(taken(row(&text, "Allreduce")), 0, "{text}");
    };
    differ("unset LD_PRELOAD", "did not meet");
    differ("ROUNDELAY_MPI=verify; export ROUNDELAY_MPI", "different settings");
}
